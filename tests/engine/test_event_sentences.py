"""Text of every event, truncated if it is long."""

import re

import msgspec
import pytest

from dragoman.core.actor import CommandRefused
from dragoman.core.attempt_state import TaskClaimed, TaskReported, TaskRequeued
from dragoman.core.base import Event
from dragoman.core.event_table import EVENT_NAMES
from dragoman.core.handoff.state import HandoffApproved
from dragoman.core.mail import MailEscalated
from dragoman.core.task_state import (
    RestoredState,
    TaskAliased,
    TaskBacklinked,
    TaskCreated,
    TaskEdited,
    TaskLinked,
    TaskNoted,
    TaskRewound,
    TaskTransitioned,
    TaskUnblocked,
)
from dragoman.core.work_queue import WorkItemAdded, WorkItemOwnerChanged
from dragoman.engine.event_sentences import EVENT_TEXT, describe_event, describe_reason
from dragoman.engine.sentences import format_pairs, truncate
from tests.requirements import proves

pytestmark = proves("CLI-EVENTS")


REQUEUED = (
    "attempt 1 is over (gone): ready again, not before 1970-01-01T00:00:00.000Z; "
    "failures in a row: 2"
)


def test_sentences_are_of_events_and_of_their_own_fields() -> None:
    shapes = {name: shape.__struct_encode_fields__ for shape, name in EVENT_NAMES.items()}
    assert EVENT_TEXT.keys() <= shapes.keys()
    for name, template in EVENT_TEXT.items():
        used = {field.partition(".")[0] for field in re.findall(r"\{[?!]?(\w+)", template)}
        assert used <= set(shapes[name]), name


@pytest.mark.parametrize(
    ("event", "expected"),
    [
        (TaskCreated("T-1", "A", "Do", "ready"), 'created, ready: "Do"'),
        (
            TaskCreated(
                "T-1",
                "A",
                "Do",
                "backlog",
                reserved_for="ada",
                parent="T-0",
                open_blockers=("T-2", "T-3"),
            ),
            'created, backlog: "Do"; for ada; waits for T-2, T-3; part of T-0',
        ),
        (TaskAliased("bead:b"), "also called bead:b"),
        (WorkItemAdded("w", "Login"), "put into the work queue (Login)"),
        (WorkItemOwnerChanged("w", "ada", "claimed"), "claimed by ada"),
        (WorkItemOwnerChanged("w", "", "orphaned"), "orphaned"),
        (TaskLinked("blocked-by", "T-2"), "waits for T-2"),
        (TaskLinked("parent", "T-2"), "is part of T-2"),
        (TaskLinked("discovered-from", "T-2"), "was found while doing T-2"),
        (TaskBacklinked("blocked-by", "T-2"), "blocks T-2"),
        (TaskBacklinked("parent", "T-2"), "has the part T-2"),
        (TaskBacklinked("discovered-from", "T-2"), "led to T-2"),
        (TaskUnblocked("T-2", "done"), "no longer waits for T-2: it is done"),
        (
            TaskClaimed("ready", 2, 3, "ada", 90_000),
            "claimed by ada: attempt 2, fence 3, lease 90s",
        ),
        (TaskTransitioned("review", "done"), "review → done"),
        (TaskTransitioned("review", "ready", "no"), "review → ready (no)"),
        (
            TaskTransitioned("ready", "blocked", "no key", other_text="ask ben"),
            "ready → blocked (no key): ask ben",
        ),
        (TaskRequeued(1, "gone", 2, 0), REQUEUED),
        (
            TaskRewound(
                "done", "ready", 3, RestoredState("ready", "Do"), branch="b", reason="wrong"
            ),
            "rewound from done to ready, as of its entry 3, its files on the branch b (wrong)",
        ),
        (TaskReported(1, "ada", "done"), "ada reported done"),
        (
            TaskReported(1, "ada", "blocked", "stuck", ("key", "door")),
            "ada reported blocked: stuck; blocked by key, door",
        ),
        (
            TaskReported(1, "ada", "failed", "exit code 3", by="hub"),
            "ada reported nothing, the hub says failed: exit code 3",
        ),
        (HandoffApproved("hera", "a" * 64), "approved by hera, package aaaaaaaaaaaa"),
        (
            HandoffApproved("hera", "a" * 64, approved=False, note="no"),
            "denied by hera, package aaaaaaaaaaaa (no)",
        ),
        (TaskNoted("half"), "noted: half"),
        (
            MailEscalated("m", ("bob",), ("olga",)),
            "escalated: bob did not ack or answer in time; told to olga",
        ),
        (
            MailEscalated("m", ("bob",), only_answer=True),
            "escalated: bob did not answer in time",
        ),
        (TaskEdited(checks=("make test", "make lint")), "edited: checks make test; make lint"),
        (TaskEdited(checks=()), "edited: no checks"),
        (
            CommandRefused("task.move", "T-1", "lease_lost", "stop"),
            "refused task.move T-1: lease_lost, stop",
        ),
        (
            CommandRefused("task.create", "", "invalid_id", "no"),
            "refused task.create: invalid_id, no",
        ),
    ],
)
def test_event_is_described(event: Event, expected: str) -> None:
    assert (
        describe_event(EVENT_NAMES[type(event)], msgspec.json.decode(msgspec.json.encode(event)))
        == expected
    )


@proves("LEDGER-UPCAST")
def test_event_of_a_newer_release_is_described_by_its_name_and_fields() -> None:
    assert describe_event("task.sung", {"tune": "high", "verses": [1, 2]}) == (
        "task.sung tune: high, verses: 1, 2"
    )


@pytest.mark.parametrize(
    ("reason", "words"),
    [
        ("stale_heartbeat_reclaim", "its lease ran out without a heartbeat"),
        (
            "stale_heartbeat_needs_review",
            "its lease ran out, after its agent had reported needs review",
        ),
        ("attempt_too_long", "it took longer than an attempt may"),
        ("reported_failed", "its agent reported failed"),
        ("unreported_failed", "its agent ended without a report, which counts as failed"),
        ("checks_passed", "its checks have passed"),
        ("reported_dead", "reported_dead"),
        ("", ""),
    ],
)
def test_reason_that_the_hub_gives_is_put_into_words(reason: str, words: str) -> None:
    assert describe_reason(reason) == words


def test_long_text_is_truncated_with_an_ellipsis() -> None:
    assert truncate("x" * 240) == "x" * 240
    assert truncate("x" * 241) == "x" * 239 + "…"


def test_values_of_any_form_stay_on_one_line() -> None:
    values = {"a": [{"b": 1}], "c": None, "d": 1.50, "e": ["x", 2]}
    assert format_pairs(values) == 'a: [{"b": 1}], c: , d: 1.5, e: x, 2'
