"""What the names of numbers suggest that they count."""

from __future__ import annotations

from torchlint.semantics.knowledge.conventions.convention import Convention

EPOCH = Convention(
    "epoch",
    suggests_that="a loop counts epochs",
    why="A loop over epochs holds no batch that would tell it apart from one over batches.",
    pattern="(?<!per)(?<!per_)(?<!_on_)(?<!_in_)(?<!each_)epoch(?!_?(size|len|steps|iter))",
    ignore_case=True,
)

FEW_PARTS = Convention(
    "few-parts",
    suggests_that="a loop has few iterations: one for each part of an image or a model",
    why="Joining a few tensors costs little, and the names tell how many there are.",
    pattern="crop|head|view|nums?$|part|kernel|expert|camera|modalit|channel|(^|_)ch(_|$)",
    ignore_case=True,
)

MANY_PARTS = Convention(
    "many-parts",
    suggests_that="an attribute counts what there may be many of",
    why="A number that a model holds may as well be that of its layers.",
    pattern="step|frame|time|len|token|sample|horizon|point|batch",
    ignore_case=True,
)

SHOWN_NUMBER = Convention(
    "shown-number",
    suggests_that="a number counts what is shown",
    why="A loop that ends there takes few batches.",
    pattern="sample|show|vis|plot|display|preview|example|image|print|demo",
    ignore_case=True,
)

CAP = Convention(
    "cap",
    suggests_that="a number limits what is kept",
    why="It may be as large as what is sorted.",
    pattern="max|limit|nms|cap(acity)?$|keep|ratio|frac|percent|quantile|drop|half|len|size|total|budget",
    ignore_case=True,
)

BATCH_SIZE = Convention(
    "batch-size",
    suggests_that="a number is that of the samples of a batch",
    why="A loop that counts so far goes over samples.",
    pattern="batch|^bs$|^bsz$|^b$|^n$",
    ignore_case=True,
)

STEP_COUNTER = Convention(
    "step-counter",
    suggests_that="a number counts all steps of a training",
    why="It is equal to a given one once.",
    pattern="^(global|train|total|n|num|cur|current)?_?(steps?|iters?|iterations?)$",
)

RECURRING_COUNTER = Convention(
    "recurring-counter",
    suggests_that="a number begins again every few steps",
    why="It is equal to a given one often.",
    pattern="acc|every|interval|freq|period|batch|inner|micro",
    ignore_case=True,
)

COUNTER = Convention(
    "counter",
    suggests_that="a number counts the iterations of a loop",
    why="A comparison with it holds at one turn.",
    pattern="^[ijkn]$|step|iter|batch|idx|index|count|^it$|^(cur_|current_)?epoch(_(cnt|num|no|id|i))?$",
)

STRUCTURE = Convention(
    "structure",
    suggests_that="a number counts no data: there are few of them, or they follow each other",
    why="A loop over layers or levels cannot be batched.",
    pattern=(
        "layer|level|lvl|stage|block|scale|kernel|order|degree|depth|iter|epoch|repeat|round|trial|fold|"
        "stack|branch|resolution|tap|axis|axes|ndim|dims?$|shapes|rank|world|gpu|device|worker|shard|attempt|"
        "tries|chunk|group|n_?gram|objective"
    ),
    ignore_case=True,
)

BEST_FEW = Convention(
    "best-few",
    suggests_that="a number counts the best",
    why="There are a few of them.",
    pattern="(^|_)top_?k$",
    ignore_case=True,
)

CLASS_NUMBER = Convention(
    "class-number",
    suggests_that="a number is that of classes, bins or clusters",
    why="One operation for all classes takes as often the memory.",
    pattern="class|cls|label|categor|num_c$|n_c$|bins?$|cluster|segment",
    ignore_case=True,
)

WORKER_NUMBER = Convention(
    "worker-number",
    suggests_that="a number is that of workers",
    why="Its name may stand in the place of the number.",
    pattern="worker",
)

MICRO_BATCH = Convention(
    "micro-batch",
    suggests_that="a number is the size of a micro-batch",
    why="It has a few samples, each of them large.",
    pattern="micro",
)
