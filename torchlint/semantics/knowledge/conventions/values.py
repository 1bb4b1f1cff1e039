"""What names of variables, attributes and parameters suggest that they hold."""

from __future__ import annotations

from torchlint.semantics.knowledge.conventions.convention import Convention

LOADER = Convention(
    "loader",
    suggests_that="the name holds a loader, or an iterator over batches",
    why="Parameters and attributes are called so where no file shows what is passed.",
    pattern=(
        "(^|_)((train|val|valid|test|eval|data)_?)?load(er|ers)?$|dataloader|data_loader|_loader|_dl$|^dl$|(train|val|valid|test|"
        "batch)_iter(ator)?$|^batches$|^batch_iterator$|^data_?iter(ator)?$|_batches$|^prefetcher$"
    ),
    ignore_case=True,
)

MODULE = Convention(
    "module",
    suggests_that="the name holds an `nn.Module`",
    why="Models are handed in from other files under a few names.",
    pattern=(
        r"^(self\.)?(_?(model|net|network|encoder|decoder|backbone|generator|discriminator|critic|actor|"
        "policy|actor_critic|criterion|loss_fn|loss_func|loss_function|netg|netd|unet|vae|classifier|student|"
        "teacher|model_ema|ema_model|ema|g_ema|policy_net|target_net|q_net|transformer|resnet|vgg)|"
        "(?!(un)?(build|copy|create|define|export|freeze|get|init|load|make|prepare|reset|save|setup|update|"
        "wrap)_).*_(model|net|network|encoder|decoder|criterion))$"
    ),
    ignore_case=True,
)

LOSS = Convention(
    "loss",
    suggests_that="the name holds a loss, or what computes one",
    why="Nothing but its name tells a criterion that is handed in from another function.",
    pattern="criterion|loss",
    ignore_case=True,
)

DEVICE = Convention(
    "device",
    suggests_that="the name holds a `torch.device`",
    why="Devices come from options and other files, and are called `device` there.",
    pattern="(^|_)(device|dev)(_id|s)?$|^(gpu|cuda)_device$",
    ignore_case=True,
)

OUTPUT_FIELD = Convention(
    "output-field",
    suggests_that="the attribute of what a model gives is a tensor",
    why="Libraries of models return objects, and name the tensors in them alike.",
    names=frozenset(
        "end_logits hidden_states image_embeds last_hidden_state logits loss pooler_output pred_original_sample "
        "prev_sample sample start_logits text_embeds".split()
    ),
)

TENSOR_ATTRIBUTE = Convention(
    "tensor-attribute",
    suggests_that="the attribute of whatever this is holds a tensor",
    why="Parameters have a gradient, and libraries of graphs name the tensors in them alike.",
    names=frozenset("edge_attr edge_index grad".split()),
)

GRAPH_FIELD = Convention(
    "graph-field",
    suggests_that="graphs of PyG, and each of their stores, hold a tensor by this name",
    why="`torch_geometric.data.Data` and `HeteroData` give them to whatever a network is called with.",
    names=frozenset("batch edge_attr edge_index edge_weight pos ptr x".split()),
)

NO_MODEL = Convention(
    "no-model",
    suggests_that="what is called has no parameters: a criterion, a metric or a transform",
    why="Their results are looked at, and their graphs are freed at once.",
    pattern="crit(?!ic)|loss|metric|lpips|ssim|psnr|accuracy|transform|augment|normali[sz]e|mean_std|process",
    ignore_case=True,
)

SAMPLE_SOURCE = Convention(
    "sample-source",
    suggests_that="the attribute may share itself out between workers",
    why="Datasets of other libraries and pipes do.",
    pattern="dataset|(^|_)ds$|stream|loader|source|gen|env|reader|iter|pipe|queue|func|fn$",
    ignore_case=True,
)

REPLAY_BUFFER = Convention(
    "replay-buffer",
    suggests_that="what a loader is given is filled by the program",
    why="Workers would hold stale copies of a replay buffer.",
    pattern="(^|_)(buffer|replay|replay_memory)$",
)

MADE_UP_DATA = Convention(
    "made-up-data",
    suggests_that="the data are made up",
    why="Making them costs nothing.",
    pattern=r"(?i:mock|dummy|synthetic)|(^|_)fake|\bFakeData\b",
)

BACKWARD_LOSS = Convention(
    "backward-loss",
    suggests_that="the name holds a loss, or what computes one",
    why="A sum of losses goes backward term by term.",
    pattern="loss|criterion",
    ignore_case=True,
)

MASK = Convention(
    "mask",
    suggests_that="the name holds a mask",
    why="What a mask picks has no fixed size.",
    pattern="mask|keep|valid|^pos$|^neg$",
    ignore_case=True,
)

LOOKUP_TABLE = Convention(
    "lookup-table",
    suggests_that="the name holds a table of Python objects",
    why="Only the host can look something up there.",
    pattern="name|class|word|vocab|char|token|label|dict|map|2|itos|categor|palette|colou?r",
    ignore_case=True,
)

CHANNEL_STATISTICS = Convention(
    "channel-statistics",
    suggests_that="the list holds a number for each channel",
    why="There are three of them.",
    pattern="(^|_)(mean|std)s?$",
)

LIST = Convention(
    "list",
    suggests_that="the name holds a list",
    why="What a list holds may differ from element to element.",
    pattern="(^|_)lists?$",
    ignore_case=True,
)

STATELESS_LOSS = Convention(
    "stateless-loss",
    suggests_that="what is called is a loss and keeps no state",
    why="It gives the same for all elements at once.",
    pattern="criterion|loss|crit$",
    ignore_case=True,
)

DTYPE_NAME = Convention(
    "dtype-name",
    suggests_that="what something is moved to is a type",
    why="`to` takes types and devices alike, and types are called so.",
    pattern="type|precision",
    ignore_case=True,
)

SETTINGS = Convention(
    "settings",
    suggests_that="the object holds settings, or is no data",
    why="`args.device` is where the program runs, `labels.device` where the labels are.",
    pattern=(
        "^_?(self|cls|args?|opts?|options?|config|cfg|conf|hparams?|hp|params|flags|settings|context|ctx)$|"
        "(model|net|module|backbone|encoder|decoder|critic|actor|policy|agent|engine)$|trainer|accelerator|"
        "fabric|learner"
    ),
    ignore_case=True,
)

TEXT_NAME = Convention(
    "text-name",
    suggests_that="the name holds a text",
    why="Names and paths are formatted, and no tensor is.",
    pattern=(
        "(^|_)(name|type|path|file|filename|fname|dir|text|caption|sentence|title|key|split|mode|prefix|"
        r"suffix|tag|url|utt\w*)s?(_list)?$"
    ),
)

TRACKER = Convention(
    "tracker",
    suggests_that="the object logs what it is given",
    why="Experiment trackers take a number at once.",
    names=frozenset("accelerator mlflow run tracker wandb wandb_run".split()),
)

LOGGER = Convention(
    "logger",
    suggests_that="the name holds a logger",
    why="Modules give their loggers these names.",
    names=frozenset("LOG LOGGER _logger log logger logging".split()),
)

HYPOTHESES = Convention(
    "hypotheses",
    suggests_that="the loop goes over the hypotheses of a search",
    why="Each of them runs the network.",
    pattern="hypothes[ie]s|hyps|beams?(_|$)",
)

FROZEN_MODEL = Convention(
    "frozen-model",
    suggests_that="the model has no gradients",
    why="Teachers and averages are not trained.",
    names=frozenset("ema frozen momentum reference target teacher".split()),
)

REQUIRES_GRAD_MISSPELT = Convention(
    "requires-grad-misspelt",
    suggests_that="the attribute is `requires_grad`, misspelt",
    why="Python sets any attribute that it is told.",
    names=frozenset(
        "reqires_grad require_grad require_gradient require_grads required_grad requires_gard requires_grad_ "
        "requires_gradient requires_gradients requires_grads requres_grad requries_grad".split()
    ),
)

LOADER_ENDING = Convention(
    "loader-ending",
    suggests_that="the name holds a loader",
    why="As the other names of loaders, in short.",
    pattern=r"(?:loader|_dl)\Z",
)

PLATFORM_NAME = Convention(
    "platform-name",
    suggests_that="the name says on which platform the program runs",
    why="The number of workers depends on it.",
    pattern="platform|windows|fork",
)

OWN_DEVICE = Convention(
    "own-device",
    suggests_that="the attribute is the device of a model",
    why="Lightning and Transformers give modules this property, and projects follow them.",
    names=frozenset({"self.device"}),
)

SCALER = Convention(
    "scaler",
    suggests_that="the object scales losses",
    why="A scaler checks gradients itself.",
    pattern="scaler",
)

OPTIMIZER = Convention(
    "optimizer",
    suggests_that="the name holds an optimizer",
    why="They are handed in from other files.",
    pattern=r"\A(?:optimizer|optim|opt_g|opt_d|optimizer_g|optimizer_d)\Z|_optimizer\Z",
)

LOG_OWNER = Convention(
    "log-owner",
    suggests_that="the object logs",
    why="Loggers have it in their names.",
    pattern="log",
)

LOSS_WORD = Convention(
    "loss-word",
    suggests_that="the name holds a loss",
    why="A loss is no whole number.",
    pattern="loss",
    ignore_case=True,
)

TRAINER_OBJECT = Convention(
    "trainer-object",
    suggests_that="the object is a trainer",
    why="It empties gradients of its own.",
    pattern="trainer",
    ignore_case=True,
)

PACKED_SIZES = Convention(
    "packed-sizes",
    suggests_that="the name holds the sizes of a packed sequence",
    why="They are on the CPU always.",
    names=frozenset({"batch_sizes"}),
)

OPTIONS = Convention(
    "options",
    suggests_that="the name holds the options of the command line",
    why="They are parsed in another function.",
    names=frozenset("FLAGS args cfg flags hparams opt options opts".split()),
)

PYRAMID = Convention(
    "pyramid",
    suggests_that="the tensor holds the shapes of the levels of a pyramid",
    why="There are a few of them.",
    pattern="shapes",
)

IMAGE_AND_TARGET = Convention(
    "image-and-target",
    suggests_that="the parameter is an image",
    why="Transforms take one, with what is to be seen on it.",
    names=frozenset("image img".split()),
)

SEEN_TARGET = Convention(
    "seen-target",
    suggests_that="the parameter is what is to be seen on an image",
    why="Transforms take it beside the image.",
    names=frozenset({"target"}),
)

INDEX_LIST = Convention(
    "index-list",
    suggests_that="what a loader is given are numbers",
    why="Workers gain nothing where a sample is a number.",
    pattern="(^|_)(idx|idxs|ids|nid|nids|indices)$",
)
