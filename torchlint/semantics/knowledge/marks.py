"""Names that libraries document and that only code which uses them holds: facts, and not what people call things."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Mark:
    """One or more names of an API, as code that uses it spells them."""

    names: tuple[str, ...]

    def is_in(self, code: str) -> bool:
        """Whether the code, without comments and texts for people, holds one of them."""
        return any(name in code for name in self.names)


# What asks a tensor where it is.
ASKED_PLACE = Mark(("is_cuda", "is_cpu", ".device.type"))
# Options of the compiler by which reads, or results of unknown size, stay in the graph.
CAPTURED = Mark(("capture_scalar_outputs", "capture_dynamic_output_shape_ops"))
# What was a notebook: its cells are not imported by workers.
CELL_MARK = Mark(("get_ipython(",))
# Where, or as what, tensors are made that say nothing of it.
DEFAULT_DEVICE_SETTER = Mark(("set_default_device", "set_default_tensor_type"))
DEVICE_SETTER = Mark((*DEFAULT_DEVICE_SETTER.names, "DeviceContext", "init_on_device", "init_empty_weights"))
# What changes the current device, so that a tensor that is made on another line may be on another.
DEVICE_SETTING_CALL = Mark(("set_device",))
# The newer option for TF32.
FP32_PRECISION = Mark(("fp32_precision",))
GRADIENT_TAKEN = Mark((".backward(",))
STEP_TAKEN = Mark((".step(",))
# Hooks into all modules, which may then do more than their classes say.
HOOKED_MODULES = Mark(
    (
        "register_module_forward_hook",
        "register_module_forward_pre_hook",
        "register_module_backward_hook",
        "register_module_full_backward_hook",
        "register_module_full_backward_pre_hook",
        "register_module_buffer_registration_hook",
        "register_module_module_registration_hook",
        "register_module_parameter_registration_hook",
    )
)
# Arguments of functions of torch before 0.4.
LEGACY_MODE = Mark(("volatile",))
LOADING_TEXT = Mark(("DataLoader",))
MAIN_BLOCK = Mark(("__main__",))
MODULE_DEFINED = Mark(("nn.Module",))
PACKED_SEQUENCE = Mark(("PackedSequence",))
# Fusing a layer with its norm needs the bias.
QUANTISING = Mark(("torch.quantization", "torch.ao.quantization", "fuse_modules", "QuantStub"))
# Numbers that nobody has measured, on which blocks that try a model out work.
RANDOM_TRIAL = Mark((".rand",))
# Gradients of gradients, which the recurrent layers of cuDNN do not have.
SECOND_GRADIENTS = Mark(("create_graph", "gradgradcheck"))
# Weights are spread over the processes, and each loads its own part.
SHARDED_TRAINING = Mark(("torch.distributed.fsdp", "torch.distributed.checkpoint", "FullyShardedDataParallel"))
# TorchScript knows less of Python.
TORCHSCRIPT = Mark(("jit",))
# One switch for all distributions.
VALIDATION_SETTER = Mark(("set_default_validate_args",))
# Hooks and second gradients read attention weights, which are not there without `need_weights`.
WEIGHTS_READ = Mark(("register_forward_hook", "create_graph=True"))
# A dataset that asks which worker it is in may give each its own part.
WORKER_INFO = Mark(("get_worker_info",))
