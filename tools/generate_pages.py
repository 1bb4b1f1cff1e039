"""Write the section of evidence of each rule's page from the evidence that is committed beside the rule's pair.

usage: python tools/generate_pages.py [--check]

With --check nothing is written; exit status 1 says that a page differs, and each that does is named.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from torchlint import evidence
from torchlint.registry import all_rules
from torchlint.report.evidence import markdown, placed

if TYPE_CHECKING:
    from collections.abc import Sequence

    from torchlint.rule import Rule

RULES = Path(__file__).parents[1] / "rules"


def generated(text: str, rule: Rule) -> str:
    """A rule's page with its section of evidence written again; notes below the generated text stay."""
    section = markdown(evidence.evidence_of(rule), lambda each: evidence.is_stale(each, evidence.pair(rule)), rule.name)
    return placed(text, section, rule.name)


def main(arguments: Sequence[str]) -> int:
    """Write the pages, or name those that are not what would be written."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--check", action="store_true", help="write nothing; exit 1 where a page differs")
    check = parser.parse_args(arguments).check
    status = 0
    for rule in all_rules():
        page = RULES / rule.path
        text = page.read_bytes().decode()
        fresh = generated(text, rule)
        if fresh == text:
            continue
        if check:
            print(f"{page.name}: its evidence is not what is committed; run `python tools/generate_pages.py`")
            status = 1
        else:
            page.write_bytes(fresh.encode())
    return status


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
