"""How often the loops run that have no loader in sight, and what is called in ways of its own; each with look-alikes."""

from __future__ import annotations

import pytest
from looking import look

from torchlint.finding import Frequency

HEAD = "import torch\nfrom torch import nn\nfrom torch.utils.data import DataLoader\n"


CASES = {
    "a function in a model's place": (
        """
def sample(model, x, steps):
    for i in range(steps):
        x = model(x, i)
        LOOK(1)
    return x

def guided(net, x):
    def model_fn(x, i):
        return net(x) * i
    return sample(model_fn, x, 50)
""",
        Frequency.BATCH,
    ),
    "a function in a loss's place": (
        """
def watch(criterion, x, steps):
    for i in range(steps):
        loss = criterion(x, i)
        LOOK(1)

def watched(x):
    def mse(x, i):
        return (x - i).square().mean()
    return watch(mse, x, 50)
""",
        Frequency.UNKNOWN,
    ),
    "env.step in range": (
        """
def run(env, policy, n):
    obs = env.reset()
    for _ in range(n):
        obs, r, done, info = env.step(policy(obs))
        LOOK(1)
""",
        Frequency.BATCH,
    ),
    "gym make main": (
        """
import gymnasium as gym
env = gym.make("CartPole-v1")
obs, _ = env.reset()
for step in range(100):
    a = agent(obs)
    obs, r, term, trunc, info = env.step(a)
    LOOK(1)
""",
        Frequency.BATCH,
    ),
    "while not done": (
        """
def episode(env, agent):
    state = env.reset()
    done = False
    while not done:
        action = agent.act(state)
        state, reward, done, _ = env.step(action)
        LOOK(1)
""",
        Frequency.BATCH,
    ),
    "episode loop around": (
        """
def train(env, agent):
    for episode in range(100):
        state = env.reset()
        done = False
        while not done:
            state, reward, done, _ = env.step(agent(state))
        LOOK(1)
""",
        Frequency.EPOCH,
    ),
    "cleanrl rollouts": (
        """
import gymnasium as gym
envs = gym.vector.SyncVectorEnv([f])
for iteration in range(1, n+1):
    for step in range(0, 128):
        with torch.no_grad():
            action = agent.get_action(x)
        x, r, t, tr, info = envs.step(action.cpu().numpy())
        LOOK(1)
""",
        Frequency.BATCH,
    ),
    "cleanrl minibatch": (
        """
for iteration in range(1, n+1):
    for epoch in range(update_epochs):
        np.random.shuffle(b_inds)
        for start in range(0, batch_size, minibatch_size):
            loss = f(start)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            LOOK(1)
""",
        Frequency.BATCH,
    ),
    "cleanrl iteration level": (
        """
for iteration in range(1, n+1):
    for step in range(0, 128):
        x, r, t, tr, info = envs.step(action.cpu().numpy())
    for epoch in range(update_epochs):
        for start in range(0, batch_size, minibatch_size):
            loss = f(start)
            loss.backward()
            optimizer.step()
    LOOK(1)
""",
        Frequency.EPOCH,
    ),
    "buffer minibatches": (
        """
def update(self, buffer):
    for batch in buffer.minibatches(64):
        loss = self.policy.loss(batch)
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        LOOK(1)
""",
        Frequency.BATCH,
    ),
    "off policy: sample inside env loop": (
        """
for t in range(total):
    next_obs, reward, done, _ = env.step(action)
    replay.add(obs, action, next_obs)
    if t >= start:
        batch = replay.sample(256)
        loss = f(batch)
        loss.backward()
        opt.step()
        LOOK(1)
""",
        Frequency.BATCH,
    ),
    "agent.train(replay)": (
        """
class TD3:
    def train(self, replay_buffer, batch_size=256):
        self.total_it += 1
        state, action = replay_buffer.sample(batch_size)
        loss = self.critic(state).mean()
        self.critic_optimizer.zero_grad()
        loss.backward()
        self.critic_optimizer.step()
        LOOK(1)
""",
        Frequency.BATCH,
    ),
    "select_action called in env loop": (
        """
class Agent(nn.Module):
    def select_action(self, s):
        return LOOK(self.actor(s).cpu())
agent = Agent()
def main(env):
    state = env.reset()
    for t in range(1000):
        a = agent.select_action(state)
        state, r, d, _ = env.step(a)
""",
        Frequency.BATCH,
    ),
    "list of agents": (
        """
class Agent:
    def update(self, x):
        LOOK(1)
class Pool:
    def __init__(self):
        self.agents = [Agent() for _ in range(3)]
    def run(self, loader):
        for x in loader:
            for agent in self.agents:
                agent.update(x)
""",
        Frequency.BATCH,
    ),
    "list of agents local": (
        """
class Agent:
    def update(self, x):
        LOOK(1)
agents = [Agent(), Agent()]
for x in loader:
    for agent in agents:
        agent.update(x)
""",
        Frequency.BATCH,
    ),
    "evaluation episodes": (
        """
def eval_policy(policy, env_name, seed, eval_episodes=10):
    eval_env = gym.make(env_name)
    for _ in range(eval_episodes):
        state, done = eval_env.reset(), False
        while not done:
            action = policy.select_action(np.array(state))
            state, reward, done, _ = eval_env.step(action)
            LOOK(1)
""",
        Frequency.BATCH,
    ),
    "look-alike: step of something with no result": (
        """
def run(thing, n):
    for _ in range(n):
        thing.step(3)
        LOOK(1)
""",
        Frequency.UNKNOWN,
    ),
    "look-alike: scheduler steps": (
        """
def run(scheduler, n):
    for _ in range(n):
        scheduler.step()
        LOOK(1)
""",
        Frequency.UNKNOWN,
    ),
    "look-alike: tuple from step once": (
        """
def run(machine, items):
    for name in items:
        a = machine.step(name)
        LOOK(1)
""",
        Frequency.UNKNOWN,
    ),
    "micro range": (
        """
for step in range(max_steps):
    optimizer.zero_grad()
    for micro_step in range(accum):
        x, y = get_batch('train')
        loss = model(x, y) / accum
        loss.backward()
        LOOK(1)
    optimizer.step()
""",
        Frequency.BATCH,
    ),
    "outer of micro": (
        """
for step in range(max_steps):
    optimizer.zero_grad()
    for micro_step in range(accum):
        x, y = get_batch('train')
        loss = model(x, y) / accum
        loss.backward()
    optimizer.step()
    LOOK(1)
""",
        Frequency.BATCH,
    ),
    "nanogpt": (
        """
while True:
    if iter_num % eval_interval == 0:
        losses = estimate_loss()
    for micro_step in range(gradient_accumulation_steps):
        with ctx:
            logits, loss = model(X, Y)
        X, Y = get_batch('train')
        scaler.scale(loss).backward()
    scaler.step(optimizer)
    scaler.update()
    optimizer.zero_grad(set_to_none=True)
    LOOK(1)
    iter_num += 1
    if iter_num > max_iters:
        break
""",
        Frequency.BATCH,
    ),
    "several optimizers behind micro steps": (
        """
while True:
    if step % eval_interval == 0:
        losses = estimate_loss()
    for micro_step in range(gradient_accumulation_steps):
        loss = model(x, y)
        loss.backward()
        x, y = next(train_loader)
    for opt in optimizers:
        for group in opt.param_groups:
            group["lr"] = group["initial_lr"] * scale
    for opt in optimizers:
        opt.step()
    model.zero_grad()
    LOOK(1)
""",
        Frequency.BATCH,
    ),
    "schedulers behind an epoch": (
        """
for epoch in range(10):
    for x, y in train_loader:
        loss = model(x, y)
        loss.backward()
        optimizer.step()
    for schedule in schedules:
        schedule.step()
    LOOK(1)
""",
        Frequency.EPOCH,
    ),
    "micro zip": (
        """
for batch in loader:
    for mb in split(batch, 4):
        loss = model(mb).mean()
        loss.backward()
        LOOK(1)
    opt.step()
""",
        Frequency.BATCH,
    ),
    "micro outer": (
        """
for batch in loader:
    for mb in batch.split(4):
        loss = model(mb).mean()
        loss.backward()
    opt.step()
    LOOK(1)
""",
        Frequency.BATCH,
    ),
    "epochs of whole data are epochs": (
        """
for epoch in range(9):
    for i in range(0, len(X), bs):
        loss = model(X[i:i+bs]).mean()
        loss.backward()
        opt.step()
    LOOK(1)
""",
        Frequency.EPOCH,
    ),
    "next(iterator) while": (
        """
def train(it, model):
    while True:
        try:
            x = next(it)
        except StopIteration:
            break
        y = model(x.cuda())
        LOOK(1)
""",
        Frequency.BATCH,
    ),
    "next(iter) range": (
        """
it = iter(loader)
for step in range(100):
    x = next(it)
    LOOK(1)
""",
        Frequency.BATCH,
    ),
    "next param iterator": (
        """
def run(data_iterator, steps):
    for step in range(steps):
        batch = next(data_iterator)
        batch = {k: v.cuda() for k, v in batch.items()}
        LOOK(1)
""",
        Frequency.BATCH,
    ),
    "look-alike next": (
        """
def run(lines):
    it = iter(lines)
    while True:
        line = next(it)
        LOOK(1)
""",
        Frequency.UNKNOWN,
    ),
    "generator of batches": (
        """
def batches(x):
    for i in range(0, len(x), bs):
        yield torch.tensor(x[i:i+bs])
for b in batches(data):
    LOOK(1)
""",
        Frequency.BATCH,
    ),
    "generator over loader": (
        """
def prefetch(loader):
    for b in loader:
        yield b.cuda()
def run(loader, model):
    for b in prefetch(loader):
        LOOK(1)
""",
        Frequency.BATCH,
    ),
    "infinite loader": (
        """
def cycle(dl):
    while True:
        for data in dl:
            yield data
dl = cycle(DataLoader(ds))
step = 0
while step < 1000:
    data = next(dl)
    LOOK(1)
    step += 1
""",
        Frequency.BATCH,
    ),
    "self.dl cycle": (
        """
def cycle(dl):
    while True:
        for data in dl:
            yield data
class Trainer:
    def __init__(self, ds):
        self.dl = cycle(DataLoader(ds))
    def train(self):
        while self.step < self.n:
            data = next(self.dl)
            LOOK(1)
            self.step += 1
""",
        Frequency.BATCH,
    ),
    "diffusion sampling": (
        """
class D(nn.Module):
    def __init__(self, model):
        self.model = model
    @torch.no_grad()
    def sample(self, x):
        for t in reversed(range(self.num_timesteps)):
            x = self.model(x, t)
            LOOK(1)
""",
        Frequency.BATCH,
    ),
    "diffusion sampling p_sample": (
        """
class D(nn.Module):
    def __init__(self, model):
        self.model = model
    def p_sample(self, x, t):
        return self.model(x, t)
    @torch.no_grad()
    def sample(self, x):
        for t in tqdm(reversed(range(0, self.num_timesteps)), total=9):
            x = self.p_sample(x, t)
            LOOK(1)
""",
        Frequency.BATCH,
    ),
    "decoding": (
        """
@torch.no_grad()
def generate(model, idx, max_new_tokens):
    for _ in range(max_new_tokens):
        logits = model(idx)
        nxt = logits[:, -1].argmax(-1)
        idx = torch.cat((idx, nxt), dim=1)
        LOOK(1)
""",
        Frequency.BATCH,
    ),
    "decoding self": (
        """
class GPT(nn.Module):
    def forward(self, x):
        return x
    @torch.no_grad()
    def generate(self, idx, max_new_tokens):
        for _ in range(max_new_tokens):
            logits = self(idx)
            idx = torch.cat((idx, logits), dim=1)
            LOOK(1)
""",
        Frequency.BATCH,
    ),
    "look-alike: models": (
        """
def compare(models, x):
    for model in models:
        model.eval()
        y = model(x)
        LOOK(1)
""",
        Frequency.UNKNOWN,
    ),
    "deepspeed": (
        """
import deepspeed
engine, _, _, _ = deepspeed.initialize(args=a, model=m)
for i in range(100):
    loss = engine(get())
    engine.backward(loss)
    engine.step()
    LOOK(1)
""",
        Frequency.BATCH,
    ),
    "fabric": (
        """
from lightning.fabric import Fabric
def train(fabric, model, optimizer, n):
    for i in range(n):
        loss = model(g())
        fabric.backward(loss)
        optimizer.step()
        LOOK(1)
""",
        Frequency.BATCH,
    ),
    "lightning manual": (
        """
import lightning as L
class M(L.LightningModule):
    def training_step(self, batch, i):
        self.manual_backward(loss)
        LOOK(1)
""",
        Frequency.BATCH,
    ),
    "accelerate": (
        """
from accelerate import Accelerator
accelerator = Accelerator()
loader, model, opt = accelerator.prepare(a, b, c)
for batch in loader:
    with accelerator.accumulate(model):
        accelerator.backward(model(batch))
        LOOK(1)
""",
        Frequency.BATCH,
    ),
    "accelerate prepared unnamed": (
        """
from accelerate import Accelerator
accelerator = Accelerator()
data, model, opt = accelerator.prepare(DataLoader(ds), b, c)
for batch in data:
    LOOK(1)
""",
        Frequency.BATCH,
    ),
    "bound method var": (
        """
class T:
    def step(self, x):
        LOOK(1)
t = T()
fn = t.step
for x in loader:
    fn(x)
""",
        Frequency.BATCH,
    ),
    "bound method self var": (
        """
class T:
    def __init__(self):
        self.fn = self.helper
    def helper(self, x):
        LOOK(1)
    def run(self, loader):
        for x in loader:
            self.fn(x)
""",
        Frequency.BATCH,
    ),
    "partial": (
        """
import functools
def work(a, x):
    LOOK(1)
fn = functools.partial(work, 3)
for x in loader:
    fn(x)
""",
        Frequency.BATCH,
    ),
    "property": (
        """
class T:
    @property
    def mean(self):
        return LOOK(1)
t = T()
for x in loader:
    t.mean
""",
        Frequency.BATCH,
    ),
    "property self": (
        """
class T:
    @property
    def mean(self):
        return LOOK(1)
    def run(self, loader):
        for x in loader:
            self.add(x, self.mean)
""",
        Frequency.BATCH,
    ),
    "callback list": (
        """
class Log:
    def on_batch(self, x):
        LOOK(1)
callbacks = [Log()]
for x in loader:
    for c in callbacks:
        c.on_batch(x)
""",
        Frequency.BATCH,
    ),
    "registry dict": (
        """
def mse(x):
    LOOK(1)
LOSSES = {"mse": mse}
for x in loader:
    LOSSES[name](x)
""",
        Frequency.BATCH,
    ),
    "registry dict var": (
        """
def mse(x):
    LOOK(1)
LOSSES = {"mse": mse}
fn = LOSSES[name]
for x in loader:
    fn(x)
""",
        Frequency.BATCH,
    ),
    "registry attr": (
        """
class T:
    def __init__(self, name):
        self.fn = {"a": self.fa, "b": self.fb}[name]
    def fa(self, x):
        LOOK(1)
    def fb(self, x):
        pass
    def run(self, loader):
        for x in loader:
            self.fn(x)
""",
        Frequency.BATCH,
    ),
    "loss object __call__": (
        """
class Loss:
    def __call__(self, x):
        LOOK(1)
loss = Loss()
for x in loader:
    loss(x)
""",
        Frequency.BATCH,
    ),
    "loss object self.__call__": (
        """
class Loss:
    def __call__(self, x):
        LOOK(1)
class T:
    def __init__(self):
        self.loss = Loss()
    def run(self, loader):
        for x in loader:
            self.loss(x)
""",
        Frequency.BATCH,
    ),
    "loader factory": (
        """
def get_data(x):
    train = DataLoader(x)
    test = DataLoader(x)
    return train, test
a, b = get_data(x)
for q in a:
    LOOK(1)
""",
        Frequency.BATCH,
    ),
    "loader dict": (
        """
loaders = {k: DataLoader(d) for k, d in ds.items()}
for phase in ['train', 'val']:
    for q in loaders[phase]:
        LOOK(1)
""",
        Frequency.BATCH,
    ),
    "loader via method": (
        """
class D:
    def make(self):
        return DataLoader(self.x)
class T:
    def __init__(self, d):
        self.data = D().make()
    def run(self):
        for q in self.data:
            LOOK(1)
""",
        Frequency.BATCH,
    ),
    "two optimizers in gan loop": (
        """
for it in range(n):
    real = next(gen)
    d_loss.backward()
    opt_d.step()
    LOOK(1)
""",
        Frequency.BATCH,
    ),
    "n_critic": (
        """
for it in range(n):
    for _ in range(n_critic):
        d = f().mean()
        d.backward()
        opt_d.step()
        LOOK(1)
    g = f2().mean()
    g.backward()
    opt_g.step()
""",
        Frequency.BATCH,
    ),
    "epochs words rounds": (
        """
def local_update(model, data):
    for batch in data:
        loss = model(batch.cuda()).mean()
        loss.backward()
        opt.step()
for rnd in range(rounds):
    for c in clients:
        local_update(model, c)
    LOOK(1)
""",
        Frequency.EPOCH,
    ),
    "lambda callback": (
        """
def work(x):
    LOOK(1)
cb = lambda x: work(x)
for x in loader:
    cb(x)
""",
        Frequency.BATCH,
    ),
    "closure returned": (
        """
def make(model):
    def step(x):
        return LOOK(1)
    return step
step = make(m)
for x in loader:
    step(x)
""",
        Frequency.BATCH,
    ),
    "actor loop": (
        """
def act(i, free_queue, full_queue, model):
    env = create_env()
    env_output = env.initial()
    while True:
        index = free_queue.get()
        for t in range(80):
            env_output = env.step(agent_output["action"])
            LOOK(1)
""",
        Frequency.BATCH,
    ),
    "learner while frames": (
        """
def train(flags):
    while frames < total:
        batch, state = get_batch(flags)
        stats = learn(batch)
        LOOK(1)
def learn(batch):
    loss = f(batch).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
""",
        Frequency.BATCH,
    ),
    "lbfgs closure": (
        """
def closure():
    opt.zero_grad()
    loss = f().mean()
    loss.backward()
    LOOK(1)
    return loss
for i in range(100):
    opt.step(closure)
""",
        Frequency.BATCH,
    ),
    "a step of a GradScaler for all parts": (
        """
while more():
    for part in parts:
        f(part).backward()
    scaler.step(optimizer)
    LOOK(1)
""",
        Frequency.BATCH,
    ),
    "look-alike: one step for a whole pass over a loader": (
        """
while more():
    for x in loader:
        f(x).backward()
    optimizer.step()
    LOOK(1)
""",
        Frequency.EPOCH,
    ),
    "look-alike: steps in the inner loop": (
        """
while more():
    for part in parts:
        f(part).backward()
        optimizer.step()
    LOOK(1)
""",
        Frequency.EPOCH,
    ),
    "look-alike: generator of names": (
        """
def names(x):
    for i in range(0, len(x), bs):
        yield x[i].name
for b in names(data):
    LOOK(1)
""",
        Frequency.UNKNOWN,
    ),
    "look-alike: generator of parameters": (
        """
def trainable(model):
    for p in model.parameters():
        if p.requires_grad:
            yield p
for p in trainable(m):
    LOOK(1)
""",
        Frequency.UNKNOWN,
    ),
    "look-alike: another function of a dictionary": (
        """
def mse(x):
    pass
def other(x):
    LOOK(1)
LOSSES = {"mse": mse}
for x in loader:
    LOSSES[name](x)
""",
        Frequency.UNKNOWN,
    ),
    "look-alike: partial of another function": (
        """
import functools
def work(a, x):
    LOOK(1)
fn = functools.partial(other, work)
for x in loader:
    fn(x)
""",
        Frequency.UNKNOWN,
    ),
    "look-alike: a property of another class": (
        """
class T:
    @property
    def mean(self):
        return LOOK(1)
class V:
    @property
    def mean(self):
        return 1
v = V()
for x in loader:
    v.mean
""",
        Frequency.CALL,
    ),
    "look-alike: an object called once": (
        """
class Loss:
    def __call__(self, x):
        LOOK(1)
loss = Loss()
loss(x)
""",
        Frequency.ONCE,
    ),
    "look-alike: what no engine prepares": (
        """
data = recipe.prepare(DataLoader(ds))
for batch in data:
    LOOK(1)
""",
        Frequency.UNKNOWN,
    ),
    "look-alike: a parser": (
        """
def run(parser, state, lines):
    for line in lines:
        state = parser.step(state, line)
        LOOK(1)
""",
        Frequency.UNKNOWN,
    ),
    "scheduler step": (
        """
def sample(unet, scheduler, latents, timesteps):
    for t in timesteps:
        noise = latents.detach()
        latents = scheduler.step(noise, t, latents).prev_sample
        LOOK(1)
""",
        Frequency.BATCH,
    ),
    "look-alike: a stack of blocks in another method": (
        """
class Net(nn.Module):
    def features(self, x):
        for i in range(len(self.blocks)):
            x = self.blocks[i](x)
            LOOK(1)
""",
        Frequency.UNKNOWN,
    ),
    "look-alike: layers by name": (
        """
class Net(nn.Module):
    def features(self, x):
        for name in self.names:
            layer = getattr(self, name)
            x = layer(x)
            LOOK(1)
""",
        Frequency.UNKNOWN,
    ),
    "look-alike: a network for each input": (
        """
class Net(nn.Module):
    def __init__(self):
        self.net = nn.Linear(8, 8)
    def features(self, xs):
        out = []
        for x in xs:
            out.append(self.net(x))
            LOOK(1)
""",
        Frequency.UNKNOWN,
    ),
    "lambda of a name": (
        """
cb = lambda x: LOOK(1)
for x in loader:
    cb(x)
""",
        Frequency.BATCH,
    ),
    "look-alike: a lambda called once": (
        """
cb = lambda x: LOOK(1)
for x in loader:
    pass
cb(x)
""",
        Frequency.ONCE,
    ),
    "diffusion sampling deeper": (
        """
class D(nn.Module):
    def __init__(self, model):
        self.model = model
    def predictions(self, x, t):
        return self.model(x, t)
    def p_sample(self, x, t):
        return self.predictions(x, t)
    @torch.no_grad()
    def sample(self, x):
        for t in reversed(range(0, self.num_timesteps)):
            x = self.p_sample(x=x, t=t)
            LOOK(1)
""",
        Frequency.BATCH,
    ),
    "look-alike: text that grows": (
        """
class D(nn.Module):
    def clean(self, text):
        return text.strip()
    def describe(self, text):
        for name in self.names:
            text = self.clean(text)
            LOOK(1)
""",
        Frequency.UNKNOWN,
    ),
    "a loop that goes backward and validates now and then": (
        """
def validate(loader):
    for x in loader:
        pass
while count < total:
    x = get()
    fabric.backward(f(x))
    if count % 100 == 0:
        validate(loader)
    LOOK(1)
""",
        Frequency.BATCH,
    ),
    "look-alike: a loop that only validates": (
        """
def validate(loader):
    for x in loader:
        pass
while count < total:
    validate(loader)
    LOOK(1)
""",
        Frequency.EPOCH,
    ),
    "a pretrained model decodes": (
        """
from diffusers import AutoencoderKL
vae = AutoencoderKL.from_pretrained("x").to("cuda")
for _ in bars:
    samples = vae.decode(latents)
    LOOK(1)
""",
        Frequency.BATCH,
    ),
    "look-alike: a model is moved and stored": (
        """
from diffusers import AutoencoderKL
vae = AutoencoderKL.from_pretrained("x").to("cuda")
for name in names:
    vae.load_state_dict(torch.load(name))
    LOOK(1)
""",
        Frequency.UNKNOWN,
    ),
    "what is made now and then": (
        """
for i, x in enumerate(loader):
    kept = None
    if i % 100 == 0:
        kept = f(x)
    if kept is not None and ok:
        LOOK(1)
""",
        Frequency.EPOCH,
    ),
    "look-alike: what is made at some turns": (
        """
for i, x in enumerate(loader):
    kept = None
    if x.ok:
        kept = f(x)
    if kept is not None:
        LOOK(1)
""",
        Frequency.BATCH,
    ),
    "look-alike: what is kept from turn to turn": (
        """
kept = None
for i, x in enumerate(loader):
    if i % 100 == 0:
        kept = f(x)
    if kept is not None:
        LOOK(1)
""",
        Frequency.BATCH,
    ),
    "diffusion sampling of what is computed of the last turn": (
        """
class D(nn.Module):
    def __init__(self, net):
        self.net = net
    def sample(self, images):
        for sigma in sigmas:
            noisy = images + sigma * torch.randn_like(images)
            denoised = self.net(noisy, sigma)
            images = noisy + denoised
            LOOK(1)
""",
        Frequency.BATCH,
    ),
    "diffusion sampling with a loop of its own inside": (
        """
class D(nn.Module):
    def __init__(self, net):
        self.net = net
    def sample(self, x):
        for t in steps:
            x = self.net(x, t)
            LOOK(1)
            for again in range(10):
                x = self.net(x, t)
""",
        Frequency.BATCH,
    ),
    "acting, with updates in a loop": (
        """
state = env.reset()
while not done:
    for i in range(updates):
        agent.loss(memory).backward()
        agent.optimizer.step()
    state, reward, done, _ = env.step(agent(state))
    LOOK(1)
""",
        Frequency.BATCH,
    ),
    "look-alike: episodes with a loop of steps each": (
        """
for episode in range(9):
    state = env.reset()
    for t in range(100):
        state, reward, done, _ = env.step(agent(state))
    LOOK(1)
""",
        Frequency.EPOCH,
    ),
}


@pytest.mark.parametrize(("code", "frequency"), CASES.values(), ids=CASES.keys())
def test_how_often(code: str, frequency: Frequency) -> None:
    node, context = look(HEAD + code)
    assert context.frequency(node) is frequency
