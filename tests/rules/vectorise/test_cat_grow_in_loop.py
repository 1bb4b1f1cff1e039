"""TL905: what is joined at each turn and read by nobody on the way; the tests run what the fix makes of it."""

from __future__ import annotations

import textwrap
from importlib.resources import files

import pytest
import torch
from laws import check_snippet

RULE = "cat-grow-in-loop"
WARNED = f"  # <- {RULE}"
NOTED = f"  # <- {RULE}?"

FIXES = {
    "behind": (
        """
        import torch
        def rows(found: torch.Tensor, x: torch.Tensor):
            for row in x:
                found = torch.cat((found, row[None]), dim=0)  # <- cat-grow-in-loop
            return found
        """,
        """
        import torch
        def rows(found: torch.Tensor, x: torch.Tensor):
            found_parts = [found]
            for row in x:
                found_parts.append(row[None])
            found = torch.cat(found_parts, dim=0)
            return found
        """,
    ),
    "in front": (
        """
        import torch
        def rows(found: torch.Tensor, x: torch.Tensor):
            for row in x:
                if row.dim() > 0:
                    found = torch.concat([row[None], found])  # <- cat-grow-in-loop
            return found
        """,
        """
        import torch
        def rows(found: torch.Tensor, x: torch.Tensor):
            found_parts = [found]
            for row in x:
                if row.dim() > 0:
                    found_parts.append(row[None])
            found = torch.concat(found_parts[::-1])
            return found
        """,
    ),
    "two at once, from two loops": (
        """
        import torch
        def rows(found: torch.Tensor, x: torch.Tensor):
            for _ in range(2):
                for row in x:
                    found = torch.cat([found, row[None], 2 * row[None]])  # <- cat-grow-in-loop
            return found
        """,
        """
        import torch
        def rows(found: torch.Tensor, x: torch.Tensor):
            found_parts = [found]
            for _ in range(2):
                for row in x:
                    found_parts += [row[None], 2 * row[None]]
            found = torch.cat(found_parts)
            return found
        """,
    ),
    "two in front": (
        """
        import torch
        def rows(found: torch.Tensor, x: torch.Tensor):
            for row in x:
                found = torch.cat([row[None], 2 * row[None], found])  # <- cat-grow-in-loop
            return found
        """,
        """
        import torch
        def rows(found: torch.Tensor, x: torch.Tensor):
            found_parts = [found]
            for row in x:
                found_parts += [2 * row[None], row[None]]
            found = torch.cat(found_parts[::-1])
            return found
        """,
    ),
    "from nothing": (
        """
        import torch
        def rows(_, x: torch.Tensor):
            found = None
            with torch.no_grad():
                for row in x:
                    found = torch.hstack((found, row)) if found is not None else row  # <- cat-grow-in-loop
            return found
        """,
        """
        import torch
        def rows(_, x: torch.Tensor):
            found = None
            with torch.no_grad():
                found_parts = []
                for row in x:
                    found_parts.append(row)
                found = torch.hstack(found_parts) if found_parts else None
            return found
        """,
    ),
}


@pytest.mark.parametrize(("code", "fixed"), FIXES.values(), ids=FIXES.keys())
def test_one_join_behind_the_loop_gives_the_same(code: str, fixed: str) -> None:
    check_snippet(code, RULE, fixed=fixed)
    results = []
    for text in (code, fixed):
        names: dict[str, object] = {}
        exec(textwrap.dedent(text), names)  # noqa: S102 - our own programs
        for start in (torch.empty(0), torch.zeros(1, 2, dtype=torch.int64), torch.zeros(1, 2).double()):
            x = torch.arange(6.0).view(3, 2).requires_grad_()
            found = names["rows"](start, x)  # type: ignore[operator]
            results.append((found.tolist(), found.dtype))
    assert results[: len(results) // 2] == results[len(results) // 2 :]


REPORTED_ONLY = {
    "a branch begins": """
        import torch
        def frames(decoder, x: torch.Tensor):
            for i in range(x.size(0)):
                part = decoder(x[i])
                if i == 0:
                    out = part
                else:
                    out = torch.cat((out, part))  # <- cat-grow-in-loop
            return out
        """,
    "a name says which is the first": """
        import torch
        def decode(step, frame: torch.Tensor):
            is_first = True
            while True:
                frame, gate = step(frame)
                if is_first:
                    gates = gate
                    is_first = False
                else:
                    gates = torch.cat((gates, gate))  # <- cat-grow-in-loop
                if frame is None:
                    break
            return gates
        """,
    "a number says which is the first": """
        import torch
        def decode(step, frame: torch.Tensor):
            begun = 0
            while True:
                frame, gate = step(frame)
                if not begun:
                    gates = gate
                    begun = 1
                else:
                    gates = torch.cat((gates, gate))  # <- cat-grow-in-loop
                if frame is None:
                    break
            return gates
        """,
    "an empty list to begin with": """
        import torch
        def gather(model, loader):
            found = []
            for batch in loader:
                out = model(batch)
                if len(found) == 0:
                    found = out
                else:
                    found = torch.cat([found, out])  # <- cat-grow-in-loop
            return found
        """,
    "a part is written to again": """
        import torch
        def rows(found: torch.Tensor, x: torch.Tensor):
            part = torch.zeros(1, 2)
            for row in x:
                part[0] = row
                found = torch.cat((found, part))  # <- cat-grow-in-loop
            return found
        """,
    "a part that others may write to": """
        import torch
        class Collector:
            def collect(self, found: torch.Tensor, x: torch.Tensor):
                for row in x:
                    self.write(row)
                    found = torch.cat((found, self.part[:1]))  # <- cat-grow-in-loop
                return found
        """,
    "what there is may be looked at after an error": """
        import torch
        def rows(found: torch.Tensor, x: torch.Tensor):
            try:
                for row in x:
                    found = torch.cat((found, row[None]))  # <- cat-grow-in-loop
            except RuntimeError:
                pass
            return found
        """,
    "the axis may change": """
        import torch
        def rows(found: torch.Tensor, x: torch.Tensor, axis):
            for row in x:
                found = torch.cat((found, row[None]), axis)  # <- cat-grow-in-loop
            return found
        """,
    "the name is taken": """
        import torch
        def rows(found: torch.Tensor, x: torch.Tensor, found_parts):
            for row in x:
                found = torch.cat((found, row[None]))  # <- cat-grow-in-loop
            return found, found_parts
        """,
    "a comment": """
        import torch
        def rows(found: torch.Tensor, x: torch.Tensor):
            for row in x:
                found = torch.cat((  # <- cat-grow-in-loop
                    found,
                    row[None],  # as a matrix
                ))
            return found
        """,
}


@pytest.mark.parametrize("code", REPORTED_ONLY.values(), ids=REPORTED_ONLY.keys())
def test_reported_only(code: str) -> None:
    result = check_snippet(code, RULE)
    assert [finding.fix for finding in result.findings] == [None]


SILENT = {
    "read by the next turn": "out = torch.cat((out, model(out)))",
    "read in the same turn": "out = torch.cat((out, row[None]))\n        log(out)",
    "its size is asked": "out = torch.cat((out, row[None]))\n        if len(out) > 100:\n            break",
    "begun anew": "out = row[None]\n        out = torch.cat((out, other))",
    "begun anew now and then": (
        "if row is other:\n            out = row\n        else:\n            out = torch.cat((out, row))"
    ),
    "doubled": "out = torch.cat((out, out))",
    "another name": "new = torch.cat((out, row[None]))",
    "cut": "out = torch.cat((out, row[None]))[-100:]",
    "between": "out = torch.cat((row[None], out, row[None]))",
    "into a tensor": "out = torch.cat((out, row[None]), out=other)",
    "arrays": "out = np.concatenate((out, row[None]))",
}


@pytest.mark.parametrize("line", SILENT.values(), ids=SILENT.keys())
def test_silent(line: str) -> None:
    check_snippet(
        f"""
import numpy as np
import torch
def grow(out: torch.Tensor, x: torch.Tensor, model, log, other):
    for row in x:
        {line}
    return out
""",
        RULE,
    )


@pytest.mark.parametrize(
    ("loop", "mark"),
    [
        ("for i in range(n)", WARNED),
        ("for i in range(1000)", WARNED),
        ("for i in range(16)", ""),
        ("for i in range(n_layers)", ""),
        ("for i in range(self.parts)", NOTED),
        ("for i in range(self.n)", NOTED),
        ("for i in range(self.max_steps)", WARNED),
        ("for epoch in range(n)", ""),
        ("for level in levels", ""),
        ("while more()", WARNED),
        ("while len(out) < n", ""),
    ],
)
def test_turns(loop: str, mark: str) -> None:
    check_snippet(
        f"""
import torch
class Path:
    def walk(self, out: torch.Tensor, n, n_layers, levels, step, more):
        {loop}:
            out = torch.cat((out, step()), dim=1){mark}
        return out
""",
        RULE,
    )


def test_a_name_that_others_see_is_left_alone() -> None:
    check_snippet(
        """
        import torch
        def outer(out: torch.Tensor, x: torch.Tensor):
            def show():
                print(out.shape)
            for row in x:
                out = torch.cat((out, row[None]))
                show()
            return out
        """,
        RULE,
    )


def test_look_alikes_obey_the_laws() -> None:
    check_snippet(files("torchlint.fixtures").joinpath("cat_grow_in_loop/ok.py").read_text(encoding="utf-8"), RULE)


@pytest.mark.parametrize(("keep", "mark"), [("save_image", NOTED), ("keep", WARNED)])
def test_samples_for_a_picture_are_few(keep: str, mark: str) -> None:
    check_snippet(
        f"""
import torch
from torchvision.utils import {keep}
def sample(out: torch.Tensor, images, generator):
    for image in images:
        out = torch.cat((out, generator(image)), -2){mark}
    {keep}(out, "samples.png")
""",
        RULE,
    )


@pytest.mark.parametrize(
    ("name", "loop", "mark"),
    [
        ("join", "for k in range(len(pieces) - 1)", NOTED),
        ("join", "for k in range(len(frames) - 1)", WARNED),
        ("join", "for ch_idx in range(x.shape[1])", NOTED),
        ("join", "for k in range(x.shape[1])", WARNED),
        ("make_lut", "for k in range(x.shape[1])", NOTED),
    ],
)
def test_few_turns_by_what_they_go_over(name: str, loop: str, mark: str) -> None:
    check_snippet(
        f"""
import torch
def {name}(x: torch.Tensor, pieces, frames, step):
    out = x[:1]
    {loop}:
        out = torch.cat((out, step(x)), dim=0){mark}
    return out
""",
        RULE,
    )
