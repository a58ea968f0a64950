"""Inbox: every message is sent once, by the right sender; irregular files are never opened."""

import errno
import os
from pathlib import Path
from typing import Any

import pytest

from dragoman.core.errors import LedgerError, Refusal, StoreUnavailable
from dragoman.engine.service_health import HealthProblem
from dragoman.files.inbox import Inbox, SendResult
from dragoman.services.file_service import FileService
from dragoman.system.safe_fs import FileStat, SafeDisk
from tests.files.lab import CrashingDisk, Killed, read_tree
from tests.requirements import proves

MAX_BYTES = 1_000


class InboxSetup:
    """Inbox whose messages are accepted unless they are `bad`."""

    def __init__(self, data: Path) -> None:
        self.data = data
        self.inbox = data / "inbox"
        self.inbox.mkdir(exist_ok=True)
        self.sent: list[tuple[bytes, str | None]] = []
        self.warnings: list[str] = []
        self.failure = ""

    def send(self, raw: bytes, sender: str | None) -> SendResult:
        """Record a message."""
        self.sent.append((raw, sender))
        if raw == b"bad":
            return Refusal("invalid_json", "line 1: this is not\x1b[2J JSON")
        return ("odd\x1b[2J", "strange") if raw == b"odd" else ()

    def run(self, disk: Any = None) -> int:
        """Run the service once."""
        inbox = Inbox(disk or SafeDisk(self.data), self.send, MAX_BYTES, self.warnings.append)
        try:
            return inbox.run_once(0)
        finally:
            self.failure = inbox.failure_summary()

    def write_message(self, name: str, content: bytes = b"good") -> Path:
        """Write a message into the inbox."""
        path = self.inbox / name
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(content)
        return path

    def names(self) -> list[str]:
        """Names of all files in the inbox."""
        return sorted(read_tree(self.inbox))


@proves("FILES-INBOX")
def test_sender_is_the_agent_folder_or_unnamed(tmp_path: Path) -> None:
    setup = InboxSetup(tmp_path)
    setup.write_message("swe-qa/2.json", b"second")
    setup.write_message("swe-qa/1.json", b"first")
    setup.write_message("b.json", b"b")
    setup.write_message("a.json", b"a")
    assert setup.run() == 4
    assert setup.sent == [(b"a", None), (b"b", None), (b"first", "swe-qa"), (b"second", "swe-qa")]
    assert setup.names() == [
        "processed/a.json",
        "processed/b.json",
        "swe-qa/processed/1.json",
        "swe-qa/processed/2.json",
    ]
    assert setup.run() == 0


@proves("FILES-INBOX")
def test_refused_message_is_kept_with_its_reason(tmp_path: Path) -> None:
    setup = InboxSetup(tmp_path)
    setup.write_message("x.json", b"bad")
    setup.run()
    rejected = read_tree(setup.inbox)
    assert rejected["rejected/x.json"] == b"bad"
    assert rejected["rejected/x.json.reason.txt"] == b"invalid_json: line 1: this is not JSON\n"


@proves("FILES-INBOX")
def test_warnings_are_written_beside_processed_message(tmp_path: Path) -> None:
    setup = InboxSetup(tmp_path)
    for _ in range(2):
        setup.write_message("x.json", b"odd")
        setup.run()
    kept = read_tree(setup.inbox)
    assert kept["processed/x.json"] == kept["processed/x-2.json"] == b"odd"
    assert kept["processed/x.json.warning.txt"] == b"odd\nstrange\n"
    assert "processed/x-2.json.warning.txt" in kept


@proves("FILES-INBOX")
def test_messages_of_equal_name_are_all_kept(tmp_path: Path) -> None:
    setup = InboxSetup(tmp_path)
    for words in (b"bad", b"good", b"good 2", b"bad"):
        setup.write_message("x.json", words)
        setup.run()
    kept = read_tree(setup.inbox)
    assert kept["processed/x.json"] == b"good"
    assert kept["processed/x-2.json"] == b"good 2"
    assert kept["rejected/x-2.json"] == b"bad"
    assert "rejected/x-2.json.reason.txt" in kept


@proves("FILES-INBOX")
@pytest.mark.parametrize("name", [".x.json", "x.json.tmp", "x.json.part", "ada/.x", "ada/x.part"])
def test_hidden_or_partial_file_is_not_read(tmp_path: Path, name: str) -> None:
    setup = InboxSetup(tmp_path)
    setup.write_message(name, b'{"half')
    assert setup.run() == 0
    assert setup.names() == [name]


@proves("FILES-INBOX", "FILES-BENEATH")
@pytest.mark.parametrize("where", ["", "ada/"])
@pytest.mark.parametrize(
    ("what", "why"),
    [
        ("link", "it is a link"),
        ("pipe", "it is a pipe"),
        ("second hard link", "second hard link"),
        ("too long", "1001 bytes; at most 1000"),
    ],
)
def test_irregular_or_oversized_file_is_rejected_unopened(
    tmp_path: Path, where: str, what: str, why: str
) -> None:
    setup = InboxSetup(tmp_path)
    secret = tmp_path / "secret"
    secret.write_text("secret")
    path = setup.write_message(f"{where}x.json")
    path.unlink()
    if what == "link":
        path.symlink_to(secret)
    elif what == "pipe":
        os.mkfifo(path)
    elif what == "second hard link":
        path.hardlink_to(secret)
    else:
        path.write_bytes(b"x" * (MAX_BYTES + 1))
    assert setup.run() == 1
    assert setup.sent == []
    assert why in (setup.inbox / where / "rejected" / "x.json.reason.txt").read_text()
    assert not os.path.lexists(path)
    assert secret.read_text() == "secret"


@proves("FILES-INBOX")
def test_folder_with_invalid_agent_name_is_rejected(tmp_path: Path) -> None:
    setup = InboxSetup(tmp_path)
    setup.write_message("not a name/x.json")
    setup.run()
    assert setup.sent == []
    reason = setup.inbox / "not a name" / "rejected" / "x.json.reason.txt"
    assert reason.read_text().startswith("invalid_id: ")


@proves("FILES-INBOX", "FILES-BENEATH")
def test_symlinked_agent_folder_is_not_entered(tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "x.json").write_text("good")
    data = tmp_path / "data"
    data.mkdir()
    setup = InboxSetup(data)
    (setup.inbox / "ada").symlink_to(outside)
    setup.run()
    assert setup.sent == []
    assert sorted(path.name for path in outside.iterdir()) == ["x.json"]


@proves("FILES-INBOX", "FILES-BENEATH")
def test_symlink_in_place_of_processed_is_set_aside(tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    data = tmp_path / "data"
    data.mkdir()
    setup = InboxSetup(data)
    setup.write_message("ada/x.json")
    (setup.inbox / "ada" / "processed").symlink_to(outside)
    assert setup.run() == 1
    assert list(outside.iterdir()) == []
    assert (setup.inbox / "ada" / "processed" / "x.json").read_bytes() == b"good"
    assert (setup.inbox / "ada" / "processed-found").is_symlink()


@proves("FILES-INBOX", "FILES-DISK")
def test_unreadable_message_does_not_stop_others(tmp_path: Path) -> None:
    class DeniedDisk(SafeDisk):
        """Disk that denies reading one file."""

        def read(self, path: str, max_bytes: int) -> bytes | None:
            """Read, unless denied."""
            if path.endswith("a.json"):
                raise PermissionError(13, "Permission denied", path)
            return super().read(path, max_bytes)

    setup = InboxSetup(tmp_path)
    setup.write_message("a.json")
    setup.write_message("b.json")
    assert setup.run(DeniedDisk(tmp_path)) == 1
    assert setup.names() == ["a.json", "processed/b.json"]
    assert setup.failure.startswith("a message waits in the inbox: inbox/a.json: Permission denied")
    setup.run()
    assert (setup.names(), setup.failure) == (["processed/a.json", "processed/b.json"], "")


@proves("INBOX-TOLD")
def test_sent_message_that_cannot_be_filed_is_reported(tmp_path: Path) -> None:
    class DeniedDisk(SafeDisk):
        """Disk that denies writing to the folder of processed messages."""

        def make_folder(self, path: str) -> None:
            """Make a folder, unless denied."""
            if path.endswith("processed"):
                raise PermissionError(13, "Permission denied", path)
            super().make_folder(path)

    setup = InboxSetup(tmp_path)
    setup.write_message("a.json")
    setup.run(DeniedDisk(tmp_path))
    assert setup.sent == [(b"good", None)]
    assert setup.warnings == [setup.failure]
    inbox = Inbox(DeniedDisk(tmp_path), setup.send, MAX_BYTES, setup.warnings.append)
    service = FileService(
        "inbox",
        lambda: inbox.run_once(0),
        setup.warnings.append,
        find_leftovers=inbox.failure_summary,
    )
    service.run_once(0)
    assert service.last_problem == HealthProblem(setup.failure, is_partial=True)
    assert setup.failure.startswith(
        "a message was sent, but cannot be filed: inbox/.taken-a.json: Permission denied"
    )


@proves("INBOX-ASIDE")
@pytest.mark.parametrize("folder", ["", "ada/"])
@pytest.mark.parametrize("ends", ["processed", "rejected"])
def test_displaced_obstacle_is_not_sent_as_message(tmp_path: Path, folder: str, ends: str) -> None:
    setup = InboxSetup(tmp_path)
    for number in range(2):
        setup.write_message(f"{folder}x-{number}.json", b"bad" if ends == "rejected" else b"good")
        (setup.inbox / folder / ends).write_bytes(b"in the way")
        assert setup.run() == 1
        (setup.inbox / folder / ends).rename(tmp_path / f"{ends}{number}")
    assert setup.run() == 0
    found = sorted(path.name for path in (setup.inbox / folder).iterdir())
    assert found == [f"{ends}-found", f"{ends}-found-2"]


@proves("FILES-INBOX", "FILES-LONG-NAMES")
@pytest.mark.parametrize("size", [238, 239, 245, 248, 249, 255])
@pytest.mark.parametrize(("words", "ends"), [(b"good", "processed"), (b"bad", "rejected")])
def test_message_with_long_name_is_filed(
    tmp_path: Path, size: int, words: bytes, ends: str
) -> None:
    setup = InboxSetup(tmp_path)
    setup.write_message("a" * (size - 5) + ".json", words)
    setup.write_message("é" * 100 + "a" * (size - 205) + ".json", words)
    setup.write_message("z.json", words)
    assert setup.run() == 3
    assert len(setup.sent) == 3
    kept = [path for path in (setup.inbox / ends).iterdir() if path.suffix == ".json"]
    assert [path.read_bytes() for path in kept] == [words] * 3
    assert all(Path(f"{path}.reason.txt").exists() == (ends == "rejected") for path in kept)
    assert setup.run() == 0
    assert [path.name for path in setup.inbox.iterdir()] == [ends]


@proves("FILES-INBOX")
def test_message_that_grew_while_sent_is_sent_again(tmp_path: Path) -> None:
    class SlowWriterSetup(InboxSetup):
        """Sender that finishes its message while the beginning of it is being refused."""

        def send(self, raw: bytes, sender: str | None) -> SendResult:
            """Record a message."""
            answer = super().send(raw, sender)
            if raw == b"bad":
                writing.write(b", and good after all")
                writing.flush()
            return answer

    setup = SlowWriterSetup(tmp_path)
    with setup.write_message("ada/x.json", b"bad").open("ab") as writing:
        setup.run()
        assert setup.names() == ["ada/.taken-x.json"]
        setup.write_message("ada/x.json", b"next")
        setup.run()
    assert [raw for raw, _ in setup.sent] == [b"bad", b"bad, and good after all", b"next"]
    assert setup.names() == ["ada/processed/x-2.json", "ada/processed/x.json"]


@proves("FILES-INBOX", "FILES-OBSTACLE")
def test_fault_of_one_message_or_folder_does_not_stop_others(tmp_path: Path) -> None:
    class DeniedDisk(SafeDisk):
        """Disk that denies access to one agent's folder."""

        def list(self, folder: str) -> list[FileStat]:
            """List a folder, unless denied."""
            if folder.endswith("closed"):
                raise PermissionError(13, "Permission denied", folder)
            return super().list(folder)

    class FaultySetup(InboxSetup):
        """Hub that cannot read the entries of one message's task."""

        def send(self, raw: bytes, sender: str | None) -> SendResult:
            """Record a message."""
            if raw == b"broken":
                raise LedgerError("entry 7 cannot be read")
            return super().send(raw, sender)

    setup = FaultySetup(tmp_path)
    setup.write_message("a.json", b"broken")
    setup.write_message("b.json")
    setup.write_message("closed/c.json")
    setup.write_message("open/d.json")
    setup.run(DeniedDisk(tmp_path))
    assert [words.partition(";")[0] for words in setup.warnings] == [
        "a message waits in the inbox: inbox/a.json: entry 7 cannot be read",
        "messages wait in the inbox: inbox/closed: Permission denied",
    ]
    assert setup.failure == f"{setup.warnings[0]} (and 1 more)"
    assert setup.names() == [
        ".taken-a.json",
        "closed/c.json",
        "open/processed/d.json",
        "processed/b.json",
    ]


@proves("FILES-INBOX", "FILES-DISK")
@pytest.mark.parametrize(
    "fault", [OSError(errno.ENOSPC, "No space left on device"), StoreUnavailable("it is gone")]
)
def test_general_fault_is_not_retried_per_message(tmp_path: Path, fault: Exception) -> None:
    class FailingSetup(InboxSetup):
        """Hub that fails for every message."""

        def send(self, raw: bytes, sender: str | None) -> SendResult:
            super().send(raw, sender)
            raise fault

    setup = FailingSetup(tmp_path)
    setup.write_message("a.json")
    setup.write_message("b.json")
    with pytest.raises(type(fault)):
        setup.run()
    assert len(setup.sent) == 1
    assert setup.names() == [".taken-a.json", "b.json"]


@proves("FILES-INBOX")
def test_nested_folder_is_rejected(tmp_path: Path) -> None:
    setup = InboxSetup(tmp_path)
    (setup.inbox / "ada" / "deep").mkdir(parents=True)
    setup.run()
    assert "it is a folder" in (setup.inbox / "ada" / "rejected" / "deep.reason.txt").read_text()


@proves("FILES-INBOX", "FILES-CRASH")
def test_crash_at_any_point_resends_message_at_most(tmp_path: Path) -> None:
    operations = 0
    while True:
        (tmp_path / str(operations)).mkdir()
        setup = InboxSetup(tmp_path / str(operations))
        setup.write_message("a.json", b"bad")
        setup.write_message("ada/b.json")
        try:
            setup.run(CrashingDisk(SafeDisk(setup.data), operations))
        except Killed:
            setup.run()
        else:
            break
        assert {raw for raw, _ in setup.sent} == {b"bad", b"good"}
        kept = read_tree(setup.inbox)
        assert [name for name, data in kept.items() if data == b"bad"] != []
        assert kept["ada/processed/b.json"] == b"good"
        assert "a.json" not in kept
        assert "ada/b.json" not in kept
        operations += 1
    assert operations > 5


@proves("FILES-INBOX")
def test_retracted_message_is_no_fault(tmp_path: Path) -> None:
    class RetractingSetup(InboxSetup):
        """Sender that removes its second message while the first is sent."""

        def send(self, raw: bytes, sender: str | None) -> SendResult:
            """Record a message."""
            (self.inbox / "b.json").unlink()
            return super().send(raw, sender)

    setup = RetractingSetup(tmp_path)
    setup.write_message("a.json")
    setup.write_message("b.json")
    setup.run()
    assert setup.sent == [(b"good", None)]
    assert setup.names() == ["processed/a.json"]


@proves("FILES-INBOX")
def test_reused_name_while_sending_loses_no_message(tmp_path: Path) -> None:
    class BusySetup(InboxSetup):
        """Agent that writes its next message under the same name at once."""

        def send(self, raw: bytes, sender: str | None) -> SendResult:
            """Record a message."""
            if raw == b"first":
                self.write_message("ada/status.json", b"second")
            return super().send(raw, sender)

    setup = BusySetup(tmp_path)
    setup.write_message("ada/status.json", b"first")
    setup.run()
    setup.run()
    assert setup.sent == [(b"first", "ada"), (b"second", "ada")]
    assert setup.names() == ["ada/processed/status-2.json", "ada/processed/status.json"]


@proves("FILES-INBOX", "FILES-CRASH")
def test_message_left_by_crash_is_sent_before_next_of_its_name(tmp_path: Path) -> None:
    setup = InboxSetup(tmp_path)
    setup.write_message("ada/x.json", b"earlier").rename(setup.inbox / "ada" / ".taken-x.json")
    setup.write_message("ada/x.json", b"later")
    setup.run()
    assert setup.sent == [(b"earlier", "ada"), (b"later", "ada")]
    assert read_tree(setup.inbox)["ada/processed/x.json"] == b"earlier"


@proves("FILES-INBOX")
def test_service_name() -> None:
    assert Inbox.name == "inbox"
