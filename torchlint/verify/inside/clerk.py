"""A process beside the measured ones that has torch too: it says what the machine offers, and compares captures."""

from __future__ import annotations

from typing import Any

from torchlint.verify.inside.channel import Channel, Closed


def main(commands: int, replies: int) -> None:
    """Answer until the line closes; an error is a reply."""
    channel = Channel(commands, replies)
    answers = {"probe": _probe, "compare": _compare}
    try:
        config = channel.read()
        try:
            import torch  # the first thing that can fail
        except ImportError as error:
            channel.reply(ok=False, kind="entry", error=f"torch cannot be imported: {error}")
            return
        torch.set_num_threads(min(config["threads"], torch.get_num_threads()))
        channel.reply(ok=True)
        while True:
            message = channel.read()
            try:
                channel.reply(ok=True, **answers[message.pop("command")](message))
            except Exception as error:  # noqa: BLE001 - the controller decides what it means
                from torchlint.verify.inside.worker import describe

                channel.reply(ok=False, **describe(error))
    except Closed:
        pass


def _probe(message: dict[str, Any]) -> dict[str, Any]:
    """Whether there is CUDA and how many devices; if not, why, as torch says it."""
    del message
    import torch

    from torchlint.verify.inside.devices import name_of, processor

    # torch calls AMD's devices CUDA's, too; what is counted here is known of NVIDIA's.
    rocm = getattr(torch.version, "hip", None)
    available = torch.cuda.is_available()
    found = available and not rocm
    if found:
        why = ""
    elif rocm:
        why = f"torch {torch.__version__} is built for ROCm {rocm}" + ("" if available else ", and finds no device")
    elif torch.version.cuda is None:
        why = f"torch {torch.__version__} was built without CUDA"
    else:
        why = f"torch {torch.__version__} is built for CUDA {torch.version.cuda}, and finds no device or driver"
    other = "" if found else "rocm" if rocm and available else _other_accelerator(torch)
    if other and other != "rocm":
        why += f"; there is an accelerator of type `{other}`"
    name = torch.cuda.get_device_name() if available else name_of(other) if other else ""
    devices = torch.cuda.device_count() if found else 0
    versions = {"processor": processor(), "torch": str(torch.__version__)}
    return {"cuda": found, "devices": devices, "why": why, "name": name, "accelerator": other, **versions}


def _other_accelerator(torch: Any) -> str:  # the module
    """The type of an accelerator that is not CUDA's, as torch names it; empty if there is none."""
    accelerator = getattr(torch, "accelerator", None)
    if accelerator is not None and accelerator.is_available():
        kind = str(accelerator.current_accelerator().type)
        return "" if kind == "cuda" else kind
    # Before torch 2.6 each is asked by its name.
    for kind in ("xpu", "mps"):
        module = getattr(torch, kind, None) or getattr(torch.backends, kind, None)
        if module is not None and getattr(module, "is_available", lambda: False)():
            return kind
    return ""


def _compare(message: dict[str, Any]) -> dict[str, Any]:
    from torchlint.verify.inside import compare

    return {"result": compare.main(message)}
