"""TL641: environment variables for debugging that code sets for every run."""

from __future__ import annotations

import pytest
from laws import check_snippet

RULE = "debug-env-in-code"
TOP = "import os\nfrom os import environ\nimport torch\n"


@pytest.mark.parametrize(
    "line",
    [
        'os.environ["CUDA_LAUNCH_BLOCKING"] = "1"',
        "environ['CUDA_LAUNCH_BLOCKING'] = 'True'",
        'os.environ.setdefault("CUDA_LAUNCH_BLOCKING", "1")',
        'os.putenv("PYTORCH_NO_CUDA_MEMORY_CACHING", "1")',
        'os.environ["TORCH_DISTRIBUTED_DEBUG"] = "DETAIL"',
    ],
)
def test_set_for_every_run(line: str) -> None:
    check_snippet(f"{TOP}{line}  # <- {RULE}\nx = 1\n", RULE, fixed=f"{TOP}x = 1\n")


def test_in_a_program() -> None:
    check_snippet(
        f"""
        import os
        import torch
        def main():
            os.environ["CUDA_LAUNCH_BLOCKING"] = "1"  # <- {RULE}
            train()
        if __name__ == "__main__":
            os.environ["TORCH_DISTRIBUTED_DEBUG"] = "DETAIL"  # <- {RULE}
            main()
        """,
        RULE,
        fixed="""
        import os
        import torch
        def main():
            train()
        if __name__ == "__main__":
            main()
        """,
    )


@pytest.mark.parametrize(
    "code",
    [
        f"def f():\n    os.environ['CUDA_LAUNCH_BLOCKING'] = '1'  # <- {RULE}\n",
        f"# a kernel fails\nos.environ['CUDA_LAUNCH_BLOCKING'] = '1'  # <- {RULE}\n",
        f"x = os.environ.setdefault('CUDA_LAUNCH_BLOCKING', '1')  # <- {RULE}\n",
        f"x = 1; os.environ['CUDA_LAUNCH_BLOCKING'] = '1'  # <- {RULE}\n",
    ],
)
def test_reported_and_left(code: str) -> None:
    result = check_snippet(TOP + code, RULE)
    assert [finding.fix for finding in result.findings] == [None]


@pytest.mark.parametrize(
    "code",
    [
        "os.environ['CUDA_LAUNCH_BLOCKING'] = '0'",
        "os.environ['CUDA_LAUNCH_BLOCKING'] = flag",
        "os.environ['TORCH_DISTRIBUTED_DEBUG'] = 'INFO'",
        "os.environ['OMP_NUM_THREADS'] = '1'",
        "if debug:\n    os.environ['CUDA_LAUNCH_BLOCKING'] = '1'",
        f"def set_deterministic():\n    os.environ['CUDA_LAUNCH_BLOCKING'] = '1'  # <- {RULE}?",
        "env = {}\nenv['CUDA_LAUNCH_BLOCKING'] = '1'",
        "x = os.environ.get('CUDA_LAUNCH_BLOCKING', '1')",
        "os.environ.pop('CUDA_LAUNCH_BLOCKING', '1')",
    ],
)
def test_asked_for_off_or_elsewhere(code: str) -> None:
    check_snippet(f"{TOP}{code}\n", RULE)
