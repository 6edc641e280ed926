"""The semantic checks. A rule looks at one unit and yields findings and edits.

Rules run before the renaming, in the order of `RULES`. Where edits overlap, the earlier one is
made, and the renaming leaves alone what a rule has edited. A name that a rule reported as an
error is not reported a second time.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

from port.hipify import build_files
from port.hipify.rules import (
    architecture,
    arity,
    assembly,
    blas,
    constness,
    contexts,
    default_arguments,
    device_functions,
    enum_values,
    environment,
    jit,
    kernel_arguments,
    libcudacxx,
    libraries,
    lookups,
    macro_includes,
    members,
    merges,
    namespaces,
    pasting,
    strings,
    torch_names,
    trigraphs,
    vector_operators,
    warps,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from port.hipify.context import Context
    from port.hipify.findings import Finding
    from port.hipify.rewrite import Edit
    from port.hipify.unit import Unit

    Rule: TypeAlias = Callable[[Unit, Context], Iterator[Finding | Edit]]

_MODULES = (
    libraries,
    strings,
    lookups,
    environment,
    macro_includes,
    torch_names,
    kernel_arguments,
    warps,
    assembly,
    libcudacxx,
    namespaces,
    architecture,
    pasting,
    jit,
    members,
    arity,
    default_arguments,
    blas,
    constness,
    contexts,
    enum_values,
    merges,
    trigraphs,
    vector_operators,
    device_functions,
)

RULES: tuple[Rule, ...] = tuple(module.rule for module in _MODULES)

MEANINGS: dict[str, str] = {
    rule: meaning for module in (*_MODULES, build_files) for rule, meaning in module.RULES.items()
}
"""Every rule id of this package and what it says; ids never change their meaning."""
