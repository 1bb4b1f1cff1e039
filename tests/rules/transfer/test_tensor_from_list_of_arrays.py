"""TL216: lists of arrays are flagged where every element is one for certain; the tests run what the fix makes."""

from __future__ import annotations

import textwrap
import warnings
from typing import Any

import numpy as np
import pytest
import torch
from laws import check_snippet
from twins import findings, fixed

from torchlint.finding import Applicability

RULE = "tensor-from-list-of-arrays"

PROLOGUE = "import cv2\nimport numpy as np\nimport torch\n\ndef made(signals, n, who):\n"

ARRAYS = (
    "np.array([1.0, 2.0])",
    "np.asarray([float(v) for v in s])",
    "np.zeros(n)",
    "np.zeros((n, 2))[0]",
    "np.eye(n)[1]",
    "np.eye(n)[[0, 1]]",
    "np.arange(n)[None, :]",
    "np.arange(n)[np.newaxis]",
    "np.abs(np.arange(n) - 1) / 2",
    "-np.ones((2, n)).T",
    "np.random.randn(n, 2)",
    "np.random.uniform(0, 1, size=(n,))",
    "np.random.normal(0, 1, n)",
    "np.stack([s, s]).astype(np.float32)",
    "np.concatenate([s, s])[1:]",
    "np.ones(n).reshape(1, -1)",
    "np.ones(n).reshape((1, n))",
    "np.ones((n, n)).flatten()",
    "np.expand_dims(np.ones(n), 0)",
    "np.where(np.ones(n) > 0, 1.0, 0.0)",
    "cv2.resize(s, (8, 8))",
)
NO_ARRAYS = (
    "s",
    "float(s[0])",
    "np.mean(s)",
    "np.max(np.ones(n))",
    "np.float32(s[0])",
    "np.array(s[0])",
    "np.ones(n)[0]",
    "np.ones((n, n))[0, 1]",
    "np.ones((n, n))[0][1]",
    "np.random.randn()",
    "np.random.uniform(0, 1)",
    "np.random.normal(0, 1, None)",
    "np.linalg.norm(np.ones(n))",
    "np.ones(n) @ np.ones(n)",
    "np.ones(n).sum()",
    "np.ones(n).tolist()",
    "torch.from_numpy(np.ones(n))",
    "who(s)",
    "cv2.minAreaRect(s)[2]",
)


@pytest.mark.parametrize("element", ARRAYS)
def test_elements_that_are_arrays(element: str) -> None:
    assert len(findings(f"{PROLOGUE}    return torch.tensor([{element} for s in signals])\n", RULE)) == 1


@pytest.mark.parametrize("element", NO_ARRAYS)
def test_elements_that_may_be_none(element: str) -> None:
    assert not findings(f"{PROLOGUE}    return torch.tensor([{element} for s in signals])\n", RULE)


SNIPPETS = {
    "appended": """
        import numpy as np
        import torch
        def collate(images):
            found = []
            for image in images:
                image = np.ascontiguousarray(image, dtype=np.float32)
                image /= 255
                found.append(image)
            return torch.Tensor(found).cuda()  # <- tensor-from-list-of-arrays
        """,
    "two lists at once": """
        import numpy
        import torch
        def collate(samples):
            xs, ys = [], []
            for x, y in samples:
                xs.append(numpy.asarray([float(v) for v in x]))
                ys.append(y)
            return torch.as_tensor(xs), torch.as_tensor(ys)  # <- tensor-from-list-of-arrays
        """,
    "returned by a function": """
        import numpy as np
        import torch
        def batch(n):
            rows, labels = [], []
            for i in range(n):
                rows.append(np.eye(n)[i])
                labels.append(i)
            return rows, labels
        def load(n):
            rows, labels = batch(n)
            rows = torch.FloatTensor(rows)  # <- tensor-from-list-of-arrays
            return rows, torch.LongTensor(labels)
        """,
    "computed by a function": """
        import numpy as np
        import torch
        def durations(path):
            counts = np.array([0 for _ in range(path.shape[1])])
            for row in path:
                counts[np.argmax(row)] += 1
            return counts
        def load(paths):
            return torch.cuda.LongTensor([durations(p) for p in paths])  # <- tensor-from-list-of-arrays
        """,
    "lists of arrays in a list": """
        import numpy as np
        import torch
        def load(n):
            return torch.tensor([[np.ones(n), np.zeros(n)]])  # <- tensor-from-list-of-arrays
        """,
    "filled by others too": """
        import numpy as np
        import torch
        def load(n, others):
            a, b, c = [np.ones(n)], [np.ones(n)], [np.ones(n)]
            a.extend(others)
            b += others
            c.append(others[0])
            return torch.tensor(a), torch.tensor(b), torch.tensor(c)
        """,
    "one array first": """
        import numpy as np
        import torch
        def load(n, rows):
            return torch.tensor(np.array([np.ones(n) for _ in rows])), torch.tensor(np.ones(n)), torch.tensor([])
        """,
}


@pytest.mark.parametrize("code", SNIPPETS.values(), ids=SNIPPETS)
def test_lists(code: str) -> None:
    check_snippet(code, RULE)


def made(code: str, arrays: list[Any]) -> torch.Tensor:
    names: dict[str, Any] = {}
    exec(compile(code, "<program>", "exec", dont_inherit=True), names)  # noqa: S102 - our own programs
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # torch's own, of what is flagged
        result = names["made"](arrays)
    assert isinstance(result, torch.Tensor)
    return result


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16", "int64", "uint8", "bool", "complex64"])
@pytest.mark.parametrize(
    "call",
    [
        "torch.tensor({}, requires_grad=False)",
        "torch.as_tensor({})",
        "torch.asarray({})",
        "torch.tensor(device='cpu', data={})",
        "torch.tensor(\n        {},  # kept\n    )",
    ],
)
def test_the_fix_makes_the_same_of_arrays_of_one_dtype(call: str, dtype: str) -> None:
    data = f"[np.asarray([v for v in a]).astype(np.{dtype}) for a in arrays]"
    code = f"import numpy as np\nimport torch\n\ndef made(arrays):\n    return {call.format(data)}\n"
    after = fixed(code, RULE, Applicability.UNSAFE)
    assert after == code.replace(data, f"np.array({data})")
    assert fixed(code, RULE, Applicability.SAFE) == code
    for shape in ((3,), (2, 3)):
        arrays = [np.random.default_rng(0).normal(size=shape) * 9 for _ in range(2)]
        before, then = made(code, arrays), made(after, arrays)
        assert before.dtype == then.dtype
        assert torch.equal(before, then)


def test_what_the_page_says_may_differ() -> None:
    data = "[np.asarray([v for v in a]) for a in arrays]"
    code = f"import numpy as np\nimport torch\n\ndef made(arrays):\n    return torch.tensor({data})\n"
    after = fixed(code, RULE, Applicability.UNSAFE)
    mixed = [[np.int64(1)], [np.float32(1)]]
    assert (made(code, mixed).dtype, made(after, mixed).dtype) == (torch.float32, torch.float64)
    assert (made(code, []).dtype, made(after, []).dtype) == (torch.float32, torch.float64)
    empty = [np.zeros((0, 3))]
    code, after = code.replace("[v for v in a]", "a[:]"), after.replace("[v for v in a]", "a[:]")
    assert (made(code, empty).shape, made(after, empty).shape) == ((1, 0), (1, 0, 3))
    code, after = code.replace("tensor(", "LongTensor("), after.replace("tensor(", "LongTensor(")
    with pytest.raises(TypeError):
        made(code, [np.ones(2, np.float32)])
    assert made(after, [np.ones(2, np.float32)]).dtype == torch.int64


@pytest.mark.parametrize(
    "top", ["from numpy import array, ones", "def f():\n    import numpy as np\nfrom numpy import ones"]
)
def test_no_fix_without_a_name_for_numpy(top: str) -> None:
    code = f"import torch\n{top}\n\ndef load(n):\n    return torch.tensor([ones(n) for _ in range(n)])\n"
    assert [finding.fix for finding in findings(code, RULE)] == [None]


EXAMPLES = """
import numpy as np
import torch
words = {words}
codes = dict((word, i) for i, word in enumerate(words))
def rows():
    made = []
    for word in words:
        made.append(np.eye(9) * len(word))
    return made
made = rows()
x = torch.FloatTensor(made)
y = torch.LongTensor([np.arange(codes[word]) for word in words])
"""


@pytest.mark.parametrize(
    ("words", "found"),
    [("['a', 'b', 'c']", 0), ("[('a', 1), ('b', 2)]", 0), ("load()", 2), ("[" + "1, " * 200 + "]", 2)],
    ids=["words", "pairs", "loaded", "many"],
)
def test_a_few_examples_that_are_written_out(words: str, found: int) -> None:
    code = EXAMPLES.replace("{words}", words)
    assert len(findings(code, RULE)) == found


def test_examples_of_each_batch() -> None:
    code = "import numpy as np\nimport torch\nfor x in loader:\n    y = torch.tensor([np.ones(x) for n in (1, 2)])\n"
    assert findings(code, RULE)


def test_a_list_that_begins_empty_is_no_example() -> None:
    code = """
    import numpy as np
    import torch
    def f(samples):
        rows = []
        for sample in samples:
            rows.append(np.asarray(sample))
        return torch.FloatTensor([np.abs(np.fft.rfft(row)) for row in rows])
    """
    assert findings(textwrap.dedent(code), RULE)
