"""A way by a host agent: to an address of another host that is not reached from here.

Who wants it proves to the agent that it holds the secret, and names the address::

    dialer                                       host agent
    handshake, role WAY                 <->
    TARGET  address and port, proof      ->
                                         <-      OPEN once it is connected there, or REFUSE

From then on the agent passes bytes both ways, and the link is made through it as if the dialer were
connected to the address itself: the agent sees what is encrypted for somebody else. The proof is
over the handshake, so that nobody between can name another address.
"""

from __future__ import annotations

import _socket
import struct

from monarch._link import handshake
from monarch._link.address import Address
from monarch._link.handshake import MAGIC, VERSION, HandshakeError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from monarch._link.secret import Secret

TARGET_SIZE = 64
OPEN_SIZE = 8

_KIND_TARGET, _KIND_OPEN, _KIND_REFUSE = 7, 8, 5
_HEAD = struct.Struct("!4sHBB")
_TARGET = struct.Struct("!4sHBBH6x16s")  # head with 4 or 6, port, address
_FAMILIES = {4: (_socket.AF_INET, 4), 6: (_socket.AF_INET6, 16)}


class Asker:
    """The dialer's side. Write `start()`, then feed until `open`."""

    def __init__(self, secret: Secret, own: int, channel: bytes, address: Address) -> None:
        self._side = handshake.Dialer(secret, own, channel, role=handshake.WAY)
        self._address = address
        self._answer = b""
        self.open = False

    @property
    def need(self) -> int:
        """Bytes to read next, never more than that; 0 once the way is open."""
        if self.open:
            return 0
        return OPEN_SIZE - len(self._answer) if self._side.done else self._side.need

    def start(self) -> bytes:
        return self._side.start()

    def feed(self, data: bytes) -> bytes:
        """Take at most `need` bytes of the agent; what is to be written to it in turn.

        Raises:
            HandshakeError: the agent is refused, refuses, or does not reach the address.

        """
        if not self._side.done:
            answer = self._side.feed(data)
            return target(self._side, self._address) if self._side.done else answer
        if not data:
            raise HandshakeError("unreachable", "the host agent closed the connection")
        self._answer += data
        if len(self._answer) == OPEN_SIZE:
            self._decide()
        return b""

    def _decide(self) -> None:
        magic, version, kind, reason = _HEAD.unpack(self._answer)
        if magic != MAGIC or version != VERSION or kind not in {_KIND_OPEN, _KIND_REFUSE}:
            raise HandshakeError("malformed", "an answer of the host agent that cannot be read")
        if kind == _KIND_REFUSE:
            code, text = handshake.REASONS.get(reason, ("malformed", f"refused for {reason}"))
            raise HandshakeError(code, f"the host agent {text}")
        self.open = True


def opened() -> bytes:
    """What says that the way is open: after these bytes come those of the address."""
    return _HEAD.pack(MAGIC, VERSION, _KIND_OPEN, 0)


def target(side: handshake.Dialer, address: Address) -> bytes:
    """The message that names an address, whose host is a number."""
    version = 6 if ":" in address.host else 4
    family, _ = _FAMILIES[version]
    number = _socket.inet_pton(family, address.host)
    text = _TARGET.pack(MAGIC, VERSION, _KIND_TARGET, version, address.port, number)
    return text + side.seal(text)


def read_target(side: handshake.Listener, message: bytes) -> Address:
    """The address that a message of `TARGET_SIZE` bytes names.

    Raises:
        HandshakeError: it names none, or is not of the peer that this handshake was with.

    """
    from hmac import compare_digest  # noqa: PLC0415 - as in the handshake

    text, proof = message[: _TARGET.size], message[_TARGET.size :]
    if not compare_digest(proof, side.seal(text)):
        raise HandshakeError("secret", "not of the peer", handshake.refusal("secret"))
    magic, version, kind, ip, port, number = _TARGET.unpack(text)
    if magic != MAGIC or version != VERSION or kind != _KIND_TARGET or ip not in _FAMILIES:
        raise HandshakeError("malformed", "no address", handshake.refusal("malformed"))
    family, size = _FAMILIES[ip]
    return Address("tcp", host=_socket.inet_ntop(family, number[:size]), port=port)
