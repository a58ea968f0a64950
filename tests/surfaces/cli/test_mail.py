"""mail: letters from files and from options, boxes and their filters, and text that cannot act."""

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from dragoman.engine.reads import mailbox
from dragoman.surfaces.cli.mail.compose import TYPES
from dragoman.surfaces.cli.person import login_name
from dragoman.text.safe_text import HARMFUL
from tests.requirements import proves
from tests.surfaces.cli.console import NOON, Console
from tests.surfaces.cli.letters import Letters

pytestmark = proves("CLI-MAIL")

HOSTILE = "\x1b[2J\x00\u202eevil\n---\nid: x\n---\n<script>alert(1)</script>\nok: true"


def send(dragoman: Console, *words: str, by: str = "ada") -> str:
    """A letter from options; its id."""
    return dragoman.ask("mail", "send", "--as", by, *words)["id"]


def plain(dragoman: Console, to: str = "bob", **more: str) -> str:
    """A letter without a type."""
    words = [word for name, value in more.items() for word in (f"--{name}", value)]
    return send(dragoman, "--to", to, "--subject", "Hello", "--body", "How are you?", *words)


def ids(dragoman: Console, *words: str) -> list[str]:
    """The ids of the letters that a command lists."""
    return [row["id"] for row in dragoman.ask("mail", *words)["messages"]]


PROGRESS = (
    *("--type", "PROGRESS", "--bead", "ol-1", "--to", "boss"),
    *("--field", "step=Step 4", "--field", "status=testing", "--field", "context_usage=40%"),
)
DONE = (
    *("--type", "done", "--bead", "ol-1", "--to", "boss", "--field", "commit=0a1b2c3"),
    *("--field", "files=a.py, b.py", "--field", "tests=PASS", "--field", "lint=yes"),
    *("--field", "build=ok", "--field", "summary=It works."),
)


def test_a_letter_of_options_lies_in_the_box_of_its_recipient(dragoman: Console) -> None:
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
        "warnings": [],
        "repeated": False,
    }
    (row,) = dragoman.ask("mail", "inbox", "--as", "bob")["messages"]
    assert (row["from"], row["to"], row["cc"]) == ("ada", ["bob"], ["carol"])
    assert (row["subject"], row["body_md"], row["importance"]) == ("Lunch", "At noon?", "high")
    assert (row["ack_required"], row["attachments"]) == (True, ["menu.pdf"])
    assert row["timestamp"] == "2026-02-09T12:00:00.000Z"
    assert ids(dragoman, "inbox", "--as", "carol") == ["m1"]
    reply = send(dragoman, "--to", "ada", "--reply-to", "m1", "--body", "Yes", by="bob")
    assert ids(dragoman, "thread", "t-1") == ["m1", reply]


def test_what_a_row_says_besides_is_shown_with_the_letter(
    dragoman: Console, letter: Letters
) -> None:
    row = {"subject": "Hi", "body_md": "x", "to": ["bob"], "topic": "π"}
    sent = dragoman.ask("mail", "send", letter(row))
    shown = dragoman("mail", "show", sent["id"], "--peek")
    assert 'Passed on: {"topic": "\\u03c0"}' in shown.out


@proves("MAIL-ECHO")
def test_who_repeats_a_type_in_a_reply_is_told_that_it_was_plain(dragoman: Console) -> None:
    sent = send(dragoman, *PROGRESS)
    thanks = ("--reply-to", sent, "--subject", "Re: [ol-1] PROGRESS", "--body", "Good.")
    told = dragoman("mail", "send", "--as", "boss", *thanks)
    assert "warning: it repeats the type of the letter that it replies to" in told.out
    assert ids(dragoman, "inbox", "--as", "ada", "--type", "PROGRESS") == []


def test_a_letter_of_a_file_is_its_senders(dragoman: Console, letter: Letters) -> None:
    row = {"id": 7, "from": "ada", "to": ["bob"], "subject": "PROGRESS", "body_md": "Bead: ol-1"}
    first = dragoman.ask("mail", "send", letter(json.dumps(row)))
    assert (first["id"], first["type"], first["bead_id"]) == ("7", "PROGRESS", "ol-1")
    assert dragoman.ask("mail", "send", letter(json.dumps(row)))["repeated"] is True
    refused = dragoman.ask("mail", "send", letter(json.dumps(row)), "--as", "eve", code=1)
    assert refused["code"] == "identity_mismatch"
    mine = dragoman.ask("mail", "send", "--to", "bob", "--body", "Hi")
    assert dragoman.ask("mail", "show", mine["id"], "--peek")["from"] == login_name()


@proves("MAIL-COMPOSE")
def test_a_letter_of_a_type_is_written_from_its_fields_and_moves_its_task(
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
    "FAILED": ("failure_type=ERROR", "reason=r", "internal_attempts=2", "commit=c", "files=a"),
    "CHECKPOINT": ("reason=Manual", "commit=c", "progress=p", "context_usage=9", "next_steps=n"),
    "SPAWN_REQUEST": ("orchestrator=boss", "resume=true", "checkpoint=c"),
    "SPAWN_ACK": ("status=spawned", "session=s-1"),
}


@proves("MAIL-COMPOSE")
@pytest.mark.parametrize(
    ("subject", "sent"),
    [
        ("half way", "[ol-1] PROGRESS: half way"),
        ("PROGRESS half way", "[ol-1] PROGRESS half way"),
        ("[ol-1] PROGRESS half way", "[ol-1] PROGRESS half way"),
        ("[ol-2] PROGRESS", "[ol-1] PROGRESS: [ol-2] PROGRESS"),
        ("not done yet", "[ol-1] PROGRESS: not done yet"),
        ("Re: half way", "[ol-1] PROGRESS: Re: half way"),
    ],
)
def test_a_subject_that_is_typed_does_not_take_the_type_away(
    dragoman: Console, subject: str, sent: str
) -> None:
    for text in (PROGRESS, (*PROGRESS[:6], "--body", "Half way.")):
        told = dragoman.ask("mail", "send", "--as", "ada", *text, "--subject", subject)
        assert (told["type"], told["bead_id"]) == ("PROGRESS", "ol-1")
        assert told["effect"] == {"applied": True}
        assert dragoman.ask("mail", "show", told["id"], "--as", "boss")["subject"] == sent


@proves("MAIL-COMPOSE")
def test_an_answer_is_typed_without_a_bead(dragoman: Console) -> None:
    asked = send(dragoman, "--to", "bob", "--subject", "HELP_REQUEST", "--body", "Where to?")
    answer = ("--type", "HELP_RESPONSE", "--reply-to", asked, "--field", "guidance=Go left.")
    told = dragoman.ask("mail", "send", "--as", "bob", *answer)
    assert (told["type"], told["bead_id"], told["effect"]) == (
        "HELP_RESPONSE",
        "",
        {"applied": True},
    )


SPAWN = ("--type", "SPAWN_REQUEST", "--bead", "b", "--field", "orchestrator=boss")


@proves("MAIL-SPAWN")
def test_who_asks_for_a_worker_on_what_is_ready_is_not_warned(dragoman: Console) -> None:
    dragoman.make("One", "--id", "b", "--ready")
    told = dragoman.ask("mail", "send", *SPAWN, "--field", "resume=false")
    assert (told["effect"], told["warnings"]) == ({"applied": True}, [])


@proves("MAIL-COMPOSE")
@pytest.mark.parametrize("type", TYPES)
def test_every_type_can_be_typed(dragoman: Console, type: str) -> None:
    fields = [word for field in FIELDS[type] for word in ("--field", field)]
    id = send(dragoman, "--type", type, "--bead", "ol-1", "--to", "boss", *fields)
    row = dragoman.ask("mail", "show", id, "--peek")
    assert (row["type"], row["bead_id"], row["problems"]) == (type, "ol-1", [])


@proves("CLI-EXIT")
@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("letter.json", "--to", "bob"), "from a file or from options"),
        (("--to", "bob"), "the letter says nothing: add --subject TEXT, --body TEXT or --type"),
        (("--to", "bob", "--subject", " ", "--body", "\n"), "the letter says nothing"),
        (("--type", "LUNCH", "--bead", "ol-1"), "'LUNCH' is not a type of letter; known: BEAD_ACC"),
        (("--type", "PROGRESS", "--field", "step=1"), "name it with --bead ID"),
        (("--type", "DONE", "--bead", "b", "--field", "colour=red"), "DONE has commit, files"),
        (("--type", "DONE", "--bead", "b", "--field", "tests"), "as NAME=VALUE"),
        (("--type", "DONE", "--bead", "b", "--field", "tests=maybe"), "neither PASS nor FAIL"),
        (("--type", "PROGRESS", "--bead", "b", "--field", "context_usage=x"), "a whole number"),
        (("--type", "PROGRESS", "--bead", "b", "--field", "step=1"), "needs status, context_usage"),
        ((*SPAWN, "--field", "checkpoint=c"), "SPAWN_REQUEST needs resume: add --field resume=…"),
        ((*SPAWN, "--field", "resume=maybe"), "'maybe' is neither true nor false"),
        ((*SPAWN, "--field", "resume=true"), "checkpoint is empty: name the commit to resume from"),
        ((*PROGRESS, "--field", "step=2"), "step is given twice"),
        ((*PROGRESS, "--body", "x"), "from --body or from --field"),
        (("--to", "bob", "--field", "step=1"), "add --type TYPE"),
        (("--to", "bob", "--bead", "ol-1"), "add --type TYPE"),
        ((*PROGRESS, "--subject", "FAILED"), "'FAILED' names FAILED beside --type PROGRESS: write"),
        ((*PROGRESS, "--subject", "not DONE yet"), "in small letters, or leave it out"),
        ((*PROGRESS, "--subject", "Re: [ol-1] PROGRESS: x"), "leave out Re: or Fwd:"),
        ((*PROGRESS, "--subject", "[ol-1] Fwd: PROGRESS"), "--reply-to ID says what it replies to"),
        ((*PROGRESS, "--subject", "Re: progress"), "a reply that only repeats a type"),
        (("--to", ""), "an empty word stands after --to"),
        (("nowhere.json",), "No such file"),
        (("--type", "HELP_REQUEST", "--bead", "b", *("--field", "issue_type=HUNGRY")), "needs"),
    ],
)
def test_a_letter_that_cannot_be_written_is_wrong_usage(
    dragoman: Console, words: tuple[str, ...], said: str
) -> None:
    answer = dragoman("mail", "send", "--as", "ada", *words)
    assert answer.code == 2
    assert said in answer.err
    assert not dragoman.data.exists()


@proves("MAIL-FILTERS")
def test_a_box_is_sifted_by_every_filter(dragoman: Console) -> None:
    progress, done = send(dragoman, *PROGRESS), send(dragoman, *DONE)
    failing = [word.replace("tests=PASS", "tests=FAIL") for word in DONE]
    unchecked = send(dragoman, *failing)
    other = plain(dragoman, "boss", thread="t-1")
    wants_ack = send(dragoman, "--to", "boss", "--body", "?", "--ack", by="bob")
    everything = [progress, done, unchecked, other, wants_ack]
    dragoman.ask("mail", "read", done, "--as", "boss")
    box = ("inbox", "--as", "boss")
    assert ids(dragoman, *box) == everything
    assert ids(dragoman, *box, "--newest") == everything[::-1]
    assert ids(dragoman, *box, "--unread") == [progress, unchecked, other, wants_ack]
    assert ids(dragoman, *box, "--pending") == [wants_ack]
    assert ids(dragoman, *box, "--type", "progress") == [progress]
    assert ids(dragoman, *box, "--bead", "ol-1") == [progress, done, unchecked]
    assert ids(dragoman, *box, "--thread", "t-1") == [other]
    assert ids(dragoman, *box, "--from", "bob") == [wants_ack]
    assert ids(dragoman, *box, "--completions") == [done, unchecked]
    assert ids(dragoman, *box, "--successes") == [done, unchecked]
    assert ids(dragoman, *box, "--checked") == [done]
    assert ids(dragoman, "inbox", "--sent", "--as", "bob") == [wants_ack]
    assert ids(dragoman, "inbox", "--agent", "boss", "--limit", "2") == everything[:2]
    first = dragoman.ask("mail", *box, "--limit", "2")
    assert ids(dragoman, *box, "--after", str(first["cursor"])) == everything[2:]
    assert ids(dragoman, "inbox", "--waiting") == [progress, unchecked, other, wants_ack]
    assert ids(dragoman, "inbox", "--overdue") == []


def test_a_person_has_a_box_of_its_own(dragoman: Console) -> None:
    id = plain(dragoman, login_name())
    assert ids(dragoman, "inbox") == [id]
    assert dragoman.ask("mail", "show", id)["read_by"] == [login_name()]


def test_showing_a_letter_marks_it_as_read_in_the_box_where_it_lies(dragoman: Console) -> None:
    id = plain(dragoman)
    assert dragoman.ask("mail", "show", id, "--as", "bob", "--peek")["read"] is False
    assert dragoman.ask("mail", "show", id, "--as", "eve")["read_by"] == []
    assert dragoman.ask("mail", "show", id, "--as", "bob")["read"] is True
    head = len(dragoman("events", "--json").objects)
    dragoman.ask("mail", "show", id, "--as", "bob")
    assert len(dragoman("events", "--json").objects) == head
    assert "readBy:\n  - bob\n" in _file(dragoman.data, id)


def _file(data: Path, thread: str) -> str:
    return (data / "mail" / thread / "0001-MAIL.md").read_text(encoding="utf-8")


@proves("CLI-EXIT")
def test_marks_are_set_one_by_one_and_a_wrong_one_stops_no_other(dragoman: Console) -> None:
    one, two, carols = plain(dragoman), plain(dragoman), plain(dragoman, "carol")
    assert dragoman.ask("mail", "ack", one, "--as", "bob")["letters"] == [
        {"id": one, "acknowledged": True}
    ]
    told = dragoman.ask("mail", "ack", carols, "nowhere", two, "--as", "bob", code=1)
    assert [row.get("code", "") for row in told["letters"]] == [
        *("not_authorized", "mail_not_found", "")
    ]
    assert (told["ok"], told["code"]) == (False, "not_authorized")
    assert dragoman.ask("mail", "show", two, "--peek")["acked_by"] == ["bob"]
    said = dragoman("mail", "read", "nowhere", two, "--as", "bob")
    assert (said.code, said.out) == (1, f"{two} read\n")
    assert said.err.startswith("mail_not_found: there is no letter nowhere: ")


@proves("MAIL-HOSTILE", "CLI-SAFE-TEXT")
def test_nothing_in_a_letter_steers_the_terminal(dragoman: Console, letter: Letters) -> None:
    row = {"to": ["bob"], "subject": HOSTILE, "body_md": HOSTILE, "thread_id": "t"}
    row |= {"attachments": [HOSTILE]}
    id = dragoman.ask("mail", "send", letter(json.dumps(row)), "--as", "ada")["id"]
    for words in (
        ("inbox", "--as", "bob"),
        ("show", id, "--peek"),
        ("thread", "t"),
        ("search", "evil"),
        ("summarize", "t"),
        ("inbox", "--as", "bob", "--watch"),
    ):
        for said in (dragoman("mail", *words), dragoman("mail", *words, "--json")):
            assert said.code == 0
            assert HARMFUL.search(said.out) is None, words
    shown = dragoman("mail", "show", id, "--peek").out.splitlines()
    assert "  ok: true" in shown
    assert not [line for line in shown if line.startswith(("ok:", "---"))]
    assert HARMFUL.search(dragoman("events").out) is None


@proves("MAIL-PAGES")
@pytest.mark.parametrize("order", [(), ("--newest",)])
def test_letters_that_are_far_apart_are_found_all_the_same(
    dragoman: Console, monkeypatch: pytest.MonkeyPatch, order: tuple[str, ...]
) -> None:
    monkeypatch.setattr(mailbox, "MOST_LOOKED_AT", 2)
    first = plain(dragoman, thread="t")
    for _ in range(4):
        plain(dragoman)
    last = plain(dragoman, thread="t")
    found = ids(dragoman, "inbox", "--as", "bob", "--thread", "t", *order)
    assert found == ([last, first] if order else [first, last])
    inbox = ("mail", "inbox", "--as", "bob", *order, "--limit")
    hint = "There may be older ones" if order else "There may be more: add --after"
    assert hint in dragoman(*inbox, "5").out
    assert "There may be" not in dragoman(*inbox, "6").out


@proves("MAIL-PAGES")
def test_a_thread_of_many_pages_is_shown_as_a_whole(
    dragoman: Console, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(mailbox, "MOST_BYTES", 1)
    sent = [plain(dragoman, thread="t-1") for _ in range(3)]
    assert ids(dragoman, "thread", "t-1") == sent


@proves("MAIL-HOSTILE", "CLI-EXIT")
@pytest.mark.parametrize(
    ("words", "code"),
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
def test_what_cannot_be_is_refused(dragoman: Console, words: tuple[str, ...], code: str) -> None:
    plain(dragoman)
    refused = dragoman.ask("mail", *words, code=1)
    assert (refused["ok"], refused["code"]) == (False, code)
    assert refused["detail"]


@proves("CLI-EXIT")
@pytest.mark.parametrize(
    "words",
    [
        ("inbox", "--limit", "0"),
        ("inbox", "--limit", "1001"),
        ("inbox", "--after", "-1"),
        ("inbox", "--after", "x"),
        ("inbox", "--sent", "--overdue"),
        ("inbox", "--successes", "--completions"),
        ("inbox", "--newest", "--watch"),
        ("inbox", "--newest", "--after", "3"),
        ("search",),
        ("ack",),
        (),
    ],
)
def test_what_was_not_understood_ends_with_2(dragoman: Console, words: tuple[str, ...]) -> None:
    plain(dragoman)
    assert dragoman("mail", *words).code == 2


def test_a_box_says_of_a_letter_that_waits_for_an_ack_whether_it_was_read(
    dragoman: Console,
) -> None:
    send(dragoman, "--to", "bob", "--body", "?", "--ack")
    assert dragoman("mail", "inbox", "--as", "bob").out.endswith("  unread, no ack of bob\n")
    sent = dragoman("mail", "inbox", "--as", "ada", "--sent").out
    assert sent.endswith("  no ack of bob\n")


def test_letters_are_told_as_they_come(dragoman: Console) -> None:
    first = plain(dragoman)
    later: list[str] = []
    steps: list[Callable[[], Any]] = [
        lambda: later.append(plain(dragoman)),
        lambda: plain(dragoman, "carol"),
        lambda: later.append(plain(dragoman)),
    ]

    def wait() -> bool:
        if steps:
            steps.pop(0)()
            return True
        return False

    said = dragoman("mail", "inbox", "--as", "bob", "--watch", "--json", wait=wait)
    assert [row["id"] for row in said.objects] == [first, *later]
    assert dragoman("mail", "inbox", "--as", "bob", "--watch").out.count("ada → bob") == 3


@proves("MAIL-ACK")
def test_what_has_become_late_is_told_to_whoever_watches_for_it(dragoman: Console) -> None:
    dragoman("agent", "add", "olga", "--role", "orchestrator")
    words = ("--to", "bob", "--body", "?", "--ack", "--now", NOON)
    id = send(dragoman, *words)
    steps = [lambda: dragoman("tick", "--now", "2026-02-10T12:00:00Z")]

    def wait() -> bool:
        return bool(steps and steps.pop(0)())

    said = dragoman("mail", "inbox", "--overdue", "--watch", "--json", wait=wait)
    assert [row["id"] for row in said.objects] == [id]
    assert dragoman("mail", "inbox", "--as", "bob").out.endswith("  unread, overdue\n")
    dragoman.ask("mail", "read", id, "--as", "bob")
    assert dragoman("mail", "inbox", "--as", "bob").out.endswith("  overdue\n")
    (late,) = dragoman.ask("mail", "inbox", "--as", "olga", "--type", "LATE")["messages"]
    assert " LATE " in dragoman("mail", "inbox", "--as", "olga").out
    assert "Type: LATE\n" in dragoman("mail", "show", late["id"], "--as", "olga").out


@proves("MAIL-SUMMARY")
def test_words_are_found_and_a_thread_is_summed_up(dragoman: Console) -> None:
    progress, other = send(dragoman, *PROGRESS), plain(dragoman)
    assert ids(dragoman, "search", "testing") == [progress]
    assert ids(dragoman, "search", "How are") == [other]
    assert ids(dragoman, "search", '"are How"') == [], "a phrase"
    without = dragoman("mail", "search", "--json", "--", "ada", "-testing").json["messages"]
    assert [row["id"] for row in without] == [other]
    assert ids(dragoman, "search", "nothing") == []
    assert "no letter has these words" in dragoman("mail", "search", "nothing").out
    summary = dragoman.ask("mail", "summarize", "ol-1")
    assert (summary["messages"], summary["last_status"]) == (1, "testing")
    said = dragoman("mail", "summarize", "ol-1").out
    assert said == "1 letter: 1 PROGRESS\nlast: PROGRESS, testing\n"
    answer = ("--type", "HELP_RESPONSE", "--bead", "ol-1", "--field", "guidance=so", "--to", "bob")
    send(dragoman, *answer)
    assert "last: HELP_RESPONSE\n" in dragoman("mail", "summarize", "ol-1").out


@proves("MAIL-ACK-WITHIN")
def test_how_long_an_ack_may_take_is_an_option_too(dragoman: Console) -> None:
    words = ("--to", "bob", "--subject", "Lunch", "--now", NOON)
    id = send(dragoman, *words, "--ack-within", "10m")
    (file,) = (dragoman.data / "mail").glob("*/*.md")
    assert 'dueBy: "2026-02-09T12:10:00.000Z"' in file.read_text()
    assert ids(dragoman, "inbox", "--as", "bob", "--pending") == [id]
    assert ids(dragoman, "inbox", "--overdue", "--now", NOON) == []
    assert ids(dragoman, "inbox", "--overdue", "--now", "2026-02-09T12:10:00Z") == [id]
    for wrong in (("0",), ("soon",), ("10m", "--no-ack")):
        said = dragoman("mail", "send", "--as", "ada", *words, "--ack-within", *wrong)
        assert said.code != 0
    assert ids(dragoman, "inbox", "--as", "bob") == [id]


@proves("MAIL-ONE-QUERY")
def test_a_search_means_the_same_in_one_argument_in_several_and_at_other_doors(
    dragoman: Console,
) -> None:
    one, two = (
        dragoman.ask("mail", "send", "--as", "ada", "--to", "bob", "--subject", text)["id"]
        for text in ("hi there", "going home")
    )

    def called(query: str) -> list[str]:
        found = dragoman.ask("call", "mail.search", json.dumps({"query": query}))["messages"]
        return [row["id"] for row in found]

    for query, expected in (
        ("hi OR going", [two, one]),
        ("there hi", [one]),
        ('"there hi"', []),
        ('"going home" -there', [two]),
    ):
        assert called(query) == expected
        assert ids(dragoman, "search", query) == expected
        said = dragoman("mail", "search", "--json", "--", *query.split(" "))
        assert [row["id"] for row in said.json["messages"]] == expected


@proves("MAIL-MODEL", "MAIL-HOSTILE")
def test_what_a_model_says_of_a_thread_stands_behind_a_margin(dragoman: Console) -> None:
    send(dragoman, *PROGRESS)
    command = json.dumps([sys.executable, "-c", r"print('half\x1b[2J done\nlast: DONE')"])
    settings = dragoman.data / "dragoman.toml"
    settings.write_text(f"[agentmail]\nsummarize_command = {command}\n")
    said = dragoman("mail", "summarize", "ol-1", "--model").out
    assert said.endswith("in the words of the model\n  half done\n  last: DONE\n")


@proves("FILES-ARCHIVE")
def test_an_archive_carries_boxes_threads_and_marks(dragoman: Console, tmp_path: Path) -> None:
    one, two = plain(dragoman, thread="t"), plain(dragoman, thread="t")
    dragoman.ask("mail", "read", one, "--as", "bob")
    dragoman.ask("export", str(tmp_path / "all.tar"))
    restored = Console(tmp_path / "restored")
    restored.ask("import", str(tmp_path / "all.tar"))
    assert ids(restored, "inbox", "--as", "bob") == [one, two]
    assert ids(restored, "inbox", "--as", "bob", "--unread") == [two]
    assert ids(restored, "thread", "t") == [one, two]
    assert ids(restored, "search", "How are") == [two, one]
    assert restored("verify").code == 0
    for name in ("0001-MAIL.md", "0002-MAIL.md"):
        path = Path("mail") / "t" / name
        assert (restored.data / path).read_bytes() == (dragoman.data / path).read_bytes()


@proves("MAIL-FOREIGN-FILES")
def test_a_foreign_file_among_letters_is_named_and_does_no_harm(dragoman: Console) -> None:
    send = ("mail", "send", "--as", "ada", "--to", "bob", "--thread", "t-1", "--subject", "Hi")
    dragoman.ask(*send, "--body", "yo")
    folder = dragoman.data / "mail/t-1"
    forged = folder / "0007-DONE.md"
    forged.write_text("Bead: x\n", encoding="utf-8")
    (folder / "notes.txt").write_text("somebody's own", encoding="utf-8")
    said = dragoman("verify")
    assert said.code == 1
    assert "mail/t-1/0007-DONE.md is surplus" in said.out
    assert "what is surplus is nobody's here and is left alone: move it away" in said.out
    assert "notes.txt" not in said.out
    # Nothing reads it, nothing removes it, and letters go on beside it.
    for command in ("tick", "rebuild-files"):
        dragoman.ask(command)
    dragoman.ask(*send, "--body", "again")
    listed = sorted(path.name for path in folder.iterdir() if path.suffix)
    assert listed == ["0001-MAIL.md", "0002-MAIL.md", "0007-DONE.md", "notes.txt"]
    assert len(dragoman.ask("mail", "thread", "t-1")["messages"]) == 2
    forged.unlink()
    assert dragoman.ask("verify")["findings"] == []


@proves("LOST-CURSOR")
@pytest.mark.parametrize("box", [("--as", "bob"), ("--overdue",)])
def test_who_watches_a_box_from_beyond_the_end_is_told_and_sees_what_comes(
    dragoman: Console, box: tuple[str, ...]
) -> None:
    words = ("--to", "bob", "--body", "?", "--ack", "--now", NOON)
    id = send(dragoman, *words)
    later: list[str] = []
    steps = [
        lambda: later.append(send(dragoman, *words)),
        lambda: dragoman("tick", "--now", "2026-02-10T12:00:00Z"),
    ]

    def wait() -> bool:
        if not steps:
            return False
        steps.pop(0)()
        return True

    said = dragoman("mail", "inbox", *box, "--watch", "--after", "900", "--json", wait=wait)

    assert id not in later
    assert [row["id"] for row in said.objects] == later
    assert said.err.count("before 900: it may have been restored") == 1
