"""Check of one handoff: entries, package, audit lines, and the copies of its artifacts."""

from collections.abc import Iterator

from msgspec import Struct

from dragoman.core.handoff.package import compute_package_hash
from dragoman.core.handoff.state import Handoff
from dragoman.core.ids import handoff_stream
from dragoman.engine.ports import ArtifactStore, Store
from dragoman.engine.queries.entries import stream_entries
from dragoman.files.handoff_log import lines_from_ledger
from dragoman.files.layout import handoff_log_path
from dragoman.ledger.entry import GENESIS, link_hash
from dragoman.ledger.stream_state import replay
from dragoman.system.safe_fs import SafeDisk

_CHUNK_BYTES = 1 << 20


class HandoffCheck(Struct, frozen=True):
    """Result of one check."""

    check: str
    ok: bool
    detail: str


def check_handoff(
    store: Store, disk: SafeDisk, artifacts: ArtifactStore, handoff: Handoff
) -> Iterator[HandoffCheck]:
    """Run every check of a handoff."""
    yield _check_entries(store, handoff)
    actual = compute_package_hash(handoff.package)
    yield HandoffCheck("package_hash", actual == handoff.package_hash, f"the package has {actual}")
    yield _check_audit_lines(store, disk, handoff)
    for artifact, sha256 in handoff.artifacts.items():
        wrong = artifacts.verify_copy(sha256)
        # The copies of a rejected handoff are removed after a while.
        is_ok = wrong is None or (wrong.problem == "missing" and handoff.rejection is not None)
        detail = f"{artifact}: {wrong.detail if wrong else f'kept as {sha256}'}"
        yield HandoffCheck("artifact", is_ok, detail)


def _check_entries(store: Store, handoff: Handoff) -> HandoffCheck:
    """Check the hash chain of its entries, and the state that they give."""
    entries, last = [*stream_entries(store, handoff_stream(handoff.id))], GENESIS
    for count, entry in enumerate(entries, 1):
        last = link_hash(last, entry.line)
        if entry.hash != last or entry.version != count:
            detail = f"entry {entry.version} at position {entry.position} was changed"
            return HandoffCheck("entries", False, detail)
    if replay(entry.line for entry in entries) != handoff:
        detail = "its entries give another state: run `dragoman verify`"
        return HandoffCheck("entries", False, detail)
    detail = f"{len(entries)}, linked by their hashes, give {handoff.status}"
    return HandoffCheck("entries", True, detail)


def _check_audit_lines(store: Store, disk: SafeDisk, handoff: Handoff) -> HandoffCheck:
    """Check that its audit lines are those that its entries give."""
    path = handoff_log_path(handoff.teamspace)
    needle = b'"handoff_id":"%b"' % handoff.id.encode()
    found = [line for line in _read_lines(disk, path) if needle in line]
    if found == [*lines_from_ledger(store, handoff.id)]:
        return HandoffCheck("audit", True, f"{len(found)} lines in {path}")
    detail = f"{path} differs from the ledger: run `dragoman rebuild-files`"
    return HandoffCheck("audit", False, detail)


def _read_lines(disk: SafeDisk, path: str) -> Iterator[bytes]:
    """Read the lines of a file of any length."""
    start, remaining = 0, b""
    while chunk := disk.read_at(path, start, _CHUNK_BYTES):
        start += len(chunk)
        *lines, remaining = (remaining + chunk).split(b"\n")
        yield from lines
