"""Each convention in a program in which switching it off changes what is found."""

from __future__ import annotations

# By the id of the convention.
SHOWN: dict[str, str] = {
    "accelerated-training": """\
from torch.utils.data import (
    BatchSampler, ConcatDataset, DataLoader, Dataset, RandomSampler,
    SequentialSampler, Subset, TensorDataset, random_split,
)
class Net(torch.nn.Module):
    pass
model = Net().cuda()
for rows in DataLoader(TensorDataset(torch.rand(100, 1)), batch_size=25):
    model(*rows).sum().backward()
""",
    "accelerator-parts": """\
from torch import nn

gen = Generator()
gen.eval()
imgs = gen(z.cuda())
save_image(imgs, "out.png")
""",
    "accumulation-condition": """\
from torch.nn.parallel import DistributedDataParallel as DDP
def train(model, loader, optimizer, scaler, criterion, accumulation, args):
    model = DDP(model)
    for i, (x, y) in enumerate(loader):
        criterion(model(x), y).backward()
        if i - args.last >= args.accumulate:
            optimizer.step()
""",
    "acting-method": """\
def play_there(policy, environment, episodes):
    for _ in range(episodes):
        while not done:
            logits = policy(torch.as_tensor(state, device="cuda")).cpu()
            state, _, done, _ = environment.step(logits.numpy())
""",
    "alarm-call": """\
def train(model, loader, optimizer, limit, stats):
    for x in loader:
        x = x.cuda()
        if x.max() > limit:
            warn_once("too long: {}".format(x.max().item()))
""",
    "apple-device": """\
def train(model, loader, device, data):
    for x, y in loader:
        x = x.to('mps')
        model(x).sum().backward()
""",
    "attention-known": """\
from torch import einsum, nn



class Attention(nn.Module):

    def forward(self, q, k, v, mask, bias):
        if self.fused:
            return F.scaled_dot_product_attention(q, k, v)
        return (q @ k.transpose(-2, -1)).softmax(dim=-1) @ v
""",
    "averaging-function": """\
import torch
def soft_update(net, ema, m):
    for p, q in zip(net.parameters(), ema.parameters()):
        q.data.lerp_(p.data, m)
""",
    "backward-loss": """\
def train(model, loader, criterion, optimizer):
    count = total = 0
    for inputs, targets in loader:
        tokens = (targets != 0).sum()
        loss = criterion(model(inputs), targets) * tokens
        loss.backward()
        count += tokens
""",
    "bar-call": """\
from my import tqdm
def f(x: torch.Tensor):
    for i in tqdm(range(x.size(0))):
        out.append(x[i] * 2)
""",
    "batch-size": """\
def train(model, loader, opt, batch_size):
    for x in loader:
        for i in range(batch_size):
            keep(y[i].sum().item())
        y.sum().backward()
""",
    "benchmark-settled": """\
from torch import nn
from torch.utils.data import DataLoader, TensorDataset
from torchvision import transforms
import lightning
data = ImageFolder(root, transforms.Compose([transforms.RandomCrop(64), transforms.ToTensor()]))
loader = DataLoader(data, batch_size=32)
model = nn.Sequential(nn.Conv2d(3, 8, 3), nn.Conv2d(8, 8, 3), nn.Conv2d(8, 8, 3)).to("cuda")
for x, y in loader:
    nn.functional.cross_entropy(model(x.to("cuda")), y.to("cuda")).backward()
    optimizer.step()
""",
    "best-few": """\
def pooled(values: torch.Tensor, delays: torch.Tensor, weights: torch.Tensor, top_k):
    for i in range(top_k):
        total = total + pattern * weights[..., i].unsqueeze(-1)
""",
    "bias-test": """\
from torch import nn
net = nn.Sequential(nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8))
for m in net:
    if isinstance(m, nn.Conv2d):
        if m.bias is not None:
            m.bias.zero_()
""",
    "broken-condition": """\
import torch
class Net(nn.Module):
    def forward(self, x, boxes, first: bool, second: bool):
        if torch.isnan(x).any():
            if first:
                x = torch.tensor(0.0, device=x.device)
""",
    "buffering-package": """\
from opacus import PrivacyEngine
from torch.nn.parallel import DistributedDataParallel as DDP
model = DDP(model)

def train(model, loader, optimizer):
    for x in loader:
        optimizer.step()
""",
    "calibration": """\
def collect(model, loader):
    for module in model.modules():
        module.enable_calib()
    for x, y in loader:
        model(x.cuda())
""",
    "called-method": """\
import torch
class Net:
    def forward(self, x, n, mean):
        if mean is None:
            mean = torch.randn(n, n).to(x.device)
""",
    "cap": """\
def first(self, x: torch.Tensor):
    return x.sort(dim=1)[0][:, : self.max_boxes]
""",
    "channel-statistics": """\
import torch
def channels(x: torch.Tensor, mean, std):
    for t, m, s in zip(x, mean, std):
        t.sub_(m).div_(s)
""",
    "checking-option": """\
import torch


def train(model, loader, optimizer, criterion, scaler, debug):
    for step, (inputs, targets) in enumerate(loader):
        loss = criterion(model(inputs.cuda()), targets.cuda())
        if debug and torch.isnan(loss):
            pass
""",
    "checkpointing-package": """\
import torch
import deepspeed

def start(model):
    torch.distributed.init_process_group("gloo")


def resume(model, optimizer, path, args, rank=0, options=None):
    model.load_state_dict(torch.load(path))
""",
    "chore-condition": """\
import gc
import torch


def train(model, loader, optimizer, criterion, device, args):
    for step, (inputs, targets) in enumerate(loader):
        if args.free_memory:
            gc.collect()
""",
    "chore-owner": """\
import torch
def free_memory():
    torch.cuda.empty_cache()
def train(model, loader, optimizer):
    for batch in loader:
        free_memory()
""",
    "chore-range": """\
import gc
import torch


def train(model, loader, optimizer, criterion, device, args):
    for step, (inputs, targets) in enumerate(loader):
        with args.range('collect-garbage'):
            gc.collect()
""",
    "chore-reason": """\
import gc
import torch


def train(model, loader, optimizer, criterion, device, args):
    for step, (inputs, targets) in enumerate(loader):
        gc.collect()  # the hooks leak
""",
    "class-number": """\
import torch
def detect(scores: torch.Tensor, boxes: torch.Tensor, num_classes):
    for cl in range(1, num_classes):
        found.append(nms(boxes[mask], scores[cl][mask], 0.5))
""",
    "clipping-function": """\
from torch import nn, optim

G = nn.Linear(8, 8).cuda()
D = nn.Linear(8, 1).cuda()
opt_g = optim.Adam(G.parameters(), lr=1e-4)
opt_d = optim.Adam(filter(lambda p: p.requires_grad, D.parameters()), lr=1e-4)
for epoch in range(9):
    for real, z in loader:
        fake = G(z)
        loss = F.mse_loss(D(real), ones) + F.mse_loss(D(fake), zeros)
        loss.backward()
        opt_d.step()
        nn.utils.clip_grad_norm_(G.parameters(), 1.0)
        opt_g.zero_grad()
        opt_g.step()
""",
    "clock": """\
import torch


def train(model, loader, optimizer, criterion, device, args, keep):
    for step, (inputs, targets) in enumerate(loader):
        end = torch.cuda.Event(enable_timing=True)
        torch.cuda.synchronize()
""",
    "collate-function": """\
import torch
def collate(images):
    return torch.Tensor(found).cuda()
""",
    "collator": """\
import torch
class PaddingCollator:
    def __call__(self, tokens: torch.Tensor, end):
        for row in tokens:
            found.append(sum(int(number) for number in row if number != end))
""",
    "collecting-method": """\
def evaluate(model, loader, criterion, meter):
    for x, y in loader:
        loss = criterion(model(x.cuda()), y.cuda())
        meter.update(loss.item(), x.size(0))
""",
    "counter": """\
def train(model, loader, optimizer, criterion, writer, accelerator):
    for step, (x, y) in enumerate(bar := tqdm(loader)):
        loss = criterion(model(x.cuda()), y.cuda())
        if step % 50 == 0 or step == 999:
            print(f"{loss}")
""",
    "counting-function": """\
import torch
def start(net, sizes):
    x = torch.rand(1, *sizes).cuda()
    return summary(net, x)
""",
    "cpu-operation": """\
@torch.no_grad()
def detect(model, loader, found, args, tools, writer, keep_all, offload_to_cpu):
    for x, names in loader:
        boxes = model(x.cuda())
        for i in range(boxes.shape[0]):
            found[i] = tools.inside_boxes_cpu(boxes[i].cpu())
""",
    "criterion-call": """\
def evaluate(model, loader, criterion):
    loss, correct = 0, 0
    with torch.no_grad():
        for x, y in loader:
            loss += criterion(out, y.cuda()).item()
""",
    "ctc": """\
def train(model, loader, optimizer, ctc_loss, other_loss):
    for x, y, lengths in loader:
        lengths = lengths.cuda() // 4
        ctc_loss(out, y, lengths.cpu().tolist()).backward()
""",
    "cuda-condition": """\
def run(model, inputs, device, host, other):
    x = model(inputs.to(device)).exp()
    a = x.cpu()
    if torch.cuda.is_available():
        a = a.cuda()
    y = a
""",
    "cuda-flag": """\
def train(model, loader, device, data):
    for x, y in loader:
        if args.cuda:
            pass
        else:
            x = x.to(device)
        model(x).sum().backward()
""",
    "cuda-text": """\
import torch
device = torch.device('cpu')
net = nn.Linear(1, 1).cuda()

def start(model):
    torch.distributed.init_process_group("gloo")


def resume(model, optimizer, path, args, rank=0, options=None):
    model.load_state_dict(torch.load(path))
""",
    "cudnn-reason": """\
import torch
# crashes otherwise
torch.backends.cudnn.enabled = False
""",
    "dataset-base": """\
import torch
class Masked(PairedTextDataset):
    def lengths(self, spans):
        ends = torch.cumsum(spans, 0)
        return [end.item() // 2 for end in ends if end > 3]
""",
    "debug-switch": """\
def train(args, model, loader, optimizer, criterion):
    for x, y in loader:
        loss = criterion(model(x.cuda()), y.cuda())
        if args.verbose:
            print("loss %.3f" % loss)
""",
    "debugging-function": """\
import os
import torch
def set_deterministic():
    os.environ['CUDA_LAUNCH_BLOCKING'] = '1'
""",
    "decoding-method": """\
@torch.no_grad()
def label(model, loader, meter, names):
    for x, y in loader:
        out = model(x.cuda()).cpu()
        meter.update(out, len(y))
        names.extend(meter.get_predictions(y, out))
""",
    "device": """\
import torch
x = torch.ones(1, 3, width).to(device)
""",
    "device-condition": """\
import torch
class Net(nn.Module):
    def forward(self, x, boxes):
        if len(boxes) == 0:
            if torch.cuda.is_available():
                return torch.tensor(0.0).cuda()
""",
    "device-limit": """\
import torch

def run(model, loader, device, host, other):
    for inputs, labels in loader:
        x = model(inputs.to(device)).exp()
        if not device.startswith('x'):
            y = x.cpu().flip(0).to(device)
""",
    "diagnostic-function": """\
@torch.no_grad()
def export(model, loader, folder):
    for x, names in loader:
        out = model(x.cuda())
        for i in range(out.shape[0]):
            np.save(folder / names[i], out[i].cpu().numpy())
""",
    "directive": """\
import torch
def train(model, loader, opt):
    for x in loader:
        opt.step()
        torch.cuda.empty_cache()  # noqa: E501
""",
    "distributed-call": """\
import torch
def wrap(model, rank):
    if rank >= 0:
        return smart_DDP(model)
    return torch.nn.DataParallel(model)
""",
    "dtype-name": """\
def train(model, loader, opt, dtype):
    for x, y in loader:
        x = x.to(dtype)
        loss.backward()
""",
    "dynamic-class": """\
class Router(nn.Module):
    def forward(self, x: torch.Tensor, gate: torch.Tensor):
        return x[gate > 0].mean()
""",
    "dynamic-function": """\
def line_search(model, loss, direction):
    for inputs in range(10):
        loss.backward()
        if loss > 0:
            pass
""",
    "emptiness-condition": """\
import torch


class Net(nn.Module):
    def forward(self, x, device, gpu, n, labels, half: torch.dtype):
        return x if x.sum() > 0 else torch.tensor(0.5, device=x.device)
""",
    "environment-step": """\
def rollout(policy, env, state):
    for t in range(1000):
        state, reward, done, info = env.step(policy(state.cuda()).argmax().item())
""",
    "episode-end": """\
import torch
def play(envs, policy, loader, writer, optimizer):
    rewards = torch.zeros(9, 8, device="cuda")
    for step, x in enumerate(loader):
        for index, over in enumerate(envs.dones):
            if over and index > 0:
                writer.add_scalar("reward", rewards[step][index], step)
""",
    "epoch": """\
def full_batch(model, x, y, optimizer, criterion, num_epochs):
    for e in range(num_epochs):
        loss = criterion(model(x.cuda()), y.cuda())
        print(f"{e}: {loss}")
""",
    "eval-name": """\
from torch import nn
def validate(model: nn.Module, loader):
    with evaluating(model):
        for x in loader:
            y = model(x.cuda())
            print(y.argmax(1).sum())
""",
    "evaluating-word": """\
from torch import nn

def evaluate(model, x):
    model.eval()
    return model(x)

def train(model, x, optimizer):
    evaluate(model, x).sum().backward()
""",
    "export-condition": """\
import torch


class Net(nn.Module):
    def forward(self, x, device, gpu, n, labels, half: torch.dtype):
        return torch.tensor(0.5, device=x.device) if torch.jit.is_tracing() else x
""",
    "fallback": """\
import torch



def norm_fallback(x: torch.Tensor, y, w, eps):
    return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + eps)
""",
    "fault-finder": """\
from torch.autograd import detect_anomaly, set_detect_anomaly
def find_nan():
    set_detect_anomaly(True)
""",
    "few-parts": """\
import torch
def join(x: torch.Tensor, pieces, frames, step):
    for ch_idx in range(x.shape[1]):
        out = torch.cat((out, step(x)), dim=0)
""",
    "file-function": """\
def f(x: torch.Tensor, names):
    for i in range(x.size(0)):
        y = x[i] * 2
        other = load(names[i])
""",
    "file-writer": """\
@torch.no_grad()
def detect(model, loader, found, args, tools, writer, keep_all, offload_to_cpu):
    for x, names in loader:
        boxes = model(x.cuda())
        for i in range(boxes.shape[0]):
            flow = boxes[i].cpu().numpy()
            tools.writeFlow(names[i], flow)
""",
    "fitting-method": """\
from torch.utils.data import DataLoader

loader = DataLoader(dataset, num_workers=4)
trainer.fit(model, loader)
""",
    "float64-wanted": """\
import numpy as np
import torch
from torch.utils.data import DataLoader
import scipy
for x in DataLoader(data, batch_size=8):
    t = torch.from_numpy(np.random.rand(3, 4)).cuda()
""",
    "freezing-function": """\
from torch import nn, optim

G = nn.Linear(8, 8).cuda()
D = nn.Linear(8, 1).cuda()
opt_g = optim.Adam(G.parameters(), lr=1e-4)
opt_d = optim.Adam(filter(lambda p: p.requires_grad, D.parameters()), lr=1e-4)
for epoch in range(9):
    for real, z in loader:
        G.requires_grad_(False)
        fake = G(z)
        loss = F.mse_loss(D(real), ones) + F.mse_loss(D(fake), zeros)
        loss.backward()
        opt_d.step()
        opt_g.zero_grad()
        opt_g.step()
""",
    "frozen-model": """\
from torch.nn.parallel import DistributedDataParallel as DDP
model = DDP(teacher)

def train(model, loader, optimizer):
    for x in loader:
        optimizer.step()
""",
    "generating-method": """\
from torch import nn

class Model(nn.Module):
    def __init__(self, width):
        self.encoder = nn.TransformerEncoder(nn.TransformerEncoderLayer(width, 4), 2)



    def forward(self, x: torch.Tensor):
        mask = self.generate(x)
        return self.encoder(x, mask)
""",
    "graph-field": """\
import torch
from torch_geometric.nn import GCNConv
class Net(torch.nn.Module):
    def forward(self, data):
        h = data["paper"].x
        if h[data["paper"].batch > 3].sum() > 0:
            return h
        return h + torch.ones(3).to(h.device)
model = Net().cuda()
for data in loader:
    model(data.to("cuda")).sum().backward()
""",
    "graph-package": """\
import dgl
def train(model, loader, device, data):
    for x, y in loader:
        x = x.to(device)
        model(x).sum().backward()
""",
    "host-library": """\
import torch
from sklearn.metrics import f1_score
def evaluate(model, criterion, loader, device):
    for graphs, labels in loader:
        f1 += f1_score(labels.cpu(), logits.argmax(dim=1).cpu())
""",
    "hypotheses": """\
@torch.no_grad()
def search(model, scorer, loader):
    for x in loader:
        encoded = model(x.cuda())
        for one in top_hypothesis:
            scorer.score(one, (encoded * one.weight).topk(4)[1].cpu())
""",
    "identity-collate": """\
from torch.utils.data import DataLoader
for x in DataLoader(open_rows(), 8, collate_fn=trivial_collate):
    pass
""",
    "image-and-target": """\
import torch
class Halved:
    def __call__(self, img, target):
        pass
    def kept(self, labels: torch.Tensor, first):
        for label in labels:
            if label.item() not in first:
                first.append(label.item())
""",
    "index-list": """\
from torch.utils.data import DataLoader
for x in DataLoader(split.train_idx, 8):
    pass
""",
    "inherited-evaluation": """\
from torch import nn


class Mine(Agent):
    def eval_step(self, x):
        self.model.eval()
        return self.model(x).argmax(1).tolist()
""",
    "layer-test": """\
from torch import nn
net = nn.Sequential(nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8))
for m in net.modules():
    if isinstance(m, nn.BatchNorm2d):
        m.bias.data.zero_()
""",
    "layout-settled": """\
from torch import nn
from torch.cuda.amp import autocast
model = nn.Sequential(nn.Conv2d(3, 8, 3), nn.Conv2d(8, 8, 3), nn.Conv2d(8, 8, 3), nn.InstanceNorm2d(8)).cuda()
for x, y in loader:
    with autocast():
        pass
    loss.backward()
""",
    "limit-flag": """\
def train(model, loader, opt, should_log):
    for x, y in loader:
        loss.backward()
        if should_log:
            print(loss.item())
""",
    "list": """\
def weighted(score: torch.Tensor, feature_list, n):
    for i in range(n):
        found.append(score[:, i : i + 1] * feature_list[i])
""",
    "loader": """\
import numpy as np
import torch
for x in loader:
    y = torch.tensor([np.ones(x) for n in (1, 2)])
""",
    "loader-ending": """\
def evaluate(self, model, data, test_loader, train_dl, loaders, names):
    own = DataLoader(data)
    x = list(test_loader)[0]
""",
    "loading-method": """\
from torch import nn
class Net(nn.Module):
    def load_weights(self):
        self.eval()
head = nn.Sequential(nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8))
""",
    "log-owner": """\
import torch
def tell(seen: torch.Tensor):
    logging.info("seen: %s", [torch.sqrt(x) for x in seen])
""",
    "log-shower": """\
from torch import nn
class Dump(nn.Module):
    def forward(self, x, pairs, out):
        for part, pairs in zip(kept, pairs):
            print(f"saved {pairs}")
""",
    "log-writer": """\
def train(model, loader, optimizer, criterion, writer, accelerator):
    for step, (x, y) in enumerate(loader):
        loss = criterion(model(x.cuda()), y.cuda())
        writer.add_scalar("loss", loss, step)
""",
    "logger": """\
import torch


@torch.compile
def f(x: torch.Tensor, flag):
    y = x.sin()
    logger.info('hello')
    return y.cos()
""",
    "logging-call": """\
import torch
def train(model, loader, opt, logger):
    for x, y in loader:
        loss = model(x.cuda()).sum()
        if torch.isnan(loss):
            logger.info('nan')
""",
    "lookup-table": """\
import torch
def words(ids: torch.Tensor, vocab):
    return [vocab[i] for i in ids]
""",
    "loss": """\
@torch.no_grad()
def evaluate(model, loader, criterion, losses):
    for x, y in loader:
        losses.append(criterion(model(x.cuda()).cpu(), y))
""",
    "loss-scaling": """\
import torch
import deepspeed
for x, y in loader:
    with torch.autocast('cuda', dtype=torch.float16):
        loss = nn.functional.cross_entropy(model(x.cuda()), y.cuda())
    loss.backward()
    optimizer.step()
""",
    "loss-word": """\
def train(model, loader, opt, f):
    total = 0
    for x, y in loader:
        loss.backward()
        total += loss.item()
""",
    "made-up-data": """\
from torch.utils.data import DataLoader
for x in DataLoader(MockRows(3), 8):
    pass
""",
    "made-up-function": """\
import torch
def make_dummy_batch(n, layer):
    return torch.ones(n, n).to(layer.weight.device)
""",
    "many-parts": """\
import torch
def join(x: torch.Tensor, pieces, frames, step):
    for k in range(len(frames) - 1):
        out = torch.cat((out, step(x)), dim=0)
""",
    "mask": """\
import torch
def f(x: torch.Tensor, y: torch.Tensor):
    z = []
    for i in range(len(x)):
        mask = x[i]
        z.append(y[mask])
    return torch.stack(z)
""",
    "memory-comment": """\
import torch
def entropies(logits: torch.Tensor):
    # loop to reduce peak mem consumption
    return torch.stack([torch.logsumexp(row, dim=-1) for row in logits])
""",
    "memory-option": """\
def attract(a: torch.Tensor, b: torch.Tensor, memory_efficient):
    if not memory_efficient:
        pass
    for i in range(a.size(1)):
        total += a[:, i, None] - b
""",
    "micro-batch": """\
from torch.utils.data import (
    BatchSampler, ConcatDataset, DataLoader, Dataset, RandomSampler,
    SequentialSampler, Subset, TensorDataset, random_split,
)
def train(x, y, n, step, config, wanted):
    data = TensorDataset(x, y)
    loader = DataLoader(data, batch_size=config.micro_batch_size)
    for batch in loader:
        pass
""",
    "mode-switch": """\
def train(model: nn.Module, other: nn.Module, loader, optimizer, evaluate, debug):
    for step, inputs in enumerate(loader):
        model.train()
        evaluate(model)
        model(inputs.cuda()).mean().backward()
""",
    "model-class": """\
from transformers import BertModel

model = BertModel.from_pretrained('bert-base-uncased').cuda()
for x, y in loader:
    nn.functional.cross_entropy(model(x.cuda()), y.cuda()).backward()
""",
    "model-parts": """\
def train(net, ema, loader, m):
    for x in loader:
        net(x.cuda()).sum().backward()
        for p, q in enumerate(net.parameters()):
            q.mul_(m).add_(p)
""",
    "module": """\
import torch
model.eval()
print(model(x).sum())
""",
    "moved-by-framework": """\
def train(model, loader, device, data):
    for x, y in accelerator.prepare(loader):
        x = x.to(device)
        model(x).sum().backward()
""",
    "no-grad-name": """\
def run(model, loader):
    with my_no_grad():
        for x in loader:
            y = model(x.cuda())
            print(y.sum().item())
""",
    "no-model": """\
from torch.autograd import Variable
def f(model, x, y, flag):
    return criterion(model(x), Variable(y, volatile=True))
""",
    "no-processor": """\
import torch
from transformers import AutoImageProcessor
proc = AutoImageProcessor.from_pretrained('x')
def evaluate(loader):
    for t in loader:
        out = proc(t)
        print(out.sum().item())
""",
    "norm-condition": """\
from torch import nn
class N(nn.Module):
    def __init__(self):
        self.conv = nn.Conv2d(3, 8, 3)
        self.bn = nn.BatchNorm2d(8)
    def freeze(self):
        for m in self.modules():
            if isinstance(m, nn.BatchNorm2d):
                m.eval()
    def forward(self, x):
        return self.bn(self.conv(x))
""",
    "nothing-there": """\
def train(model, loader, optimizer):
    for x in loader:
        if len(kept) == 0:
            print(f"of all: {found.detach()}")
        kept.sum().backward()
""",
    "offloading-option": """\
@torch.no_grad()
def detect(model, loader, found, args, tools, writer, keep_all, offload_to_cpu):
    for x, names in loader:
        boxes = model(x.cuda())
        for i in range(boxes.shape[0]):
            if args.cpu_cache:
                found[i] = boxes[i].cpu()
""",
    "optimizer": """\
from torch.nn.parallel import DistributedDataParallel as DDP
def train(model, loader, optimizer, n):
    model = DDP(model)
    for x in loader:
        for part in x.chunk(n):
            model(part.cuda()).sum().backward()
        optimizer.step()
""",
    "optimizer-call": """\
import torch
model = torch.nn.DataParallel(model).cuda()
optimizer = make_optimizer(model)
model.eval()
""",
    "optimizer-package": """\
import apex
from torch import nn, optim
net = nn.Sequential(nn.Linear(8, 8), nn.ReLU(), nn.Linear(8, 1)).cuda()
opt = optim.Adam(net.parameters())
""",
    "optimizer-text": """\
import torch
def keep(model, optimizer, path):
    state = {key: value.cpu() for key, value in model.state_dict().items()}
    torch.save([state, optimizer.state_dict()], path)


def start(model):
    torch.distributed.init_process_group("gloo")


def resume(model, optimizer, path, args, rank=0, options=None):
    model.load_state_dict(torch.load(path))
""",
    "ordered-work": """\
import torch


class HostSGD(torch.optim.Optimizer):
    def step(self):
        torch.cuda.synchronize()
        for group in self.param_groups:
            for weight in group["params"]:
                host = weight.grad.to(device="cpu")
""",
    "other-device": """\
import torch
def train(model, loader, device, data):
    for x, y in loader:
        x = x.to(torch.accelerator.current_accelerator())
""",
    "other-models": """\
from torch import nn

from ultralytics import YOLO

def detect(source):
    model = YOLO("n.pt")
    model.eval()
    for frame in source:
        print(model(frame, conf=0.5)[0].boxes)
""",
    "output-field": """\
def evaluate(model, loader, device):
    with torch.inference_mode():
        for batch in loader:
            loss = model(**batch).loss
            losses.append(float(loss))
""",
    "overflow-condition": """\
def train(model, loader, optimizer, criterion, writer, accelerator):
    for step, (x, y) in enumerate(bar := tqdm(loader)):
        loss = criterion(model(x.cuda()), y.cuda())
        if overflow:
            print(f"{loss}")
""",
    "own-device": """\
import torch
class RandomSign(nn.Module):
    def forward(self, x):
        device, size = self.device, x.shape
        return x * torch.tensor(-1.0, device=device).expand(size)
""",
    "packed-sizes": """\
class Cell(nn.Module):
    def forward(self, x: torch.Tensor, batch_sizes: torch.Tensor):
        for step in range(9):
            size = batch_sizes[step].item()
        return PackedSequence(x, batch_sizes)
""",
    "parallel-class": """\
import torch
class DataParallelStrategy:
    def wrap(self, model):
        return torch.nn.DataParallel(model)
""",
    "picked-by-name": """\
import torch, typing

class Swish(torch.nn.Module):
    def forward(self, x):
        return x * torch.sigmoid(x)

def get(name):
    return eval(name)()
""",
    "picture-writer": """\
import torch
def sample(out: torch.Tensor, images, generator):
    for image in images:
        out = torch.cat((out, generator(image)), -2)
    save_image(out, "samples.png")
""",
    "place-condition": """\
import torch


def train(model, loader, optimizer, device, table):
    for inputs, targets in loader:
        y = model(x)
        w = (y > 0.5).type(torch.FloatTensor) if not x.is_cuda else y
""",
    "platform-name": """\
from torch.utils.data import DataLoader

loader = DataLoader(dataset, num_workers=0 if sys.platform == 'win32' else 4)
for batch in loader:
    pass
""",
    "precision-settled": """\
from torch import nn
import lightning
model = nn.TransformerEncoder(nn.TransformerEncoderLayer(512, 8), 6).to("cuda")
for x, y in loader:
    nn.functional.cross_entropy(model(x.to("cuda")), y.to("cuda")).backward()
""",
    "progress-bar": """\
def train(model, data, opt):
    for x, y in mytqdm(loader):
        x = x.cuda()
        print(model(x).sum().item())
""",
    "prompt-reader": """\
from torch.utils.data import DataLoader
run(LLMEnv.from_dataloader(dataloader=DataLoader(open_rows(), 8)))
""",
    "pyramid": """\
import torch
def f(x: torch.Tensor, spatial_shapes: torch.Tensor):
    for s in spatial_shapes:
        out.append(s * 2)
""",
    "rank-condition": """\
import torch.distributed as dist
def train(model, loader, optimizer, criterion, meter, args):
    for i, (x, y) in enumerate(loader):
        optimizer.step()
        if dist.get_rank() == 0:
            torch.save(x, y)
        dist.barrier()
""",
    "rare-function": """\
import torch
def log_conditionings(x: torch.Tensor, write):
    return write([torch.sqrt(x[i]) for i in range(x.shape[0])])
""",
    "recurring-counter": """\
import torch


def train(model, loader, optimizer, criterion, device, args):
    for step, (inputs, targets) in enumerate(loader):
        if train_step == args.accumulate:
            torch.cuda.empty_cache()
""",
    "reducing-function": """\
def train(model, loader, optimizer, criterion, meter, args):
    for i, (x, y) in enumerate(loader):
        loss.backward()
        total += reduce_tensor(loss.detach()).item()
""",
    "reference-function": """\
import torch
table = {'swish': dict(func=lambda x, **_: torch.sigmoid(x) * x)}
def act_ref(x, name):
    pass
""",
    "replay-buffer": """\
from torch.utils.data import DataLoader
for x in DataLoader(self.data_buffer, 8, collate_fn=join):
    pass
""",
    "requires-grad-misspelt": """\
from torch import nn
layer = nn.Linear(2, 2)
layer.require_grad = False
""",
    "resizing-call": """\
import torch.nn.functional as F
class N(nn.Module):
    def one(self, x):
        return F.interpolate(x[None], size=s)
    def forward(self, x):
        return [self.one(x[i]) for i in range(x.size(0))]
""",
    "rmsnorm-known": """\
import torch



norms = FusedRMSNorm


def norm(x: torch.Tensor, y, w, eps):
    return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + eps)
""",
    "sample-code": """\
import torch
class RandomSign(nn.Module):
    def forward(self, x):
        device, size = self.device, x.shape
        return x * torch.tensor(-1.0, device=device).expand(size)
""",
    "sample-source": """\
from torch.utils.data import DataLoader, Dataset, IterableDataset, get_worker_info


class Stream(IterableDataset):

    def __iter__(self):
        for item in self.dataset:
            yield item


def make(path, items, dataset, args, setup):
    stream = Stream(path, items, dataset)
    return DataLoader(stream, num_workers=4)
""",
    "sampler-framework": """\
import lightning
from torch.utils.data import (
    BatchSampler, ConcatDataset, DataLoader, Dataset, RandomSampler,
    SequentialSampler, Subset, TensorDataset, random_split,
)
def train(x, y, n, step, config, wanted):
    data = TensorDataset(x, y)
    loader = DataLoader(data, batch_size=64)
    for batch in loader:
        pass
""",
    "saving-function": """\
def predict(model, loader, args, folder):
    for x in loader:
        with torch.no_grad():
            out = model(x.cuda())
        for i in range(out.shape[0]):
            save_features(out[i].cpu().numpy(), folder)
""",
    "saving-option": """\
def predict(model, loader, args, folder):
    for x in loader:
        with torch.no_grad():
            out = model(x.cuda())
        for i in range(out.shape[0]):
            if args.save_results:
                kept["boxes"].append(out[i, :4].cpu())
""",
    "scaler": """\
import torch


def train(model, loader, optimizer, criterion, scaler, debug):
    for step, (inputs, targets) in enumerate(loader):
        loss = criterion(model(inputs.cuda()), targets.cuda())
        if torch.isnan(loss):
            pass
        scaler.step(optimizer)
""",
    "seen-target": """\
import torch
class Halved:
    def __call__(self, img, target):
        pass
    def kept(self, labels: torch.Tensor, first):
        for label in labels:
            if label.item() not in first:
                first.append(label.item())
""",
    "settings": """\
def train(model, loader, opt, cfg):
    for x, y in loader:
        x = x.to(cfg.device)
        loss.backward()
""",
    "several-processes": """\
import torch


def start(model):
    torch.distributed.init_process_group("gloo")


def resume(model, optimizer, path, args, rank=0, options=None):
    if not args.distributed:
        model.load_state_dict(torch.load(path))
""",
    "sharded-model": """\
import torch

class Runner:

    def run(self, batches):
        def step(batch):
            return self.model(batch)

        with torch.no_grad():
            for batch in batches:
                total += step(batch).sum().item()

from torch.distributed.fsdp import fully_shard
""",
    "shares-samples": """\
from torch.utils.data import DataLoader, Dataset, IterableDataset, get_worker_info


class Stream(IterableDataset):

    def __iter__(self):
        for item in self.shard_of_items:
            yield item


def make(path, items, dataset, args, setup):
    stream = Stream(path, items, dataset)
    return DataLoader(stream, num_workers=4)
""",
    "short-of-memory": """\
import torch
class Net(nn.Module):
    def forward(self, frames):
        if self.cpu_cache:
            for batch in frames:
                torch.cuda.empty_cache()
""",
    "showing-condition": """\
import torch
def predict(args, outputs: torch.Tensor):
    roots = []
    if args.joint_visualization:
        for i in range(len(outputs)):
            roots.append(torch.sqrt(outputs[i]))
    return roots
""",
    "showing-function": """\
@torch.no_grad()
def detect(model, loader, found, args, tools, writer, keep_all, offload_to_cpu):
    for x, names in loader:
        boxes = model(x.cuda())
        for i in range(boxes.shape[0]):
            box = boxes[i].cpu().numpy()
            draw(box)
""",
    "shown-number": """\
from torch.utils.data import DataLoader
for i, x in enumerate(DataLoader(PhotoDataset('a'), 1)):
    if i == args.n_test_samples - 1:
        break
""",
    "singled-out": """\
import torch


def start(model):
    torch.distributed.init_process_group("gloo")


def resume(model, optimizer, path, args, rank=0, options=None):
    if rank == 0:
        model.load_state_dict(torch.load(path))
""",
    "small-networks": """\
from torch import nn
import gymnasium
model = nn.TransformerEncoder(nn.TransformerEncoderLayer(512, 8), 6).to("cuda")
for x, y in loader:
    nn.functional.cross_entropy(model(x.to("cuda")), y.to("cuda")).backward()
""",
    "sparse-gradients": """\
from torch import optim
from torch.cuda.amp import GradScaler
optimizer = optim.SGD(nn.Embedding(9, 9, sparse=True).parameters())
scaler = GradScaler()

for x, y in loader:
    scaler.step(optimizer)
""",
    "star-imported": """\
import torch
from utility.batch_test import *
def best(log):
    recalls = np.array(log)
    return max(recalls[:, 0])
""",
    "started-flag": """\
import torch
class Net(nn.Module):
    def forward(self, x):
        if not self.init:
            self.begin(x)
    def begin(self, x):
        weight = torch.tensor([0.1, 0.9], device=x.device)
""",
    "state-loader": """\
import torch
from torch import optim
model = Net().cuda()
optimizer = optim.Adam(model.parameters())

resume(path, model, optimizer)
""",
    "stateless-loss": """\
import torch
class Several(nn.Module):
    def forward(self, scores: torch.Tensor, wanted: torch.Tensor):
        for i, part in enumerate(scores[1:]):
            loss += self.criterion(part, wanted)
""",
    "step-counter": """\
import torch


def train(model, loader, optimizer, criterion, device, args):
    for step, (inputs, targets) in enumerate(loader):
        if train_step == args.pretrain_steps:
            torch.cuda.empty_cache()
""",
    "step-method": """\
from transformers import BertModel

model = BertModel.from_pretrained('bert-base-uncased').cuda()
for x, y in loader:
    nn.functional.cross_entropy(model(x.cuda()), y.cuda()).backward()
    optimizer.step()
""",
    "structure": """\
import torch
def run(h: torch.Tensor, num_layers, w):
    for layer in range(num_layers):
        out.append(h[layer] * w)
""",
    "suppression": """\
@torch.no_grad()
def detect(model, loader, found):
    for images in loader:
        boxes, scores, labels = model(images.cuda())
        for i in range(boxes.shape[0]):
            kept = batched_nms(boxes[i], scores[i], labels[i], 0.5)
            found.append({"boxes": left.host(), "scores": scores[i][kept].cpu().numpy()})
""",
    "syncing-framework": """\
from torch.nn.parallel import DistributedDataParallel
def train(model, loader, optimizer, criterion):
    model = DistributedDataParallel(model)
    for batch in loader:
        for part in batch.chunk(4):
            with model.no_sync(): criterion(model(part)).backward()
        optimizer.step()
""",
    "test-function": """\
from torch.utils.data import DataLoader, Dataset, Subset





def test_loader(data):
    loader = DataLoader(data, num_workers=4, collate_fn=lambda b: b)
""",
    "text-name": """\
from torch import Tensor, nn
class Losses(nn.Module):
    def forward(self, batch: dict[str, Tensor], scores: Tensor):
        print("loss of {}".format(batch["split"]))
""",
    "tiny-data": """\
from torch import nn
data = torchvision.datasets.FashionMNIST(root)
model = nn.Sequential(nn.Conv2d(3, 8, 3), nn.Conv2d(8, 8, 3), nn.Conv2d(8, 8, 3)).cuda()
for x, y in loader:
    nn.functional.cross_entropy(model(x.cuda()), y.cuda()).backward()
    optimizer.step()
""",
    "tokenising-call": """\
def train(model, loader, optimizer, criterion, writer, accelerator):
    for step, (x, y) in enumerate(bar := tqdm(loader)):
        loss = criterion(model(x.cuda()), y.cuda())
        tokens = model.tokenizer([f"{loss}."])
""",
    "tracing-call": """\
from torch import nn

def validate(model, loader):
    model.eval()
    if export:
        torch.onnx.export(model, x, "net.onnx")
    print(model(x).sum())
""",
    "tracker": """\
def train(model, loader, optimizer, criterion, writer, accelerator):
    for step, (x, y) in enumerate(bar := tqdm(loader)):
        loss = criterion(model(x.cuda()), y.cuda())
        wandb.log({"loss": loss})
""",
    "trainer-class": """\
class WithMetrics(Trainer):
    def compute_loss(self, model, inputs, return_outputs=False):
        loss = model(**inputs).loss
        self.metrics["loss"].append(loss.item())
    def prediction_step(self, model, inputs, prediction_loss_only):
        with torch.no_grad():
            return self.compute_loss(model, inputs)
""",
    "trainer-object": """\
from torch.nn.parallel import DistributedDataParallel as DDP
model = DDP(model)


def step(self):
    self.mp_trainer.zero_grad()
""",
    "training-call": """\
import torch
model = torch.nn.DataParallel(model).cuda()
model.train()
model.eval()
""",
    "training-step": """\
from torch.nn.parallel import DistributedDataParallel as DDP
def demo(model, x):
    model = DDP(model, device_ids=[0])
    for x in x: model(x).sum().backward()
""",
    "transform-class": """\
class TargetTransform:
    def __call__(self, overlap: torch.Tensor, prior: torch.Tensor):
        for row in range(prior.size(0)):
            overlap[row] = prior[row] * 2
""",
    "trial-function": """\
from torch.optim import AdamW
def bench_layer(device):
    model = nn.Sequential(nn.Linear(8, 8), nn.ReLU(), nn.Linear(8, 1)).to(device)
    opt = AdamW(model.parameters())
""",
    "unpinnable-package": """\
import dgl
from torch.utils.data import DataLoader, TensorDataset
def train(model, data, device, options, pin):
    loader = DataLoader(data, num_workers=4, collate_fn=join)
    for x, y in loader:
        x = x.to(device)
        model(x).sum().backward()
""",
    "usual-condition": """\
import gc
import torch


def train(model, loader, optimizer, criterion, device, args):
    for step, (inputs, targets) in enumerate(loader):
        if args.rank == 0:
            gc.collect()
""",
    "varying-sizes": """\
from torch import nn
from torch.utils.data import DataLoader, TensorDataset
from torchvision import transforms
multi_scale = True
data = ImageFolder(root, transforms.Compose([transforms.RandomCrop(64), transforms.ToTensor()]))
loader = DataLoader(data, batch_size=32)
model = nn.Sequential(nn.Conv2d(3, 8, 3), nn.Conv2d(8, 8, 3), nn.Conv2d(8, 8, 3)).to("cuda")
for x, y in loader:
    nn.functional.cross_entropy(model(x.to("cuda")), y.to("cuda")).backward()
    optimizer.step()
""",
    "visualiser": """\
class BoxVisualizer:
    @torch.no_grad()
    def draw(self, model, loader):
        for x in loader:
            out = model(x.cuda())
            for i in range(out.shape[0]):
                self.texts.append(out[i][out[i] > self.least].tolist())
""",
    "waiting-condition": """\
import torch


class Net(nn.Module):
    def forward(self, x, device, gpu, n, labels, half: torch.dtype):
        return torch.tensor(0.5, device=x.device) if x.mean().item() > 1 else x
""",
    "weight-loader": """\
from torch import nn
net = nn.Sequential(nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8))
net.load_state_dict(torch.load('weights.pt'))
""",
    "worker-condition": """\
from torch.utils.data import DataLoader
if num_workers == 0:
    loader = DataLoader(ds)
for x in loader:
    pass
""",
    "worker-number": """\
from torch.utils.data import DataLoader
WORKERS = 0
for batch in DataLoader(ds, num_workers=WORKERS):
    pass
""",
    "worker-reason": """\
from torch.utils.data import DataLoader
loader = DataLoader(ds, num_workers=0)  # CUDA handles do not survive a fork
for x in loader:
    pass
""",
    "workers-not-needed": """\
from torch.utils.data import DataLoader
# The rows are in memory, no need of workers
b = DataLoader(open_rows(), 8, num_workers=0)
fit(model, b)
""",
    "wrapping-method": """\
def train(model, data, device, options, pin):
    for x, y in Logger(delimiter=' ').log_every(loader, 10):
        x = x.to(device)
        model(x).sum().backward()
""",
    "writing-method": """\
from torch.utils.data import DataLoader
for step, x in enumerate(DataLoader(open_rows(), 8)):
    print(model.generate(x))
""",
}

# Those of which only this rule says anything there, which yields to others.
# Those that the look-alikes of this rule show.
IN_LOOK_ALIKES = {
    "asserting-call": "bulk_d2h_in_hot_loop",
    "changing-dataset": "dataloader_respawns_workers",
    "epoch-text": "dataloader_respawns_workers",
    "gradient-word": "eval_without_no_grad",
    "no-module-base": "item_in_train_loop",
    "tensor-attribute": "host_factory_then_move",
    "traced-condition": "list_to_device_in_hot_path",
}

# Those that take more than one small file, and where they are seen to change something.
ELSEWHERE = {
    "accelerator-words": "a file of timm (models/sequencer.py) that names nothing but `device`",
    "array-package": "tests/analyses/test_element_loops.py",
    "draws-samples": "tests/rules/data/test_iterable_dataset_not_sharded.py",
    "entry-point": "tests/rules/autograd/test_eval_without_no_grad.py",
    "fusing-decorator": "tests/rules/modules/test_unfused_rmsnorm.py",
    "generating-call": "tests/semantics, the kinds of what `generate` gives",
    "half-precision": "tests/rules/sync/test_item_in_train_loop.py",
    "layer-function": "tests of several files: it decides which imported functions are asked about",
    "meter-class": "tests/semantics/test_frequency.py",
    "meter-method": "tests/semantics/test_frequency.py",
    "moving-name": "a file of kornia (geometry/ransac.py)",
    "options": "examples/imagenet of torch: the options are parsed in another function",
    "own-move": "tests/rules/transfer/test_nonblocking_d2h_read.py",
    "watched-graph": "tests/rules/autograd/test_generator_graph_in_discriminator_step.py",
}

# Those that still hide a finding where they are shown: each is to become a doubt, or what the code does.
SILENCING = frozenset(
    {
        "alarm-call",
        "apple-device",
        "asserting-call",
        "attention-known",
        "backward-loss",
        "benchmark-settled",
        "broken-condition",
        "buffering-package",
        "calibration",
        "checkpointing-package",
        "clipping-function",
        "clock",
        "collator",
        "counter",
        "cuda-flag",
        "cudnn-reason",
        "dataset-base",
        "device-condition",
        "diagnostic-function",
        "dtype-name",
        "emptiness-condition",
        "epoch",
        "eval-name",
        "evaluating-word",
        "export-condition",
        "file-function",
        "float64-wanted",
        "freezing-function",
        "generating-method",
        "gradient-word",
        "image-and-target",
        "inherited-evaluation",
        "layout-settled",
        "list",
        "loading-method",
        "log-owner",
        "loss-scaling",
        "mask",
        "memory-comment",
        "micro-batch",
        "moved-by-framework",
        "no-grad-name",
        "no-model",
        "no-processor",
        "norm-condition",
        "optimizer-package",
        "ordered-work",
        "other-models",
        "own-device",
        "packed-sizes",
        "picked-by-name",
        "place-condition",
        "platform-name",
        "precision-settled",
        "prompt-reader",
        "rank-condition",
        "reducing-function",
        "resizing-call",
        "rmsnorm-known",
        "sample-code",
        "sampler-framework",
        "seen-target",
        "sharded-model",
        "shown-number",
        "small-networks",
        "sparse-gradients",
        "star-imported",
        "started-flag",
        "step-counter",
        "step-method",
        "structure",
        "syncing-framework",
        "text-name",
        "tiny-data",
        "traced-condition",
        "tracing-call",
        "trainer-class",
        "trainer-object",
        "transform-class",
        "unpinnable-package",
        "varying-sizes",
        "waiting-condition",
        "worker-reason",
        "workers-not-needed",
        "writing-method",
    }
)
