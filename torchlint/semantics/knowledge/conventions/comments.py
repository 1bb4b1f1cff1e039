"""What the comment of a line suggests that its author means: `is_meant` alone asks."""

from __future__ import annotations

from torchlint.semantics.knowledge.conventions.convention import Convention

CHORE_REASON = Convention(
    "chore-reason",
    suggests_that="the housekeeping is meant",
    why="A comment gives its reason.",
    pattern=(
        "oom|out of memory|out-of-memory|required|need|fragment|leak|otherwise|necessary|workaround|"
        r"important|avoid|prevent|protect|against|ensure|make sure|guarantee|\brace\b|deadlock|\bhang|\bsafe|"
        "hack|bug|issue|http"
    ),
    ignore_case=True,
)

MEMORY_COMMENT = Convention(
    "memory-comment",
    suggests_that="the loop is meant to save memory",
    why="A comment gives the reason.",
    pattern=(
        r"\bOOM\b|out[ -]of[ -]mem|\bmem(ory)?\W*(sav|reduc|limit|peak|effici|consum|footprint|usage|spike|"
        r"friendly)|\b(sav|reduc|limit|lower|less|low|avoid|prevent|minimi[sz]|effici|fit|peak)\w*(\W+(some|"
        r"the|gpu|cuda|device|peak|host|on|in|of|into|max|total|more|too|much|high))*\W+mem(ory)?\b|\b(avoid|"
        r"without|instead of|not)\w*\W+materiali[sz]"
    ),
    ignore_case=True,
)

DIRECTIVE = Convention(
    "directive",
    suggests_that="the comment speaks to a linter",
    why="It gives no reason to a reader.",
    pattern=r"\btorchlint:|\bnoqa\b|<-",
    ignore_case=True,
)

CUDNN_REASON = Convention(
    "cudnn-reason",
    suggests_that="cuDNN is meant to be off",
    why="A comment speaks of what goes wrong, or of what cannot be had otherwise.",
    pattern="cudnn|bug|error|crash|memory|backward|support|slow|need|must|because|work",
    ignore_case=True,
)

WORKER_REASON = Convention(
    "worker-reason",
    suggests_that="the number of workers is meant",
    why="A comment behind it gives the reason.",
    pattern=(
        "worker|process|fork|spawn|pickl|thread|windows|debug|hang|dead|crash|leak|memory|cuda|must|need|determinis"
    ),
    ignore_case=True,
)

WORKERS_NOT_NEEDED = Convention(
    "workers-not-needed",
    suggests_that="no workers are meant",
    why="A comment above says so.",
    pattern=r"\b(no|not|without|zero|0|single|main|don't|can't)\b.{0,24}(worker|process)",
    ignore_case=True,
)
