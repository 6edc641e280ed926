"""The cluster secret: the key with which both ends of a link prove that they belong together.

It comes from the parent by an inherited descriptor, else from the file that `MONARCH_SECRET_FILE`
names, else from a file of the user's own that is made on first use. It is never an argument, or
part of a log line, of an error or of a pickle.
"""

from __future__ import annotations

import errno
import os
import stat

from monarch import config
from monarch.errors import SecretError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import NoReturn

FILE_VARIABLE = "MONARCH_SECRET_FILE"
FD_VARIABLE = "MONARCH_SECRET_FD"
SIZE = 32  # bytes of a secret that is made here, and the least that a given one must have
LIMIT = 4096  # bytes; also what a pipe takes without a reader

_current: Secret | None = None


class Secret:
    """A key that cannot be printed, compared in the open, copied or pickled."""

    __slots__ = ("_key", "given", "source")

    def __init__(self, key: bytes, source: str, *, given: bool = True) -> None:
        if not SIZE <= len(key) <= LIMIT:
            raise SecretError(
                f"{source} holds {len(key)} bytes; a secret has {SIZE} to {LIMIT} random bytes "
                f"(head -c {SIZE} /dev/urandom makes one)"
            )
        self._key = key
        self.source = source
        self.given = given  # by the user or a parent; else it is what all of this user's have

    def check_given(self, address: object) -> None:
        """Refuse links off this host by a secret that nobody has chosen for them.

        Raises:
            SecretError: it is the one that every process of this user has.

        """
        if not self.given:
            far = "for links of other hosts" if str(address).startswith("tls:") else "off this host"
            raise SecretError(
                f"{address} is {far}, where a secret has to be given: the same file of "
                f"{SIZE} random bytes on each host (head -c {SIZE} /dev/urandom > FILE; chmod 600 "
                f"FILE), named by {FILE_VARIABLE} or --secret-file"
            )

    def mac(self, *parts: bytes) -> bytes:
        """HMAC-SHA-256 of the joined parts, 32 bytes."""
        import hmac  # noqa: PLC0415 - loads OpenSSL, which a process without foreign links spares

        return hmac.digest(self._key, b"".join(parts), "sha256")

    def hand_down(self) -> int:
        """A descriptor from which a child reads the secret once; the caller closes its own."""
        reader, writer = os.pipe()
        try:
            os.write(writer, self._key)
        finally:
            os.close(writer)
        return reader

    def give(self) -> bytes:
        """The key, for other hosts by a way that keeps it from others; links to them may use it."""
        self.given = True
        return self._key

    def write(self, path: str) -> None:
        """Write it to a new file that this user alone may read, for processes on other hosts."""
        self.given = True
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        try:
            os.write(descriptor, self._key)
            os.fsync(descriptor)
        finally:
            os.close(descriptor)

    def __repr__(self) -> str:
        return f"<secret of {self.source}>"

    def __reduce__(self) -> NoReturn:
        raise TypeError(
            "the cluster secret cannot be pickled or copied: a child gets it by descriptor"
        )


def current() -> Secret:
    """The secret of this process, read or made on the first call.

    Raises:
        SecretError: the file is not this user's alone, too short or too long, or cannot be read.

    """
    global _current  # noqa: PLW0603 - one secret a process, inherited over a fork
    if _current is None:
        handed = os.environ.pop(FD_VARIABLE, None)
        given = config.value("secret_file")
        if handed is not None:
            _current = adopt(_number(handed))
        elif given:
            _current = read(given)
        else:
            _current = _of_user()
    return _current


def adopt(descriptor: int) -> Secret:
    """Take the secret that a parent handed down; the descriptor is closed.

    Raises:
        SecretError: there is no secret in it.

    """
    global _current  # noqa: PLW0603 - as in current()
    try:
        key = _drain(descriptor)
    except OSError as error:
        raise SecretError(
            f"descriptor {descriptor} should hold the secret of the parent: {error.strerror}"
        ) from None
    finally:
        _close(descriptor)
    _current = Secret(key, "the parent process")
    return _current


def share(theirs: Secret) -> None:
    """See that this process has this secret, which hosts of a job have.

    Raises:
        SecretError: it has another.

    """
    own = current()
    if theirs.mac(b"job") != own.mac(b"job"):
        raise SecretError(
            f"the hosts of this job have another secret than this process, which has that of "
            f"{own.source}; set {FILE_VARIABLE}={theirs.source}"
        )
    own.given = True


def read(path: str) -> Secret:
    """The secret in a file that its owner alone may read; the owner is this user or root.

    Raises:
        SecretError: it is anything else.

    """
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    except OSError as error:
        raise SecretError(
            f"cannot read the secret in {path} (set by {FILE_VARIABLE}): {error.strerror}"
        ) from None
    try:
        return _checked(descriptor, path, {os.geteuid(), 0})
    finally:
        os.close(descriptor)


def user_paths() -> list[str]:
    """Where the secret of this user lies: the first of these whose folder can be had."""
    state = os.environ.get("XDG_STATE_HOME", "")
    if not state.startswith("/"):
        state = os.path.join(os.path.expanduser("~"), ".local", "state")  # noqa: PTH111, PTH118 - pathlib costs start-up time
    shared = f"/tmp/monarch-{os.geteuid()}"  # noqa: S108 - its owner and mode are checked
    folders = [os.path.join(state, "monarch"), shared]  # noqa: PTH118 - as above
    return [f"{folder}/secret" for folder in folders if folder.startswith("/")]


def _of_user() -> Secret:
    tried = []
    for path in user_paths():
        try:
            return _read_own(path) or _make(path)
        except SecretError:
            raise
        except OSError as error:
            tried.append(f"{path}: {error.strerror}")
    raise SecretError(
        f"no place for the secret of uid {os.geteuid()} ({'; '.join(tried)}); "
        f"make one readable by this user alone and name it in {FILE_VARIABLE}"
    )


def _read_own(path: str) -> Secret | None:
    """The secret at `path`, None where there is no file yet."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK)
    except FileNotFoundError:
        return None
    except OSError as error:
        if error.errno != errno.ELOOP:
            raise
        raise SecretError(f"the secret {path} is a symbolic link; remove it") from None
    try:
        _check_folder(path.rpartition("/")[0])
        return _checked(descriptor, path, {os.geteuid()}, given=False)
    finally:
        os.close(descriptor)


def _make(path: str) -> Secret:
    """Make the secret of this user; of processes that do so at once, one wins for all."""
    import fcntl  # noqa: PLC0415 - once in the life of a user

    folder = path.rpartition("/")[0]
    os.makedirs(folder, mode=0o700, exist_ok=True)  # noqa: PTH103 - as above
    _check_folder(folder)
    lock = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX)
        found = _read_own(path)
        if found is not None:
            return found
        temporary = f"{path}.{os.urandom(8).hex()}"
        descriptor = os.open(
            temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600
        )
        try:
            key = os.urandom(SIZE)
            os.write(descriptor, key)
            os.fsync(descriptor)
            os.rename(temporary, path)  # noqa: PTH104 - as above
        except OSError:
            os.unlink(temporary)  # noqa: PTH108 - as above
            raise
        finally:
            os.close(descriptor)
        return Secret(key, path, given=False)
    finally:
        os.close(lock)


def _checked(descriptor: int, path: str, owners: set[int], *, given: bool = True) -> Secret:
    found = os.fstat(descriptor)
    mode = stat.S_IMODE(found.st_mode)
    if not stat.S_ISREG(found.st_mode):
        raise SecretError(f"the secret {path} is not a regular file")
    if found.st_uid not in owners:
        raise SecretError(
            f"the secret {path} belongs to uid {found.st_uid} and this process is uid "
            f"{os.geteuid()}; name a file of this user in {FILE_VARIABLE}"
        )
    if mode & 0o077:
        raise SecretError(
            f"the secret {path} has mode {mode:04o}, so that others may read or change it; make a "
            f"new one and keep it at 0600 (chmod 600 {path})"
        )
    return Secret(_drain(descriptor), path, given=given)


def _check_folder(folder: str) -> None:
    found = os.lstat(folder)
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.geteuid() or found.st_mode & 0o022:
        raise SecretError(
            f"{folder}, which holds the secret of uid {os.geteuid()}, must be a folder of that "
            f"user's own that nobody else may write to; remove it or name a file in {FILE_VARIABLE}"
        )


def _drain(descriptor: int) -> bytes:
    """At most one byte more than a secret may have."""
    data = b""
    while len(data) <= LIMIT:
        chunk = os.read(descriptor, LIMIT + 1 - len(data))
        if not chunk:
            break
        data += chunk
    return data


def _close(descriptor: int) -> None:
    try:
        os.close(descriptor)
    except OSError:
        return


def _number(text: str) -> int:
    if text.isdecimal():
        return int(text)
    raise SecretError(f"{FD_VARIABLE} is set by a parent to a descriptor, not to {text!r}")
