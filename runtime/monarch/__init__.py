"""A single-controller actor runtime for GPU clusters.

Importing this package loads no native code, looks for no GPU and imports no submodule: each of
those happens on first use.
"""

from __future__ import annotations

from monarch._distributions import claimants as _claimants
from monarch._distributions import complaint as _complaint

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from monarch import errors, gpu
    from monarch._shape import Extent, NDSlice, Shape
    from monarch.config import (
        clear_runtime_config,
        configure,
        configured,
        get_global_config,
        get_runtime_config,
    )

__all__ = [
    "Extent",
    "NDSlice",
    "Shape",
    "build_info",
    "clear_runtime_config",
    "configure",
    "configured",
    "errors",
    "get_global_config",
    "get_runtime_config",
    "gpu",
]

_SUBMODULES = ("errors", "gpu")
_ELSEWHERE = {
    "Extent": "_shape",
    "NDSlice": "_shape",
    "Shape": "_shape",
    "clear_runtime_config": "config",
    "configure": "config",
    "configured": "config",
    "get_global_config": "config",
    "get_runtime_config": "config",
}


def build_info() -> dict[str, Any]:
    """Facts of the installed build, by name.

    `platform`, `version`, `runtime_version`, `runtime_soname`, `architectures`, `compiler`,
    `host_compiler`, `toolchain` and `revision`; a fact that does not apply is empty.

    Raises:
        MonarchError: this is a source tree that was never built.

    """
    facts = _build_facts()
    if facts is None:
        from monarch.errors import MonarchError  # noqa: PLC0415 - not needed to import the package

        raise MonarchError(
            f"no build info in {', '.join(__path__)}: this is a source tree that was not built; "
            "run `pip install -e ./` in it"
        )
    return facts


def _build_facts() -> dict[str, Any] | None:
    try:
        from monarch import _build_info  # noqa: PLC0415 - written by the build, read on demand
    except ImportError:
        return None
    return {name.lower(): value for name, value in vars(_build_info).items() if name.isupper()}


def __getattr__(name: str) -> Any:
    if name in _SUBMODULES:
        import importlib  # noqa: PLC0415 - only what is used is imported

        return importlib.import_module(f"monarch.{name}")
    if name in _ELSEWHERE:
        import importlib  # noqa: PLC0415 - as above

        return getattr(importlib.import_module(f"monarch.{_ELSEWHERE[name]}"), name)
    if name == "__version__":
        return build_info()["version"]
    raise AttributeError(f"module 'monarch' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*__all__, "__version__"})


def _refuse_conflicts() -> None:
    found = _claimants(__path__)
    if len(found) > 1:
        from monarch.errors import ConflictError  # noqa: PLC0415 - only on the way out

        raise ConflictError(_complaint(found, (_build_facts() or {}).get("platform")))


_refuse_conflicts()
