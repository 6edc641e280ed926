"""The core compiles elsewhere: what only Linux has stands under a condition."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from ci import cpp

CORE = Path(cpp.__file__).parents[1] / "runtime/core"
SOURCES = sorted([*CORE.rglob("*.cpp"), *CORE.rglob("*.hpp")])
LINUX_ONLY = re.compile(
    r"#\s*include\s*<(linux/|sys/(epoll|eventfd|inotify|prctl|sendfile|signalfd|syscall|timerfd)\.h"
    r"|(byteswap|endian|features|malloc)\.h)"
    r"|\b(accept4|epoll_\w+|eventfd|memfd_create|pipe2|prctl|sched_getaffinity|signalfd"
    r"|MSG_CMSG_CLOEXEC|MSG_NOSIGNAL|O_TMPFILE|RUSAGE_THREAD|SOCK_CLOEXEC|SOCK_NONBLOCK)\b"
    r"|::sig(add|del|empty|fill)set"  # macros on macOS: no name to qualify
)
_CODE = re.compile(r'//.*|"(?:[^"\\]|\\.)*"')


def unconditional(text):
    """Lines of `text` with something of Linux's that no #if keeps to where it is."""
    found, depth = [], 0
    for number, line in enumerate(text.splitlines(), 1):
        word = line.strip().removeprefix("#").strip() if line.lstrip().startswith("#") else ""
        if word.startswith("if"):
            depth += 1
        elif word.startswith("endif"):
            depth -= 1
        elif depth == 0 and LINUX_ONLY.search(_CODE.sub("", line)):
            found.append(f"{number}: {line.strip()}")
    return found


def test_the_check_sees_what_it_is_for():
    bare = "#include <sys/epoll.h>\nint fd = ::memfd_create(name, 0);\n"
    assert len(unconditional(bare)) == 2
    assert unconditional("  ::sigfillset(&all);\n") == ["1: ::sigfillset(&all);"]
    assert unconditional(f"#if defined(__linux__)\n{bare}#endif\n") == []
    assert unconditional('// epoll_create1\nfail("epoll_create1");\n') == []


# A header of ours has no include guard by #if: a guard would hide all that is in it.
def test_headers_are_guarded_by_pragma():
    for path in SOURCES:
        if path.suffix == ".hpp":
            assert "#pragma once" in path.read_text(encoding="utf-8"), path


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: str(path.relative_to(CORE)))
def test_nothing_of_linux_stands_without_an_alternative(path):
    assert unconditional(path.read_text(encoding="utf-8")) == []


def test_the_poller_has_another_way_to_wait():
    text = (CORE / "net/poller.cpp").read_text(encoding="utf-8")
    assert "::kevent(" in text
    assert "::epoll_wait(" in text


def test_the_macos_session_compiles_every_file_of_the_core():
    listed = set(
        re.findall(r"^  (\w+/\w+\.cpp)$", (CORE / "CMakeLists.txt").read_text(), re.MULTILINE)
    )
    assert {str(path.relative_to(CORE)) for path in cpp.sources()} == listed
