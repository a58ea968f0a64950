"""Export and import: the same ledger and files elsewhere, or a refusal that leaves nothing."""

import io
import os
import shutil
import tarfile
from collections.abc import Callable, Generator
from contextlib import contextmanager, nullcontext
from hashlib import sha256
from pathlib import Path
from typing import Any, cast

import msgspec
import pytest
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from msgspec.structs import replace

from dragoman.core.attempt import ClaimTask, RenewLease
from dragoman.core.errors import LedgerError
from dragoman.core.task_state import CreateTask, MoveTask, NoteTask
from dragoman.core.timestamps import to_rfc3339
from dragoman.engine.ports import DurableStore, Store, StreamRow
from dragoman.files.archive import (
    EXPORT,
    ArchiveSource,
    Manifest,
    ProgressBars,
    check_archive,
    write_archive,
)
from dragoman.files.errors import BadArchive, TargetTaken
from dragoman.files.restore import RestoreTools, restore_archive
from dragoman.ledger.checkpoint import EMPTY_TREE, extend_tree
from dragoman.store.sqlite import SqliteStore
from dragoman.system.checkpoint_file import CheckpointFile
from dragoman.system.keys import load_or_create_keys
from dragoman.system.safe_fs import SafeDisk
from tests.crash.data_directories import no_progress
from tests.engine.lab import ALICE, HUMAN, START, OpenStore, findings
from tests.files.lab import FilesLab
from tests.requirements import proves

OpenTarget = Callable[[Path, str], Store]


class Snapshot:
    """Memory store as it is read by an archive; it may grow behind the head."""

    def __init__(self, store: OpenStore) -> None:
        self.head, self.ledger_id, self.entries = store.head, store.ledger_id, store.entries
        self._store = store

    def held_streams(self, after: int, limit: int) -> list[StreamRow]:
        """Rows of streams with a lease."""
        rows = (row for row in self._store.rows(after, 1_000) if row.lease is not None)
        return list(rows)[:limit]

    def answers(self, after: tuple[int, str], limit: int) -> list[Any]:
        """No answers: an export has none."""
        raise AssertionError(after, limit)


class ArchivedStore(OpenStore):
    """Memory store that can be archived."""

    @contextmanager
    def snapshot(self) -> Generator[Snapshot]:
        yield Snapshot(self)


class MemoryTarget:
    """Store of an imported directory, which the test can inspect."""

    def __init__(self, open_store: OpenTarget) -> None:
        self._open_store = open_store

    def open(self, building: Path, ledger: str) -> Store:
        return self._open_store(building, ledger)

    def discard(self) -> None:
        """Nothing is kept."""


def make_tools(open_store: OpenTarget, now: int = START) -> RestoreTools:
    """Make the tools of an import that opens its store like this."""
    return RestoreTools(
        lambda _: MemoryTarget(open_store), lambda settings: settings, SafeDisk, now, no_progress
    )


class ExportLab(FilesLab):
    """Data directory with a bit of everything, its archive, and an import target."""

    def __init__(self, tmp_path: Path) -> None:
        data = tmp_path / "data"
        data.mkdir()
        super().__init__(data)
        self.archive = tmp_path / "all.tar"
        self.target = tmp_path / "new" / "place"
        self.opened_stores: list[OpenStore] = []
        self.tools = make_tools(self.open_store, START + 1)

    def fill(self) -> str:
        """Make tasks in several states, an agent's files, a setting, signed checkpoints."""
        task = self.create("One", aliases=("bead:ol-1",))
        self.do(HUMAN, CreateTask("Two", "own-name", ready=True))
        self.do(ALICE, ClaimTask(task, "alice"))
        self.do(ALICE, NoteTask(task, "héllo \U0001f600"))
        self.do(ALICE, RenewLease(task))
        self.do(HUMAN, MoveTask("own-name", "blocked"))
        assert self.code(ALICE, MoveTask("own-name", "ready")) != ""
        self.catch_up()
        work = self.data / "tasks" / "in-progress" / task / "work"
        (work / "draft.bin").write_bytes(bytes(range(256)))
        (work / "link").symlink_to("/etc/passwd")
        (self.data / "dragoman.toml").write_text("[tasks]\nmax_attempts = 3\n")
        log = CheckpointFile(self.data / "checkpoints.jsonl", load_or_create_keys(self.data))
        read_tree = extend_tree(EMPTY_TREE, (entry.hash for entry in self.store.entries(0, 1_000)))
        log.add(self.store.ledger_id(), read_tree, START)
        return task

    def export(self) -> Manifest:
        """Write the archive."""
        return self.export_with(no_progress)

    def export_with(self, bars: ProgressBars) -> Manifest:
        """Write the archive, showing progress like this."""
        store = cast(DurableStore, ArchivedStore.__new__(ArchivedStore))
        vars(store).update(vars(self.store))
        source = ArchiveSource(store, SafeDisk(self.data), "1", START)
        return write_archive(source, EXPORT, self.archive, bars)

    def run_import(self, archive: Path | None = None) -> Manifest:
        """Import the archive."""
        return restore_archive(archive or self.archive, EXPORT, self.target, self.tools)

    def open_store(self, _: Path, ledger: str) -> Store:
        """Open a new store, which the test can inspect."""
        self.opened_stores.append(OpenStore(ledger))
        return self.opened_stores[-1]

    def is_target_untouched(self) -> bool:
        """A refused import has left no trace."""
        parent = self.target.parent
        return not parent.exists() or list(parent.iterdir()) == []


def read_rows(store: OpenStore) -> dict[str, StreamRow]:
    """Rows of all streams that have entries, without their numbers."""
    found = store.rows(0, 1_000)
    return {row.name: replace(row, number=0) for row in found if row.version}


@proves("FILES-ARCHIVE")
def test_import_reproduces_exported_directory(tmp_path: Path) -> None:
    lab = ExportLab(tmp_path)
    task = lab.fill()
    manifest = lab.export()
    assert (manifest.made_at, manifest.entries) == (to_rfc3339(START), lab.store.head())
    assert lab.run_import() == manifest
    (store,) = lab.opened_stores
    assert store.entries(0, 1_000) == lab.store.entries(0, 1_000)
    assert store.ledger_id() == lab.store.ledger_id()
    assert findings(store) == []
    mine, theirs = lab.store.picture(), store.picture()
    assert read_rows(store) == read_rows(lab.store)
    for table in ("aliases", "daily_numbers"):
        assert theirs[table] == mine[table]
    assert theirs["answers"] == {}
    draft = lab.target / "tasks" / "in-progress" / task / "work" / "draft.bin"
    assert draft.read_bytes() == bytes(range(256))
    assert not (lab.target / "dragoman.toml").exists()
    assert (lab.target / "imported" / "checkpoints.jsonl").exists()
    assert not list(lab.target.rglob("ledger.key"))
    assert not list(lab.target.rglob("secret"))
    assert manifest.omitted == (f"tasks/in-progress/{task}/work/link",)
    assert sorted(path.name for path in lab.target.parent.iterdir()) == ["place"]


@proves("FILES-ARCHIVE")
def test_imported_directory_projects_identical_files(tmp_path: Path) -> None:
    lab = ExportLab(tmp_path)
    lab.fill()
    lab.export()
    lab.run_import()
    assert not (lab.target / "events").exists()
    before = {p.name: p.read_bytes() for p in (lab.data / "events").iterdir()}
    imported = FilesLab(lab.target)
    imported.engine.store = lab.opened_stores[0]
    imported.store = lab.opened_stores[0]
    imported.catch_up()
    assert imported.scan() == 0
    assert imported.differences() == []
    assert {p.name: p.read_bytes() for p in (lab.target / "events").iterdir()} == before


@proves("FILES-ARCHIVE")
def test_import_into_another_kind_of_store(tmp_path: Path) -> None:
    lab = ExportLab(tmp_path)
    lab.fill()
    lab.export()

    def open_sqlite(folder: Path, ledger: str) -> Store:
        return SqliteStore.open(folder / "dragoman.db", lambda: ledger)

    restore_archive(lab.archive, EXPORT, lab.target, make_tools(open_sqlite))
    store = SqliteStore.open(lab.target / "dragoman.db", lambda: "never")
    try:
        assert store.entries(0, 1_000) == lab.store.entries(0, 1_000)
        assert store.ledger_id() == lab.store.ledger_id()
        assert store.status_counts() == lab.store.status_counts()
    finally:
        store.close()


@proves("FILES-ARCHIVE")
def test_export_splits_entries_into_members(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("dragoman.files.archive._LINES_PER_MEMBER", 2)
    lab = ExportLab(tmp_path)
    lab.fill()
    lab.export()
    assert sum(name.startswith("ledger/entries/") for name in member_names(lab.archive)) > 2
    lab.run_import()
    assert lab.opened_stores[0].entries(0, 1_000) == lab.store.entries(0, 1_000)


Change = Callable[[str, bytes], tuple[str, bytes] | None]


def replace_bytes(old: bytes, new: bytes) -> Change:
    """Replace bytes in all members."""
    return lambda name, data: (name, data.replace(old, new))


def set_content(end: str, content: bytes) -> Change:
    """Set the content of the member whose name ends like this."""
    return lambda name, data: (name, content if name.endswith(end) else data)


def rename_member(end: str, to: str) -> Change:
    """Rename the member whose name ends like this."""
    return lambda name, data: (to if name.endswith(end) else name, data)


def rewrite_archive(lab: ExportLab, change: Change, *, with_valid_digest: bool = False) -> Path:
    """Rewrite the archive with changed members, optionally with a digest that fits them."""
    path = lab.archive.with_name("changed.tar")
    with (
        tarfile.open(lab.archive) as old,
        path.open("w+b") as target,
        tarfile.open(fileobj=target, mode="w") as new,
    ):
        for info in old:
            file = old.extractfile(info)
            assert file is not None
            changed = change(info.name, file.read())
            if changed is None:
                continue
            name, data = changed
            if name == "sha256" and with_valid_digest:
                target.flush()
                data = sha256(path.read_bytes()).hexdigest().encode()
            copy = tarfile.TarInfo(name)
            copy.size = len(data)
            new.addfile(copy, io.BytesIO(data))
    return path


def member_names(archive: Path) -> list[str]:
    """Names of all members."""
    with tarfile.open(archive) as tar:
        return tar.getnames()


@proves("FILES-ARCHIVE")
def test_damaged_member_is_refused(tmp_path: Path) -> None:
    lab = ExportLab(tmp_path)
    lab.fill()
    lab.export()
    for damaged in member_names(lab.archive):

        def flip(name: str, data: bytes, damaged: str = damaged) -> tuple[str, bytes]:
            return (
                (name, bytes([data[0] ^ 1]) + data[1:] if data else b"x")
                if (name == damaged)
                else (name, data)
            )

        def drop(name: str, data: bytes, damaged: str = damaged) -> tuple[str, bytes] | None:
            return None if name == damaged else (name, data)

        for change in (flip, drop):
            with pytest.raises(BadArchive):
                lab.run_import(rewrite_archive(lab, change))
            assert lab.is_target_untouched()
    assert lab.opened_stores == []


@proves("FILES-ARCHIVE")
def test_truncated_archive_is_refused(tmp_path: Path) -> None:
    lab = ExportLab(tmp_path)
    lab.fill()
    lab.export()
    whole = lab.archive.read_bytes()
    last = whole.rindex(b"sha256\0")
    cut = tmp_path / "cut.tar"
    for size in [0, *range(100, last, 4_096), last - 1]:
        cut.write_bytes(whole[:size])
        with pytest.raises(BadArchive):
            lab.run_import(cut)
        assert lab.is_target_untouched()


@proves("FILES-ARCHIVE")
@pytest.mark.parametrize(
    ("change", "why"),
    [
        (replace_bytes(b"alice", b"mallo"), "checkpoint"),
        (set_content("000000000001.jsonl", b"{}\n"), "its ledger cannot be read"),
        (set_content("leases.jsonl", b""), "not those of the tasks in progress"),
        (rename_member("draft.bin", "files/../../x"), "relative names"),
        (rename_member("draft.bin", "/x"), "relative names"),
        (replace_bytes(b"root", b"toor"), "checkpoint"),
        (set_content("ledger.pub", b"nonsense"), "public key"),
        (replace_bytes(b"archive 1", b"archive 9"), "Upgrade dragoman"),
        (set_content("manifest.json", b"["), "it cannot be read"),
    ],
)
def test_forged_archive_is_refused(tmp_path: Path, change: Change, why: str) -> None:
    lab = ExportLab(tmp_path)
    lab.fill()
    lab.export()
    with_valid_digest = why != "it cannot be read"
    with pytest.raises(BadArchive) as bad:
        lab.run_import(rewrite_archive(lab, change, with_valid_digest=with_valid_digest))
    assert why in bad.value.detail
    assert lab.is_target_untouched()


@proves("FILES-ARCHIVE")
def test_irregular_or_trailing_members_are_refused(tmp_path: Path) -> None:
    lab = ExportLab(tmp_path)
    lab.fill()
    lab.export()
    whole = lab.archive.read_bytes()
    irregular = tmp_path / "odd"
    irregular.mkdir()
    (irregular / "link").symlink_to("/etc/passwd")
    os.mkfifo(irregular / "pipe")
    for path in irregular.iterdir():
        lab.archive.write_bytes(whole)
        with tarfile.open(lab.archive, "a") as tar:
            tar.add(path, "files/tasks/x")
        with pytest.raises(BadArchive, match="plain files"):
            lab.run_import()
    lab.archive.write_bytes(whole)
    with tarfile.open(lab.archive, "a") as tar:
        tar.addfile(tarfile.TarInfo("files/tasks/more"))
    with pytest.raises(BadArchive, match="files/tasks/more: it follows the SHA-256"):
        lab.run_import()
    assert lab.is_target_untouched()


@proves("FILES-CARRIED")
@pytest.mark.parametrize("change", ["mode", "name"])
def test_digest_covers_modes_and_names(tmp_path: Path, change: str) -> None:
    lab = ExportLab(tmp_path)
    work = f"tasks/in-progress/{lab.fill()}/work"
    (lab.data / work / "caf\udce9").write_text("x")
    lab.export()
    path = tmp_path / "changed.tar"
    with tarfile.open(lab.archive) as old, tarfile.open(path, "w") as new:
        for info in old:
            content = old.extractfile(info) or io.BytesIO()
            if change == "mode" and info.name.endswith("draft.bin"):
                info.mode |= 0o100
            elif change == "name" and "\udce9" in info.name:
                info.name = info.name.replace("\udce9", "\udce8")
                info.pax_headers = {}
            new.addfile(info, content)
    with pytest.raises(BadArchive, match="does not match the SHA-256"):
        lab.run_import(path)
    assert lab.is_target_untouched()


@proves("FILES-ARCHIVE")
def test_import_requires_empty_target(tmp_path: Path) -> None:
    lab = ExportLab(tmp_path)
    lab.fill()
    lab.export()
    lab.target.mkdir(parents=True)
    (lab.target / "mine").write_text("mine")
    with pytest.raises(TargetTaken, match="is not empty"):
        lab.run_import()
    assert [path.name for path in lab.target.iterdir()] == ["mine"]
    (lab.target / "mine").unlink()
    lab.run_import()
    assert (lab.target / "tasks").is_dir()


@proves("FILES-ARCHIVE")
def test_broken_ledger_is_not_exported(tmp_path: Path) -> None:
    lab = ExportLab(tmp_path)
    lab.fill()
    kept = lab.store.tables.entries
    entry = kept[2]
    kept[2] = type(entry)(
        entry.position,
        entry.stream,
        entry.version,
        entry.event,
        entry.line.replace(b'"at":1', b'"at":2'),
        entry.previous,
        entry.hash,
    )
    with pytest.raises(LedgerError, match="near position 3"):
        lab.export()
    assert [path.name for path in tmp_path.iterdir()] == ["data"]


@proves("FILES-ARCHIVE")
def test_check_writes_nothing(tmp_path: Path) -> None:
    lab = ExportLab(tmp_path)
    lab.fill()
    assert lab.export() == check_archive(lab.archive, EXPORT).manifest
    assert lab.is_target_untouched()


def change_manifest(**changes: object) -> Change:
    """Change fields of the manifest."""

    def change(name: str, data: bytes) -> tuple[str, bytes]:
        if name != "manifest.json":
            return name, data
        manifest = msgspec.json.decode(data, type=Manifest)
        return name, msgspec.json.encode(replace(manifest, **changes))

    return change


@proves("FILES-ARCHIVE")
def test_mismatching_manifest_is_refused(tmp_path: Path) -> None:
    lab = ExportLab(tmp_path)
    lab.fill()
    entries = lab.export().entries
    change = change_manifest(entries=entries + 1)
    with pytest.raises(BadArchive, match=f"{entries + 1} entries were written, not {entries}"):
        lab.run_import(rewrite_archive(lab, change, with_valid_digest=True))
    assert lab.is_target_untouched()


@proves("FILES-ARCHIVE")
def test_checkpoint_reveals_truncated_entries(tmp_path: Path) -> None:
    """All digests and chains are right; only the signed checkpoint reveals the missing tail."""
    lab = ExportLab(tmp_path)
    lab.fill()
    head = lab.export().entries

    def drop_last_entries(name: str, data: bytes) -> tuple[str, bytes] | None:
        if name.startswith("ledger/entries/"):
            return name, b"".join(data.splitlines(keepends=True)[:-1])
        return change_manifest(entries=head - 1)(name, data)

    with pytest.raises(BadArchive, match="its tail was cut"):
        lab.run_import(rewrite_archive(lab, drop_last_entries, with_valid_digest=True))
    assert lab.is_target_untouched()


@proves("FILES-ARCHIVE")
def test_unsigned_directory_is_exported_and_imported(tmp_path: Path) -> None:
    lab = ExportLab(tmp_path)
    lab.create()
    lab.export()
    lab.run_import()
    assert lab.opened_stores[0].head() == lab.store.head()
    assert not (lab.target / "imported").exists()


@proves("FILES-ARCHIVE")
def test_non_ed25519_key_is_refused(tmp_path: Path) -> None:
    lab = ExportLab(tmp_path)
    lab.fill()
    lab.export()
    other = X25519PrivateKey.generate().public_key()
    pem = other.public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
    with pytest.raises(BadArchive, match="not an Ed25519 key"):
        lab.run_import(rewrite_archive(lab, set_content("ledger.pub", pem), with_valid_digest=True))


@proves("FILES-ARCHIVE")
def test_import_keeps_target_created_meanwhile(tmp_path: Path) -> None:
    lab = ExportLab(tmp_path)
    lab.fill()
    lab.export()

    def open_slowly(folder: Path, ledger: str) -> Store:
        lab.target.mkdir()
        (lab.target / "theirs").write_text("theirs")
        return lab.open_store(folder, ledger)

    with pytest.raises(TargetTaken, match="not empty any more"):
        restore_archive(lab.archive, EXPORT, lab.target, make_tools(open_slowly))
    assert [path.name for path in lab.target.parent.iterdir()] == ["place"]
    assert [path.name for path in lab.target.iterdir()] == ["theirs"]


@proves("FILES-ARCHIVE")
@pytest.mark.parametrize(
    "planted",
    [
        "files/dragoman.db",
        "files/keys/ledger.key",
        "files/keys/secret",
        "files/projection.json",
        "files/events/2026-02-09.jsonl",
        "files/imported/dragoman.toml",
        "files/tasks",
        "files/runs/T-1/output.log",
        "ledger/answers/000000000001.jsonl",
        "files/hub.id",
        "ledger/entries/x",
        "ledger/other",
        "more",
    ],
)
def test_planted_member_is_refused(tmp_path: Path, planted: str) -> None:
    lab = ExportLab(tmp_path)
    lab.fill()
    lab.export()
    with pytest.raises(BadArchive, match="an archive has no such part"):
        lab.run_import(
            rewrite_archive(lab, rename_member("draft.bin", planted), with_valid_digest=True)
        )
    assert lab.is_target_untouched()
    assert lab.opened_stores == []


@proves("FILES-ARCHIVE")
def test_settings_are_not_exported(tmp_path: Path) -> None:
    lab = ExportLab(tmp_path)
    lab.fill()
    (lab.data / "dragoman.toml").write_text(
        '[notify]\nwebhook_secret = "hush-hush"\n[workq]\ntoken = "hush-too"\n'
        '[store]\nurl = "postgresql://hub:hush-all@db/hub"\n[agents.ada.env]\nKEY = "hush-ada"\n'
    )
    lab.export()
    assert b"hush" not in lab.archive.read_bytes()


@proves("FILES-ARCHIVE")
def test_originals_of_processed_messages_and_logs_are_not_exported(tmp_path: Path) -> None:
    lab = ExportLab(tmp_path)
    lab.fill()
    folders = [
        f"inbox{agent}/{name}"
        for agent in ("", "/alice")
        for name in ("processed", "rejected", "processed-found", "rejected-found-2")
    ]
    for path in (*folders, "runs/T-1", "runs/T-1/attempts/1"):
        folder = lab.data / path
        folder.mkdir(parents=True, exist_ok=True)
        for name in ("a.json", "a.json.reason.txt", "output.log"):
            (folder / name).write_text("hush-hush")
    (lab.data / "inbox/alice/waits.json").write_text("it waits")
    lab.export()
    content = lab.archive.read_bytes()
    assert b"hush" not in content
    assert b"it waits" in content


@proves("FILES-ARCHIVE")
def test_writes_during_export_leave_copy_consistent(tmp_path: Path) -> None:
    lab = ExportLab(tmp_path)
    task = lab.fill()

    def writer(_: int) -> None:
        lab.do(ALICE, NoteTask(task, "written meanwhile"))
        lab.catch_up()

    lab.export_with(lambda _what, _total: nullcontext(writer))
    lab.run_import()
    imported = FilesLab(lab.target)
    imported.engine.store = imported.store = lab.opened_stores[0]
    imported.catch_up()
    assert imported.differences() == []
    imported.do(ALICE, NoteTask(task, "here"))
    imported.catch_up()
    assert imported.scan() == 0
    assert imported.differences() == []


@proves("FILES-ARCHIVE")
def test_unreadable_leases_are_refused(tmp_path: Path) -> None:
    lab = ExportLab(tmp_path)
    lab.fill()
    lab.export()
    for nonsense in (b"{bad\n", b"\xff\n"):
        with pytest.raises(BadArchive, match=r"leases\.jsonl: it cannot be read"):
            lab.run_import(
                rewrite_archive(lab, set_content("leases.jsonl", nonsense), with_valid_digest=True)
            )
    assert lab.is_target_untouched()


@proves("FILES-ARCHIVE")
def test_import_into_current_directory_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lab = ExportLab(tmp_path)
    lab.fill()
    lab.export()
    lab.target.mkdir(parents=True)
    monkeypatch.chdir(lab.target)
    with pytest.raises(TargetTaken, match="run the import from another one"):
        restore_archive(lab.archive, EXPORT, Path(), lab.tools)
    assert list(lab.target.iterdir()) == []


@proves("FILES-ARCHIVE")
def test_long_files_are_copied_in_chunks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dragoman.files.archive._CHUNK_BYTES", 7)
    lab = ExportLab(tmp_path)
    task = lab.fill()
    (lab.data / "tasks" / "in-progress" / task / "work" / "empty").write_bytes(b"")
    lab.export()
    lab.run_import()
    work = lab.target / "tasks" / "in-progress" / task / "work"
    assert (work / "draft.bin").read_bytes() == bytes(range(256))
    assert (work / "empty").read_bytes() == b""


@proves("FILES-ARCHIVE")
def test_sparse_or_oversized_member_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lab = ExportLab(tmp_path)
    lab.fill()
    lab.export()
    holes = tmp_path / "holes.tar"
    info = tarfile.TarInfo("files/tasks/huge")
    info.pax_headers = {"GNU.sparse.size": "1099511627776", "GNU.sparse.map": "0,0"}
    shutil.copy(lab.archive, holes)
    with tarfile.open(holes, "a", format=tarfile.PAX_FORMAT) as tar:
        tar.addfile(info)
    with pytest.raises(BadArchive, match="plain files"):
        lab.run_import(holes)
    monkeypatch.setattr("dragoman.files.archive._MAX_WHOLE_BYTES", 10)
    with pytest.raises(BadArchive, match="it is longer than 10 bytes"):
        lab.run_import()
    assert lab.is_target_untouched()
