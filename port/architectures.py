"""GPU architectures: the ones built by default, the ones asked for, the ones a machine has."""

from __future__ import annotations

import re
import subprocess
from typing import TYPE_CHECKING

from port.errors import EnvironmentMissingError, InputError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

DEFAULT: Mapping[str, tuple[str, ...]] = {
    "cpu": (),
    "cuda": ("sm_80", "sm_90", "sm_100"),
    "rocm": ("gfx90a", "gfx942", "gfx950"),
}
"""Data-centre GPUs of the last three generations of each vendor."""

_SPELLING = {
    "cuda": re.compile(r"sm_[1-9][0-9]{1,2}[af]?"),
    "rocm": re.compile(r"gfx[1-9][0-9]*[0-9a-f]{2}(:(xnack|sramecc)[+-])*|gfx\d+(-\d+)?-generic"),
}
_PORTABLE = re.compile(r"compute_[1-9][0-9]{1,2}[af]?")
_EXAMPLE = {"cuda": "sm_90", "rocm": "gfx942"}


def compiled_by_nvcc(text: str) -> tuple[str, ...]:
    """Architectures in the answer of `nvcc --list-gpu-arch`, which prints `compute_90` a line."""
    return tuple(f"sm_{number}" for number in re.findall(r"^compute_(\d+)$", text, re.MULTILINE))


def compiled_by_clang(text: str) -> tuple[str, ...]:
    """Architectures in the answer of `clang --target=amdgcn-amd-amdhsa -print-supported-cpus`."""
    return tuple(re.findall(r"^\s+(gfx[0-9a-f]+)$", text, re.MULTILINE))


def choose(platform: str, asked: str | None, compiler: Sequence[str]) -> tuple[str, ...]:
    """The architectures to build: those `asked`, or the defaults that the compiler has.

    `asked` lists architectures between commas, semicolons or spaces. `compiler` is what the
    compiler offers; empty means that it could not be asked, and then nothing is left out.

    Raises:
        InputError: a name of another platform or of none; one that the compiler lacks; an empty
            list; any list for the platform `cpu`.
        EnvironmentMissingError: the compiler has none of the defaults.

    """
    if asked is None:
        chosen = tuple(a for a in DEFAULT[platform] if not compiler or a in compiler)
        if platform != "cpu" and not chosen:
            raise EnvironmentMissingError(
                f"the {platform} compiler has none of the default architectures "
                f"{', '.join(DEFAULT[platform])}; it has {', '.join(compiler)}: "
                "name one of these, or install a newer compiler"
            )
        return chosen
    names = tuple(dict.fromkeys(name for name in re.split(r"[,;\s]+", asked) if name))
    if platform == "cpu":
        raise InputError(
            f"architectures {asked!r}: the platform cpu has none; leave the option out"
        )
    if not names:
        raise InputError(f"no architecture in {asked!r}; name one, {_EXAMPLE[platform]} say")
    for name in names:
        _check_spelling(platform, name)
        base = name.split(":")[0]
        bare = base.rstrip("af") if platform == "cuda" else base
        if compiler and not base.endswith("-generic") and not {base, bare} & set(compiler):
            raise InputError(
                f"architecture {name}: this {platform} compiler does not have it; "
                f"it has {', '.join(compiler)}"
            )
    return names


def check_known(name: str) -> None:
    """Look whether `name` is an architecture of some platform, or `compute_90`'s kind.

    The latter is NVIDIA's portable code, which device code may hold but none is built for alone.

    Raises:
        InputError: it is none of them.

    """
    known = (*_SPELLING.values(), _PORTABLE)
    if not any(spelling.fullmatch(name) for spelling in known):
        examples = ", ".join(_EXAMPLE.values())
        raise InputError(f"{name!r} is no architecture; wanted names such as {examples}")


def _check_spelling(platform: str, name: str) -> None:
    if _SPELLING[platform].fullmatch(name):
        return
    for other, spelling in _SPELLING.items():
        if spelling.fullmatch(name):
            raise InputError(
                f"architecture {name} belongs to {other}, and this build is for {platform}; "
                f"wanted names such as {_EXAMPLE[platform]}"
            )
    raise InputError(
        f"architecture {name!r} is none of {platform}; wanted names such as {_EXAMPLE[platform]}"
    )


def probe(platform: str, root: Path) -> tuple[str, ...]:
    """Architectures of the GPUs in this machine, in device order, each once; empty without one.

    AMD's are read from the kernel: `gfx_target_version` is 10000 * major + 100 * minor + stepping,
    and the stepping is one hexadecimal digit of the name. NVIDIA's are asked of nvidia-smi.
    """
    if platform == "rocm":
        nodes = root.glob("sys/class/kfd/kfd/topology/nodes/*/properties")
        texts = [
            path.read_text(encoding="ascii", errors="replace")
            for path in sorted(nodes, key=lambda path: path.parent.name.zfill(9))
        ]
        found = [re.search(r"^gfx_target_version (\d+)$", text, re.MULTILINE) for text in texts]
        return tuple(dict.fromkeys(gfx_name(int(f[1])) for f in found if f and int(f[1])))
    if platform == "cuda":
        command = ["nvidia-smi", "--query-gpu=compute_cap", "--format=csv,noheader"]
        try:
            done = subprocess.run(command, capture_output=True, timeout=20, check=False)
        except (OSError, subprocess.TimeoutExpired):
            return ()
        caps = re.findall(
            r"^(\d+)\.(\d+)\s*$", done.stdout.decode("ascii", "replace"), re.MULTILINE
        )
        return tuple(dict.fromkeys(f"sm_{major}{minor}" for major, minor in caps))
    return ()


def gfx_name(target_version: int) -> str:
    """The name of an AMD architecture from the kernel's number: 90402 is gfx942, 90010 gfx90a."""
    major, minor, stepping = (
        target_version // 10000,
        target_version // 100 % 100,
        target_version % 100,
    )
    return f"gfx{major}{minor:x}{stepping:x}"


def check_devices(asked: Sequence[str], devices: Sequence[str], *, cross: bool) -> None:
    """Stop when a GPU of this machine is not among the architectures to build.

    `cross` says that the build is meant for other machines; no device here then matters.

    Raises:
        InputError: names the device's architecture and the ones that were asked for.

    """
    if cross or not devices:
        return
    missing = [device for device in devices if not any(_serves(name, device) for name in asked)]
    if missing:
        raise InputError(
            f"this machine's GPU is {', '.join(missing)}, and the build is for "
            f"{', '.join(asked)}: nothing built would run here; add {missing[0]} to the "
            "architectures, or ask for cross-building"
        )


def _serves(built: str, device: str) -> bool:
    """Whether code built for one architecture runs on a device of another.

    CUDA's binary code runs on later minors of its major (CUDA programming guide, "Binary
    compatibility"), unless a suffix ties it to one; AMD's on its own architecture alone.
    """
    if not built.startswith("sm_"):
        return built.split(":", maxsplit=1)[0] == device
    own, other = built.removeprefix("sm_"), device.removeprefix("sm_")
    if own[-1] == "a":
        return own[:-1] == other
    own = own.rstrip("f")
    return own[:-1] == other[:-1] and own[-1] <= other[-1]
