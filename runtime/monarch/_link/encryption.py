"""TLS of links between hosts: who this process is, and whom it believes.

Without files of the user's, an authority's key is drawn from the cluster secret, so that all who
hold it have the same authority, and each process makes itself a certificate for its host's
addresses. With `tls_ca`, `tls_certificate` and `tls_key` the user's own are shown and believed.
"""

from __future__ import annotations

import os
import time

from monarch import config
from monarch._link.address import is_number
from monarch._link.route import PLAIN, TLS
from monarch.errors import LinkError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from monarch._core import TlsContext
    from monarch._link.secret import Secret

_AGE = 24 * 3600  # seconds after which a certificate is made anew
_VALID = 7 * 24 * 3600  # seconds that one is good for
_LABEL = b"monarch authority\0"
_SETTINGS = ("tls_ca", "tls_certificate", "tls_key")
# Checks of a certificate that fail where the authority is another: its key follows from the secret.
_OTHER_AUTHORITY = frozenset({2, 7, 18, 19, 20, 21})
# Of what TLS says: that it is about certificates. All else may be noise, and is tried again.
_OF_CERTIFICATES = ("certificate", "unknown ca", "access denied", "decrypt error")

_made: dict[tuple[str, ...], tuple[float, Secret, TlsContext]] = {}
_own = b""


def mode() -> int:
    """Whether links between hosts are encrypted: they are, unless the user said otherwise."""
    return PLAIN if config.value("insecure_plaintext") else TLS


def derived() -> bool:
    """Whether certificates are made here, from the secret."""
    return not any(config.value(name) for name in _SETTINGS)


def context(secret: Secret, hosts: Iterable[str]) -> TlsContext:
    """What this process shows and believes as one that is reached at `hosts`.

    Raises:
        LinkError: there is no OpenSSL 3, or the user's files cannot be used.

    """
    key = tuple(sorted(set(hosts)))
    found = _made.get(key)
    if found is None or found[1] is not secret or time.monotonic() - found[0] > _AGE:
        found = _made[key] = (time.monotonic(), secret, _make(secret, key))
    return found[2]


def explained(error: LinkError, verified: int, where: str, secret: Secret) -> LinkError:
    """What TLS says of a link to `where`, by what is at fault; `verified` is OpenSSL's number."""
    text = str(error)
    if verified in _OTHER_AUTHORITY and derived():
        return LinkError(
            "secret",
            f"{where}: the other side holds another secret than this process, which has "
            f"that of {secret.source} (its certificate: {text})",
        )
    if verified:
        return LinkError("certificate", f"{where}: its certificate is refused: {text}")
    if any(words in text for words in _OF_CERTIFICATES):
        return LinkError(
            "certificate", f"{where}: it refuses the certificate of this process: {text}"
        )
    return LinkError("tls", f"{where}: no TLS could be begun: {text}")


def _make(secret: Secret, hosts: tuple[str, ...]) -> TlsContext:
    try:
        import _ssl  # noqa: PLC0415 - an interpreter that brings its own OpenSSL has it loaded then

        assert _ssl  # noqa: S101
    except ImportError:
        pass
    from monarch._core import TlsContext  # noqa: PLC0415 - native code loads on first use

    if derived():
        return TlsContext.derive(secret.mac(_LABEL), _key(), _names(hosts), _VALID)
    files = [config.value(name) for name in _SETTINGS]
    lacking = [name for name, file in zip(_SETTINGS, files, strict=True) if not file]
    if lacking:
        raise LinkError("certificate", f"TLS needs {', '.join(_SETTINGS)}; not given: {lacking[0]}")
    try:
        return TlsContext.read(*files)
    except LinkError as error:
        raise LinkError("certificate", error.args[-1]) from None


def _key() -> bytes:
    global _own  # noqa: PLW0603 - one of a process
    if not _own:
        _own = os.urandom(32)
    return _own


def _names(hosts: tuple[str, ...]) -> str:
    return ",".join(f"{'IP' if is_number(host) else 'DNS'}:{host}" for host in hosts)


def _forget() -> None:
    """A fork is a process of its own, with a key of its own."""
    global _own  # noqa: PLW0603 - as above
    _own = b""
    _made.clear()


os.register_at_fork(after_in_child=_forget)
