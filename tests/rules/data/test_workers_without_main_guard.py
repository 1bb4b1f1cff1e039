"""TL115: workers that start while a script is imported are flagged, outside of main guards and of notebooks."""

from __future__ import annotations

import textwrap

import pytest
from laws import active, check_snippet

from torchlint.linter import lint
from torchlint.notebook.cells import Notebook
from torchlint.source import SourceFile

RULE = "workers-without-main-guard"
MARK = "  # <- workers-without-main-guard"
HEAD = """\
import multiprocessing
import sys

import torch
from torch.utils.data import DataLoader

dataset = torch.load("data.pt")
"""
LOOP = "for batch in loader:\n    print(batch)\n"


@pytest.mark.parametrize(
    "code",
    [
        f"loader = DataLoader(dataset, num_workers=4){MARK}\n{LOOP}",
        f"# %%\nloader = DataLoader(dataset, num_workers=4){MARK}\n{LOOP}",
        f"loader = DataLoader(dataset, num_workers=options.workers){MARK}\n{LOOP}",
        f"loader = DataLoader(dataset, num_workers=4){MARK}\nfor i, batch in enumerate(loader):\n    print(i)\n",
        f"for batch in DataLoader(dataset, num_workers=4):{MARK}\n    print(batch)\n",
        f"""
        loader = DataLoader(dataset, num_workers=4){MARK}

        def train():
            for batch in loader:
                print(batch)

        for epoch in range(10):
            train()
        """,
        f"""
        def main():
            loader = DataLoader(dataset, num_workers=4){MARK}
            for batch in loader:
                print(batch)

        main()
        """,
        f"loader = DataLoader(dataset, num_workers=4){MARK}\ntrainer.fit(model, loader)\n",
        f"loader = DataLoader(dataset, num_workers=4, multiprocessing_context='spawn'){MARK}\n{LOOP}",
    ],
)
def test_on_import(code: str) -> None:
    check_snippet(HEAD + textwrap.dedent(code), RULE)


@pytest.mark.parametrize(
    "code",
    [
        f"loader = DataLoader(dataset)\n{LOOP}",
        f"loader = DataLoader(dataset, num_workers=0)\n{LOOP}",
        "loader = DataLoader(dataset, num_workers=4)\n",
        "if __name__ == '__main__':\n    for batch in DataLoader(dataset, num_workers=4):\n        print(batch)\n",
        f"loader = DataLoader(dataset, num_workers=0 if sys.platform == 'win32' else 4)\n{LOOP}",
        f"loader = DataLoader(dataset, num_workers=4, multiprocessing_context='fork')\n{LOOP}",
        f"multiprocessing.set_start_method('fork')\nloader = DataLoader(dataset, num_workers=4)\n{LOOP}",
        f"get_ipython().run_line_magic('time', '')\nloader = DataLoader(dataset, num_workers=4)\n{LOOP}",
        """
        def main():
            for batch in DataLoader(dataset, num_workers=4):
                print(batch)

        if __name__ == "__main__":
            main()
        """,
        """
        def train():
            for batch in DataLoader(dataset, num_workers=4):
                print(batch)
        """,
        """
        @command
        def main():
            for batch in DataLoader(dataset, num_workers=4):
                print(batch)

        main()
        """,
    ],
)
def test_not_on_import_or_forked(code: str) -> None:
    check_snippet(HEAD + textwrap.dedent(code), RULE)


def test_no_worker_runs_a_notebook() -> None:
    code = f"{HEAD}loader = DataLoader(dataset, num_workers=4)\n{LOOP}"
    assert lint(SourceFile("train.py", code), active(RULE)).findings
    assert not lint(SourceFile.of_notebook("train.ipynb", Notebook.of_cells([HEAD, code])), active(RULE)).findings
