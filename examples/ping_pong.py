"""Two actors that hold references to each other, and a port that hears of the end."""

from __future__ import annotations

from typing import Any

from monarch.actor import Actor, Channel, Port, endpoint, this_host

ROUNDS = 1000


class Player(Actor):
    def __init__(self, name: str) -> None:
        self.name = name
        self.hits = 0

    @endpoint
    def hit(self, ball: int, other: Any, me: Any, done: Port[str]) -> None:
        self.hits += 1
        if ball < ROUNDS:
            other.hit.broadcast(ball + 1, me, other, done)
        else:
            done.send(f"{self.name} has the ball after {ball} hits")

    @endpoint
    def score(self) -> int:
        return self.hits


def main() -> None:
    players = this_host().spawn_procs(per_host={"players": 2})
    ping = players.slice(players=0).spawn("ping", Player, "ping")
    pong = players.slice(players=1).spawn("pong", Player, "pong")

    port, receiver = Channel[str].open()
    ping.hit.broadcast(1, pong, ping, port)
    print(receiver.recv().get())
    print("ping", ping.score.call_one().get(), "pong", pong.score.call_one().get())
    players.stop().get()


if __name__ == "__main__":
    main()
