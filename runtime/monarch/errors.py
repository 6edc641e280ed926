"""Errors of `monarch`. Messages say what, where, what was wanted and what to do.

Each keeps its constructor's arguments as its own, so that it survives pickling.
"""

from __future__ import annotations

__all__ = ["ConflictError", "FrameError", "GpuError", "MonarchError", "RuntimeLibraryError"]


class MonarchError(Exception):
    """Root of the errors that this package raises on purpose."""


class ConflictError(MonarchError, ImportError):
    """Two distributions that install this package are in one environment."""


class RuntimeLibraryError(MonarchError, ImportError):
    """The GPU runtime library is missing, of another release, or in the process twice."""


class GpuError(MonarchError, RuntimeError):
    """A GPU operation that failed, or one this machine or distribution cannot do.

    `code` is one of invalid_argument, library_missing, symbol_missing, unsupported, no_device,
    out_of_memory, peer_failed and device_failure; `context` is what was being done.
    """

    def __init__(self, message: str, code: str, context: str = "") -> None:
        super().__init__(message, code, context)
        self.message = message
        self.code = code
        self.context = context

    def __str__(self) -> str:
        return f"{self.context}: {self.message}" if self.context else self.message


class FrameError(MonarchError, ValueError):
    """Bytes that are no frame, or a frame that cannot be.

    `code` is one of malformed, version, limit, corrupt, sequence and argument.
    """

    def __init__(self, code: str, message: str) -> None:
        super().__init__(code, message)
        self.code = code
        self.message = message

    def __str__(self) -> str:
        return self.message
