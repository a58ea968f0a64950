"""The hub lock: one hub per data directory, who holds the lock, and where it can be called.

The lock is on the open file, not on its existence: the file is never removed, because a second
hub could then lock a new file of the same name while the first still holds the old one. The
lock ends with its process.
"""

import fcntl
import os
import time
from pathlib import Path
from typing import Final, Self

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from dragoman.core.errors import DragomanError
from dragoman.core.timestamps import to_rfc3339
from dragoman.engine.ports import Clock
from dragoman.system.clock import SystemClock
from dragoman.system.safe_fs import BadKey, open_regular
from dragoman.text.safe_text import safe_text

# --- lock -------------------------------------------------------------------------------------

_LOCK_FILE: Final = "hub.lock"

_MAX_BYTES: Final = 65_536

_MAX_TRIES: Final = 1_000

_PAUSE_SECONDS: Final = 0.001


class HubConfig(Struct, frozen=True, omit_defaults=True):
    """Configuration that a hub runs with: a process beside it must use the same."""

    store: str = ""
    """URL of its store; empty when unknown."""
    ledger: str = ""
    """Id of its ledger."""
    settings: str = ""
    """Its settings file; empty for that of the data directory."""
    environment: dict[str, str] = {}
    """Its settings from the environment."""

    def __repr__(self) -> str:
        return f"HubConfig({self.ledger})"  # a URL and a variable may hold secrets


class LockHolder(Struct, frozen=True, omit_defaults=True):
    """Holder of the lock; pid 0 for a process that has not yet written its name."""

    pid: int = 0
    host: str = ""
    since: str = ""
    program: str = ""
    url: str = ""
    """URL of its API; empty when it has none, or none yet."""
    config: HubConfig = HubConfig()


class HubRunning(DragomanError):
    """Another process is the hub of this data directory; the detail names it."""

    code = "hub_running"


class HubLock:
    """The right to be the hub of a data directory, until it is released or the process ends."""

    def __init__(self, descriptor: int, mine: LockHolder) -> None:
        self._descriptor: int | None = descriptor
        self._holder = mine

    @classmethod
    def acquire(cls, data: Path, program: str, *, clock: Clock | None = None) -> Self:
        """Acquire the lock without waiting, or raise HubRunning."""
        flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW
        descriptor = open_regular(data / _LOCK_FILE, flags, 0o600)
        try:
            os.fchmod(descriptor, 0o600)  # its content may hold the password of a database
            if not _try_lock_exclusive(descriptor):
                raise _hub_running_error(data, _read_holder(descriptor))
            since = to_rfc3339((clock or SystemClock()).now())
            own = LockHolder(
                pid=os.getpid(), host=os.uname().nodename, since=since, program=program
            )
            _write_holder(descriptor, own)
        except BaseException:
            os.close(descriptor)
            raise
        return cls(descriptor, own)

    def announce_config(self, config: HubConfig) -> None:
        """Write the hub's configuration into the lock file."""
        self._write(replace(self._holder, config=config))

    def announce_url(self, url: str) -> None:
        """Write the hub's URL into the lock file: from now on commands go through it."""
        self._write(replace(self._holder, url=url))

    def _write(self, holder: LockHolder) -> None:
        if self._descriptor is not None:
            self._holder = holder
            _write_holder(self._descriptor, holder)

    def release(self) -> None:
        """Release the lock; releasing twice does nothing."""
        descriptor, self._descriptor = self._descriptor, None
        if descriptor is not None:
            try:
                os.ftruncate(descriptor, 0)
            finally:
                os.close(descriptor)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.release()


def find_lock_holder(data: Path) -> LockHolder | None:
    """Present holder of the lock; None when it is free, whatever the file still says."""
    try:
        descriptor = open_regular(data / _LOCK_FILE, os.O_RDONLY | os.O_NOFOLLOW)
    except FileNotFoundError:
        return None
    try:
        if _try_flock(descriptor, fcntl.LOCK_SH):
            return None
        return _read_holder(descriptor)
    finally:
        os.close(descriptor)


def _try_lock_exclusive(descriptor: int) -> bool:
    # A reader holds a shared lock for a moment: that must not turn a hub away.
    for _ in range(_MAX_TRIES):
        if _try_flock(descriptor, fcntl.LOCK_EX):
            return True
        if not _try_flock(descriptor, fcntl.LOCK_SH):
            return False
        fcntl.flock(descriptor, fcntl.LOCK_UN)
        time.sleep(_PAUSE_SECONDS)
    return False


def _try_flock(descriptor: int, kind: int) -> bool:
    try:
        fcntl.flock(descriptor, kind | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _write_holder(descriptor: int, holder: LockHolder) -> None:
    # Emptied first, so that the name of a crashed hub is never shown for the new one.
    os.ftruncate(descriptor, 0)
    os.pwrite(descriptor, msgspec.json.encode(holder), 0)


def _read_holder(descriptor: int) -> LockHolder:
    try:
        return msgspec.json.decode(os.pread(descriptor, _MAX_BYTES, 0), type=LockHolder)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return LockHolder()


def _hub_running_error(data: Path, holder: LockHolder) -> HubRunning:
    description = (
        f"{holder.program} (process {holder.pid} on {holder.host}, since {holder.since})"
        if holder.pid
        else "a process that has not written its name yet"
    )
    description = safe_text(description, one_line=True)
    return HubRunning(
        f"The data directory {data} already has a hub: {description} holds its {_LOCK_FILE}. "
        "Stop that hub first, or choose another directory with --data."
    )


# --- address of the running hub ---------------------------------------------------------------


class HubAddress(Struct, frozen=True):
    """URL of a running hub, the token for it, and the configuration it runs with."""

    url: str
    token: str
    config: HubConfig = HubConfig()


def clock_override_error(address: HubAddress) -> HubRunning:
    """Error for `--now` while a hub runs."""
    return HubRunning(
        f"a hub runs at {address.url}, and its clock decides: leave out --now, or stop it"
    )


def find_hub(data: Path) -> HubAddress | None:
    """Address of the hub that runs for this data directory; None when there is none."""
    lock_holder = find_lock_holder(data)
    if lock_holder is None or not lock_holder.url:
        return None
    # Needed beside a hub only.
    from dragoman.system.bearer_tokens import CREDENTIAL_FILE, load_token  # noqa: PLC0415

    try:
        token = load_token(data).decode()
    except FileNotFoundError:
        raise BadKey(
            f"The file {data / CREDENTIAL_FILE} is gone, and a hub runs at {lock_holder.url} that "
            "is called with the token in it. Put it back, or start the hub again, which makes a "
            "new one."
        ) from None
    return HubAddress(lock_holder.url, token, lock_holder.config)
