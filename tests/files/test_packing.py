"""What moves or goes while it is packed: it is copied whole, or is not there at all."""

import fcntl
from pathlib import Path

from dragoman.bootstrap.stores import open_store
from dragoman.files.backup import Source, make_backup
from dragoman.files.layout import MOVING
from dragoman.system.beneath import Beneath, Seen
from tests.crash.hubs import no_bars
from tests.engine.lab import START
from tests.requirements import proves

WORDS = b"precious"
READY, BEGUN = "tasks/ready", "tasks/in-progress"
MOVES = {
    READY: (MOVING, f"{READY}/T-1", f"{BEGUN}/T-1"),
    f"{READY}/T-2": (MOVING, f"{READY}/T-2", f"{BEGUN}/T-2"),
    "inbox": ("inbox.lock", "inbox/letter.json", "inbox/.taken-letter.json"),
    "imported": ("none.lock", "imported/gone.txt", "gone.txt"),
}
"""Folder -> what others move when it was just listed, and under which lock."""


class BusyDisk(Beneath):
    """A disk on which others move things whenever they need not wait for it."""

    def __init__(self, root: Path) -> None:
        super().__init__(root)
        self._top = root

    def list(self, folder: str) -> list[Seen]:
        found = super().list(folder)
        if folder in MOVES:
            lock, old, new = MOVES[folder]
            with (self._top / lock).open("w") as held:
                try:
                    fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
                except BlockingIOError:
                    return found
                (self._top / old).rename(self._top / new)
        return found


@proves("BACKUP-ONLINE")
def test_what_moves_stays_while_it_is_packed_and_what_is_gone_is_no_empty_file(
    tmp_path: Path,
) -> None:
    data = tmp_path / "data"
    kept = [f"{READY}/T-1/a", f"{READY}/T-2/b", "inbox/letter.json", "imported/stays.txt"]
    for name in (*kept, "imported/gone.txt", f"{BEGUN}/T-3/c"):
        (data / name).parent.mkdir(parents=True, exist_ok=True)
        (data / name).write_bytes(WORDS)
    store = open_store("", data, new_ledger_id=lambda: "ledger")
    target = tmp_path / "all.tar"

    source = Source(store, BusyDisk(data), "1", START)
    manifest = make_backup(source, target, Beneath(tmp_path), no_bars)

    store.close()
    packed = {member.name: member.size for member in manifest.members if "files/" in member.name}
    assert packed == {f"files/{name}": len(WORDS) for name in (*kept, f"{BEGUN}/T-3/c")}
