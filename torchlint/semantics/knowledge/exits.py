"""Which calls never return, and which context managers let every exception through."""

from __future__ import annotations

NEVER_RETURN = frozenset({"exit", "quit", "sys.exit", "os._exit", "os.abort", "os.execv", "os.execve", "os.execvp"})
# Types of a result that is never given.
NEVER = frozenset({"NoReturn", "Never"})
# Packages none of whose context managers ends an exception, as their sources say.
LET_THROUGH_PACKAGES = frozenset(
    "PIL accelerate apex asyncio bz2 codecs concurrent decimal deepspeed fabric filelock fsspec gradio gzip h5py httpx "
    "io jax lightning lmdb lzma megatron multiprocessing numpy open os pathlib pytorch_lightning random requests rich "
    "safetensors shelve socket sqlite3 subprocess tarfile tempfile tensorflow threading torch torchaudio torchvision "
    "tqdm transformers urllib wandb warnings wave webdataset zipfile".split()
)
# Of other packages these.
LET_THROUGH = frozenset(
    {
        "contextlib.aclosing",
        "contextlib.chdir",
        "contextlib.closing",
        "contextlib.nullcontext",
        "contextlib.redirect_stderr",
        "contextlib.redirect_stdout",
        "unittest.mock.patch",
        "unittest.mock.patch.dict",
        "unittest.mock.patch.object",
    }
)
# Methods of whatever class: files, profilers, grad modes, precision, locks, gradient accumulation.
LET_THROUGH_METHODS = frozenset(
    "accumulate as_default autocast begin device enable_grad get_lock init_module join_uneven_inputs "
    "main_process_first name_scope no_backward_sync no_grad no_sync open profile record_function scale_loss "
    "set_grad_enabled split_between_processes state_dict_type stream summon_full_params "
    "unwrap_model_for_generation variable_scope".split()
)
