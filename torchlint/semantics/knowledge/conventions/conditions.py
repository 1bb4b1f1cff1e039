"""What the words of a condition suggest that it asks for."""

from __future__ import annotations

from torchlint.semantics.knowledge.conventions.convention import Convention

STARTED_FLAG = Convention(
    "started-flag",
    suggests_that="the condition asks whether something has been set up",
    why="What stands behind it runs once.",
    pattern="initiali[sz]ed|(^|_)init(ed)?$|built$|is_set_?up",
)

USUAL_CONDITION = Convention(
    "usual-condition",
    suggests_that="the condition asks for a device or a rank, which holds at each batch",
    why="It limits nothing.",
    pattern="cuda|gpu|device|accelerator|mps|xpu|rank|main_process|is_master|train|^true$",
)

CHORE_CONDITION = Convention(
    "chore-condition",
    suggests_that="the condition asks for housekeeping",
    why="Somebody has decided on it.",
    pattern="mem|cache|free|oom|collect|sync|debug|profil|time|bench|exceed|limit|alloc|version",
)

SHORT_OF_MEMORY = Convention(
    "short-of-memory",
    suggests_that="the program runs short of memory",
    why="Housekeeping may pay there.",
    pattern=r"mem|cpu_cache|offload|vram|oom\b",
)

OFFLOADING_OPTION = Convention(
    "offloading-option",
    suggests_that="the condition asks for room on the device",
    why="The copy to the CPU is what is asked for.",
    pattern=r"cpu_?(cache|offload|only|mem)|(cache|keep|store|on|to|use|move|save)_?(\w+_)?cpu|offload",
)

SAVING_OPTION = Convention(
    "saving-option",
    suggests_that="the condition asks for something to be saved",
    why="What is saved has to come to the host.",
    pattern="(^|_)(save|dump)(_|$)",
)

CHECKING_OPTION = Convention(
    "checking-option",
    suggests_that="the condition asks for checks",
    why="Who asks for them accepts the wait.",
    pattern="debug|anomal|verbos|valid|sanity|check|strict|is_scripting|is_tracing|is_exporting|onnx",
)

DEBUG_SWITCH = Convention(
    "debug-switch",
    suggests_that="the condition asks for debugging",
    why="It is off in long runs.",
    pattern="debug|verbos",
)

MEMORY_OPTION = Convention(
    "memory-option",
    suggests_that="the function may be asked to save memory",
    why="The loop is what is asked for.",
    pattern="mem(ory)?_?eff|low_mem|sav(e|es|ing)_mem|mem(ory)?_sav",
    ignore_case=True,
)

EPISODE_END = Convention(
    "episode-end",
    suggests_that="an episode ends",
    why="What is said there is said now and then.",
    pattern=r"\A(?:_?(is_)?(done|terminal|terminated|terminate|truncated|termination|truncation)s?)\Z",
)

SINGLED_OUT = Convention(
    "singled-out",
    suggests_that="the condition lets one process through, or has thought of the device",
    why="Only one process loads there.",
    pattern="rank|master|main_process|is_main|gpu|device|cpu|local",
)

SEVERAL_PROCESSES = Convention(
    "several-processes",
    suggests_that="the condition asks whether there are several processes",
    why="The other branch is for one.",
    pattern="distributed|ddp|world_size|is_initialized",
)

DEVICE_CONDITION = Convention(
    "device-condition",
    suggests_that="the condition asks for a device",
    why="The branch is for one kind of device.",
    pattern=r"is_available\(|is_cuda|use_gpu|use_cuda|\.type ==|cuda",
)

EXPORT_CONDITION = Convention(
    "export-condition",
    suggests_that="the condition asks for an export",
    why="The code there is written to be traced.",
    pattern="export|scripting|tracing",
)

TRACED_CONDITION = Convention(
    "traced-condition",
    suggests_that="the branch is written for tracing, or for input of another kind",
    why="It is seldom taken.",
    pattern=r"export|scripting|tracing|isinstance\(|is_tensor\(|cache_position|past_key_values",
)

DEVICE_LIMIT = Convention(
    "device-limit",
    suggests_that="the condition asks for what a device cannot do",
    why="The way through the CPU is meant.",
    pattern="mps|npu|xpu|xla|hpu|is_cuda|device|determin|backend|version|debug|offload",
)

WORKER_CONDITION = Convention(
    "worker-condition",
    suggests_that="the condition decides on workers",
    why="Somebody has decided on the number.",
    pattern=r"debug|worker|platform|os\.name|windows|notebook|smoke",
    ignore_case=True,
)

ACCUMULATION_CONDITION = Convention(
    "accumulation-condition",
    suggests_that="the condition holds at some batches only",
    why="Gradients are accumulated over several batches.",
    pattern="accum",
)

PLACE_CONDITION = Convention(
    "place-condition",
    suggests_that="the condition asks where a tensor is",
    why="The cast in its branch is meant for one device.",
    pattern="cuda|cpu|device",
)

CUDA_CONDITION = Convention(
    "cuda-condition",
    suggests_that="the condition asks for an accelerator",
    why="The branch moves a tensor by hand.",
    pattern="cuda|gpu",
)

BIAS_TEST = Convention(
    "bias-test",
    suggests_that="the condition asks whether a layer has a bias",
    why="Code behind it does without one.",
    pattern=r"\.bias",
)

LAYER_TEST = Convention(
    "layer-test",
    suggests_that="the condition asks for a kind of layer",
    why="Code behind it is for layers of that kind.",
    pattern=r"isinstance|find\(|classname",
)

RANK_CONDITION = Convention(
    "rank-condition",
    suggests_that="the code is that of one process of several, by its rank",
    why="What one process does alone the others wait for.",
    pattern="rank",
)

LIMIT_FLAG = Convention(
    "limit-flag",
    suggests_that="the condition holds now and then",
    why="Flags for it have these names.",
    pattern="log_now|should_log|do_log|is_last|print_now|debug",
)

NORM_CONDITION = Convention(
    "norm-condition",
    suggests_that="the condition asks for a norm",
    why="The code in its branch switches norms only.",
    pattern="Norm",
)

EMPTINESS_CONDITION = Convention(
    "emptiness-condition",
    suggests_that="the condition asks whether there is anything",
    why="A constant stands in where there is nothing, and seldom.",
    pattern=(
        r"grad is None|numel\(|len\(|\.any\(|\.all\(|isnan|isinf|isfinite|\.size\(0\)|\.shape\[0\]|nelement\(|"
        r"\.sum\("
    ),
)

WAITING_CONDITION = Convention(
    "waiting-condition",
    suggests_that="the condition waits for the device",
    why="Nothing is left to wait for in its branch.",
    pattern=r"\.item\(\)|\.tolist\(\)|\.cpu\(\)",
)

BROKEN_CONDITION = Convention(
    "broken-condition",
    suggests_that="the condition asks whether something is wrong",
    why="It seldom is.",
    pattern=r"isnan\(|isinf\(",
)

SHOWING_CONDITION = Convention(
    "showing-condition",
    suggests_that="the branch is there to show things",
    why="What it costs is petty.",
    pattern="visual|plot|draw|(^|_)viz?s?(_|$)",
    ignore_case=True,
)

OVERFLOW_CONDITION = Convention(
    "overflow-condition",
    suggests_that="the condition asks whether something has gone wrong",
    why="It is said seldom.",
    pattern=r"(?<![\w.])(?<!not )[\w.]*overflow",
)

NOTHING_THERE = Convention(
    "nothing-there",
    suggests_that="the condition asks whether there is nothing",
    why="It seldom holds.",
    pattern=r"\A(?:not len\(.*\)|(len\(.*\)|.*\.(numel|nelement)\(\)|.*\.(shape\[0\]|size\(0\))) == 0)\Z",
)

CUDA_FLAG = Convention(
    "cuda-flag",
    suggests_that="the condition asks for CUDA",
    why="Options and attributes say so by their names.",
    names=frozenset("cuda cuda_available has_cuda is_cuda use_cuda use_gpu".split()),
)
