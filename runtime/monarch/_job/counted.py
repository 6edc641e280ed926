"""Jobs whose meshes are numbers of hosts, any of which is as good as another."""

from __future__ import annotations

from monarch._job.job import JobTrait, check_mesh
from monarch.errors import JobError


class CountedMeshes(JobTrait):
    """A job of `_meshes` by name; its hosts have ranks, from one mesh to the next."""

    _meshes: dict[str, int]

    def add_mesh(self, name: str, num_nodes: int) -> None:
        """Ask for one more mesh of this many hosts, before the job is applied.

        Raises:
            ValueError: the name cannot be an attribute, or the number is none.
            JobError: the job has been applied.

        """
        check_mesh(name, num_nodes)
        if self.active:
            raise JobError(f"mesh {name!r} comes too late: the job has been applied")
        self._meshes[name] = num_nodes

    @property
    def _count(self) -> int:
        return sum(self._meshes.values())

    def _ranks(self) -> dict[str, range]:
        """The ranks of each mesh's hosts."""
        found, first = {}, 0
        for name, count in self._meshes.items():
            found[name] = range(first, first + count)
            first += count
        return found
