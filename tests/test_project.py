"""Which file of a project imports which."""

from __future__ import annotations

import pytest

from torchlint.project import Project, outline


def project(**files: str) -> Project:
    """Files by their paths, with `S` for a slash."""
    return Project({f"{name.replace('S', '/')}.py": outline(text.encode()) for name, text in files.items()})


def callers(found: Project, path: str, *functions: str) -> list[tuple[str, str]]:
    return [(importer, name) for importer, name, _ in found.callers(path, functions)]


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("from utils import f\nf(x)", "utils.f"),
        ("from utils import (\n    e,  # not f\n    f,\n)\nf(x)", "utils.f"),
        ("from utils import e as g, f\nf(g)", "utils.f"),
        ("from utils import f as g\ng(x)", "utils.f"),
        ("from utils import (\n    e as h,  # f as k\n    f  as g,\n)\ng(x)", "utils.f"),
        ("from utils import *\nf(x)", "utils.f"),
        ("import os, utils\nutils.f(x)", "utils.f"),
        ("import utils as u\nu.f(x)", "utils.f"),
        ("from .utils import f\nf(x)", ".utils.f"),
        ("from . import utils\nutils.f(x)", ".utils.f"),
        ("def g():\n    from utils import f\n    f(x)", "utils.f"),
    ],
)
def test_a_module_beside(text: str, name: str) -> None:
    assert callers(project(aStrain=text, aSutils="def f(x): pass"), "a/utils.py", "f") == [("a/train.py", name)]


@pytest.mark.parametrize(
    "text",
    [
        "import utils\nutils.g(x)",
        "from utils import g\ng(torch.f(x))",
        "from other import f\nf(x)",
        "from ..utils import f\nf(x)",
        "# from utils import f\nf(x)",
        "from utils import f\nf",
        "from utils import f as g, e as h\nh(x)",
        "f(x)",
    ],
)
def test_what_does_not_call(text: str) -> None:
    found = project(aStrain=text, aSutils="def f(x): pass", aSother="")
    assert callers(found, "a/utils.py", "f") == []


def test_packages_from_the_root_and_from_src() -> None:
    found = project(
        toolsStrain="from pkg.lib.utils import f\nf(1)",
        srcSpkgSlibSutils="def f(x): pass",
        srcSpkgS__init__="",
        srcSpkgSlibS__init__="",
        srcSpkgSnet="from .lib.utils import f\nf(1)",
        srcSpkgSlibSnet="from ..lib import utils\nutils.f(1)",
    )
    assert callers(found, "src/pkg/lib/utils.py", "f") == [
        ("src/pkg/lib/net.py", "..lib.utils.f"),
        ("src/pkg/net.py", ".lib.utils.f"),
        ("tools/train.py", "pkg.lib.utils.f"),
    ]


def test_the_nearest_file_of_the_name_counts() -> None:
    found = project(aStrain="from utils import f\nf(1)", aSutils="", utils="")
    assert callers(found, "a/utils.py", "f") == [("a/train.py", "utils.f")]
    assert callers(found, "utils.py", "f") == []


def test_a_package_hands_on_what_it_imports() -> None:
    found = project(train="from pkg import f\nf(1)", pkgS__init__="from .utils import f", pkgSutils="def f(x): pass")
    assert callers(found, "pkg/utils.py", "f") == [("train.py", "pkg.f")]


def test_an_import_goes_on_behind_a_backslash() -> None:
    found = project(
        a="from utils import Meter, \\\n    f as g, h\ng(1)\nh(1)",
        b="from \\\n  utils \\\r\n import f\nf(1)",
        c="import os, \\\n  utils\nutils.h(1)",
        utils="def f(x): pass\ndef h(x): pass",
    )
    assert callers(found, "utils.py", "f") == [("a.py", "utils.f"), ("b.py", "utils.f")]
    assert callers(found, "utils.py", "h") == [("a.py", "utils.h"), ("c.py", "utils.h")]


def test_a_module_is_called_through_its_package() -> None:
    found = project(
        train="import pkg as p\np.utils.f(1)",
        other="from pkg import f\nf(1)",
        pkgS__init__="from . import utils\nfrom .utils import f",
        pkgSutils="def f(x): pass",
    )
    assert callers(found, "pkg/utils.py", "f") == [
        ("other.py", "pkg.f"),
        ("train.py", "pkg.f"),
        ("train.py", "pkg.utils.f"),
    ]


def test_a_method_needs_its_class_and_a_call() -> None:
    found = project(
        a="from utils import Meter\nmeter = Meter()\nmeter.update(1)",
        b="from utils import Meter\nmeter = Meter()",
        d="from utils import Meter\ndef f(meter: Meter): meter.update(1)",
        c="import utils\nx.update(1)",
        utils="class Meter: ...",
    )
    assert callers(found, "utils.py", "Meter.update") == [("a.py", "utils.Meter.update")]


def test_an_import_of_oneself_and_a_ring_end() -> None:
    found = project(a="from a import f\nfrom b import f\nf(1)", b="from a import f\nfrom b import f\nf(1)")
    assert callers(found, "a.py", "f") == [("b.py", "a.f")]
    assert callers(found, "b.py", "f") == [("a.py", "b.f")]


def test_bytes_that_are_no_text() -> None:
    found = Project({"a.py": outline(b"from b import f\nf(1)\n\xff\xfe"), "b.py": outline(b"\x00")})
    assert callers(found, "b.py", "f") == [("a.py", "b.f")]


@pytest.mark.parametrize(
    ("name", "importer", "expected"),
    [
        ("pkg.layers.Conv", "train.py", ("pkg/layers.py", "Conv")),
        ("pkg.Conv", "train.py", ("pkg/layers.py", "Conv")),
        (".Conv", "pkg/net.py", ("pkg/layers.py", "Conv")),
        (".layers.Conv", "pkg/net.py", ("pkg/layers.py", "Conv")),
        ("net.Conv", "pkg/other.py", ("pkg/layers.py", "Conv")),
        ("torch.nn.Conv2d", "train.py", None),
        ("Conv", "train.py", None),
        ("round.X", "train.py", None),
    ],
)
def test_where_a_name_is_defined(name: str, importer: str, expected: tuple[str, str] | None) -> None:
    found = project(
        train="",
        pkgS__init__="from .layers import Conv",
        pkgSlayers="class Conv: pass",
        pkgSnet="from . import Conv",
        pkgSother="",
        round="from trip import X",
        trip="from round import X",
    )
    assert found.definition(name, importer) == expected


def test_a_function_of_torch_is_called_by_programs_that_the_file_is_part_of() -> None:
    found = project(
        train="import torch\nfrom agent import Agent\nagent = torch.compile(Agent())",
        agent="from nets import Net",
        nets="import torch",
        other="import torch\ntorch.compile(print)",
        quiet="import nets",
    )
    assert callers(found, "nets.py", "torch.compile") == [("train.py", "torch.compile")]
    assert callers(found, "train.py", "torch.compile") == []


def test_what_follows_re_is_no_function_of_the_project() -> None:
    found = project(train="import re, net\nre.compile('x')\nre . f(1)", net="def compile(x): pass")
    assert callers(found, "net.py", "torch.compile", "compile") == []
    found = project(train="import re, net\nre.compile('x')\nnet.compile(1)", net="def compile(x): pass")
    assert callers(found, "net.py", "compile") == [("train.py", "net.compile")]


@pytest.mark.parametrize("paths", [["train.py", "net.py", "layers.py"], ["layers.py", "train.py", "net.py"]])
def test_a_file_stands_behind_those_that_it_imports(paths: list[str]) -> None:
    found = project(train="import net", net="from layers import f\nf(1)", layers="def f(x): pass")
    assert found.in_order(paths) == ["layers.py", "net.py", "train.py"]


def test_only_the_given_files_are_put_in_order() -> None:
    found = project(train="import net", net="import layers", layers="")
    assert found.in_order(["train.py", "layers.py"]) == ["layers.py", "train.py"]


def test_files_that_import_each_other_are_all_there() -> None:
    found = project(a="import b", b="import c", c="import a", d="import a")
    assert sorted(found.in_order(["d.py", "c.py", "b.py", "a.py"])) == ["a.py", "b.py", "c.py", "d.py"]
    assert found.in_order(["d.py", "c.py", "b.py", "a.py"])[-1] == "d.py"


LOADER = "loader = DataLoader(dataset)\n"


def files(**texts: str) -> Project:
    """Files by their names, with `_` for a dot."""
    return Project({name.replace("_", "."): outline(text.encode()) for name, text in texts.items()})


def test_a_notebook_calls_and_nobody_calls_it() -> None:
    found = files(one_ipynb="from utils import f\nf(x)\nx.g()", two_ipynb="f(x)\nx.g()", utils_py="def f(x): pass")
    assert callers(found, "utils.py", "f", "*.g") == [
        ("one.ipynb", "*.g"),
        ("two.ipynb", "*.g"),
        ("one.ipynb", "utils.f"),
    ]
    assert callers(found, "one.ipynb", "f", "*.g", "torch.compile") == []


def test_a_notebook_works_with_what_it_imports() -> None:
    found = files(one_ipynb="import data", two_ipynb=LOADER, three_ipynb="x", data_py=LOADER, pins_py="pin_memory=True")
    assert found.never_pins("one.ipynb")
    assert found.never_pins("two.ipynb")
    assert not found.never_pins("three.ipynb")
    assert not found.never_pins("pins.py")


def test_notebooks_do_not_tell_of_loaders_of_files_that_they_do_not_import() -> None:
    assert not files(net_py="x", one_ipynb=LOADER).never_pins("net.py")
    assert files(net_py="x", main_py=LOADER, one_ipynb="pin_memory=True").never_pins("net.py")
    assert files(net_py="x", one_ipynb=f"import net\n{LOADER}").never_pins("net.py")


def test_a_method_that_one_file_alone_defines() -> None:
    method = "class A:\n    async def f(self):\n        pass\n"
    assert callers(files(a_py=method, b_py="x.f()"), "a.py", "1.f") == [("b.py", "*.f")]
    assert callers(files(a_py=method, b_py="x.f()", c_py=method), "a.py", "1.f") == []
