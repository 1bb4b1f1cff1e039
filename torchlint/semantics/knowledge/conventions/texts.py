"""What words in the text of a file or a function suggest that it does."""

from __future__ import annotations

from torchlint.semantics.knowledge.conventions.convention import Convention

ACCELERATOR_PARTS = Convention(
    "accelerator-parts",
    suggests_that="the author of the file thinks of an accelerator",
    why="A script that never speaks of a device runs on the CPU.",
    pattern=r"cuda|\.to\(|accelerat|fabric",
)

ACCELERATOR_WORDS = Convention(
    "accelerator-words",
    suggests_that="the author of the file thinks of an accelerator",
    why="As the parts, where the word has to stand alone.",
    pattern=r"\b(?:device|xla|mps|npu|xpu)\b|\bgpu",
)

SHARES_SAMPLES = Convention(
    "shares-samples",
    suggests_that="a dataset knows of workers or ranks",
    why="It may give each its own part.",
    pattern=r"worker|rank|world|shard|split(?!lines|\()|num_replicas|partition|part_id|replica",
    ignore_case=True,
)

DRAWS_SAMPLES = Convention(
    "draws-samples",
    suggests_that="a dataset gives other samples each time",
    why="Workers that draw do not repeat each other.",
    pattern=r"rand|shuffle|sample\(|choice|permutation|Queue|socket|requests|subprocess|urlopen",
    ignore_case=True,
)

ACCELERATED_TRAINING = Convention(
    "accelerated-training",
    suggests_that="the file trains on an accelerator",
    why="On the CPU workers compete with the model.",
    pattern=r"cuda|device|gpu|accelerat|\.to\(|fabric|trainer|lightning|\b(xla|npu|hpu|xpu)\b",
    ignore_case=True,
)

CHORE_RANGE = Convention(
    "chore-range",
    suggests_that="a profiled range is one of housekeeping",
    why="Who measures it knows of it.",
    pattern="empty|clear|free|collect|garbage|synchroni",
)

CLOCK = Convention(
    "clock",
    suggests_that="something is timed",
    why="A clock needs the device to be idle.",
    pattern=(
        r"\bperf_counter|\bmonotonic|enable_timing|elapsed|[Tt]imer|\btic\b|\btoc\b|throughput|latency|"
        r"perf_meter|profil|\b(?:end|start)_time|Stopwatch"
    ),
)

PRECISION_SETTLED = Convention(
    "precision-settled",
    suggests_that="the author has decided on a precision",
    why="A second word on it is noise.",
    pattern=(
        r"autocast|\bhalf\(|float16|fp16|\bamp\b|apex|mixed[ _]precision|precision=|matmul_precision|double\(|"
        r"float64|tf32(?!-not-enabled)|complex|deepspeed|accelerator\.|import accelerate|lightning|fabric|"
        "bitsandbytes|quantiz|torch_xla"
    ),
    ignore_case=True,
)

TINY_DATA = Convention(
    "tiny-data",
    suggests_that="the file trains on images of 28 by 28",
    why="So small a network gains little from a lower precision.",
    pattern="mnist",
    ignore_case=True,
)

PICKED_BY_NAME = Convention(
    "picked-by-name",
    suggests_that="functions of the file are picked by their names",
    why="A function that nobody names may run.",
    pattern=r"\bglobals\(\)(\.get\(|\[)|(?<![.\w])eval\(",
)

APPLE_DEVICE = Convention(
    "apple-device",
    suggests_that="the file speaks of devices of Apple",
    why="Pinned memory does nothing there.",
    pattern=r"\bmps\b",
)

OTHER_DEVICE = Convention(
    "other-device",
    suggests_that="the file speaks of devices that may be of another kind than those of CUDA",
    why="What is said of CUDA may not hold.",
    pattern=r"torch\.accelerator|\bxla\b|xla_device|\bnpu\b|\bxpu\b|\bhpu\b",
)

MOVED_BY_FRAMEWORK = Convention(
    "moved-by-framework",
    suggests_that="the file leaves moving to a framework, or copies on streams of its own",
    why="Its moves are taken care of.",
    pattern=r"accelerator\.prepare|\.prepare\(|setup_dataloaders|\bstream\(|Stream\(|deepspeed",
)

HALF_PRECISION = Convention(
    "half-precision",
    suggests_that="the file computes with half the precision",
    why="A running total on the device may round.",
    pattern=r"autocast|float16|bfloat16|\bhalf\b|fp16|bf16|\bamp\b|16-mixed",
)

WEIGHT_LOADER = Convention(
    "weight-loader",
    suggests_that="the file loads weights",
    why="Weights that are loaded may hold the bias.",
    pattern=(
        r"load_state_dict|load_url|load_checkpoint|load_from_checkpoint|load_pretrained\w*|load_weights|"
        "from_pretrained|PreTrainedModel|build_model_with_cfg"
    ),
)

LAYOUT_SETTLED = Convention(
    "layout-settled",
    suggests_that="the author has decided on a memory layout, or it gains nothing",
    why="A second word on it is noise.",
    pattern=r"channels_last|memory_format|torch\.jit|InstanceNorm2d",
)

BENCHMARK_SETTLED = Convention(
    "benchmark-settled",
    suggests_that="the author or a framework has decided on the search for algorithms",
    why="A second word on it is noise.",
    pattern=(
        r"torch\.backends|cudnn(?!-benchmark-off)|determinis|max.autotune|lightning|fabric\.|accelerat|"
        r"deepspeed|torch_xla|\bignite\b|fastai|mmcv|mmengine"
    ),
    ignore_case=True,
)

VARYING_SIZES = Convention(
    "varying-sizes",
    suggests_that="the sizes of the input change",
    why="A search for each size costs more than it gains.",
    pattern=r"collate|batch_sampler|multi[-_]?scale|random_?size|RandomResize\b|\bdetection\b|\bbuckets?\b",
)

SYNCING_FRAMEWORK = Convention(
    "syncing-framework",
    suggests_that="the author or a framework has thought of when gradients are exchanged",
    why="A second word on it is noise.",
    pattern=(
        "no_sync|require_backward_grad_sync|set_requires_gradient_sync|register_comm_hook|delay_allreduce|"
        r"deepspeed|accelerator\.|lightning|fabric\.|horovod"
    ),
)

TRAINING_STEP = Convention(
    "training-step",
    suggests_that="the file trains",
    why="Buckets cost memory only where there are gradients.",
    pattern=r"\.backward\(|zero_grad\(|optimizer\.step\(",
)

FLOAT64_WANTED = Convention(
    "float64-wanted",
    suggests_that="the file wants double precision",
    why="Physics and solvers need it.",
    pattern=(
        r"float64(?!-leak)|double|default_dtype|default_tensor_type|scipy|linalg|physics|pde\b|ode(?:int|"
        "solve)|gpytorch|botorch|quantum"
    ),
    ignore_case=True,
)

LOSS_SCALING = Convention(
    "loss-scaling",
    suggests_that="the file or a framework scales the loss, or needs not",
    why="A second word on it is noise.",
    pattern=(
        "(?<!without-)scaler|loss_?scal|scal(?:e|ed|ing)_?loss|grad_?scal|unscale|set_autocast|bfloat16|bf16|"
        r"\bapex\b|lightning|fabric|accelerat|deepspeed|fairscale|megatron|colossalai|composer|catalyst|"
        "fastai|ignite|mmcv|mmengine"
    ),
    ignore_case=True,
)

WATCHED_GRAPH = Convention(
    "watched-graph",
    suggests_that="something looks at the graph or the gradients",
    why="A backward pass that does not run may be missed.",
    pattern=(
        r"_hook|checkpoint\(|DistributedDataParallel|DDP\(|fabric|ccelerat|deepspeed|FullySharded|"
        r"retain_graph|create_graph|\.grad\b|clip_grad|grad_fn|is_leaf|autograd\.(?!Variable)|def backward|"
        r"param_groups|unscale_|detect_anomaly|getattr\(|requires_grad(?:_|\s*=(?!=))|"
        r"(?<!\bp\.)(?<!\bparam\.)requires_grad\b"
    ),
)

ATTENTION_KNOWN = Convention(
    "attention-known",
    suggests_that="the author knows of the fused attention",
    why="The formula stands there on purpose.",
    pattern=(
        "scaled_dot_product|memory_efficient_attention|flash_attn|xformers|flex_attention|"
        "attn_implementation|AttentionInterface|sdpa|create_graph=True"
    ),
)

ORDERED_WORK = Convention(
    "ordered-work",
    suggests_that="the code orders work that PyTorch does not order by itself",
    why="The wait is needed.",
    pattern=(
        r"[Ss]tream\b|\.stream\(|CUDAGraph|make_graphed|cuda_graph|\.replay\(|record_event|share_memory|"
        r"\.put\(|ipc_|cupy|numba|triton|execute_async|trt|pycuda|fork\(|cpu['\x22]?\)?,\s*non_blocking|"
        r"copy_\([^\n]*non_blocking|async_op|isend|irecv|P2POp|offload|device=['\x22]cpu"
    ),
)

RMSNORM_KNOWN = Convention(
    "rmsnorm-known",
    suggests_that="the author knows of the fused norm",
    why="The formula stands there on purpose.",
    pattern=r"nn\.RMSNorm\b|\brms_norm(_fn)?\(|[Ff]used_?[Rr][Mm][Ss]|use_kernel_forward_from_hub",
)

OWN_MOVE = Convention(
    "own-move",
    suggests_that="the file asks if memory is pinned, or has a `to` of its own",
    why="Dropping an argument of `to` may then change what happens.",
    pattern=r"is_pinned|def to\(",
)

OPTIMIZER_TEXT = Convention(
    "optimizer-text",
    suggests_that="the code speaks of an optimizer",
    why="What saves an optimizer saves more than weights.",
    pattern="optim",
)

SPARSE_GRADIENTS = Convention(
    "sparse-gradients",
    suggests_that="embeddings may have sparse gradients",
    why="No fused optimizer takes them.",
    pattern="sparse=(?!False)",
)

EPOCH_TEXT = Convention(
    "epoch-text",
    suggests_that="the code depends on the epoch",
    why="Workers that stay alive hold the old one.",
    pattern="epoch",
)

CUDA_TEXT = Convention(
    "cuda-text",
    suggests_that="the file speaks of CUDA",
    why="A file that does not may run on the CPU only.",
    pattern="cuda",
)

SHARDED_MODEL = Convention(
    "sharded-model",
    suggests_that="the parameters of a model are sharded",
    why="What gathers them keeps views of them, which autograd meets later.",
    pattern=r"fsdp|fully_?shard|deepspeed(?:\.init|\.zero|engine|plugin|strategy)|zero_?3",
    ignore_case=True,
)
