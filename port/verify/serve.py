"""What runs in the limited child: read the ELF files that come over the socket, answer in JSON.

It imports little: each command pays for the child's start. So the debugger of the library that
reads ELF, which brings half of Python's tools for programmers along, stays out.
"""

from __future__ import annotations

import json
import os
import resource
import socket
import sys
from types import ModuleType
from typing import Any

_debugger = ModuleType("elftools.construct.debug")
_debugger.__dict__.update(Probe=None, Debugger=None)
sys.modules.setdefault(_debugger.__name__, _debugger)

from port.verify.elf import read  # noqa: E402 - as above
from port.verify.facts import to_json  # noqa: E402

CPU_SECONDS = 5
MEMORY_BYTES = 512 << 20


def serve() -> None:
    """Answer requests on standard input's socket until it closes."""
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES, MEMORY_BYTES))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    with socket.socket(fileno=0) as link:
        link.sendall(b".")
        while True:
            data, descriptors, _, _ = socket.recv_fds(link, 1, 1)
            if not data:
                return
            _allow_cpu()
            answer = json.dumps(_answer(descriptors[0])).encode()
            link.sendall(len(answer).to_bytes(4, "little") + answer)


def _allow_cpu() -> None:
    """Move the CPU limit ahead by one file's share."""
    usage = resource.getrusage(resource.RUSAGE_SELF)
    used = int(usage.ru_utime + usage.ru_stime)
    _, hard = resource.getrlimit(resource.RLIMIT_CPU)
    # The kernel compares whole seconds: one more, so that a file never has less than its share.
    resource.setrlimit(resource.RLIMIT_CPU, (used + CPU_SECONDS + 1, hard))


def _answer(descriptor: int) -> dict[str, Any]:
    with os.fdopen(descriptor, "rb") as stream:
        try:
            return {"elf": to_json(read(stream))}
        except MemoryError:
            return {"limit": f"more than {MEMORY_BYTES >> 20} MiB of memory"}
        except Exception as error:  # noqa: BLE001 - hostile bytes may raise anything in a parser
            text = " ".join(str(error).split())[:200]
            return {"error": text or type(error).__name__}
