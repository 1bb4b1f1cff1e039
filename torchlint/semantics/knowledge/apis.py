"""What torch, NumPy and Python return, as far as no stub tells: the hand-written half of the tables."""

from __future__ import annotations

from torchlint.semantics.knowledge.torch_signatures import METHODS

# Functions of the torch namespace written in Python, which its stubs don't list.
TORCH_PYTHON = {
    **dict.fromkeys(
        "einsum norm cdist tensordot block_diag cartesian_prod chain_matmul stft istft atleast_1d atleast_2d "
        "atleast_3d unique unique_consecutive where tensor as_tensor from_numpy asarray nonzero Tensor vmap".split(),
        "T",
    ),
    **dict.fromkeys("split meshgrid broadcast_tensors chunk unbind".split(), "S"),
    **dict.fromkeys("lu cummax".split(), "2"),
    **dict.fromkeys("is_tensor numel is_grad_enabled get_rng_state seed initial_seed".split(), "n"),
}
# Functions of torch.nn.functional that live in torch's C++ half and that its stub only imports; all give a tensor.
FUNCTIONAL_BUILTINS = frozenset(
    "adaptive_avg_pool1d avg_pool1d avg_pool2d avg_pool3d bilinear celu_ channel_shuffle conv1d conv2d conv3d conv_tbc "
    "conv_transpose1d conv_transpose2d conv_transpose3d cosine_similarity elu_ gelu hardshrink hardtanh_ leaky_relu_ "
    "linear logsigmoid one_hot pad pairwise_distance pdist pixel_shuffle pixel_unshuffle prelu relu_ rrelu_ "
    "scaled_dot_product_attention selu_ softplus softshrink threshold_".split()
)
# Factories that make a tensor on the CPU unless told otherwise; all take `device=`.
FACTORIES = frozenset(
    "arange as_tensor asarray bartlett_window blackman_window empty eye full hamming_window hann_window kaiser_window "
    "linspace logspace normal ones rand randint randn randperm scalar_tensor tensor tril_indices triu_indices "
    "zeros empty_strided from_file".split()
)
LEGACY_TENSORS = frozenset(
    "Tensor FloatTensor DoubleTensor HalfTensor BFloat16Tensor ByteTensor CharTensor ShortTensor IntTensor LongTensor "
    "BoolTensor".split()
)
# What has factories make tensors elsewhere than on the CPU: on a device, or of a type of tensors there.
DEFAULT_DEVICE_SETTERS = frozenset({"set_default_device", "set_default_tensor_type"})
# The method of `torch.nn.Transformer` that makes a causal mask.
CAUSAL_MASK = "generate_square_subsequent_mask"
# What a summary writer is told, which it copies to the CPU at once.
SUMMARIES = frozenset("add_scalar add_scalars add_histogram add_image add_images add_audio add_video".split())
# Constructors that read the elements of a list.
OF_LISTS = ("torch.tensor", "torch.as_tensor", *(f"torch.{name}" for name in sorted(LEGACY_TENSORS)))
ARRAYS_OF_LISTS = tuple(
    f"numpy.{name}" for name in "array asarray stack concatenate vstack hstack mean sum std median max min".split()
)
# Functions of torch whose first argument need not be a tensor.
TAKE_OTHERS = frozenset(
    "cat stack hstack vstack dstack concat concatenate column_stack row_stack block_diag meshgrid broadcast_tensors "
    "cartesian_prod einsum chain_matmul is_tensor is_storage from_numpy from_dlpack frombuffer set_num_threads "
    "promote_types result_type can_cast where save load compile numel Generator broadcast_shapes range full_like "
    "pad_sequence tensordot manual_seed sym_int sym_max sym_min sym_not max min add sub mul div".split()
)
# Builtins that take a tensor without computing with it.
PYTHON_NAMES = frozenset(
    "len isinstance issubclass type id print repr format hasattr getattr setattr list tuple set dict enumerate zip "
    "iter next range sorted reversed map filter any all callable vars dir super object".split()
)
# Methods that only a tensor has among the things such code handles: a call of one tells what the receiver is.
TENSOR_ONLY_METHODS = frozenset(
    "backward contiguous detach detach_ unsqueeze unsqueeze_ squeeze_ permute softmax log_softmax sigmoid sigmoid_ "
    "topk expand expand_as masked_fill masked_fill_ masked_select masked_scatter index_select index_fill index_fill_ "
    "index_add_ index_copy_ scatter scatter_ scatter_add scatter_add_ gather clamp clamp_ clamp_min clamp_max numel "
    "requires_grad_ new_zeros new_ones new_full new_empty new_tensor type_as data_ptr bmm matmul mm "
    "addcmul_ addcdiv_ mul_ add_ sub_ div_ fill_ zero_ copy_ normal_ uniform_ long rsqrt logsumexp cumprod_ "
    "is_floating_point retain_grad storage storage_offset stride narrow movedim unfold unflatten index_put_ "
    "baddbmm lerp lerp_ erf expm1 log1p exp_ tanh_ relu relu_ nonzero_static unbind byte "
    "transpose_ t_ bool".split()
)
# Methods that NumPy's arrays don't have, but other things may: a series has an `abs`, a logger a `log`.
TENSOR_METHODS_OF_NUMBERS = frozenset("abs exp norm pow sqrt square tanh".split())
# Those that arrays, series and decimals lack: where more is computed with what they give, a tensor's.
TENSOR_METHODS_IN_ARITHMETIC = frozenset({"log", "log2", "neg"})
# Those of them that take nothing by position: with an argument they are functions, as in `backend.relu(x)`.
TENSOR_METHODS_OF_NOTHING = frozenset(
    "bool byte contiguous data_ptr detach detach_ erf exp_ expm1 is_floating_point log1p long numel relu relu_ "
    "retain_grad rsqrt sigmoid sigmoid_ storage storage_offset t_ tanh_ zero_".split()
)
# Those that take one thing at most: `backend.matmul(a, b)` is a function.
TENSOR_METHODS_OF_ONE = frozenset(
    "bmm clamp_max clamp_min copy_ expand_as fill_ matmul mm requires_grad_ stride type_as unbind unsqueeze "
    "unsqueeze_".split()
)
# Those that begin with a dimension. Plots have a `scatter`, processes and trackers of them a `gather`.
TENSOR_METHODS_BY_DIMENSION = frozenset("gather scatter".split())
# What calls a function in several processes, with the number of the process before the arguments.
SPAWNERS = frozenset({"torch.multiprocessing.spawn", "torch.multiprocessing.start_processes"})
# What calls a function in other processes, with the arguments in `args`.
LAUNCHERS = SPAWNERS | {
    "accelerate.notebook_launcher",
    "torch.distributed.rpc.remote",
    "torch.distributed.rpc.rpc_async",
    "torch.distributed.rpc.rpc_sync",
}
# Packages of engines that run the backward pass of the loss that they are given: `accelerator.backward(loss)`.
ENGINE_PACKAGES = frozenset({"accelerate", "deepspeed", "lightning"})
# `.size(1)` and `.dim()` are methods on a tensor only, but other things have a `size()` of their own.
TENSOR_SHAPE_METHODS = frozenset({"size", "dim"})
# Attributes of a tensor, as the codes of torch_table.
TENSOR_ATTRIBUTES = {
    **dict.fromkeys("data grad T H mT mH real imag".split(), "T"),
    **dict.fromkeys("ndim is_cuda is_cpu requires_grad is_leaf is_sparse itemsize nbytes".split(), "n"),
    "shape": "z",
    "device": "d",
    "dtype": "y",
}
# Methods by which only a module can be told.
MODULE_ONLY_METHODS = frozenset(
    "train eval parameters named_parameters state_dict load_state_dict modules named_modules children named_children "
    "register_buffer register_forward_hook add_module named_buffers".split()
)
# Methods that objects of Python, of torch or of many libraries have: of these the name does not tell whose they are.
SHARED_METHODS = frozenset(
    {
        *(name for type_ in (bytes, dict, float, int, list, set, str, tuple) for name in dir(type_)),
        *METHODS,
        *MODULE_ONLY_METHODS,
        *"__call__ __init__ add add_scalar apply backward begin build call close collate compute configure convert "
        "decode detach draw encode evaluate execute fetch finish fit flush forward generate get_config init "
        "initialize inverse load log log_prob loss main merge move next open parse plot predict preprocess print "
        "process put read record render reset restore rsample run sample save score seed select send set setup "
        "shuffle start step stop sync test to tokenize train transform validate wait write zero_grad".split(),
    }
)
MODULE_BASES = frozenset(
    {
        "torch.nn.Module",
        "lightning.pytorch.LightningModule",
        "lightning.pytorch.core.LightningModule",
        "lightning.LightningModule",
        "torch.nn.Sequential",
        "torch.nn.ModuleList",
        "transformers.PreTrainedModel",
        "diffusers.ModelMixin",
        "torch.jit.ScriptModule",
    }
)
LOADERS = frozenset(
    {
        "torch.utils.data.DataLoader",
        "torch_geometric.loader.DataLoader",
        "torch_geometric.loader.dataloader.DataLoader",
        "torch_geometric.data.DataLoader",
        "torch_geometric.loader.NeighborLoader",
        "torch_geometric.loader.DenseDataLoader",
        "torchdata.stateful_dataloader.StatefulDataLoader",
        "dgl.dataloading.GraphDataLoader",
        "timm.data.create_loader",
        "monai.data.DataLoader",
    }
)
DATASET_BASES = frozenset({"torch.utils.data.Dataset", "torch.utils.data.IterableDataset"})
SCALERS = frozenset({"torch.cuda.amp.GradScaler", "torch.amp.GradScaler", "torch.GradScaler"})
# What returns an object that was written to a file.
LOADING_FUNCTIONS = frozenset(
    {"torch.load", "pickle.load", "pickle.loads", "joblib.load", "dill.load", "cloudpickle.load"}
)
# What counts as `range` does, with a bar.
RANGES = frozenset({"tqdm.trange", "tqdm.auto.trange", "tqdm.notebook.trange", "tqdm.std.trange"})
# What passes an iterable on, element by element.
# What runs a model of Transformers or Diffusers, or a part of it.
RUNNING_METHODS = frozenset({"forward", "generate", "encode", "decode", "predict", "sample"})
METRIC_BASES = frozenset({"torchmetrics.Metric", "torchmetrics.metric.Metric", "ignite.metrics.Metric"})
PASS_THROUGH = frozenset(
    {
        "tqdm",
        "tqdm.tqdm",
        "tqdm.trange",
        "tqdm.auto.tqdm",
        "tqdm.notebook.tqdm",
        "tqdm.contrib.tenumerate",
        "tqdm.std.tqdm",
        "tqdm.rich.tqdm",
        "rich.progress.track",
        "itertools.islice",
        "itertools.cycle",
        "itertools.chain",
        "iter",
        "list",
        "tuple",
        "reversed",
        "sorted",
        "alive_progress.alive_it",
        "fastprogress.progress_bar",
        "track",
        "progress_bar",
    }
)
# Entry points that a framework calls for each batch.
BATCH_METHODS = frozenset(
    "forward training_step validation_step test_step predict_step on_train_batch_start on_train_batch_end "
    "on_validation_batch_end on_validation_batch_start on_test_batch_end on_before_zero_grad on_after_backward "
    "optimizer_step compute_loss prediction_step on_step_end on_step_begin manual_backward "
    # Engines that serve: vLLM's workers, SGLang's and TGI's.
    "execute_model forward_batch_generation forward_extend forward_decode generate_token".split()
)
# Classes whose `__call__` the generation of text asks at each token.
DECODING_BASES = frozenset(
    {
        "transformers.StoppingCriteria",
        "transformers.LogitsProcessor",
        "transformers.LogitsWarper",
        "transformers.generation.StoppingCriteria",
        "transformers.generation.LogitsProcessor",
        "transformers.generation.LogitsWarper",
        "transformers.generation.stopping_criteria.StoppingCriteria",
        "transformers.generation.logits_process.LogitsProcessor",
        "transformers.generation.logits_process.LogitsWarper",
    }
)
# Those that it calls once, or once an epoch.
ONCE_METHODS = frozenset(
    "setup teardown prepare_data configure_optimizers configure_model on_fit_start on_fit_end on_train_start "
    "on_train_end on_validation_start on_validation_end on_test_start on_test_end on_train_begin on_init_end".split()
)
EPOCH_METHODS = frozenset(
    "on_train_epoch_start on_train_epoch_end on_validation_epoch_start on_validation_epoch_end on_test_epoch_start "
    "on_test_epoch_end training_epoch_end validation_epoch_end test_epoch_end on_epoch_begin on_epoch_end".split()
)
# Packages whose objects are environments, in which an agent acts.
ENVIRONMENT_PACKAGES = frozenset({"dm_control", "dm_env", "envpool", "gym", "gymnasium", "pettingzoo", "procgen"})
EPISODE_BEGINNINGS = frozenset({"reset", "initial"})
# Methods by which a library wraps what is trained, and gives it back in the order in which it was given.
PREPARING_METHODS = frozenset("prepare prepare_model prepare_optimizer setup setup_module setup_optimizers".split())
LOADER_PREPARING_METHODS = frozenset("prepare_data_loader setup_dataloaders".split())
# Methods by which Accelerate and Fabric give what they are given, of all processes.
GATHERING_METHODS = frozenset("gather gather_for_metrics reduce pad_across_processes all_gather all_reduce".split())
# Methods by which Python makes an object, at the place where its class is called.
MAKING_METHODS = frozenset("__init__ __new__ __post_init__ __init_subclass__ __set_name__ __class_getitem__".split())
# What stands above a function and calls it for nobody.
PLAIN_DECORATORS = frozenset(
    "staticmethod classmethod override typing.override typing_extensions.override abstractmethod abc.abstractmethod "
    "contextmanager contextlib.contextmanager functools.wraps functools.cache functools.lru_cache".split()
)
# Bases whose code calls nothing that a class defines.
PLAIN_BASES = frozenset(
    "object abc.ABC typing.Protocol typing.Generic typing.NamedTuple typing.TypedDict enum.Enum Exception dict "
    "list tuple".split()
)
SAMPLE_METHODS = frozenset({"__getitem__", "__getitems__"})
NO_GRAD_METHODS = frozenset(
    "validation_step test_step predict_step on_validation_epoch_end on_validation_epoch_start on_test_epoch_end "
    "validation_epoch_end test_epoch_end on_validation_batch_end on_test_batch_end prediction_step".split()
)
NO_GRAD_CONTEXTS = frozenset(
    {"torch.no_grad", "torch.inference_mode", "torch.autograd.no_grad", "torch.autograd.inference_mode"}
)
# Methods that a framework calls at each training step: Lightning's, and those of a `Trainer` that is subclassed.
TRAINING_METHODS = frozenset({"training_step", "compute_loss"})
BACKWARD_METHODS = frozenset({"backward", "manual_backward"})
# Methods that Lightning calls for a loader.
LOADER_HOOKS = frozenset("train_dataloader val_dataloader test_dataloader predict_dataloader".split())
# Functions of torch_scatter and torch_geometric that reduce the rows of each group of a tensor to one.
GROUPED_REDUCTIONS = (
    "scatter",
    "scatter_max",
    "scatter_add",
    "scatter_sum",
    "scatter_reduce",
    "segment_csr",
    "segment_coo",
)
# Frameworks besides PyTorch: a file that computes with one names torch for a comparison.
OTHER_FRAMEWORKS = frozenset("jax jittor megengine mindspore mxnet oneflow paddle tensorflow".split())
# What makes one tensor of a list of them.
JOINING_FUNCTIONS = frozenset(
    {"torch.cat", "torch.stack", "torch.concat", "torch.concatenate", "torch.hstack", "torch.vstack"}
)
