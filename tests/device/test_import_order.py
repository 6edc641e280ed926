"""Our module and torch in one process, in either order: one HIP runtime, memory that both see."""

from __future__ import annotations

import importlib.util
import subprocess
import sys

import pytest

BODY = """
if not torch.cuda.is_available():
    raise SystemExit("torch sees no GPU")
device = gpu.devices()[0]
memory = device.allocate(64)
memory.write(bytes(range(64)))
tensor = torch.as_tensor(memory, device="cuda:0")
tensor += 1
torch.cuda.synchronize()
assert memory.read() == bytes(range(1, 65))
names = [line.split()[-1] for line in open("/proc/self/maps") if "libamdhip64.so" in line]
assert len(set(names)) <= 1, names
"""


@pytest.mark.parametrize(
    "imports",
    [
        "import torch\nfrom monarch import gpu",
        "from monarch import gpu\ngpu.devices()\nimport torch",
    ],
)
def test_torch_and_our_module_share_memory_in_either_order(imports):
    if importlib.util.find_spec("torch") is None:
        pytest.skip("torch is not installed here")
    done = subprocess.run(
        [sys.executable, "-c", f"{imports}\n{BODY}"], capture_output=True, text=True, check=False
    )
    if "torch sees no GPU" in done.stderr:
        pytest.skip("the torch installed here is built for other GPUs")
    assert done.returncode == 0, done.stderr
