"""The handshake of a link: a pure state machine, bytes in and bytes out.

Four messages of fixed size, so that nothing is sized by what a stranger says::

    dialer                                       listener
    HELLO      ids, nonce, channel       ->
                                         <-      CHALLENGE  ids, nonce, proof of the listener
    PROOF      proof of the dialer       ->
                                         <-      ACCEPT     proof of the decision

Each proof is an HMAC-SHA-256 by the cluster secret over a text that names the side that proves, and
over all that both sides have said so far: both nonces, both proc ids, both roles and the channel.
A proof of one side is therefore none of the other's (reflection), and none of another connection
(replay). Instead of its next message a side may send REFUSE with a reason from a fixed list.

Every message starts with the same 8 bytes in every version of the protocol: 4 of magic, 2 of
version, kind, and role or reason.
"""

from __future__ import annotations

import os
import struct

from monarch.errors import LinkError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from monarch._link.secret import Secret

VERSION = 1
SECONDS = 5.0  # what a peer has for the whole of it
BUFFER = 88  # bytes of a peer that are ever held before it has authenticated

PROC, CLIENT, HOST = 1, 2, 3
GOING_ON = 4  # no role, but a link that there is already and whose connection has ended
WAY = 5  # no link at all: the connection is to be led on to another host (`way`)
ROLES = {PROC: "proc", CLIENT: "client", HOST: "host agent", GOING_ON: "session", WAY: "guest"}

MAGIC = b"MNRL"
# The channels where nothing tells connections apart.
IN_THE_CLEAR = b"between hosts, in the clear"
ON_THE_WAY = b"between hosts, to be led on"
_HEAD = struct.Struct("!4sHBB")
_HELLO = struct.Struct("!4sHBBQQ32s32s")  # head, own id, wanted id (0: any), nonce, channel
_CHALLENGE = struct.Struct("!4sHBBQQ32s32s")  # head, own id, the dialer's id, nonce, proof
_SEALED = _HEAD.size + 32  # bytes of PROOF and of ACCEPT: head, proof
_KIND_HELLO, _KIND_CHALLENGE, _KIND_PROOF, _KIND_ACCEPT, _KIND_REFUSE = 1, 2, 3, 4, 5

_LISTENER = b"monarch link: listener\0"
_DIALER = b"monarch link: dialer\0\0\0"
_DECISION = b"monarch link: accepted\0"
_AFTERWARDS = b"monarch link: after it\0"

# Reasons a side may give, by number; the text is what the other side shows.
REASONS = {
    1: ("malformed", "did not understand what it got"),
    2: ("version", "speaks another version of the link protocol"),
    3: ("secret", "holds another secret"),
    4: ("channel", "was reached through another address than it listens on"),
    5: ("identity", "is not the proc that was asked for"),
    6: ("role", "takes no link of this kind"),
    7: ("duplicate", "has a link to this process already, or is making one"),
    8: ("full", "takes no more links"),
    9: ("user", "belongs to another user"),
    10: ("clear", "takes encrypted links only, and this process was told to do without"),
    11: ("encrypted", "was told to do without encryption, unlike this process"),
    12: ("gone", "knows no such process on its host, or no such session"),
    13: ("refused", "is refused there"),
    14: ("unreachable", "does not reach it"),
    15: ("tunnel", "takes links of other hosts there; where a tunnel leads to it, write tls://"),
}
_NUMBERS = {name: number for number, (name, _) in REASONS.items()}


class HandshakeError(LinkError):
    """The handshake failed; `farewell` is what to send before closing, maybe nothing."""

    def __init__(self, code: str, message: str, farewell: bytes = b"") -> None:
        super().__init__(code, message)
        self.args = (code, message, farewell)
        self.farewell = farewell


def refusal(code: str) -> bytes:
    """The message that refuses a peer, before or during the handshake."""
    return _HEAD.pack(MAGIC, VERSION, _KIND_REFUSE, _NUMBERS[code])


class _Side:
    """What both sides share: reading one message of a known size at a time."""

    __slots__ = (
        "_buffer",
        "_challenge",
        "_channel",
        "_hello",
        "_nonce",
        "_secret",
        "_size",
        "done",
        "own",
        "peer",
        "peer_role",
        "role",
    )

    def __init__(
        self, secret: Secret, role: int, own: int, channel: bytes, size: int, nonce: bytes | None
    ) -> None:
        self._secret = secret
        self._channel = _digest(channel)
        self._nonce = os.urandom(32) if nonce is None else nonce
        self._buffer = b""
        self._size = size
        self._hello = self._challenge = b""
        self.role = role
        self.own = own
        self.peer = 0
        self.peer_role = 0
        self.done = False

    @property
    def need(self) -> int:
        """Bytes to read next, never more than that; 0 once nothing more is to be read."""
        if self.done:
            return 0
        size = _HEAD.size if len(self._buffer) < _HEAD.size else self._size
        return size - len(self._buffer)

    def feed(self, data: bytes) -> bytes:
        """Take at most `need` bytes of the peer; what is to be written to it in turn.

        Raises:
            HandshakeError: the peer is refused, or refused us.

        """
        if not data:
            raise HandshakeError("closed", "the peer closed the link while it was made")
        if len(data) > self.need:
            raise HandshakeError("malformed", "more bytes than were asked for")
        before = len(self._buffer)
        self._buffer += data
        if before < _HEAD.size <= len(self._buffer):
            self._head()
        if len(self._buffer) < self._size:
            return b""
        message, self._buffer = self._buffer, b""
        return self._take(message)

    def seal(self, message: bytes) -> bytes:
        """The proof, 32 bytes, that a message of the dialer's belongs to this handshake."""
        return self._secret.mac(_AFTERWARDS, self._hello, self._challenge, message)

    def _head(self) -> None:
        magic, version, kind, last = _HEAD.unpack(self._buffer)
        if magic != MAGIC:
            raise HandshakeError("malformed", "what answers is no process of monarch")
        if kind == _KIND_REFUSE:
            code, text = REASONS.get(last, ("malformed", f"refused for reason {last}"))
            if code == "version":
                text += f" ({version}; this is {VERSION}): install the same release on both sides"
            elif code == "secret":
                text += f" than this process, which has that of {self._secret.source}"
            raise HandshakeError(code, f"the other side {text}")
        if version != VERSION:
            raise HandshakeError(
                "version",
                f"the other side speaks version {version} of the link protocol and "
                f"this is {VERSION}: install the same release on both sides",
                refusal("version"),
            )
        if kind != self._kind() or last not in ROLES:
            raise self._refuse("malformed", "a message of the handshake out of its order")

    def _refuse(self, code: str, text: str) -> HandshakeError:
        return HandshakeError(code, f"{text}", refusal(code))

    def _check(self, proof: bytes, *parts: bytes) -> None:
        from hmac import compare_digest  # noqa: PLC0415 - loads OpenSSL, needed from here on alone

        if not compare_digest(proof, self._secret.mac(*parts)):
            raise self._refuse(
                "secret",
                "the other side holds another secret than this process, which has that of "
                f"{self._secret.source}",
            )

    def _kind(self) -> int:
        raise NotImplementedError

    def _take(self, message: bytes) -> bytes:
        raise NotImplementedError


class Dialer(_Side):
    """The side that made the connection. Write `start()`, then feed until `done`.

    `peer` is the proc id that is wanted, 0 for whoever listens; after `done` the one it is.
    `channel` is the address the socket is connected to, as the kernel gives it.
    """

    __slots__ = ()

    def __init__(
        self,
        secret: Secret,
        own: int,
        channel: bytes,
        *,
        role: int = PROC,
        peer: int = 0,
        nonce: bytes | None = None,
    ) -> None:
        super().__init__(secret, role, own, channel, _CHALLENGE.size, nonce)
        self.peer = peer

    def start(self) -> bytes:
        self._hello = _HELLO.pack(
            MAGIC, VERSION, _KIND_HELLO, self.role, self.own, self.peer, self._nonce, self._channel
        )
        return self._hello

    def _kind(self) -> int:
        return _KIND_ACCEPT if self._challenge else _KIND_CHALLENGE

    def _take(self, message: bytes) -> bytes:
        if self._challenge:
            head, proof = message[: _HEAD.size], message[_HEAD.size :]
            self._check(proof, _DECISION, self._hello, self._challenge, head)
            self.done = True
            return b""
        _, _, _, role, peer, own, nonce, proof = _CHALLENGE.unpack(message)
        self._check(proof, _LISTENER, self._hello, message[:-32])
        if own != self.own or peer in {0, self.own} or self.peer not in {0, peer}:
            raise self._refuse(
                "identity", f"proc {self.peer:016x} was dialled and {peer:016x} answered"
            )
        if nonce == self._nonce:
            raise self._refuse("malformed", "the other side repeats what it is sent")
        self.peer, self.peer_role = peer, role
        self._challenge = message
        self._size = _SEALED
        head = _HEAD.pack(MAGIC, VERSION, _KIND_PROOF, self.role)
        return head + self._secret.mac(_DIALER, self._hello, message, head)


class Listener(_Side):
    """The side that accepted the connection. Feed until `proven`, then `accept` or `refuse`.

    `roles` are those a dialer may have. `channel` is the address the socket was accepted on.
    """

    __slots__ = ("_roles", "proven")

    def __init__(
        self,
        secret: Secret,
        own: int,
        channel: bytes,
        *,
        role: int = PROC,
        roles: frozenset[int] = frozenset({PROC}),
        nonce: bytes | None = None,
    ) -> None:
        super().__init__(secret, role, own, channel, _HELLO.size, nonce)
        self._roles = roles
        self.proven = False

    @property
    def need(self) -> int:
        return 0 if self.proven else super().need

    def accept(self) -> bytes:
        """The dialer is taken: its link begins after these bytes."""
        if not self.proven:
            raise RuntimeError("a peer is accepted once it has proven itself, not before")
        self.done = True
        head = _HEAD.pack(MAGIC, VERSION, _KIND_ACCEPT, self.role)
        return head + self._secret.mac(_DECISION, self._hello, self._challenge, head)

    def _kind(self) -> int:
        return _KIND_PROOF if self._challenge else _KIND_HELLO

    def _take(self, message: bytes) -> bytes:
        if self._challenge:
            head, proof = message[: _HEAD.size], message[_HEAD.size :]
            self._check(proof, _DIALER, self._hello, self._challenge, head)
            self.proven = True
            return b""
        _, _, _, role, peer, wanted, _, channel = _HELLO.unpack(message)
        if channel != self._channel:
            raise self._refuse("channel", "the peer dialled another address than this one")
        if peer in {0, self.own} or wanted not in {0, self.own}:
            raise self._refuse("identity", f"proc {peer:016x} asks for proc {wanted:016x}")
        if role not in self._roles:
            raise self._refuse("role", f"a {ROLES[role]} asks for a link")
        self.peer, self.peer_role = peer, role
        self._hello = message
        head = _CHALLENGE.pack(
            MAGIC, VERSION, _KIND_CHALLENGE, self.role, self.own, peer, self._nonce, b""
        )[:-32]
        self._challenge = head + self._secret.mac(_LISTENER, message, head)
        self._size = _SEALED
        return self._challenge


def _digest(channel: bytes) -> bytes:
    import hashlib  # noqa: PLC0415 - loads OpenSSL, which a process without foreign links spares

    return hashlib.sha256(channel).digest()
