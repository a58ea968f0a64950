"""Letters to the owner about what needs a person: once each, and never a flood."""

from pathlib import Path

import msgspec
import pytest

from dragoman.core.actor import HUB_ACTOR
from dragoman.core.agent import PauseAgent, RegisterAgent
from dragoman.core.attempt import ClaimTask
from dragoman.core.base import AttentionKind
from dragoman.core.mail import Mail, PostMail, ReadMail
from dragoman.core.question_state import AskQuestion
from dragoman.core.task_state import CreateTask
from dragoman.engine.ports import ListQuery
from dragoman.engine.queries.entries import all_entries, stream_state, walk_list
from dragoman.notify.notification import NotificationBuilder
from dragoman.notify.owner_inbox import MAX_UNREAD, OwnerInbox
from dragoman.services.notifier import Notifier
from dragoman.system.state_files import OutboxFiles
from tests.engine.lab import ALICE, HUMAN, Lab
from tests.requirements import proves

pytestmark = proves("NOTIFY-ATTENTION")

KINDS: tuple[AttentionKind, ...] = ("question", "paused", "help")


class InboxLab:
    """A hub with an owner, hera, whose inbox gets notices."""

    def __init__(self, folder: Path) -> None:
        self.lab = Lab()
        self.folder = folder
        self.lab.do(HUMAN, RegisterAgent("hera", "human"))
        self.lab.do(HUMAN, CreateTask("t", "T", ready=True))
        self.lab.do(ALICE, ClaimTask("T", "alice"))
        self.run()

    def run(self) -> None:
        """Run the notifier once, as a freshly started process does."""
        hub = self.lab.hub
        news = NotificationBuilder(hub.store, (), KINDS)
        outbox, targets = OutboxFiles(self.folder, "owner-inbox"), [OwnerInbox(hub, "hera")]
        Notifier(hub, outbox, news, targets, lambda: 0.0, "owner-inbox").run_once(0)

    def letters(self) -> list[Mail]:
        """Return the letters in the inbox of the owner."""
        store = self.lab.store
        places = walk_list(store, ListQuery("in:hera", limit=100))
        states = (stream_state(store, place.row) for place in places)
        return [state for state in states if isinstance(state, Mail)]


@pytest.fixture
def inbox(tmp_path: Path) -> InboxLab:
    return InboxLab(tmp_path)


def test_question_is_a_letter_with_its_command(inbox: InboxLab) -> None:
    inbox.lab.do(ALICE, AskQuestion("T", "red or blue?"))
    inbox.run()
    inbox.run()
    (letter,) = inbox.letters()
    assert (letter.sender, letter.subject, letter.bead) == ("hub", "A question: T", "T")
    assert "alice asks: red or blue?" in letter.body
    assert 'Deal with it: `dragoman task answer T "…"`' in letter.body


def test_letter_is_written_once_even_if_the_cursor_is_lost(inbox: InboxLab) -> None:
    before = (inbox.folder / "owner-inbox.cursor").read_bytes()
    inbox.lab.do(ALICE, AskQuestion("T", "red or blue?"))
    inbox.run()
    (inbox.folder / "owner-inbox.cursor").write_bytes(before)
    inbox.run()
    assert len(inbox.letters()) == 1


def test_request_that_has_written_to_the_owner_is_not_told_again(inbox: InboxLab) -> None:
    lab = inbox.lab
    budget = PostMail(("hera",), "resume it?", "it has used up its budget")
    lab.do(HUB_ACTOR, RegisterAgent("alice"))
    lab.do(HUB_ACTOR, PauseAgent("alice", "over budget"), budget)
    inbox.run()
    assert [letter.subject for letter in inbox.letters()] == ["resume it?"]


def test_owner_who_does_not_read_is_not_flooded(inbox: InboxLab) -> None:
    lab = inbox.lab
    for number in range(MAX_UNREAD + 5):
        lab.do(HUMAN, CreateTask("t", f"t{number}", ready=True))
        lab.do(ALICE, ClaimTask(f"t{number}", "alice"))
        lab.do(ALICE, AskQuestion(f"t{number}", "why?"))
    inbox.run()
    letters = inbox.letters()
    assert len(letters) == MAX_UNREAD
    told = [letter for letter in letters if "no others are written until" in letter.body]
    assert told == [letters[-1]]
    lab.do(HUMAN, ReadMail(letters[0].id))
    lab.do(ALICE, AskQuestion("T", "red or blue?"))
    inbox.run()
    assert inbox.letters()[-1].subject == "A question: T"


def test_last_letter_that_is_delivered_again_changes_nothing(inbox: InboxLab) -> None:
    lab = inbox.lab
    for number in range(MAX_UNREAD):
        lab.do(HUMAN, CreateTask("t", f"t{number}", ready=True))
        lab.do(ALICE, ClaimTask(f"t{number}", "alice"))
        lab.do(ALICE, AskQuestion(f"t{number}", "why?"))
    before = (inbox.folder / "owner-inbox.cursor").read_bytes()
    inbox.run()
    letters = inbox.letters()
    for letter in letters[:3]:
        lab.do(HUMAN, ReadMail(letter.id))
    (inbox.folder / "owner-inbox.cursor").write_bytes(before)
    inbox.run()
    assert [letter.id for letter in inbox.letters()] == [letter.id for letter in letters]


def test_letter_that_cannot_be_posted_is_tried_again(inbox: InboxLab) -> None:
    lab = inbox.lab
    lab.do(ALICE, AskQuestion("T", "red or blue?"))
    news = NotificationBuilder(lab.store, (), KINDS)
    (notice,) = filter(None, map(news, all_entries(lab.store)))
    target = OwnerInbox(lab.hub, "not a name")
    assert "not a name" in target.deliver(notice, 0)


def test_notification_about_a_need_has_its_kind_and_command(inbox: InboxLab) -> None:
    lab = inbox.lab
    lab.do(ALICE, AskQuestion("T", "red or blue?"))
    lab.do(HUB_ACTOR, RegisterAgent("alice"))
    lab.do(HUB_ACTOR, PauseAgent("alice", "over budget"))
    news = NotificationBuilder(lab.store, (), KINDS)
    asked, paused = filter(None, map(news, all_entries(lab.store)))
    body = msgspec.json.decode(asked.body)
    assert (body["kind"], body["taskId"], body["agent"]) == ("question", asked.task, "alice")
    assert (body["text"], body["actor"]) == ("alice asks: red or blue?", "agent:alice")
    assert body["command"] == 'dragoman task answer T "…"'
    assert (msgspec.json.decode(paused.body)["taskId"], paused.task) == (None, "")
    assert not any(map(NotificationBuilder(lab.store, ()), all_entries(lab.store)))
