"""Counters in four processes: call one, call all, call some, send without waiting."""

from __future__ import annotations

from monarch.actor import Actor, current_rank, endpoint, this_host


class Counter(Actor):
    def __init__(self, start: int) -> None:
        self.value = start

    @endpoint
    def increment(self, by: int = 1) -> int:
        self.value += by
        return self.value

    @endpoint
    def where(self) -> str:
        return f"worker {current_rank()['workers']} holds {self.value}"


def main() -> None:
    procs = this_host().spawn_procs(per_host={"workers": 4})
    counters = procs.spawn("counters", Counter, 10)

    last = counters.slice(workers=3)
    print("one:", last.increment.call_one(5).get())

    counters.slice(workers=slice(0, 2)).increment.call(100).get()

    counters.increment.broadcast()  # nobody waits, and the next call still comes after it
    for line in counters.where.call().get().values():
        print(line)

    values = counters.increment.call(by=0).get()
    print("sum:", sum(values.values()))
    procs.stop().get()


if __name__ == "__main__":
    main()
