"""Functions that do nothing but read what they are given are known by their text."""

from __future__ import annotations

import pytest

from torchlint.readers import Way, readers


@pytest.mark.parametrize(
    ("text", "way"),
    [
        ("def f(x):\n    return x.detach().cpu().numpy()\n", Way.COPY),
        ("def f(x: torch.Tensor) -> np.ndarray:\n    return x.to('cpu').detach().numpy()  # a copy\n", Way.COPY),
        ('def f(x):\n    """As an array.\n\n    On the CPU.\n    """\n    return x.data.cpu().numpy()\n', Way.COPY),
        ("f = lambda x: x.detach().cpu().numpy()\n", Way.COPY),
        ("f = lambda x : x.float().item()\n", Way.ITEM),
        ("def f(x): return x.cpu().tolist()\n", Way.COPY),
        ("def f(x):\n    return x.cpu() if isinstance(x, torch.Tensor) else x\n", Way.COPY_OF_TENSOR),
        ("def f(x):\n    return x.detach().cpu().numpy() + 1\n", None),
        ("def f(x, y):\n    return x.cpu()\n", None),
        ("def f(x):\n    return y.cpu()\n", None),
        ("def f(x):\n    return x.cuda()\n", None),
        ("def f(x):\n    return x.numpy()  # .cpu() was here\n", None),
        ("def f(x):\n    return x.to(device).cpu()\n", None),
        ("def f(x):\n    return x.mean().cpu()\n", None),
        ("def f(x):\n    print(x)\n    return x.cpu()\n", None),
        ("class C:\n    def f(self, x):\n        return x.cpu()\n", None),
        ("def f(x):\n    x = x.cpu()\n", None),
        ("def f(x, dtype=None):\n    return x.cpu()\n", Way.COPY),
        ("def f(*x):\n    return x.cpu()\n", None),
        ("def f(x):\n    x = x.detach()\n\n    return x.cpu()\n\n\nf(1)\n", Way.COPY),
        ("def f(x):\n    if x.is_cuda:\n        x = x.cpu()\n    return x.numpy()\n", Way.COPY_OF_TENSOR),
        (
            (
                "def f(x):\n"
                "    if isinstance(x, np.ndarray):\n"
                "        return x\n"
                "    if isinstance(x, t.Tensor):\n"
                "        return x.detach().cpu().numpy()\n"
            ),
            Way.COPY_OF_TENSOR,
        ),
        (
            (
                "def f(x):\n"
                "    if torch.is_tensor(x):\n"
                "        return x.cpu().numpy()\n"
                "    elif isinstance(x, (list, tuple)):\n"
                "        return [f(y) for y in x]\n"
                "    else:\n"
                "        raise TypeError(x)\n"
            ),
            Way.COPY_OF_TENSOR,
        ),
        ("def f(x):\n    if isinstance(x, float):\n        return x\n    return x.item()\n", Way.ITEM),
        ("def f(x):\n    if x.sum() > 0:\n        return x.cpu()\n    return x\n", None),
        ("def f(x):\n    if isinstance(x, float):\n        return net(x)\n    return x.cpu()\n", None),
        (
            "def f(x):\n    if isinstance(x, list):\n        return np.asarray(x)\n    return x.cpu()\n",
            Way.COPY_OF_TENSOR,
        ),
        ("def f(x):\n    return x.cpu(\n", None),
        ("def f(x):\n    return x.cpu() if 1or 2 else '\\d'\n", Way.COPY_OF_TENSOR),
        ("def f(x):\n    return " + "-" * 2500 + "x.cpu()\n", None),
        ("def f(x):\n    return x.numpy()\n", None),
        ("def f(x):" + "\n" * 200_000 + "x.cpu()\n", None),
    ],
)
def test_what_it_reads(text: str, way: Way | None) -> None:
    assert readers(text).get("f") is way
