"""TL107: a file that `__getitem__` reads again is flagged where its path is known to be the same at every sample."""

from __future__ import annotations

import textwrap

import pytest
from laws import check_snippet

RULE = "reparse-in-getitem"
MARK = "  # <- reparse-in-getitem"


def dataset(*lines: str, more: str = "", base: str = "Dataset") -> str:
    """A dataset whose `__getitem__` does this."""
    body = textwrap.indent("\n".join(lines), " " * 8)
    return (
        "import json\nimport os\nimport random\nfrom pathlib import Path\n\nimport h5py\nimport numpy as np\n"
        "import pandas as pd\nimport torch\nfrom torch.utils.data import Dataset\n\nROOT = '/data'\n\n\n"
        f"class Data({base}):\n    extension = '.csv'\n\n    def __init__(self, root, paths, split):\n"
        "        self.root = root\n        self.paths = paths\n        self.split = split\n        self.file = None\n\n"
        "    def __len__(self):\n        return 10\n\n"
        f"    def __getitem__(self, index):\n{body}\n{textwrap.indent(textwrap.dedent(more), ' ' * 4)}"
    )


@pytest.mark.parametrize(
    "lines",
    [
        ("return pd.read_csv(self.root).iloc[index]" + MARK,),
        ("return np.load(os.path.join(self.root, f'{self.split}.npy'))[index]" + MARK,),
        ("path = Path(ROOT) / 'all.pt'", "return torch.load(path)[index]" + MARK),
        ("with h5py.File(self.root, 'r') as file:" + MARK, "    return file['x'][index]"),
        ("with open(self.root) as file:", "    labels = json.load(file)" + MARK, "return labels[index]"),
        ("return json.loads(Path(self.root).read_text())[index]" + MARK,),
        ("return np.load(self.root + self.extension)[index]" + MARK,),
        ("return np.load(self.paths['all'])[index]" + MARK,),
        ("if self.split:", "    return np.load(self.root)[index]" + MARK, "return index"),
    ],
)
def test_same_for_all(lines: tuple[str, ...]) -> None:
    check_snippet(dataset(*lines), RULE)


@pytest.mark.parametrize(
    "lines",
    [
        ("return np.load(self.paths[index])",),
        ("path = self.paths[index]", "return torch.load(path)"),
        ("return np.load(f'{self.root}/{index}.npy')",),
        ("return np.load(random.choice(self.paths))",),
        ("return np.load(self.root, mmap_mode='r')[index]",),
        ("if self.file is None:", "    self.file = h5py.File(self.root)", "return self.file['x'][index]"),
        ("self.file = self.file or h5py.File(self.root)", "return self.file['x'][index]"),
        ("try:", "    return self.data[index]", "except AttributeError:", "    return np.load(self.root)"),
        ("return pd.read_csv(self.root, skiprows=index, nrows=1)",),
        ("return np.load(self.unknown)[index]",),
        ("for path in self.paths:", "    yield np.load(path)"),
        ("return [np.load(path) for path in self.paths]",),
        ("with open(self.root) as file:", "    file.seek(index)", "    return json.load(file)"),
    ],
)
def test_not_the_same_or_kept(lines: tuple[str, ...]) -> None:
    check_snippet(dataset(*lines), RULE)


@pytest.mark.parametrize(
    ("line", "more"),
    [
        ("return self.read()[index]", f"def read(self):\n    return pd.read_csv(self.root){MARK}\n"),
        ("return self.read(self.root)[index]", f"def read(self, path):\n    return pd.read_csv(path){MARK}\n"),
        ("return self.read(self.paths[index])", "def read(self, path):\n    return pd.read_csv(path)\n"),
        ("return self.read(index)", "@cache\ndef read(self, index):\n    return pd.read_csv(self.root)\n"),
        ("return index", "def read(self):\n    return pd.read_csv(self.root)\n"),
        (
            "return self.a(index)",
            f"def a(self, i):\n    return self.b()[i]\n\ndef b(self):\n    return np.load(ROOT){MARK}\n",
        ),
        ("return np.load(self.root)[index]", "def turn(self):\n    self.root = self.paths.pop()\n"),
    ],
)
def test_through_methods(line: str, more: str) -> None:
    check_snippet(dataset(line, more=more), RULE)


def test_other_classes_with_getitem() -> None:
    check_snippet(dataset("return np.load(self.root)[index]", base="object"), RULE)


def test_what_each_sample_makes_for_itself() -> None:
    clip = (
        "class Clip:\n    def __init__(self, path):\n        self.path = path\n        self._load()\n"
        "    def _load(self):\n        self.sound = np.load(self.path)\n"
    )
    check_snippet(dataset("return Clip(self.paths[index]).sound") + clip, RULE)


def test_the_path_of_a_base() -> None:
    code = dataset(f"return np.load(self.path)[index]{MARK}").replace("(Dataset)", "(Stored)")
    base = "class Stored(Dataset):\n    def __init__(self, path):\n        self.path = path\n"
    check_snippet(code.replace("class ", f"{base}class ", 1), RULE)
