"""The lease of a SLURM job that was not stored, as its client holds it."""

from __future__ import annotations

import atexit
import contextlib
import os
import threading
from typing import TYPE_CHECKING, Any

from monarch._job.slurm.folder import RENEWED

if TYPE_CHECKING:
    from monarch._job.slurm.folder import JobFolder


class Lease:
    """Renews the lease of a job while this program lives, and ends the job with it."""

    def __init__(self, folder: JobFolder, end: Any) -> None:
        self._folder = folder
        self._end = end
        self._owner = os.getpid()
        self._dropped = threading.Event()
        threading.Thread(target=self._renew, name="monarch-lease", daemon=True).start()
        atexit.register(self._at_exit)

    def drop(self) -> None:
        """Renew it no more, and leave the job's end to others."""
        self._dropped.set()
        atexit.unregister(self._at_exit)

    def _renew(self) -> None:
        while not self._dropped.wait(RENEWED):
            with contextlib.suppress(OSError):
                self._folder.renew()

    def _at_exit(self) -> None:
        if os.getpid() == self._owner:
            self._end()
