"""What a wheel says of itself in `monarch/_build_info.py`: the one definition of its names."""

from __future__ import annotations

import ast
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING

from port.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Mapping

PATH = "monarch/_build_info.py"


@dataclass(frozen=True, slots=True)
class BuildInfo:
    """Facts of one build; each field is an upper-case name of the module.

    `platform` is cpu, cuda or rocm. `runtime_version` is the GPU runtime's version and
    `runtime_soname` the library that has to be there at run time; both are empty where there is
    none. `architectures` are those that device code was compiled for. `compiler` is the first line
    of the GPU compiler's version, `host_compiler` that of the C++ compiler. `revision` is the
    source's commit, empty when unknown.
    """

    platform: str
    version: str
    runtime_version: str = ""
    runtime_soname: str = ""
    architectures: tuple[str, ...] = ()
    compiler: str = ""
    host_compiler: str = ""
    toolchain: str = ""
    revision: str = ""

    def render(self) -> str:
        """The module's text. Equal facts give equal bytes."""
        lines = ['"""What this build is; written by the build, not by hand."""', ""]
        lines += [f"{f.name.upper()} = {getattr(self, f.name)!r}" for f in fields(self)]
        return "\n".join(lines) + "\n"


def parse(text: str, source: str = PATH) -> BuildInfo:
    """Read the facts back without running the module.

    Raises:
        InputError: the text is not what `render` writes.

    """
    try:
        tree = ast.parse(text)
        values: Mapping[str, object] = {
            node.targets[0].id: ast.literal_eval(node.value)
            for node in tree.body
            if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name)
        }
    except (SyntaxError, ValueError) as error:
        raise InputError(f"{source}: not a build info module: {error}") from None
    known = {f.name.upper(): f for f in fields(BuildInfo)}
    missing = [name for name in ("PLATFORM", "VERSION") if name not in values]
    if missing:
        raise InputError(f"{source}: {', '.join(missing)} missing; rebuild the wheel")
    taken = {known[name].name: value for name, value in values.items() if name in known}
    for name, value in taken.items():
        wanted = tuple if name == "architectures" else str
        if not isinstance(value, wanted):
            raise InputError(f"{source}: {name.upper()} is {value!r}, wanted a {wanted.__name__}")
    return BuildInfo(**taken)  # type: ignore[arg-type]
