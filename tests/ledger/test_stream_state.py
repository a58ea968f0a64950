"""Stream states: folding of entries, and the index rows and lists derived from them."""

from collections.abc import Iterator

import pytest
from msgspec.structs import replace

from dragoman.core.actor import ActorRecord, CommandRefused, MessageReceived
from dragoman.core.agent import (
    AgentKeySet,
    AgentPaused,
    AgentRecord,
    AgentRegistered,
    AgentResumed,
    TokenIssued,
    TokenRevoked,
)
from dragoman.core.attempt_state import Checkpoint, TaskCheckpointed
from dragoman.core.base import Event, Priority, Status
from dragoman.core.errors import LedgerError
from dragoman.core.mail import (
    Mail,
    MailAcked,
    MailAnswered,
    MailEscalated,
    MailPosted,
    MailRead,
    mail_list_keys,
)
from dragoman.core.task_state import Delegation, Task, TaskAliased, TaskCreated, TaskNoted
from dragoman.ledger.entry import WRITTEN_AS, Line, write_line
from dragoman.ledger.stream_state import (
    FOLD_VERSION,
    IndexRow,
    State,
    aliases_bound_by,
    decode_state,
    encode_state,
    fold,
    index_row,
    lists_of,
    load_state,
    replay,
    split_alias,
)
from tests.requirements import proves

NOW = 1_770_647_400_000
CREATED = TaskCreated("T", "TASK-2026-02-09-001", "a title", "ready")
RECEIVED = MessageReceived("aof", "status.update", "T")
REGISTERED = AgentRegistered("alice", "agent", ("aof",))
REFUSED = CommandRefused("task.claim", "T", "not_ready", "T is backlog")


AGENT = AgentRecord("alice", "agent", ("aof",), NOW)
POSTED = MailPosted("m", "alice", ("bob",), "m", "", "lunch?", "at noon")
LETTER = Mail(
    "m",
    "alice",
    ("bob",),
    "m",
    "",
    "lunch?",
    "at noon",
    ack_wanted=True,
    due_by=NOW + 9,
    posted_at=NOW,
)


def task(**fields: object) -> Task:
    """Make a ready task with some fields changed."""
    state = fold(None, CREATED, NOW)
    assert isinstance(state, Task)
    return replace(state, **fields)


def lines(*events: Event) -> list[bytes]:
    """Encode events as the lines of one stream."""
    return [
        write_line(Line("s", version, *WRITTEN_AS[type(event)], NOW + version, "a", "c", event))
        for version, event in enumerate(events, 1)
    ]


@proves("TASK-READY")
@pytest.mark.parametrize(
    "status",
    ["backlog", "in-progress", "blocked", "review", "done", "deadletter", "cancelled"],
)
def test_only_ready_tasks_are_in_a_queue(status: Status) -> None:
    assert index_row(task(status=status), NOW) == IndexRow(status)
    assert index_row(task(status=status, assignee="alice"), NOW) == IndexRow(status, owner="alice")


@proves("TASK-READY", "RETRY-BACKOFF")
@pytest.mark.parametrize(
    ("state", "expected"),
    [
        (task(), IndexRow("ready", "", 2, NOW)),
        (task(reserved_for="bob", assignee="bob"), IndexRow("ready", "bob", 2, NOW, owner="bob")),
        (task(open_blockers=("U",)), IndexRow("ready")),
        (task(blocked_by=("U",)), IndexRow("ready", "", 2, NOW)),
        (task(not_before=NOW - 1), IndexRow("ready", "", 2, NOW)),
        (task(not_before=NOW), IndexRow("ready", "", 2, NOW)),
        (task(not_before=NOW + 1), IndexRow("ready", None, 2, NOW, NOW + 1)),
        (task(not_before=NOW + 1, open_blockers=("U",)), IndexRow("ready")),
    ],
    ids=range(8),
)
def test_queue_holds_ready_due_and_unblocked_tasks(state: Task, expected: IndexRow) -> None:
    assert index_row(state, NOW) == expected


@proves("TASK-PRIORITY")
def test_queue_is_ordered_by_priority_then_age() -> None:
    ranks: dict[Priority, int] = {"critical": 0, "high": 1, "normal": 2, "low": 3}
    for priority, rank in ranks.items():
        row = index_row(task(priority=priority, created_at=5, moved_at=9, updated_at=10), NOW)
        assert (row.rank, row.since) == (rank, 5)


DELEGATION = Delegation("P", "alice", "bob", NOW + 5)


@proves("DELEGATION-SLA")
@pytest.mark.parametrize(
    ("state", "deadline"),
    [
        (task(), None),
        (task(delegation=DELEGATION), NOW + 5),
        (task(delegation=DELEGATION, status="backlog"), NOW + 5),
        (task(delegation=DELEGATION, status="review"), NOW + 5),
        (task(delegation=DELEGATION, open_blockers=("U",)), NOW + 5),
        (task(delegation=DELEGATION, not_before=NOW + 1), NOW + 5),
        (task(delegation=replace(DELEGATION, state="accepted")), NOW + 5),
        (task(delegation=replace(DELEGATION, state="rejected")), None),
        (task(delegation=replace(DELEGATION, escalated=True)), None),
        (task(delegation=DELEGATION, status="done"), None),
        (task(delegation=DELEGATION, status="cancelled"), None),
    ],
    ids=range(11),
)
def test_deadline_is_indexed_while_the_delegation_is_open(
    state: Task, deadline: int | None
) -> None:
    assert index_row(state, NOW).deadline == deadline
    assert replace(index_row(state, NOW), deadline=None) == index_row(
        replace(state, delegation=None), NOW
    )


@proves("REFUSAL-RECORDED")
def test_actor_has_no_index_row() -> None:
    assert (
        index_row(ActorRecord(), NOW) == index_row(AGENT, NOW) == index_row(None, NOW) == IndexRow()
    )


@proves("NAME-ALIAS")
def test_events_bind_aliases() -> None:
    assert aliases_bound_by(CREATED) == (("TASK-2026-02-09-001", "aof"),)
    own = replace(CREATED, id="TASK-2026-02-09-001", aliases=("bead:b", "workq:7"))
    assert aliases_bound_by(own) == (("b", "bead"), ("7", "workq"))
    assert aliases_bound_by(TaskAliased("intent:i")) == (("i", "intent"),)
    assert aliases_bound_by(TaskNoted("bead:b")) == aliases_bound_by(REFUSED) == ()
    assert split_alias("bead:ol-527.1") == ("ol-527.1", "bead")


@proves("MODEL-REPLAY")
def test_stream_is_folded_entry_by_entry() -> None:
    state = replay(lines(CREATED, TaskAliased("bead:b"), TaskNoted("x")))
    assert state == task(
        created_at=NOW + 1, updated_at=NOW + 3, moved_at=NOW + 1, aliases=("bead:b",), notes=1
    )
    assert replay(lines(REFUSED)) == ActorRecord(
        (NOW + 1) // 60_000, 1, ("task.claim T not_ready 74a7d15117f43137",)
    )
    assert replay(lines(RECEIVED, REFUSED)) == replay(lines(REFUSED, RECEIVED))
    assert replay(lines(REGISTERED, replace(REGISTERED, speaks=("acp",)))) == AgentRecord(
        "alice", "agent", ("acp",), NOW + 1
    )
    assert replay([]) is None


@proves("VERIFY-VIEWS")
@pytest.mark.parametrize(
    ("state", "event"),
    [
        (None, TaskNoted("a note about nothing")),
        (task(), CREATED),
        (task(), REFUSED),
        (ActorRecord(), TaskNoted("not about a task")),
        (ActorRecord(), CREATED),
        (ActorRecord(), REGISTERED),
        (AGENT, REFUSED),
        (AGENT, RECEIVED),
        (AGENT, CREATED),
        (task(), RECEIVED),
        (task(), REGISTERED),
        (None, TokenRevoked()),
        (task(), TokenRevoked()),
        (None, AgentKeySet("")),
        (None, AgentPaused("enough")),
        (task(), AgentResumed()),
        (ActorRecord(), TokenIssued("0" * 12, "0" * 64, NOW)),
        (LETTER, POSTED),
        (task(), POSTED),
        (None, MailRead("m", "bob")),
        (task(), MailAcked("m", "bob")),
        (None, MailAnswered("m", "bob", "n")),
        (AGENT, MailEscalated("m", ("bob",))),
        (LETTER, TaskCheckpointed("MANUAL")),
    ],
    ids=range(24),
)
def test_event_in_the_wrong_place_breaks_the_ledger(state: State | None, event: Event) -> None:
    with pytest.raises(LedgerError, match="is not allowed at this point of its stream"):
        fold(state, event, NOW)


@proves("STORE-REFOLD")
@pytest.mark.parametrize(
    ("stream", "state"),
    [
        ("task:T", task(notes=3)),
        ("task:T", replace(task(), checkpoint=Checkpoint("MANUAL", "0a1b2c3", by="alice", at=NOW))),
        ("actor:agent:a", ActorRecord(1, 2, ("a b c",))),
        ("agent:alice", AGENT),
        ("mail:m", LETTER),
    ],
)
def test_state_row_is_read_back(stream: str, state: State) -> None:
    assert decode_state(stream, encode_state(state)) == state


@proves("MAIL-POST", "STORE-LISTS")
def test_letter_has_lists_and_a_deadline() -> None:
    assert lists_of(LETTER) == mail_list_keys(LETTER)
    assert index_row(LETTER, NOW) == IndexRow(deadline=NOW + 9)
    assert lists_of(AGENT) == (f"role:{AGENT.role}",)
    assert lists_of(task()) == lists_of(None) == ()
    assert index_row(AGENT, NOW) == index_row(None, NOW) == IndexRow()


@proves("STORE-REFOLD")
@pytest.mark.parametrize(
    ("stream", "data"),
    [
        ("task:T", b""),
        ("task:T", b"{"),
        ("task:T", b"{}"),
        ("task:T", b'{"id":"\xff"}'),
        ("task:T", encode_state(ActorRecord())),
        ("widget:T", encode_state(task())),
        ("", b"{}"),
    ],
)
def test_unreadable_state_row_is_reported(stream: str, data: bytes) -> None:
    with pytest.raises(LedgerError, match=f"the state of {stream} cannot be read"):
        decode_state(stream, data)


class UnreadLines:
    """Lines that must not be read."""

    def __iter__(self) -> Iterator[bytes]:
        raise AssertionError


@proves("STORE-REFOLD")
def test_row_of_the_current_fold_is_used_as_stored() -> None:
    assert load_state("task:T", FOLD_VERSION, encode_state(task(notes=7)), UnreadLines()) == task(
        notes=7
    )


@proves("STORE-REFOLD")
@pytest.mark.parametrize("fold_number", [FOLD_VERSION - 1, FOLD_VERSION + 1])
def test_row_of_another_fold_is_replayed_from_its_entries(fold_number: int) -> None:
    stored = lines(CREATED, TaskNoted("x"))
    state = load_state("task:T", fold_number, b"what older rules made of it", stored)
    assert state == replay(stored)


@proves("STORE-REFOLD")
def test_row_without_entries_has_no_state() -> None:
    assert load_state("actor:agent:a", FOLD_VERSION, b"", UnreadLines()) is None
    assert load_state("actor:agent:a", FOLD_VERSION - 1, b"", ()) is None


@proves("STORE-REFOLD", "VERIFY-VIEWS")
def test_missing_state_is_replayed() -> None:
    assert load_state("task:T", FOLD_VERSION - 1, b"", lines(CREATED)) == replay(lines(CREATED))


@proves("STORE-REFOLD")
def test_fold_version_is_pinned_to_its_encoding() -> None:
    """If this fails, folding changed: raise FOLD, then update the expected encoding."""
    created = replay(lines(CREATED))
    assert created is not None
    assert FOLD_VERSION == 8
    assert encode_state(created) == (
        b'{"id":"T","aof_id":"TASK-2026-02-09-001","title":"a title","status":"ready",'
        b'"created_at":1770647400001,"updated_at":1770647400001,"moved_at":1770647400001}'
    )
