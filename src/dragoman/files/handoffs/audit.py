"""One handoff looked at from all sides: its entries, its state, its package, its audit lines."""

from collections.abc import Iterator
from hashlib import sha256

from msgspec import Struct

from dragoman.core.ids import handoff_stream
from dragoman.core.states.handoff import Handoff
from dragoman.core.states.handoff_package import hash_of
from dragoman.engine.ports import Store
from dragoman.engine.reads.ask import history
from dragoman.engine.verifying.verify import is_kept
from dragoman.files.disk import Disk
from dragoman.files.handoffs.log import lines_in_ledger
from dragoman.files.layout import artifact_path, handoffs_path
from dragoman.ledger.chain import GENESIS, link_hash
from dragoman.ledger.records import record_of
from dragoman.ledger.views import refold

_PIECE = 1 << 20


class Checked(Struct, frozen=True):
    """Result of one check."""

    check: str
    ok: bool
    detail: str


def check_handoff(store: Store, disk: Disk, handoff: Handoff) -> Iterator[Checked]:
    """Run every check of a handoff."""
    yield _entries(store, handoff)
    yield _state(store, handoff)
    if handoff.package_hash:
        yield _row(store, handoff)
        yield _package(handoff)
        yield _audit(store, disk, handoff)
    for artifact, expected in handoff.artifacts.items():
        yield _artifact(disk, artifact, expected, is_rejected=handoff.rejection is not None)


def _entries(store: Store, handoff: Handoff) -> Checked:
    """Check the hash chain of its entries."""
    last, count = GENESIS, 0
    for count, entry in enumerate(history(store, handoff_stream(handoff.id)), 1):
        last = link_hash(last, entry.line)
        if entry.hash != last or entry.version != count:
            detail = f"entry {entry.version} at position {entry.position} was changed"
            return Checked("entries", False, detail)
    return Checked("entries", True, f"{count}, linked by their hashes")


def _state(store: Store, handoff: Handoff) -> Checked:
    replayed = refold(entry.line for entry in history(store, handoff_stream(handoff.id)))
    if replayed == handoff:
        return Checked("state", True, f"{handoff.status}, as its entries give it")
    return Checked("state", False, "its entries give another state: run `dragoman verify`")


def _row(store: Store, handoff: Handoff) -> Checked:
    """Check its row in the protocol's table, which others may read as well."""
    record = record_of(handoff)
    if record is not None and is_kept(store, record):
        return Checked("row", True, "its row in the table handoffs matches")
    detail = "its row in the table handoffs is missing or was changed: run `dragoman verify`"
    return Checked("row", False, detail)


def _package(handoff: Handoff) -> Checked:
    found = hash_of(handoff.package)
    if found == handoff.package_hash:
        return Checked("package_hash", True, found)
    detail = f"the package has the hash {found}, not {handoff.package_hash}"
    return Checked("package_hash", False, detail)


def _audit(store: Store, disk: Disk, handoff: Handoff) -> Checked:
    """Check that its audit lines are those that its entries give."""
    path = handoffs_path(handoff.teamspace)
    expected = [*lines_in_ledger(store, handoff.id)]
    mark = b'"handoff_id":"%b"' % handoff.id.encode()
    found = [line for line in _lines(disk, path) if mark in line]
    if found == expected:
        return Checked("audit", True, f"{len(found)} lines in {path}")
    detail = f"{path} differs from the ledger: run `dragoman rebuild-files`"
    return Checked("audit", False, detail)


def _lines(disk: Disk, path: str) -> Iterator[bytes]:
    """Read the lines of a file of any length."""
    start, rest = 0, b""
    while piece := disk.piece(path, start, _PIECE):
        start += len(piece)
        *whole, rest = (rest + piece).split(b"\n")
        yield from whole


def _artifact(disk: Disk, artifact: str, expected: str, *, is_rejected: bool) -> Checked:
    """Check the verified copy of an artifact; that of a rejected handoff may be gone."""
    path, digest, start = artifact_path(expected), sha256(), 0
    if is_rejected and disk.look(path) is None:
        return Checked("artifact", True, f"{artifact} is not kept: the handoff was rejected")
    while piece := disk.piece(path, start, _PIECE):
        start += len(piece)
        digest.update(piece)
    if disk.look(path) is not None and digest.hexdigest() == expected:
        return Checked("artifact", True, f"{artifact} is kept as {path}")
    detail = f"{artifact}: the copy that was verified is gone or was changed: {path}"
    return Checked("artifact", False, detail)
