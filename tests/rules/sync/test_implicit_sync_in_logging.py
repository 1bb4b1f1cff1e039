"""TL306: device tensors turned into text at each step are flagged; a line that only logs can be made to log rarely."""

from __future__ import annotations

import pytest
from laws import check_snippet

RULE = "implicit-sync-in-logging"
LOOP = """
import logging
import torch
import wandb
from tqdm import tqdm
def train(model, loader, optimizer, criterion, writer, accelerator):
    logger = logging.getLogger("x")
    for step, (x, y) in enumerate(bar := tqdm(loader)):
        loss = criterion(model(x.cuda()), y.cuda())
        loss.backward()
        optimizer.step()
        {}
"""


@pytest.mark.parametrize(
    "line",
    [
        "print(loss)",
        "print(step, loss)",
        'print(f"{step}: {loss:.3f}")',
        'print("%d: %.3f" % (step, loss))',
        'print("loss %s" % loss)',
        'print("{}: {:.3f}".format(step, loss))',
        'text = "loss " + str(loss)',
        'writer.add_scalar("loss", loss, step)',
        'writer.add_scalars("losses", {"loss": loss}, step)',
        'writer.add_histogram("weight", model.weight, step)',
        'writer.add_image("seen", model.weight, step)',
        'writer.add_audio("heard", model.weight, step, 16000)',
        "bar.set_postfix(loss=loss)",
        'bar.set_description(f"loss {loss:.2f}")',
        'wandb.log({"loss": loss})',
        'accelerator.log({"loss": loss.detach()}, step=step)',
        'logger.info("loss %s", loss)',
        'logging.info(f"loss {loss}")',
    ],
)
def test_text_at_each_step(line: str) -> None:
    check_snippet(LOOP.format(f"{line}  # <- {RULE}"), RULE)


@pytest.mark.parametrize(
    ("body", "mark"), [("return metric(loss)", ""), ('print(f"{loss}")', f"  # <- {RULE}"), ("print(step)", "")]
)
def test_a_method_of_its_own_says_itself_what_it_writes(body: str, mark: str) -> None:
    check_snippet(
        f"""
        import torch
        class Net(torch.nn.Module):
            def log_metrics(self, loss, step):
                {body}{mark}
            def training_step(self, batch, step):
                loss = self(batch.cuda()).mean()
                self.log_metrics(loss, step)
                return loss
        """,
        RULE,
    )


@pytest.mark.parametrize(
    "line",
    [
        "if step % 50 == 0: print(loss)",
        "if accelerator.is_main_process and step % 50 == 0: wandb.log({'loss': loss})",
        'writer.add_scalar("rate", optimizer.param_groups[0]["lr"], step)',
        'print(f"{step}: {x.shape} {loss.device} {loss.dtype}")',
        'logger.debug("loss %s", loss)',
        'assert loss.ndim == 0, f"not a scalar: {loss}"',
        'if loss.isnan(): raise ValueError(f"bad loss: {loss}")',
        'model.log("loss", loss)',
        "canvas.add_image(loss, 0)",
        "step % 7, loss % 2",
    ],
)
def test_look_alikes(line: str) -> None:
    check_snippet(LOOP.format(line), RULE)


@pytest.mark.parametrize(
    "code",
    [
        """
        import torch
        def goes_on(model, x, optimizer, criterion, limit):
            loss = criterion(model(x.cuda()))
            while loss > limit:
                loss.backward()
                optimizer.step()
                loss = criterion(model(x.cuda()))
                print(f"loss {loss}")
        """,
        """
        import math
        import torch
        def clips(model, loader, optimizer, criterion):
            for x, y in loader:
                criterion(model(x.cuda()), y.cuda()).backward()
                norm = torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
                if math.isfinite(norm):
                    optimizer.step()
                else:
                    print(f"skipped: {norm}")
        """,
        """
        import torch
        def epochs(model, loader, optimizer, criterion, n):
            for epoch in range(n):
                for x, y in loader:
                    loss = criterion(model(x.cuda()), y.cuda())
                    loss.backward()
                    optimizer.step()
                print(f"{epoch}: {loss}")
        """,
        """
        import torch
        def full_batch(model, x, y, optimizer, criterion, num_epochs):
            for e in range(num_epochs):
                loss = criterion(model(x.cuda()), y.cuda())
                loss.backward()
                optimizer.step()
                print(f"{e}: {loss}")  # <- implicit-sync-in-logging?
        """,
        """
        import pathlib
        import torch
        def load(model, images, device):
            for image in images.to(device):
                model(image).sum().backward()
                if isinstance(image, (str, pathlib.Path)):
                    print(str(image))
        """,
        """
        import lightning as L
        class Net(L.LightningModule):
            def training_step(self, batch, batch_idx):
                loss = self.net(batch).mean()
                self.log("loss", loss)
                return loss
        """,
        """
        import torch
        from torch import nn
        class Adder(nn.Module):
            def forward(self, x: torch.Tensor, y: torch.Tensor):
                return self.functional.add_scalar(x, y)
        """,
        """
        import torch
        def train(args, model, loader, optimizer, criterion):
            for x, y in loader:
                loss = criterion(model(x.cuda()), y.cuda())
                loss.backward()
                optimizer.step()
                if args.verbose:
                    print("loss %.3f" % loss)  # <- implicit-sync-in-logging?
        """,
        """
        import torch
        class Criterion(torch.nn.Module):
            def forward(self, model, sample):
                for label in sample["labels"].cuda():
                    if label is not None:
                        label = 1 if label else 0
                    print("{}".format(label), file=self.file)
        """,
        """
        import torch
        class Task:
            def one(self, model, criterion, sample, optimizer):
                loss, size, output = criterion(model, sample)
                optimizer.backward(loss)
                return loss, size, output
            def train_step(self, sample, model, criterion, optimizer):
                model.train()
                found = {}
                for pair in self.pairs:
                    loss, size, output = self.one(model, criterion, sample[pair], optimizer)
                    for k in output:
                        found[f"{pair}:{k}"] = output[k]
                return found
        """,
    ],
    ids=[
        "awaited by the loop",
        "known by the branch",
        "once an epoch",
        "full batch",
        "a path",
        "lightning",
        "no writer",
        "when asked",
        "a number by then",
        "a key",
    ],
)
def test_look_alike_programs(code: str) -> None:
    check_snippet(code, RULE)


def test_a_read_that_is_spelt_out_belongs_to_the_other_rule() -> None:
    check_snippet(LOOP.format('print("%f %f" % (loss.item(), loss.data[0]))'), RULE)


def fixed(line: str, made: str, **options: int) -> None:
    code = LOOP.replace("enumerate(bar := tqdm(loader))", "enumerate(loader)")
    if options:
        check_snippet(code.format(f"{line}  # <- {RULE}"), RULE, fixed=code.format(made), options={**options})
    else:
        check_snippet(code.format(f"{line}  # <- {RULE}"), RULE, fixed=code.format(made))


def test_a_line_that_only_logs_is_put_behind_a_test() -> None:
    fixed(
        'writer.add_scalar("loss", loss, step)',
        'if step % 50 == 0:\n            writer.add_scalar("loss", loss, step)',
    )


def test_how_often_is_an_option() -> None:
    fixed("print(loss)", "if step % 10 == 0:\n            print(loss)", every=10)


@pytest.mark.parametrize(
    "line",
    [
        'text = f"{loss}"',
        "print(loss, optimizer.step())",
        "print(loss, (seen := step))",
        "print(loss); x = 1",
        "if x is not None: print(loss)",
        'logger.info(f"{loss} {next(iter(loader))}")',
    ],
)
def test_a_line_that_does_more_is_reported_only(line: str) -> None:
    code = LOOP.format(f"{line}  # <- {RULE}")
    result = check_snippet(code, RULE)
    assert [finding.fix for finding in result.findings] == [None]


def test_without_a_counter_there_is_no_fix() -> None:
    result = check_snippet(
        """
        import torch
        def train(model, loader, optimizer, criterion):
            for x, y in loader:
                loss = criterion(model(x.cuda()), y.cuda())
                loss.backward()
                optimizer.step()
                print(loss)  # <- implicit-sync-in-logging
        """,
        RULE,
    )
    assert result.findings[0].fix is None


@pytest.mark.parametrize(
    "lines",
    [
        'parts = {f"{loss}": x}  # <- implicit-sync-in-logging?',
        'parts["{}/loss".format(loss)] = x  # <- implicit-sync-in-logging?',
        'tokens = model.tokenizer([f"{loss}."])  # <- implicit-sync-in-logging?',
        'if step % 50 == 0 or step == 999:\n            print(f"{loss}")',
        'if overflow:\n            print(f"{loss}")  # <- implicit-sync-in-logging?',
    ],
)
def test_names_texts_and_rare_lines(lines: str) -> None:
    check_snippet(LOOP.format(lines), RULE)


def test_what_is_said_where_nothing_is_wrong() -> None:
    check_snippet(LOOP.format(f'if not self.has_overflow:\n            print(f"{{loss}}")  # <- {RULE}'), RULE)


def test_a_trial_on_random_numbers() -> None:
    check_snippet(
        """
        import torch
        class Loss(torch.nn.Module):
            def forward(self, x, y):
                return (x - y).pow(2).mean()
        if __name__ == "__main__":
            if torch.cuda.is_available():
                torch.cuda.manual_seed(1)
            embed, loss = torch.nn.Embedding(8, 4), Loss()
            optimizer = torch.optim.SGD(embed.parameters(), lr=1)
            for _ in range(10):
                y = embed(torch.rand(5).long())
                error = loss(y, torch.ones_like(y))
                print(error)
                error.backward()
                optimizer.step()
        """,
        RULE,
    )


@pytest.mark.parametrize("key", ["dataset_name", "file_names", "split", "utterance_id"])
def test_a_text_by_its_key(key: str) -> None:
    code = """
        import torch
        from torch import Tensor, nn
        class Losses(nn.Module):
            def forward(self, batch: dict[str, Tensor], scores: Tensor):
                print("loss of {{}}".format(batch["{}"]))  {}
                return scores.mean()
    """
    check_snippet(code.format(key, ""), RULE)
    check_snippet(code.format("targets", f"# <- {RULE}"), RULE)


def test_a_text_for_something_else_than_a_log() -> None:
    code = """
        import torch
        from torch import nn
        class Dump(nn.Module):
            def forward(self, x, {0}, out):
                kept = self.net(x).mean(1).cpu()
                for part, {0} in zip(kept, {0}):
                    self.save(part, str(out / f"{{{0}}}.pt"))
                    self.found[f"of {{{0}}}"].append(part)
                    {1}
    """
    check_snippet(code.format("pairs", ""), RULE)
    check_snippet(code.format("pairs", f'print(f"saved {{pairs}}")  # <- {RULE}'), RULE)
    check_snippet(code.format("pairs", f'self.draw(part, f"{{pairs:.2f}}")  # <- {RULE}'), RULE)
    check_snippet(code.format("pairs", f'self.draw(part, "%.2f" % pairs)  # <- {RULE}'), RULE)
    check_snippet(code.format("pairs", f'self.draw(part, "at {{:.2f}}".format(pairs))  # <- {RULE}'), RULE)


def test_an_array_by_its_copy() -> None:
    code = """
        import torch
        def predict(model, loader, out):
            for batch in loader:
                with torch.no_grad():
                    boxes = model(batch.cuda())[0]
                kept = boxes.{}()
                print("%.3f" % boxes[0])  {}
                out.append(kept)
    """
    check_snippet(code.format("copy", ""), RULE)
    check_snippet(code.format("clone", f"# <- {RULE}"), RULE)


def test_behind_a_wait_there_is_nothing_to_wait_for() -> None:
    check_snippet(
        """
        import time
        import torch
        def train(model, loader, optimizer, criterion):
            for x, y in loader:
                start = time.time()
                found = model(x.cuda())
                loss = criterion(found["scores"], y.cuda())
                loss.backward()
                optimizer.step()
                torch.cuda.synchronize()
                took = time.time() - start
                if len(y) > 8:
                    print(f"{took} s")
                else:
                    print(f"{took} s, {loss:.3f}")
        """,
        RULE,
    )


def test_a_loop_of_one_turn() -> None:
    code = """
        import torch
        def try_out(net):
            x = torch.randn(2, 9, 3, device="cuda", requires_grad=True)
            for _ in range({}):
                y = net(x)
                y.sum().backward()
                print(y.sum())  {}
    """
    check_snippet(code.format("1", f"# <- {RULE}?"), RULE)
    check_snippet(code.format("100", f"# <- {RULE}"), RULE)


def test_a_wait_at_each_sample_is_one_too_many() -> None:
    check_snippet(
        f"""
        import torch
        def predict(model, loader, file):
            for x in loader:
                with torch.no_grad():
                    found = model(x.cuda())
                for i in range(found.size(0)):
                    score = found[i, 0]
                    box = found[i, 1:].cpu().numpy()
                    file.write(str(score) + str(box.tolist()))  # <- {RULE}
        """,
        RULE,
    )


def test_a_wait_at_each_part_of_a_batch_is_one_too_many() -> None:
    check_snippet(
        f"""
        import torch
        def predict(model, loader, file):
            for x in loader:
                with torch.no_grad():
                    found = model(x.cuda())
                for kind in range(found.size(1)):
                    place = 0
                    while found[0, kind, place, 0] > 0.5:
                        score = found[0, kind, place, 0]
                        box = found[0, kind, place, 1:].cpu().numpy()
                        file.write(str(score) + str(box.tolist()))  # <- {RULE}
                        place += 1
        """,
        RULE,
    )


def test_a_number_in_the_releases_that_take_the_line() -> None:
    code = """
        import torch
        def train(model, loader, optimizer, criterion):
            total = 0
            for x, y in loader:
                loss = criterion(model(x.cuda()), y.cuda())
                loss.backward()
                optimizer.step()
                total += loss.data{}
                mean = 0.9 * total + 0.1
                print("%.3f %.3f" % (total / 9, mean))  {}
    """
    check_snippet(code.format("[0]", ""), RULE)
    check_snippet(code.format("", f"# <- {RULE}"), RULE)


def test_a_word_about_there_being_nothing() -> None:
    code = """
        import torch
        def train(model, loader, optimizer):
            for x in loader:
                found = model(x.cuda())
                kept = found[found != 0]
                if len(kept) {}:
                    print(f"of all: {{found.detach()}}")  {}
                kept.sum().backward()
                optimizer.step()
    """
    check_snippet(code.format("== 0", f"# <- {RULE}?"), RULE)
    check_snippet(code.format("> 99", f"# <- {RULE}"), RULE)


def test_the_end_of_an_episode() -> None:
    code = """
        import torch
        def play(envs, policy, loader, writer, optimizer):
            rewards = torch.zeros(9, 8, device="cuda")
            for step, x in enumerate(loader):
                policy(x.cuda()).sum().backward()
                optimizer.step()
                for index, over in enumerate(envs.{}):
                    if over and index > 0:
                        writer.add_scalar("reward", rewards[step][index], step)  {}
    """
    check_snippet(code.format("dones", f"# <- {RULE}?"), RULE)
    check_snippet(code.format("colours", f"# <- {RULE}"), RULE)


def test_the_elements_of_a_tensor_in_a_text_that_is_put_together() -> None:
    check_snippet(
        """
        import torch
        def train(model, loader, optimizer, criterion, bar, device):
            means = torch.zeros(3, device=device)
            sizes = [1, 2, 3]
            for step, (x, y) in enumerate(loader):
                losses = criterion(model(x.to(device)), y.to(device))
                losses.sum().backward()
                optimizer.step()
                means = (means * step + losses.detach()) / (step + 1)
                bar.set_description(("%9s" * 2 + "%9.4g" * 3) % (step, "a", *means))  # <- implicit-sync-in-logging
                bar.set_description(("%9s" * 2 + "%9.4g" * 3) % (step, "a", *sizes))
                rest = (x.shape[0] + 3) % means
        """,
        RULE,
    )


def test_what_somebody_types_for_and_what_a_model_has_at_the_end_of_an_epoch_is_rare() -> None:
    check_snippet(
        """
        import torch
        def chat(model, device):
            while True:
                text = input("> ")
                print(model(text).argmax().to(device))
        def train(model, loader, optimizer, writer, epoch, device):
            for x in loader:
                model(x.to(device)).mean().backward()
                optimizer.step()
            for name, parameter in model.named_parameters():
                writer.add_histogram(name, parameter, epoch)
        def main(model, loader, optimizer, writer, device):
            for epoch in range(9):
                train(model, loader, optimizer, writer, epoch, device)
        """,
        RULE,
    )


def test_a_function_that_logs() -> None:
    check_snippet(
        """
        import torch
        from tensorboard_logger import log_value
        def train(model, loader, optimizer):
            for step, x in enumerate(loader):
                loss = model(x.cuda()).mean()
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
                log_value("loss", loss.detach(), step)  # <- implicit-sync-in-logging
        """,
        RULE,
    )
