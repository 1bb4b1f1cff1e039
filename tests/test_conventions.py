"""Conventions stand in one place, as data, each of them is used, and each can be switched off."""

from __future__ import annotations

import ast
import builtins
import importlib
import inspect
import re
import sys
import warnings
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple

import pytest

from torchlint.semantics.knowledge.conventions import comments, every
from torchlint.semantics.knowledge.conventions.convention import Convention, remembered, switched_off, watched
from torchlint.semantics.knowledge.conventions.functions import EVALUATING_WORD, FALLBACK
from torchlint.semantics.knowledge.conventions.texts import WEIGHT_LOADER

ROOT = Path(__file__).resolve().parents[1]
CONVENTIONS = every()
# What looks at code: everything but the conventions themselves, and data that is generated or of torch's own.
ANALYSIS = sorted(
    path
    for folder in ("rules", "torchlint/syntax", "torchlint/semantics", "torchlint/analyses", "torchlint/edits")
    for path in (ROOT / folder).rglob("*.py")
    if "conventions" not in path.relative_to(ROOT).parts
)
# Regular expressions over something else than names and texts that people choose, by what holds them.
EXPRESSIONS = {
    "_TOKEN": "tokens of Python",
    "_PUTS_NOTHING": "functions of torch.cuda",
    "_BLANK": "blanks and comments between statements",
    "_START": "first lines of statements",
    "_INDENTED": "an indented line",
    "_UNUSUAL": "characters that end no line",
    "_PROSE": "comments and strings of Python",
    "_SPACE": "white space in a string",
    "_FIELD": "what an f-string computes",
    "_EQUATION": "equations of `torch.einsum`",
    "_PLACES_LAST": "patterns of `einops.rearrange`",
    "_NUMBER_FORMAT": "format specifications of Python",
    "_STATELESS": "qualified names of torch's layers",
    "_NO_PARAMETERS": "qualified names of torch's layers",
    "_MAX_POOLS": "qualified names of torch's layers",
    "_AVERAGE_POOLS": "qualified names of torch's layers",
    "shown": "comments within a code that a message shows",
    "has_few_gradients": "calls of `requires_grad_` on one name",
    "in_place_of": "what stands beside a code",
}


class Stray(NamedTuple):
    """Something in the text of a module that judges by what people call things."""

    row: int
    what: str


@pytest.mark.parametrize("convention", CONVENTIONS.values(), ids=CONVENTIONS)
def test_a_convention_says_what_it_suggests_and_why(convention: Convention) -> None:
    assert bool(convention.names) is not bool(convention.pattern)
    assert convention.suggests_that[0].islower()
    assert not convention.suggests_that.endswith(".")
    assert convention.why.endswith(".")
    assert convention.why[0].isupper() or convention.why[0] == "`"
    if convention.pattern:
        re.compile(convention.pattern)
    else:
        assert not convention.ignore_case
        assert all(re.fullmatch(r"\w+(\.\w+)*", name) for name in convention.names)


def test_ids_are_unique_and_are_the_names_of_the_constants() -> None:
    for path in (ROOT / "torchlint/semantics/knowledge/conventions").glob("*.py"):
        if path.stem in ("__init__", "convention"):
            continue
        module = importlib.import_module(f"torchlint.semantics.knowledge.conventions.{path.stem}")
        own = {name: value for name, value in vars(module).items() if isinstance(value, Convention)}
        assert own, path
        for name, convention in own.items():
            assert convention.id == name.lower().replace("_", "-")
            assert CONVENTIONS[convention.id] is convention
        # Data and nothing else.
        for node in ast.parse(path.read_text()).body[1:]:
            assert isinstance(node, ast.ImportFrom) or (
                isinstance(node, ast.Assign)
                and isinstance(node.value, ast.Call)
                and isinstance(node.value.func, ast.Name)
                and node.value.func.id == "Convention"
            ), ast.unparse(node)


def test_each_convention_is_asked_somewhere() -> None:
    used = {
        node.id
        for path in ANALYSIS
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load)
    }
    assert sorted(id_ for id_ in CONVENTIONS if id_.upper().replace("-", "_") not in used) == []


def test_what_suggests() -> None:
    assert EVALUATING_WORD.suggests("eval")
    assert not EVALUATING_WORD.suggests("reeval")
    assert EVALUATING_WORD.suggests_any({"a", "test"})
    assert not EVALUATING_WORD.suggests_any(())
    assert FALLBACK.suggests("my_fallback")
    assert WEIGHT_LOADER.found_in("x = load_weights(y)") == "load_weights"
    assert WEIGHT_LOADER.found_in("x = 1") == ""


def test_a_convention_that_is_switched_off_suggests_nothing() -> None:
    with switched_off(FALLBACK):
        assert not FALLBACK.suggests("my_fallback")
        assert EVALUATING_WORD.suggests("eval")
        with switched_off(EVALUATING_WORD, WEIGHT_LOADER):
            assert not FALLBACK.suggests("my_fallback")
            assert not EVALUATING_WORD.suggests_any({"eval"})
            assert WEIGHT_LOADER.found_in("load_weights(y)") == ""
        assert EVALUATING_WORD.suggests("eval")
    assert FALLBACK.suggests("my_fallback")


def test_those_that_suggest_something_are_seen() -> None:
    with watched() as outer:
        FALLBACK.suggests("nothing")
        EVALUATING_WORD.suggests_any({"eval"})
        with watched() as inner:
            FALLBACK.suggests("fallback")
        assert inner == {"fallback"}
    assert outer == {"evaluating-word"}
    FALLBACK.suggests("fallback")
    assert outer == {"evaluating-word"}


def test_one_that_is_off_is_seen_all_the_same() -> None:
    with watched() as seen, switched_off(FALLBACK):
        assert not FALLBACK.suggests("fallback")
    assert seen == {"fallback"}


def test_what_is_remembered_hides_neither() -> None:
    asked: list[str] = []

    @remembered(4)
    def is_fallback(name: str) -> bool:
        asked.append(name)
        return FALLBACK.suggests(name)

    assert is_fallback("fallback")
    assert is_fallback("fallback")
    assert asked == ["fallback"]
    with switched_off(FALLBACK):
        assert not is_fallback("fallback")
    with watched() as seen:
        assert is_fallback("fallback")
    assert seen == {"fallback"}
    assert is_fallback("fallback")
    assert len(asked) == 3


@pytest.mark.parametrize("path", ANALYSIS, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_no_convention_hears_what_is_there_for_people(path: Path) -> None:
    """Comments are heard by `is_meant` alone, of one line; all else is told what `uncommented` leaves of the code."""
    heard = {name for name, value in vars(comments).items() if isinstance(value, Convention)}
    for node in ast.walk(ast.parse(path.read_text())):
        match node:
            case ast.Call(func=ast.Name(id="is_meant"), args=[_, _], keywords=said):
                heard_here = {ast.unparse(each.value) for each in said}
                assert heard_here <= heard, f"{path}:{node.lineno}"
            case ast.Call(func=ast.Attribute(value=owner, attr="suggests" | "found_in"), args=[given]):
                where = f"{path}:{node.lineno}: {ast.unparse(node)}"
                assert ast.unparse(owner) not in heard or path.stem == "meant", where
                assert "source.text" not in ast.unparse(given), where
                assert not re.search(r"context\.(bare_)?code\(", ast.unparse(given)), where


@pytest.mark.parametrize("path", ANALYSIS, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_nothing_else_judges_by_names(path: Path) -> None:
    assert [f"{stray.row}: {stray.what}" for stray in strays(path.read_text())] == []


def test_each_exception_is_needed() -> None:
    holders = set()
    for path in ANALYSIS:
        tree = ast.parse(path.read_text())
        around = {child: node for node in ast.walk(tree) for child in ast.iter_child_nodes(node)}
        for node in ast.walk(tree):
            match node:
                case ast.Call(func=ast.Attribute(value=ast.Name(id="re"))):
                    holders.add(("re", _holder(node, around)))
                case ast.Compare(left=left, ops=[ast.In() | ast.NotIn()], comparators=[right]) if _is_text(right):
                    if _is_word(left, node, around):
                        holders.add(("in", _holder(node, around)))
    assert {holder for kind, holder in holders if kind == "re"} >= EXPRESSIONS.keys()
    assert {holder for kind, holder in holders if kind == "in"} >= GATES.keys()


@pytest.mark.parametrize(
    ("code", "what"),
    [
        ('_LOSS = re.compile("loss|crit")', "re.compile"),
        ('def f(x):\n    return re.match("loss", x.value)', "re.match"),
        ('import re\n_BAR = frozenset({"my_loader"})', "my_loader"),
        ('_BAR = frozenset("my_loader criterion".split())', "criterion"),
        ('_BAR = ("criterion", "loss_fn")', "criterion"),
        ('def f(x):\n    return x.value == "criterion"', "criterion"),
        ('def f(x):\n    return x.value in ("criterion", "train")', "criterion"),
        ('def f(x):\n    return x.value.startswith("crit_")', "crit_"),
        ("def f(x):\n    match x:\n        case cst.Name(value='criterion'):\n            pass", "criterion"),
        ('def f(x):\n    return any(word in x for word in ("my_beam",))', "my_beam"),
        ('def f(x, context):\n    return "rank" in context.code(x).lower()', "'rank' in"),
        ('def f(x, context):\n    return "train" in context.source.text', "'train' in"),
        ('def f(x):\n    return "train" in x.name.value', "'train' in"),
        ('def f(name):\n    return "train" in name', "'train' in"),
        ('def f(x, context):\n    return any(word in context.code(x) for word in ("rank", "cuda"))', "word in"),
    ],
)
def test_a_stray_is_found(code: str, what: str) -> None:
    found = list(strays(code))
    assert any(what in stray.what for stray in found), found


@pytest.mark.parametrize(
    "code",
    [
        '_METHODS = frozenset("backward zero_grad".split())',
        'def f(x):\n    return x.value in ("torch.nn.Linear", "numpy.array", "len")',
        'def f(x):\n    return "dim" in keywords and x.startswith("torch.optim.")',
        'def f(x, context):\n    return "#" in context.code(x)',
        '"""`criterion` in a docstring."""',
        'x = f"the {loss} in a message"',
    ],
)
def test_a_documented_name_is_none(code: str) -> None:
    assert list(strays(code)) == []


def strays(text: str) -> Iterator[Stray]:
    """Whatever in a module looks for names or words that no documentation of a library holds."""
    tree = ast.parse(text)
    around = {child: node for node in ast.walk(tree) for child in ast.iter_child_nodes(node)}
    for node in ast.walk(tree):
        match node:
            case ast.Call(func=ast.Attribute(value=ast.Name(id="re"), attr=method)):
                if method != "escape" and _holder(node, around) not in EXPRESSIONS:
                    yield Stray(node.lineno, f"re.{method}")
            case ast.Compare(left=left, ops=[ast.In() | ast.NotIn()], comparators=[right]) if _is_text(right):
                if _is_word(left, node, around) and _holder(node, around) not in GATES:
                    yield Stray(node.lineno, f"{ast.unparse(left)} in {ast.unparse(right)}")
        for word in _words(node):
            if not _is_documented(word):
                yield Stray(getattr(node, "lineno", 0), word)


# Searches of a text that judge by nothing that people choose, by the function that makes them.
GATES = {
    "_is_seen_as_array": "the call is looked for in the tree then, which is dear",
    "_tells": "the call is looked for in the tree then, which is dear",
    "_is_behind_generation": "the call is looked for in the tree then, which is dear",
    "is_used": "the call is looked for in the tree then, which is dear",
    "is_read_the_old_way": "the read is looked for in the tree then, which is dear",
    "check": "the call is looked for in the tree then, which is dear",
    "mentions_accelerator": "functions of torch.cuda",
    "is_in": "names that libraries document, as tests/test_marks.py asks",
    "is_left_to_others": "the pattern of a convention is searched for then",
    "_of_event": "names of the events of Ignite",
    "_words_for": "names of classes of torch",
    "_is_about": "names of classes of torch",
    "_is_meant": "names of functions and layers of torch",
    "_lets_shifts_through": "qualified names of torch",
    "makes_new": "qualified names of torch",
    "_may_give": "the annotation `Tensor`, in a string too",
    "needs_new_workers": "the attribute of a loader of torch",
    "fits_in_string": "characters of the strings of Python",
    "is_guarded": "`__name__`, which is Python's",
    "is_self_check": "`__name__`, which is Python's",
    "_is_tried_out": "`__name__`, which is Python's",
}


def _holder(node: ast.AST, around: dict[ast.AST, ast.AST]) -> str:
    """The constant, or the function, that holds a node."""
    above: ast.AST | None = node
    while above is not None:
        match above:
            case ast.FunctionDef(name=name):
                return name
            case ast.Assign(targets=[ast.Name(id=name)]) if isinstance(around.get(above), ast.Module):
                return name
        above = around.get(above)
    return ""


def _is_text(node: ast.expr) -> bool:
    """Whether an expression is a name or a code that people wrote, as far as its form tells."""
    match node:
        case ast.Attribute(attr="text" | "value" | "_text" | "code"):
            return True
        case ast.Name(id=name):
            return name in {
                "text",
                "code",
                "name",
                "word",
                "words",
                "asked",
                "test",
                "called",
                "last",
                "method",
                "size",
            }
        case ast.Call(func=ast.Attribute(attr="code" | "bare_code" | "uncommented" | "lower")):
            return True
        case ast.Call(func=ast.Name(id="dotted" | "last_part" | "final_part" | "method_name")):
            return True
        case ast.BoolOp(values=values):
            return any(map(_is_text, values))
        case ast.Subscript(value=ast.Call(func=ast.Attribute(attr="rpartition" | "partition"))):
            return True
    return False


def _is_word(node: ast.expr, compare: ast.Compare, around: dict[ast.AST, ast.AST]) -> bool:
    """Whether this is a literal with a letter in it, or what a comprehension goes through."""
    if isinstance(node, ast.Constant):
        return isinstance(node.value, str) and any(map(str.isalpha, node.value))
    above: ast.AST | None = compare
    while above is not None and not isinstance(above, ast.stmt):
        if isinstance(above, (ast.GeneratorExp, ast.ListComp, ast.SetComp)):
            for part in above.generators:
                if isinstance(node, ast.Name) and isinstance(part.target, ast.Name) and part.target.id == node.id:
                    return True
        above = around.get(above)
    return False


def _words(node: ast.AST) -> Iterator[str]:
    """The bare identifiers that a node compares something with, or lists to compare with."""
    match node:
        case ast.Compare(left=left, comparators=others):
            for side in (left, *others):
                yield from _listed(side)
        case ast.Call(func=ast.Attribute(attr="startswith" | "endswith"), args=args):
            for argument in args:
                yield from _listed(argument)
        case ast.MatchValue(value=value):
            yield from _listed(value)
        case ast.comprehension(iter=walked):
            yield from _listed(walked)
        case ast.Assign(targets=[ast.Name(id="__all__")]):
            return
        case ast.Assign(value=value):
            if not isinstance(value, ast.Constant):
                yield from _listed(value)
        case ast.Call(func=ast.Name(id="frozenset" | "set"), args=[given]):
            yield from _listed(given)


def _listed(node: ast.AST) -> Iterator[str]:
    match node:
        case ast.Constant(value=str() as word):
            if re.fullmatch(r"[A-Za-z_]\w+\.?", word):
                yield word
        case ast.Tuple(elts=parts) | ast.List(elts=parts) | ast.Set(elts=parts):
            for part in parts:
                yield from _listed(part)
        case ast.Call(func=ast.Attribute(value=ast.Constant(value=str() as words), attr="split"), args=[]):
            for word in words.split():
                yield from _listed(ast.Constant(word))


def _is_documented(word: str) -> bool:
    """Whether Python, torch or NumPy define something of this name, or a parameter, or a library that is listed."""
    return word.strip("_.") in documented_names() or word in documented_names()


@cache
def documented_names() -> frozenset[str]:
    found = {name for words in LIBRARIES.values() for name in words.split()} | set(LIBRARIES) | sys.stdlib_module_names
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for place in DOCUMENTED:
            found |= _names(_object(place))
    return frozenset(found)


def _object(place: str) -> object:
    module, _, name = place.partition(":")
    loaded: object = importlib.import_module(module)
    return getattr(loaded, name) if name else loaded


def _names(owner: object) -> set[str]:
    found = set(dir(owner))
    for name in list(found):
        value = getattr(owner, name, None)
        if callable(value):
            try:
                found |= set(inspect.signature(value).parameters)
            except (TypeError, ValueError):
                continue
        if isinstance(value, type):
            found |= set(dir(value))
    return found


# Where documented names are found, beside those of Python itself.
DOCUMENTED = (
    *(f"builtins:{name}" for name, value in vars(builtins).items() if isinstance(value, type)),
    "builtins", "argparse:ArgumentParser", "collections:deque", "contextlib", "copy", "datetime", "functools", "io",
    "io:BytesIO", "io:TextIOWrapper", "itertools", "json", "logging", "logging:Logger", "math", "multiprocessing",
    "multiprocessing.pool:Pool", "os", "os.path", "pathlib:Path", "pickle", "queue:Queue", "random", "sys", "threading", "time", "typing", "unittest",
    "unittest:TestCase",
    "warnings",
    "numpy", "numpy:ndarray", "numpy.fft", "numpy.linalg", "numpy.random",
    "torch", "torch:Tensor", "torch.amp", "torch.autograd", "torch.backends.cudnn", "torch.compiler", "torch.cuda",
    "torch.cuda:Stream", "torch.cuda.amp", "torch.distributed", "torch.distributions", "torch.fft", "torch.fx",
    "torch.func", "torch.jit", "torch.linalg", "torch.multiprocessing", "torch.nn", "torch.nn:Module",
    "torch.nn.functional", "torch.nn.init", "torch.nn.modules.module", "torch.nn.parallel", "torch.nn.utils", "torch.onnx", "torch.optim",
    "torch.optim:Optimizer", "torch.optim.lr_scheduler", "torch.profiler", "torch.special", "torch.utils",
    "torch.utils.checkpoint", "torch.utils.data",
)  # fmt: skip
# Documented names of libraries that the tests do not install, and what else is no name that people choose.
LIBRARIES = {
    "accelerate": (
        "deepspeed fsdp fsdp_config parallelism_config accelerator_config join_uneven_inputs main_process_first "
        "split_between_processes prepare prepare_data_loader prepare_model prepare_optimizer init_empty_weights "
        "init_on_device gather_for_metrics pad_across_processes"
    ),
    "albumentations": "",
    "argparse": "store_true",
    "apex": "scale_loss FP16_Optimizer",
    "colossalai": "",
    "cupy": "",
    "cv2": (
        "GaussianBlur addWeighted blur copyMakeBorder cvtColor dilate erode imdecode imread medianBlur remap warpAffine "
        "warpPerspective imshow"
    ),
    "datasets": "set_format",
    "diffusers": "prev_sample",
    "dm_control": "",
    "dm_env": "",
    "fabric": "setup setup_dataloaders setup_module setup_optimizers",
    "fastprogress": "progress_bar",
    "envpool": "",
    "filelock": "",
    "fsspec": "",
    "gradio": "",
    "gym": "",
    "gymnasium": "reset step",
    "h5py": "",
    "httpx": "",
    "ignite": "on add_event_handler ITERATION BATCH",
    "imageio": "",
    "IPython": "get_ipython",
    "jax": "",
    "jaxtyping": "Bool",
    "jittor": "",
    "megengine": "",
    "mindspore": "",
    "mxnet": "",
    "oneflow": "",
    "paddle": "",
    "vllm": "execute_model",
    "torchtext": "",
    "torchtyping": "TensorType",
    "text_generation_server": "generate_token",
    "sglang": "forward_batch_generation forward_extend forward_decode",
    "lightning": (
        "training_step validation_step test_step predict_step manual_backward optimizer_step configure_model "
        "configure_optimizers prepare_data on_after_backward on_before_zero_grad on_fit_end on_fit_start on_init_end "
        "on_test_batch_end on_test_end on_test_start on_test_epoch_start on_test_epoch_end on_train_batch_end "
        "on_train_batch_start on_train_end on_train_start on_train_epoch_start on_train_epoch_end "
        "on_validation_batch_end on_validation_batch_start on_validation_end on_validation_start "
        "on_validation_epoch_start on_validation_epoch_end test_epoch_end training_epoch_end validation_epoch_end "
        "train_dataloader val_dataloader test_dataloader predict_dataloader LightningModule LightningDataModule dp setup teardown init_module "
        "no_backward_sync"
    ),
    "lightning_fabric": "",
    "lmdb": "begin",
    "matplotlib": "imshow",
    "megatron": "",
    "pandas": "iloc",
    "PIL": "convert",
    "pettingzoo": "",
    "procgen": "",
    "pytest": "raises",
    "pytorch_lightning": "",
    "requests": "",
    "rich": "track",
    "safetensors": "",
    "scipy": "",
    "segmentation_models_pytorch": "",
    "skimage": "",
    "sklearn": "",
    "soundfile": "",
    "tensorboard": "add_audio add_histogram add_image add_images add_scalar add_scalars add_video",
    "tensorflow": "as_default name_scope variable_scope",
    "timm": "create_model",
    "torch": (  # in modules or signatures that Python cannot look into
        "batchmean Conv ConvTranspose ConstantPad ZeroPad ReflectionPad ReplicationPad Lazy Loss LU LU6 compute descending dim1 "
        "dim2 end entropy initial_lr is_ is_torchdynamo_compiling loss non_blocking npu saved_tensors_hooks step steps "
        "window_length vit_ pad_sequence state_dict_type summon_full_params capture_scalar_outputs "
        "capture_dynamic_output_shape_ops fp32_precision fuse_modules QuantStub FullyShardedDataParallel DeviceContext "
        "PackedSequence"
    ),
    "torch_geometric": "maybe_num_nodes",
    "torch_scatter": "scatter_sum scatter_mean scatter_max scatter_min segment_csr segment_coo",
    "torchaudio": "",
    "torchmetrics": "compute",
    "torchvision": (
        "CenterCrop ConvertImageDtype FiveCrop Lambda Normalize RandomCrop RandomResizedCrop RandomSizedCrop Resize Scale "
        "TenCrop ToDtype ToTensor batched_nms nms convnext crop decode_image decode_jpeg decode_png densenet efficientnet "
        "inception mobilenet read_image regnet resized_crop resnet resnext swin swish target_transform vgg wide_resnet"
    ),
    "tqdm": "set_description set_postfix get_lock",
    "transformers": (
        "bf16 bf16_full_eval compute_loss dataloader_num_workers do_train fp16 fp16_full_eval half_precision_backend "
        "jit_mode_eval load_in_4bit load_in_8bit no_cuda on_epoch_begin on_epoch_end on_step_begin on_step_end "
        "on_train_begin prediction_step quantization_config tf32 torch_dtype use_cpu use_mps_device generate _init_weights"
    ),
    "trl": "unwrap_model_for_generation",
    "wandb": "",
    "webdataset": "",
    "yaml": "",
    "an environment": "on true yes detail",  # values of variables that torch documents
    "Python": "__",
    "gc": "collect",
    "libcst": (
        "asynchronous colon comma conversion default_indent default_newline empty_lines first_colon first_line "
        "has_trailing_newline last_line lbrace lbracket leading_lines leading_whitespace lines_after_decorators lpar "
        "posonly_ind rbrace rbracket rpar second_colon semicolon trailing_comma trailing_whitespace whitespace"
    ),
}
