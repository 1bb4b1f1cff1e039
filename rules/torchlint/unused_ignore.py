"""`# torchlint: ignore[...]` that names nothing, a rule that does not exist, or a rule that finds nothing there.

`torchlint.suppress` makes its findings: only it knows what each comment silenced.
"""

from __future__ import annotations

from torchlint.rule import Applicability, Rule

RULE = Rule(
    name="unused-ignore",
    code="TL001",
    group="torchlint",
    summary="An unused suppression comment.",
    since="0.1.0",
    fix=(Applicability.SAFE,),
)
