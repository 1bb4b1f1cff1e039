"""TL305: copies to the CPU at each training step, piece by piece or for an average, are flagged."""

from __future__ import annotations

import pytest
from laws import check_snippet

from torchlint.finding import Doubt

RULE = "bulk-d2h-in-hot-loop"


@pytest.mark.parametrize(
    "code",
    [
        """
        import torch
        def train(model, loader, optimizer, criterion, log):
            for x, y in loader:
                out = model(x.cuda())
                loss = criterion(out, y.cuda())
                loss.backward()
                optimizer.step()
                log.extend(out.detach().cpu().numpy())  # <- bulk-d2h-in-hot-loop
        """,
        """
        import torch
        def train(model, loader, optimizer, criterion, confusion):
            for x, y in loader:
                out = model(x.cuda())
                loss = criterion(out, y.cuda())
                loss.backward()
                optimizer.step()
                confusion.update(out.argmax(1).tolist(), y.tolist())  # <- bulk-d2h-in-hot-loop
        """,
        """
        import torch
        @torch.no_grad()
        def evaluate(model, loader, meter):
            for x, y in loader:
                hits = (model(x.cuda()).argmax(1) == y.cuda()).cpu().numpy()  # <- bulk-d2h-in-hot-loop
                meter.update(hits)
        """,
        """
        import torch
        @torch.no_grad()
        def evaluate(model, loader):
            correct = 0
            for x, y in loader:
                correct += model(x.cuda()).argmax(1).eq(y.cuda()).cpu().sum()  # <- bulk-d2h-in-hot-loop
            return correct
        """,
        """
        import torch
        @torch.no_grad()
        def evaluate(model, loader):
            total = 0
            for x, y in loader:
                hits = model(x.cuda()).argmax(1).eq(y.cuda()).cpu().sum()  # <- bulk-d2h-in-hot-loop
                total += hits.item()
            return total
        """,
        """
        import torch
        @torch.no_grad()
        def evaluate(model, loader, criterion, losses):
            for x, y in loader:
                losses.append(criterion(model(x.cuda()).cpu(), y))  # <- bulk-d2h-in-hot-loop
        """,
        """
        import torch
        @torch.no_grad()
        def detect(model, loader, results):
            for x, names in loader:
                boxes = model(x.cuda())
                for i in range(boxes.shape[0]):
                    results[names[i]] = convert(boxes[i].cpu().numpy())  # <- bulk-d2h-in-hot-loop
        """,
        """
        import torch
        from torch.utils.data import DataLoader
        @torch.no_grad()
        def evaluate(model, samples, evaluator):
            found = []
            others = []
            for x in DataLoader(samples, 8):
                found += [model(x.cuda()).squeeze().cpu()]  # <- bulk-d2h-in-hot-loop?
                others += other(model(x.cuda()).squeeze().cpu())  # <- bulk-d2h-in-hot-loop?
            return evaluator.eval(torch.cat(found))
        """,
        """
        import torch
        @torch.no_grad()
        def score(model, loader, scores, text):
            for x, y, lengths in loader:
                rows = model(x.cuda())
                for row, target in zip(rows.split(lengths), y):
                    scores.append((row.argmax(-1) == target.cuda()).cpu())  # <- bulk-d2h-in-hot-loop
                for word in text.split(","):
                    scores.append(f(word).argmax(-1).cpu())  # <- bulk-d2h-in-hot-loop?
        """,
    ],
    ids=["list", "tolist", "meter", "count", "named count", "loss", "pieces", "added to a list", "pieces of a split"],
)
def test_copies(code: str) -> None:
    check_snippet(code, RULE)


@pytest.mark.parametrize(
    "code",
    [
        """
        import torch
        def train(model, loader, optimizer, criterion):
            total = 0.0
            for x, y in loader:
                loss = criterion(model(x.cuda()), y.cuda())
                loss.backward()
                optimizer.step()
                total += loss.detach().cpu().item()  # one value: item-in-train-loop reports it
        """,
        """
        import torch
        def train(model, loader, optimizer, criterion, save):
            for step, (x, y) in enumerate(loader):
                out = model(x.cuda())
                loss = criterion(out, y.cuda())
                loss.backward()
                optimizer.step()
                if step % 1000 == 0:
                    save(out.detach().cpu())
        """,
        """
        import torch
        @torch.no_grad()
        def predict(model, loader):
            outputs = []
            for x in loader:
                outputs.append(model(x.cuda()).cpu())  # <- bulk-d2h-in-hot-loop?
            return torch.cat(outputs)
        """,
        """
        import torch
        from sklearn.metrics import f1_score
        def train(model, loader, optimizer, criterion):
            for x, y in loader:
                out = model(x.cuda())
                loss = criterion(out, y.cuda())
                loss.backward()
                optimizer.step()
                f1_score(y, out.argmax(1).cpu().numpy())  # <- bulk-d2h-in-hot-loop?
        """,
        """
        import torch
        def play(policy, env, optimizer, state):
            for t in range(1000):
                action = policy(state.cuda())
                chosen = action.detach().cpu().numpy()  # <- bulk-d2h-in-hot-loop?
                state, reward, done, info = env.step(chosen[0])
                loss = (action * reward).mean()
                loss.backward()
                optimizer.step()
        """,
        """
        import torch
        def train(model, loader, optimizer, criterion, seen):
            for x, y in loader:
                seen.update(y.cpu().tolist())
                loss = criterion(model(x.cuda()), y.cuda())
                loss.backward()
                optimizer.step()
        """,
        """
        import torch
        def save(model):
            return {name: value.cpu() for name, value in model.state_dict().items()}
        """,
        """
        import numpy as np
        import torch
        @torch.no_grad()
        def export(model, loader, folder):
            for x, names in loader:
                out = model(x.cuda())
                for i in range(out.shape[0]):
                    np.save(folder / names[i], out[i].cpu().numpy())
        """,
        """
        import torch
        from torchvision.ops import batched_nms
        @torch.no_grad()
        def detect(model, loader, found):
            for images in loader:
                boxes, scores, labels = model(images.cuda())
                for i in range(boxes.shape[0]):
                    kept = batched_nms(boxes[i], scores[i], labels[i], 0.5)
                    left = boxes[i][kept]
                    found.append({"boxes": left.cpu().numpy(), "scores": scores[i][kept].cpu().numpy()})  # <- bulk-d2h-in-hot-loop?
        """,
        """
        import torch
        def train(model, loader, optimizer, criterion, count):
            kept = torch.zeros(count, 10)
            for rows, x, y in loader:
                out = model(x.cuda())
                kept[rows] = out.detach().cpu()  # <- bulk-d2h-in-hot-loop?
                loss = criterion(out, y.cuda())
                loss.backward()
                optimizer.step()
            return kept
        """,
        """
        import torch
        @torch.no_grad()
        def evaluate(model, loader, metric):
            for x, y in loader:
                predicted = model(x.cuda()).argmax(1).cpu().numpy()  # <- bulk-d2h-in-hot-loop?
                truth = y.numpy()
                metric.update(truth, predicted)
        """,
        """
        import numpy as np
        import torch
        @torch.no_grad()
        def evaluate(model, loader, classes, correct):
            for x, y in loader:
                predicted = model(x.cuda()).argmax(1).cpu().numpy()  # <- bulk-d2h-in-hot-loop?
                for one in range(classes):
                    correct[one] += np.sum((predicted == one) & (y.numpy() == one))
        """,
    ],
    ids=[
        "one value",
        "rate",
        "offloading",
        "sklearn",
        "environment",
        "batch",
        "once",
        "files",
        "suppressed",
        "kept on the CPU",
        "metric",
        "by class",
    ],
)
def test_look_alikes(code: str) -> None:
    check_snippet(code, RULE)


def test_a_piece_at_a_time_says_so() -> None:
    result = check_snippet(
        """
        import torch
        @torch.no_grad()
        def detect(model, loader, found):
            for x in loader:
                boxes = model(x.cuda())
                for i in range(boxes.shape[0]):
                    found.append(boxes[i].tolist())  # <- bulk-d2h-in-hot-loop
        """,
        RULE,
    )
    assert result.findings[0].help == "copy once for the whole batch"


def test_numpy_alone_copies_only_if_told_to() -> None:
    check_snippet(
        """
        import torch
        def train(model, loader, optimizer, criterion, log):
            for x, y in loader:
                out = model(x.cuda())
                loss = criterion(out, y.cuda())
                loss.backward()
                optimizer.step()
                log.extend(out[::4].detach().numpy())
                log.extend(torch.ones_like(y.cuda()).numpy(force=True))  # <- bulk-d2h-in-hot-loop
        """,
        RULE,
    )


def test_a_measure_of_ones_own_in_numpy() -> None:
    check_snippet(
        """
        import numpy as np
        import torch
        from metrics import accuracy
        def train(model, loader, optimizer, criterion, log):
            for x, y in loader:
                out = model(x.cuda())
                loss = criterion(out, y.cuda())
                loss.backward()
                optimizer.step()
                hits = accuracy(out.detach().cpu().numpy(), y.numpy())  # <- bulk-d2h-in-hot-loop?
                log.append(hits)
                mean = np.mean(loss.detach().cpu().numpy())  # <- bulk-d2h-in-hot-loop
                log.append(mean)
        """,
        RULE,
    )


def pieces(*lines: str) -> str:
    """A detector that does this for each image of a batch."""
    body = "\n".join(f"{'':12}{line}" for line in lines)
    return (
        "import cv2\nimport matplotlib.pyplot as plt\nimport torch\n\n\n@torch.no_grad()\n"
        "def detect(model, loader, found, args, tools, writer, keep_all, offload_to_cpu):\n"
        "    for x, names in loader:\n        boxes = model(x.cuda())\n"
        f"        for i in range(boxes.shape[0]):\n{body}\n"
    )


@pytest.mark.parametrize(
    "lines",
    [
        (f"found[i] = boxes[i].tolist()  # <- {RULE}",),
        (f"box = boxes[i].cpu().numpy()  # <- {RULE}", "writer.write(str(box))"),
        ("if keep_all:", f"    found[i] = boxes[i].cpu()  # <- {RULE}"),
        ("box = boxes[i].cpu().numpy()  # <- bulk-d2h-in-hot-loop?", "cv2.imwrite(names[i], frame(box))"),
        ("box = boxes[i].cpu().numpy()  # <- bulk-d2h-in-hot-loop?", "draw(box)", "plt.savefig(names[i])"),
        ("flow = boxes[i].cpu().numpy()  # <- bulk-d2h-in-hot-loop?", "tools.writeFlow(names[i], flow)"),
        ("found[i] = tools.inside_boxes_cpu(boxes[i].cpu())  # <- bulk-d2h-in-hot-loop?",),
        ("if args.cpu_cache:", "    found[i] = boxes[i].cpu()  # <- bulk-d2h-in-hot-loop?"),
        ("if offload_to_cpu:", "    found[i] = boxes[i].cpu()  # <- bulk-d2h-in-hot-loop?"),
    ],
)
def test_what_a_loop_over_a_batch_does_with_its_pieces(lines: tuple[str, ...]) -> None:
    check_snippet(pieces(*lines), RULE)


def test_a_data_set_makes_its_samples_on_the_cpu() -> None:
    check_snippet(
        """
        import torch
        from base import WordsDataset
        from torch import nn
        class TriesDataset(WordsDataset):
            def __getitem__(self, index):
                ids = torch.cat([self.first, self.encode(index)])
                mask = torch.zeros((len(ids), 8), dtype=torch.bool)
                for i in range(len(ids)):
                    mask[i][self.trie.find(ids[: i + 1].tolist())] = True
                return mask
        """,
        RULE,
    )


def test_a_list_of_tensors_has_no_one_copy() -> None:
    code = """
        import torch
        from torch import nn
        from front import examples
        class Net(nn.Module):
            def __init__(self):
                super().__init__()
                self.body = nn.Linear(8, 8)
            def forward(self, waves):
                device = {0}.device
                found = []
                for wave in waves:
                    found.append(self.body(examples(wave.detach().cpu().numpy()).to(device)))  MARK
                return found
    """
    check_snippet(code.format("waves[0]").replace("MARK", f"# <- {RULE}?"), RULE)
    check_snippet(code.format("waves").replace("MARK", f"# <- {RULE}"), RULE)


def test_what_has_been_copied_by_then_in_an_evaluation() -> None:
    check_snippet(
        """
        import torch
        @torch.no_grad()
        def evaluate(model, loader, seen, true):
            correct, close = 0, 0
            for x, y in loader:
                y = y.cuda()
                predicted = model(x.cuda()).argmax(1)
                close += (predicted - y).abs().cpu().sum()  # <- bulk-d2h-in-hot-loop
                seen.extend(predicted.cpu().numpy())  # <- bulk-d2h-in-hot-loop?
                true.extend(y.tolist())  # <- bulk-d2h-in-hot-loop?
                correct += (predicted == y).cpu().sum()  # <- bulk-d2h-in-hot-loop?
            return correct, close
        """,
        RULE,
    )


def test_what_is_saved_piece_by_piece() -> None:
    code = """
        import torch
        def predict(model, loader, args, folder):
            kept = {{"boxes": []}}
            for x in loader:
                with torch.no_grad():
                    out = model(x.cuda())
                for i in range(out.shape[0]):
                    {}(out[i].cpu().numpy(), folder)  {}
                    if {}:
                        kept["boxes"].append(out[i, :4].cpu())  {}
    """
    mark = f"# <- {RULE}"
    check_snippet(code.format("look_at", mark, "args.every", mark), RULE)
    check_snippet(code.format("save_features", f"{mark}?", "args.save_results", f"{mark}?"), RULE)


def test_what_draws() -> None:
    code = """
        import torch
        class {}:
            @torch.no_grad()
            def draw(self, model, loader):
                for x in loader:
                    out = model(x.cuda())
                    for i in range(out.shape[0]):
                        self.texts.append(out[i][out[i] > self.least].tolist())  {}
    """
    check_snippet(code.format("BoxVisualizer", f"# <- {RULE}?"), RULE)
    check_snippet(code.format("Boxes", f"# <- {RULE}"), RULE)


def test_what_a_ctc_loss_is_told() -> None:
    code = """
        import torch
        def train(model, loader, optimizer, ctc_loss, other_loss):
            for x, y, lengths in loader:
                lengths = lengths.cuda() // 4
                out = model(x.cuda())
                {}(out, y, lengths.cpu().tolist()).backward()  {}
                optimizer.step()
    """
    check_snippet(code.format("ctc_loss", f"# <- {RULE}?"), RULE)
    check_snippet(code.format("other_loss", f"# <- {RULE}"), RULE)


def test_the_hypotheses_of_a_search() -> None:
    code = """
        import torch
        @torch.no_grad()
        def search(model, scorer, loader):
            for x in loader:
                encoded = model(x.cuda())
                {0} = scorer.kept
                for one in {0}:
                    scorer.score(one, (encoded * one.weight).topk(4)[1].cpu())  {1}
    """
    check_snippet(code.format("top_hypothesis", f"# <- {RULE}?"), RULE)
    check_snippet(code.format("classes", f"# <- {RULE}"), RULE)


def test_pieces_of_sizes_of_their_own() -> None:
    code = """
        import torch
        from torch.nn import functional as F
        @torch.no_grad()
        def restore(model, loader, found, size):
            for x, sizes in loader:
                masks = model(x.cuda())
                for i, own in enumerate(sizes):
                    mask = F.interpolate(masks[i][None], size={})
                    cropped = crop(mask[0].cpu(), own)  {}
                    found.append(cropped{})
    """
    mark = f"# <- {RULE}"
    check_snippet(code.format("own", f"{mark}?", ""), RULE)
    check_snippet(code.format("size", mark, ""), RULE)
    check_snippet(code.format("own", mark, ".to(x.device)"), RULE)


def test_a_meter_that_is_asked_for_predictions() -> None:
    code = """
        import torch
        @torch.no_grad()
        def label(model, loader, meter, names):
            for x, y in loader:
                out = model(x.cuda()).cpu()  {}
                meter.update(out, len(y))
                names.extend(meter.{}(y{}))
    """
    check_snippet(code.format(f"# <- {RULE}?", "get_predictions", ", out"), RULE)
    check_snippet(code.format(f"# <- {RULE}", "get_predictions", ""), RULE)


def test_what_only_a_tensor_can_do_tells_one() -> None:
    check_snippet(
        """
        import torch
        def generate(state, words, device):
            for _ in range(words):
                output = state.run(device)
                weights = output.squeeze().div(2).exp().cpu()  # <- bulk-d2h-in-hot-loop?
                state.add(torch.multinomial(weights, 1))
                network = state.network.float().cpu()
                state.add(torch.multinomial(network(state), 1))
        """,
        RULE,
    )


def test_what_the_host_needs_is_a_note_where_it_recurs() -> None:
    check_snippet(
        """
        import torch
        from torch import nn
        class Encoder(nn.Module):
            def __init__(self):
                super().__init__()
                self.rnn = nn.LSTM(8, 8)
            def forward(self, x: torch.Tensor, lengths: torch.Tensor):
                lengths = lengths.cpu().numpy()  # <- bulk-d2h-in-hot-loop?
                return self.rnn(nn.utils.rnn.pack_padded_sequence(x, lengths))
        def send(x: torch.Tensor, stream):
            stream.imwrite(x.cpu().numpy())
        """,
        RULE,
    )


def test_what_a_network_makes_of_tensors_on_the_cpu_is_there() -> None:
    check_snippet(
        """
        import torch
        def play(policy, environment, episodes):
            for _ in range(episodes):
                state, done = environment.reset(), False
                while not done:
                    logits = policy(torch.as_tensor(state, device="cpu")).cpu()
                    state, _, done, _ = environment.step(logits.numpy())
        def play_there(policy, environment, episodes):
            for _ in range(episodes):
                state, done = environment.reset(), False
                while not done:
                    logits = policy(torch.as_tensor(state, device="cuda")).cpu()  # <- bulk-d2h-in-hot-loop?
                    state, _, done, _ = environment.step(logits.numpy())
        """,
        RULE,
    )


def test_what_is_computed_of_arrays_is_on_the_cpu() -> None:
    check_snippet(
        """
        import torch
        import numpy as np
        class Pipeline:
            def __call__(self, latents, steps):
                for step in range(steps):
                    inputs = np.concatenate([latents] * 2)
                    inputs = self.scheduler.scaled(torch.from_numpy(inputs), step)
                    inputs = inputs.cpu().numpy()
                    latents = self.unet(inputs)
                return torch.from_numpy(latents).cuda()
        """,
        RULE,
    )


def test_pieces_that_a_network_makes_one_by_one() -> None:
    code = """
        import torch
        from torch import nn
        @torch.no_grad()
        def speak(model: nn.Module, folder, loader):
            vocoder = load(folder)
            for x, names in loader:
                spectra = model(x.cuda())
                for i, row in enumerate(spectra):
                    row = row[: len(names[i])].unsqueeze(0)
                    wave = {}.squeeze(0).cpu()  {}
                    write(folder, names[i], wave)
    """
    check_snippet(code.format("vocoder(row)", f"# <- {RULE}?"), RULE)
    check_snippet(code.format("row", f"# <- {RULE}"), RULE)


def test_to_the_cpu_is_a_copy_as_well() -> None:
    """`to("cpu")` waits like `cpu()`, unless it is told not to; `to(device)` may go anywhere."""
    check_snippet(
        """
        import torch
        from torch import nn
        def train(loader, model, optimizer, device):
            model.cuda()
            kept = []
            for x, y in loader:
                out = model(x.cuda())
                loss = nn.functional.cross_entropy(out, y.cuda())
                loss.backward()
                optimizer.step()
                kept.append(out.detach().to("cpu"))  # <- bulk-d2h-in-hot-loop
                kept.append(out.detach().to(torch.device("cpu")))  # <- bulk-d2h-in-hot-loop
                kept.append(out.detach().to("cpu", non_blocking=True))
                kept.append(out.detach().to(device))
        """,
        RULE,
    )


@pytest.mark.parametrize(
    ("made", "used", "mark"),
    [
        ("nn.MSELoss()", "losses.append(criterion(pred, true))", f"  # <- {RULE}"),
        ("nn.MSELoss()", "losses.append(criterion(pred, true)); keep(pred)", f"  # <- {RULE}?"),
        ("nn.MSELoss()", "losses.append(criterion(pred, true)); pred = 1; keep(pred)", f"  # <- {RULE}"),
        ("score", "losses.append(criterion(pred, true))", f"  # <- {RULE}?"),
    ],
)
def test_a_loss_that_is_computed_on_the_cpu_of_what_has_a_name_there(made: str, used: str, mark: str) -> None:
    """The loss is as well computed on the GPU; who else reads the copy may need it there."""
    check_snippet(
        f"""
        import torch
        from torch import nn
        def validate(net, loader):
            criterion = {made}
            losses = []
            net.eval()
            with torch.no_grad():
                for x, true in loader:
                    pred = net(x.cuda()).detach().cpu(){mark}
                    {used}
            return losses
        """,
        RULE,
    )


PREDICTED = "pred = model(x.to(device)).cpu().numpy()  # <- bulk-d2h-in-hot-loop?"
HEAD = """
import numpy as np
import torch
@torch.no_grad()
def evaluate(model, loader, metric, found, device):
    for x, y in loader:
"""


@pytest.mark.parametrize(
    "lines",
    [
        [
            "pred = model(x.to(device)).data.cpu().numpy()  # <- bulk-d2h-in-hot-loop",
            "metric.add(np.argmax(pred, axis=1), y)",
        ],
        [
            "pred = model(x.to(device)).detach().cpu().numpy()  # <- bulk-d2h-in-hot-loop",
            "pred = np.argmax(pred, axis=1)",
            "metric.add(pred, y.numpy())",
        ],
        ["found.append(model(x.to(device)).cpu().argmax(1))  # <- bulk-d2h-in-hot-loop"],
        ["found.append(torch.argmax(model(x.to(device)).cpu(), dim=1))  # <- bulk-d2h-in-hot-loop"],
        ["found.append(model(x.to(device)).cpu().numpy().max(axis=1))  # <- bulk-d2h-in-hot-loop"],
        [
            "pred = model(x.to(device)).cpu().numpy()  # <- bulk-d2h-in-hot-loop",
            "hits = (pred > 0.5) & ~(y.numpy() == 2)",
            "found.append(hits.sum() / (hits | (pred < 0)).sum() * len(pred) / pred.shape[0])",
        ],
        # What is used besides has to come over, and what a loop reduces again and again.
        [PREDICTED, "found.append((pred @ pred).sum())"],
        [PREDICTED, "found.append((y in pred, pred.sum()))"],
        [PREDICTED, "for one in range(9):", "    found.append((pred == one).sum())"],
        [PREDICTED, "found.append((pred, np.argmax(pred, axis=1)))"],
        [PREDICTED, "found.append(np.argmax(pred, axis=1) + np.max(pred, axis=1))"],
        ["found.append(model(x.to(device)).cpu().numpy())  # <- bulk-d2h-in-hot-loop?"],
        ["found.append(np.argmax(y.numpy(), axis=1))"],
        ["found.append(np.sort(model(x.to(device)).cpu().numpy(), axis=1))  # <- bulk-d2h-in-hot-loop?"],
    ],
)
def test_a_copy_of_which_only_a_reduction_is_used(lines: list[str]) -> None:
    check_snippet(HEAD + "".join(f"        {line}\n" for line in lines), RULE)


@pytest.mark.parametrize(
    "lines",
    [
        ["y = y.to(device)", "found.append(y.cpu())  # <- bulk-d2h-in-hot-loop"],
        ["x, y = x.to(device), y.to(device)", "metric.add(y.detach().cpu().numpy())  # <- bulk-d2h-in-hot-loop"],
        [
            "if torch.cuda.is_available():",
            "    x, y = x.cuda(), y.cuda()",
            "metric.add(y.cpu().numpy(), model(x))  # <- bulk-d2h-in-hot-loop",
        ],
        ["y = y.to(device).float()", "metric.add(y.cpu().numpy(), model(x))  # <- bulk-d2h-in-hot-loop"],
        # What the device has made of it, or changed in it, is something else.
        ["y = y.to(device).abs()", "metric.add(y.cpu().numpy(), model(x))  # <- bulk-d2h-in-hot-loop?"],
        ["y = y.to(device).long()", "metric.add(y.cpu().numpy(), model(x))  # <- bulk-d2h-in-hot-loop?"],
        ["y = y.to(device)", "y[y == 255] = 0", "found.append(y.cpu())  # <- bulk-d2h-in-hot-loop?"],
        ["y = y.to(device)", "y.clamp_(0)", "found.append(y.cpu())  # <- bulk-d2h-in-hot-loop?"],
        ["y = y.to(device)", "y += 1", "found.append(y.cpu())  # <- bulk-d2h-in-hot-loop?"],
        ["y = y.to(device) + 1", "found.append(y.cpu())  # <- bulk-d2h-in-hot-loop?"],
        ["y = model(y.to(device))", "found.append(y.cpu())  # <- bulk-d2h-in-hot-loop?"],
        ["y = metric.like(y.to(device))", "found.append(y.cpu())"],
    ],
)
def test_what_came_from_the_host_is_copied_back(lines: list[str]) -> None:
    check_snippet(HEAD + "".join(f"        {line}\n" for line in lines), RULE)


@pytest.mark.parametrize(
    ("given", "mark"),
    [
        ("memory.weigh(ids, loss.detach().cpu().numpy())", "  # <- bulk-d2h-in-hot-loop?"),
        ("memory.weigh(ids, loss.detach().cpu())", "  # <- bulk-d2h-in-hot-loop"),
        ("total = np.add(total, loss.detach().cpu().numpy())", "  # <- bulk-d2h-in-hot-loop"),
    ],
)
def test_what_is_given_an_array_computes_with_it(given: str, mark: str) -> None:
    snippet = f"""\
import numpy as np
import torch
def learn(model, memory, optimizer, total):
    model = model.cuda()
    while True:
        ids, states = memory.sample()
        loss = model(states.cuda())
        optimizer.zero_grad()
        loss.mean().backward()
        optimizer.step()
        {given}{mark}
"""
    check_snippet(snippet, RULE)


@pytest.mark.parametrize(
    ("made", "mark"),
    [("found(names)[0]['boxes']", "?"), ("torch.sigmoid(model(x.cuda()))[0]", "")],
)
def test_a_list_of_what_may_be_an_array(made: str, mark: str) -> None:
    """Arrays have `tolist` and are indexed alike: what nobody knows is no more than likely a tensor."""
    code = f"""
        import torch
        def detect(model, loader, found, results):
            for x, names in loader:
                model(x.cuda())
                boxes = {made}
                for row in range(boxes.shape[0]):
                    box = boxes[row, :]
                    results.append({{"row": row, "box": box.tolist()}})  # <- bulk-d2h-in-hot-loop{mark}
    """
    check_snippet(code, RULE)


@pytest.mark.parametrize(
    ("lines", "mark"),
    [
        ("save_image(fake, path)", "?"),
        ("if step % 100 == 0:\n            save_image(fake, path)", ""),
        ("save_image(torch.rand(4, 3, 8, 8), path)", ""),
    ],
)
def test_pictures_that_are_written(lines: str, mark: str) -> None:
    flagged = lines + (f"  # <- {RULE}{mark}" if mark else "")
    check_snippet(
        f"""
import torch
from torchvision.utils import save_image
def generate(model, loader, path):
    model.cuda()
    for step, x in enumerate(loader):
        fake = model(x.cuda())
        {flagged}
""",
        RULE,
    )


ACTS = """
import gymnasium
import torch
class Policy:
    def __init__(self):
        self.network = torch.nn.Linear(3, 2).cuda()
    def choose(self, state):
        with torch.no_grad():
            action = self.network(torch.as_tensor(state).cuda())
        return action.cpu().numpy().flatten(){mark}
def play(steps):
    environment, policy = gymnasium.make("x"), Policy()
    state = environment.reset()
    for step in range(steps):
        action = policy.choose(state)
        {use}
"""


@pytest.mark.parametrize(
    ("use", "mark"),
    [
        ("state, reward, done, _ = environment.step(action)", f"  # <- {RULE}?"),
        ("state, reward, done, _ = environment.step(policy.draw()); actions.append(action)", f"  # <- {RULE}?"),
    ],
)
def test_what_a_function_returns_for_an_environment(use: str, mark: str) -> None:
    check_snippet(ACTS.format(use=use, mark=mark), RULE)


@pytest.mark.parametrize(
    ("inside", "mark"),
    [
        ("pass", "  # <- bulk-d2h-in-hot-loop"),
        ("lengths = lengths + 1", "  # <- bulk-d2h-in-hot-loop?"),
        ("lengths.add_(1)", "  # <- bulk-d2h-in-hot-loop?"),
        ("advance(lengths)", "  # <- bulk-d2h-in-hot-loop?"),
    ],
)
def test_what_no_iteration_changes(inside: str, mark: str) -> None:
    check_snippet(
        f"""
        import torch
        @torch.no_grad()
        def sample(model, mask, sampler, x):
            lengths = mask.cuda().sum(dim=1)
            for step in torch.arange(50).cuda():
                x = model(x, step, sizes=lengths.tolist()){mark}
                {inside}
            return x
        """,
        RULE,
    )


@pytest.mark.parametrize(
    ("copied", "mark"),
    [
        ("result.scores.cpu().numpy()", True),
        ("result.scores.cpu().tolist()", True),
        ("result.scores.numpy()", False),
        ("result.scores.cpu()", False),  # a network has `cpu`, too
    ],
)
def test_what_becomes_an_array_is_a_tensor_whatever_it_is(copied: str, mark: bool) -> None:  # noqa: FBT001
    check_snippet(
        f"""
        import torch
        def generate(state, loader, found):
            for batch in loader:
                result = state.run(batch.cuda())
                found.extend({copied}){f"  # <- {RULE}?" if mark else ""}
        def once(state, found):
            found.extend(state.result.scores.cpu().numpy())
        """,
        RULE,
    )


@pytest.mark.parametrize(("element", "is_needed"), [("i, c", True), ("c, i", False)])
def test_a_copy_whose_parts_a_library_of_the_host_is_given(element: str, is_needed: bool) -> None:  # noqa: FBT001
    code = f"""
        import torch
        from scipy.optimize import linear_sum_assignment
        from torch import nn


        class Matcher(nn.Module):
            def forward(self, costs: torch.Tensor, sizes):
                costs = costs.view(2, 8, -1).cpu()  # <- {RULE}?
                return [linear_sum_assignment(c) for {element} in enumerate(costs.split(sizes, -1))]
        """
    (found,) = check_snippet(code, RULE).findings
    assert (Doubt.VALUE_DECIDES in found.doubts) is is_needed


@pytest.mark.parametrize(
    ("use", "is_needed"),
    [
        ("sizes = n.tolist()\n                    keep(random.choice(sizes))", True),
        ("sizes = n.tolist()\n                    decode(x, sizes)", True),
        ("errors = n.abs().cpu().numpy()\n                    memory.update_priorities(errors)", True),
        ("errors = n.abs().cpu().numpy()\n                    print(np.mean(errors))", False),
    ],
)
def test_a_list_that_a_training_step_hands_on_under_a_name(use: str, is_needed: bool) -> None:  # noqa: FBT001
    code = f"""
        import random
        import numpy as np
        import torch
        def train(model, loader, optimizer, memory):
            for x, y in loader:
                loss = model(x.cuda()).mean()
                n = torch.relu(model(x.cuda()))
                if y is not None:
                    {use}
                loss.backward()
                optimizer.step()
        """
    code = code.replace(".tolist()\n", f".tolist()  # <- {RULE}?\n")
    code = code.replace(".numpy()\n", f".numpy()  # <- {RULE}{'?' if is_needed else ''}\n")
    (found,) = check_snippet(code, RULE).findings
    assert (Doubt.HOST_NEEDS_IT in found.doubts) is is_needed


@pytest.mark.parametrize(("kept", "is_needed"), [("{}", True), ("Meter()", False)])
def test_a_dictionary_is_no_meter(kept: str, is_needed: bool) -> None:  # noqa: FBT001
    code = f"""
        import torch
        from tools import Meter, decoded
        @torch.no_grad()
        def validate(model, loader):
            kept = {kept}
            for x in loader:
                found = decoded(torch.relu(model(x.cuda())).cpu())  # <- {RULE}{"?" if is_needed else ""}
                kept.update(found)
            return kept
        """
    check_snippet(code, RULE)
