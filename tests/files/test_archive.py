"""Export and import: the same ledger and files elsewhere, or a refusal that leaves nothing."""

import io
import os
import tarfile
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path

import msgspec
import pytest
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from msgspec.structs import replace

from dragoman.config import parse
from dragoman.core.commands import ClaimTask, CreateTask, MoveTask, NoteTask, RenewLease
from dragoman.core.errors import LedgerError
from dragoman.core.moments import to_rfc3339
from dragoman.engine.ports import Row, Store
from dragoman.files.archives.archive_format import Manifest, Member
from dragoman.files.archives.export import export_archive
from dragoman.files.archives.importing import Tools, check_archive, import_archive
from dragoman.files.problems import BadArchive, PlaceTaken
from dragoman.ledger.tree import EMPTY, extend
from dragoman.store.sqlite import SqliteStore
from dragoman.system.beneath import Beneath
from dragoman.system.checkpoints import CheckpointFile
from dragoman.system.keys import load_or_create
from tests.engine.lab import ALICE, HUMAN, START, OpenStore, findings
from tests.files.lab import FilesLab
from tests.requirements import proves


def silent(_: int) -> None:
    """Nobody watches."""


class Carrier(FilesLab):
    """A data directory with a bit of everything, and the way to another one."""

    def __init__(self, tmp_path: Path) -> None:
        data = tmp_path / "data"
        data.mkdir()
        super().__init__(data)
        self.archive = tmp_path / "all.tar"
        self.target = tmp_path / "new" / "place"
        self.opened: list[OpenStore] = []
        self.tools = Tools(self.open_store, Beneath, START + 1, silent)

    def fill(self) -> str:
        """Tasks in several states, an agent's files, a setting, signed checkpoints."""
        task = self.create("One", aliases=("bead:ol-1",))
        self.do(HUMAN, CreateTask("Two", "own-name", ready=True))
        self.do(ALICE, ClaimTask(task, "alice"))
        self.do(ALICE, NoteTask(task, "héllo \U0001f600"))
        self.do(ALICE, RenewLease(task))
        self.do(HUMAN, MoveTask("own-name", "blocked"))
        assert self.code(ALICE, MoveTask("own-name", "ready")) != ""
        self.level()
        work = self.data / "tasks" / "in-progress" / task / "work"
        (work / "draft.bin").write_bytes(bytes(range(256)))
        (work / "link").symlink_to("/etc/passwd")
        (self.data / "dragoman.toml").write_text("[tasks]\nmax_attempts = 3\n")
        log = CheckpointFile(self.data / "checkpoints.jsonl", load_or_create(self.data))
        tree = extend(EMPTY, (entry.hash for entry in self.store.entries(0, 1_000)))
        log.add(self.store.ledger_id(), tree, START)
        return task

    def export(self) -> Manifest:
        """Write the archive."""
        beside = Beneath(self.archive.parent)
        return export_archive(self.store, Beneath(self.data), self.archive, beside, START, silent)

    def take(self, archive: Path | None = None) -> Manifest:
        """Import it."""
        return import_archive(archive or self.archive, self.target, self.tools)

    def open_store(self, _: Path, ledger: str) -> Store:
        """A new store, which the test can look into."""
        self.opened.append(OpenStore(ledger))
        return self.opened[-1]

    def nothing_is_there(self) -> bool:
        """Whether a refused import has left no trace."""
        parent = self.target.parent
        return not parent.exists() or list(parent.iterdir()) == []


def rows(store: OpenStore) -> dict[str, Row]:
    """The rows of all streams that have entries, whatever their numbers are."""
    found = store.rows(0, 1_000)
    return {row.name: replace(row, number=0) for row in found if row.version}


@proves("FILES-ARCHIVE")
def test_a_whole_directory_arrives_as_it_was(tmp_path: Path) -> None:
    lab = Carrier(tmp_path)
    task = lab.fill()
    manifest = lab.export()
    assert (manifest.exported_at, manifest.head) == (to_rfc3339(START), lab.store.head())
    assert lab.take() == manifest
    (store,) = lab.opened
    assert store.entries(0, 1_000) == lab.store.entries(0, 1_000)
    assert store.ledger_id() == lab.store.ledger_id()
    assert findings(store) == []
    mine, theirs = lab.store.picture(), store.picture()
    assert rows(store) == rows(lab.store)
    for table in ("names", "last_numbers"):
        assert theirs[table] == mine[table]
    assert theirs["answers"] == {}
    draft = lab.target / "tasks" / "in-progress" / task / "work" / "draft.bin"
    assert draft.read_bytes() == bytes(range(256))
    assert not (lab.target / "dragoman.toml").exists()
    kept = lab.target / "imported" / "dragoman.toml"
    assert kept.read_text() == "[tasks]\nmax_attempts = 3\n"
    assert (lab.target / "imported" / "checkpoints.jsonl").exists()
    assert not list(lab.target.rglob("ledger.key"))
    assert not list(lab.target.rglob("secret"))
    assert manifest.left_out == (f"tasks/in-progress/{task}/work/link",)
    assert sorted(path.name for path in lab.target.parent.iterdir()) == ["place"]


@proves("FILES-ARCHIVE")
def test_the_files_of_an_imported_directory_are_level_with_its_ledger(tmp_path: Path) -> None:
    lab = Carrier(tmp_path)
    lab.fill()
    lab.export()
    lab.take()
    assert not (lab.target / "events").exists()
    before = {p.name: p.read_bytes() for p in (lab.data / "events").iterdir()}
    there = FilesLab(lab.target)
    there.engine.store = lab.opened[0]
    there.store = lab.opened[0]
    there.level()
    assert there.sweep() == 0
    assert there.differences() == []
    assert {p.name: p.read_bytes() for p in (lab.target / "events").iterdir()} == before


@proves("FILES-ARCHIVE")
def test_a_ledger_moves_from_one_kind_of_store_to_another(tmp_path: Path) -> None:
    lab = Carrier(tmp_path)
    lab.fill()
    lab.export()

    def open_sqlite(folder: Path, ledger: str) -> Store:
        return SqliteStore.open(folder / "dragoman.db", lambda: ledger)

    import_archive(lab.archive, lab.target, Tools(open_sqlite, Beneath, START, silent))
    store = SqliteStore.open(lab.target / "dragoman.db", lambda: "never")
    try:
        assert store.entries(0, 1_000) == lab.store.entries(0, 1_000)
        assert store.ledger_id() == lab.store.ledger_id()
        assert store.counts() == lab.store.counts()
    finally:
        store.close()


@proves("FILES-ARCHIVE")
def test_many_entries_travel_in_several_members(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("dragoman.files.archives.packing.IN_ONE_MEMBER", 2)
    lab = Carrier(tmp_path)
    lab.fill()
    manifest = lab.export()
    assert sum(member.name.startswith("ledger/entries/") for member in manifest.members) > 2
    lab.take()
    assert lab.opened[0].entries(0, 1_000) == lab.store.entries(0, 1_000)


@proves("FILES-ARCHIVE")
def test_a_lease_that_does_not_fit_is_replaced_by_the_one_of_the_claim(tmp_path: Path) -> None:
    lab = Carrier(tmp_path)
    task = lab.fill()
    lab.export()

    def without_lease(name: str, data: bytes) -> tuple[str, bytes] | None:
        return (name, b"") if name == "ledger/leases.jsonl" else (name, data)

    lab.take(rewritten(lab, without_lease, honest=True))
    row = lab.opened[0].stream(f"task:{task}")
    assert row is not None
    assert row.lease is not None
    assert (row.lease.holder, row.lease.beats) == ("alice", 1)


Change = Callable[[str, bytes], tuple[str, bytes] | None]


def swapped(old: bytes, new: bytes) -> Change:
    """Other words, wherever they stand."""
    return lambda name, data: (name, data.replace(old, new))


def filled(end: str, content: bytes) -> Change:
    """Another content for the member whose name ends like this."""
    return lambda name, data: (name, content if name.endswith(end) else data)


def renamed(end: str, to: str) -> Change:
    """Another name for the member whose name ends like this."""
    return lambda name, data: (to if name.endswith(end) else name, data)


def rewritten(lab: Carrier, change: Change, *, honest: bool = False) -> Path:
    """The archive with changed members; an honest one has a manifest that knows."""
    path = lab.archive.with_name("changed.tar")
    members: list[Member] = []
    with tarfile.open(lab.archive) as old, tarfile.open(path, "w") as new:
        for info in old:
            file = old.extractfile(info)
            assert file is not None
            changed = change(info.name, file.read())
            if changed is None:
                continue
            name, data = changed
            if name == "manifest.json" and honest:
                manifest = msgspec.json.decode(data, type=Manifest)
                data = msgspec.json.encode(
                    msgspec.structs.replace(manifest, members=tuple(members))
                )
            members.append(Member(name, len(data), sha256(data).hexdigest()))
            copy = tarfile.TarInfo(name)
            copy.size = len(data)
            new.addfile(copy, io.BytesIO(data))
    return path


@proves("FILES-ARCHIVE")
def test_every_damaged_member_is_named(tmp_path: Path) -> None:
    lab = Carrier(tmp_path)
    lab.fill()
    names = [member.name for member in lab.export().members]
    for damaged in names:

        def flip(name: str, data: bytes, damaged: str = damaged) -> tuple[str, bytes]:
            return (
                (name, bytes([data[0] ^ 1]) + data[1:] if data else b"x")
                if (name == damaged)
                else (name, data)
            )

        def drop(name: str, data: bytes, damaged: str = damaged) -> tuple[str, bytes] | None:
            return None if name == damaged else (name, data)

        for change in (flip, drop):
            with pytest.raises(BadArchive) as bad:
                lab.take(rewritten(lab, change))
            assert damaged in bad.value.detail or "ledger ends" in bad.value.detail
            assert lab.nothing_is_there()
    assert lab.opened == []


@proves("FILES-ARCHIVE")
def test_an_archive_that_was_cut_off_anywhere_is_refused(tmp_path: Path) -> None:
    lab = Carrier(tmp_path)
    lab.fill()
    lab.export()
    whole = lab.archive.read_bytes()
    last = whole.rindex(b"manifest.json\0")
    cut = tmp_path / "cut.tar"
    for size in [0, *range(100, last, 4_096), last - 1]:
        cut.write_bytes(whole[:size])
        with pytest.raises(BadArchive):
            lab.take(cut)
        assert lab.nothing_is_there()


@proves("FILES-ARCHIVE")
@pytest.mark.parametrize(
    ("change", "why"),
    [
        (swapped(b"alice", b"mallo"), "is not what was written"),
        (filled("000000000001.jsonl", b"{}\n"), "be read"),
        (renamed("toml", "files/../../x"), "relative names"),
        (renamed("toml", "/x"), "relative names"),
        (swapped(b"root", b"toor"), "checkpoint"),
        (filled("ledger.pub", b"nonsense"), "public key"),
        (swapped(b"archive 1", b"archive 9"), "not a format"),
        (filled("manifest.json", b"["), "it cannot be read"),
    ],
)
def test_an_archive_that_somebody_has_made_up_is_refused(
    tmp_path: Path, change: Change, why: str
) -> None:
    lab = Carrier(tmp_path)
    lab.fill()
    lab.export()
    honest = why not in ("not a format", "it cannot be read")
    with pytest.raises(BadArchive) as bad:
        lab.take(rewritten(lab, change, honest=honest))
    assert why in bad.value.detail
    assert lab.nothing_is_there()


@proves("FILES-ARCHIVE")
def test_members_that_are_not_plain_files_or_stand_twice_are_refused(tmp_path: Path) -> None:
    lab = Carrier(tmp_path)
    lab.fill()
    lab.export()
    whole = lab.archive.read_bytes()
    odd = tmp_path / "odd"
    odd.mkdir()
    (odd / "link").symlink_to("/etc/passwd")
    os.mkfifo(odd / "pipe")
    (odd / "folder").mkdir()
    for thing in odd.iterdir():
        lab.archive.write_bytes(whole)
        with tarfile.open(lab.archive, "a") as tar:
            tar.add(thing, "files/tasks/x")
        with pytest.raises(BadArchive, match="plain files"):
            lab.take()
    lab.archive.write_bytes(whole)
    with tarfile.open(lab.archive, "a") as tar:
        tar.addfile(tarfile.TarInfo("files/tasks/more"))
    with pytest.raises(BadArchive, match="files/tasks/more: it stands after the manifest"):
        lab.take()
    assert lab.nothing_is_there()


@proves("FILES-CARRIED")
@pytest.mark.parametrize("change", ["mode", "kind", "name"])
def test_rights_kinds_and_names_are_vouched_for_by_the_manifest(
    tmp_path: Path, change: str
) -> None:
    lab = Carrier(tmp_path)
    work = f"tasks/in-progress/{lab.fill()}/work"
    (lab.data / work / "caf\udce9").write_text("x")
    (lab.data / work / "hollow").mkdir()
    lab.export()
    path = tmp_path / "changed.tar"
    with tarfile.open(lab.archive) as old, tarfile.open(path, "w") as new:
        for info in old:
            content = old.extractfile(info) or io.BytesIO()
            if change == "mode" and info.name.endswith("draft.bin"):
                info.mode |= 0o100
            elif change == "kind" and info.name.endswith("hollow"):
                info.type = tarfile.REGTYPE
            elif change == "name" and "\udce9" in info.name:
                info.name = info.name.replace("\udce9", "\udce8")
                info.pax_headers = {}
            new.addfile(info, content)
    with pytest.raises(BadArchive, match=r"is not what was written|it is missing"):
        lab.take(path)
    assert lab.nothing_is_there()


@proves("FILES-ARCHIVE")
def test_an_import_goes_into_an_empty_place_only(tmp_path: Path) -> None:
    lab = Carrier(tmp_path)
    lab.fill()
    lab.export()
    lab.target.mkdir(parents=True)
    (lab.target / "mine").write_text("mine")
    with pytest.raises(PlaceTaken, match="is not empty"):
        lab.take()
    assert [path.name for path in lab.target.iterdir()] == ["mine"]
    (lab.target / "mine").unlink()
    lab.take()
    assert (lab.target / "tasks").is_dir()


@proves("FILES-ARCHIVE")
def test_an_import_into_a_store_that_is_used_is_refused(tmp_path: Path) -> None:
    lab = Carrier(tmp_path)
    lab.fill()
    lab.export()

    def used(folder: Path, ledger: str) -> Store:
        return lab.store

    tools = Tools(used, Beneath, START, silent)
    with pytest.raises(PlaceTaken, match="the store is not empty"):
        import_archive(lab.archive, lab.target, tools)
    assert lab.nothing_is_there()


@proves("FILES-ARCHIVE")
def test_a_ledger_that_does_not_hold_is_not_exported(tmp_path: Path) -> None:
    lab = Carrier(tmp_path)
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
def test_a_check_alone_makes_nothing(tmp_path: Path) -> None:
    lab = Carrier(tmp_path)
    lab.fill()
    told: list[int] = []
    assert lab.export() == check_archive(lab.archive, told.append)
    assert sum(told) == lab.store.head()
    assert lab.nothing_is_there()


def manifest_with(**changes: object) -> Change:
    """A manifest that says something else."""

    def change(name: str, data: bytes) -> tuple[str, bytes]:
        if name != "manifest.json":
            return name, data
        manifest = msgspec.json.decode(data, type=Manifest)
        return name, msgspec.json.encode(replace(manifest, **changes))

    return change


@proves("FILES-ARCHIVE")
def test_a_manifest_that_does_not_fit_is_refused(tmp_path: Path) -> None:
    lab = Carrier(tmp_path)
    lab.fill()
    manifest = lab.export()
    fewer = manifest.members[:-1]
    for change, why in (
        (manifest_with(head=manifest.head + 1), "the ledger ends at"),
        (manifest_with(members=fewer), "the manifest does not know it"),
    ):
        with pytest.raises(BadArchive, match=why):
            lab.take(rewritten(lab, change))
    with pytest.raises(BadArchive, match="it stands there twice"):
        lab.take(rewritten(lab, renamed("ledger.pub", "files/dragoman.toml")))
    assert lab.nothing_is_there()


@proves("FILES-ARCHIVE")
def test_entries_that_were_left_out_are_missed_by_the_checkpoint(tmp_path: Path) -> None:
    """Every digest and every chain is right; only what was signed tells that the tail is gone."""
    lab = Carrier(tmp_path)
    lab.fill()
    head = lab.export().head

    def without_tail(name: str, data: bytes) -> tuple[str, bytes] | None:
        if name.startswith("ledger/entries/"):
            return name, b"".join(data.splitlines(keepends=True)[:-1])
        return manifest_with(head=head - 1)(name, data)

    with pytest.raises(BadArchive, match="its tail was cut"):
        lab.take(rewritten(lab, without_tail, honest=True))
    assert lab.nothing_is_there()


@proves("FILES-ARCHIVE")
def test_a_directory_that_was_never_signed_travels_too(tmp_path: Path) -> None:
    lab = Carrier(tmp_path)
    lab.create()
    lab.export()
    lab.take()
    assert lab.opened[0].head() == lab.store.head()
    assert not (lab.target / "imported").exists()


@proves("FILES-ARCHIVE")
def test_a_key_of_another_kind_is_refused(tmp_path: Path) -> None:
    lab = Carrier(tmp_path)
    lab.fill()
    lab.export()
    other = X25519PrivateKey.generate().public_key()
    pem = other.public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
    with pytest.raises(BadArchive, match="not an Ed25519 key"):
        lab.take(rewritten(lab, filled("ledger.pub", pem), honest=True))


@proves("FILES-ARCHIVE")
def test_a_place_that_was_taken_meanwhile_is_left_alone(tmp_path: Path) -> None:
    lab = Carrier(tmp_path)
    lab.fill()
    lab.export()

    def slowly(folder: Path, ledger: str) -> Store:
        lab.target.mkdir()
        (lab.target / "theirs").write_text("theirs")
        return lab.open_store(folder, ledger)

    with pytest.raises(PlaceTaken, match="not empty any more"):
        import_archive(lab.archive, lab.target, Tools(slowly, Beneath, START, silent))
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
        "files/checkpoints.jsonl",
        "files/events/2026-02-09.jsonl",
        "files/imported/dragoman.toml",
        "files/tasks",
        "signed/more",
        "signed/keys/ledger.pub",
        "ledger/entries/x",
        "ledger/other",
        "more",
    ],
)
def test_nothing_can_be_planted(tmp_path: Path, planted: str) -> None:
    lab = Carrier(tmp_path)
    lab.fill()
    lab.export()
    with pytest.raises(BadArchive, match="an archive has no such part"):
        lab.take(rewritten(lab, renamed("draft.bin", planted), honest=True))
    assert lab.nothing_is_there()
    assert lab.opened == []


@proves("FILES-ARCHIVE")
def test_settings_of_the_old_place_are_inactive_and_none_of_its_secrets_travels(
    tmp_path: Path,
) -> None:
    lab = Carrier(tmp_path)
    lab.fill()
    (lab.data / "dragoman.toml").write_text(
        'store = { url = "postgresql://ann:hunter2@db/x" }\n'
        "[aof]\napply_completion = 'immediately'\n[leases]\nttl_ms = 1_000\n"
        '[notify]\nwebhook_secret = "hush-hush"\nwebhook_url = "https://hooks/t0ken"\n'
        'command = ["rm", "-r"]\nstatuses = ["review"]\n[files]\ntrust_moves = true\n'
    )
    lab.export()
    content = lab.archive.read_bytes()
    assert [word for word in (b"hunter2", b"hush", b"t0ken", b'"-r"') if word in content] == []
    lab.take()
    assert not (lab.target / "dragoman.toml").exists()
    kept = parse((lab.target / "imported" / "dragoman.toml").read_text(), {})
    assert (kept.aof.apply_completion, kept.leases.ttl_ms) == ("immediately", 1_000)
    assert kept.files.trust_moves
    assert kept.store.url == kept.notify.webhook_secret == ""


@proves("FILES-ARCHIVE")
def test_settings_that_cannot_be_read_stay_where_they_are(tmp_path: Path) -> None:
    lab = Carrier(tmp_path)
    lab.fill()
    (lab.data / "dragoman.toml").write_text("[notify\nsecret = 1")
    lab.export()
    lab.take()
    assert not (lab.target / "imported" / "dragoman.toml").exists()


@proves("FILES-ARCHIVE")
def test_what_is_written_during_an_export_does_not_disturb_the_copy(tmp_path: Path) -> None:
    lab = Carrier(tmp_path)
    task = lab.fill()

    def writer(_: int) -> None:
        lab.do(ALICE, NoteTask(task, "written meanwhile"))
        lab.level()

    beside = Beneath(lab.archive.parent)
    export_archive(lab.store, Beneath(lab.data), lab.archive, beside, START, writer)
    lab.take()
    there = FilesLab(lab.target)
    there.engine.store = there.store = lab.opened[0]
    there.level()
    assert there.differences() == []
    there.do(ALICE, NoteTask(task, "here"))
    there.level()
    assert there.sweep() == 0
    assert there.differences() == []


@proves("FILES-ARCHIVE")
def test_leases_that_cannot_be_read_are_refused(tmp_path: Path) -> None:
    lab = Carrier(tmp_path)
    lab.fill()
    lab.export()
    for nonsense in (b"{bad\n", b"\xff\n"):
        with pytest.raises(BadArchive, match=r"leases\.jsonl: a lease cannot be read"):
            lab.take(rewritten(lab, filled("leases.jsonl", nonsense), honest=True))
    assert lab.nothing_is_there()


@proves("FILES-ARCHIVE")
def test_an_import_into_the_folder_where_one_stands_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lab = Carrier(tmp_path)
    lab.fill()
    lab.export()
    lab.target.mkdir(parents=True)
    monkeypatch.chdir(lab.target)
    with pytest.raises(PlaceTaken, match="import from elsewhere"):
        import_archive(lab.archive, Path(), lab.tools)
    assert list(lab.target.iterdir()) == []


@proves("FILES-ARCHIVE")
def test_files_of_any_length_and_ledgers_of_long_entries_travel_in_pieces(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("dragoman.files.archives.packing.PIECE", 7)
    monkeypatch.setattr("dragoman.files.archives.unpacking.PIECE", 5)
    monkeypatch.setattr("dragoman.files.archives.packing.BYTES_IN_ONE_MEMBER", 1_000)
    lab = Carrier(tmp_path)
    task = lab.fill()
    (lab.data / "tasks" / "in-progress" / task / "work" / "empty").write_bytes(b"")
    manifest = lab.export()
    assert sum(member.name.startswith("ledger/entries/") for member in manifest.members) > 2
    lab.take()
    assert lab.opened[0].entries(0, 1_000) == lab.store.entries(0, 1_000)
    work = lab.target / "tasks" / "in-progress" / task / "work"
    assert (work / "draft.bin").read_bytes() == bytes(range(256))
    assert (work / "empty").read_bytes() == b""


@proves("FILES-ARCHIVE")
def test_a_member_that_is_mostly_holes_or_too_long_to_be_read_whole_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lab = Carrier(tmp_path)
    lab.fill()
    lab.export()
    holes = tmp_path / "holes.tar"
    info = tarfile.TarInfo("files/tasks/huge")
    info.pax_headers = {"GNU.sparse.size": "1099511627776", "GNU.sparse.map": "0,0"}
    with tarfile.open(holes, "w", format=tarfile.PAX_FORMAT) as tar:
        tar.addfile(info)
    with pytest.raises(BadArchive, match="plain files"):
        lab.take(holes)
    monkeypatch.setattr("dragoman.files.archives.unpacking.MOST_AT_ONCE", 10)
    with pytest.raises(BadArchive, match="it is longer than 10 bytes"):
        lab.take()
    assert lab.nothing_is_there()
