"""Repeats: the same answer, no new entry, a sign of life all the same; and what is no repeat."""

import msgspec
import pytest
from msgspec.structs import replace

from dragoman.core.commands import (
    AliasTask,
    AnyCommand,
    ClaimTask,
    CreateTask,
    MoveTask,
    NoteTask,
    RegisterAgent,
    ReleaseTask,
    RenewLease,
    ReportOutcome,
)
from dragoman.engine.reads.ask import TaskView, find_task
from dragoman.engine.request import Accepted, Request
from tests.engine.lab import ALICE, BOB, HUMAN, START, TTL, Lab, code, findings, yes
from tests.requirements import proves


def held(lab: Lab) -> None:
    """A task T that alice holds."""
    lab.do(HUMAN, CreateTask("t", "T", ready=True))
    lab.do(ALICE, ClaimTask("T", "alice"))


REPEATABLE: dict[str, AnyCommand] = {
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
def test_a_repeat_answers_as_the_first_time_did_and_adds_nothing(
    lab: Lab, command: AnyCommand
) -> None:
    held(lab)
    lab.do(HUMAN, CreateTask("u", "U", ready=True), CreateTask("v", "V", ready=True))
    first = yes(lab.ask(ALICE, command, key="k"))
    before = lab.store.picture()
    for _ in range(3):
        again = yes(lab.ask(ALICE, command, key="k"))
        assert again == Accepted(first.receipts, repeated=True)
        after = lab.store.picture()
        for table in ("entries", "names", "answers", "last_numbers"):
            assert after[table] == before[table]
    assert not first.repeated


@proves("IDEM-REPEAT")
def test_without_a_key_each_send_is_new(lab: Lab) -> None:
    held(lab)
    assert not yes(lab.ask(ALICE, NoteTask("T", "x"))).repeated
    assert not yes(lab.ask(ALICE, NoteTask("T", "x"))).repeated
    assert lab.task("T").notes == 2


@proves("IDEM-REPEAT", "LEASE-HEARTBEAT")
def test_a_repeat_still_renews_the_lease(lab: Lab) -> None:
    held(lab)
    lab.do(ALICE, NoteTask("T", "x"), key="k")
    lab.clock.advance(1_000)
    lab.do(ALICE, NoteTask("T", "x"), key="k")
    lease = lab.lease("T")
    assert lease is not None
    assert lease.expires_at == START + 1_000 + TTL


@proves("IDEM-REPEAT", "LEASE-LOST")
def test_a_repeat_does_not_bring_a_lost_lease_back(lab: Lab) -> None:
    held(lab)
    lab.do(ALICE, NoteTask("T", "x"), key="k")
    lab.clock.advance(TTL)
    dead = lab.lease("T")
    assert yes(lab.ask(ALICE, NoteTask("T", "x"), key="k")).repeated
    assert lab.lease("T") == dead
    assert lab.code(ALICE, NoteTask("T", "y"), key="l") == "lease_lost"


@proves("IDEM-REPEAT")
def test_a_repeat_of_a_tuple_is_one_repeat(lab: Lab) -> None:
    commands = (CreateTask("a", "A", ready=True), ClaimTask("A", "alice"), NoteTask("A", "x"))
    first = yes(lab.ask(ALICE, *commands, key="k"))
    lab.clock.advance(5)
    again = yes(lab.ask(ALICE, *commands, key="k"))
    assert (again.receipts, again.repeated) == (first.receipts, True)
    assert lab.store.head() == 3
    lease = lab.lease("A")
    assert lease is not None
    assert lease.expires_at == START + 5 + TTL


@proves("IDEM-REPEAT")
def test_the_answer_is_that_of_the_first_time_whatever_has_happened_since(lab: Lab) -> None:
    held(lab)
    first = yes(lab.ask(ALICE, MoveTask("T", "review"), key="k"))
    lab.do(HUMAN, MoveTask("T", "ready"))
    lab.do(BOB, ClaimTask("T", "bob"))
    again = yes(lab.ask(ALICE, MoveTask("T", "review"), key="k"))
    assert again.receipts == first.receipts
    assert lab.task("T").assignee == "bob"


@proves("IDEM-REPEAT")
def test_an_answer_under_a_key_says_how_far_its_task_was_so_that_it_can_be_shown_again(
    lab: Lab,
) -> None:
    held(lab)
    noted = yes(lab.ask(ALICE, NoteTask("T", "x"), key="k")).receipts[0]
    then = find_task(lab.store, "T", noted.version)
    assert isinstance(then, TaskView)
    lab.do(ALICE, NoteTask("T", "y"))
    # The lease is the one of the same attempt, as it is by now.
    assert find_task(lab.store, "T", noted.version) == replace(then, lease=lab.lease("T"))
    lab.do(ALICE, ReleaseTask("T"))
    assert find_task(lab.store, "T", noted.version) == replace(then, lease=None)
    lab.do(BOB, ClaimTask("T", "bob"))
    again = yes(lab.ask(ALICE, NoteTask("T", "x"), key="k")).receipts[0]
    assert again == noted
    assert find_task(lab.store, "T", again.version) == replace(then, lease=None)
    assert yes(lab.ask(HUMAN, RegisterAgent("zoe", "agent"), key="k")).receipts[0].version == 0
    assert yes(lab.ask(HUMAN, NoteTask("T", "z"))).receipts[0].version == 0


@proves("IDEM-REPEAT")
def test_a_no_op_is_remembered_too(lab: Lab) -> None:
    """Its repeat must not become a change only because the world has moved on."""
    lab.do(HUMAN, CreateTask("t", "T", ready=True))
    first = yes(lab.ask(HUMAN, MoveTask("T", "ready"), key="k"))
    lab.do(HUMAN, MoveTask("T", "blocked"))
    again = yes(lab.ask(HUMAN, MoveTask("T", "ready"), key="k"))
    assert again == Accepted(first.receipts, repeated=True)
    assert lab.task("T").status == "blocked"


@proves("IDEM-REPEAT")
def test_a_key_is_known_within_its_own_batch(lab: Lab) -> None:
    held(lab)
    note = NoteTask("T", "x")
    answers = lab.batch(
        lab.request(ALICE, note, key="k"),
        lab.request(ALICE, note, key="k"),
        lab.request(ALICE, replace(note, text="y"), key="k"),
        lab.request(ALICE, CreateTask("a"), key="k"),
        lab.request(ALICE, CreateTask("a"), key="k"),
    )
    assert [yes(a).repeated if not code(a) else code(a) for a in answers] == [
        False,
        True,
        "key_reused",
        False,
        True,
    ]
    assert lab.task("T").notes == 1


@proves("IDEM-SCOPE", "REFUSAL-RECORDED")
def test_the_same_key_for_something_else_is_refused_and_recorded(lab: Lab) -> None:
    held(lab)
    lab.do(ALICE, NoteTask("T", "x"), key="k")
    assert lab.code(ALICE, NoteTask("T", "y"), key="k") == "key_reused"
    assert lab.code(ALICE, NoteTask("T", "x"), NoteTask("T", "x"), key="k") == "key_reused"
    assert lab.code(ALICE, RenewLease("T"), key="k") == "key_reused"
    assert lab.task("T").notes == 1
    assert lab.refused(ALICE) == ["key_reused", "key_reused"], "a note twice, a heartbeat"
    assert yes(lab.ask(ALICE, NoteTask("T", "x"), key="k")).repeated


@proves("IDEM-SCOPE")
def test_a_key_is_unique_per_target(lab: Lab) -> None:
    held(lab)
    lab.do(HUMAN, CreateTask("u", "U"))
    lab.do(HUMAN, NoteTask("T", "x"), key="k")
    assert not yes(lab.ask(HUMAN, NoteTask("U", "y"), key="k")).repeated
    assert lab.code(BOB, NoteTask("T", "from another actor"), key="k") == "key_reused"


@proves("IDEM-SCOPE")
def test_a_key_is_unique_per_actor_where_there_is_no_target(lab: Lab) -> None:
    first = lab.do(ALICE, CreateTask("a"), key="k")
    second = lab.do(BOB, CreateTask("a"), key="k")
    assert first.task != second.task
    assert lab.code(ALICE, CreateTask("b"), key="k") == "key_reused"
    lab.do(HUMAN, MoveTask(first.task, "ready"))
    assert lab.code(ALICE, ClaimTask("", "alice"), key="k") == "key_reused"
    assert lab.code(ALICE, ClaimTask("", "alice"), key="l") == ""


@proves("IDEM-SCOPE")
def test_a_target_is_the_same_by_any_of_its_names(lab: Lab) -> None:
    lab.do(HUMAN, CreateTask("t", "T", aliases=("bead:b",)))
    lab.do(HUMAN, NoteTask("bead:b", "x"), key="k")
    assert yes(lab.ask(HUMAN, NoteTask("bead:b", "x"), key="k")).repeated
    assert lab.code(HUMAN, NoteTask("T", "y"), key="k") == "key_reused"


@proves("IDEM-REFUSED")
def test_a_refusal_is_not_remembered(lab: Lab) -> None:
    lab.do(HUMAN, CreateTask("t", "T"))
    claim = ClaimTask("T", "alice")
    assert lab.code(ALICE, claim, key="k") == "not_ready"
    assert lab.code(ALICE, claim, key="k") == "not_ready"
    lab.do(HUMAN, MoveTask("T", "ready"))
    assert not yes(lab.ask(ALICE, claim, key="k")).repeated
    assert yes(lab.ask(ALICE, claim, key="k")).repeated


@proves("IDEM-REFUSED")
def test_a_refused_key_may_be_used_for_something_else(lab: Lab) -> None:
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
def test_a_key_has_a_grammar(lab: Lab, key: str, expected: str) -> None:
    assert lab.code(HUMAN, CreateTask("t"), key=key) == expected
    (answer, _) = lab.batch(
        lab.request(HUMAN, CreateTask("t"), key=key), lab.request(HUMAN, CreateTask("u"))
    )
    assert code(answer) == expected
    assert lab.refused(HUMAN) == ([expected] if expected else [])


@proves("IDEM-SCOPE")
def test_what_is_kept_of_a_request_tells_nothing_of_it(lab: Lab) -> None:
    other = Lab()
    secret = NoteTask("T", "the password is swordfish")
    for one in (lab, other):
        one.do(HUMAN, CreateTask("t", "T"))
        one.do(HUMAN, secret, key="k")
    kept = [answer.fingerprint for answer in lab.store.tables.answers.values()]
    assert kept == [answer.fingerprint for answer in other.store.tables.answers.values()]
    assert all(b"sword" not in fingerprint for fingerprint in kept)
    assert all(len(fingerprint) >= 16 for fingerprint in kept)


@proves("IDEM-SCOPE", "IDEM-REPEAT")
def test_a_key_does_not_speak_for_somebody_else(lab: Lab) -> None:
    lab.do(HUMAN, CreateTask("t", "T"))
    lab.do(ALICE, NoteTask("T", "x"), key="k")
    assert lab.code(BOB, NoteTask("T", "x"), key="k") == "key_reused"


@proves("LEDGER-SAID")
@pytest.mark.parametrize("said", [b"{", b"", b"\xff", b'"\xff"', b"{} {}"])
def test_words_that_are_not_json_never_reach_the_ledger(lab: Lab, said: bytes) -> None:
    request = Request(HUMAN, (CreateTask("t", "T"),), "r", said=msgspec.Raw(said))
    assert code(lab.engine.handle_now(request)) == "invalid_field"
    assert lab.code(HUMAN, NoteTask("T", "x")) == "task_not_found"
    assert findings(lab.store) == []


@proves("LEDGER-SAID", "LEDGER-LINE")
def test_words_over_several_lines_are_kept_on_one(lab: Lab) -> None:
    said = b'{\n  "text": "two\\nlines",\n  "n": 1.0\n}'
    lab.engine.handle_now(Request(HUMAN, (CreateTask("t", "T"),), "r", said=msgspec.Raw(said)))
    (entry,) = lab.store.entries(0, 10)
    assert b"\n" not in entry.line
    assert entry.line.endswith(b'"said":{"text":"two\\nlines","n":1.0}}')


@proves("ENGINE-HANDLE")
def test_a_request_asks_for_something() -> None:
    with pytest.raises(ValueError, match="at least one"):
        Request(HUMAN, (), "r")
