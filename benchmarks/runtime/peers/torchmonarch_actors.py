"""torchmonarch 0.7: as the Monarch API has it, but for what it cannot do."""

from __future__ import annotations

from typing import Any

from peers import monarch_actors


class Adapter(monarch_actors.Adapter):
    local_batch = 100  # more at once and spawning times out after 30 s

    def replace(self, group: monarch_actors.Group, rank: int) -> Any:
        """A mesh of one beside the broken one: nothing is replaced in place."""
        (group[rank],) = self.spawn(1)
        group.whole = None
        return group


class LoopAdapter(monarch_actors.LoopAdapter, Adapter):
    """The same, with async endpoints."""
