"""A compiler that needs a newer C library than the machine's: run it inside its own root.

A mount namespace of its own keeps the machine's mount table untouched: the mounts below the root
vanish with the compiler, also when it is killed.
"""

from __future__ import annotations

import subprocess
from pathlib import Path

from port.errors import EnvironmentMissingError

PACKAGES = ("base-files", "dash", "coreutils", "libstdc++-14-dev", "libc6-dev", "perl-base")

RUN = """#!/bin/sh
# Sees the machine's own folders at the same paths, inside the newer root.
top=$(CDPATH= cd -- "$(dirname -- "$0")/../root" && pwd -P) || exit 1
exec unshare --mount --propagation private /bin/sh -c '
top=$1; shift
for seen in /*; do
  case $seen in /bin|/sbin|/lib*|/usr|/etc|/var|/boot|/lost+found) continue ;; esac
  [ -d "$seen" ] && [ ! -L "$seen" ] || continue
  mkdir -p "$top$seen"
  mount --rbind "$seen" "$top$seen" || exit 1
done
exec chroot "$top" /usr/bin/env -i HOME=/ LC_ALL=C PATH=/usr/bin:/bin HIP_PLATFORM=amd \\
  HIP_COMPILER=clang HIP_RUNTIME=rocclr ROCM_PATH=/usr HIP_PATH=/usr \\
  HIP_CLANG_PATH=/usr/lib/@LLVM@/bin HIP_DEVICE_LIB_PATH=/usr@BITCODE@ \\
  /bin/sh -c '"'"'cd "$1"; program=/usr$2; shift 2; exec "$program" "$@"'"'"' sh "$PWD" "$@"
' sh "$top" "$@"
"""

_KEYRINGS = (
    Path("/usr/share/keyrings/debian-archive-keyring.gpg"),
    Path("/usr/share/keyrings/debian-archive-keyring.pgp"),
)


def keyring() -> Path:
    """The keys that Debian's suites are signed with.

    Raises:
        EnvironmentMissingError: the machine has none.

    """
    for path in _KEYRINGS:
        if path.is_file():
            return path
    raise EnvironmentMissingError(
        f"no Debian keys ({' or '.join(map(str, _KEYRINGS))}): install debian-archive-keyring"
    )


def check(folder: Path) -> None:
    """Start the compiler once.

    Raises:
        EnvironmentMissingError: it cannot be started here; says what it said.

    """
    done = subprocess.run(
        [str(folder / "bin" / "hipcc"), "--version"],
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode != 0:
        raise EnvironmentMissingError(
            f"the compiler in {folder} cannot be started (status {done.returncode}): "
            f"{(done.stderr or done.stdout).strip()[-400:]}\n"
            "a newer suite's compiler runs in a root of its own, which needs root here "
            "(unshare and chroot); run the build as root, or build for the machine's own ROCm"
        )
