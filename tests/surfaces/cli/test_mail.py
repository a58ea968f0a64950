"""`mail`: letters from files and options, inbox filters, and text that cannot act."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from dragoman.engine.queries import mail
from dragoman.protocols.agentmail.wire import MESSAGE_TYPES
from dragoman.text.safe_text import HARMFUL
from tests.requirements import proves
from tests.surfaces.cli.console import NOON, Console
from tests.surfaces.cli.message_files import MessageFiles

pytestmark = proves("CLI-MAIL")

HOSTILE = "\x1b[2J\x00\u202eevil\n---\nid: x\n---\n<script>alert(1)</script>\nok: true"


def send(dragoman: Console, *args: str, by: str = "ada") -> str:
    """Send a letter composed from options and return its id."""
    return dragoman.ask("mail", "send", "--as", by, *args)["id"]


def send_untyped(dragoman: Console, to: str = "bob", **options: str) -> str:
    """Send a letter without a type and return its id."""
    args = [word for name, value in options.items() for word in (f"--{name}", value)]
    return send(dragoman, "--to", to, "--subject", "Hello", "--body", "How are you?", *args)


def message_ids(dragoman: Console, *args: str) -> list[str]:
    """Ids of the letters that a command lists."""
    return [row["id"] for row in dragoman.ask("mail", *args)["messages"]]


PROGRESS = (
    *("--type", "PROGRESS", "--bead", "ol-1", "--to", "boss"),
    *("--field", "step=Step 4", "--field", "status=testing", "--field", "context_usage=40%"),
)
DONE = (
    *("--type", "done", "--bead", "ol-1", "--to", "boss", "--field", "commit_sha=0a1b2c3"),
    *("--field", "files=a.py, b.py", "--field", "tests_pass=PASS", "--field", "lint_pass=yes"),
    *("--field", "build_pass=ok", "--field", "summary=It works."),
)


def test_mail_from_options_reaches_the_inbox_of_its_recipient(dragoman: Console) -> None:
    sent = dragoman.ask(
        *("mail", "send", "--as", "ada", "--to", "bob", "--cc", "carol", "--subject", "Lunch"),
        *("--body", "At noon?", "--thread", "t-1", "--importance", "high", "--ack"),
        *("--attach", "menu.pdf", "--id", "m1", "--now", NOON),
    )
    assert sent == {
        "ok": True,
        "id": "m1",
        "thread_id": "t-1",
        "type": "UNKNOWN",
        "bead_id": "",
        "effect": {"applied": False},
        "warnings": ["nobody is known as 'bob', 'carol': the letter waits until somebody is"],
        "repeated": False,
    }
    (row,) = dragoman.ask("mail", "inbox", "--as", "bob")["messages"]
    assert (row["from"], row["to"], row["cc"]) == ("ada", ["bob"], ["carol"])
    assert (row["subject"], row["body_md"], row["importance"]) == ("Lunch", "At noon?", "high")
    assert (row["ack_required"], row["attachments"]) == (True, ["menu.pdf"])
    assert row["timestamp"] == "2026-02-09T12:00:00.000Z"
    assert message_ids(dragoman, "inbox", "--as", "carol") == ["m1"]
    reply = send(dragoman, "--to", "ada", "--reply-to", "m1", "--body", "Yes", by="bob")
    assert message_ids(dragoman, "thread", "t-1") == ["m1", reply]


def test_extra_fields_are_shown_as_passed_on(dragoman: Console, message_file: MessageFiles) -> None:
    row = {"subject": "Hi", "body_md": "x", "to": ["bob"], "topic": "π"}
    sent = dragoman.ask("send", message_file(row))["reply"]
    shown = dragoman("mail", "show", sent["id"])
    assert 'Passed on: {"topic": "π"}' in shown.out


@proves("MAIL-ECHO")
def test_repeated_type_in_a_reply_is_a_warning(dragoman: Console) -> None:
    sent = send(dragoman, *PROGRESS)
    thanks = ("--reply-to", sent, "--subject", "Re: [ol-1] PROGRESS", "--body", "Good.")
    result = dragoman("mail", "send", "--as", "boss", *thanks)
    assert (
        "warning: a reply that repeats the type of its letter is delivered as a plain" in result.out
    )
    assert message_ids(dragoman, "inbox", "--as", "ada", "--type", "PROGRESS") == []


def test_mail_from_a_file_belongs_to_its_sender(
    dragoman: Console, message_file: MessageFiles
) -> None:
    row = {"id": 7, "from": "ada", "to": ["bob"], "subject": "PROGRESS", "body_md": "Bead: ol-1"}
    first = dragoman.ask("send", message_file(json.dumps(row)))["reply"]
    assert (first["id"], first["type"], first["bead_id"]) == ("7", "PROGRESS", "ol-1")
    assert dragoman.ask("send", message_file(json.dumps(row)))["repeated"] is True
    refused = dragoman.ask("send", message_file(json.dumps(row)), "--as", "eve", code=1)
    assert refused["code"] == "identity_mismatch"
    mine = dragoman.ask("mail", "send", "--to", "bob", "--body", "Hi")
    assert dragoman.ask("mail", "show", mine["id"])["from"] == "owner"


@proves("MAIL-COMPOSE")
def test_typed_mail_is_composed_from_fields_and_moves_its_task(
    dragoman: Console,
) -> None:
    sent = dragoman.ask("mail", "send", "--as", "ada", *PROGRESS)
    assert (sent["type"], sent["bead_id"], sent["thread_id"]) == ("PROGRESS", "ol-1", "ol-1")
    assert sent["effect"] == {"applied": True}
    row = dragoman.ask("mail", "show", sent["id"])
    assert row["problems"] == []
    assert row["parsed"]["context_usage"] == 40
    dragoman.ask("mail", "send", "--as", "ada", *DONE)
    assert dragoman.ask("task", "show", "ol-1")["status"] == "review"
    by_hand = ("--type", "HELP_RESPONSE", "--bead", "ol-1", "--to", "ada", "--body", "Try again")
    assert dragoman.ask("mail", "send", *by_hand)["type"] == "HELP_RESPONSE"


FIELDS = {
    "BEAD_ACCEPTED": ("title=Login", "started_at=2026-02-09T12:00:00Z"),
    "PROGRESS": ("step=1", "status=x", "context_usage=1", "files_touched=a,b"),
    "HELP_REQUEST": ("issue_type=stuck", "problem=p", "what_tried=w", "question=q"),
    "HELP_RESPONSE": ("guidance=g",),
    "OFFERING_READY": DONE[7::2],
    "DONE": DONE[7::2],
    "FAILED": (
        "failure_type=ERROR",
        "reason=r",
        "internal_attempts=2",
        "partial_commit_sha=c",
        "files=a",
    ),
    "CHECKPOINT": (
        "checkpoint_reason=Manual",
        "partial_commit_sha=c",
        "progress=p",
        "context_usage=9",
        "next_steps=n",
    ),
    "SPAWN_REQUEST": ("orchestrator=boss", "resume=true", "partial_commit_sha=c"),
    "SPAWN_ACK": ("status=spawned", "session=s-1"),
}


@proves("MAIL-COMPOSE")
def test_subject_option_follows_the_type(dragoman: Console) -> None:
    for text in (PROGRESS, (*PROGRESS[:6], "--body", "Half way.")):
        reply = dragoman.ask("mail", "send", "--as", "ada", *text, "--subject", "half way")
        assert (reply["type"], reply["bead_id"]) == ("PROGRESS", "ol-1")
        assert reply["effect"] == {"applied": True}
        subject = dragoman.ask("mail", "show", reply["id"])["subject"]
        assert subject == "[ol-1] PROGRESS: half way"


@proves("MAIL-COMPOSE")
def test_reply_is_typed_without_a_bead(dragoman: Console) -> None:
    question = send(dragoman, "--to", "bob", "--subject", "HELP_REQUEST", "--body", "Where to?")
    answer = ("--type", "HELP_RESPONSE", "--reply-to", question, "--field", "guidance=Go left.")
    reply = dragoman.ask("mail", "send", "--as", "bob", *answer)
    assert (reply["type"], reply["bead_id"], reply["effect"]) == (
        "HELP_RESPONSE",
        "",
        {"applied": True},
    )


SPAWN = ("--type", "SPAWN_REQUEST", "--bead", "b", "--field", "orchestrator=boss")


@proves("MAIL-SPAWN")
def test_spawn_request_for_a_ready_bead_has_no_warning(dragoman: Console) -> None:
    dragoman.make("One", "--id", "b", "--ready")
    reply = dragoman.ask("mail", "send", *SPAWN, "--field", "resume=false")
    assert (reply["effect"], reply["warnings"]) == ({"applied": True}, [])


@proves("MAIL-COMPOSE")
@pytest.mark.parametrize("type", MESSAGE_TYPES)
def test_every_type_can_be_composed(dragoman: Console, type: str) -> None:
    fields = [word for field in FIELDS[type] for word in ("--field", field)]
    id = send(dragoman, "--type", type, "--bead", "ol-1", "--to", "boss", *fields)
    row = dragoman.ask("mail", "show", id)
    assert (row["type"], row["bead_id"], row["problems"]) == (type, "ol-1", [])


@proves("CLI-EXIT")
@pytest.mark.parametrize(
    ("args", "expected"),
    [
        (("--to", "bob"), "the letter says nothing: add --subject TEXT, --body TEXT or --type"),
        (("--to", "bob", "--subject", " ", "--body", "\n"), "the letter says nothing"),
        (("--type", "LUNCH", "--bead", "ol-1"), "'LUNCH' is not a type of letter; known: BEAD_ACC"),
        (("--type", "PROGRESS", "--field", "step=1"), "bead_id is empty: a PROGRESS requires it"),
        (("--type", "DONE", "--bead", "b", "--field", "colour=red"), "it has commit_sha, files"),
        (("--type", "DONE", "--bead", "b", "--field", "tests"), "of the form NAME=VALUE"),
        (("--type", "DONE", "--bead", "b", "--field", "tests_pass=maybe"), "use PASS or FAIL"),
        (("--type", "PROGRESS", "--bead", "b", "--field", "context_usage=x"), "a whole number"),
        (("--type", "PROGRESS", "--bead", "b", "--field", "step=1"), "status is empty: a PROG"),
        ((*SPAWN, "--field", "partial_commit_sha=c"), "resume is empty: a SPAWN_REQUEST requires"),
        ((*SPAWN, "--field", "resume=maybe"), "resume is 'maybe': use true or false"),
        ((*SPAWN, "--field", "resume=true"), "partial_commit_sha is empty: a SPAWN_REQUEST req"),
        ((*PROGRESS, "--body", "x"), "from --body or from --field"),
        (("--to", "bob", "--field", "step=1"), "add --type TYPE"),
        (("--to", "bob", "--bead", "ol-1"), "add --type TYPE"),
        (("--to", ""), "an empty argument stands after --to"),
        (
            ("--type", "HELP_REQUEST", "--bead", "b", *("--field", "issue_type=HUNGRY")),
            "use one of",
        ),
    ],
)
def test_invalid_mail_is_a_usage_error(
    dragoman: Console, args: tuple[str, ...], expected: str
) -> None:
    answer = dragoman("mail", "send", "--as", "ada", *args)
    assert answer.code == 2
    assert expected in answer.err
    assert not dragoman.data.exists()


@proves("MAIL-FILTERS")
def test_inbox_filters_select_messages(dragoman: Console) -> None:
    progress, done = send(dragoman, *PROGRESS), send(dragoman, *DONE)
    failing = [word.replace("tests_pass=PASS", "tests_pass=FAIL") for word in DONE]
    unchecked = send(dragoman, *failing)
    other = send_untyped(dragoman, "boss", thread="t-1")
    wants_ack = send(dragoman, "--to", "boss", "--body", "?", "--ack", by="bob")
    everything = [progress, done, unchecked, other, wants_ack]
    dragoman.ask("mail", "read", done, "--as", "boss")
    inbox = ("inbox", "--as", "boss")
    assert message_ids(dragoman, *inbox) == everything
    assert message_ids(dragoman, *inbox, "--newest") == everything[::-1]
    assert message_ids(dragoman, *inbox, "--unread") == [progress, unchecked, other, wants_ack]
    assert message_ids(dragoman, *inbox, "--pending") == [wants_ack]
    assert message_ids(dragoman, *inbox, "--type", "progress") == [progress]
    assert message_ids(dragoman, *inbox, "--bead", "ol-1") == [progress, done, unchecked]
    assert message_ids(dragoman, *inbox, "--thread", "t-1") == [other]
    assert message_ids(dragoman, *inbox, "--from", "bob") == [wants_ack]
    assert message_ids(dragoman, *inbox, "--only", "completions") == [done, unchecked]
    assert message_ids(dragoman, *inbox, "--only", "successes") == [done, unchecked]
    assert message_ids(dragoman, *inbox, "--only", "checked") == [done]
    assert message_ids(dragoman, "inbox", "--box", "sent", "--as", "bob") == [wants_ack]
    assert message_ids(dragoman, "inbox", "--agent", "boss", "--limit", "2") == everything[:2]
    first = dragoman.ask("mail", *inbox, "--limit", "2")
    assert message_ids(dragoman, *inbox, "--after", str(first["cursor"])) == everything[2:]
    assert message_ids(dragoman, "inbox", "--box", "waiting") == [
        progress,
        unchecked,
        other,
        wants_ack,
    ]
    assert message_ids(dragoman, "inbox", "--box", "overdue") == []


def test_person_has_an_inbox(dragoman: Console) -> None:
    id = send_untyped(dragoman, "owner")
    assert message_ids(dragoman, "inbox") == [id]
    assert dragoman.ask("mail", "read", id)["read_by"] == ["owner"]


def test_read_marks_a_message_as_read_and_shows_it(dragoman: Console) -> None:
    id = send_untyped(dragoman)
    assert dragoman.ask("mail", "show", id, "--as", "bob")["read"] is False
    assert dragoman.ask("mail", "read", id, "--as", "bob")["read"] is True
    head = len(dragoman("events", "--json").objects)
    assert "How are you?" in dragoman("mail", "read", id, "--as", "bob").out
    assert len(dragoman("events", "--json").objects) == head
    assert "readBy:\n  - bob\n" in _mail_file(dragoman.data, id)


def _mail_file(data: Path, thread: str) -> str:
    (file,) = (data / "mail" / thread).glob("*-MAIL.md")
    return file.read_text(encoding="utf-8")


@proves("CLI-EXIT")
def test_mark_of_a_message_in_no_box_of_the_caller_is_refused(dragoman: Console) -> None:
    one, other = send_untyped(dragoman), send_untyped(dragoman, "carol")
    assert dragoman("mail", "ack", one, "--as", "bob").out == f"{one} acknowledged\n"
    assert dragoman.ask("mail", "ack", other, "--as", "bob", code=1)["code"] == "not_authorized"
    assert dragoman.ask("mail", "show", one)["acked_by"] == ["bob"]
    result = dragoman("mail", "read", "nowhere", "--as", "bob")
    assert (result.code, result.out) == (1, "")
    assert result.err.startswith("mail_not_found: there is no letter nowhere: ")


@proves("MAIL-HOSTILE", "CLI-SAFE-TEXT")
def test_hostile_mail_cannot_control_the_terminal(
    dragoman: Console, message_file: MessageFiles
) -> None:
    row = {"to": ["bob"], "subject": HOSTILE, "body_md": HOSTILE, "thread_id": "t"}
    row |= {"attachments": [HOSTILE]}
    id = dragoman.ask("send", message_file(json.dumps(row)), "--as", "ada")["reply"]["id"]
    for args in (
        ("inbox", "--as", "bob"),
        ("show", id),
        ("thread", "t"),
        ("search", "evil"),
        ("summarize", "t"),
        ("inbox", "--as", "bob", "--watch"),
    ):
        for result in (dragoman("mail", *args), dragoman("mail", *args, "--json")):
            assert result.code == 0
            assert HARMFUL.search(result.out) is None, args
    shown = dragoman("mail", "show", id).out.splitlines()
    assert "  ok: true" in shown
    assert not [line for line in shown if line.startswith(("ok:", "---"))]
    assert HARMFUL.search(dragoman("events").out) is None


@proves("MAIL-PAGES")
@pytest.mark.parametrize("order", [(), ("--newest",)])
def test_page_that_ended_early_says_so(
    dragoman: Console, monkeypatch: pytest.MonkeyPatch, order: tuple[str, ...]
) -> None:
    monkeypatch.setattr(mail, "MAX_SCANNED", 2)
    for _ in range(5):
        send_untyped(dragoman)
    inbox = ("mail", "inbox", "--as", "bob", "--thread", "elsewhere", *order)
    hint = "There may be older ones" if order else "There may be more: add --after 2"
    assert hint in dragoman(*inbox).out
    assert "There may be" not in dragoman("mail", "inbox", "--as", "carol", *order).out


@proves("MAIL-PAGES")
def test_thread_of_many_pages_is_shown_page_by_page(
    dragoman: Console, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(mail, "MAX_PAGE_BYTES", 1)
    sent = [send_untyped(dragoman, thread="t-1") for _ in range(3)]
    assert message_ids(dragoman, "thread", "t-1") == sent[:1]
    after = str(dragoman.ask("mail", "thread", "t-1")["cursor"])
    assert f"There are more: add --after {after}" in dragoman("mail", "thread", "t-1").out
    assert message_ids(dragoman, "thread", "t-1", "--after", after) == sent[1:2]


@proves("MAIL-HOSTILE", "CLI-EXIT")
@pytest.mark.parametrize(
    ("args", "code"),
    [
        (("show", "nowhere"), "mail_not_found"),
        (("show", "../x"), "invalid_id"),
        (("thread", "a/b"), "invalid_id"),
        (("summarize", "a b"), "invalid_id"),
        (("inbox", "--agent", "a b"), "invalid_id"),
        (("send", "--to", "a b", "--body", "x", "--as", "ada"), "invalid_id"),
        (("send", "--body", "x", "--as", "ada"), "invalid_field"),
        (
            ("send", "--to", "bob", "--body", "x", "--reply-to", "nowhere", "--as", "ada"),
            "mail_not_found",
        ),
        (("send", "--to", "bob", "--body", "x" * 300_000, "--as", "ada"), "message_too_large"),
    ],
)
def test_impossible_command_is_refused(dragoman: Console, args: tuple[str, ...], code: str) -> None:
    send_untyped(dragoman)
    refused = dragoman.ask("mail", *args, code=1)
    assert (refused["ok"], refused["code"]) == (False, code)
    assert refused["detail"]


@proves("CLI-EXIT")
@pytest.mark.parametrize(
    "args",
    [
        ("inbox", "--limit", "0"),
        ("inbox", "--limit", "1001"),
        ("inbox", "--after", "-1"),
        ("inbox", "--after", "x"),
        ("inbox", "--box", "late"),
        ("inbox", "--only", "good"),
        ("inbox", "--newest", "--watch"),
        ("inbox", "--newest", "--after", "3"),
        ("search",),
        ("ack",),
        (),
    ],
)
def test_invalid_arguments_are_usage_errors(dragoman: Console, args: tuple[str, ...]) -> None:
    send_untyped(dragoman)
    assert dragoman("mail", *args).code == 2


def test_inbox_shows_read_state_of_a_message_that_awaits_an_ack(
    dragoman: Console,
) -> None:
    send(dragoman, "--to", "bob", "--body", "?", "--ack")
    assert dragoman("mail", "inbox", "--as", "bob").out.endswith("  unread, no ack of bob\n")
    sent = dragoman("mail", "inbox", "--as", "ada", "--box", "sent").out
    assert sent.endswith("  no ack of bob\n")


def test_watch_prints_messages_as_they_arrive(dragoman: Console) -> None:
    first = send_untyped(dragoman)
    later: list[str] = []
    steps: list[Callable[[], Any]] = [
        lambda: later.append(send_untyped(dragoman)),
        lambda: send_untyped(dragoman, "carol"),
        lambda: later.append(send_untyped(dragoman)),
    ]

    def wait() -> bool:
        if steps:
            steps.pop(0)()
            return True
        return False

    result = dragoman("mail", "inbox", "--as", "bob", "--watch", "--json", wait=wait)
    assert [row["id"] for row in result.objects] == [first, *later]
    assert dragoman("mail", "inbox", "--as", "bob", "--watch").out.count("ada → bob") == 3


@proves("MAIL-ACK")
def test_watch_prints_overdue_messages(dragoman: Console) -> None:
    dragoman("agent", "add", "olga", "--role", "orchestrator")
    args = ("--to", "bob", "--body", "?", "--ack", "--now", NOON)
    id = send(dragoman, *args)
    steps = [lambda: dragoman("tick", "--now", "2026-02-10T12:00:00Z")]

    def wait() -> bool:
        return bool(steps and steps.pop(0)())

    result = dragoman("mail", "inbox", "--box", "overdue", "--watch", "--json", wait=wait)
    assert [row["id"] for row in result.objects] == [id]
    assert dragoman("mail", "inbox", "--as", "bob").out.endswith("  unread, overdue\n")
    dragoman.ask("mail", "read", id, "--as", "bob")
    assert dragoman("mail", "inbox", "--as", "bob").out.endswith("  overdue\n")
    (late,) = dragoman.ask("mail", "inbox", "--as", "olga", "--type", "LATE")["messages"]
    assert " LATE " in dragoman("mail", "inbox", "--as", "olga").out
    assert "Type: LATE\n" in dragoman("mail", "show", late["id"], "--as", "olga").out


@proves("MAIL-SUMMARY")
def test_search_finds_words_and_summarize_condenses_a_thread(dragoman: Console) -> None:
    progress, other = send(dragoman, *PROGRESS), send_untyped(dragoman)
    assert message_ids(dragoman, "search", "testing") == [progress]
    assert message_ids(dragoman, "search", "How are") == [other]
    assert message_ids(dragoman, "search", '"are How"') == [], "a phrase"
    without = dragoman("mail", "search", "--json", "--", "ada", "-testing").json["messages"]
    assert [row["id"] for row in without] == [other]
    assert message_ids(dragoman, "search", "nothing") == []
    assert dragoman("mail", "search", "nothing").out == "none\n"
    summary = dragoman.ask("mail", "summarize", "ol-1")
    assert (summary["messages"], summary["last_status"]) == (1, "testing")
    assert "last status  testing\n" in dragoman("mail", "summarize", "ol-1").out
    answer = ("--type", "HELP_RESPONSE", "--bead", "ol-1", "--field", "guidance=so", "--to", "bob")
    send(dragoman, *answer)
    assert "last status  HELP_RESPONSE\n" in dragoman("mail", "summarize", "ol-1").out


@proves("MAIL-ACK-WITHIN")
def test_ack_within_option_sets_the_deadline(dragoman: Console) -> None:
    args = ("--to", "bob", "--subject", "Lunch", "--now", NOON)
    id = send(dragoman, *args, "--ack-within", "10m")
    (file,) = (dragoman.data / "mail").glob("*/*.md")
    assert 'dueBy: "2026-02-09T12:10:00.000Z"' in file.read_text()
    assert message_ids(dragoman, "inbox", "--as", "bob", "--pending") == [id]
    assert message_ids(dragoman, "inbox", "--box", "overdue", "--now", NOON) == []
    assert message_ids(dragoman, "inbox", "--box", "overdue", "--now", "2026-02-09T12:10:00Z") == [
        id
    ]
    for wrong in (("0",), ("soon",), ("10m", "--no-ack")):
        result = dragoman("mail", "send", "--as", "ada", *args, "--ack-within", *wrong)
        assert result.code != 0
    assert message_ids(dragoman, "inbox", "--as", "bob") == [id]


@proves("MAIL-ONE-QUERY")
def test_search_query_means_the_same_in_one_or_several_arguments_and_in_call(
    dragoman: Console,
) -> None:
    one, two = (
        dragoman.ask("mail", "send", "--as", "ada", "--to", "bob", "--subject", text)["id"]
        for text in ("hi there", "going home")
    )

    def search_by_call(query: str) -> list[str]:
        found = dragoman.ask("call", "mail.search", json.dumps({"query": query}))["messages"]
        return [row["id"] for row in found]

    for query, expected in (
        ("hi OR going", [two, one]),
        ("there hi", [one]),
        ('"there hi"', []),
        ('"going home" -there', [two]),
    ):
        assert search_by_call(query) == expected
        assert message_ids(dragoman, "search", query) == expected
        result = dragoman("mail", "search", "--json", "--", *query.split(" "))
        assert [row["id"] for row in result.json["messages"]] == expected


@proves("FILES-ARCHIVE")
def test_archive_carries_inboxes_threads_and_marks(dragoman: Console, tmp_path: Path) -> None:
    one, two = send_untyped(dragoman, thread="t"), send_untyped(dragoman, thread="t")
    dragoman.ask("mail", "read", one, "--as", "bob")
    dragoman.ask("export", str(tmp_path / "all.tar"))
    restored = Console(tmp_path / "restored")
    restored.ask("import", str(tmp_path / "all.tar"))
    assert message_ids(restored, "inbox", "--as", "bob") == [one, two]
    assert message_ids(restored, "inbox", "--as", "bob", "--unread") == [two]
    assert message_ids(restored, "thread", "t") == [one, two]
    assert message_ids(restored, "search", "How are") == [two, one]
    assert restored("verify").code == 0
    files = sorted((dragoman.data / "mail" / "t").iterdir())
    assert len(files) == 2
    for file in files:
        path = file.relative_to(dragoman.data)
        assert (restored.data / path).read_bytes() == (dragoman.data / path).read_bytes()


@proves("MAIL-FOREIGN-FILES")
def test_foreign_file_among_messages_is_named_and_left_alone(dragoman: Console) -> None:
    send = ("mail", "send", "--as", "ada", "--to", "bob", "--thread", "t-1", "--subject", "Hi")
    dragoman.ask(*send, "--body", "yo")
    folder = dragoman.data / "mail/t-1"
    forged = folder / "00000007-DONE.md"
    forged.write_text("Bead: x\n", encoding="utf-8")
    (folder / "notes.txt").write_text("somebody's own", encoding="utf-8")
    result = dragoman("verify")
    assert result.code == 1
    assert "mail/t-1/00000007-DONE.md is surplus" in result.out
    assert "surplus files are not dragoman's and are left alone: move them away" in result.out
    assert "notes.txt" not in result.out
    # No command reads or removes it, and new letters are written beside it.
    for command in ("tick", "rebuild-files"):
        dragoman.ask(command)
    dragoman.ask(*send, "--body", "again")
    listed = sorted(path.name for path in folder.iterdir() if path.suffix)
    assert {"00000007-DONE.md", "notes.txt"} < set(listed)
    assert len(listed) == 4
    assert len(dragoman.ask("mail", "thread", "t-1")["messages"]) == 2
    forged.unlink()
    assert dragoman.ask("verify")["findings"] == []


@proves("LOST-CURSOR")
@pytest.mark.parametrize(
    "options",
    [
        ("--as", "bob"),
        (
            "--box",
            "overdue",
        ),
    ],
)
def test_watch_from_beyond_the_end_warns_and_shows_new_messages(
    dragoman: Console, options: tuple[str, ...]
) -> None:
    args = ("--to", "bob", "--body", "?", "--ack", "--now", NOON)
    id = send(dragoman, *args)
    later: list[str] = []
    steps = [
        lambda: later.append(send(dragoman, *args)),
        lambda: dragoman("tick", "--now", "2026-02-10T12:00:00Z"),
    ]

    def wait() -> bool:
        if not steps:
            return False
        steps.pop(0)()
        return True

    result = dragoman("mail", "inbox", *options, "--watch", "--after", "900", "--json", wait=wait)

    assert id not in later
    assert [row["id"] for row in result.objects] == later
    assert result.err.count("before 900: it may have been restored") == 1
