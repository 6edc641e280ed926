"""Errors of `monarch`. Messages say what, where, what was wanted and what to do."""

from __future__ import annotations

__all__ = ["ConflictError", "FrameError", "MonarchError", "RuntimeLibraryError"]


class MonarchError(Exception):
    """Root of the errors that this package raises on purpose."""


class ConflictError(MonarchError, ImportError):
    """Two distributions that install this package are in one environment."""


class RuntimeLibraryError(MonarchError, ImportError):
    """The GPU runtime library is missing, of another release, or in the process twice."""


class FrameError(MonarchError, ValueError):
    """Bytes that are no frame, or a frame that cannot be.

    `code` is one of malformed, version, limit, corrupt, sequence and argument.
    """

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code
