"""Leaves a process that imports this room for a few descriptors only."""

from __future__ import annotations

import resource

resource.setrlimit(resource.RLIMIT_NOFILE, (30, resource.getrlimit(resource.RLIMIT_NOFILE)[1]))
