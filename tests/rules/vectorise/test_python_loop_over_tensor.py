"""TL901: loops over elements that one operation could do; not loops whose turns need each other, or host code."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from laws import check_snippet

from torchlint.cli import run
from torchlint.finding import Doubt

RULE = "python-loop-over-tensor"

ELEMENTWISE = {
    "map": """
        import torch
        def scale(x, w):
            out = torch.zeros_like(x)
            for i in range(x.size(0)):  # <- python-loop-over-tensor?
                out[i] = x[i] * w
            return out
        """,
    "a number of each turn's own": """
        import torch
        def weigh(x: torch.Tensor, parts):
            weights = [0.0] * len(parts)
            for k in range(x.size(1)):  # <- python-loop-over-tensor?
                x[:, k] /= weights[k]
            return x
        """,
    "stack of a comprehension": """
        import torch
        def squash(x: torch.Tensor):
            return torch.stack([torch.sigmoid(x[i]) for i in range(len(x))])  # <- python-loop-over-tensor?
        """,
    "mean of squares, batch by batch": """
        import torch
        def loss_of(p: torch.Tensor, t: torch.Tensor):
            B = p.shape[0]
            loss = 0.0
            for b in range(B):  # <- python-loop-over-tensor?
                loss += ((p[b] - t[b]) ** 2).mean()
            return loss / B
        """,
    "the target's kind is unknown": """
        import torch
        import torch.nn.functional as F
        def loss_of(logits, targets):
            logits = torch.relu(logits)
            total = 0
            for b in range(logits.size(0)):  # <- python-loop-over-tensor?
                target = targets[b]
                total = total + F.cross_entropy(logits[b], target)
            return total
        """,
    "a condition on each element": """
        import torch
        def count(d: torch.Tensor):
            c = 0
            for i in range(d.numel()):  # <- python-loop-over-tensor?
                if d[i] > 0:
                    c += 1
            return c
        """,
    "pairs of rows, flagged once": """
        import torch
        def distances(X: torch.Tensor, Y: torch.Tensor):
            D = torch.zeros(X.shape[0], Y.shape[0], device=X.device)
            for i in range(D.shape[0]):  # <- python-loop-over-tensor?
                for j in range(D.shape[1]):
                    D[i, j] = (X[i] - Y[j]).norm()
            return D
        """,
    "a mask for each bin": """
        import torch
        def histogram(x: torch.Tensor, num_bins):
            h = torch.zeros(num_bins, device=x.device)
            for k in range(num_bins):  # <- python-loop-over-tensor?
                h[k] = (x == k).sum()
            return h
        """,
    "a mask for each boundary of a list": """
        import torch
        def quantise(x: torch.Tensor, bounds):
            level = torch.zeros_like(x)
            for k in range(len(bounds)):  # <- python-loop-over-tensor?
                level += (x >= bounds[k]).float()
            return level
        """,
    "segments of one length (VITS)": """
        import torch
        def slice_segments(x, ids_str, segment_size=4):
            ret = torch.zeros_like(x[:, :, :segment_size])
            for i in range(x.size(0)):  # <- python-loop-over-tensor?
                idx_str = ids_str[i]
                idx_end = idx_str + segment_size
                ret[i] = x[i, :, idx_str:idx_end]
            return ret
        """,
    "a loss for each class": """
        import torch
        from losses import dice_coeff
        def dice(pred: torch.Tensor, t: torch.Tensor):
            total = 0
            for c in range(pred.shape[1]):  # <- python-loop-over-tensor?
                total += dice_coeff(pred[:, c], t[:, c])
            return total
        """,
    "a gather by another tensor": """
        import torch
        def pick(x: torch.Tensor, idx: torch.Tensor):
            out = x.new_empty(x.size(0))
            for i in range(x.size(0)):  # <- python-loop-over-tensor?
                out[i] = x[i, idx[i]]
            return out
        """,
    "a scatter (SSD)": """
        import torch
        def match(truth_idx: torch.Tensor, prior_idx: torch.Tensor):
            for j in range(prior_idx.size(0)):  # <- python-loop-over-tensor?
                truth_idx[prior_idx[j]] = j
        """,
    "a random order": """
        import torch
        class Storage:
            def __init__(self, n):
                self.obs = torch.zeros(5, n)
            def to(self, device):
                self.obs = self.obs.to(device)
            def batches(self, n, size):
                perm = torch.randperm(n)
                for start in range(0, n, size):
                    obs = []
                    for offset in range(size):  # <- python-loop-over-tensor?
                        ind = perm[start + offset]
                        obs.append(self.obs[:, ind])
                    yield torch.stack(obs, 1)
        """,
    "in place on rows": """
        import torch
        def clip(boxes, im_shape, batch_size):
            for i in range(batch_size):  # <- python-loop-over-tensor?
                boxes[i, :, 0].clamp_(0, im_shape[i, 1] - 1)
        """,
    "unbind": """
        import torch
        def masked(tp: torch.Tensor, mask: torch.Tensor):
            return torch.stack(tuple(x * mask for x in torch.unbind(tp, dim=1)), dim=1)  # <- python-loop-over-tensor?
        """,
    "non-maximum suppression class by class": """
        import torch
        from torchvision.ops import nms
        def detect(scores: torch.Tensor, boxes: torch.Tensor, num_classes):
            found = []
            for cl in range(1, num_classes):  # <- python-loop-over-tensor?
                mask = scores[cl].gt(0.01)
                if mask.sum() == 0:
                    continue
                found.append(nms(boxes[mask], scores[cl][mask], 0.5))
            return found
        """,
    "the hardest of each row (triplet loss)": """
        import torch
        from torch import nn
        class TripletLoss(nn.Module):
            def forward(self, inputs, targets):
                n = inputs.size(0)
                dist = torch.cdist(inputs, inputs)
                mask = targets.expand(n, n).eq(targets.expand(n, n).t())
                dist_ap, dist_an = [], []
                for i in range(n):  # <- python-loop-over-tensor
                    dist_ap.append(dist[i][mask[i]].max().unsqueeze(0))
                    dist_an.append(dist[i][mask[i] == 0].min().unsqueeze(0))
                return torch.cat(dist_ap), torch.cat(dist_an)
        """,
    "a coefficient stored for each class": """
        import torch
        from torch import nn
        class DiceLoss(nn.Module):
            def _dice(self, score, target):
                return 1 - 2 * torch.sum(score * target) / (torch.sum(score) + torch.sum(target))
            def forward(self, inputs, target, weight):
                loss = 0.0
                for i in range(inputs.shape[1]):  # <- python-loop-over-tensor?
                    loss += self._dice(inputs[:, i], target[:, i]) * weight[i]
                return loss
        """,
    "one hot": """
        import torch
        def one_hot(x: torch.Tensor, n_classes):
            parts = []
            for i in range(n_classes):  # <- python-loop-over-tensor?
                parts.append((x == i).unsqueeze(1))
            return torch.cat(parts, dim=1).float()
        """,
    "a covariance for each sample": """
        import torch
        def covariances(x: torch.Tensor):
            found = []
            for i in range(x.size(0)):  # <- python-loop-over-tensor?
                found.append(torch.mm(x[i], x[i].t()))
            return torch.stack(found)
        """,
    "a layer on each step": """
        import torch
        from torch import nn
        class Tagger(nn.Module):
            def __init__(self, n):
                super().__init__()
                self.fc = nn.Linear(n, 2)
            def forward(self, h: torch.Tensor):
                return torch.stack([self.fc(h[:, t]) for t in range(h.size(1))], 1)  # <- python-loop-over-tensor?
        """,
    "a function of this file": """
        import torch
        def blend(a, b, f):
            return (a * f + b * (1 - f)).clamp(0, 1)
        def sharpen(image: torch.Tensor, blurred: torch.Tensor, factor: torch.Tensor):
            n = len(factor)
            return torch.stack([blend(image[i], blurred[i], factor[i]) for i in range(n)])  # <- python-loop-over-tensor?
        """,
}
READS = {
    "item": """
        import torch
        def total_of(tensor: torch.Tensor):
            total = 0.0
            for v in tensor:  # <- python-loop-over-tensor?
                total += v.item()
            return total
        """,
    "items of the two largest": """
        import torch
        def top(outputs, names, k):
            scores, places = torch.topk(outputs, k=k)
            found = []
            for i in range(scores.size(0)):  # <- python-loop-over-tensor?
                found.append({"label": names[places[i].item()], "score": scores[i].item()})
            return found
        """,
    "an index into a list": """
        import torch
        def words(ids: torch.Tensor, vocab):
            return [vocab[i] for i in ids]  # <- python-loop-over-tensor?
        """,
    "hits of each class": """
        import torch
        def hits(loader, net, n):
            right = [0] * n
            with torch.no_grad():
                for images, labels in loader:
                    _, predicted = torch.max(net(images.cuda()), 1)
                    c = (predicted == labels.cuda()).squeeze()
                    for i in range(labels.size(0)):  # <- python-loop-over-tensor
                        right[labels[i]] += c[i].item()
            return right
        """,
    "corners of boxes": """
        import torch
        def outline(boxes: torch.Tensor, canvas):
            for box in boxes:  # <- python-loop-over-tensor?
                x1, y1, x2, y2 = box
                canvas.rectangle(int(x1), int(y1), int(x2), int(y2))
        """,
    "told by how it is indexed": """
        import torch
        class Converter:
            def __init__(self, characters):
                self.character = ["-"] + list(characters)
            def decode(self, text_index, length):
                texts = []
                for index, l in enumerate(length):
                    t = text_index[index, :]
                    kept = []
                    for i in range(l):  # <- python-loop-over-tensor?
                        if t[i] != 0 and (not (i > 0 and t[i - 1] == t[i])):
                            kept.append(self.character[t[i]])
                    texts.append("".join(kept))
                return texts
        """,
    "the one before is compared": """
        import torch
        def collapse(ids: torch.Tensor):
            out, last = [], None
            for i in ids:  # <- python-loop-over-tensor?
                if last is None or i != last:
                    out.append(i)
                last = i
            return out
        """,
    "an inner walk": """
        import torch
        def boxes_of(net, x, scale, draw):
            detections = net(x).data
            for i in range(detections.size(1)):  # <- python-loop-over-tensor?
                j = 0
                while detections[0, i, j, 0] >= 0.6:
                    draw((detections[0, i, j, 1:] * scale).cpu().numpy())
                    j += 1
        """,
    "a walk of its own": """
        import torch
        def first_end(ids: torch.Tensor, end):
            j = 0
            while ids[j] != end:  # <- python-loop-over-tensor?
                j += 1
            return j
        """,
    "a mask of lengths": """
        import torch
        def mask_of(x: torch.Tensor, lengths: torch.Tensor):
            mask = torch.zeros_like(x)
            for i in range(x.size(0)):  # <- python-loop-over-tensor?
                mask[i, : lengths[i]] = 1
            return mask
        """,
    "enumerate": """
        import torch
        def things(logits, is_thing):
            _, classes = logits.softmax(-1).max(-1)
            found = []
            for k, label in enumerate(classes):  # <- python-loop-over-tensor?
                if not is_thing[label.item()]:
                    found.append(k)
            return found
        """,
}
INDEPENDENT = {
    "the axes of a tensor": """
        import torch
        def scale(grid: torch.Tensor, image: torch.Tensor, n):
            for i, size in enumerate(image.shape[1 : 1 + n]):
                grid[i] = grid[i] * 2 / max(2, size)
            return grid
        """,
    "what one call fills of two lists": """
        import torch
        def best(scores: torch.Tensor, k, beams):
            value_list: list[torch.Tensor]
            place_list: list[torch.Tensor]
            value_list = [torch.empty(0).to(scores) for _ in range(beams)]
            place_list = [torch.LongTensor().to(scores.device) for _ in range(beams)]
            for i in range(beams):
                torch.topk(scores[:, i, :].view(8, -1), k, out=(value_list[i], place_list[i]))
                value_list[i].sub_(k)
            return torch.stack(value_list), torch.stack(place_list)
        """,
    "the few objectives of a problem": """
        import torch
        def front(self, x: torch.Tensor):
            found = []
            for i in range(self.num_objectives):
                found.append(x[..., i].cos())
            return torch.stack(found)
        """,
    "a comment right above the loop": """
        import torch
        def scores(x: torch.Tensor, y: torch.Tensor):
            found = []
            # One at a time: fits in memory.
            for i in range(x.size(0)):
                for j in range(y.size(0)):
                    found.append((x[i] * y[j]).sum())
            return found
        """,
    "the message of an assertion": """
        import torch
        def compare(a: torch.Tensor, b: torch.Tensor):
            assert torch.equal(a, b), [i for i in range(len(a)) if (a[i] - b[i]).abs().max() > 1e-6]
        """,
    "a table that is made once": """
        import torch
        def make_lut(layout: torch.Tensor):
            sizes = torch.zeros(layout.size(0))
            for i in range(layout.size(0)):  # <- python-loop-over-tensor?
                sizes[i] = layout[i].sum()
            return sizes
        """,
    "what is converted from a rate of its own": """
        import torch
        from audio import convert
        def at_one_rate(wav: torch.Tensor, rates):
            found = []
            for i, sound in enumerate(wav):
                rate = rates[i]
                sound = convert(sound, rate)
                found.append(sound)
            return torch.stack(found)
        """,
    "layers": """
        import torch
        from torch import nn
        class Net(nn.Module):
            def forward(self, x):
                for layer in self.layers:
                    x = layer(x)
                return x
        """,
    "modules picked by number, a column for each": """
        import torch
        from torch import nn
        class Net(nn.Module):
            def __init__(self, n):
                super().__init__()
                self.heads = nn.ModuleList(nn.Linear(3, 4) for _ in range(n))
                self.n = n
            def forward(self, x):
                return sum(self.heads[i](x[:, i]) for i in range(x.size(1)))
        """,
    "parameters": """
        def step(model, lr):
            import torch
            for p in model.parameters():
                p.data.add_(p.grad, alpha=-lr)
        """,
    "batches": """
        import torch
        def train(loader, model, loss_fn, optimizer):
            for x, y in loader:
                loss = loss_fn(model(x), y)
                loss.backward()
                optimizer.step()
        """,
    "samples, a training step for each": """
        import torch
        def train(x: torch.Tensor, y: torch.Tensor, model, optimizer):
            for i in range(x.size(0)):
                loss = (model(x[i]) - y[i]).pow(2).mean()
                loss.backward()
                optimizer.step()
        """,
    "a handful": """
        import torch
        def block(x: torch.Tensor):
            for i in range(3):
                x = x * x[i]
            return x
        def channels(x: torch.Tensor, mean, std):
            for t, m, s in zip(x, mean, std):  # <- python-loop-over-tensor?
                t.sub_(m).div_(s)
            return x
        """,
    "structure": """
        import torch
        def run(h: torch.Tensor, num_layers, w):
            out = []
            for layer in range(num_layers):
                out.append(h[layer] * w)
            return out
        """,
    "chunks": """
        import torch
        def run(x: torch.Tensor, f, size):
            return torch.cat([torch.exp(x[i : i + size]) for i in range(0, x.size(0), size)])
        """,
    "lists of tensors": """
        import torch
        def total(features):
            maps = [torch.relu(f) for f in features]
            loss = 0
            for i in range(len(maps)):
                loss = loss + maps[i].mean()
            return loss + sum(m.mean() for m in maps)
        """,
    "names": """
        import torch
        def show_all(names):
            for i in range(len(names)):
                print(names[i])
        """,
    "a list or a tensor": """
        import torch
        from torch import nn
        class Clip(nn.Module):
            def forward(self, images):
                if isinstance(images, torch.Tensor):
                    return torch.clamp(images, 0, 1)
                return [image.clamp_(0, 1) for image in images]
        """,
    "tensors passed one by one": """
        import torch
        class Mix:
            def transform(self, *inputs: torch.Tensor):
                return [x * 2 for x in inputs]
        """,
}
DEPENDENT = {
    "a recurrent cell": """
        import torch
        def encode(cell, x: torch.Tensor, h):
            out = []
            for t in range(x.size(1)):
                h = cell(x[:, t], h)
                out.append(h)
            return torch.stack(out, 1)
        """,
    "returns": """
        import torch
        def returns(rewards: torch.Tensor, masks: torch.Tensor, gamma):
            out = torch.zeros_like(rewards)
            for step in reversed(range(rewards.size(0) - 1)):
                out[step] = out[step + 1] * gamma * masks[step + 1] + rewards[step]
            return out
        """,
    "an advantage": """
        import torch
        def advantages(delta: torch.Tensor, masks: torch.Tensor, gamma):
            gae, out = 0, torch.zeros_like(delta)
            for step in reversed(range(delta.size(0))):
                gae = delta[step] + gamma * masks[step] * gae
                out[step] = gae
            return out
        """,
    "a running sum that is read": """
        import torch
        def running(x: torch.Tensor):
            total, out = torch.zeros_like(x[0]), torch.zeros_like(x)
            for i in range(x.size(0)):
                total = total + x[i]
                out[i] = total.sqrt()
            return out
        """,
    "a state that decays (linear attention)": """
        import torch
        def scan(g: torch.Tensor, k: torch.Tensor, v: torch.Tensor, state):
            for i in range(g.size(1)):
                state = state * g[:, i].exp()
                state = state + k[:, i] * (v[:, i] - (state * k[:, i]).sum(-1, keepdim=True))
            return state
        """,
    "swapped columns": """
        import torch
        def swap(x: torch.Tensor, a: torch.Tensor, b: torch.Tensor):
            for i in range(a.size(0)):
                kept = x[:, a[i]]
                x[:, a[i]] = x[:, b[i]]
                x[:, b[i]] = kept
        """,
    "the last of a list": """
        import torch
        def scan(x: torch.Tensor):
            out = [x[0]]
            for i in range(1, x.size(0)):
                out.append(torch.tanh(x[i] + out[-1]))
            return out
        """,
    "an attribute": """
        import torch
        class Cell:
            def run(self, x: torch.Tensor):
                for i in range(x.size(0)):
                    self.h = torch.tanh(x[i] + self.h)
                return self.h
        """,
    "sampling": """
        import torch
        def generate(model, ids, sample, done):
            while not done:
                logits = model(ids)
                token = sample(logits[:, -1])
                ids = torch.cat([ids, token], 1)
            return ids
        """,
    "a bubble of maxima": """
        import torch
        def envelope(heat: torch.Tensor):
            for i in range(1, heat.size(0)):
                heat[i] = torch.maximum(heat[i], heat[i - 1])
            return heat
        """,
}
HOST = {
    "a message": """
        import logging
        import torch
        def tell(seen: torch.Tensor):
            logging.info("seen: %s", " ".join([str(int(x)) for x in seen]))
        """,
    "a sampler": """
        import torch
        from torch.utils.data import Sampler
        class Repeats(Sampler):
            def __init__(self, times: torch.Tensor):
                self.whole = torch.trunc(times)
                self.part = times - self.whole
            def indices(self):
                times = self.whole + (torch.rand(len(self.part)) < self.part).float()
                found = []
                for i, n in enumerate(times):
                    found.extend([i] * int(n.item()))
                return found
        """,
    "conditions written into pictures": """
        import torch
        def log_conditionings(x: torch.Tensor, write):
            return write([str(x[i].item()) for i in range(x.shape[0])])  # <- python-loop-over-tensor?
        """,
    "boxes on the host": """
        import torch
        def results(net, x):
            boxes = net(x).cpu()
            found = []
            for i in range(boxes.shape[0]):
                found.append({"bbox": boxes[i].tolist(), "area": float(boxes[i, 2])})
            return found
        """,
    "images to files": """
        import torch
        def save_all(imgs, save):
            for img in imgs.cpu().numpy():
                save(img)
        """,
    "views only": """
        import torch
        def split(scores: torch.Tensor, labels: torch.Tensor):
            return [{"scores": s, "labels": l} for s, l in zip(scores, labels)]
        """,
    "numpy": """
        import numpy as np
        import torch
        def count(t: torch.Tensor):
            a = t.cpu().numpy()
            total = 0
            for i in range(a.shape[0]):
                if a[i] > 0:
                    total += a[i]
            return total
        """,
    "what `numpy()` gives without a copy is on the host": """
        import torch
        def lines(found, names):
            found = torch.cat(found)
            for i in range(found.size(0)):
                print(found[i, 2:].numpy(), names[int(found[i, 0])])
        """,
    "read once, then a list": """
        import torch
        def words(ids: torch.Tensor, vocab):
            return [vocab[i] for i in ids.tolist()]
        """,
    "a row read at once": """
        import torch
        def rows(detections: torch.Tensor):
            out = []
            for det in detections:
                det = det.tolist()
                out.append(int(det[0]))
            return out
        """,
    "pictures": """
        import cv2
        import torch
        def frames(video: torch.Tensor, path):
            for i in range(video.shape[0]):
                cv2.imwrite(path % i, (video[i] * 255).cpu().numpy())
        """,
    "the start of a model": """
        import torch
        from torch import nn
        class Net(nn.Module):
            def __init__(self, n):
                super().__init__()
                self.w = nn.Parameter(torch.zeros(n, n))
                for i in range(self.w.size(0)):
                    self.w.data[i] = self.w.data[i] * i
            def init_weights(self):
                for i in range(self.w.size(0)):  # <- python-loop-over-tensor?
                    self.w.data[i] = self.w.data[i] * 2
        """,
    "plots": """
        import torch
        def plot_all(x: torch.Tensor, axis):
            for i in range(x.size(0)):  # <- python-loop-over-tensor?
                axis.plot((x[i] * 2).item())
        """,
    "a generator": """
        import torch
        def rows(x: torch.Tensor, w):
            for i in range(x.size(0)):
                yield x[i] * w
        """,
    "a list of strings beside a tensor of the loop": """
        import torch
        def encode(texts, table, longest):
            out = torch.zeros(len(texts), longest)
            for i, text in enumerate(texts):
                ids = [table[c] for c in text]
                out[i][: len(ids)] = torch.tensor(ids)
            return out
        """,
    "environments": """
        import torch
        def masks(done, infos, device):
            return torch.tensor([[0.0] if d else [1.0] for d in done], device=device)
        """,
    "now and then": """
        import torch
        def report(x: torch.Tensor, loader):
            for step, _ in enumerate(loader):
                if step % 100 == 0:
                    for i in range(x.size(0)):
                        print(x[i].item())
        """,
    "a search in step with the loop around it": """
        import torch
        def solve(points: torch.Tensor, step, state):
            i, out = 0, torch.zeros_like(points)
            for start, end in step.intervals:
                state = step(state, start, end)
                while i < len(points) and end >= points[i]:
                    out[i] = state
                    i += 1
            return out
        """,
    "an error": """
        import torch
        def check(sizes: torch.Tensor, want: int):
            for s in sizes:
                raise ValueError(f"{s.item()}")
        """,
}
RAGGED = {
    "crops resized to sizes of their own": """
        import torch
        import torch.nn.functional as F
        def masks(outputs: torch.Tensor, sizes):
            found = []
            for mask, (h, w) in zip(outputs.sigmoid(), sizes):
                found.append(F.interpolate(mask[None, :h, :w], size=(h, w)))
            return found
        """,
    "boxes kept above a threshold": """
        import torch
        def detect(scores: torch.Tensor, boxes: torch.Tensor):
            found = []
            for i in range(scores.size(0)):
                keep = scores[i] > 0.5
                found.append(boxes[i][keep] * 2)
            return found
        """,
    "padding": """
        import torch
        def collate(images, batch: torch.Tensor):
            for img, row in zip(images, batch):
                row[:, : img.shape[1], : img.shape[2]].copy_(img)
        """,
    "an assignment for each image": """
        import torch
        from scipy.optimize import linear_sum_assignment
        def match(cost: torch.Tensor, targets):
            found = []
            for i in range(cost.shape[0]):
                c = -cost[i][:, targets[i]]
                found.append(linear_sum_assignment(c.cpu()))
            return found
        """,
    "targets in records": """
        import torch
        import torch.nn.functional as F
        def loss(logits: torch.Tensor, targets):
            total = 0
            for i in range(logits.size(0)):
                total = total + F.cross_entropy(logits[i], targets[i]["labels"])
            return total
        """,
    "a function from elsewhere": """
        import torch
        from signals import fbank
        def features(waves: torch.Tensor):
            out = []
            for wave in waves:
                out.append(fbank(wave * 2**15))
            return torch.stack(out)
        """,
    "another network": """
        import torch
        from torch import nn
        class Net(nn.Module):
            def forward(self, frames: torch.Tensor):
                return torch.stack([self.encoder(frames[:, i] * 2) for i in range(frames.size(1))])
        """,
    "loops of unknown length": """
        import torch
        def regularise(noise: torch.Tensor):
            loss = 0.0
            for i in range(noise.shape[0]):
                part = noise[i]
                while True:
                    loss += (part * torch.roll(part, 1)).mean()
                    if part.shape[-1] <= 8:
                        break
                    part = part[..., ::2]
            return loss
        """,
    "chosen for memory": """
        import torch
        def attract(a: torch.Tensor, b: torch.Tensor, memory_efficient):
            if not memory_efficient:
                return (a[:, :, None] - b[:, None]).sum(1)
            total = torch.zeros_like(b)
            for i in range(a.size(1)):  # <- python-loop-over-tensor?
                total += a[:, i, None] - b
            return total
        """,
    "another thing at each turn": """
        import torch
        def mix(batch: torch.Tensor, weights: torch.Tensor, augment, width):
            out = torch.zeros_like(batch)
            for i in range(width):
                aug = batch
                aug = augment(aug)
                out.add_(weights[:, i] * aug)
            return out
        """,
    "a transformation of each row": """
        import torch
        def augment(x: torch.Tensor, transform):
            for i in range(x.size(0)):
                x[i] = transform(x[i])
            return x
        """,
    "texts of rows": """
        import torch
        def texts(tokenizer, ids: torch.Tensor):
            return [tokenizer.decode(row) for row in ids]
        """,
    "gradients": """
        import torch
        def jacobian(out: torch.Tensor, x):
            return torch.stack([torch.autograd.grad(out[j], x, retain_graph=True)[0] for j in range(out.size(0))])
        """,
}

# Each with what it takes to be reported after all.
NEAR = {
    "a literal few turns of a script, or more": (
        """
        import torch
        predictions = model(torch.rand(8, 3).cuda()).argmax(1)
        for i in range({part}):{mark}
            print(names[predictions[i].item()])
        """,
        "8",
        "80",
    ),
    "once, or for each batch": (
        """
        import torch
        def decode(predictions: torch.Tensor):
            for i in range(8):{mark}
                print(names[predictions[i].item()])
        {part}
        """,
        "decode(torch.rand(8).cuda())",
        "for batch in loader:\n            decode(batch)",
    ),
    "memory is the reason, or a bank": (
        """
        import torch
        def entropies(logits: torch.Tensor):
            # {part}
            return torch.stack([torch.logsumexp(row, dim=-1) for row in logits]){note}
        """,
        "loop to reduce peak mem consumption",
        "one entropy for each row of the memory bank",
    ),
    "a reason behind its first line": (
        """
        import torch
        def scale(x: torch.Tensor, w):
            out = torch.zeros_like(x)
            for i in range(x.size(0)):  # {part}{note}
                out[i] = x[i] * w
            return out
        """,
        "avoids an OOM on long inputs",
        "the rows are independent",
    ),
    "the scores of all heads are too many, or the rows are independent": (
        """
        import torch
        def scores(q: torch.Tensor, k):
            total = torch.zeros_like(q[0])
            # {part}
            for head in range(q.size(0)):{note}
                total += torch.relu(q[head] * k)
            return total
        """,
        "one head at a time, to avoid materialising the scores of all of them",
        "one row of the material at a time",
    ),
    "a dataset by its base's name, or a decoder": (
        """
        import torch
        from corpus import {part}
        class Masked({part}):
            def lengths(self, spans):
                ends = torch.cumsum(spans, 0)
                return [end.item() // 2 for end in ends if end > 3]{note}
        """,
        "PairedTextDataset",
        "PairedTextDecoder",
    ),
    "values are only checked, or counted": (
        """
        import torch
        def check(factors: torch.Tensor):
            wrong = 0
            for factor in factors:{note}
                if not 0 <= factor <= 1:
                    {part}
            return wrong
        """,
        "raise ValueError(factors)",
        "wrong += 1",
    ),
    "a dataset, or a metric": (
        """
        import torch
        class Digits({part}):
            def subset(self, targets: torch.Tensor, most):
                kept = []
                for index, target in enumerate(targets):{note}
                    if target.item() < most:
                        kept.append(index)
                return kept
        """,
        "torch.utils.data.Dataset",
        "Metric",
    ),
    "a module that gives anything, or a tensor": (
        """
        import torch
        from torch import nn
        class Net(nn.Module):
            def __init__(self, network: {part}):
                super().__init__()
                self.network = network
            def forward(self, x):
                total = 0
                for i, hit in enumerate(self.network(x)):{note}
                    total += hit.abs() * i
                return total
        """,
        "nn.Module",
        "nn.Conv2d",
    ),
    "a part of another row, or of the same": (
        """
        import torch
        def sort(attention: torch.Tensor, places: torch.Tensor):
            for head in range(places.size(0)):{note}
                attention[head] = attention[{part}][places[head]]
        """,
        "head - 1",
        "head",
    ),
    "another row is written too": (
        """
        import torch
        def sort(attention: torch.Tensor, places: torch.Tensor):
            for head in range(places.size(0)):{note}
                attention[head] = attention[head][places[head]]
                {part}
        """,
        "attention[head + 1] = attention[head]",
        "pass",
    ),
    "one row, or as many as there are": (
        """
        import torch
        def lengths(encode, query, pad):
            tokens = torch.relu(encode(query)){part}
            return torch.tensor([row.ne(pad).sum() for row in tokens]){note}
        """,
        ".unsqueeze(0)",
        "",
    ),
    "one row that has been filled, or as many as there are": (
        """
        import torch
        def spans(best: torch.Tensor, mask, n):
            best = best.view({part}, n)
            best = best.masked_fill_(mask, 0)
            total = 0
            for row in best:{note}
                total = total + row.diff().abs().max()
            return total
        """,
        "1",
        "-1",
    ),
    "the name leads back to itself": (
        """
        import torch
        def spans(best: torch.Tensor, n):
            for _ in range(n):
                best = best.exp()
            total = 0
            for row in best:{note}
                total = total + row{part}.abs().max()
            return total
        """,
        ".unique().diff()",
        "",
    ),
    "joined for a loader, or anywhere": (
        """
        import torch
        class {part}:
            def __call__(self, tokens: torch.Tensor, end):
                found = []
                for row in tokens:
                    found.append(sum(int(number) for number in row if number != end)){note}
                return found
        """,
        "PaddingCollator",
        "Summary",
    ),
    "samples are mixed on the host, or on the device": (
        """
        import torch
        def {part}(targets):
            targets = torch.stack(targets)
            mixed = torch.zeros_like(targets)
            for i in range(targets.shape[1]):{note}
                mixed[:, i] = targets[:, i] / targets[:, i].norm()
            return mixed.sum(1)
        """,
        "mixing_collate",
        "mixing",
    ),
    "an array that becomes tensors, or a tensor": (
        """
        import torch
        def embed(embeddings, tokens):
            for i, sentence in enumerate(tokens):
                rows = embeddings[i]
                total = 0
                for j in range(len(sentence)):{note}
                    total = total + {part}.abs()
                yield total
        """,
        "torch.FloatTensor(rows[0, j, :])",
        "rows[0, j, :]",
    ),
    "what all callers pass is on the CPU, or may be elsewhere": (
        """
        import torch
        class Tagger:
            def tags(self, best: torch.Tensor):
                return self._named(best{part})
            def _named(self, best: torch.Tensor):
                found = []
                for number in best:{note}
                    found.append(self.names.get(int(number), "?"))
                return found
        """,
        ".cpu()",
        "",
    ),
    "a counter that the next turns read, or a histogram": (
        """
        import torch
        def chosen(labels: torch.Tensor, left: torch.Tensor):
            kept = torch.zeros_like(labels)
            for i in range(len(labels)):{note}
                kept[i] = labels[i] * {part}
                left[labels[i]] -= 1
            return kept
        """,
        "left[labels[i]]",
        "2",
    ),
    "a segment of each, or the whole": (
        """
        import torch
        import torch.nn.functional as F
        def loss_of(scores: torch.Tensor, wanted: torch.Tensor, ends):
            total = 0
            for i in range(len(ends) - 1):{note}
                part = scores[{part}]
                total += F.mse_loss(part, wanted[i])
            return total
        """,
        "ends[i] : ends[i + 1]",
        "i",
    ),
    "a function of which nobody knows how much it gives, or arithmetic": (
        """
        import torch
        class Search:
            def step(self, scores: torch.Tensor, states):
                out = torch.zeros_like(scores)
                for i in range(len(states)):{note}
                    best, state = self.one(scores[i], out[i])
                    out[i] = best
                return out
            def one(self, scores, buffer):
                {part}
                return scores + buffer, None
        """,
        "scores = torch.masked_select(scores, scores > 0)",
        "scores = scores * 2",
    ),
    "numbers drawn beside a model without numbers, or beside one elsewhere": (
        """
        import torch
        def build(net):
            with torch.device("{part}"):
                return net()
        def batch(data: list[dict], n):
            picked = torch.randint(len(data), (n,))
            return [data[i] for i in picked]{note}
        """,
        "meta",
        "cuda",
    ),
    "computed elsewhere from what is on the CPU, or from anything": (
        """
        import torch
        import circles
        def assigned(canvas, sizes: torch.Tensor, least=2):
            sizes = sizes{part}
            radius = torch.clamp_min(circles.radius_of(sizes, least).int(), min=least)
            for k in range(len(sizes)):{note}
                circles.add(canvas, radius[k].item())
        """,
        ".cpu()",
        "",
    ),
    "the method of a network, or of what is none": (
        """
        import torch
        class Faces:
            def found(self, images: torch.Tensor, {part}):
                landmarks = torch.zeros(len(images), 68)
                for i in range(len(images)):{note}
                    landmarks[i] = {part}.landmarks(images[i], landmarks[i])
                return landmarks
        """,
        "face_net",
        "faces",
    ),
    "the corners of a table written out, or of any": (
        """
        import torch
        def corners(points: torch.Tensor, table: torch.Tensor, picked):
            {part}
            found = []
            for c in range(table.size(1)):{note}
                found.append(points[table[:, c]] * 2)
            return torch.stack(found, 1)
        """,
        "table = torch.tensor([[0, 1, 2], [1, 3, 2], [2, 3, 6]], device=points.device)",
        "pass",
    ),
    "what a branch has asked to be a list, or a tensor": (
        """
        import torch
        def packed(y: tuple[torch.Tensor, torch.Tensor]):
            if isinstance(y[0], {part}):
                return [torch.relu(each).sum() for each in y[0]]{note}
            return torch.relu(y[0]).sum()
        """,
        "list",
        "torch.Tensor",
    ),
    "as many as the turn says of what is drawn anew, or one": (
        """
        import torch
        def scattered(places: torch.Tensor, many: torch.Tensor, n):
            found = []
            for i in range(len(many)):{note}
                found.append(places[torch.randperm(n){part}] * 2)
            return found
        """,
        "[: many[i]]",
        "[many[i]]",
    ),
    "a score that nobody knows beside an element, or an element": (
        """
        import torch
        class Search:
            def kept(self, starts: torch.Tensor):
                found = []
                for x in starts:{note}
                    row, best = x.detach(), {part}
                    if best > 0:
                        found.append(row)
                return found
        """,
        "self.score(x.unsqueeze(0))",
        "x[0]",
    ),
    "what numpy is asked of a comparison, or torch": (
        """
        import numpy as np
        import torch
        def per_image(values: torch.Tensor, image: torch.Tensor, n):
            found = []
            for i in range(n):{note}
                found.append({part}.any(image == i))
            return found
        """,
        "np",
        "torch",
    ),
    "cut by a function to what the mask says, or to what is given": (
        """
        import torch
        class Pictures:
            def whole(self, images: torch.Tensor, masks: torch.Tensor, width):
                found = []
                for i in range(images.shape[0]):{note}
                    found.append(self.one(images[i], masks[i], width))
                return found
            def one(self, image: torch.Tensor, mask: torch.Tensor, width):
                width = {part}
                return image[:, :width]
        """,
        "(~mask).sum(0).max()",
        "width - 1",
    ),
    "maps from a list by its name, or a batch of them": (
        """
        import torch
        def weighted(score: torch.Tensor, {part}, n):
            found = []
            for i in range(n):{note}
                found.append(score[:, i : i + 1] * {part}[i])
            return torch.cat(found, 1)
        """,
        "feature_list",
        "features",
    ),
    "a criterion that is told the number of the turn, or is not": (
        """
        import torch
        from torch import nn
        class Crossed(nn.Module):
            def forward(self, scores, wanted):
                return (scores - wanted).abs().mean()
        class Several(nn.Module):
            def __init__(self):
                super().__init__()
                self.criterion = Crossed()
            def forward(self, scores: torch.Tensor, wanted: torch.Tensor):
                loss = 0
                for i, part in enumerate(scores[1:]):{note}
                    loss += self.{part}
                return loss
        """,
        "criterion(part, i)",
        "criterion(part, wanted)",
    ),
    "blocks whose numbers a list has, or rows": (
        """
        import torch
        class Queues:
            def push(self, scores: torch.Tensor, queues: torch.Tensor, size):
                for i, crop in enumerate(self.crops):{note}
                    queues[i, :size] = queues[i, size:] + scores[{part}]
        """,
        "crop * size : (crop + 1) * size",
        "crop",
    ),
    "a transform of samples, or of anything": (
        """
        import torch
        class Halved:
            def __call__(self, {part}):
                return self.kept(torch.rand(9) > 0.5, first=[])
            def kept(self, labels: torch.Tensor, first):
                for label in labels:{note}
                    if label.item() not in first:
                        first.append(label.item())
                return first
        """,
        "img, target",
        "first, second",
    ),
    "a decomposition that draws numbers, or one that does not": (
        """
        import torch
        def bases(x: torch.Tensor):
            found = torch.zeros_like(x)
            for i in range(len(x)):{note}
                u, _, v = {part}
                found[i] = u @ v
            return found
        """,
        "torch.svd_lowrank(x[i], q=4)",
        "torch.linalg.svd(x[i])",
    ),
    "added to a part of the length of this turn, or to a row": (
        """
        import torch
        def placed(x: torch.Tensor, sizes: torch.Tensor, table: torch.Tensor):
            for i, (h, w) in enumerate(sizes):{note}
                tiles = h * w
                x[{part}] += table[tiles]
            return x
        """,
        "i, :tiles",
        "i, :",
    ),
}


@pytest.mark.parametrize(("code", "silent", "flagged"), NEAR.values(), ids=NEAR.keys())
def test_look_alikes_and_what_they_look_like(code: str, silent: str, flagged: str) -> None:
    check_snippet(code.format(part=silent, mark="", note=""), RULE)
    check_snippet(code.format(part=flagged, mark=f"  # <- {RULE}", note=f"  # <- {RULE}?"), RULE)


@pytest.mark.parametrize(("count", "is_named"), [("top_k", True), ("count", False)])
def test_the_best_few_by_a_name_are_noted(count: str, is_named: bool) -> None:  # noqa: FBT001
    code = f"""
        import torch
        def pooled(values: torch.Tensor, delays: torch.Tensor, weights: torch.Tensor, {count}):
            total = torch.zeros_like(values)
            for i in range({count}):  # <- {RULE}?
                pattern = torch.gather(values, -1, delays[..., i].unsqueeze(-1))
                total = total + pattern * weights[..., i].unsqueeze(-1)
            return total
    """
    (found,) = check_snippet(code, RULE).findings
    assert (Doubt.SMALL in found.doubts) is is_named


@pytest.mark.parametrize("rows", ["boxes", "spatial_shapes"])
def test_levels_of_a_pyramid_by_a_name_are_noted(rows: str) -> None:
    (found,) = check_snippet(
        f"""
        import torch
        def areas({rows}: torch.Tensor):
            found = []
            for height, width in {rows}:  # <- {RULE}?
                found.append(int(height) * int(width))
            return found
        """,
        RULE,
    ).findings
    assert (Doubt.SMALL in found.doubts) is (rows == "spatial_shapes")


@pytest.mark.parametrize(("option", "is_named"), [("joint_visualization", True), ("joint_evaluation", False)])
def test_what_an_option_shows_is_noted(option: str, is_named: bool) -> None:  # noqa: FBT001
    code = f"""
        import torch
        def predict(args, outputs: torch.Tensor, log):
            if args.{option}:
                for row in outputs:
                    log([v.item() for v in row if v > 0])  # <- {RULE}?
    """
    (found,) = check_snippet(code, RULE).findings
    assert (Doubt.NAMED_RARE in found.doubts) is is_named


@pytest.mark.parametrize("code", [*ELEMENTWISE.values(), *READS.values()], ids=[*ELEMENTWISE, *READS])
def test_flagged(code: str) -> None:
    check_snippet(code, RULE)


@pytest.mark.parametrize(
    "code",
    [*INDEPENDENT.values(), *DEPENDENT.values(), *HOST.values(), *RAGGED.values()],
    ids=[*INDEPENDENT, *DEPENDENT, *HOST, *RAGGED],
)
def test_silent(code: str) -> None:
    check_snippet(code, RULE)


@pytest.mark.parametrize(("class_", "found"), [("TargetTransform", 0), ("Matcher", 1)])
def test_what_only_a_transform_elsewhere_calls(
    class_: str, found: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "torchlint.toml").touch()
    (tmp_path / "boxes.py").write_text(
        "import torch\n\n\ndef assign(overlap: torch.Tensor):\n    value, target = overlap.max(1)\n"
        "    best, prior = overlap.max(0)\n    for row, place in enumerate(prior):\n        target[place] = row\n"
        "    return value, target\n"
    )
    (tmp_path / "targets.py").write_text(
        f"from boxes import assign\n\n\nclass {class_}:\n    def __call__(self, overlap):\n"
        "        return assign(overlap)\n"
    )
    assert run(["check", "--no-cache", "--select", RULE, "--output-format", "concise"]) == 0
    assert capsys.readouterr().out.count("TL901") == found


FURTHER = {
    "a list beside a tensor": """
        import torch
        import torch.nn.functional as F
        def finish(saved: list, rewards):
            returns, losses, values = torch.tensor(rewards).cuda(), [], []
            for (log_prob, value), r in zip(saved, returns):  # <- python-loop-over-tensor?
                advantage = r - value.item()
                losses.append(-log_prob * advantage)
                values.append(F.smooth_l1_loss(value, torch.tensor([r])))
            return torch.stack(losses).sum() + torch.stack(values).sum()
        """,
    "items that no stack would take": """
        import torch
        def finish(saved: list, rewards):
            returns, losses = torch.tensor(rewards).cuda(), []
            scaled = [part * r for part, r in zip(saved[1:], returns)]
            for part, r in zip(saved[1:], returns):
                losses.append(part * r)
            return losses, scaled
        """,
    "parts of rows, as long as a list says": """
        import torch
        def mask_of(lengths, n, device: torch.device):
            mask = torch.zeros(len(lengths), n, device=device)
            for i, length in enumerate(lengths):  # <- python-loop-over-tensor?
                mask[i, :length] = 1
            return mask
        """,
    "parts of rows, as long as the turn says": """
        import torch
        def mask_of(n, width, device: torch.device):
            mask = torch.full((n, n), float("-inf"), device=device)
            for i in range(n):  # <- python-loop-over-tensor?
                end = (i // width + 1) * width
                mask[i, :end] = 0
            return mask
        """,
    "parts of rows on the CPU": """
        import torch
        def mask_of(lengths, n):
            mask = torch.zeros(len(lengths), n)
            for i, length in enumerate(lengths):
                mask[i, :length] = 1
            return mask
        """,
    "sizes of what is made": """
        import torch
        def positions(counts: torch.Tensor, x: torch.Tensor):
            found = [torch.arange(counts[i], device=x.device) for i in range(x.size(0))]  # <- python-loop-over-tensor?
            return torch.cat(found)
        """,
    "sizes that were read before": """
        import torch
        def positions(counts: torch.Tensor, x: torch.Tensor):
            return torch.cat([torch.arange(n, device=x.device) for n in counts.tolist()])
        """,
    "a network for each row": """
        import torch
        from torch import nn
        class Text(nn.Module):
            def __init__(self):
                super().__init__()
                self.net = nn.Linear(3, 4)
            def forward(self, x):
                return self.net(x)
        class Net(nn.Module):
            def __init__(self):
                super().__init__()
                self.text = Text()
            def forward(self, x: torch.Tensor):
                found = []
                for i in range(x.shape[0]):  # <- python-loop-over-tensor?
                    found.append(self.text(x[i].unsqueeze(0))[0])
                last = x[0]
                for i in range(x.shape[0]):
                    last = self.text((x[i] + last).unsqueeze(0))[0]
                for i in range(x.shape[0]):
                    found.append(self.text(x[i]))
                return torch.stack(found), last
        """,
    "few rows, for each batch": """
        import torch
        from torch.utils.data import DataLoader
        def statistics(dataset):
            mean = torch.zeros(3)
            for x, y in DataLoader(dataset, batch_size=4, num_workers=2):
                for i in range(3):  # <- python-loop-over-tensor?
                    mean[i] += x[:, i, :, :].mean()
            for i in range(3):
                mean[i] = mean[i] / x[:, i].sum()
            return mean
        """,
    "on the CPU, nobody knows how often": """
        import torch
        def scaled(w, n):
            out = torch.zeros(n, 3)
            for i in range(n):  # <- python-loop-over-tensor?
                out[i] = out[i] * w
            return out
        """,
}


@pytest.mark.parametrize("code", FURTHER.values(), ids=FURTHER)
def test_further_shapes(code: str) -> None:
    check_snippet(code, RULE)


@pytest.mark.parametrize(
    ("header", "is_flagged"),
    [
        ("for place, mask in zip(places, masks):", False),  # several turns may have the same place
        ("for place, mask in enumerate(masks):", True),
    ],
)
def test_a_part_that_several_turns_may_change_is_carried(header: str, is_flagged: bool) -> None:  # noqa: FBT001
    mark = "  # <- python-loop-over-tensor?" if is_flagged else ""
    code = f"""
        import torch
        def overlaid(category: torch.Tensor, masks: torch.Tensor):
            classes, places = torch.unique(category, return_inverse=True)
            shown = torch.zeros(classes.shape[0], 8, 8, device="cuda")
            {header}{mark}
                shown[place] = torch.logical_or(shown[place], mask)
            return shown
        for category, masks in torch.utils.data.DataLoader(data):
            overlaid(category.cuda(), masks.cuda())
    """
    check_snippet(code, RULE)


@pytest.mark.parametrize(
    ("rows", "is_flagged"), [("[read(target) for target in targets]", False), ("torch.stack(targets)", True)]
)
def test_rows_of_a_list_may_be_of_any_length(rows: str, is_flagged: bool) -> None:  # noqa: FBT001
    mark = f"  # <- {RULE}?" if is_flagged else ""
    check_snippet(
        f"""
        import torch
        def loss_of(scores: torch.Tensor, targets):
            scores = scores.cuda()
            rows = {rows}
            total = 0
            for i in range(scores.size(0)):{mark}
                row = rows[i]
                total = total + (scores[i] - row[0]).abs().sum()
            return total
        """,
        RULE,
    )


@pytest.mark.parametrize(
    ("update", "is_flagged"),
    [
        ("out[labels[i]] = torch.max(out[labels[i]], x[i])", True),
        ("out[labels[i]] = out[labels[i]] + x[i]", True),
        ("out[labels[i]] = out[labels[i]].maximum(x[i])", True),
        ("out[labels[i]] = torch.sigmoid(out[labels[i]]) * x[i]", False),
        ("out[labels[i]] = out[labels[i]] * 0.9 + x[i]", False),
        ("out[labels[i]] = torch.max(out[others[i]], x[i])", False),
    ],
)
def test_a_part_that_takes_a_sum_or_a_maximum_waits_for_no_other_turn(update: str, is_flagged: bool) -> None:  # noqa: FBT001
    mark = f"  # <- {RULE}?" if is_flagged else ""
    check_snippet(
        f"""
        import torch
        def reduce(x: torch.Tensor, labels: torch.Tensor, others: torch.Tensor):
            x = x.cuda()
            out = torch.zeros(10, x.size(1), device=x.device)
            for i in range(x.size(0)):{mark}
                {update}
            return out
        """,
        RULE,
    )


def test_what_the_loop_calls_may_take_a_batch() -> None:
    """A function that is not in sight may take all rows at once; rows of sizes of their own make no batch."""
    check_snippet(
        """
        import torch
        from transforms import normalize, resize
        def predict(faces, sizes, model):
            x = torch.tensor(faces, device="cuda").float()
            for i in range(len(x)):  # <- python-loop-over-tensor?
                x[i] = normalize(x[i] / 255.0)
            rows = []
            for i in range(len(x)):
                rows.append(normalize(x[i, : sizes[i]]))
            return model(x), rows
        """,
        RULE,
    )


ROWS = {
    "a function of what another one gives": """
        import torch
        def flat(x, y):
            return x.view(-1), y.view(-1)
        def hinge(x, y):
            order = torch.sort(x, descending=True)[1]
            return torch.dot(x[order], y[order])
        for batch in torch.utils.data.DataLoader(data):
            x, y = net(batch.cuda()).squeeze(1), batch.cuda()
            loss = sum(hinge(*flat(a, b)) for a, b in zip(x, y))  # <- python-loop-over-tensor?
        """,
    "given to a function that computes": """
        import torch
        def sharpen(row, power):
            return {"row": torch.pow(row, power)}
        def train(model, loader, optimizer):
            for x in loader:
                out = torch.relu(model(x).cuda())
                parts = [sharpen(out[i], 2) for i in range(out.shape[0])]  # <- python-loop-over-tensor?
                loss = out.mean() + parts[0]["row"].mean()
                loss.backward()
                optimizer.step()
        """,
    "given to a function that reads": """
        import torch
        def spelt(row, words):
            return {"text": [words[number] for number in row.tolist()]}
        def train(model, loader, optimizer, words):
            for x in loader:
                out = torch.relu(model(x).cuda())
                print([spelt(out[i], words) for i in range(out.shape[0])])
                out.mean().backward()
                optimizer.step()
        """,
    "repeated, each as often as it says": """
        import torch
        def train(model, loader, optimizer):
            for x, times in loader:
                out = torch.relu(model(x).cuda())
                rows = torch.cat([out[i].repeat((times[i], 1)) for i in range(len(out))])  # <- python-loop-over-tensor?
                rows.mean().backward()
                optimizer.step()
        """,
    "packed, and cut by their lengths": """
        import torch
        def train(model, loader, optimizer):
            for x, lengths in loader:
                out = torch.relu(model(x).cuda())
                total = 0
                for row in out.split(lengths.tolist()):  # <- python-loop-over-tensor?
                    total = total + row.softmax(-1).max()
                total.backward()
                optimizer.step()
        """,
    "in chunks, which a number cuts": """
        import torch
        def train(model, loader, optimizer):
            for x in loader:
                out = torch.relu(model(x).cuda())
                total = 0
                for rows in out.split(64):
                    total = total + rows.softmax(-1).max()
                total.backward()
                optimizer.step()
        """,
    "through a network, copied first": """
        import torch
        from torch import nn
        class Block(nn.Module):
            def __init__(self):
                super().__init__()
                self.body = nn.Conv1d(8, 8, 3)
            def forward(self, x):
                return self.body(x).relu()
        class Encoder(nn.Module):
            def __init__(self):
                super().__init__()
                self.body = Block()
            def forward(self, x):
                found = []
                for i in range(x.size(0)):  # <- python-loop-over-tensor?
                    row = x[i : i + 1].clone()
                    found.append(self.body(row)[0])
                return found
        """,
    "of a tensor or of a list of states": """
        import torch
        from typing import List, Union
        def repeated(states: Union[torch.Tensor, List[torch.Tensor]], times: int):
            if times > 1:
                return [state.repeat_interleave(times, dim=1) for state in states]
            return states.repeat_interleave(times, dim=1)
        """,
    "of a union in new spelling": """
        import torch
        def repeated(states: torch.Tensor | list[torch.Tensor], times: int):
            return [state.repeat_interleave(times, dim=1) for state in states]
        """,
}


@pytest.mark.parametrize("code", ROWS.values(), ids=ROWS.keys())
def test_rows_of_which_nobody_knows_whether_they_go_at_once(code: str) -> None:
    check_snippet(code, RULE)


@pytest.mark.parametrize(
    ("made", "doubt"),
    [
        ("torch.randn(64, 3, device='cuda')", ""),
        ("torch.randn((1_000, 3), device='cuda')", ""),
        ("torch.zeros(63, 3, device='cuda')", "?"),
        ("torch.zeros(*sizes, 64, device='cuda')", "?"),
        ("torch.zeros(n, 64, device='cuda')", "?"),
    ],
)
def test_launches_are_worth_a_warning_where_they_are_known_to_be_many(made: str, doubt: str) -> None:
    check_snippet(
        f"""
        import torch
        x = {made}
        out = torch.zeros_like(x)
        for batch in loader:
            for i in range(x.shape[0]):  # <- {RULE}{doubt}
                out[i] = x[i].softmax(-1) * 2
        """,
        RULE,
    )


@pytest.mark.parametrize(
    ("part", "doubt"), [("mask[i] == 1", ""), ("mask[i] + 1", "?"), ("mask[i].gt(0)", ""), ("idx", "?")]
)
def test_a_mask_of_each_row_is_waited_for(part: str, doubt: str) -> None:
    check_snippet(
        f"""
        import torch
        def hardest(dist: torch.Tensor, mask: torch.Tensor, idx: torch.Tensor):
            dist, mask = dist.cuda(), mask.cuda()
            total = 0
            for i in range(dist.size(0)):  # <- {RULE}{doubt}
                total = total + dist[i][{part}].max()
            return total
        for dist, mask, idx in torch.utils.data.DataLoader(data):
            hardest(dist, mask, idx)
        """,
        RULE,
    )


def test_it_is_said_of_the_loops_within_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("best.py").write_text(
        "import torch\n\n\ndef best(a, b, least, found):\n    starts, ends = a.topk(9).indices.cuda(), b.topk(9).indices.cuda()\n"
        "    for i in range(starts.size(0)):\n        for start in starts[i]:\n            for end in ends[i]:\n"
        "                if start <= least[i]:\n                    continue\n                if start > end:\n"
        "                    continue\n                found.append(start.item())\n"
    )
    run(["check", "--no-cache", "--output-format", "json", "--select", "TL901", "best.py"])
    (found,) = json.loads(capsys.readouterr().out)
    assert found["location"]["row"] == 6
    assert [place["location"]["row"] for place in found["places"]] == [7, 8]


def test_rows_that_are_set_to_numbers_one_by_one() -> None:
    code = """
        import torch
        class Net(torch.nn.Module):
            def forward(self, x, n):
                starts = torch.zeros(n, dtype=torch.int32{})
                for i in range(n):{}
                    starts[i] = i * 16
                return self.net(x, starts)
    """
    check_snippet(code.format(', device="cuda"', f"  # <- {RULE}?"), RULE)
    check_snippet(code.format("", ""), RULE)
