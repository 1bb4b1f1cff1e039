"""What a package suggests that a file is about."""

from __future__ import annotations

from torchlint.semantics.knowledge.conventions.convention import Convention

ARRAY_PACKAGE = Convention(
    "array-package",
    suggests_that="what the package gives is indexed as a tensor is and is none",
    why="A loop over such an array looks like one over a tensor.",
    names=frozenset("PIL cupy cv2 imageio jax matplotlib numpy pandas scipy skimage sklearn tensorflow".split()),
)

OTHER_MODELS = Convention(
    "other-models",
    suggests_that="models of the package record nothing when they are called",
    why="They turn autograd off themselves, or are no torch modules.",
    names=frozenset("flax jax keras onnxruntime openvino paddle sklearn tensorflow ultralytics".split()),
)

GRAPH_PACKAGE = Convention(
    "graph-package",
    suggests_that="batches are graphs",
    why="Graphs have moves of their own.",
    names=frozenset("dgl jraph ptens torch_geometric".split()),
)

SMALL_NETWORKS = Convention(
    "small-networks",
    suggests_that="the networks of the file are small",
    why="Agents and graph networks gain little from a lower precision.",
    names=frozenset("dgl gym gymnasium ogb procgen torch_geometric".split()),
)

PROMPT_READER = Convention(
    "prompt-reader",
    suggests_that="what takes the loader has a language model write an answer to each prompt",
    why="Loading costs nothing beside it.",
    pattern=r"(^|\.)LLMEnv(\.from_dataloader)?$",
)

BUFFERING_PACKAGE = Convention(
    "buffering-package",
    suggests_that="gradients are kept elsewhere than in `.grad`",
    why="The package replaces them.",
    names=frozenset("fastreid opacus".split()),
)

CHECKPOINTING_PACKAGE = Convention(
    "checkpointing-package",
    suggests_that="a framework loads and saves",
    why="It takes care of where weights are loaded to.",
    names=frozenset("accelerate colossalai deepspeed fairscale ignite lightning megatron torch_xla".split()),
)

HOST_LIBRARY = Convention(
    "host-library",
    suggests_that="what is handed to the package is needed on the host",
    why="None of these packages computes on a device.",
    names=frozenset("PIL csv cv2 json matplotlib os pandas pickle pycocotools scipy skimage sklearn".split()),
)

OPTIMIZER_PACKAGE = Convention(
    "optimizer-package",
    suggests_that="optimizers run elsewhere than on CUDA, or are replaced",
    why="`fused=True` fails there, or does nothing.",
    names=frozenset("apex deepspeed habana_frameworks torch_directml torch_npu torch_xla".split()),
)

SAMPLER_FRAMEWORK = Convention(
    "sampler-framework",
    suggests_that="a framework replaces the sampler of a loader",
    why="A loader without a batch size breaks it.",
    names=frozenset("accelerate catalyst composer deepspeed fastai ignite lightning pytorch_lightning skorch".split()),
)

UNPINNABLE_PACKAGE = Convention(
    "unpinnable-package",
    suggests_that="batches cannot be pinned",
    why="Graphs of DGL have no method `pin_memory`.",
    names=frozenset({"dgl"}),
)

STAR_IMPORTED = Convention(
    "star-imported",
    suggests_that="the name is that of a package or a class which a star import brings along",
    why="Modules of a project import it under these names.",
    names=frozenset("DataLoader Dataset F TensorDataset Variable nn np optim torch".split()),
)
