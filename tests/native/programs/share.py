"""Two processes share device memory: `owner` allocates and exports, `peer` imports."""

import os
import socket
import sys

from monarch import gpu

NBYTES = 3_000_000


def say(text: str, data: str) -> None:
    sys.stdout.write(f"{text} {data}\n")


def main(role: str, descriptor: int) -> None:
    link = socket.socket(fileno=descriptor)
    device = gpu.device(0)
    if role == "owner":
        memory = device.allocate(NBYTES, shareable=True)
        memory.write(b"question", offset=NBYTES - 8)
        exported = memory.export_fd()
        socket.send_fds(link, [b"here"], [exported])
        os.close(exported)
        assert link.recv(6) == b"answer"
        say("owner sees", memory.read(6).decode())
        memory.release()
        link.send(b"gone")
        return
    _, (received,), _, _ = socket.recv_fds(link, 4, 1)
    memory = device.import_fd(received, NBYTES)
    os.close(received)
    say("peer sees", memory.read(8, offset=NBYTES - 8).decode())
    memory.write(b"answer")
    link.send(b"answer")
    assert link.recv(4) == b"gone"
    assert link.recv(1) == b""  # the owner has ended
    say("peer still sees", memory.read(8, offset=NBYTES - 8).decode())


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
