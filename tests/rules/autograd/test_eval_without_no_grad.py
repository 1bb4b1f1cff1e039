"""TL401: where a model is only evaluated; what `torch.no_grad()` changes, on CPU torch."""

from __future__ import annotations

import textwrap
from importlib.resources import files
from typing import Any

import pytest
import torch
from laws import active, check_snippet, lint
from torch import nn

RULE = "eval-without-no-grad"
HERE = f"  # <- {RULE}"
VALIDATE = "def validate(model, loader):\n    model.eval()\n    for x in loader:\n        print(model(x).sum())\n"
HEAD = "import torch\nimport torch.nn.functional as F\nfrom torch import nn\n"


def check(code: str, fixed: str | None = None) -> None:
    code, fixed = textwrap.dedent(code), None if fixed is None else HEAD + textwrap.dedent(fixed)
    check_snippet(HEAD + code, RULE, fixed=fixed)


@pytest.mark.parametrize(
    "code",
    [
        f"""
        def validate(m, dl):
            m.eval()
            for x, y in dl:
                out = m(x){HERE}
                print((out.argmax(1) == y).sum())
        """,
        f"""
        model.eval()
        preds = []
        for x in test_loader:
            preds.append(model(x).argmax(1).cpu()){HERE}
        """,
        f"""
        class Experiment(Base):
            def vali(self, data, loader, criterion):
                self.model.eval()
                losses = []
                for x, y in loader:
                    pred = self.model(x){HERE}
                    losses.append(criterion(pred.detach().cpu(), y).item())
                self.model.train()
                return losses
        """,
        f"""
        def predict(x):
            net.eval()
            return net(x).softmax(1){HERE}
        """,
        f"""
        model.train(False)
        out = model(img){HERE}
        print(out.shape)
        """,
        f"""
        def evaluate(model, loader, criterion):
            total = 0
            for x, y in loader:
                loss = criterion(model(x), y){HERE}
                total += loss.item()
            return total

        print(evaluate(model, loader, nn.MSELoss()))
        """,
        f"""
        class Experiment(Base):
            def process(self, batch):
                return self.model(batch[0])

            def fit(self, loader, optimizer):
                self.model.train()
                for batch in loader:
                    self.process(batch).sum().backward()
                    optimizer.step()

            def test(self, loader):
                self.model.eval()
                for batch in loader:
                    pred = self.process(batch){HERE}
                    print(pred.argmax(1))
        """,
        f"""
        gen = Generator()
        gen.eval()
        imgs = gen(z.cuda()){HERE}
        save_image(imgs, "out.png")
        """,
        f"""
        def demo(net, camera):
            def predict(frame):
                y = net(transform(frame)){HERE}
                for box in y.data:
                    draw(frame, box.tolist())
                return frame

            while True:
                show(predict(camera.read()))

        demo(net.eval(), camera)
        """,
        f"""
        def main(args):
            encoder = Encoder(args).cuda().eval()
            encoder.load_state_dict(torch.load(args.path))
            feature = encoder(load(args.image)){HERE}
            print(decode(feature)[0].cpu().numpy())
        """,
        f"""
        def test():
            model.eval()
            output = model(features, adj){HERE}
            print(F.nll_loss(output, labels).item())

        test()
        """,
        f"""
        for epoch in range(9):
            model.train()
            for x, y in train_loader:
                pred = model(x)
                loss = F.mse_loss(pred, y)
                loss.backward()
                optimizer.step()
            if epoch % 3 == 0:
                model.eval()
                x, y = next(iter(test_loader))
                pred = model(x){HERE}
                loss = F.mse_loss(pred, y)
                print(loss.item())
        """,
    ],
)
def test_evaluations(code: str) -> None:
    check(code)


@pytest.mark.parametrize(
    "code",
    [
        """
        def validate(self, loader):
            self.teacher_model.eval()
            for x in loader:
                teacher = self.accelerator.unwrap_model(self.teacher_model)
                with torch.no_grad():
                    print(teacher(x).sum())
        """,
        """
        @torch.no_grad()
        def validate(model, loader):
            model.eval()
            for x in loader:
                print(model(x).sum())
        """,
        """
        @torch.inference_mode
        def validate(model, loader):
            model.eval()
            for x in loader:
                print(model(x).sum())
        """,
        """
        model.eval()
        with torch.inference_mode():
            out = model(x)
        """,
        """
        model.eval()
        with torch.set_grad_enabled(train):
            print(model(x).sum())
        """,
        """
        torch.set_grad_enabled(False)

        def validate(model, loader):
            model.eval()
            for x in loader:
                print(model(x).sum())
        """,
        """
        off = torch.no_grad()
        model.eval()
        with off:
            print(model(x).sum())
        """,
        """
        from contextlib import contextmanager

        @contextmanager
        def evaluating(model):
            model.eval()
            with torch.no_grad():
                yield
            model.train()

        def report(model, x):
            model.eval()
            with evaluating(model):
                print(model(x).sum())
        """,
        """
        model.eval()
        x.requires_grad_()
        loss = f(model(x))
        g = torch.autograd.grad(loss, x)
        """,
        """
        def fgsm(model, x, y):
            model.eval()
            loss = F.cross_entropy(model(x), y)
            loss.backward()
        """,
        """
        def train(model, bn, loader):
            bn.eval()
            for x, y in loader:
                F.cross_entropy(model(x), y).backward()
        """,
        """
        model.eval()
        ids = model.generate(**enc)
        """,
        """
        from lightning.pytorch import LightningModule

        class Lit(LightningModule):
            def validation_step(self, batch, index):
                self.eval()
                print(self.model(batch).sum())
        """,
        """
        def _validate(model, loader):
            model.eval()
            for x in loader:
                print(model(x).sum())

        def run(model, loader):
            with torch.no_grad():
                _validate(model, loader)
        """,
        """
        m.eval()
        for p in m.parameters():
            p.requires_grad_(False)
        print(m(x).sum())
        """,
        """
        def step(g, d, z, optimizer):
            d.eval()
            score = d(g(z))
            d.train()
            score.mean().backward()
            optimizer.step()
        """,
        """
        def train(model, loader, optimizer):
            for x in loader:
                model.eval()
                pseudo = model(x)
                model.train()
                F.mse_loss(model(x), pseudo).backward()
                optimizer.step()
        """,
        """
        def train(model, loader, optimizer):
            memory = []
            for x in loader:
                model.eval()
                memory.append(model(x))
                model.train()
                F.mse_loss(model(x), memory[-1]).backward()
                optimizer.step()
        """,
        """
        def evaluate(model, x):
            return model(x)

        def train(model, x, optimizer):
            evaluate(model, x).sum().backward()
            optimizer.step()
        """,
        """
        def evaluate(model, x):
            model.eval()
            return model(x)

        def train(model, x, optimizer):
            evaluate(model, x).sum().backward()
            optimizer.step()
        """,
        """
        def test_all(model, loader):
            for x in loader:
                print(model(x).sum())  # whoever calls this may have turned autograd off
        """,
        """
        from ultralytics import YOLO

        def detect(source):
            model = YOLO("n.pt")
            model.eval()
            for frame in source:
                print(model(frame, conf=0.5)[0].boxes)
        """,
        """
        def validate(criterion, loader):
            criterion.eval()
            for x, y in loader:
                print(criterion(x, y).item(), nn.Softmax(1)(x))
        """,
        """
        def validate(model, loader):
            model.eval()
            if export:
                torch.onnx.export(model, x, "net.onnx")
            print(model(x).sum())
        """,
        """
        def build(options):
            model.eval()
            return Model(options)
        """,
        """
        class Net(nn.Module):
            def predict(self, x):
                return self(x).argmax(1).item()  # <- eval-without-no-grad?
        """,
        """
        def test():
            net = Net()
            x = torch.randn(1, 3, 32, 32)
            print(net(x.cuda()).size())

        test()
        """,
        """
        def evaluate(envs, Model: nn.Module):
            agent = Model(envs)
            print(agent.score(envs).item())

        evaluate(envs, Agent)
        """,
        """
        async def predict(request):
            net.eval()
            return net(await request.tensor()).tolist()
        """,
    ],
)
def test_look_alikes(code: str) -> None:
    check(code)


# The fix


def test_the_decorator_stands_next_to_def() -> None:
    check(
        f"""
        class Runner:
            @staticmethod
            # Over all of it.
            def evaluate(model, loader):
                model.eval()
                return [model(x).argmax(1).tolist() for x in loader]{HERE}
        """,
        """
        class Runner:
            @staticmethod
            # Over all of it.
            @torch.no_grad()
            def evaluate(model, loader):
                model.eval()
                return [model(x).argmax(1).tolist() for x in loader]
        """,
    )


def test_statements_are_wrapped_with_their_comments() -> None:
    check(
        f'''
        def main(loader):
            model = Net().eval()

            # One pass.
            for x in loader:
                out = model(  # now{HERE}
                    x,
                )

                print("""
          first
            second""", out.sum())  # done
              # odd
            # Behind.
            print("end")
        '''.replace(f"  # now{HERE}", HERE),
        '''
        def main(loader):
            model = Net().eval()

            # One pass.
            with torch.no_grad():
                for x in loader:
                    out = model(
                        x,
                    )

                    print("""
          first
            second""", out.sum())  # done
              # odd
            # Behind.
            print("end")
        ''',
    )


def test_calls_far_apart_are_wrapped_one_by_one() -> None:
    between = "\n".join(f"print({number})" for number in range(9))
    check_snippet(
        f"import torch\nmodel.eval()\na = model(x){HERE}\n{between}\nb = model(a.data)\n",
        RULE,
        fixed=f"import torch\nmodel.eval()\nwith torch.no_grad():\n    a = model(x)\n{between}\n"
        "with torch.no_grad():\n    b = model(a.data)\n",
    )


def test_wrapping_reaches_the_end_of_a_file_without_a_newline() -> None:
    check_snippet(
        f"import torch\nmodel.eval()\nprint(model(x).sum()){HERE}",
        RULE,
        fixed="import torch\nmodel.eval()\nwith torch.no_grad():\n    print(model(x).sum())",
    )


@pytest.mark.parametrize(
    ("imports", "written"),
    [
        ("import torch as th", "th.no_grad()"),
        ("from torch import no_grad", "no_grad()"),
        ("import torch.nn as nn\nimport torch.cuda", "torch.no_grad()"),
    ],
)
def test_torch_goes_by_its_name_in_the_file(imports: str, written: str) -> None:
    marked = VALIDATE.removesuffix("\n") + HERE + "\n"
    check_snippet(f"{imports}\n\n\n{marked}", RULE, fixed=f"{imports}\n\n\n@{written}\n{VALIDATE}")


@pytest.mark.parametrize(
    "code",
    [
        f"import torch.nn as nn\n{VALIDATE}",
        f"{VALIDATE}import torch\n",
        "import torch\ndef predict(loader):\n    net.eval()\n    for x in loader:\n        yield net(x).tolist()\n",
    ],
)
def test_no_fix(code: str) -> None:
    (finding,) = lint(code, active(RULE)).findings
    assert finding.fix is None


# What it changes


def run(name: str) -> dict[str, Any]:
    names: dict[str, Any] = {"__name__": name}
    code = (files("torchlint.fixtures") / "eval_without_no_grad" / name).read_text("utf-8")
    exec(compile(code, name, "exec"), names)  # noqa: S102 - our own fixture
    return names


def kept_by(names: dict[str, Any]) -> int:
    """Tensors that the graph of one validation keeps."""
    kept: list[torch.Tensor] = []

    def note(tensor: torch.Tensor) -> torch.Tensor:
        kept.append(tensor)
        return tensor

    model = nn.Sequential(nn.Linear(4, 4), nn.ReLU(), nn.Linear(4, 10))
    batches = [(torch.randn(3, 4), torch.randint(10, (3,)))]
    with torch.autograd.graph.saved_tensors_hooks(note, lambda tensor: tensor):
        names["validate"](model, batches, nn.CrossEntropyLoss())
    return len(kept)


def test_slow_keeps_activations_and_fast_does_not() -> None:
    assert kept_by(run("slow.py")) > 0
    assert kept_by(run("fast.py")) == 0


def test_what_makes_the_fix_unsafe() -> None:
    net = nn.Linear(2, 1)
    x = torch.ones(1, 2, requires_grad=True)

    @torch.no_grad()  # type: ignore[untyped-decorator]
    def predict(x: torch.Tensor) -> torch.Tensor:
        net.eval()
        return net(x)

    with pytest.raises(RuntimeError, match="does not require grad"):
        predict(x).sum().backward()

    @torch.no_grad()  # type: ignore[untyped-decorator]
    def slope(*, again: bool) -> torch.Tensor:
        with torch.set_grad_enabled(again):
            return torch.autograd.grad(net(x).sum(), x)[0]

    with pytest.raises(RuntimeError, match="does not require grad"):
        slope(again=False)
    assert torch.equal(slope(again=True), net.weight)


def test_no_grad_is_no_eval() -> None:
    dropout, norm = nn.Dropout(0.5), nn.BatchNorm1d(2)
    with torch.no_grad():
        assert (dropout(torch.ones(1000)) == 0).any()
        norm(torch.rand(8, 2))
    assert norm.running_mean is not None
    assert (norm.running_mean != 0).all()


@pytest.mark.parametrize(
    "code",
    [
        """
        net = Net().cuda()
        net.eval()
        net(first_frame())
        for frame in frames:
            with torch.no_grad():
                print(net(frame.cuda()).argmax())
        """,
        """
        if __name__ == "__main__":
            net = Net().cuda()
            net.eval()
            x = torch.rand(2, 3, 32, 32).cuda()
            y = net(x)
            print(y.size(), y.shape)
        """,
        """
        net = Net().cuda()
        net.eval()
        y = net(torch.ones(1, 3, 32, 32).cuda())
        torch.save(net.state_dict(), path)
        """,
        """
        net = build_net(load(path))
        net.eval()
        picture = net(read(image)).argmax(1)  # <- eval-without-no-grad?
        show(picture.numpy())
        """,
        """
        sampler = Sampler(source)
        sampler.eval().requires_grad_(False).to(device)
        for label in labels:
            print(sampler(label).mean())
        """,
        """
        def mean_of(path, labels):
            generator = load(path).eval().requires_grad_(False).to(device)
            for label in labels:
                print(generator(label).mean())
        """,
        """
        from torch.autograd import Variable
        class Net(nn.Module):
            def tile(self, image):
                return self.forward(Variable(image, volatile=True)).data
        net = Net().cuda()
        net.eval()
        print(net.tile(image))
        """,
    ],
)
def test_trials_frozen_models_and_volatile_inputs(code: str) -> None:
    check(code)


BASE = """
class Base:
    def everything(self, loader):
        with torch.{mode}():
            for x in loader:
                self.translation(x)

class Derived({base}):
    def translation(self, x):
        self.model.eval()
        print(self.model(x).argmax(1).tolist()){mark}
"""


@pytest.mark.parametrize(
    ("mode", "base", "mark"), [("no_grad", "Base", ""), ("enable_grad", "Base", HERE), ("no_grad", "object", HERE)]
)
def test_a_class_that_is_extended_calls_the_method(mode: str, base: str, mark: str) -> None:
    check_snippet(HEAD + BASE.format(mode=mode, base=base, mark=mark), RULE)


STEP = """
from framework import Agent

class Mine({base}):
    def {name}(self, x):
        self.model.eval()
        return self.model(x).argmax(1).tolist(){mark}
"""


@pytest.mark.parametrize(
    ("base", "name", "mark"), [("Agent", "eval_step", ""), ("object", "eval_step", HERE), ("Agent", "predict", HERE)]
)
def test_a_class_of_another_file_calls_the_hook(base: str, name: str, mark: str) -> None:
    check_snippet(HEAD + STEP.format(base=base, name=name, mark=mark), RULE)


CASE = """
import unittest

class Cases({base}):
    def looks(self):
        def at(net, batches):
            net.eval()
            for x in batches:
                print(net(x).argmax(1)){mark}
        at(nn.Linear(2, 2), self.batches)
"""


@pytest.mark.parametrize(("base", "mark"), [("unittest.TestCase", ""), ("object", HERE)])
def test_a_test_case_looks_at_a_model(base: str, mark: str) -> None:
    check_snippet(HEAD + CASE.format(base=base, mark=mark), RULE)


SCRIPT = """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.out = nn.Linear(1, 1)

    def forward(self, x):
        return self.out(x)

net = Net(){move}
for step in range(500):
    if step % 10 == 0:
        net.eval()
        curve = net(xs){mark}
        draw(curve.data)
        net.train()
"""


@pytest.mark.parametrize(("move", "mark"), [("", f"{HERE}?"), (".cuda()", HERE)])
def test_a_script_on_the_cpu_looks_now_and_then(move: str, mark: str) -> None:
    check_snippet(HEAD + SCRIPT.format(move=move, mark=mark), RULE)


@pytest.mark.parametrize(
    ("call", "mark"),
    [
        ("average.ema(model)", ""),
        ("average.net(inputs)", "  # <- eval-without-no-grad"),
    ],
)
def test_what_is_given_a_model_runs_none_of_its_own(call: str, mark: str) -> None:
    check_snippet(
        f"""
        import torch
        from helpers import Average
        from nets import Net
        def sample(path, inputs):
            model = torch.nn.DataParallel(Net()).cuda()
            average = Average()
            average.eval()
            average.load_state_dict(torch.load(path))
            print({call}){mark}
        """,
        RULE,
    )


@pytest.mark.parametrize(
    ("made", "mark"), [("torch.rand(2, 4)", ""), ("torch.load('x.pt')", "  # <- eval-without-no-grad")]
)
def test_a_file_of_models_tries_one_out(made: str, mark: str) -> None:
    check_snippet(
        f"""
        import torch
        from torch import nn
        class Net(nn.Module):
            def __init__(self):
                super().__init__()
                self.layer = nn.Linear(4, 4)
            def forward(self, x):
                return {{"mean": x.mean(), "all": self.layer(x.cuda())}}
        if __name__ == "__main__":
            net = Net().cuda()
            net.eval()
            out = net({made}.cuda()){mark}
            for key in sorted(out):
                print(key, out[key].shape)
        """,
        RULE,
    )


def test_a_call_to_warm_up_is_no_evaluation() -> None:
    code = """
        import torch
        def test(model, loader, device, half):
            model.eval()
            image = torch.zeros((1, 3, 64, 64), device=device)
            {}
            for images, _ in loader:
                with torch.no_grad():
                    print(model(images.to(device)).argmax(1))
    """
    check_snippet(code.format('_ = model(image.half() if half else image) if device.type != "cpu" else None'), RULE)
    check_snippet(code.format("model(image)"), RULE)
    check_snippet(code.format(f"print(model(image).argmax())  # <- {RULE}"), RULE)


TRAINING = """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(4, 4)
    def forward(self, x):
        return self.layer(x)
net, judge = Net(), Net()
optimizer = torch.optim.SGD(judge.parameters(), 0.1)
def train(loader, memory):
    for x, y in loader:
        {}
        optimizer.zero_grad()
        loss = F.mse_loss(judge(x), y)
        loss.backward()
        optimizer.step()
"""


@pytest.mark.parametrize(
    "lines",
    [
        f"fake = net(x).detach(){HERE}",
        f"fake = net(x){HERE}\n        y = y + judge(fake.detach()).detach(){HERE}",
        f"hits = (net(x).argmax(1) == y).sum(){HERE}",
        f"out = net(x){HERE}\n        shape, top = out.shape, out[:, 0].softmax(0).argmax()",
        f"out = net(x){HERE}\n        near, top = (out - y).abs() < 1, out.argmax()",
        f"action = torch.distributions.Categorical(logits=net(x)).sample(){HERE}",
        f"y = net(x).data{HERE}",
        f"aside = net(x).mean().item(){HERE}",
        f"action, _ = net(x){HERE}\n        action = action.cpu().data.numpy().flatten()",
        f"out, (state, _) = net(x){HERE}\n        y = out.detach() + state.detach()",
    ],
)
def test_a_graph_that_all_uses_drop(lines: str) -> None:
    check(TRAINING.format(lines))


@pytest.mark.parametrize(
    "lines",
    [
        "out = net(x)\n        loss = F.mse_loss(out, y) + out.detach().mean()\n        loss.backward()",
        "fake = net(x)\n        memory.append(fake)\n        y = fake.detach()",
        "fake = net(x)\n        y = look(fake) + fake.detach()",
        "self.fake = fake = net(x)\n        y = fake.detach()",
        "dist = torch.distributions.Normal(net(x), 1)\n        y = dist.sample()\n        (-dist.log_prob(y)).mean().backward()",
        "dist = torch.distributions.Normal(net(x), 1)\n        y = dist.rsample().detach() + dist.rsample()",
        "with torch.no_grad():\n            fake = net(x).detach()",
        "out, state = net(x)\n        state = state.detach()\n        F.mse_loss(out, y).backward()",
        "out, (state, _) = net(x)\n        memory.append(state)\n        y = out.detach()",
        "out, *memory = net(x)\n        y = out.detach()",
        "out, memory[0] = net(x)\n        y = out.detach()",
        "out = net(x)\n        print(out.shape)",
        "y = F.relu(x).detach()",
    ],
)
def test_a_graph_that_something_may_use(lines: str) -> None:
    check(TRAINING.format(lines))


def test_now_and_then_and_once() -> None:
    check(TRAINING.format(f"if x.shape[0] % 100 == 0:\n            show(net(x).detach().numpy()){HERE}"))
    check(TRAINING.format(f"if len(memory) % 100 == 0:\n            show(net(x).detach().numpy()){HERE}?"))
    check(TRAINING.format("pass") + f"show(net(torch.load('x')).detach().numpy()){HERE}?\n")


@pytest.mark.parametrize(
    ("line", "is_fixed"),
    [
        ("fake = net(x).detach()", True),
        ("top = net(x).softmax(-1).detach().argmax(-1)", True),
        ("loss = F.mse_loss(judge(x), net(x).detach())", False),
        ("y = y + net(x).detach()", False),
        ("y = net(x).detach().mul(y)", False),
        ("fake = net(make(x)).detach()", False),
        ("print(net(x).detach())", False),
    ],
)
def test_a_fix_leaves_the_graphs_of_others_alone(line: str, *, is_fixed: bool) -> None:
    code = HEAD + TRAINING.format(line)
    result = lint(code, active(RULE))
    (found,) = [each for each in result.findings if each.message_id == "dropped"]
    assert (found.fix is not None) is is_fixed


def test_a_method_that_a_base_elsewhere_may_call() -> None:
    code = """
        from policies import Base
        class Net(nn.Module):
            def __init__(self):
                super().__init__()
                self.layer = nn.Linear(4, 4)
            def forward(self, x):
                return self.layer(x)
        class Policy({}):
            def __init__(self):
                self.net = Net()
            def act(self, loader):
                for x in torch.utils.data.DataLoader(loader):
                    y = self.net(x).argmax(1){}
                    yield y
    """
    check(code.format("Base", f"{HERE}?"))
    check(code.format("object", HERE))


def test_in_a_function_whose_callers_turned_autograd_off() -> None:
    check(
        TRAINING.format("with torch.no_grad():\n            y = guess(x)")
        + "def guess(x):\n    return net(x).argmax(1)\n"
    )


def test_without_the_graph_the_numbers_are_the_same() -> None:
    torch.manual_seed(0)
    net, x = nn.Sequential(nn.Linear(4, 4), nn.BatchNorm1d(4), nn.Dropout()), torch.randn(8, 4)
    torch.manual_seed(1)
    with_graph, state = net(x).detach(), {name: part.clone() for name, part in net.state_dict().items()}
    net[1].reset_running_stats()
    torch.manual_seed(1)
    with torch.no_grad():
        without = net(x).detach()
    assert torch.equal(with_graph, without)
    assert all(torch.equal(part, state[name]) for name, part in net.state_dict().items())


FURTHER = {
    "a model that was saved whole": """
        model = torch.load("model.pt")
        if torch.cuda.is_available():
            model = model.to("cuda")
        out = model(torch.rand(1, 3, 8, 8))  # <- eval-without-no-grad?
        print(out.cpu()[0].detach().numpy())
        table = torch.load("table.pt")["a"]
        print(table(torch.rand(3)).detach())
        """,
    "what a module does itself, in sight of all that call it": """
        class Net(nn.Module):
            def __init__(self):
                super().__init__()
                self.layer = nn.Linear(4, 4)
            def forward(self, x):
                return self.layer(x)
            def predict(self, x):
                scores = []
                for label in range(10):
                    scores.append(self.layer(x + label).sum(1))  # <- eval-without-no-grad
                return torch.stack(scores).argmax(0)
            def predict_all(self, x):
                scores = []
                for label in range(10):
                    scores.append(self.layer(x + label).sum(1))
                return torch.stack(scores).argmax(0)
        net = Net()
        for x in loader:
            print(net.predict(x))
        """,
    "target networks": """
        class Net(nn.Module):
            def __init__(self):
                super().__init__()
                self.layer = nn.Linear(4, 4)
            def forward(self, x):
                return self.layer(x)
        class Agent:
            def __init__(self):
                self.critic, self.critic_target, self.actor_target = Net(), Net(), Net()
                self.optimizer = torch.optim.Adam(self.critic.parameters())
            def update(self, loader):
                for s, a, r, after in loader:
                    action = self.actor_target(after)  # <- eval-without-no-grad
                    value = self.critic_target(torch.cat([after, action], 1))
                    value = (r + 0.99 * value).detach()
                    loss = F.mse_loss(self.critic(torch.cat([s, a], 1)), value)
                    self.optimizer.zero_grad()
                    loss.backward()
                    self.optimizer.step()
        """,
    "an action that the loss needs": """
        class Net(nn.Module):
            def __init__(self):
                super().__init__()
                self.layer = nn.Linear(4, 4)
            def forward(self, x):
                return self.layer(x)
        class Agent:
            def __init__(self):
                self.critic, self.actor = Net(), Net()
                self.optimizer = torch.optim.Adam(self.actor.parameters())
            def update(self, loader):
                for s, r in loader:
                    action = self.actor(s)
                    value = self.critic(torch.cat([s, action], 1))
                    print(value.detach())
                    loss = -value.mean() + action.square().mean()
                    self.optimizer.zero_grad()
                    loss.backward()
                    self.optimizer.step()
        """,
}


@pytest.mark.parametrize("code", FURTHER.values(), ids=FURTHER)
def test_further_shapes(code: str) -> None:
    check(code)


def helper(body: str, inner: str = "return torch.cat(values.square().unbind(0), 0)") -> str:
    """A function `errors` that calls a network, and one that uses what it gives."""
    lines = textwrap.indent(textwrap.dedent(body), "    ")
    return (
        f"net = nn.Linear(4, 4).cuda()\ndef errors(x):\n    values = net(x)\n    {inner}\n"
        f"def whole(loader):\n    total = 0.0\n{lines}\n"
    )


DROPPED = "for x in loader:\n    total = total + errors(x).sum(0).detach(){mark}\nreturn total"


def test_a_function_that_calls_the_model_and_whose_output_loses_its_graph() -> None:
    check(helper(DROPPED.format(mark=HERE)))


@pytest.mark.parametrize(
    ("body", "inner"),
    [
        (DROPPED, "kept.append(values)\n    return values"),
        (DROPPED, "values.sum().backward()\n    return values"),
        (DROPPED, "with torch.no_grad():\n        values = net(x)\n    return 1 + values"),
        (DROPPED.replace("detach()", "mean()"), "return values"),
        (
            "for x in loader:\n    y = errors(x)\n    total += y.detach()\n    y.sum().backward()\nreturn total",
            "return values",
        ),
    ],
    ids=["kept there", "goes backward there", "off there", "kept", "goes backward"],
)
def test_a_function_whose_graph_is_used(body: str, inner: str) -> None:
    code = helper(body.format(mark=""), inner)
    if "no_grad" in inner:
        code = code.replace("    values = net(x)\n    with", "    with")
    check(code)


@pytest.mark.parametrize(
    ("init", "mark"),
    [
        ("pass", ""),
        ("self.scale = 2.0\n        self.sizes = [1, 2]", ""),
        ("self.register_buffer('scale', torch.ones(3))", ""),
        ("self.size = size", ""),
        ("self.out = nn.Linear(8, 8)", f"{HERE}?"),
        ("self.scale = nn.Parameter(torch.ones(3))", f"{HERE}?"),
        ("self.register_parameter('scale', scale)", f"{HERE}?"),
        ("self.parts = nn.ModuleList([nn.Linear(8, 8)])", f"{HERE}?"),
        ("self.inner = inner", f"{HERE}?"),
        ("self.add_module('inner', inner)", f"{HERE}?"),
    ],
)
def test_what_holds_no_parameters_records_nothing(init: str, mark: str) -> None:
    check(f"""
import torch
from torch import nn
class Sampler(nn.Module):
    def __init__(self, inner, scale, size=80):
        super().__init__()
        {init}
    def forward(self, logits, heat):
        return torch.softmax(logits / heat, -1).argmax(-1)
class Runner:
    def __init__(self, model, inner, scale):
        self.model = model.cuda()
        self.sampler = Sampler(inner, scale, read(inner))
    @torch.inference_mode()
    def logits(self, ids):
        return self.model(ids)
    def run(self, ids, heat):
        return self.sampler(self.logits(ids), heat).tolist(){mark}
""")


GENERATING = """
from transformers import AutoModelForCausalLM

model = AutoModelForCausalLM.from_pretrained("small").cuda()
ids = start
for _ in range(100):
    out = model(ids){mark}
    {token}
    ids = torch.cat([ids, token], dim=1)
"""


@pytest.mark.parametrize(
    ("token", "mark"),
    [
        ("token = torch.argmax(out.logits[:, -1], dim=-1, keepdim=True)", HERE),
        ("token = torch.multinomial(torch.softmax(out.logits[:, -1], -1), 1)", HERE),
        ("token = out.logits[:, -1].softmax(-1).multinomial(1)", HERE),
        ("token = out.logits[:, -1].topk(1).values", ""),
    ],
)
def test_what_picks_a_token_drops_the_graph(token: str, mark: str) -> None:
    check(GENERATING.format(token=token, mark=mark))


@pytest.mark.parametrize(
    ("loaded", "mark"),
    [
        ("policy, value = pickle.load(file)", HERE),
        ("policy = pickle.load(file)", f"{HERE}?"),
        ("policy = torch.load(file)", f"{HERE}?"),
    ],
)
def test_a_network_that_was_saved_with_others(loaded: str, mark: str) -> None:
    code = f"import pickle\n{loaded}\nwhile running():\n    step(policy{{call}}(state).detach().numpy()){{mark}}\n"
    check(code.format(call="", mark=mark))
    check(code.format(call=".state", mark=""))


@pytest.mark.parametrize(
    ("name", "used", "mark"),
    [
        ("net", "print(out.sum())", HERE),
        ("net", "kept.update({'out': out})", f"{HERE}?"),
        ("mean_std", "print(out)", ""),
    ],
)
def test_what_leaves_the_block_it_is_evaluated_in(name: str, used: str, mark: str) -> None:
    check(
        f"""
        class Trainer:
            def prepare(self, out, kept):
                if self.normal:
                    self.{name}.train()
                    self.{name}(out)
                    self.{name}.eval()
                    out = self.{name}(out){mark}
                    {"" if "update" in used else used}
                {used if "update" in used else ""}
        """
    )


@pytest.mark.parametrize(
    ("action", "is_told"),
    [("dist.sample() if sample else dist.mean", True), ("dist.sample()", True), ("self.keep(dist)", False)],
)
def test_an_action_that_is_drawn_from_what_a_network_gives(action: str, is_told: bool) -> None:  # noqa: FBT001
    code = f"""
        import torch
        from nets import make
        class Agent:
            def __init__(self, device, cfg):
                self.device = device
                self.actor = make(cfg).to(device)
                self.optimizer = torch.optim.Adam(self.actor.parameters())
            def act(self, state, sample=False):
                state = torch.as_tensor(state).to(self.device)
                dist = self.actor(state){f"  # <- {RULE}?" if is_told else ""}
                action = {action}
                return action.detach().cpu().numpy()
    """
    check_snippet(code, RULE)


# Networks that only follow another

AGENT = """\
import copy
import torch
from torch import nn
def soft_update(source, target, tau):
    for p, q in zip(source.parameters(), target.parameters()):
        q.data.copy_(tau * p.data + (1 - tau) * q.data)
class Agent:
    def __init__(self, net, other, device):
        self.net = net.to(device)
        self.actor = nn.Linear(3, 3).to(device)
        {make}
        self.optimizer = torch.optim.Adam(self.net.parameters())
    def learn(self, buffer):
        for state, action, reward, following in buffer.batches():
            {line}
            loss = (self.net(state) - reward - values).square().mean()
            self.optimizer.zero_grad()
            loss.backward()
            self.optimizer.step()
            {update}
"""
COPIED = "self.target = copy.deepcopy(self.net)"
LOADED = "self.target = nn.Linear(3, 3).to(device)"
UPDATED = "self.target.load_state_dict(self.net.state_dict())"


def agent(make: str = COPIED, line: str = "", update: str = UPDATED) -> str:
    return AGENT.format(make=make, line=line, update=update)


@pytest.mark.parametrize(
    ("make", "update"),
    [
        (COPIED, UPDATED),
        (COPIED, "pass"),
        ("self.target = copy.deepcopy(net).to(device).eval()", "pass"),
        (LOADED, UPDATED),
        (LOADED, "soft_update(self.net, self.target, 0.005)"),
        (LOADED, "[q.data.copy_(p) for p, q in zip(self.net.parameters(), self.target.parameters())]; " + UPDATED),
    ],
)
@pytest.mark.parametrize("called", ["self.target(following)", "self.target.forward(following)"])
def test_a_network_that_only_follows_another(make: str, update: str, called: str) -> None:
    check_snippet(agent(make, f"values = {called}.max(1)[0]{HERE}", update), RULE)


def test_the_calls_of_one_function_are_one_finding() -> None:
    lines = f"values = self.target(following){HERE}\n            values = values + self.target(state)"
    [finding] = lint(agent(line=lines), active(RULE)).findings
    assert finding.message == "`self.target(…)` builds an autograd graph, and no optimizer trains `self.target`"
    assert len(finding.places) == 1


@pytest.mark.parametrize(
    ("make", "line", "update"),
    [
        # It is trained, or may be.
        (
            f"{COPIED}; self.other = torch.optim.SGD(self.target.parameters(), 0.1)",
            "values = self.target(state)",
            UPDATED,
        ),
        (f"{COPIED}; self.all = list(self.target.parameters())", "values = self.target(state)", UPDATED),
        (f"{COPIED}; self.all = [self.net, self.target]", "values = self.target(state)", UPDATED),
        (f"{COPIED}; other.train_on(self.target)", "values = self.target(state)", UPDATED),
        ("self.target = other", "values = self.target(state)", "pass"),
        (
            f"{COPIED}\n        self.rate = [p.sub_(0.1 * p.grad) for p in self.target.parameters()]",
            "values = self.target(state)",
            UPDATED,
        ),
        (COPIED, "values = self.target(state)", "for p in self.target.parameters(): p.data -= 0.1 * p.grad"),
        # It records nothing.
        (f"{COPIED}.requires_grad_(False)", "values = self.target(state)", UPDATED),
        (
            f"{COPIED}\n        for p in self.target.parameters(): p.requires_grad = False",
            "values = self.target(state)",
            "pass",
        ),
        (COPIED, "with torch.no_grad(): values = self.target(following)", UPDATED),
        # What it follows is not trained here.
        ("self.target = copy.deepcopy(other)", "values = self.target(following)", "pass"),
    ],
)
def test_what_may_be_trained_or_records_nothing(make: str, line: str, update: str) -> None:
    check_snippet(agent(make, line, update), RULE)


def test_gradients_may_go_through_it_to_what_it_is_given() -> None:
    made = f"{COPIED}\n        self.second = torch.optim.Adam(self.actor.parameters())"
    check_snippet(agent(made, f"values = self.target(self.actor(state)){HERE}?"), RULE)
    check_snippet(agent(made, f"values = self.target(self.actor(state).detach()){HERE}"), RULE)


# Loops that train or evaluate, as an option says

EPOCH = """\
import torch
import torch.nn.functional as F
from torch import nn
def run_epoch(model, loader, {options}):
    total = 0
    for x, y in loader:
        out = model(x.cuda(non_blocking=True)){mark}
        loss = F.cross_entropy(out, y.cuda(non_blocking=True))
        if {test}:
            loss.backward()
            {step}
        total += loss.detach()
    return total
def main(loader, val_loader, flag):
    model = nn.Linear(3, 3).cuda()
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    for epoch in range(9):
        run_epoch(model, loader, {first})
        {second}
"""


def epoch(test: str, first: str, second: str, mark: str = HERE, **more: str) -> str:
    given = {"options": "optimizer=None, flag=True", "step": "optimizer.step()", **more}
    return EPOCH.format(test=test, first=first, second=second, mark=mark, **given)


@pytest.mark.parametrize(
    ("test", "first", "second", "mark"),
    [
        ("optimizer is not None", "optimizer", "run_epoch(model, val_loader)", HERE),
        ("optimizer", "optimizer", "run_epoch(model, val_loader, None)", HERE),
        ("flag", "optimizer, True", "run_epoch(model, val_loader, flag=False)", HERE),
        ("flag == 'train'", "optimizer, 'train'", "run_epoch(model, val_loader, None, 'val')", HERE),
        ("model.training", "optimizer", "run_epoch(model, val_loader)", HERE),
        ("not flag", "optimizer, False", "run_epoch(model, val_loader, flag=True)", HERE),
        ("flag and optimizer is not None", "optimizer", "run_epoch(model, val_loader)", HERE),
        # Nobody in sight evaluates with it.
        ("flag", "optimizer, True", "pass", HERE + "?"),
        ("flag", "optimizer, flag", "pass", HERE + "?"),
        # Batches decide, or how it comes out may change.
        ("loss.isfinite()", "optimizer", "run_epoch(model, val_loader)", ""),
        ("x is not None", "optimizer", "run_epoch(model, val_loader)", ""),
        ("optimizer.ready()", "optimizer", "run_epoch(model, val_loader)", ""),
        ("flag == x", "optimizer", "run_epoch(model, val_loader)", ""),
    ],
)
def test_an_option_decides_whether_a_loop_trains(test: str, first: str, second: str, mark: str) -> None:
    check_snippet(epoch(test, first, second, mark), RULE)


def test_the_option_is_named() -> None:
    [finding] = lint(epoch("not flag", "optimizer, False", "run_epoch(model, val_loader)", ""), active(RULE)).findings
    assert finding.message == "`model(…)` builds an unused autograd graph unless `not flag`"
    assert finding.help == "run it under `torch.set_grad_enabled(not flag)`"


@pytest.mark.parametrize(
    "lines",
    [
        # Something goes back in any case, or elsewhere, or callers turn autograd off.
        {"step": "optimizer.step()\n        (out * 0).sum().backward()"},
        {"step": "optimizer.step()\n        else:\n            (out * 0).sum().backward()"},
        {"test": "torch.is_grad_enabled() and flag", "step": "pass\n    loss.backward()"},
        {"second": "with torch.no_grad():\n            run_epoch(model, val_loader)"},
        {"step": "optimizer.step()\n        torch.set_grad_enabled(flag)"},
        {"test": "flag.due", "step": "optimizer.step()\n        flag.due = not flag.due"},
    ],
)
def test_a_graph_that_may_be_used_in_any_case(lines: dict[str, str]) -> None:
    given = {"test": "flag", "first": "optimizer", "second": "run_epoch(model, val_loader, flag=False)", **lines}
    check_snippet(epoch(mark="", **given), RULE)


def test_what_only_trains_or_runs_the_model_by_the_option_too() -> None:
    code = epoch("flag", "optimizer", "run_epoch(model, val_loader, flag=False)", "")
    check_snippet(code.replace("if flag:", "if flag or True:").replace("out = model", "if flag: out = model"), RULE)
    looped = """
    import torch
    from torch import nn
    def train(model, dataloaders, optimizer):
        for phase in ["train", "val"]:
            for x, y in dataloaders[phase]:
                with torch.set_grad_enabled(phase == "train"):
                    loss = model(x.cuda(non_blocking=True)).sum()
                    if phase == "train":
                        loss.backward()
                        optimizer.step()
    """
    check(looped)
    check(
        looped.replace('with torch.set_grad_enabled(phase == "train"):', "if True:").replace(
            "sum()\n", f"sum(){HERE}\n", 1
        )
    )
