"""Ray: an actor is a process; results go through its object store."""

from __future__ import annotations

from typing import Any

from peers.peer import Cell, Peer

_STORE = 2 << 30  # bytes: an echo of 64 MiB has to fit several times


class Adapter(Peer):
    def boot(self) -> None:
        import ray  # noqa: PLC0415 - its import is part of the cold start

        self.ray = ray
        ray.init(
            include_dashboard=False,
            log_to_driver=False,
            logging_level="ERROR",
            num_cpus=2,
            object_store_memory=_STORE,
        )
        self.remote = ray.remote(num_cpus=0)(Cell)

    def spawn(self, count: int) -> list[Any]:
        return [self.remote.remote() for _ in range(count)]

    def submit(self, group: list[Any], rank: int, name: str, *arguments: Any) -> Any:
        return getattr(group[rank], name).remote(*arguments)

    def wait(self, pending: list[Any]) -> list[Any]:
        return list(self.ray.get(pending, timeout=180))

    def call(self, group: list[Any], rank: int, name: str, *arguments: Any) -> Any:
        return self.ray.get(getattr(group[rank], name).remote(*arguments), timeout=120)

    def replace(self, group: list[Any], rank: int) -> list[Any]:
        group[rank] = self.remote.remote()
        return group

    def close(self) -> None:
        self.ray.shutdown()
