"""A file that a dataset reads or opens again for every sample, though it is the same each time."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from torchlint.rule import Call, Context, Flag, Message, Rule, Status

RULE = Rule(
    name="reparse-in-getitem",
    code="TL107",
    group="data",
    summary="A dataset reads or opens the same file for every sample.",
    since="0.2.0",
    status=Status.PREVIEW,
)
_READS = Message("reads", "`{function}` reads the same file for every sample", help="read it once, in `__init__`")
_OPENS = Message(
    "opens", "`{function}` opens the same file for every sample", help="open it at the first sample, and keep it"
)

# What reads all of a file.
_READERS = (
    "pandas.read_csv",
    "pandas.read_table",
    "pandas.read_json",
    "pandas.read_parquet",
    "pandas.read_excel",
    "pandas.read_pickle",
    "pandas.read_feather",
    "json.load",
    "json.loads",
    "pickle.load",
    "pickle.loads",
    "yaml.load",
    "yaml.safe_load",
    "xml.etree.ElementTree.parse",
    "numpy.load",
    "numpy.loadtxt",
    "numpy.genfromtxt",
    "torch.load",
    "joblib.load",
    "scipy.io.loadmat",
    "PIL.Image.open",
    "cv2.imread",
    "skimage.io.imread",
    "torchaudio.load",
    "soundfile.read",
    "librosa.load",
)
# What opens one of which a part is read.
_OPENERS = ("h5py.File", "lmdb.open", "zipfile.ZipFile", "tarfile.open", "netCDF4.Dataset", "xarray.open_dataset")

# `f` of `with open(path) as f` is at the start of the file, unless something has moved it.
_MOVES = frozenset({"seek", "readline", "__next__"})


@RULE.on(*map(Call, (*_READERS, *_OPENERS)))
def check(node: cst.Call, context: Context) -> Iterator[Flag]:
    """Flag a call that reads or opens a file whose name does not depend on the sample, where each sample is made."""
    from ._shared.samples import is_kept, is_same, ways

    if not node.args or context.has_unpacking(node) or _is_mapped(node, context):
        return
    if context.loop(node) is not None or is_kept(node, context) or _is_moved(node.args[0].value, context):
        return
    for way in ways(node, context):
        if all(is_same(argument.value, context, way) for argument in node.args):
            opens = context.qualified_name(node.func) in _OPENERS
            yield Flag(node, (_OPENS if opens else _READS).of(function=context.shown(node.func)))
            return


def _is_mapped(call: cst.Call, context: Context) -> bool:
    """`np.load(path, mmap_mode="r")` reads nothing yet."""
    return context.argument(call, "mmap_mode", 1) is not None and context.qualified_name(call.func) == "numpy.load"


def _is_moved(file: cst.BaseExpression, context: Context) -> bool:
    """Whether the file that is read is one that is read in parts."""
    if not isinstance(file, cst.Name):
        return False
    parents = map(context.parent, context.readers(file))
    return any(isinstance(parent, cst.Attribute) and parent.attr.value in _MOVES for parent in parents)
