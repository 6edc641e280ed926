"""Heat spreading over a grid, computed on a GPU."""

from __future__ import annotations

from heatgrid._heatgrid import device_count, runtime_version, spread

__all__ = ["device_count", "runtime_version", "spread"]
