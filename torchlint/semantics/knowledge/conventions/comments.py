"""What comments suggest that their author means."""

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

REFERENCE_DOCSTRING = Convention(
    "reference-docstring",
    suggests_that="the function is a reference that others are compared with",
    why="It is slow on purpose.",
    pattern=r"\breference (implementation|version|code)\b|\bfor (testing|comparison|debugging)\b",
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

MEMORY_WORD = Convention(
    "memory-word",
    suggests_that="the file speaks of memory",
    why="One of these stands in each comment that gives memory as the reason.",
    pattern="oom|mem|materiali",
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

COMMENTED_PINNING = Convention(
    "commented-pinning",
    suggests_that="the batches are meant not to be pinned",
    why="Somebody has taken the option out.",
    pattern="# pin_memory",
)
