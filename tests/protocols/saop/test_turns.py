"""Turns and events through the hub: kept once, read back in order, told from whoever they are."""

import json
from typing import Any

import msgspec
import pytest

from dragoman.core.actors import Actor
from dragoman.core.commands import (
    ClaimTask,
    CreateTask,
    MoveTask,
    NoteTask,
    RegisterAgent,
    ReportOutcome,
)
from dragoman.engine.plan import Taken, Turned
from dragoman.engine.rests import Left
from dragoman.protocols import saop
from tests.engine.lab import HUMAN, findings
from tests.protocols.saop.desk import (
    DEVELOPER,
    OLGA,
    REVIEWER,
    SECRET,
    TASK,
    Desk,
    completed,
    event,
    invoked,
    pulse,
    thought,
    transition,
    turn,
)
from tests.requirements import proves
from tests.text.test_redact import PEM


@proves("SAOP-TURNS", "SAOP-ADOPT")
def test_turns_are_read_in_order_whatever_their_arrival() -> None:
    desk = Desk()
    for index in (3, 0, 5, 1):
        desk.turn(index)
    told = desk.call("saop.turns", {"task_id": TASK})

    assert [one["turn_index"] for one in told["turns"]] == [0, 1, 3, 5]
    assert told["gaps"] == (2, 4)
    assert not told["more"]
    assert desk.task(TASK).status == "in-progress"
    assert [name for _, name in desk.lines()[:3]] == [
        "task.created",
        "task.claimed",
        "turn.recorded",
    ]
    page = desk.call("saop.turns", {"task_id": TASK, "attempt": 1, "after": 0, "limit": 2})
    assert ([one["turn_index"] for one in page["turns"]], page["more"]) == ([1, 3], True)
    assert findings(desk.store) == []


@proves("SAOP-TURNS")
def test_all_turns_are_read_page_by_page_over_all_attempts() -> None:
    desk = Desk()
    for index in (1, 3, 5):
        desk.turn(index)
    desk.do(HUMAN, MoveTask(TASK, "ready"))
    desk.do(DEVELOPER, ClaimTask(TASK, "developer"))
    desk.turn(0, "another attempt")
    pages, asked = list[Any](), {"task_id": TASK, "limit": 2}
    while not pages or pages[-1]["more"]:
        cursor = {"cursor": pages[-1]["cursor"]} if pages else {}
        pages.append(desk.call("saop.turns", {**asked, **cursor}))
    read = [[(one["attempt"], one["turn_index"]) for one in page["turns"]] for page in pages]
    assert read == [[(1, 1), (1, 3)], [(1, 5), (2, 0)]]
    assert pages[-1]["cursor"] == ""
    refused = desk.refusal("saop.turns", {**asked, "after": 3})
    assert (refused.code, refused.path) == ("invalid_field", "attempt")


@proves("SAOP-TURNS")
def test_a_repeat_is_answered_and_other_words_are_refused() -> None:
    desk = Desk()
    first = desk.turn(0, SECRET)
    head = desk.store.head()

    assert first == {"ok": True, "position": 3, "masked": True}
    assert desk.turn(0, SECRET) == first
    assert desk.store.head() == head
    assert desk.refusal("saop.turn", turn(0, "other words")).code == "key_reused"
    answer = desk.interpreter.call("saop.turn", turn(1), DEVELOPER, key="k-1")
    again = desk.interpreter.call("saop.turn", turn(1), DEVELOPER, key="k-1")
    assert isinstance(answer, Taken)
    assert isinstance(again, Taken)
    assert again.reply == answer.reply
    assert again.repeated


@proves("SAOP-TURNS")
def test_the_turns_of_each_attempt_are_counted_anew() -> None:
    desk = Desk()
    desk.turn(0)
    desk.do(HUMAN, MoveTask(TASK, "ready"))
    desk.do(DEVELOPER, ClaimTask(TASK, "developer"))
    desk.turn(0, "another attempt")
    told = desk.call("saop.turns", {"task_id": TASK})["turns"]

    assert [(one["attempt"], one["content"]["thought"]) for one in told] == [
        (1, "t"),
        (2, "another attempt"),
    ]


@proves("SAOP-ROLE")
def test_nobody_speaks_in_another_part() -> None:
    desk = Desk()
    alice = Actor("agent", "alice")
    assert desk.refusal("saop.turn", turn(), REVIEWER).code == "identity_mismatch"
    assert desk.refusal("saop.turn", turn(), alice).code == "identity_mismatch"
    assert "has no part" in desk.refusal("saop.turn", turn(), alice).detail
    assert desk.refusal("saop.turn", turn(role="reviewer")).path == "role"
    assert desk.refusal("saop.event", event(1, thought("x")), REVIEWER).code == (
        "identity_mismatch"
    )
    desk.do(HUMAN, RegisterAgent("alice", plays="developer"))
    assert desk.call("saop.turn", turn(), alice)["ok"]
    assert desk.call("saop.turn", turn(7), OLGA)["ok"], "who runs the show tells of others"
    assert desk.code(alice, RegisterAgent("alice", plays="reviewer")) == "not_authorized"
    assert desk.code(HUMAN, RegisterAgent("bob", plays="boss")) == "invalid_field"
    assert desk.refusal("saop.turn", turn(), Actor("observer", "developer")).code == (
        "not_authorized"
    )


@proves("SAOP-ADOPT", "SAOP-TURNS")
def test_what_cannot_be_a_task_is_refused_at_the_door() -> None:
    desk = Desk()
    assert desk.refusal("saop.turn", turn(metadata={"task_id": ""})).code == "invalid_id"
    assert desk.refusal("saop.event", event(1, pulse("x"), "")).code == "invalid_id"
    assert desk.refusal("saop.turns", {"task_id": "nothing"}).code == "task_not_found"
    assert desk.refusal("saop.events", {"task_id": "nothing"}).code == "task_not_found"
    assert desk.refusal("saop.turns", {}).code == "invalid_field"
    assert desk.refusal("saop.turn", {**turn(), "role": 3}).path == "role"
    strict = Desk(saop.Choices(adopt=False))
    assert strict.refusal("saop.turn", turn()).code == "task_not_found"


@proves("SAOP-TURNS")
def test_an_agent_that_lost_its_task_is_told_so() -> None:
    desk = Desk()
    desk.turn(0)
    desk.do(HUMAN, MoveTask(TASK, "ready"))
    desk.do(HUMAN, ClaimTask(TASK, "bob"))
    assert desk.refusal("saop.turn", turn(1)).code == "lease_lost"


@proves("SAOP-EVENTS")
def test_an_event_gets_its_task_from_its_session() -> None:
    desk = Desk()
    desk.do(HUMAN, CreateTask("One", "one", ready=True))
    desk.do(DEVELOPER, ClaimTask("one", "developer", "s-1"))
    desk.event(1, invoked("c-1"))
    desk.event(2, completed("c-1"))
    desk.event(3, pulse("elsewhere"), "s-2")
    desk.do(HUMAN, MoveTask("one", "ready"))
    desk.event(4, pulse("late"))
    of_task = desk.events(task_id="one")

    assert [one["payload"]["type"] for one in of_task] == [
        "TASK_TRANSITION",
        "TOOL_LIFECYCLE_INVOKED",
        "TOOL_LIFECYCLE_COMPLETED",
        "SANDBOX_PULSE",
        "TASK_TRANSITION",
        "SANDBOX_PULSE",
    ]
    assert [one["session_id"] for one in of_task[1:4]] == ["s-1", "s-1", "s-2"]
    assert [one["payload"]["line"] for one in desk.events(session_id="s-2")] == ["elsewhere"]
    positions = [one["position"] for one in desk.events()]
    assert positions == sorted(positions)
    third = of_task[2]["position"]
    assert desk.events(session_id="s-1", after=third) == [of_task[4], of_task[5]]
    assert len(desk.events(task_id="one", after=third, limit=2)) == 2
    in_it = desk.events(task_id="one", session_id="s-1")
    assert in_it == desk.events(session_id="s-1") == [*of_task[:3], *of_task[4:]]
    assert len(desk.events(limit=2)) == 2
    assert desk.events(session_id="s-9") == []


@proves("SAOP-EVENTS")
def test_an_event_is_kept_once_whoever_sends_it_again() -> None:
    desk = Desk()
    first = desk.event(1, invoked("c-1"))
    shouted = event(1, invoked("c-1"))
    head = desk.store.head()

    assert desk.event(1, invoked("c-1")) == first
    assert desk.store.head() == head
    upper = {**shouted, "event_id": shouted["event_id"].upper()}
    assert desk.call("saop.event", upper) == first, "an id is one in any case"
    assert desk.store.head() == head
    assert desk.refusal("saop.event", event(1, invoked("c-2"))).code == "key_reused"
    other = {**upper, "session_id": "s-2"}
    assert desk.refusal("saop.event", other).code == "key_reused"


@proves("SAOP-EVENTS")
def test_a_sign_of_life_renews_the_lease() -> None:
    desk = Desk()
    desk.turn(0)
    desk.clock.advance(60_000)
    before = desk.lease(TASK)
    desk.event(1, pulse("still here"))
    after = desk.lease(TASK)

    assert before is not None
    assert after is not None
    assert after.expires_at == before.expires_at + 60_000


@proves("SAOP-ANOMALY")
def test_what_does_not_fit_is_kept_and_told() -> None:
    desk = Desk()
    desk.turn(0)
    assert desk.event(1, completed("c-1"))["anomaly"] == "orphan_completion"
    assert "anomaly" not in desk.event(2, invoked("c-2"))
    assert desk.event(3, invoked("c-2"))["anomaly"] == "second_invocation"
    assert "anomaly" not in desk.event(4, completed("c-2"))
    assert desk.event(5, completed("c-2"))["anomaly"] == "second_completion"
    assert "anomaly" not in desk.event(6, thought("a", final=True))
    assert desk.event(7, thought("b", final=True))["anomaly"] == "second_final"
    assert desk.event(8, thought("c"))["anomaly"] == "chunk_after_final"
    assert "anomaly" not in desk.event(9, thought("d", index=1))
    kinds = [name for stream, name in desk.lines() if stream == "trace:s-1"]
    assert (kinds.count("trace.recorded"), kinds.count("trace.anomaly")) == (9, 5)


@proves("SAOP-TRANSITION")
def test_a_transition_moves_a_task_only_if_its_sender_may() -> None:
    desk = Desk()
    desk.turn(0)
    moved = desk.event(1, transition("blocked", git_hash="f" * 40))
    assert moved["applied"]
    assert (desk.task(TASK).status, desk.task(TASK).head_hash) == ("blocked", "f" * 40)
    declined = desk.event(2, transition("done"))
    assert (declined["applied"], declined["reason"]["code"]) == (False, "invalid_transition")
    assert desk.task(TASK).status == "blocked"
    trace_only = desk.event(3, transition("somewhere"))
    assert not trace_only["applied"]
    assert "'somewhere' is no status" in trace_only["reason"]["detail"]
    adopted = desk.event(4, transition("in-progress", "another"))
    assert adopted["applied"], "adopted and claimed"
    assert "task_id" not in adopted, "it belongs to the task that began"
    assert desk.task("another").status == "in-progress"
    born = desk.call("saop.event", event(5, transition("review", "third")), OLGA)
    assert (born["applied"], born["reason"]["code"]) == (False, "task_not_found")
    assert desk.refusal("saop.events", {"task_id": "third"}).code == "task_not_found"
    assert desk.call("saop.event", event(8, transition("ready", "third")), OLGA)["applied"]
    assert desk.task("third").status == "ready"
    assert desk.event(6, transition("ready", TASK))["applied"]
    assert desk.event(7, transition("in-progress", TASK))["applied"]
    told = [one["payload"] for one in desk.events(task_id=TASK)]
    moves = [(one["from_state"], one["to_state"], one.get("requested", False)) for one in told]
    assert moves == [
        ("ready", "in-progress", False),
        ("in-progress", "blocked", False),
        ("anywhere", "somewhere", True),
        ("blocked", "ready", False),
        ("ready", "in-progress", False),
    ], "a move is told as it was, whatever the event says that has asked for it"
    assert told[1]["asked_by"] == event(1, {})["event_id"]
    (claimed,) = desk.events(task_id="another")
    assert claimed["event_id"] == event(4, {})["event_id"], "the claim tells it"
    sent = desk.events(session_id="s-1")
    assert len(sent) == 8, "a session has what it was sent, or what came of it"
    asked = [one["payload"]["to_state"] for one in sent if "requested" in one["payload"]]
    assert asked == ["done", "somewhere", "review", "ready"], "the last one began as that"
    moved = [one for one in sent if "requested" not in one["payload"]]
    assert [one["event_id"] for one in moved] == [event(at, {})["event_id"] for at in (1, 4, 6, 7)]
    assert {one["session_id"] for one in sent} == {"s-1"}
    assert findings(desk.store) == []


def paged(desk: Desk, session: str, limit: int) -> list[Any]:
    """What happened in a session, read so many at a time."""
    found, after, end = list[Any](), -1, 0
    while end > after:
        after = end
        page = desk.call("saop.events", {"session_id": session, "after": after, "limit": limit})
        found += page["events"]
        end: int = page["cursor"]
    return found


@proves("SAOP-EVENTS", "SAOP-TRANSITION")
def test_a_session_has_the_moves_of_the_work_that_was_done_in_it() -> None:
    desk = Desk()
    for name in ("one", "two", "three"):
        desk.do(HUMAN, CreateTask(name, name, ready=True))
    desk.do(DEVELOPER, ClaimTask("one", "developer", "s-1"))
    held = desk.events(session_id="s-1")
    assert [one["payload"]["to_state"] for one in held] == ["in-progress"], "nothing was sent yet"
    for number in range(250):
        desk.do(DEVELOPER, NoteTask("one", f"line {number}"))
    desk.event(1, pulse("on one"))
    desk.do(DEVELOPER, ReportOutcome("one", "failed", apply=True))
    desk.do(HUMAN, MoveTask("one", "blocked"))
    desk.do(DEVELOPER, ClaimTask("two", "developer", "s-1"))
    desk.event(2, pulse("on two"))
    desk.do(DEVELOPER, MoveTask("two", "review"))
    desk.do(DEVELOPER, ClaimTask("three", "developer"))
    desk.do(DEVELOPER, MoveTask("three", "ready"))
    told = [
        (one["task_id"], one["payload"].get("to_state", "a line"))
        for one in desk.events(session_id="s-1")
    ]

    assert told == [
        ("one", "in-progress"),
        ("one", "a line"),
        ("one", "ready"),
        ("two", "in-progress"),
        ("two", "a line"),
        ("two", "review"),
    ]
    assert desk.events(task_id="three")[1]["session_id"] == "task:three", "it was in none"
    for limit in (1, 2, 3):
        assert paged(desk, "s-1", limit) == desk.events(session_id="s-1")


@proves("SAOP-EVENTS", "SAOP-TRANSITION")
def test_a_session_in_which_nothing_was_said_has_its_moves_when_it_is_over() -> None:
    desk = Desk()
    names = [f"t-{number}" for number in range(7)]
    for name in names:
        desk.do(HUMAN, CreateTask(name, name, ready=True))
        desk.do(DEVELOPER, ClaimTask(name, "developer", "s-1"))
    read = desk.events(session_id="s-1")
    assert [one["task_id"] for one in read] == names
    for name in names:
        desk.do(DEVELOPER, MoveTask(name, "review"))
    desk.do(DEVELOPER, ClaimTask("t-0", "developer", "s-2"))
    over = desk.events(session_id="s-1")
    assert over[:7] == read
    assert [(one["task_id"], one["payload"]["to_state"]) for one in over[7:]] == [
        (name, "review") for name in names
    ]
    assert desk.events(session_id="s-1", after=read[-1]["position"]) == over[7:]
    for limit in (1, 2, 7, 8):
        assert paged(desk, "s-1", limit) == over


@proves("SAOP-EVENTS", "SAOP-TRANSITION")
def test_who_asks_for_a_move_finds_it_in_its_own_session() -> None:
    desk = Desk()
    desk.do(HUMAN, CreateTask("One", "one", ready=True))
    desk.do(DEVELOPER, ClaimTask("one", "developer", "s-1"))
    desk.event(9, pulse("at work"))
    desk.call("saop.event", event(1, transition("review", "one"), "s-olga"), OLGA)
    desk.call("saop.event", event(2, transition("done", "one"), "s-olga"), OLGA)
    desk.call("saop.event", event(3, transition("ready", "one"), "s-olga"), OLGA)
    asked = desk.events(session_id="s-olga")
    states = [(one["session_id"], one["payload"]["to_state"]) for one in asked]
    assert states == [("s-1", "review"), ("s-olga", "done"), ("s-olga", "ready")]
    assert [one["payload"].get("requested") for one in asked] == [None, None, True]
    claimed, _, left = desk.events(session_id="s-1")
    assert (claimed["payload"]["to_state"], left) == ("in-progress", asked[0])
    for limit in (1, 2):
        assert paged(desk, "s-olga", limit) == asked


@proves("SAOP-COMMIT", "SAOP-TRANSITION")
def test_every_move_carries_what_is_checked_out() -> None:
    commits = iter("abcdef")
    desk = Desk(saop.Choices(head=lambda: "9" * 40))
    desk.engine.head = lambda: next(commits) * 40
    desk.do(HUMAN, CreateTask("One", "one", ready=True))
    desk.do(HUMAN, ClaimTask("one", "developer"))
    desk.do(HUMAN, MoveTask("one", "review"))
    desk.event(1, transition("done", "one"))
    hashes = [one["payload"]["git_hash"] for one in desk.events(task_id="one")]

    assert hashes == ["b" * 40, "c" * 40]
    assert desk.events(session_id="s-1")[0]["payload"]["git_hash"] == "9" * 40
    assert desk.task("one").head_hash == "c" * 40
    ids = [one["event_id"] for one in desk.events(task_id="one")]
    assert ids == [one["event_id"] for one in desk.events(task_id="one")]
    assert all(saop.safe_parse(one, "event").ok for one in desk.events())


@proves("SAOP-COMMIT", "SAOP-TRANSITION")
def test_what_the_hub_sees_checked_out_goes_before_what_is_said() -> None:
    desk = Desk(saop.Choices(head=lambda: "9" * 40))
    desk.engine.head = lambda: "9" * 40
    desk.turn(0)
    assert desk.event(1, transition("blocked", git_hash="f" * 40))["applied"]
    assert not desk.event(2, transition("done", git_hash="f" * 40))["applied"]
    shown = [one["payload"]["git_hash"] for one in desk.events(session_id="s-1")]
    assert shown == ["9" * 40, "9" * 40]
    assert desk.task(TASK).head_hash == "9" * 40
    said = desk.store.trace(event(1, {})["event_id"])
    assert said is not None
    assert ("f" * 40).encode() in said.line, "its words are kept as they were"


@proves("SAOP-MASKED")
def test_no_secret_is_stored_of_a_turn_or_an_event() -> None:
    desk = Desk()
    hidden = {"note": SECRET}
    desk.call("saop.turn", {**turn(0, f"my key is {SECRET}", metadata=hidden), "more": hidden})
    desk.event(1, invoked("c-1", command=f"curl -H {SECRET}"))
    assert desk.event(2, pulse(f"token {SECRET}"))["masked"]
    assert not desk.event(3, pulse("all is well"))["masked"]
    stored = b"".join(entry.line for entry in desk.store.entries(0, 100))
    seen = desk.events(session_id="s-1")

    assert SECRET.encode() not in stored
    assert [one["payload"].get("masked") for one in seen] == [None, True, False]
    assert desk.call("saop.turns", {"task_id": TASK})["turns"][0]["masked"]


@proves("SAOP-MASKED", "REDACT-TOLD")
def test_who_sends_a_secret_is_told_where_it_was() -> None:
    desk = Desk()

    def told(operation: str, said: dict[str, Any]) -> tuple[str, ...]:
        answer = desk.interpreter.call(operation, said, DEVELOPER)
        assert isinstance(answer, Taken)
        return answer.warnings

    masked = "a secret was masked: {} (github_token)"
    hidden = turn(0, f"my key is {SECRET}", metadata={"note": SECRET})
    assert told("saop.turn", hidden) == (
        masked.format("content.thought"),
        masked.format("metadata.note"),
    )
    assert told("saop.turn", turn(1)) == ()
    first = event(1, thought(f"it is {SECRET[:9]}"))
    assert told("saop.event", first) == (), "it waits"
    last = event(2, thought(SECRET[9:], final=True))
    assert told("saop.event", last) == (masked.format("payload.chunk"),)
    line = event(3, pulse(f"token {SECRET}"))
    assert told("saop.event", line) == (masked.format("payload.line"),)
    assert told("saop.event", line) == (masked.format("payload.line"),), "again as before"
    call = event(4, invoked("c-1", command=["curl", SECRET]))
    assert told("saop.event", call) == (masked.format("payload.arguments.command[1]"),)
    begin, body, *_ = PEM.splitlines()
    assert told("saop.event", event(5, pulse(begin))) == ()
    covered = told("saop.event", event(6, pulse(body)))
    assert covered == ("a secret was masked: payload.line (private_key)",)


@proves("SAOP-MASKED")
def test_a_secret_is_caught_over_every_border_of_two_chunks() -> None:
    text = f"we use {SECRET} for this"
    desk = Desk()
    for cut in range(len(text) + 1):
        parts = text[:cut], text[cut:]
        first = desk.event(2 * cut, thought(parts[0], index=cut), f"s-{cut}")
        again = desk.event(2 * cut, thought(parts[0], index=cut), f"s-{cut}")
        desk.event(2 * cut + 1, thought(parts[1], final=True, index=cut), f"s-{cut}")
        assert first == again
        told = desk.events(session_id=f"s-{cut}")
        whole = "".join(one["payload"]["chunk"] for one in told)
        assert whole.startswith("we use [REDACTED:github_token:"), whole
        assert whole.endswith("] for this")
    assert SECRET.encode() not in b"".join(one.line for one in desk.store.entries(0, 1_000))


@proves("SAOP-MASKED")
def test_what_is_held_back_is_bounded() -> None:
    tails = saop.ShortTails(2)
    for number in range(3):
        tails.put([Left(f"k-{number}", "e", "", f"held {number}")])

    assert tails.get("k-0", lambda _: True) == ""
    assert tails.get("k-2", lambda _: True) == "held 2"


def kept(desk: Desk) -> list[Any]:
    """The thoughts as they were kept."""
    told = desk.events(session_id="s-1")
    return [one["payload"]["chunk"] for one in told if "chunk" in one["payload"]]


@proves("SAOP-MASKED")
def test_a_repeat_of_an_older_chunk_changes_nothing_that_is_held_back() -> None:
    desk = Desk()
    desk.turn(0)
    pieces = ["alpha beta-one", " gamma " + SECRET[:20], SECRET[20:] + " end"]
    desk.event(1, thought(pieces[0]))
    desk.event(2, thought(pieces[1]))
    desk.event(1, thought(pieces[0]))
    desk.event(3, thought(pieces[2], final=True))
    desk.event(1, thought(pieces[0]))
    desk.event(2, thought(pieces[1]))
    whole = "".join(kept(desk))

    assert whole.startswith("alpha beta-one gamma [REDACTED:github_token:")
    assert whole.endswith("] end")


@proves("SAOP-MASKED", "SAOP-ROLE")
def test_nobody_gets_or_spoils_what_another_has_held_back() -> None:
    desk = Desk()
    desk.turn(0)
    mallory = Actor("agent", "mallory")
    desk.do(HUMAN, RegisterAgent("mallory", plays="developer"))
    desk.event(1, thought(f"key: {SECRET[:30]}"))
    assert desk.refusal("saop.event", event(8, thought("z ")), REVIEWER).code == (
        "identity_mismatch"
    )
    desk.call("saop.event", event(9, thought("z ")), mallory)
    last = thought(f"{SECRET[30:]} rest", final=True)
    desk.event(2, {**last, "turn_index": 0.0})
    stored = b"".join(entry.line for entry in desk.store.entries(0, 100))

    assert [text for text in kept(desk) if "z" in text] == ["z "]
    assert SECRET[:12].encode() not in stored
    assert SECRET[-12:].encode() not in stored


@proves("SAOP-MASKED")
def test_no_field_of_an_event_keeps_a_secret() -> None:
    desk = Desk()
    desk.turn(0)
    desk.event(1, invoked(SECRET))
    assert "anomaly" not in desk.event(2, completed(SECRET)), "it is the same call, masked"
    desk.event(3, transition(SECRET, from_state=SECRET))
    desk.event(4, transition("blocked", git_hash=SECRET))
    stored = b"".join(entry.line for entry in desk.store.entries(0, 100))

    assert SECRET.encode() not in stored
    assert desk.task(TASK).status == "blocked"
    assert desk.task(TASK).head_hash == ""
    plain = "toolu_01A09q90qw90lq917835lq9"
    desk.event(5, invoked(plain))
    assert desk.events(session_id="s-1")[-1]["payload"]["call_id"] == plain


@proves("SAOP-TURNS")
def test_what_is_missing_is_told_by_its_attempt_however_much_it_is() -> None:
    desk = Desk()
    desk.do(HUMAN, CreateTask("One", TASK, ready=True))

    def attempt(*indexes: int) -> None:
        desk.do(DEVELOPER, ClaimTask(TASK, "developer"))
        for index in indexes:
            desk.turn(index)
        desk.do(HUMAN, MoveTask(TASK, "ready"))

    attempt(0, 2)
    attempt(0, 1, 2)
    attempt(3, 4)  # counts on, as the file of a session does
    attempt(7, 9_007_199_254_740_991)
    attempt(1)
    told = desk.call("saop.turns", {"task_id": TASK})
    missing = [(one["attempt"], one["first"], one["last"]) for one in told["missing"]]
    assert missing == [(1, 1, 1), (4, 5, 6), (4, 8, 9_007_199_254_740_990), (5, 0, 0)]
    assert told["gaps"] == (1, 5, 6, *range(8, 1_005)), "the first thousand"
    last = desk.call("saop.turns", {"task_id": TASK, "attempt": 3})
    assert (last["missing"], last["gaps"]) == ([], ())
    paged, cursor = list[Any](), ""
    while True:
        page = desk.call("saop.turns", {"task_id": TASK, "limit": 1, "cursor": cursor})
        paged += page["missing"]
        if not (cursor := page["cursor"]):
            break
    assert paged == told["missing"]


@proves("SAOP-LARGE")
def test_the_id_of_a_call_has_a_bound() -> None:
    desk = Desk()
    assert desk.refusal("saop.event", event(1, invoked("c" * 257))).code == "invalid_field"


@proves("SAOP-ROLE", "SAOP-EVENTS")
def test_a_session_is_written_by_its_holder_and_no_task_gets_the_trace_of_a_stranger() -> None:
    desk = Desk()
    mallory = Actor("agent", "mallory")
    desk.do(HUMAN, RegisterAgent("mallory", plays="developer"))
    desk.do(HUMAN, CreateTask("One", "one", ready=True))
    desk.do(DEVELOPER, ClaimTask("one", "developer", "s-1"))
    desk.turn(0)
    refused = desk.refusal("saop.event", event(1, pulse("rm -rf /")), mallory)
    assert refused.code == "unauthorized_agent"
    assert desk.call("saop.event", event(2, pulse("told of it")), OLGA)["ok"]
    desk.event(3, invoked("c-1"), "s-2")
    theirs = desk.call("saop.event", event(4, completed("c-1"), "s-2"), mallory)
    assert theirs["anomaly"] == "orphan_completion", "nobody ends the call of another"
    assert "anomaly" not in desk.event(5, completed("c-1"), "s-2")
    moved = desk.call("saop.event", event(6, transition("review", "one"), "s-2"), mallory)
    assert not moved["applied"]
    assert [one["position"] for one in desk.events(session_id="s-2") if one["task_id"]] == []
    assert "rm" not in str(desk.events(task_id="one"))
    assert desk.refusal("saop.turn", turn(7), mallory).code == "unauthorized_agent"
    lines = [entry.line for entry in desk.store.entries(0, 100)]
    assert sum(b'"agent":"developer"' in line for line in lines if b"told of it" in line) == 1


@proves("SAOP-TRANSITION", "SAOP-EVENTS")
def test_a_transition_that_comes_again_moves_nothing() -> None:
    desk = Desk()
    desk.turn(0)
    assert desk.event(1, transition("blocked"))["applied"]
    assert desk.event(1, transition("blocked"))["applied"], "it is there"
    desk.do(HUMAN, MoveTask(TASK, "ready"))
    again = desk.event(1, transition("blocked"))

    assert (again["applied"], desk.task(TASK).status) == (False, "ready")
    assert "recorded before" in again["reason"]["detail"]


@proves("SAOP-TURNS", "SAOP-EVENTS")
def test_a_repeat_is_a_sign_of_life_and_is_answered_after_the_attempt() -> None:
    desk = Desk()
    first = desk.turn(0)
    desk.event(1, pulse("x"))
    desk.clock.advance(60_000)
    before = desk.lease(TASK)
    desk.event(1, pulse("x"))
    after = desk.lease(TASK)
    assert before is not None
    assert after is not None
    assert after.expires_at == before.expires_at + 60_000
    desk.do(HUMAN, MoveTask(TASK, "ready"))
    desk.do(HUMAN, ClaimTask(TASK, "bob"))
    assert desk.turn(0) == first
    assert desk.refusal("saop.turn", turn(0, "other words")).code == "lease_lost"
    assert desk.refusal("saop.turn", turn(1)).code == "lease_lost"


@proves("SAOP-MASKED")
def test_a_message_that_cannot_be_read_keeps_no_part_of_a_secret() -> None:
    desk = Desk()
    words = '{"turn_index":0,"content":"' + "x " * 470 + SECRET + '"'
    for text in (words, words + " y" * 1_000):
        assert desk.refusal("saop.turn", text).code == "invalid_json"
    stored = b"".join(entry.line for entry in desk.store.entries(0, 100))

    assert SECRET[:12].encode() not in stored


@proves("SAOP-LARGE")
def test_a_long_thought_is_kept_whole_and_a_longer_one_refused_by_name() -> None:
    desk = Desk()
    long = "x " * 5_000_000
    assert desk.turn(0, long)["ok"]
    (kept,) = desk.call("saop.turns", {"task_id": TASK})["turns"]
    assert kept["content"]["thought"] == long
    longer = json.dumps(turn(1, "y" * 17_000_000))
    head = desk.store.head()
    assert desk.refusal("saop.turn", longer).code == "message_too_large"
    sent = desk.interpreter.send(longer, speaker=DEVELOPER)
    assert isinstance(sent, Turned)
    assert sent.code == "message_too_large"
    refused = desk.store.entries(head, 10)
    assert all(len(entry.line) < 5_000 for entry in refused), "not kept by the back door"
    big_event = event(1, pulse("z" * 300_000))
    assert desk.refusal("saop.event", big_event).code == "message_too_large"


@proves("SAOP-SHAPES", "SAOP-TURNS")
def test_messages_are_recognised_bare_and_wrapped() -> None:
    desk = Desk()

    def send(said: Any) -> str:
        answer = desk.interpreter.send(json.dumps(said), speaker=DEVELOPER)
        if answer is None:
            return "nobody's"
        return answer.kind if isinstance(answer, Taken) else f"{answer.kind} {answer.code}"

    assert send(turn(0)) == "saop.turn"
    assert send({"message": turn(1)}) == "saop.turn"
    assert send({"payload": event(1, pulse("x"))}) == "saop.event"
    assert send(event(2, thought("x"))) == "saop.event"
    assert send({**turn(2), "agent_id": "boss"}) == "saop.turn invalid_envelope"
    assert send(event(3, {"type": "HITL_BLOCK"})) == "saop.event invalid_envelope"
    assert send({"turn_index": 1}) == "nobody's"
    assert send(["event_id"]) == "nobody's"
    assert send({"hello": "world"}) == "nobody's"
    assert desk.interpreter.send("event_id" + "x" * 17_000_000) is None
    assert desk.interpreter.send('"event_id"' + "x" * 17_000_000) is None
    many = {**turn(3), "agent_id": 1, "role": 2, "content": 3}
    detail = desk.refusal("saop.turn", many).detail
    assert detail.startswith("agent_id: ")
    assert "; role: " in detail
    assert desk.interpreter.send(json.dumps(turn(9)), via="inbox") is not None


@proves("SAOP-SHAPES")
def test_it_names_its_kinds_of_message() -> None:
    assert saop.dialect().kinds == ("turn", "event", "payload")


@proves("SAOP-TABLES")
@pytest.mark.parametrize("damage", ["missing", "stranger", "differs", "beyond"])
def test_verify_finds_rows_of_the_logs_that_disagree(damage: str) -> None:
    desk = Desk()
    desk.turn(0)
    desk.event(1, pulse("x"))
    store = desk.store.copy()
    logs = store.tables.logs
    key, (log, entry) = next(iter(logs.items()))
    assert findings(store) == []
    if damage == "missing":
        del logs[key]
    elif damage == "differs":
        logs[key] = (type(log)(log.task, 7, log.turn_index, None, log.digest, False), entry)
    elif damage == "stranger":
        logs["event:x"] = (log, store.tables.entries[0])
    else:
        beyond = type(entry)(99, "turns:x", 1, "turn.recorded", b"", b"", b"")
        logs["event:x"] = (log, beyond)

    assert [found.problem for found in findings(store)] == [
        {
            "missing": "its row in the logs is missing",
            "differs": "its row in the logs differs",
            "stranger": "a row of the logs is beside it",
            "beyond": "a row of the logs has no entry",
        }[damage]
    ]


@proves("SAOP-TURNS")
def test_what_is_published_of_an_event_is_what_is_taken() -> None:
    operations = {one.name: one for one in saop.dialect().operations}
    _, parts = msgspec.json.schema_components([operations["saop.event"].shape])
    described = msgspec.json.encode(parts).decode()
    assert all(f'"{name}"' in described for name in saop.TYPES.by_name)
    assert '"Payload"' not in described
    assert "\\\\A" not in described
    never = {**pulse("x"), "timestamp": "2026-02-30T00:00:00Z"}
    assert Desk().refusal("saop.event", event(1, never)).path == "payload.timestamp"


@proves("SAOP-TURNS")
def test_a_reviewer_counts_its_turns_by_itself_and_takes_none_of_the_developers() -> None:
    desk = Desk()
    for index in (0, 1):
        desk.call("saop.turn", turn(index))
    desk.do(DEVELOPER, ReportOutcome(TASK, "done", apply=True))
    own = {"agent_id": "reviewer", "role": "reviewer"}
    first = desk.call("saop.turn", turn(0, "I look", **own), REVIEWER)
    desk.call("saop.turn", turn(2, "I judge", **own), REVIEWER)
    assert desk.call("saop.turn", turn(0, "I look", **own), REVIEWER) == first, "once"
    other = desk.refusal("saop.turn", turn(2, "or not", **own), REVIEWER)
    assert other.code == "key_reused"
    assert f"turn 2 beside the attempts on {TASK}" in other.detail
    desk.call("saop.turn", turn(2, "late"))
    told = desk.call("saop.turns", {"task_id": TASK})["turns"]
    assert [(one["attempt"], one["agent_id"], one["turn_index"]) for one in told] == [
        *((1, "developer", 0), (1, "developer", 1), (1, "developer", 2)),
        *((-1, "reviewer", 0), (-1, "reviewer", 2)),
    ]


def judged(desk: Desk, actor: Actor, index: int = 0, words: str = "I look") -> Any:
    """The answer to a turn of somebody who looks at the work of another."""
    return desk.call("saop.turn", turn(index, words, agent_id="reviewer", role="reviewer"), actor)


def reviewed(desk: Desk) -> tuple[Actor, Actor]:
    """Two reviewers who have both looked, once the developer was done."""
    rita = Actor("agent", "rita")
    desk.do(HUMAN, RegisterAgent("rita", plays="reviewer"))
    desk.turn(0)
    desk.do(DEVELOPER, ReportOutcome(TASK, "done", apply=True))
    judged(desk, REVIEWER, words="I look")
    judged(desk, rita, words="so do I")
    return REVIEWER, rita


@proves("SAOP-TURNS")
def test_whoever_had_no_attempt_has_a_count_of_its_own_in_each_round() -> None:
    desk = Desk()
    reviewer, rita = reviewed(desk)
    desk.do(HUMAN, MoveTask(TASK, "ready"))
    desk.do(DEVELOPER, ClaimTask(TASK, "developer"))
    desk.do(DEVELOPER, ReportOutcome(TASK, "done", apply=True))
    judged(desk, rita, words="once more")
    judged(desk, reviewer, words="and I")
    judged(desk, rita, 1, "fine")
    told = desk.call("saop.turns", {"task_id": TASK})["turns"]
    assert [(one["attempt"], one["by"], one["beside"], one["turn_index"]) for one in told] == [
        *((1, "", None, 0), (-1, "reviewer", 1, 0), (-2, "rita", 1, 0)),
        *((-3, "rita", 2, 0), (-3, "rita", 2, 1), (-4, "reviewer", 2, 0)),
    ]
    again = desk.call("saop.turns", {"task_id": TASK, "attempt": -3, "after": 0})["turns"]
    assert [one["content"]["thought"] for one in again] == ["fine"]
    assert findings(desk.store) == []


@proves("SAOP-TURNS")
def test_what_was_recorded_when_all_of_them_shared_a_count_is_not_stored_again() -> None:
    """Turns of no attempt had the number 0, whoever had shown them; before the first they have."""
    desk = Desk()
    desk.do(HUMAN, CreateTask("One", TASK, ready=True))
    first = judged(desk, HUMAN)
    desk.do(HUMAN, ClaimTask(TASK, "developer"))
    desk.do(DEVELOPER, ReportOutcome(TASK, "done", apply=True))
    head = desk.store.head()
    assert judged(desk, REVIEWER) == first
    assert desk.store.head() == head
    assert judged(desk, REVIEWER, words="another time") != first


@proves("SAOP-TURNS")
def test_turns_beside_the_attempts_are_read_page_by_page() -> None:
    desk = Desk()
    reviewed(desk)
    read, cursor = list[int](), ""
    while not read or cursor:
        page = desk.call("saop.turns", {"task_id": TASK, "limit": 1, "cursor": cursor})
        read += [one["attempt"] for one in page["turns"]]
        cursor = page["cursor"]
    assert read == [1, -1, -2]
    desk.do(HUMAN, CreateTask("Two", "two"))
    assert desk.call("saop.turns", {"task_id": "two"})["turns"] == []


@proves("SAOP-TURNS")
def test_a_turn_beside_the_attempts_is_answered_again_while_somebody_works() -> None:
    desk = Desk()
    _, rita = reviewed(desk)
    first = judged(desk, rita, words="so do I")
    desk.do(HUMAN, MoveTask(TASK, "ready"))
    desk.do(DEVELOPER, ClaimTask(TASK, "developer"))
    assert judged(desk, rita, words="so do I") == first
    other = turn(1, "more", agent_id="reviewer", role="reviewer")
    assert desk.refusal("saop.turn", other, rita).code == "unauthorized_agent"


@proves("SAOP-EVENTS")
def test_an_event_that_belongs_to_no_task_is_told_so() -> None:
    desk = Desk()
    for task in ("one", "two"):
        desk.do(HUMAN, CreateTask(task, task, ready=True), ClaimTask(task, "developer"))
    assert desk.call("saop.event", event(1, pulse("$ ls"), "s-9"))["task_id"] is None
    desk.do(DEVELOPER, ReportOutcome("two", "done", apply=True))
    assert "task_id" not in desk.call("saop.event", event(2, pulse("$ ls"), "s-9"))


@proves("LOST-CURSOR")
def test_events_from_beyond_the_end_are_brought_back_to_it_and_told() -> None:
    desk = Desk()
    desk.turn(0)
    end = desk.store.head()
    assert "gap" not in desk.call("saop.events", {"after": end})
    lost = desk.call("saop.events", {"after": end + 1})
    assert (lost["events"], lost["cursor"]) == ([], end)
    assert lost["gap"] == {"after": end + 1, "until": end}
