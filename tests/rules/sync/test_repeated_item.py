"""TL303: equal reads in one block are flagged; the fix is safe only where nothing between can change the value."""

from __future__ import annotations

from typing import NamedTuple

import pytest
from laws import active, check_snippet, obey_laws
from twins import findings, fixed, program, run, training

from torchlint.finding import Applicability

RULE = "repeated-item"
NEW = "loss = F.cross_entropy(outputs, targets)"


class Case(NamedTuple):
    """What stands behind each step, and what else differs from the plain loop."""

    reads: str
    loss: str = "loss = criterion(outputs, targets)"
    before: str = "log = []"
    after: str = "return log"
    top: str = ""

    def code(self) -> str:
        return training(self.reads, loss=self.loss, before=self.before, after=self.after, top=self.top)


SAFE = {
    "a list": Case("log.append(loss.item())\nlog.append(loss.item())"),
    "printed": Case("print(loss.item())\nprint('%.3f' % loss.item())"),
    "one line": Case("log.append(loss.item()); log.append(loss.item())", NEW),
    "one statement": Case("log.append((loss.item(), loss.item()))", NEW),
    "a format string": Case("log.append(f'{loss.item():.3f} {loss.item():.5f}')"),
    "a width": Case("log.append(f'{loss.item():{len(str(loss.item()))}.3f}')"),
    "totals": Case(
        "total += loss.item()\nsquares += loss.item() ** 2",
        before="total = 0.0\nsquares = 0.0",
        after="return total, squares",
    ),
    "a dict": Case(
        "found['a'] = loss.item()\nfound['b'] = loss.item()\nlog.append(dict(found))", before="log = []\nfound = {}"
    ),
    "a logger": Case("logger.info(loss.item())\nlogger.info(loss.item())", top="logger = logging.getLogger('x')"),
    "another call": Case("log.append(loss.item())\noptimizer.zero_grad()\nlog.append(loss.item())", NEW),
    "a meter": Case(
        "meter.update(loss.item())\nmeter.update(loss.item())",
        NEW,
        top="class Meter:\n    sum = 0.0\n    def update(self, value):\n        self.sum += value\nmeter = Meter()",
        after="return meter.sum",
    ),
    "a scaled loss": Case(
        "log.append(loss.item())\noptimizer.zero_grad()\nlog.append(loss.item())", f"{NEW}\nloss = loss / 4"
    ),
    "a negated loss": Case(
        "log.append(loss.item())\noptimizer.zero_grad()\nlog.append(loss.item())", "loss = -criterion(outputs, targets)"
    ),
    "a sum of parameters": Case(
        "size = model.bias.sum()\nlog.append(size.item())\noptimizer.step()\nlog.append(size.item())"
    ),
    "a new loss": Case(
        "log.append(loss.item())\nlog.append(loss.item())\nloss = loss * 2\nlog.append(loss.item())", NEW
    ),
    "two losses": Case(
        "log.append(a.item())\nlog.append(b.item())\nlog.append(a.item())\nlog.append(b.item())",
        f"{NEW}\na = loss * 2\nb = loss * 3",
    ),
    "elif": Case(
        "if loss.item() > 1:\n    log.append(1)\nelif loss.item() > 0.5:\n    log.append(2)\nlog.append(loss.item())",
        NEW,
    ),
    "the first of a chain": Case("log.append(step < loss.item() < 3)\nlog.append(loss.item())", NEW),
    "in a branch": Case("print(loss.item())\nif step:\n    log.append(loss.item())\nlog.append(loss.item())", NEW),
    "around a loop": Case(
        "print(loss.item())\nfor k in range(3):\n    log.append(loss.item())\nprint(loss.item())", NEW
    ),
    "in a with": Case("with torch.no_grad():\n    log.append(loss.item())\n    log.append(loss.item())", NEW),
    "in a try": Case(
        "try:\n    log.append(loss.item())\n    log.append(loss.item())\n    raise ValueError\n"
        "except ValueError:\n    log.append(loss.item())\nfinally:\n    log.append(loss.item())",
        NEW,
    ),
    "behind a break": Case("log.append(loss.item())\nif step == 2: break\nlog.append(loss.item())", NEW),
    "behind a raise": Case(
        "log.append(loss.item())\nif loss.item() > 99:\n    raise ValueError(loss.item())\nlog.append(loss.item())", NEW
    ),
    "beside a wait": Case("loss.item()\nlog.append(loss.item())\nlog.append(loss.item())", NEW),
    "comments": Case("# first\nlog.append(loss.item())  # a\n# second\nlog.append(loss.item())  # b", NEW),
    "lines": Case("log.append(\n    loss.item()\n)\nlog.append(loss\n    .item())", NEW),
    "brackets beside keywords": Case(
        "a = 1 if(loss.item())else 2\nlog.append((a, 1 if(loss.item())else(loss.item())))", NEW
    ),
    "a name that is taken": Case(
        "loss_value = 7\nlog.append(loss.item())\nlog.append(loss.item())\nlog.append(loss_value)", NEW
    ),
    "a global name": Case(
        "log.append(loss.item())\nlog.append(loss.item())\nlog.append(loss_value)", NEW, top="loss_value = 3"
    ),
    "a name of a function inside": Case(
        "def inner():\n    return loss_value\nlog.append(loss.item())\nlog.append(loss.item())\nlog.append(inner())",
        NEW,
        top="loss_value = 3",
    ),
}

# What changes the tensor between the reads, or may.
_DOUBLE = "def kick(tensor):\n    tensor.data.mul_(2)"
UNSAFE = {
    "an opaque loss and call": Case("log.append(loss.item())\noptimizer.step()\nlog.append(loss.item())"),
    "an opaque loss and meter": Case(
        "meter.update(loss.item())\nmeter.update(loss.item())",
        "loss = meter(outputs, targets)",
        before="log = []\nmeter = Meter(log)",
        top="class Meter:\n    def __init__(self, log): self.log = log\n    def __call__(self, a, b):\n"
        "        self.kept = F.cross_entropy(a, b)\n        return self.kept\n    def update(self, value):\n"
        "        self.log.append(value)\n        self.kept.data.mul_(2)",
    ),
    "a detached alias": Case(
        "other = loss.detach()\nlog.append(loss.item())\nother.mul_(2)\nlog.append(loss.item())", NEW
    ),
    "a view": Case(
        "other = loss.view(1).detach()\nlog.append(loss.item())\nother[0] = 3\nlog.append(loss.item())", NEW
    ),
    "an array": Case(
        "other = loss.detach().numpy(force=True)\nlog.append(loss.item())\nother[...] = 3\nlog.append(loss.item())", NEW
    ),
    "another name": Case(
        "other, _ = loss, 1\nlog.append(loss.item())\nother.data.mul_(2)\nlog.append(loss.item())", NEW
    ),
    "a walrus": Case("(other := loss)\nlog.append(loss.item())\nother.data.mul_(2)\nlog.append(loss.item())", NEW),
    "or": Case("other = loss or 3\nlog.append(loss.item())\nother.data.mul_(2)\nlog.append(loss.item())", NEW),
    "max": Case(
        "other = max(loss, loss - 5)\nlog.append(loss.item())\nother.data.mul_(2)\nlog.append(loss.item())", NEW
    ),
    "a list that holds it": Case(
        "held = [loss]\nlog.append(loss.item())\nheld[0].data.mul_(2)\nlog.append(loss.item())", NEW
    ),
    "a dict that holds it": Case(
        "held = dict(a=loss)\nlog.append(loss.item())\nheld['a'].data.mul_(2)\nlog.append(loss.item())", NEW
    ),
    "an attribute that holds it": Case(
        "model.held = loss\nlog.append(loss.item())\nmodel.held.data.mul_(2)\nlog.append(loss.item())", NEW
    ),
    "a loop over it": Case(
        "for other in [loss]: pass\nlog.append(loss.item())\nother.data.mul_(2)\nlog.append(loss.item())", NEW
    ),
    "held since the last step": Case(
        "log.append(loss.item())\nif held: held[-1].data.mul_(2)\nlog.append(loss.item())\nheld.append(loss)",
        NEW,
        top="held = []",
    ),
    "a closure": Case("def kick(): loss.data.mul_(2)\nlog.append(loss.item())\nkick()\nlog.append(loss.item())", NEW),
    "a lambda": Case("kick = lambda: loss.data.mul_(2)\nlog.append(loss.item())\nkick()\nlog.append(loss.item())", NEW),
    "a default": Case(
        "def kick(it=loss): it.data.mul_(2)\nlog.append(loss.item())\nkick()\nlog.append(loss.item())", NEW
    ),
    "a call with it": Case("log.append(loss.item())\nkick(loss)\nlog.append(loss.item())", NEW, top=_DOUBLE),
    "a call with it by keyword": Case(
        "log.append(loss.item())\nkick(tensor=loss)\nlog.append(loss.item())", NEW, top=_DOUBLE
    ),
    "a call with it unpacked": Case(
        "log.append(loss.item())\nkick(*[loss])\nlog.append(loss.item())", NEW, top=_DOUBLE
    ),
    "a call before, in the line": Case("log.append((kick(loss), loss.item(), loss.item()))", NEW, top=_DOUBLE),
    "out=": Case(
        "log.append(loss.item())\nwith torch.no_grad(): torch.add(loss, 1, out=loss)\nlog.append(loss.item())", NEW
    ),
    "out= of the tensor itself": Case(
        "log.append(total.item())\nheld.mul_(2)\nlog.append(total.item())",
        f"{NEW}\nheld = torch.zeros(())\ntotal = torch.sum(loss.detach(), out=held)",
    ),
    "a hook": Case(
        "loss.register_hook(print)\nlog.append(loss.item())\noptimizer.step()\nlog.append(loss.item())", NEW
    ),
    "entering a context": Case(
        "held.append(loss)\nlog.append(loss.item())\nwith context(): log.append(loss.item())",
        NEW,
        top="held = []\n@contextlib.contextmanager\ndef context():\n    held[-1].data.mul_(2)\n    yield",
    ),
    "a parameter": Case(
        "log.append(model.bias.sum().item())\nlog.append(model.scale.item())\noptimizer.step()\nlog.append(model.scale.item())",
        before="log = []\nmodel.scale = torch.ones(())",
    ),
    "setattr": Case(
        "log.append(held.loss.item())\nsetattr(held, 'loss', loss * 2)\nlog.append(held.loss.item())",
        f"{NEW}\nheld.loss = loss.detach()",
        top="class Held: pass\nheld = Held()",
    ),
    "a global": Case(
        "log.append(kept.item())\nchange()\nlog.append(kept.item())",
        f"{NEW}\nkept = loss.sum()",
        before="global kept\nlog = []",
        top="def change():\n    global kept\n    kept = kept + 1",
    ),
    "nonlocal": Case(
        "log.append(loss.item())\nchange()\nlog.append(loss.item())",
        NEW,
        before="log = []\nloss = None\ndef change():\n    nonlocal loss\n    loss = loss * 2",
    ),
    "yield": Case("log.append(loss.item())\nyield loss\nlog.append(loss.item())", NEW, after="yield log"),
    "locals": Case("log.append(loss.item())\nlog.append(loss.item())\nlog.append(sorted(locals()))", NEW),
    "evaluated": Case("log.append(loss.item())\nlog.append(loss.item())\nlog.append(eval('len(dir())'))", NEW),
}

NOT_FIXED = {
    "both names taken": Case(
        "loss_value = loss_item = 7\nlog.append(loss.item())\nlog.append(loss.item())\nlog.append(loss_value + loss_item)",
        NEW,
    ),
    "written down": Case("log.append(f'{loss.item()=}')\nlog.append(f'{loss.item()=:.3f}')", NEW),
    "a comment inside": Case("log.append(loss.item())\nlog.append(\n    loss  # here\n    .item()\n)", NEW),
    "names alike": Case(
        "log.append(a.loss.item())\nlog.append(a_loss.item())\nlog.append(a.loss.item())\nlog.append(a_loss.item())",
        f"{NEW}\na_loss = loss * 2\nclass a: pass\na.loss = loss.detach()",
    ),
}

NOT_EQUAL = {
    "in place": Case("log.append(loss.item())\nwith torch.no_grad():\n    loss.mul_(2)\nlog.append(loss.item())", NEW),
    "its data in place": Case("log.append(loss.item())\nloss.data.mul_(2)\nlog.append(loss.item())", NEW),
    "added to": Case("log.append(loss.item())\nwith torch.no_grad():\n    loss += 1\nlog.append(loss.item())", NEW),
    "an element": Case(
        "log.append(loss.item())\nwith torch.no_grad():\n    loss[...] = 1\nlog.append(loss.item())", NEW
    ),
    "before, in the line": Case("loss.data.mul_(2); log.append(loss.item()); log.append(loss.item())", NEW),
    "bound": Case("log.append(loss.item())\nloss, _ = loss * 2, 1\nlog.append(loss.item())", NEW),
    "bound in the line": Case("log.append(loss.item()); loss = loss * 2; log.append(loss.item())", NEW),
    "bound in a branch": Case(
        "log.append(loss.item())\nif step % 2:\n    loss = loss * 2\nlog.append(loss.item())", NEW
    ),
    "bound by for": Case("log.append(loss.item())\nfor loss in (loss * 2,):\n    pass\nlog.append(loss.item())", NEW),
    "bound by with": Case(
        "log.append(loss.item())\nwith contextlib.nullcontext(loss * 2) as loss:\n    pass\nlog.append(loss.item())",
        NEW,
    ),
    "bound by a walrus": Case(
        "log.append(loss.item())\nif (loss := loss * 2) is not None:\n    log.append(loss.item())", NEW
    ),
    "bound by a walrus inside": Case(
        "log.append(loss.item())\n[(loss := loss * 2) for _ in range(2)]\nlog.append(loss.item())", NEW
    ),
    "bound by a class": Case(
        "log.append(loss.item())\nclass loss:\n    item = staticmethod(lambda: 3)\nlog.append(loss.item())", NEW
    ),
    "bound by match": Case(
        "log.append(loss.item())\nmatch loss * 2:\n    case loss: pass\nlog.append(loss.item())", NEW
    ),
    "deleted": Case("log.append(loss.item())\nother = loss * 2\ndel loss\nloss = other\nlog.append(loss.item())", NEW),
    "perhaps not read": Case("if step > 1 and loss.item() > 0.1:\n    log.append(loss.item())", NEW),
    "never read": Case("a = bad.item() if step > 9 else 0\nb = bad.item() if step > 9 else 0\nlog.append(a + b)", NEW),
    "not read in a chain": Case("log.append(5 < step < bad.item() < bad.item())", NEW),
    "not read in elif": Case(
        "if step < 9:\n    log.append(1)\nelif bad.item() > 0.1:\n    log.append(bad.item())", NEW
    ),
    "in a guard": Case(
        "match step:\n    case 0 if loss.item() > 0: log.append(loss.item())\n    case _: log.append(loss.item())", NEW
    ),
    "decided by itself": Case("if loss.item() > 99:\n    print(loss.item())", NEW),
    "a property": Case(
        "log.append(noise.level.item())\nlog.append(noise.level.item())",
        NEW,
        top="class Noise:\n    times = 0\n    @property\n    def level(self):\n        self.times += 1\n"
        "        return torch.tensor(float(self.times))\nnoise = Noise()",
    ),
}


def each(cases: dict[str, Case]) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("case", cases.values(), ids=cases.keys())


@each(SAFE)
@pytest.mark.parametrize("batches", [4, 0])
def test_a_safe_fix_changes_nothing_that_can_be_seen(case: Case, batches: int) -> None:
    code = case.code()
    made = fixed(code, RULE, Applicability.SAFE)
    assert made != code
    assert made.count(".item()") < code.count(".item()")
    assert run(made, batches) == run(code, batches)
    assert not run(code, batches).result.startswith(("TypeError", "NameError", "AttributeError", "SyntaxError"))


@each(UNSAFE)
def test_what_may_change_the_value_makes_the_fix_unsafe(case: Case) -> None:
    code = case.code()
    found = findings(code, RULE)
    assert [finding.fix.applicability for finding in found if finding.fix] == [Applicability.UNSAFE] * len(found)
    assert found
    assert fixed(code, RULE, Applicability.SAFE) == code


@each(NOT_FIXED)
def test_what_no_name_can_replace_is_reported_only(case: Case) -> None:
    found = findings(case.code(), RULE)
    assert found
    assert not any(finding.fix for finding in found)


@each(NOT_EQUAL)
def test_reads_of_other_values_are_not_reported(case: Case) -> None:
    assert findings(case.code(), RULE) == ()


@pytest.mark.parametrize("name", ["one line", "a width", "elif", "in a try", "comments", "lines", "two losses"])
def test_snippets_obey_the_laws(name: str) -> None:
    obey_laws(SAFE[name].code(), active(RULE))


def test_at_module_level_the_new_name_could_be_seen() -> None:
    result = check_snippet(
        """
        import torch
        import torch.nn.functional as F
        for inputs, targets in loader:
            loss = F.mse_loss(model(inputs.cuda()), targets.cuda())
            loss.backward()
            optimizer.step()
            print(loss.item())
            print(loss.item())  # <- repeated-item
        """,
        RULE,
    )
    assert [finding.fix.applicability for finding in result.findings if finding.fix] == [Applicability.UNSAFE]


def test_in_a_class_body_the_new_name_would_become_an_attribute() -> None:
    code = training(
        "class Report:\n    loss = loss.item()\n    half = loss.item() / 2\nlog.append(sorted(vars(Report)))", loss=NEW
    )
    assert fixed(code, RULE, Applicability.SAFE) == code


def test_an_attribute_of_its_own_class_is_safe_between_plain_statements() -> None:
    code = program(
        """
        class Trainer:
            def __init__(self, criterion):
                self.criterion = criterion
                self.loss = torch.zeros(())

            def step(self, log):
                log = []
                log.append(self.loss.item())
                log.append(self.loss.item())
                return log

            def train(self, model, loader, optimizer):
                log = []
                for inputs, targets in loader:
                    self.loss = self.criterion(model(inputs), targets)
                    optimizer.zero_grad()
                    self.loss.backward()
                    optimizer.step()
                    log.append(self.step(log))
                return log

        def train(model, loader, optimizer, criterion):
            return Trainer(criterion).train(model, loader, optimizer)
        """
    )
    made = fixed(code, RULE, Applicability.SAFE)
    assert "loss_value = self.loss.item()" in made
    assert run(made) == run(code)


def test_the_second_read_is_flagged() -> None:
    check_snippet(
        """
        import torch
        def train(model, loader, optimizer, criterion, writer):
            for step, (inputs, targets) in enumerate(loader):
                loss = criterion(model(inputs.cuda()), targets.cuda())
                loss.backward()
                optimizer.step()
                print(loss.item())
                writer.add_scalar("loss", loss.item(), step)  # <- repeated-item
                writer.add_scalar("again", loss.item(), step)
        """,
        RULE,
        fixed="""
        import torch
        def train(model, loader, optimizer, criterion, writer):
            for step, (inputs, targets) in enumerate(loader):
                loss = criterion(model(inputs.cuda()), targets.cuda())
                loss.backward()
                optimizer.step()
                loss_value = loss.item()
                print(loss_value)
                writer.add_scalar("loss", loss_value, step)
                writer.add_scalar("again", loss_value, step)
        """,
    )


def test_a_second_read_that_waits_for_nothing_more() -> None:
    check_snippet(
        """
        import math
        import torch
        def train(model, loader, optimizer, criterion, meter):
            for inputs, targets in loader:
                loss = criterion(model(inputs.cuda()), targets.cuda())
                if not math.isfinite(loss.item()):
                    raise ValueError
                loss.backward()
                optimizer.step()
                torch.cuda.synchronize()
                meter.update(loss=loss.item())
        """,
        RULE,
    )


def test_a_function_that_tells_every_nth_step() -> None:
    code = """
        import torch
        def divides(n, by):
            return n % by == 0
        def train(model, loader, optimizer, criterion, every):
            for step, (inputs, targets) in enumerate(loader):
                loss = criterion(model(inputs.cuda()), targets.cuda())
                loss.backward()
                optimizer.step()
                if divides(step, {}):
                    print(loss.item())
                    print(loss.item())  {}
        """
    check_snippet(code.format("every", ""), RULE)
    check_snippet(code.format("2", f"# <- {RULE}"), RULE)


def test_a_method_between_the_reads_that_binds_the_attribute() -> None:
    code = """
        import torch
        from torch import nn
        class Kernel(nn.Module):
            def __init__(self):
                super().__init__()
                self.register_buffer("length", torch.tensor(0))
            def grow(self, least):
                self.prepare()
                {} = self.length + least
            def prepare(self):
                pass
            def forward(self, x, least):
                if self.length.item() == 0:
                    self.grow(least)
                long = self.length.item() / 2  {}
                return x * long
    """
    check_snippet(code.format("self.length", ""), RULE)
    check_snippet(code.format("length", f"# <- {RULE}"), RULE)
