"""What the names of functions, methods, classes and files suggest that they are there for."""

from __future__ import annotations

from torchlint.semantics.knowledge.conventions.convention import Convention

INHERITED_EVALUATION = Convention(
    "inherited-evaluation",
    suggests_that="a trainer of the project calls the method with autograd off",
    why="Trainers that projects write themselves name the steps of an evaluation as Lightning does.",
    names=frozenset("eval_step evaluation_step valid_step".split()),
)

PICTURE_WRITER = Convention(
    "picture-writer",
    suggests_that="the function makes or saves a picture",
    why="The samples that a picture shows are few.",
    names=frozenset("imsave imwrite make_grid save_image savefig".split()),
)

EVALUATING_WORD = Convention(
    "evaluating-word",
    suggests_that="the function evaluates a model",
    why="A function that evaluates takes no gradient, and says so in its name only.",
    names=frozenset(
        "demo detect eval evaluate evaluation infer inference predict prediction recognize sample test testing "
        "val vali valid validate validation".split()
    ),
)

GRADIENT_WORD = Convention(
    "gradient-word",
    suggests_that="the function exists for a gradient",
    why="Attacks and explanations evaluate a model and need its graph.",
    names=frozenset(
        "adv adversarial attack attribute backward explain fgsm fisher gradcam hessian jacobian perturb pgd "
        "saliency".split()
    ),
)

TRACING_CALL = Convention(
    "tracing-call",
    suggests_that="the call records the forward pass",
    why="What traces or exports a model wants it as it is.",
    pattern=r"onnx|\btrace\b|trace_module|\bscript\b|export|add_graph|make_dot|draw_graph|\bfx\.|quantiz",
)

GENERATING_METHOD = Convention(
    "generating-method",
    suggests_that="the method generates text, token by token",
    why="The host waits for each token in any case.",
    pattern=r"\A(?:_?generate(_|$))",
)

REDUCING_FUNCTION = Convention(
    "reducing-function",
    suggests_that="the function sums its argument over all processes",
    why="Helpers around `all_reduce` stand in other files.",
    pattern=(
        "^(all_?)?reduce_(tensor|loss|value|mean|dict|loss_dict|metric|scalar)s?(_dict)?$|^(all_reduce|dist)_mean$"
    ),
)

WRITING_METHOD = Convention(
    "writing-method",
    suggests_that="the method writes text with a language model",
    why="It takes a pass of the model for each token, beside which a loader costs nothing.",
    pattern=(
        r"\A(?:generate(_experience|_completions|_responses|_text|_trajector(y|ies)(_batched)?)?|(generate|"
        r"collect|make)_rollouts?)\Z"
    ),
)

IDENTITY_COLLATE = Convention(
    "identity-collate",
    suggests_that="the function that collates leaves its argument as it is",
    why="The samples are batches already.",
    pattern="(^|_)(trivial|identity|noop|no_op|passthrough|no)_?(collate|collator|$)",
)

CHORE_OWNER = Convention(
    "chore-owner",
    suggests_that="the function or class exists for housekeeping or for timing",
    why="Who calls it asks for what it does.",
    pattern=(
        "empty|clear|clean|free|collect|cache|mem|synchroni|barrier|wait|time|tick|meter|alloc|measure|bench|captur"
    ),
)

COUNTING_FUNCTION = Convention(
    "counting-function",
    suggests_that="the function counts operations or parameters",
    why="It runs once, on made up data.",
    pattern="flop|model_?(info|summary)|(^|_)(summary|summarize|macs)($|_)",
    ignore_case=True,
)

CHANGING_DATASET = Convention(
    "changing-dataset",
    suggests_that="the dataset has a method that changes it between epochs",
    why="Workers that stay alive hold the old one.",
    pattern="^_?(set_epoch|set_step|on_epoch|next_epoch|epoch_|new_epoch|resample|reshuffle|shuffle|update)",
)

LAYER_FUNCTION = Convention(
    "layer-function",
    suggests_that="the function or class makes a layer with weights",
    why="Classes of other files are worth a question only then.",
    pattern="conv|lin|dense|fc|proj",
    ignore_case=True,
)

MOVING_NAME = Convention(
    "moving-name",
    suggests_that="the function may move what it is given",
    why="A function that names a device or a model puts things there.",
    pattern="^(to|cuda|device|model|net)$|cuda|device|accelerator",
)

DIAGNOSTIC_FUNCTION = Convention(
    "diagnostic-function",
    suggests_that="the function exists to look at something",
    why="It does not run in training.",
    pattern="debug|profile|benchmark|sanity|visualiz|visualis|export|onnx|calibrat|plot_|__repr__",
)

VISUALISER = Convention(
    "visualiser",
    suggests_that="the class draws what a model has found",
    why="It does not run in training.",
    pattern="[Vv]isuali[sz]er$",
)

REFERENCE_FUNCTION = Convention(
    "reference-function",
    suggests_that="the function is a reference that others are compared with",
    why="It is slow on purpose.",
    names=frozenset("naive ref reference slow".split()),
)

FILE_WRITER = Convention(
    "file-writer",
    suggests_that="the function writes a file",
    why="A file is written on the host.",
    pattern=(
        r"\A(?:savefig|imsave|imwrite|save_(image|img|fig|video|audio|wav|mesh|ply|obj|nii)\w*|write_?(flow|"
        r"flo|pfm|png|jpe?g|image|video|wav|ply|obj|mesh|nii)\w*)\Z"
    ),
    ignore_case=True,
)

SAVING_FUNCTION = Convention(
    "saving-function",
    suggests_that="the function saves what it is given",
    why="What is saved has to come to the host.",
    pattern=r"\A(?:_?(save|write|dump)(_\w+)?|(save|write|dump)[A-Z]\w*)\Z",
)

DYNAMIC_FUNCTION = Convention(
    "dynamic-function",
    suggests_that="the data decide what the function does next",
    why="A search or a sampler cannot go on without the answer.",
    pattern=(
        "nms|suppress|beam|search|generat|greedy|decode(?!r)|sampl|dispatch|rout|moe|expert|bisect|solve|"
        "converge|stop|halt|wolfe|reject|prune|adaptive"
    ),
    ignore_case=True,
)

DYNAMIC_CLASS = Convention(
    "dynamic-class",
    suggests_that="the data decide what the class does next",
    why="As the functions of a search.",
    pattern="nms|beam|moe|expert|router|logitsproc|stopping|search|sparsemlp",
    ignore_case=True,
)

SAMPLE_CODE = Convention(
    "sample-code",
    suggests_that="the code makes samples, on the host",
    why="Nothing waits for a device there.",
    pattern="dataset|collat|transform(?!er)|augment|random|datamodule|processor|preprocess|tokeniz",
    ignore_case=True,
)

FREEZING_FUNCTION = Convention(
    "freezing-function",
    suggests_that="the function freezes a model",
    why="Its gradients are taken care of.",
    pattern="requires_grad|toggle|freez|frozen|trainable",
)

RARE_FUNCTION = Convention(
    "rare-function",
    suggests_that="the function runs once, or is there to show or store things",
    why="What it costs is petty.",
    pattern=(
        "(^|_)init(_|$|ializ)|plot|draw|show|visual(?!s)|(^|_)vis(_|$)|"
        "display|save|dump|export|^_?(download|load|read|parse|write|report|print)(_|$)|^_?process$|"
        "summary|(^|_)verify(_|$)|(^|_)lut(_|$)|^_?log_(image|img|video|audio|sample|"
        "conditioning|figure)"
    ),
    ignore_case=True,
)

COLLATOR = Convention(
    "collator",
    suggests_that="the function or class joins samples to a batch",
    why="It runs on the host, in a worker.",
    pattern="collat(e|or|ion)(?!d)",
    ignore_case=True,
)

TRANSFORM_CLASS = Convention(
    "transform-class",
    suggests_that="the class alters samples",
    why="It runs on the host, in a worker.",
    pattern="(Transforms?|Augmentations?)$",
)

TRIAL_FUNCTION = Convention(
    "trial-function",
    suggests_that="the function tries or times something",
    why="It runs once.",
    pattern=r"^(test|bench\w*|profile|time)_",
)

STATE_LOADER = Convention(
    "state-loader",
    suggests_that="the function loads the state of what it is given",
    why="A saved state is that of an optimizer that was not fused.",
    pattern="load|resum|restor|restart",
    ignore_case=True,
)

LOG_WRITER = Convention(
    "log-writer",
    suggests_that="the method logs or shows what it is given",
    why="Loggers and bars share the names of their methods.",
    names=frozenset(
        "add_histogram add_scalar add_scalars debug info log log_metric log_metrics set_description set_postfix "
        "set_postfix_str write".split()
    ),
)

CALLED_METHOD = Convention(
    "called-method",
    suggests_that="a library, a server or a training loop that is not in sight calls the method",
    why="Agents, engines and losses are used by methods of these names, and whoever uses them decides how often.",
    names=frozenset(
        "forward step training_step generate execute_model predict act learn update encode decode infer inference "
        "compute_loss get_action select_action choose_action preprocess postprocess handle".split()
    ),
)

ENTRY_POINT = Convention(
    "entry-point",
    suggests_that="the function is where a program starts",
    why="Who calls it sets no grad mode.",
    names=frozenset("cli main main_worker run start worker".split()),
)

NO_MODULE_BASE = Convention(
    "no-module-base",
    suggests_that="the base makes no module of a class with a `forward`",
    why="Functions of autograd and interfaces have a `forward` too.",
    names=frozenset("ABC BaseTransform Function Protocol".split()),
)

SHOWING_FUNCTION = Convention(
    "showing-function",
    suggests_that="the function shows or draws what it is given",
    why="Pictures are made on the host.",
    pattern=r"\A(?:vis_|visual|draw|plot|show|imshow|imwrite|imsave|save_image|render)",
)

COLLECTING_METHOD = Convention(
    "collecting-method",
    suggests_that="the method keeps or logs what it is given",
    why="Keeping and logging can wait for the end of a loop.",
    names=frozenset(
        "add add_histogram add_scalar add_scalars append debug extend format info log log_dict log_metrics print "
        "put record report set_description set_postfix set_postfix_str track track_metrics update warning write "
        "writerow".split()
    ),
)

FAULT_FINDER = Convention(
    "fault-finder",
    suggests_that="the function is there to look for faults",
    why="Anomaly detection is what it is for.",
    pattern="debug|anomal|nan|check|diagnos|test",
)

DEBUGGING_FUNCTION = Convention(
    "debugging-function",
    suggests_that="the function is there for debugging or for exact repetition",
    why="The variable is what it is for.",
    pattern="debug|determin|trace|profile|repro",
)

MODE_SWITCH = Convention(
    "mode-switch",
    suggests_that="the function may switch the mode of a model",
    why="A function that evaluates or saves switches it to and fro.",
    pattern=(
        "(?:^|_)(?i:eval|val|test|sampl|generat|predict|infer|visual|image|plot|save|score|metric|log(?:_|$)|"
        "train|run|callback|hook|event|fire|emit|trigger|dispatch|mode(?!l)|freeze|warm|swa|update_bn|ema)|"
        "(?:Eval|Val|Test|Sampl|Predict|Infer|Train|Save)"
    ),
)

AVERAGING_FUNCTION = Convention(
    "averaging-function",
    suggests_that="the function updates a moving average",
    why="It runs at each step, whoever calls it.",
    pattern="soft|ema|momentum|polyak|target",
    ignore_case=True,
)

LOG_SHOWER = Convention(
    "log-shower",
    suggests_that="the function shows what it is given",
    why="Loggers and bars share the names of their functions.",
    names=frozenset("add_text error print print_log tqdm warn warning".split()),
)

PARALLEL_CLASS = Convention(
    "parallel-class",
    suggests_that="the class is the strategy of a framework",
    why="It is made for those who ask for it.",
    pattern="DataParallel",
)

TRAINER_CLASS = Convention(
    "trainer-class",
    suggests_that="the class is a trainer, or extends one",
    why="Projects extend the trainers of libraries, and keep the ending.",
    pattern=r"Trainer\Z",
)

SUPPRESSION = Convention(
    "suppression",
    suggests_that="the code is a non-maximum suppression",
    why="How many boxes it leaves, the data decide.",
    pattern="nms",
)

TEST_FUNCTION = Convention(
    "test-function",
    suggests_that="the function tries out what the file has",
    why="It does not run in training.",
    pattern=r"\Atest_",
)

FITTING_METHOD = Convention(
    "fitting-method",
    suggests_that="the method trains a model",
    why="Trainers of many libraries have it.",
    names=frozenset({"fit"}),
)

DATASET_BASE = Convention(
    "dataset-base",
    suggests_that="the base is a dataset",
    why="Libraries and projects end the names of datasets so.",
    pattern=r"Dataset\Z",
)

LOGGING_CALL = Convention(
    "logging-call",
    suggests_that="the call logs",
    why="Helpers that log stand in other files.",
    pattern="log",
)

MODEL_PARTS = Convention(
    "model-parts",
    suggests_that="what a loop goes over are the parts of a model",
    why="Their number does not depend on the data.",
    names=frozenset("children items layers modules named_parameters parameters".split()),
)

COLLATE_FUNCTION = Convention(
    "collate-function",
    suggests_that="the function joins samples to a batch",
    why="Loaders call it for each batch.",
    names=frozenset("collate collate_fn".split()),
)

CLIPPING_FUNCTION = Convention(
    "clipping-function",
    suggests_that="the function clips gradients",
    why="It runs at each step.",
    pattern=r"\Aclip_grad",
)

METER_METHOD = Convention(
    "meter-method",
    suggests_that="the method of a meter takes what a batch gives",
    why="Meters are updated with each batch.",
    names=frozenset("update update_state".split()),
)

METER_CLASS = Convention(
    "meter-class",
    suggests_that="the class is a meter",
    why="It is updated with each batch.",
    pattern="meter|metric|averager|average",
)

NO_GRAD_NAME = Convention(
    "no-grad-name",
    suggests_that="the context manager or decorator turns autograd off",
    why="Projects wrap those of torch.",
    pattern="no_grad|inference",
)

EVAL_NAME = Convention(
    "eval-name",
    suggests_that="the context manager or decorator may turn autograd off",
    why="Projects wrap those of torch.",
    pattern="eval",
)

NO_PROCESSOR = Convention(
    "no-processor",
    suggests_that="what `from_pretrained` gives is no model",
    why="Tokenizers and processors are loaded in the same way.",
    pattern="okenizer|rocessor",
)

WRAPPING_METHOD = Convention(
    "wrapping-method",
    suggests_that="the method gives a loader back",
    why="Bars, Accelerate and Fabric wrap a loader.",
    names=frozenset("log_every prepare prepare_data_loader setup_dataloaders track".split()),
)

PROGRESS_BAR = Convention(
    "progress-bar",
    suggests_that="the function is a bar around what it is given",
    why="Projects make bars of their own from `tqdm`.",
    pattern="tqdm",
)

LOADING_METHOD = Convention(
    "loading-method",
    suggests_that="the method loads weights",
    why="It runs once.",
    pattern=r"\Aload",
)

CRITERION_CALL = Convention(
    "criterion-call",
    suggests_that="what is called computes a loss",
    why="Losses are handed in from other files.",
    pattern="criterion",
)

CALIBRATION = Convention(
    "calibration",
    suggests_that="the batches are there to calibrate",
    why="A few of them are taken, once.",
    pattern="calib",
)

CTC = Convention(
    "ctc",
    suggests_that="what is called is a CTC loss",
    why="It wants lengths on the CPU.",
    pattern="ctc",
)

CPU_OPERATION = Convention(
    "cpu-operation",
    suggests_that="only the CPU has the operation",
    why="The copy is needed.",
    pattern=r"_cpu\Z",
)

FALLBACK = Convention(
    "fallback",
    suggests_that="the function is there for what goes wrong",
    why="It runs seldom.",
    pattern="fallback",
)

ASSERTING_CALL = Convention(
    "asserting-call",
    suggests_that="the function fails where its argument is false",
    why="It ends the program.",
    pattern=r"_assert\Z",
)

ALARM_CALL = Convention(
    "alarm-call",
    suggests_that="the call warns, or ends the program",
    why="What stands beside it runs seldom.",
    pattern=r"\Awarn|\A(?:exit|_exit|quit|abort|error|critical)\Z",
)

ACTING_METHOD = Convention(
    "acting-method",
    suggests_that="the method hands a value to an environment, a window or another process",
    why="The host needs it at once.",
    names=frozenset("put render send step".split()),
)

ENVIRONMENT_STEP = Convention(
    "environment-step",
    suggests_that="the call is the step of an environment",
    why="The host needs the action at once.",
    names=frozenset({"step"}),
)

DISTRIBUTED_CALL = Convention(
    "distributed-call",
    suggests_that="the call makes or sets up a `DistributedDataParallel`",
    why="Helpers are named after it.",
    pattern="DDP",
)

OPTIMIZER_CALL = Convention(
    "optimizer-call",
    suggests_that="the call makes an optimizer",
    why="A file that makes one trains.",
    pattern="optimizer",
    ignore_case=True,
)

STEP_METHOD = Convention(
    "step-method",
    suggests_that="the method takes a step",
    why="A file that takes none wants the gradients themselves.",
    pattern="step",
)

MODEL_CLASS = Convention(
    "model-class",
    suggests_that="what `from_pretrained` gives is a model",
    why="Tokenizers and processors are loaded in the same way.",
    pattern="Model",
)

RESIZING_CALL = Convention(
    "resizing-call",
    suggests_that="the call gives a size that depends on the sample",
    why="No batch has it.",
    names=frozenset("int interpolate resize".split()),
)

BAR_CALL = Convention(
    "bar-call",
    suggests_that="the call gives the elements of its argument as they are",
    why="Bars wrap what a loop goes over.",
    names=frozenset({"tqdm"}),
)

TRAINING_CALL = Convention(
    "training-call",
    suggests_that="the file trains",
    why="One of these is called wherever a model is trained, whatever its object.",
    names=frozenset("backward fit manual_backward train zero_grad".split()),
)

GENERATING_CALL = Convention(
    "generating-call",
    suggests_that="the method of a model gives a tensor",
    why="As that of Transformers does.",
    names=frozenset({"generate"}),
)

FILE_FUNCTION = Convention(
    "file-function",
    suggests_that="the function reads, writes or draws one thing",
    why="No batched operation takes its place.",
    names=frozenset(
        "fromarray imread imsave imshow imwrite load open putText read_image save save_image savefig subplot".split()
    ),
)

FUSING_DECORATOR = Convention(
    "fusing-decorator",
    suggests_that="the decorator fuses what the function computes",
    why="Projects wrap that of TorchScript.",
    names=frozenset("jit jit_fuser script".split()),
)

TOKENISING_CALL = Convention(
    "tokenising-call",
    suggests_that="the call is that of a tokenizer",
    why="What it is given is text for a model.",
    pattern="token",
)

MADE_UP_FUNCTION = Convention(
    "made-up-function",
    suggests_that="the function works on made up data",
    why="It runs once.",
    pattern="dummy",
)

DECODING_METHOD = Convention(
    "decoding-method",
    suggests_that="a meter is asked for more than an average",
    why="It works on arrays.",
    pattern=r"\A(?:get_pred|predict|decode)",
)
