"""Addresses of processes: what users write, and what sockets take.

`ipc://@name` is an abstract Unix socket (Linux), `ipc://path` and `unix:path` one with a file.
`tcp://host:port` is TCP: on loopback a plain socket, off this host a link of another kind (see
`route`), as is `tls://host:port` everywhere. `dial@bind` gives a listener one address to bind and
another to tell others; `name@address` gives the process that listens the proc id of that name.
"""

from __future__ import annotations

import os
import sys

from monarch.errors import AddressError, UnsupportedAddressError

_PATH_LIMIT = 107 if sys.platform == "linux" else 103  # bytes of sockaddr_un.sun_path, less a NUL
_KNOWN = (
    "ipc:", "unix:", "tcp:", "tls:", "metatls:", "metatls-hostname:", "quic:", "metaquic:",
    "local:", "inproc:",
)  # fmt: skip
_FORMS = "ipc://@name, ipc://path, unix:path or tcp://address:port"
_ANY = {"*", "0.0.0.0", "::"}  # noqa: S104 - who listens there is told what it means


class Address:
    """A socket address: `kind` is "unix" with a `path` ("@…": abstract), or "tcp".

    `off_host` says that links there are those between hosts: routed, and encrypted. `tunnel`: they
    are although the host is loopback. `dial`, itself an address, is what others are told when it
    differs; `proc` is the proc id that the process listening here takes, 0 where it takes any.
    """

    __slots__ = ("dial", "host", "kind", "path", "port", "proc", "tunnel")

    def __init__(
        self,
        kind: str,
        *,
        path: str = "",
        host: str = "",
        port: int = 0,
        proc: int = 0,
        dial: Address | None = None,
        tunnel: bool = False,
    ) -> None:
        self.kind = kind
        self.path = path
        self.host = host
        self.port = port
        self.proc = proc
        self.tunnel = tunnel
        self.dial = dial or self

    @property
    def off_host(self) -> bool:
        """Whether links there are of the kind between hosts."""
        return self.kind == "tcp" and (self.tunnel or not is_loopback(self.host))

    @property
    def any_interface(self) -> bool:
        """Whether it stands for all interfaces: to listen on, not to dial."""
        return self.host in _ANY

    @property
    def url(self) -> str:
        """What `parse` reads back as this address, without alias and proc."""
        if self.kind == "unix":
            return f"ipc://{self.path}"
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{'tls' if self.tunnel else 'tcp'}://{host}:{self.port}"

    def at(self, host: str, port: int) -> Address:
        """The same with another host and port."""
        return Address("tcp", host=host, port=port, proc=self.proc, tunnel=self.tunnel)

    def __str__(self) -> str:
        return self.url

    def __repr__(self) -> str:
        return f"<address {self.url}>"


def of_proc(proc: int) -> str:
    """Where the proc of this id listens: the same in every process of the user."""
    if sys.platform == "linux":
        return f"ipc://@monarch-{os.getuid()}-{proc:016x}"
    return f"ipc:///tmp/monarch-{os.getuid()}/{proc:016x}"


def parse(text: str) -> Address:
    """Read an address as users write it.

    Raises:
        AddressError: it is none.
        UnsupportedAddressError: it is one of a kind that is not served here.

    """
    if not isinstance(text, str):
        raise AddressError(f"an address is text such as {_FORMS}, not {type(text).__name__}")
    if not text or text != text.strip() or "\0" in text:
        raise AddressError(f"{text!r} is no address; write {_FORMS}")
    head, tail = _split(text)
    if head is None:
        return _plain(tail, text)
    found = _plain(tail, text)
    if head.startswith(_KNOWN):
        found.dial = _plain(head, text)
    else:
        found.proc = proc_of_name(head)
    return found


def proc_of_name(name: str) -> int:
    """The proc id of a name: 16 hexadecimal digits are the id itself, else it is drawn from them.

    Raises:
        AddressError: the name is empty, long or has other than letters, digits and `-_.`.

    """
    if (
        not 0 < len(name) <= 128
        or not name.replace("-", "").replace("_", "").replace(".", "").isalnum()
    ):
        raise AddressError(
            f"{name!r} names no proc: up to 128 letters, digits and -_. stand before the @, or an "
            f"address to dial"
        )
    if len(name) == 16 and not name.strip("0123456789abcdef") and name.strip("0"):
        return int(name, 16)
    import hashlib  # noqa: PLC0415 - loads OpenSSL, and names are rare

    return int.from_bytes(hashlib.sha256(b"proc " + name.encode()).digest()[:8]) or 1


def _split(text: str) -> tuple[str | None, str]:
    """What stands before an @ that is followed by an address, and that address."""
    at = len(text)
    while (at := text.rfind("@", 0, at)) >= 0:
        if text.startswith(_KNOWN, at + 1):
            return text[:at], text[at + 1 :]
    return None, text


def _plain(part: str, text: str) -> Address:
    where = "" if part == text else f" (in {text!r})"
    scheme, colon, rest = part.partition(":")
    if not colon or f"{scheme}:" not in _KNOWN:
        raise AddressError(f"{part!r}{where} is no address; write {_FORMS}")
    if scheme in {"ipc", "unix"}:
        return _unix(rest.removeprefix("//"), part, where)
    if scheme in {"tcp", "tls"}:
        return _tcp(scheme, rest, part, where)
    raise _unsupported(
        part + where,
        {
            "local": "a process reaches itself without an address",
            "inproc": "a process reaches itself without an address",
        }.get(scheme, f"{scheme} is of another system's own infrastructure; write {_FORMS}"),
    )


def _unix(path: str, part: str, where: str) -> Address:
    abstract = path.startswith("@")
    if not path.removeprefix("@"):
        raise AddressError(f"{part!r}{where} lacks the name of the socket; write ipc://@name")
    if path == "*":
        raise _unsupported(part + where, "a socket needs a name that others can be told")
    if abstract and sys.platform != "linux":
        raise _unsupported(part + where, "only Linux has abstract sockets; write ipc:///path")
    if not abstract:
        path = os.path.abspath(path)  # noqa: PTH100 - pathlib costs start-up time
    size = len(os.fsencode(path))
    if size > _PATH_LIMIT:
        raise AddressError(
            f"the socket {path}{where} has a name of {size} bytes and the system takes "
            f"{_PATH_LIMIT}; choose a shorter one"
        )
    return Address("unix", path=path)


def _tcp(scheme: str, rest: str, part: str, where: str) -> Address:
    body = rest.removeprefix("//")
    host, colon, digits = body.rpartition(":")
    if not rest.startswith("//") or not colon or not host or not _is_port(digits):
        raise AddressError(
            f"{part!r}{where} is no TCP address; write {scheme}://10.0.0.1:port, the port 0 to "
            "65535"
        )
    bracketed = host.startswith("[") and host.endswith("]")
    if (":" in host) != bracketed:
        raise AddressError(
            f"{part!r}{where}: an IPv6 address stands in brackets: {scheme}://[fd00::1]:port"
        )
    host = host.removeprefix("[").removesuffix("]")
    if not _is_host(host):
        raise AddressError(f"{part!r}{where}: {host!r} is neither an address nor a host's name")
    return Address("tcp", host=host, port=int(digits), tunnel=scheme == "tls")


def _is_port(digits: str) -> bool:
    return digits.isascii() and digits.isdecimal() and len(digits) <= 5 and int(digits) < 65536


def _is_host(text: str) -> bool:
    if text == "*" or is_number(text):
        return True
    return ":" not in text and text.replace("-", "").replace(".", "").replace("_", "").isalnum()


def is_number(host: str) -> bool:
    """Whether it is an IP address, and no name."""
    import _socket  # noqa: PLC0415 - reading a Unix address does without

    for family in (_socket.AF_INET, _socket.AF_INET6):
        try:
            _socket.inet_pton(family, host.partition("%")[0])
        except (OSError, UnicodeError):
            continue
        return True
    return False


def is_loopback(host: str) -> bool:
    """Whether it is a loopback address or "localhost"; no name service is asked."""
    if host in {"localhost", "::1"}:
        return True
    import _socket  # noqa: PLC0415 - reading a Unix address does without

    try:
        return _socket.inet_pton(_socket.AF_INET, host)[0] == 127
    except (OSError, UnicodeError):
        return False


def _unsupported(what: str, why: str) -> UnsupportedAddressError:
    return UnsupportedAddressError(f"{what} cannot be used: {why}")
