"""One handoff looked at from all sides: its entries, its state, its package, its audit lines."""

from collections.abc import Iterator
from hashlib import sha256

from msgspec import Struct

from dragoman.core.ids import handoff_stream
from dragoman.core.states.handoff import Handoff
from dragoman.core.states.handoff_package import compute_package_hash
from dragoman.engine.ports import Store
from dragoman.engine.reads.ask import stream_entries
from dragoman.engine.verifying.verify import has_handoff_row
from dragoman.files.disk import Disk
from dragoman.files.handoffs.log import lines_from_ledger
from dragoman.files.layout import artifact_path, handoff_log_path
from dragoman.ledger.chain import GENESIS, link_hash
from dragoman.ledger.records import handoff_row
from dragoman.ledger.views import replay

_CHUNK_BYTES = 1 << 20


class HandoffCheck(Struct, frozen=True):
    """Result of one check."""

    check: str
    ok: bool
    detail: str


def check_handoff(store: Store, disk: Disk, handoff: Handoff) -> Iterator[HandoffCheck]:
    """Run every check of a handoff."""
    yield _check_entries(store, handoff)
    yield _check_state(store, handoff)
    if handoff.package_hash:
        yield _check_row(store, handoff)
        yield _check_package(handoff)
        yield _check_audit_lines(store, disk, handoff)
    for artifact, expected in handoff.artifacts.items():
        yield _check_artifact(disk, artifact, expected, is_rejected=handoff.rejection is not None)


def _check_entries(store: Store, handoff: Handoff) -> HandoffCheck:
    """Check the hash chain of its entries."""
    last, count = GENESIS, 0
    for count, entry in enumerate(stream_entries(store, handoff_stream(handoff.id)), 1):
        last = link_hash(last, entry.line)
        if entry.hash != last or entry.version != count:
            detail = f"entry {entry.version} at position {entry.position} was changed"
            return HandoffCheck("entries", False, detail)
    return HandoffCheck("entries", True, f"{count}, linked by their hashes")


def _check_state(store: Store, handoff: Handoff) -> HandoffCheck:
    replayed = replay(entry.line for entry in stream_entries(store, handoff_stream(handoff.id)))
    if replayed == handoff:
        return HandoffCheck("state", True, f"{handoff.status}, as its entries give it")
    return HandoffCheck("state", False, "its entries give another state: run `dragoman verify`")


def _check_row(store: Store, handoff: Handoff) -> HandoffCheck:
    """Check its row in the protocol's table, which others may read as well."""
    record = handoff_row(handoff)
    if record is not None and has_handoff_row(store, record):
        return HandoffCheck("row", True, "its row in the table handoffs matches")
    detail = "its row in the table handoffs is missing or was changed: run `dragoman verify`"
    return HandoffCheck("row", False, detail)


def _check_package(handoff: Handoff) -> HandoffCheck:
    found = compute_package_hash(handoff.package)
    if found == handoff.package_hash:
        return HandoffCheck("package_hash", True, found)
    detail = f"the package has the hash {found}, not {handoff.package_hash}"
    return HandoffCheck("package_hash", False, detail)


def _check_audit_lines(store: Store, disk: Disk, handoff: Handoff) -> HandoffCheck:
    """Check that its audit lines are those that its entries give."""
    path = handoff_log_path(handoff.teamspace)
    expected = [*lines_from_ledger(store, handoff.id)]
    needle = b'"handoff_id":"%b"' % handoff.id.encode()
    found = [line for line in _read_lines(disk, path) if needle in line]
    if found == expected:
        return HandoffCheck("audit", True, f"{len(found)} lines in {path}")
    detail = f"{path} differs from the ledger: run `dragoman rebuild-files`"
    return HandoffCheck("audit", False, detail)


def _read_lines(disk: Disk, path: str) -> Iterator[bytes]:
    """Read the lines of a file of any length."""
    start, remaining = 0, b""
    while chunk := disk.read_at(path, start, _CHUNK_BYTES):
        start += len(chunk)
        *lines, remaining = (remaining + chunk).split(b"\n")
        yield from lines


def _check_artifact(disk: Disk, artifact: str, expected: str, *, is_rejected: bool) -> HandoffCheck:
    """Check the verified copy of an artifact; that of a rejected handoff may be gone."""
    path, digest, start = artifact_path(expected), sha256(), 0
    if is_rejected and disk.stat(path) is None:
        return HandoffCheck("artifact", True, f"{artifact} is not kept: the handoff was rejected")
    while chunk := disk.read_at(path, start, _CHUNK_BYTES):
        start += len(chunk)
        digest.update(chunk)
    if disk.stat(path) is not None and digest.hexdigest() == expected:
        return HandoffCheck("artifact", True, f"{artifact} is kept as {path}")
    detail = f"{artifact}: the copy that was verified is gone or was changed: {path}"
    return HandoffCheck("artifact", False, detail)
