"""The semantic checks. A rule looks at one unit and yields findings and edits.

Rules run before the renaming, in the order of `RULES`. Where edits overlap, the earlier one is
made, and the renaming leaves alone what a rule has edited. A name that a rule reported as an
error is not reported a second time.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from port.hipify.context import Context
    from port.hipify.findings import Finding
    from port.hipify.rewrite import Edit
    from port.hipify.unit import Unit

    Rule: TypeAlias = Callable[[Unit, Context], Iterator[Finding | Edit]]

RULES: tuple[Rule, ...] = ()
