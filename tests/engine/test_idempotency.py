"""Idempotency: a repeat gets the same answer, adds no entry, and counts as a heartbeat."""

import msgspec
import pytest
from msgspec.structs import replace

from dragoman.core.agent import RegisterAgent
from dragoman.core.attempt import ClaimTask, ReleaseTask, RenewLease, ReportOutcome
from dragoman.core.base import Command
from dragoman.core.task_state import AliasTask, CreateTask, MoveTask, NoteTask
from dragoman.engine.queries.tasks import TaskView, find_task
from dragoman.engine.request import Committed, Request
from tests.engine.lab import ALICE, BOB, HUMAN, START, TTL, Lab, assert_accepted, code, findings
from tests.requirements import proves


def claim_task(lab: Lab) -> None:
    """Create a task T that alice holds."""
    lab.do(HUMAN, CreateTask("t", "T", ready=True))
    lab.do(ALICE, ClaimTask("T", "alice"))


REPEATABLE: dict[str, Command] = {
    "note": NoteTask("T", "x"),
    "alias": AliasTask("T", "bead:b"),
    "report": ReportOutcome("T", "done"),
    "report, applied": ReportOutcome("T", "done", apply=True),
    "move": MoveTask("T", "blocked"),
    "release": ReleaseTask("T"),
    "create": CreateTask("new"),
    "claim the next": ClaimTask("", "alice"),
}


@proves("IDEM-REPEAT")
@pytest.mark.parametrize("command", REPEATABLE.values(), ids=REPEATABLE)
def test_repeat_returns_the_first_answer_and_adds_nothing(lab: Lab, command: Command) -> None:
    claim_task(lab)
    lab.do(HUMAN, CreateTask("u", "U", ready=True), CreateTask("v", "V", ready=True))
    first = assert_accepted(lab.ask(ALICE, command, key="k"))
    before = lab.store.picture()
    for _ in range(3):
        again = assert_accepted(lab.ask(ALICE, command, key="k"))
        assert again == Committed(first.receipts, repeated=True)
        after = lab.store.picture()
        for table in ("entries", "aliases", "answers", "daily_numbers"):
            assert after[table] == before[table]
    assert not first.repeated


@proves("IDEM-REPEAT")
def test_request_without_a_key_is_new_each_time(lab: Lab) -> None:
    claim_task(lab)
    assert not assert_accepted(lab.ask(ALICE, NoteTask("T", "x"))).repeated
    assert not assert_accepted(lab.ask(ALICE, NoteTask("T", "x"))).repeated
    assert lab.task("T").notes == 2


@proves("IDEM-REPEAT", "LEASE-HEARTBEAT")
def test_repeat_renews_the_lease(lab: Lab) -> None:
    claim_task(lab)
    lab.do(ALICE, NoteTask("T", "x"), key="k")
    lab.clock.advance(1_000)
    lab.do(ALICE, NoteTask("T", "x"), key="k")
    lease = lab.lease("T")
    assert lease is not None
    assert lease.expires_at == START + 1_000 + TTL


@proves("IDEM-REPEAT", "LEASE-LOST")
def test_repeat_does_not_restore_a_lost_lease(lab: Lab) -> None:
    claim_task(lab)
    lab.do(ALICE, NoteTask("T", "x"), key="k")
    lab.clock.advance(TTL)
    dead = lab.lease("T")
    assert assert_accepted(lab.ask(ALICE, NoteTask("T", "x"), key="k")).repeated
    assert lab.lease("T") == dead
    assert lab.code(ALICE, NoteTask("T", "y"), key="l") == "lease_lost"


@proves("IDEM-REPEAT")
def test_repeated_tuple_is_one_repeat(lab: Lab) -> None:
    commands = (CreateTask("a", "A", ready=True), ClaimTask("A", "alice"), NoteTask("A", "x"))
    first = assert_accepted(lab.ask(ALICE, *commands, key="k"))
    lab.clock.advance(5)
    again = assert_accepted(lab.ask(ALICE, *commands, key="k"))
    assert (again.receipts, again.repeated) == (first.receipts, True)
    assert lab.store.head() == 3
    lease = lab.lease("A")
    assert lease is not None
    assert lease.expires_at == START + 5 + TTL


@proves("IDEM-REPEAT")
def test_repeat_returns_the_first_answer_whatever_changed_since(lab: Lab) -> None:
    claim_task(lab)
    first = assert_accepted(lab.ask(ALICE, MoveTask("T", "review"), key="k"))
    lab.do(HUMAN, MoveTask("T", "ready"))
    lab.do(BOB, ClaimTask("T", "bob"))
    again = assert_accepted(lab.ask(ALICE, MoveTask("T", "review"), key="k"))
    assert again.receipts == first.receipts
    assert lab.task("T").assignee == "bob"


@proves("IDEM-REPEAT")
def test_keyed_answer_records_the_version_to_show_again(
    lab: Lab,
) -> None:
    claim_task(lab)
    noted = assert_accepted(lab.ask(ALICE, NoteTask("T", "x"), key="k")).receipts[0]
    then = find_task(lab.store, "T", noted.version)
    assert isinstance(then, TaskView)
    lab.do(ALICE, NoteTask("T", "y"))
    # The lease is that of the same attempt, as it is now.
    assert find_task(lab.store, "T", noted.version) == replace(then, lease=lab.lease("T"))
    lab.do(ALICE, ReleaseTask("T"))
    assert find_task(lab.store, "T", noted.version) == replace(then, lease=None)
    lab.do(BOB, ClaimTask("T", "bob"))
    again = assert_accepted(lab.ask(ALICE, NoteTask("T", "x"), key="k")).receipts[0]
    assert again == noted
    assert find_task(lab.store, "T", again.version) == replace(then, lease=None)
    assert (
        assert_accepted(lab.ask(HUMAN, RegisterAgent("zoe", "agent"), key="k")).receipts[0].version
        == 0
    )
    assert assert_accepted(lab.ask(HUMAN, NoteTask("T", "z"))).receipts[0].version == 0


@proves("IDEM-REPEAT")
def test_no_op_is_remembered_too(lab: Lab) -> None:
    """A repeat must not become a change because the task has moved on."""
    lab.do(HUMAN, CreateTask("t", "T", ready=True))
    first = assert_accepted(lab.ask(HUMAN, MoveTask("T", "ready"), key="k"))
    lab.do(HUMAN, MoveTask("T", "blocked"))
    again = assert_accepted(lab.ask(HUMAN, MoveTask("T", "ready"), key="k"))
    assert again == Committed(first.receipts, repeated=True)
    assert lab.task("T").status == "blocked"


@proves("IDEM-REPEAT")
def test_key_is_known_within_its_own_batch(lab: Lab) -> None:
    claim_task(lab)
    note = NoteTask("T", "x")
    answers = lab.batch(
        lab.request(ALICE, note, key="k"),
        lab.request(ALICE, note, key="k"),
        lab.request(ALICE, replace(note, text="y"), key="k"),
        lab.request(ALICE, CreateTask("a"), key="k"),
        lab.request(ALICE, CreateTask("a"), key="k"),
    )
    assert [assert_accepted(a).repeated if not code(a) else code(a) for a in answers] == [
        False,
        True,
        "key_reused",
        False,
        True,
    ]
    assert lab.task("T").notes == 1


@proves("IDEM-SCOPE", "REFUSAL-RECORDED")
def test_reused_key_is_refused_and_recorded(lab: Lab) -> None:
    claim_task(lab)
    lab.do(ALICE, NoteTask("T", "x"), key="k")
    assert lab.code(ALICE, NoteTask("T", "y"), key="k") == "key_reused"
    assert lab.code(ALICE, NoteTask("T", "x"), NoteTask("T", "x"), key="k") == "key_reused"
    assert lab.code(ALICE, RenewLease("T"), key="k") == "key_reused"
    assert lab.task("T").notes == 1
    assert lab.refused(ALICE) == ["key_reused", "key_reused"], "a note twice, a heartbeat"
    assert assert_accepted(lab.ask(ALICE, NoteTask("T", "x"), key="k")).repeated


@proves("IDEM-SCOPE")
def test_key_is_unique_per_target(lab: Lab) -> None:
    claim_task(lab)
    lab.do(HUMAN, CreateTask("u", "U"))
    lab.do(HUMAN, NoteTask("T", "x"), key="k")
    assert not assert_accepted(lab.ask(HUMAN, NoteTask("U", "y"), key="k")).repeated
    assert lab.code(BOB, NoteTask("T", "from another actor"), key="k") == "key_reused"


@proves("IDEM-SCOPE")
def test_key_is_unique_per_actor_without_a_target(lab: Lab) -> None:
    first = lab.do(ALICE, CreateTask("a"), key="k")
    second = lab.do(BOB, CreateTask("a"), key="k")
    assert first.task != second.task
    assert lab.code(ALICE, CreateTask("b"), key="k") == "key_reused"
    lab.do(HUMAN, MoveTask(first.task, "ready"))
    assert lab.code(ALICE, ClaimTask("", "alice"), key="k") == "key_reused"
    assert lab.code(ALICE, ClaimTask("", "alice"), key="l") == ""


@proves("IDEM-SCOPE")
def test_target_is_the_same_by_any_of_its_names(lab: Lab) -> None:
    lab.do(HUMAN, CreateTask("t", "T", aliases=("bead:b",)))
    lab.do(HUMAN, NoteTask("bead:b", "x"), key="k")
    assert assert_accepted(lab.ask(HUMAN, NoteTask("bead:b", "x"), key="k")).repeated
    assert lab.code(HUMAN, NoteTask("T", "y"), key="k") == "key_reused"


@proves("IDEM-REFUSED")
def test_refusal_is_not_remembered(lab: Lab) -> None:
    lab.do(HUMAN, CreateTask("t", "T"))
    claim = ClaimTask("T", "alice")
    assert lab.code(ALICE, claim, key="k") == "not_ready"
    assert lab.code(ALICE, claim, key="k") == "not_ready"
    lab.do(HUMAN, MoveTask("T", "ready"))
    assert not assert_accepted(lab.ask(ALICE, claim, key="k")).repeated
    assert assert_accepted(lab.ask(ALICE, claim, key="k")).repeated


@proves("IDEM-REFUSED")
def test_refused_key_may_be_used_for_another_request(lab: Lab) -> None:
    lab.do(HUMAN, CreateTask("t", "T"))
    lab.code(ALICE, ClaimTask("T", "alice"), key="k")
    assert lab.code(ALICE, NoteTask("T", "x"), key="k") == ""


@proves("IDEM-SCOPE", "LIMIT-TEXT", "NAME-GRAMMAR")
@pytest.mark.parametrize(
    ("key", "expected"),
    [
        ("k" * 256, ""),
        ("k" * 257, "invalid_id"),
        ("k\n", "invalid_id"),
        ("k\x00", "invalid_id"),
        ("\ud800", "invalid_id"),
        ("é", "invalid_id"),
    ],
    ids=range(6),
)
def test_key_grammar_is_enforced(lab: Lab, key: str, expected: str) -> None:
    assert lab.code(HUMAN, CreateTask("t"), key=key) == expected
    (answer, _) = lab.batch(
        lab.request(HUMAN, CreateTask("t"), key=key), lab.request(HUMAN, CreateTask("u"))
    )
    assert code(answer) == expected
    assert lab.refused(HUMAN) == ([expected] if expected else [])


@proves("IDEM-SCOPE")
def test_stored_fingerprint_reveals_nothing_of_the_request(lab: Lab) -> None:
    other = Lab()
    secret = NoteTask("T", "the password is swordfish")
    for one in (lab, other):
        one.do(HUMAN, CreateTask("t", "T"))
        one.do(HUMAN, secret, key="k")
    fingerprints = [answer.fingerprint for answer in lab.store.tables.answers.values()]
    assert fingerprints == [answer.fingerprint for answer in other.store.tables.answers.values()]
    assert all(b"sword" not in fingerprint for fingerprint in fingerprints)
    assert all(len(fingerprint) >= 16 for fingerprint in fingerprints)


@proves("IDEM-SCOPE", "IDEM-REPEAT")
def test_key_of_another_actor_is_refused(lab: Lab) -> None:
    lab.do(HUMAN, CreateTask("t", "T"))
    lab.do(ALICE, NoteTask("T", "x"), key="k")
    assert lab.code(BOB, NoteTask("T", "x"), key="k") == "key_reused"


@proves("LEDGER-SAID")
@pytest.mark.parametrize("original_text", [b"{", b"", b"\xff", b'"\xff"', b"{} {}"])
def test_original_text_that_is_not_json_is_refused(lab: Lab, original_text: bytes) -> None:
    request = Request(HUMAN, (CreateTask("t", "T"),), "r", original_text=msgspec.Raw(original_text))
    assert code(lab.engine.handle_now(request)) == "invalid_field"
    assert lab.code(HUMAN, NoteTask("T", "x")) == "task_not_found"
    assert findings(lab.store) == []


@proves("LEDGER-SAID", "LEDGER-LINE")
def test_original_text_of_several_lines_is_stored_on_one(lab: Lab) -> None:
    original_text = b'{\n  "text": "two\\nlines",\n  "n": 1.0\n}'
    lab.engine.handle_now(
        Request(HUMAN, (CreateTask("t", "T"),), "r", original_text=msgspec.Raw(original_text))
    )
    (entry,) = lab.store.entries(0, 10)
    assert b"\n" not in entry.line
    assert entry.line.endswith(b'"original_text":{"text":"two\\nlines","n":1.0}}')


@proves("ENGINE-HANDLE")
def test_request_needs_at_least_one_command() -> None:
    with pytest.raises(ValueError, match="at least one"):
        Request(HUMAN, (), "r")
