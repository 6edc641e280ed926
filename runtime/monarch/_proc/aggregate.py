"""Lines of many ranks within a window of time, those that are alike told as one.

Lines are alike when they differ in numbers only. A rank that prints a line twice has printed two:
only lines of different ranks are ever put together.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

_DIGITS = b"0123456789"
_BLANKED = bytes(35 if byte in _DIGITS else byte for byte in range(256))


class _Group:
    __slots__ = ("first", "label", "ranks", "stream")

    def __init__(self, stream: int, label: str, first: bytes) -> None:
        self.stream = stream
        self.label = label
        self.first = first
        self.ranks: set[int] = set()


class Aggregator:
    """Collects lines, and gives them out as (stream, text) when told that the window is over."""

    def __init__(self, prefix: Callable[[str], bytes]) -> None:
        self._prefix = prefix
        self._groups: dict[tuple[int, bytes], list[_Group]] = {}
        self._order: list[_Group] = []

    def add(self, rank: int, label: str, stream: int, lines: bytes) -> None:
        """Take the lines that a rank has printed to its stream 1 or 2."""
        for line in lines.splitlines():
            groups = self._groups.setdefault((stream, _alike(line)), [])
            for group in groups:
                if rank not in group.ranks:
                    break
            else:
                group = _Group(stream, label, line)
                groups.append(group)
                self._order.append(group)
            group.ranks.add(rank)

    def flush(self) -> list[tuple[int, bytes]]:
        """What has come since the last time, in the order in which it began to come."""
        found = []
        for group in self._order:
            count = len(group.ranks)
            many = b"[%d similar log lines] " % count
            prefix = self._prefix(group.label) if count == 1 else many
            found.append((group.stream, prefix + group.first + b"\n"))
        self._groups.clear()
        self._order.clear()
        return found


def _alike(line: bytes) -> bytes:
    text = line.translate(_BLANKED)
    while b"##" in text:
        text = text.replace(b"##", b"#")
    return text
