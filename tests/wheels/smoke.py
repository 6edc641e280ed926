"""What an installed wheel has to do on a machine without a GPU. Run by the wheel's own Python."""

from __future__ import annotations

import importlib
import importlib.metadata
import json
import re
import subprocess
import sys
import warnings
from pathlib import Path

import monarch
import port


def main(platform: str) -> None:
    warnings.simplefilter("error")
    package = Path(monarch.__file__).parent
    check("the package is the installed one", sys.prefix in str(package) and package.is_dir())
    check("port comes with it", sys.prefix in str(port.__file__))
    facts = monarch.build_info()
    check(f"it is a {platform} build", facts["platform"] == platform)
    version = importlib.metadata.version(f"monarch-{platform}")
    check("its version is the distribution's", facts["version"] == version)
    frames()
    if platform != "cpu":
        gpu(package, platform, facts)
    doctor(platform)
    sys.stdout.write(f"monarch-{platform} {version} works from {package}\n")


def check(what: str, holds: bool) -> None:
    sys.stdout.write(f"{'ok' if holds else 'FAILED'}: {what}\n")
    if not holds:
        raise SystemExit(1)


def frames() -> None:
    """Frames go through the native core and come back."""
    core = importlib.import_module("monarch._core")
    encoded = core.encode(b"message", [b"one", b"two"], sequence=0, checksum=True)
    data = b"".join(bytes(part) for part in encoded) if isinstance(encoded, list) else encoded
    (frame,) = core.Decoder().feed(bytes(data))
    check("a frame comes back from the native core", bytes(frame.message) == b"message")
    check("and its buffers", [bytes(buffer) for buffer in frame.buffers] == [b"one", b"two"])


def doctor(platform: str) -> None:
    """The doctor finds nothing wrong with the files; a GPU it may miss."""
    command = [sys.executable, "-m", "monarch", "doctor", "--json"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    wanted = (0,) if platform == "cpu" else (0, 5)
    check(f"the doctor ends with status {done.returncode}, of {wanted}", done.returncode in wanted)
    answer = json.loads(done.stdout)
    check("it ran the checks of port.verify", {check["ok"] for check in answer["checks"]} == {True})
    kinds = {problem["kind"] for problem in answer["problems"]}
    check("it blames the machine alone, if anything", kinds <= {"environment"})
    own = [sys.executable, "-m", f"monarch_{platform}"]
    check("all files are its own", subprocess.run(own, check=False).returncode == 0)


def gpu(package: Path, platform: str, facts: dict[str, object]) -> None:
    (module_file,) = package.glob(f"_gpu_{platform}*.so")
    listing = subprocess.run(
        ["ldd", str(module_file)], capture_output=True, text=True, check=True
    ).stdout
    if platform == "rocm":
        soname = str(facts["runtime_soname"])
        check(f"ldd names {soname}", re.search(rf"\b{re.escape(soname)}\b", listing) is not None)
    else:
        check("ldd names no CUDA library", re.search(r"libcuda|libcudart", listing) is None)
    if f"{facts['runtime_soname']} => not found" in listing:
        absent_runtime(platform, str(facts["runtime_soname"]))
        return
    module = importlib.import_module(f"monarch._gpu_{platform}")
    compiled, _ = module.runtime_versions()
    check(f"the module knows the runtime it was built for ({compiled})", compiled > 0)
    count = module.runtime_device_count()
    check(f"devices are counted without a driver: {count}", count >= 0)
    if platform == "rocm":
        maps = Path("/proc/self/maps").read_text(encoding="utf-8")
        copies = {line.split()[-1] for line in maps.splitlines() if "libamdhip64.so" in line}
        check("one HIP runtime is mapped", len(copies) == 1)


def absent_runtime(platform: str, soname: str) -> None:
    """The runtime cannot be loaded here: the package works, and the module says what is missing."""
    try:
        importlib.import_module(f"monarch._gpu_{platform}")
    except ImportError as error:
        check(f"the error names {soname}", soname in str(error))
    else:
        check("loading the module without its runtime fails", holds=False)


if __name__ == "__main__":
    main(sys.argv[1])
