"""The inbox: every message once, by the right speaker; what is not a plain file is never opened."""

import errno
import os
from pathlib import Path
from typing import Any

import pytest

from dragoman.core.errors import LedgerError, Refusal, StoreUnavailable
from dragoman.engine.trouble import Trouble
from dragoman.files.inbox import Answer, Inbox
from dragoman.services.projector import FilesDuty
from dragoman.system.beneath import Beneath
from dragoman.system.openat import Seen
from tests.files.lab import Died, MortalDisk, tree
from tests.requirements import proves

MOST = 1_000


class Post:
    """An inbox whose messages are accepted unless they say `bad`."""

    def __init__(self, data: Path) -> None:
        self.data = data
        self.inbox = data / "inbox"
        self.inbox.mkdir(exist_ok=True)
        self.sent: list[tuple[bytes, str | None]] = []
        self.told: list[str] = []
        self.trouble = ""

    def send(self, raw: bytes, speaker: str | None) -> Answer:
        """Take a message down."""
        self.sent.append((raw, speaker))
        if raw == b"bad":
            return Refusal("invalid_json", "line 1: this is not\x1b[2J JSON")
        return ("odd\x1b[2J", "strange") if raw == b"odd" else ()

    def run(self, disk: Any = None) -> int:
        """The duty once."""
        inbox = Inbox(disk or Beneath(self.data), self.send, MOST, self.told.append)
        try:
            return inbox.run_once(0)
        finally:
            self.trouble = inbox.trouble()

    def drop(self, name: str, content: bytes = b"good") -> Path:
        """A message, dropped in."""
        path = self.inbox / name
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(content)
        return path

    def names(self) -> list[str]:
        """Everything in the inbox."""
        return sorted(tree(self.inbox))


@proves("FILES-INBOX")
def test_a_message_speaks_as_its_folder_or_as_the_sender_it_names(tmp_path: Path) -> None:
    post = Post(tmp_path)
    post.drop("swe-qa/2.json", b"second")
    post.drop("swe-qa/1.json", b"first")
    post.drop("b.json", b"b")
    post.drop("a.json", b"a")
    assert post.run() == 4
    assert post.sent == [(b"a", None), (b"b", None), (b"first", "swe-qa"), (b"second", "swe-qa")]
    assert post.names() == [
        "processed/a.json",
        "processed/b.json",
        "swe-qa/processed/1.json",
        "swe-qa/processed/2.json",
    ]
    assert post.run() == 0


@proves("FILES-INBOX")
def test_a_refused_message_is_kept_with_its_reason(tmp_path: Path) -> None:
    post = Post(tmp_path)
    post.drop("x.json", b"bad")
    post.run()
    rejected = tree(post.inbox)
    assert rejected["rejected/x.json"] == b"bad"
    assert rejected["rejected/x.json.reason.txt"] == b"invalid_json: line 1: this is not JSON\n"


@proves("FILES-INBOX")
def test_what_was_odd_about_a_message_stands_beside_it(tmp_path: Path) -> None:
    post = Post(tmp_path)
    for _ in range(2):
        post.drop("x.json", b"odd")
        post.run()
    kept = tree(post.inbox)
    assert kept["processed/x.json"] == kept["processed/x-2.json"] == b"odd"
    assert kept["processed/x.json.warning.txt"] == b"odd\nstrange\n"
    assert "processed/x-2.json.warning.txt" in kept


@proves("FILES-INBOX")
def test_messages_of_the_same_name_are_all_kept(tmp_path: Path) -> None:
    post = Post(tmp_path)
    for words in (b"bad", b"good", b"good 2", b"bad"):
        post.drop("x.json", words)
        post.run()
    kept = tree(post.inbox)
    assert kept["processed/x.json"] == b"good"
    assert kept["processed/x-2.json"] == b"good 2"
    assert kept["rejected/x-2.json"] == b"bad"
    assert "rejected/x-2.json.reason.txt" in kept


@proves("FILES-INBOX")
@pytest.mark.parametrize("name", [".x.json", "x.json.tmp", "x.json.part", "ada/.x", "ada/x.part"])
def test_a_file_that_is_still_being_written_is_not_read(tmp_path: Path, name: str) -> None:
    post = Post(tmp_path)
    post.drop(name, b'{"half')
    assert post.run() == 0
    assert post.names() == [name]


@proves("FILES-INBOX", "FILES-BENEATH")
@pytest.mark.parametrize("where", ["", "ada/"])
@pytest.mark.parametrize(
    ("what", "why"),
    [
        ("link", "it is a link"),
        ("pipe", "it is a pipe"),
        ("second name", "second name"),
        ("too long", "1001 bytes; at most 1000"),
    ],
)
def test_what_is_not_a_plain_file_is_rejected_unopened(
    tmp_path: Path, where: str, what: str, why: str
) -> None:
    post = Post(tmp_path)
    secret = tmp_path / "secret"
    secret.write_text("secret")
    path = post.drop(f"{where}x.json")
    path.unlink()
    if what == "link":
        path.symlink_to(secret)
    elif what == "pipe":
        os.mkfifo(path)
    elif what == "second name":
        path.hardlink_to(secret)
    else:
        path.write_bytes(b"x" * (MOST + 1))
    assert post.run() == 1
    assert post.sent == []
    assert why in (post.inbox / where / "rejected" / "x.json.reason.txt").read_text()
    assert not os.path.lexists(path)
    assert secret.read_text() == "secret"


@proves("FILES-INBOX")
def test_a_folder_that_cannot_be_an_agents_is_told_so(tmp_path: Path) -> None:
    post = Post(tmp_path)
    post.drop("not a name/x.json")
    post.run()
    assert post.sent == []
    reason = post.inbox / "not a name" / "rejected" / "x.json.reason.txt"
    assert reason.read_text().startswith("invalid_id: ")


@proves("FILES-INBOX", "FILES-BENEATH")
def test_a_link_to_a_folder_is_not_entered(tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "x.json").write_text("good")
    data = tmp_path / "data"
    data.mkdir()
    post = Post(data)
    (post.inbox / "ada").symlink_to(outside)
    post.run()
    assert post.sent == []
    assert sorted(path.name for path in outside.iterdir()) == ["x.json"]


@proves("FILES-INBOX", "FILES-BENEATH")
def test_a_link_in_the_place_of_processed_is_put_aside(tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    data = tmp_path / "data"
    data.mkdir()
    post = Post(data)
    post.drop("ada/x.json")
    (post.inbox / "ada" / "processed").symlink_to(outside)
    assert post.run() == 1
    assert list(outside.iterdir()) == []
    assert (post.inbox / "ada" / "processed" / "x.json").read_bytes() == b"good"
    assert (post.inbox / "ada" / "processed-found").is_symlink()


@proves("FILES-INBOX", "FILES-DISK")
def test_a_message_that_may_not_be_read_stops_none_of_the_others(tmp_path: Path) -> None:
    class Strict(Beneath):
        """A disk on which one file is somebody else's."""

        def read(self, path: str, most: int) -> bytes | None:
            """Read what is ours."""
            if path.endswith("a.json"):
                raise PermissionError(13, "Permission denied", path)
            return super().read(path, most)

    post = Post(tmp_path)
    post.drop("a.json")
    post.drop("b.json")
    assert post.run(Strict(tmp_path)) == 1
    assert post.names() == ["a.json", "processed/b.json"]
    assert post.trouble.startswith("a message waits in the inbox: inbox/a.json: Permission denied")
    post.run()
    assert (post.names(), post.trouble) == (["processed/a.json", "processed/b.json"], "")


@proves("INBOX-TOLD")
def test_a_message_that_was_taken_and_cannot_be_put_away_is_told_apart(tmp_path: Path) -> None:
    class Strict(Beneath):
        """A disk on which nothing may be put into the folder for what was taken."""

        def make_folder(self, path: str) -> None:
            """Make what may be made."""
            if path.endswith("processed"):
                raise PermissionError(13, "Permission denied", path)
            super().make_folder(path)

    post = Post(tmp_path)
    post.drop("a.json")
    post.run(Strict(tmp_path))
    assert post.sent == [(b"good", None)]
    assert post.told == [post.trouble]
    inbox = Inbox(Strict(tmp_path), post.send, MOST, post.told.append)
    duty = FilesDuty("inbox", lambda: inbox.run_once(0), post.told.append, left=inbox.trouble)
    duty.run_once(0)
    assert duty.undone == Trouble(post.trouble, is_partial=True)
    assert post.trouble.startswith(
        "a message was taken, but cannot be put away: inbox/.taken-a.json: Permission denied"
    )


@proves("INBOX-ASIDE")
@pytest.mark.parametrize("folder", ["", "ada/"])
@pytest.mark.parametrize("ends", ["processed", "rejected"])
def test_what_stood_in_the_way_of_filing_is_no_message(
    tmp_path: Path, folder: str, ends: str
) -> None:
    post = Post(tmp_path)
    for number in range(2):
        post.drop(f"{folder}x-{number}.json", b"bad" if ends == "rejected" else b"good")
        (post.inbox / folder / ends).write_bytes(b"in the way")
        assert post.run() == 1
        (post.inbox / folder / ends).rename(tmp_path / f"{ends}{number}")
    assert post.run() == 0
    found = sorted(path.name for path in (post.inbox / folder).iterdir())
    assert found == [f"{ends}-found", f"{ends}-found-2"]


@proves("FILES-INBOX", "FILES-LONG-NAMES")
@pytest.mark.parametrize("size", [238, 239, 245, 248, 249, 255])
@pytest.mark.parametrize(("words", "ends"), [(b"good", "processed"), (b"bad", "rejected")])
def test_a_message_with_a_long_name_is_filed_like_any_other(
    tmp_path: Path, size: int, words: bytes, ends: str
) -> None:
    post = Post(tmp_path)
    post.drop("a" * (size - 5) + ".json", words)
    post.drop("é" * 100 + "a" * (size - 205) + ".json", words)
    post.drop("z.json", words)
    assert post.run() == 3
    assert len(post.sent) == 3
    kept = [path for path in (post.inbox / ends).iterdir() if path.suffix == ".json"]
    assert [path.read_bytes() for path in kept] == [words] * 3
    assert all(Path(f"{path}.reason.txt").exists() == (ends == "rejected") for path in kept)
    assert post.run() == 0
    assert [path.name for path in post.inbox.iterdir()] == [ends]


@proves("FILES-INBOX")
def test_a_message_that_is_still_being_written_is_read_again(tmp_path: Path) -> None:
    class Slow(Post):
        """Whoever writes the message ends while its beginning is being refused."""

        def send(self, raw: bytes, speaker: str | None) -> Answer:
            """Take a message down."""
            answer = super().send(raw, speaker)
            if raw == b"bad":
                writing.write(b", and good after all")
                writing.flush()
            return answer

    post = Slow(tmp_path)
    with post.drop("ada/x.json", b"bad").open("ab") as writing:
        post.run()
        assert post.names() == ["ada/.taken-x.json"]
        post.drop("ada/x.json", b"next")
        post.run()
    assert [raw for raw, _ in post.sent] == [b"bad", b"bad, and good after all", b"next"]
    assert post.names() == ["ada/processed/x-2.json", "ada/processed/x.json"]


@proves("FILES-INBOX", "FILES-OBSTACLE")
def test_any_fault_at_one_message_or_folder_stops_none_of_the_others(tmp_path: Path) -> None:
    class Strict(Beneath):
        """A disk on which one agent's folder is closed."""

        def list(self, folder: str) -> list[Seen]:
            """Look into what is open."""
            if folder.endswith("closed"):
                raise PermissionError(13, "Permission denied", folder)
            return super().list(folder)

    class Faulty(Post):
        """One of its messages is about a task whose entries cannot be read."""

        def send(self, raw: bytes, speaker: str | None) -> Answer:
            """Take a message down."""
            if raw == b"broken":
                raise LedgerError("entry 7 cannot be read")
            return super().send(raw, speaker)

    post = Faulty(tmp_path)
    post.drop("a.json", b"broken")
    post.drop("b.json")
    post.drop("closed/c.json")
    post.drop("open/d.json")
    post.run(Strict(tmp_path))
    assert [words.partition(";")[0] for words in post.told] == [
        "a message waits in the inbox: inbox/a.json: entry 7 cannot be read",
        "messages wait in the inbox: inbox/closed: Permission denied",
    ]
    assert post.trouble == f"{post.told[0]} (and 1 more)"
    assert post.names() == [
        ".taken-a.json",
        "closed/c.json",
        "open/processed/d.json",
        "processed/b.json",
    ]


@proves("FILES-INBOX", "FILES-DISK")
@pytest.mark.parametrize(
    "fault", [OSError(errno.ENOSPC, "No space left on device"), StoreUnavailable("it is gone")]
)
def test_what_fails_for_every_message_is_not_tried_with_each(
    tmp_path: Path, fault: Exception
) -> None:
    class Failing(Post):
        """Nothing can be taken down."""

        def send(self, raw: bytes, speaker: str | None) -> Answer:
            """Fail."""
            super().send(raw, speaker)
            raise fault

    post = Failing(tmp_path)
    post.drop("a.json")
    post.drop("b.json")
    with pytest.raises(type(fault)):
        post.run()
    assert len(post.sent) == 1
    assert post.names() == [".taken-a.json", "b.json"]


@proves("FILES-INBOX")
def test_a_folder_within_an_agents_folder_is_rejected(tmp_path: Path) -> None:
    post = Post(tmp_path)
    (post.inbox / "ada" / "deep").mkdir(parents=True)
    post.run()
    assert "it is a folder" in (post.inbox / "ada" / "rejected" / "deep.reason.txt").read_text()


@proves("FILES-INBOX", "FILES-CRASH")
def test_a_crash_at_any_point_sends_a_message_again_at_most(tmp_path: Path) -> None:
    operations = 0
    while True:
        (tmp_path / str(operations)).mkdir()
        post = Post(tmp_path / str(operations))
        post.drop("a.json", b"bad")
        post.drop("ada/b.json")
        try:
            post.run(MortalDisk(Beneath(post.data), operations))
        except Died:
            post.run()
        else:
            break
        assert {raw for raw, _ in post.sent} == {b"bad", b"good"}
        kept = tree(post.inbox)
        assert [name for name, data in kept.items() if data == b"bad"] != []
        assert kept["ada/processed/b.json"] == b"good"
        assert "a.json" not in kept
        assert "ada/b.json" not in kept
        operations += 1
    assert operations > 5


@proves("FILES-INBOX")
def test_a_message_that_was_taken_back_is_no_trouble(tmp_path: Path) -> None:
    class Retracting(Post):
        """Its first message makes its sender take the second one back."""

        def send(self, raw: bytes, speaker: str | None) -> Answer:
            """Take a message down."""
            (self.inbox / "b.json").unlink()
            return super().send(raw, speaker)

    post = Retracting(tmp_path)
    post.drop("a.json")
    post.drop("b.json")
    post.run()
    assert post.sent == [(b"good", None)]
    assert post.names() == ["processed/a.json"]


@proves("FILES-INBOX")
def test_a_name_that_is_used_again_while_its_message_is_sent_loses_neither(tmp_path: Path) -> None:
    class Busy(Post):
        """The agent drops its next message under the same name at once."""

        def send(self, raw: bytes, speaker: str | None) -> Answer:
            """Take a message down."""
            if raw == b"first":
                self.drop("ada/status.json", b"second")
            return super().send(raw, speaker)

    post = Busy(tmp_path)
    post.drop("ada/status.json", b"first")
    post.run()
    post.run()
    assert post.sent == [(b"first", "ada"), (b"second", "ada")]
    assert post.names() == ["ada/processed/status-2.json", "ada/processed/status.json"]


@proves("FILES-INBOX", "FILES-CRASH")
def test_what_a_crash_left_behind_is_finished_before_the_next_of_its_name(tmp_path: Path) -> None:
    post = Post(tmp_path)
    post.drop("ada/x.json", b"earlier").rename(post.inbox / "ada" / ".taken-x.json")
    post.drop("ada/x.json", b"later")
    post.run()
    assert post.sent == [(b"earlier", "ada"), (b"later", "ada")]
    assert tree(post.inbox)["ada/processed/x.json"] == b"earlier"


@proves("FILES-INBOX")
def test_it_has_a_name() -> None:
    assert Inbox.name == "inbox"
