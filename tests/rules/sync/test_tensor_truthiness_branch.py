"""TL307: a condition whose truth is that of a device tensor is flagged where it is asked at each batch."""

from __future__ import annotations

import textwrap
from importlib.resources import files

import pytest
from laws import active, check_snippet, places

from torchlint.finding import Doubt
from torchlint.settings import Settings

RULE = "tensor-truthiness-branch"
MARK = "  # <- tensor-truthiness-branch"


def forward(*lines: str) -> str:
    """A network whose `forward` does this."""
    body = textwrap.indent("\n".join(lines), " " * 8)
    return (
        "import torch\nfrom torch import nn\n\n\nclass Net(nn.Module):\n"
        "    def __init__(self):\n        super().__init__()\n        self.project = nn.Linear(3, 3)\n"
        '        self.register_buffer("started", torch.tensor(False))\n'
        '        self.register_buffer("count", torch.tensor(0))\n\n'
        f"    def forward(self, x: torch.Tensor, mask: torch.Tensor):\n{body}\n        return x\n"
    )


@pytest.mark.parametrize(("given", "mark"), [("x", MARK + "?"), ("self.table", MARK + "?"), ("make(3)", MARK + "?")])
def test_a_mapping_of_tensors_is_where_the_batch_is(given: str, mark: str) -> None:
    check_snippet(
        f"""
        import torch
        class Net(torch.nn.Module):
            def step(self, x: dict[str, torch.Tensor]):
                if (x["lengths"] < x["lengths"].max()).any():{mark}
                    x = pack(x)
                return self(x)
            def training_step(self, batch, index):
                x, y = batch
                return self.step({given})
        """,
        RULE,
    )


@pytest.mark.parametrize(
    "lines",
    [
        ("if mask.any():  # <- tensor-truthiness-branch?" + MARK, "    x = x + 1"),
        ("if not torch.all(mask):" + MARK, "    x = x + 1"),
        ("y = self.project(x)", "x = y if y.sum() > 0 else x" + MARK),
        ("assert (x >= 0).all()" + MARK,),
        ("if x.shape[0] > 1 and x.max() > 1.0:" + MARK, "    x = x / 255"),
        ("if mask is None:", "    x = x + 1", "elif mask.sum() == 0:" + MARK, "    x = x - 1"),
        ("if self.count > 3:" + MARK, "    print(x.shape)"),
        ("use_state = x.dim() > 1 and mask[0] > 0", "if use_state:" + MARK, "    x = kernel(x)"),
        ("same = torch.equal(x, mask)", "if not same:" + MARK, "    raise ValueError"),
        ("if mask.any():" + MARK, "    warnings.warn('masked')"),
        ("if mask.any():" + MARK, "    if self.training:", "        x[mask] = 0.0", "    else:", "        x.mul_(2)"),
        ("same = not torch.equal(x, mask)" + MARK,),
        ("both = mask.any() and x.any()" + MARK,),
        ("full = bool((mask == 1).all())" + MARK,),
        ("top = max(x.max(), mask.max())" + MARK,),
        ("low = min([x.min(), mask.min()])" + MARK,),
        ("if all(part.max() > 0 for part in (x, mask)):" + MARK, "    x = x + 1"),
        ("if 'length' in mask or 3 in mask:" + MARK, "    x = x + 1"),
        ("order = sorted(range(3), key=lambda i: mask[i])" + MARK,),
        ("if x.argmax() in (0, 1):" + MARK, "    x = x + 1"),
        ("if not self.started:" + MARK, "    self.started.fill_(True)"),
        ("full = (mask == 1).all()", "if full:" + MARK, "    x = x + 1", "if full:", "    x = x + 2"),
        ("if x[0] > 0:" + MARK, "    x = x + 1"),
        ("valid = None", "if valid is None:", "    if mask.any():" + MARK, "        x = x + 1"),
        ("if 0 < x.sum() < 1:" + MARK, "    x = x + 1"),
        ("if mask.any():" + MARK, "    raise ValueError"),
    ],
)
def test_a_forward_that_asks(lines: tuple[str, ...]) -> None:
    check_snippet(forward(*lines), RULE)


@pytest.mark.parametrize(
    "lines",
    [
        ("kept = [part for part in (x, mask) if part.sum() > 0]",),
        ("y = None", "if mask.any():  # <- tensor-truthiness-branch?", "    y = mask", "x = attend(x, y)"),
        ("if not mask.any():  # <- tensor-truthiness-branch?", "    mask = None", "x = attend(x, mask)"),
        ("if mask.any():  # <- tensor-truthiness-branch?", "    x = fused(x)", "else:", "    x = plain(x)"),
        ("if mask.any():  # <- tensor-truthiness-branch?", "    rows = mask.nonzero()", "    x = x[rows]"),
        ("if mask.any():  # <- tensor-truthiness-branch?", "    return [x]"),
        ("if mask.any():  # <- tensor-truthiness-branch?", "    return x.sum() > 1, None"),
        ("if torch.equal(x, mask):  # <- tensor-truthiness-branch?", "    x = x + 1"),
        ("n = mask.sum()", "if n > 4:  # <- tensor-truthiness-branch?", "    x = x[:n]"),
        ("n = mask.max()", "assert n <= x.shape[1]  # <- tensor-truthiness-branch?", "x = x[:n]"),
        (
            "n = mask.max()",
            "if n == 0:  # <- tensor-truthiness-branch?",
            "    return x",
            "x = torch.rand((3, n), device=x.device)",
        ),
        ("x = torch.randint(0, max(1, mask.sum()), (3,), device=x.device)  # <- tensor-truthiness-branch?",),
        ("top = max(x[0], 0)  # <- tensor-truthiness-branch?", "x = x[top:]"),
        ("if torch.onnx.is_in_onnx_export():", "    if mask.any():", "        x = x + 1"),
        ("if self.onnx_trace and mask.any():  # <- tensor-truthiness-branch?", "    x = x + 1"),
        ("if x is None or mask is not None:", "    x = x + 1"),
        ("if x.shape[0] > 1 or x.dim() == 2 or x.size(0) == 1 or x.numel():", "    x = x + 1"),
        ("if x.requires_grad and x.is_cuda and self.training:", "    x = x + 1"),
        ("if mask:", "    x = x + 1"),
        ("if mask.any().item():", "    x = x + 1"),
        ("if torch.isnan(x).any():", "    x = x + 1"),
        ("while x.norm() > 1:  # <- tensor-truthiness-branch?", "    x = x / 2"),
        (
            "for _ in range(9):",
            "    x = self.project(x)",
            "    if x.norm() < 1:  # <- tensor-truthiness-branch?",
            "        break",
        ),
        (
            "for _ in range(9):",
            "    x = self.project(x)",
            "    if x.norm() < 1:  # <- tensor-truthiness-branch?",
            "        return x",
        ),
        ("if mask.any():  # <- tensor-truthiness-branch?", "    x = self.project(x)"),
        ("if isinstance(x, list) or x.sum() > 0:", "    x = x + 1"),
        ("if self.debug:", "    assert (x > 0).all()  # <- tensor-truthiness-branch?"),
        ("if torch.jit.is_tracing():", "    if mask.any():", "        x = x + 1"),
        ("noise = torch.rand(1)", "if noise > 0.5:", "    x = x + 1"),
        ("x = x.cpu()", "if x.sum() > 0.5:", "    x = x + 1"),
        ("if str(x.device) in ('cpu', 'meta'):", "    x = x + 1"),
        ("n = max(x.shape[0], 2)",),
        ("x = mask and x",),
    ],
)
def test_a_forward_that_waits_for_nothing_or_has_to(lines: tuple[str, ...]) -> None:
    check_snippet(forward(*lines), RULE)


@pytest.mark.parametrize(
    "code",
    [
        """
        import torch
        def train(model, loader, optimizer, criterion):
            for inputs, targets in loader:
                loss = criterion(model(inputs.cuda()), targets.cuda())
                if loss > 100:  # <- tensor-truthiness-branch
                    loss = loss / 10
                loss.backward()
                optimizer.step()
        """,
        """
        import torch
        @torch.no_grad()
        def evaluate(net, loader, device):
            net.eval()
            for batch in loader:
                image, mask_true = batch["image"], batch["mask"]
                image = image.to(device)
                mask_true = mask_true.to(device)
                mask_pred = net(image)
                assert mask_true.min() >= 0 and mask_true.max() <= 1, "in [0, 1]"  # <- tensor-truthiness-branch
        """,
        """
        import torch
        def test_net(net, images, names):
            for image in images:
                detections = net(image.cuda()).data
                for i in range(detections.size(1)):
                    j = 0
                    while detections[0, i, j, 0] >= 0.6:  # <- tensor-truthiness-branch
                        print(names[i - 1])
                        j += 1
        """,
    ],
)
def test_loops_over_batches(code: str) -> None:
    check_snippet(code, RULE)


@pytest.mark.parametrize(
    "code",
    [
        """
        import torch
        def train(model, loader, optimizer, criterion):
            for inputs, targets in loader:
                loss = criterion(model(inputs.cuda()), targets.cuda())
                if loss > 100:  # <- tensor-truthiness-branch?
                    continue
                loss.backward()
                optimizer.step()
        """,
        """
        import torch
        def train(model, loader, optimizer, criterion):
            for step, (inputs, targets) in enumerate(loader):
                loss = criterion(model(inputs.cuda()), targets.cuda())
                loss.backward()
                optimizer.step()
                if step % 100 == 0 and loss > 100:
                    print("large")
        """,
        """
        import torch
        def train(model, loader, optimizer, criterion, epochs):
            best = None
            for epoch in range(epochs):
                for inputs, targets in loader:
                    loss = criterion(model(inputs.cuda()), targets.cuda())
                    loss.backward()
                    optimizer.step()
                if best is None or loss < best:
                    best = loss
        """,
        """
        import torch
        def train(model, loader, optimizer, criterion):
            for inputs, targets in loader:
                if (targets == 0).all():
                    continue
                loss = criterion(model(inputs.cuda()), targets.cuda())
                loss.backward()
                optimizer.step()
        """,
        """
        import torch
        def line_search(model, loss, direction):
            for inputs in range(10):
                loss = model(inputs.cuda())
                loss.backward()
                if loss > 0:  # <- tensor-truthiness-branch?
                    direction = direction / 2
        """,
        """
        import torch
        def read(values: torch.Tensor):
            if values.max() > 1:  # <- tensor-truthiness-branch?
                values = values / 255
            return values
        """,
    ],
)
def test_what_is_rare_on_the_cpu_or_ruled_by_the_data(code: str) -> None:
    check_snippet(code, RULE)


@pytest.mark.parametrize(
    ("lines", "advice"),
    [
        (("assert (x > 0).all()",), "_assert_async"),
        (("if mask.any():", "    raise ValueError"), "_assert_async"),
        (("if mask.any():", "    line = mask.sum()", "    torch._assert(False, 'masked')"), "_assert_async"),
        (("top = max(x.max(), mask.max())",), "torch.maximum"),
        (("if mask.any():", "    x = x + 1"), "torch.where"),
        (("if mask[0] > 0:", "    x = fused(x)"), "let the caller pass"),
        (("if self.count >= 3:", "    x = fused(x)"), "Python attribute"),
        (("if mask.any():", "    warnings.warn('masked')"), "now and then"),
        (("for i in range(4):", "    word = mask[i]", "    if word == 2:", "        best[i] = i"), "tolist()"),
        (
            ("for i in range(4):", "    for j in range(2):", "        if mask[i][x[j]] == 2:", "            a[j] = i"),
            "tolist()",
        ),
        (("both = mask.any() and x.any()",), "combine on the GPU"),
    ],
)
def test_the_message_names_what_would_do_instead(lines: tuple[str, ...], advice: str) -> None:
    from torchlint import engine
    from torchlint.registry import find
    from torchlint.source import SourceFile

    source = SourceFile.from_bytes("net.py", forward(*lines).encode())
    (finding,) = engine.examine(source, (find(RULE),), Settings((RULE,))).findings
    assert advice in finding.help


def test_fixtures_have_the_marked_lines() -> None:
    folder = files("torchlint.fixtures") / "tensor_truthiness_branch"
    assert {name for _, name in places((folder / "ok.py").read_text("utf-8"), active(RULE))} == {f"{RULE}?"}
    assert len(places((folder / "slow.py").read_text("utf-8"), active(RULE))) == 5


def test_more_rows_are_no_choice() -> None:
    check_snippet(forward("if mask.any():  # <- tensor-truthiness-branch?", "    x = torch.cat((mask, x))"), RULE)


def test_bounds_that_are_handed_in_are_no_tensor() -> None:
    from torchlint import engine
    from torchlint.registry import find
    from torchlint.source import SourceFile

    code = forward("if x.max() > bounds[1] or x.min() < 0:", "    warnings.warn('out of range')").replace(
        "mask:", "bounds, mask:"
    )
    source = SourceFile.from_bytes("net.py", code.encode())
    (finding,) = engine.examine(source, (find(RULE),), Settings((RULE,))).findings
    assert "now and then" in finding.help


def test_rows_that_a_mask_picks_are_no_choice() -> None:
    lines = (
        "good = mask != 3",
        "if good.sum() == 0:  # <- tensor-truthiness-branch?",
        "    x = x[-2:]",
        "else:",
        "    x = x[good]",
    )
    check_snippet(forward(*lines), RULE)
    check_snippet(forward("good = mask > 3", "if good.any():" + MARK, "    x[good] = mask[good]"), RULE)


@pytest.mark.parametrize("line", ['print("too loud", y.max())', 'log.info("too loud")', "warnings.warn('too loud')"])
def test_what_only_tells_is_to_be_asked_now_and_then(line: str) -> None:
    result = check_snippet(
        f"""
        import torch
        import warnings
        def spectrum(y, log):
            if torch.max(y) > 1.0:  # <- {RULE}
                {line}
            return torch.stft(y, 64)
        def train(model, loader, optimizer, criterion, log):
            for x, target in loader:
                criterion(spectrum(model(x.cuda()), log), target.cuda()).backward()
                optimizer.step()
        """,
        RULE,
    )
    assert "now and then" in result.findings[0].help


def test_the_bound_of_a_slice_is_needed_as_a_number() -> None:
    lines = ("top = mask.long()", f"if top.max() < 9:{MARK}?", "    x[:, top.max() :] = 1")
    check_snippet(forward(*lines), RULE)
    check_snippet(forward("if mask.max() < 9:" + MARK, "    x[:, 1:] = 1"), RULE)


def test_a_switch_that_is_said_to_be_a_tensor() -> None:
    code = forward("if frozen == False:", "    x = x.detach()")
    check_snippet(code.replace("mask: torch.Tensor", "mask: torch.Tensor, frozen: torch.Tensor = True"), RULE)
    code = code.replace("False:", "False:" + MARK)
    check_snippet(code.replace("mask: torch.Tensor", "mask: torch.Tensor, frozen: torch.Tensor = None"), RULE)


def test_a_branch_that_spares_a_loop() -> None:
    loop = ("for row in range(x.shape[0]):", "    x[row, : mask[row]] = 1")
    check_snippet(
        forward("if mask.sum() == 0:  # <- tensor-truthiness-branch?", "    return x.new_zeros(3)", *loop), RULE
    )
    check_snippet(forward(*loop, "if mask.sum() == 0:" + MARK, "    return x.new_zeros(3)"), RULE)
    check_snippet(forward("if mask.sum() == 0:" + MARK, "    x = x.new_zeros(3)", *loop), RULE)


def test_what_goes_backward_is_a_tensor_whatever_it_is_called() -> None:
    code = """
    import torch
    def goes_on(net, x, measure, limit):
        y = measure(net(x.cuda()))
        while y > limit:{mark}
            {use}
            y = measure(net(x.cuda()))
    """
    check_snippet(textwrap.dedent(code).format(mark="  # <- tensor-truthiness-branch?", use="y.backward()"), RULE)
    check_snippet(textwrap.dedent(code).format(mark="", use="y.show()"), RULE)


@pytest.mark.parametrize(
    ("size", "mark"), [("candidates.shape[0]", f"{MARK}?"), ("count", ""), ("len(candidates)", "")]
)
def test_a_loop_over_positions_waits_for_each_however_often_it_is_entered(size: str, mark: str) -> None:
    """What is needed and not known to recur is silent; here it recurs in one call."""
    check_snippet(
        f"""
        import random, torch
        def pick(gtp, candidates: torch.Tensor, taken: torch.Tensor, length: int, count=3):
            same = (candidates[:, :length] == taken).all(dim=1)
            seen = []
            for j in range({size}):
                if same[j]:{mark}
                    word = candidates[j, length]
                    number = word.item()
                    if number in seen or number == -1:
                        continue
                    seen.append(number)
                    if random.random() <= gtp[number]:
                        taken = torch.cat((taken, word[None]), dim=0)
                        break
                    gtp[number] = 0
                    gtp = gtp / gtp.sum()
            return taken
        register(pick)
        """,
        RULE,
    )


@pytest.mark.parametrize(
    ("given", "made", "mark"),
    [
        ("masks: tuple[torch.Tensor, ...]", "mask = masks[i] == 3", "?"),
        ("masks: list[torch.Tensor]", "kept = []\nkept.append(masks[i].sum())\nmask = torch.stack(kept)", "?"),
        ("masks: tuple[int, ...]", "mask = torch.tensor(masks) == 3", None),
        ("masks: list[torch.Tensor]", "kept = []\nkept.append(3)\nmask = torch.tensor(kept)", None),
    ],
)
def test_what_is_taken_from_several_that_are_given(given: str, made: str, mark: str | None) -> None:
    """A part of a parameter is where the parameter is, also by way of a list."""
    body = textwrap.indent(made, " " * 8)
    mark = "" if mark is None else MARK + mark
    check_snippet(
        f"import torch\n\n\ndef train(loader, optimizer, {given}):\n    for i, batch in enumerate(loader):\n{body}\n"
        f"        if not mask.any():{mark}\n            continue\n        batch.loss().backward()\n        optimizer.step()\n",
        RULE,
    )


@pytest.mark.parametrize(
    ("made", "mark"),
    [
        ("torch.sqrt(table.sigmas[0])", MARK + "?"),
        ("torch.rand(3)[0]", ""),
        ("drawn()[0]", ""),
        ("torch.div(n, 3)", ""),
        ("torchaudio.load(n)[0].mean()", ""),
        ("[torch.sum(t) for t in (table.x, table.y)][0]", MARK + "?"),
    ],
)
def test_what_nothing_shows_on_the_cpu_is_noted(made: str, mark: str) -> None:
    check_snippet(
        f"""
        import torch, torchaudio
        def drawn() -> torch.Tensor:
            return torch.rand(3)
        def train(model, loader, optimizer, table, n: int):
            for x in loader:
                model(x.cuda()).mean().backward()
                optimizer.step()
                value = {made}
                if value > 0.5:{mark}
                    x = x * 2
        """,
        RULE,
    )


@pytest.mark.parametrize(("first", "mark"), [("None", MARK), ("load(x)", MARK + "?")])
def test_what_is_none_or_a_tensor_is_one_where_it_is_asked(first: str, mark: str) -> None:
    lines = (f"rows = {first}", "if mask is not None:", "    rows = ~mask.any(dim=-1)")
    used = (f"if rows is not None and rows.any():{mark}", "    x = x.masked_fill(rows[..., None], 0)")
    check_snippet(forward(*lines, *used), RULE)


@pytest.mark.parametrize("head", ["class RandomCrop(nn.Module):", "class Sizes(nn.Module):  # preprocesses"])
def test_a_name_of_code_for_samples_is_a_doubt(head: str) -> None:
    is_named = head.startswith("class RandomCrop")
    code = f"""\
import torch
from torch import nn


{head}
    def forward(self, image, sizes: torch.Tensor):
        if (sizes > 0).all():{MARK}{"?" if is_named else ""}
            image = image + sizes
        return image
"""
    [finding] = check_snippet(code, RULE).findings
    assert (Doubt.NAMED_OTHERWISE in finding.doubts) is is_named


def test_what_is_in_a_part_of_a_tensor() -> None:
    check_snippet(
        """
        import torch
        def generate(model, ids, stop):
            for _ in range(100):
                ids = torch.cat([ids, model(ids.cuda()).argmax(-1)], 1)
                if stop in ids[0, 3:]:  # <- tensor-truthiness-branch?
                    break
            return ids
        """,
        RULE,
    )
