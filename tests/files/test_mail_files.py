"""Letter files: named by position, in step with the ledger, and with all markup escaped."""

import re
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from dragoman.core.mail import AckMail, PostMail, ReadMail
from dragoman.files.markdown import parse_fields
from dragoman.system.safe_fs import SafeDisk
from dragoman.text.safe_text import HARMFUL
from tests.engine.lab import ALICE, BOB
from tests.files.lab import CrashingDisk, FilesLab, Killed, read_tree
from tests.files.test_power_cut import SyncedFolder
from tests.requirements import proves

pytestmark = proves("MAIL-FILES")


def post_letter(lab: FilesLab, id: str, **more: Any) -> None:
    """Send a letter of alice's to bob, without projecting it."""
    words = {"subject": "[ol-1] PROGRESS", "body": "Bead: ol-1", "kind": "PROGRESS"}
    fields: dict[str, Any] = {"to": ("bob",), "thread": "ol-1", **words, **more}
    lab.do(ALICE, PostMail(id=id, **fields))


def read_front_matter(path: Path) -> dict[str, Any]:
    """Front matter of a file."""
    _, head, _ = path.read_text(encoding="utf-8").split("---\n", 2)
    return parse_fields(head.splitlines(), 2)


def list_letter_files(lab: FilesLab) -> list[str]:
    """Paths of all letter files."""
    return sorted(str(path.relative_to(lab.data)) for path in lab.data.glob("mail/*/[0-9]*"))


def post_two_threads(lab: FilesLab) -> None:
    """Send letters of two threads, read and ack some."""
    post_letter(lab, "m1", ack_wanted=True)
    post_letter(lab, "x1", thread="other", kind="UNKNOWN", subject="Hello")
    post_letter(lab, "m2", kind="DONE", cc=("carol",))
    lab.do(BOB, ReadMail("m2"))
    lab.do(BOB, AckMail("m1"))


def test_letter_files_are_named_by_position_and_type(tmp_path: Path) -> None:
    lab = FilesLab(tmp_path)
    post_two_threads(lab)
    lab.catch_up()
    assert list_letter_files(lab) == [
        "mail/ol-1/00000001-PROGRESS.md",
        "mail/ol-1/00000003-DONE.md",
        "mail/other/00000002-MAIL.md",
    ]
    assert lab.differences() == []
    assert lab.warnings == []


def test_letter_file_has_all_fields(tmp_path: Path) -> None:
    lab = FilesLab(tmp_path)
    post_letter(
        lab,
        "m1",
        body="Bead: ol-1\nStep: 4",
        bead="ol-1",
        cc=("carol",),
        importance="high",
        ack_wanted=True,
        due_in_ms=60_000,
        attachments=("a.png",),
    )
    lab.catch_up()
    file = tmp_path / "mail/ol-1/00000001-PROGRESS.md"
    assert read_front_matter(file) == {
        "id": "m1",
        "position": "1",
        "thread": "ol-1",
        "type": "PROGRESS",
        "bead": "ol-1",
        "from": "alice",
        "to": ["bob"],
        "cc": ["carol"],
        "subject": "[ol-1] PROGRESS",
        "timestamp": "2026-02-09T14:30:00.000Z",
        "importance": "high",
        "attachments": ["a.png"],
        "ackRequired": "true",
        "dueBy": "2026-02-09T14:31:00.000Z",
        "waitsFor": ["bob"],
    }
    assert file.read_text().endswith("---\n\nBead: ol-1\nStep: 4\n")
    lab.do(BOB, AckMail("m1"))
    lab.catch_up()
    front_matter = read_front_matter(file)
    assert (front_matter["readBy"], front_matter["ackedBy"], "waitsFor" in front_matter) == (
        ["bob"],
        ["bob"],
        False,
    )
    assert lab.differences() == []


@proves("MAIL-HOSTILE")
def test_hostile_letter_is_escaped_in_its_file(tmp_path: Path) -> None:
    lab = FilesLab(tmp_path)
    hostile = (
        "\x1b[2J\x00\u202eevil\u2066\n---\nid: other\n---\n<script>alert(1)</script>\n"
        "<!-- x --> <https://a.example> a < b\r\n...\n\u2028end"
    )
    post_letter(lab, "m1", subject='"<img src=x>\x1b]0;t\x07\n---\n', body=hostile, kind="../../x")
    lab.catch_up()
    file = tmp_path / "mail/ol-1/00000001-MAIL.md"
    text = file.read_text(encoding="utf-8")
    assert HARMFUL.search(text) is None
    assert "<script" not in text
    assert "<img" not in text
    assert "<!--" not in text
    assert "a < b\n\\...\n" in text
    assert text.split("\n").count("---") == 2
    assert read_front_matter(file)["id"] == "m1"
    assert read_front_matter(file)["subject"] == '"<img src=x>\x1b]0;t\x07\n---\n'


@proves("MAIL-LINKS")
@pytest.mark.parametrize(
    ("words", "shown"),
    [
        ("![x](http://a.example/t.png)", "![x]\\(http://a.example/t.png)"),
        ("[c](javascript:alert(1))", "[c]\\(javascript:alert(1))"),
        ("\\[c](http://a.example)", "\\[c]\\(http://a.example)"),
        ("[![x](y)](z)", "[![x]\\(y)]\\(z)"),
        ("![x][r]\n\n> [r]: http://a.example", "![x][r]\n\n> [r]\\: http://a.example"),
        ("a[0] (b) [ol-1] http://a.example", "a[0] (b) [ol-1] http://a.example"),
    ],
)
def test_links_and_images_of_letter_are_escaped(tmp_path: Path, words: str, shown: str) -> None:
    lab = FilesLab(tmp_path)
    post_letter(lab, "m1", body=words, kind="")
    lab.catch_up()
    text = (tmp_path / "mail/ol-1/00000001-MAIL.md").read_text(encoding="utf-8")
    assert text.partition("\n---\n\n")[2] == f"{shown}\n"
    assert lab.differences() == []


@proves("MAIL-LINKS")
@pytest.mark.parametrize(
    "subject",
    [
        "![x](http://a.example/t.png)",
        "[c](javascript:alert(1))",
        "[r]: http://a.example",
        "a\\](b)",
    ],
)
def test_links_and_images_of_subject_are_escaped(tmp_path: Path, subject: str) -> None:
    lab = FilesLab(tmp_path)
    post_letter(lab, "m1", subject=subject, body="", kind="")
    lab.catch_up()
    file = tmp_path / "mail/ol-1/00000001-MAIL.md"
    assert not re.search(r"\](?=[(:])", file.read_text(encoding="utf-8"))
    assert read_front_matter(file)["subject"] == subject


@proves("FILES-CRASH")
def test_crash_between_operations_is_repaired(tmp_path: Path) -> None:
    clean = FilesLab(tmp_path / "clean")
    clean.data.mkdir()
    post_two_threads(clean)
    clean.catch_up()
    operations, is_over = 0, False
    while not is_over:
        lab = FilesLab(tmp_path / f"crash{operations}")
        lab.data.mkdir()
        post_two_threads(lab)
        try:
            lab.projector(CrashingDisk(SafeDisk(lab.data), operations)).catch_up()
            is_over = True
        except Killed:
            lab.catch_up()
        assert read_tree(lab.data) == read_tree(clean.data), f"after {operations} operations"
        operations += 1
    assert operations > 15


@proves("FILES-CRASH")
def test_power_cut_between_operations_is_repaired(tmp_path: Path) -> None:
    operations, is_over = 0, False
    while not is_over:
        lab = FilesLab(tmp_path / f"data{operations}")
        lab.data.mkdir()
        post_letter(lab, "m1")
        lab.catch_up()
        post_letter(lab, "m2")
        lab.do(BOB, ReadMail("m1"))
        after = tmp_path / f"after{operations}"
        with SyncedFolder(lab.data) as synced:
            try:
                lab.projector(CrashingDisk(SafeDisk(lab.data), operations)).catch_up()
                is_over = True
            except Killed:
                operations += 1
            synced.cut(after)
        lab.projector(data=after).catch_up()
        lab.catch_up()
        assert read_tree(after) == read_tree(lab.data), f"after {operations} operations"


class CountingDisk:
    """Disk that counts the calls."""

    def __init__(self, disk: SafeDisk) -> None:
        self._disk = disk
        self.calls = Counter[str]()

    def __getattr__(self, verb: str) -> Any:
        self.calls[verb] += 1
        return getattr(self._disk, verb)


def test_cost_of_letter_is_independent_of_thread_length(tmp_path: Path) -> None:
    lab = FilesLab(tmp_path)
    calls: list[Counter[str]] = []
    for start, end in ((0, 8), (8, 520)):
        for number in range(start, end):
            post_letter(lab, f"m{number}")
        lab.catch_up()
        post_letter(lab, f"n{end}")
        lab.do(BOB, ReadMail(f"m{end // 2}"))
        disk = CountingDisk(SafeDisk(tmp_path))
        lab.projector(disk).catch_up()
        calls.append(disk.calls)
    assert len(list_letter_files(lab)) == 522
    assert calls[0] == calls[1]
    assert lab.differences() == []


@proves("FILES-COMPARE")
def test_verify_reports_letter_differences(tmp_path: Path) -> None:
    lab = FilesLab(tmp_path)
    post_two_threads(lab)
    lab.catch_up()
    expected = read_tree(tmp_path)
    folder = tmp_path / "mail/ol-1"
    (folder / "00000001-PROGRESS.md").unlink()
    (folder / "00000003-DONE.md").write_text("forged")
    (folder / "00000004-DONE.md").write_text("forged")
    (folder / "notes.md").write_text("somebody's own")
    (tmp_path / "mail/nowhere").mkdir()
    (tmp_path / "mail/nowhere/00000001-MAIL.md").write_text("forged")
    assert sorted(lab.differences()) == [
        ("mail/nowhere/00000001-MAIL.md", "surplus"),
        ("mail/ol-1/00000001-PROGRESS.md", "missing"),
        ("mail/ol-1/00000003-DONE.md", "changed"),
        ("mail/ol-1/00000004-DONE.md", "surplus"),
    ]
    lab.projector().rebuild(lambda _: None)
    left = {
        "mail/nowhere/00000001-MAIL.md": b"forged",
        "mail/ol-1/00000004-DONE.md": b"forged",
        "mail/ol-1/notes.md": b"somebody's own",
    }
    assert read_tree(tmp_path) == expected | left


def test_letters_of_another_ledger_are_reported(tmp_path: Path) -> None:
    lab = FilesLab(tmp_path)
    post_two_threads(lab)
    post_letter(lab, "y1", thread="yonder")
    lab.catch_up()
    other = FilesLab(tmp_path)
    post_letter(other, "z1", kind="FAILED")
    other.catch_up()
    assert "mail/ol-1/00000001-FAILED.md" in list_letter_files(other)
    left = [path for path in list_letter_files(other) if not path.endswith("1-FAILED.md")]
    assert sorted(other.differences()) == [(path, "surplus") for path in sorted(left)]


@proves("FILES-BENEATH")
@pytest.mark.parametrize("path", ["mail/ol-1", "mail/ol-1/00000001-PROGRESS.md"])
def test_symlink_is_not_followed_and_does_not_stop_other_threads(tmp_path: Path, path: str) -> None:
    data, outside = tmp_path / "data", tmp_path / "outside"
    outside.mkdir()
    (data / path).parent.mkdir(parents=True)
    (data / path).symlink_to(outside)
    lab = FilesLab(data)
    post_letter(lab, "m1")
    post_letter(lab, "x1", thread="other")
    lab.catch_up()
    assert list(outside.iterdir()) == []
    assert (data / "mail/other/00000002-PROGRESS.md").is_file()
    is_written = (data / "mail/ol-1/00000001-PROGRESS.md").is_file()
    assert is_written or "move away what is in the way" in lab.warnings[0]


def test_concurrent_processes_write_each_letter_once(tmp_path: Path) -> None:
    lab = FilesLab(tmp_path)

    def work(number: int) -> None:
        post_letter(lab, f"m{number}")
        lab.projector().catch_up()

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(work, range(24)))
    assert len(list_letter_files(lab)) == 24
    assert lab.differences() == []
