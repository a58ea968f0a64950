"""Turns and events through the hub: recorded once, read in order, attributed to their sender."""

import json
from typing import Any

import msgspec
import pytest

from dragoman.core.actor import Actor
from dragoman.core.agent import RegisterAgent
from dragoman.core.attempt import ClaimTask, ReportOutcome
from dragoman.core.task_state import CreateTask, MoveTask, NoteTask
from dragoman.engine.lint import linter_of
from dragoman.engine.redaction_carry_over import StoredCarryOver
from dragoman.engine.request import Accepted, Rejected
from dragoman.protocols import saop
from tests.engine.lab import HUMAN, findings
from tests.protocols.saop.hub import (
    DEVELOPER,
    OLGA,
    REVIEWER,
    SECRET,
    TASK,
    SaopHub,
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
def test_turns_are_read_in_order_of_index() -> None:
    hub = SaopHub()
    for index in (3, 0, 5, 1):
        hub.turn(index)
    answer = hub.call("saop.turns", {"task_id": TASK})

    assert [one["turn_index"] for one in answer["turns"]] == [0, 1, 3, 5]
    assert answer["gaps"] == (2, 4)
    assert not answer["more"]
    assert hub.task(TASK).status == "in-progress"
    assert [name for _, name in hub.lines()[:3]] == [
        "task.created",
        "task.claimed",
        "turn.recorded",
    ]
    page = hub.call("saop.turns", {"task_id": TASK, "attempt": 1, "after": 0, "limit": 2})
    assert ([one["turn_index"] for one in page["turns"]], page["more"]) == ([1, 3], True)
    assert findings(hub.store) == []


@proves("SAOP-TURNS")
def test_turns_are_paged_over_all_attempts() -> None:
    hub = SaopHub()
    for index in (1, 3, 5):
        hub.turn(index)
    hub.do(HUMAN, MoveTask(TASK, "ready"))
    hub.do(DEVELOPER, ClaimTask(TASK, "developer"))
    hub.turn(0, "another attempt")
    pages, arguments = list[Any](), {"task_id": TASK, "limit": 2}
    while not pages or pages[-1]["more"]:
        cursor = {"cursor": pages[-1]["cursor"]} if pages else {}
        pages.append(hub.call("saop.turns", {**arguments, **cursor}))
    read = [[(one["attempt"], one["turn_index"]) for one in page["turns"]] for page in pages]
    assert read == [[(1, 1), (1, 3)], [(1, 5), (2, 0)]]
    assert pages[-1]["cursor"] == ""
    refused = hub.refusal("saop.turns", {**arguments, "after": 3})
    assert (refused.code, refused.path) == ("invalid_field", "attempt")


@proves("SAOP-TURNS")
def test_repeated_turn_is_answered_and_a_changed_one_refused() -> None:
    hub = SaopHub()
    first = hub.turn(0, SECRET)
    head = hub.store.head()

    assert first == {"ok": True, "position": 3, "masked": True}
    assert hub.turn(0, SECRET) == first
    assert hub.store.head() == head
    assert hub.refusal("saop.turn", turn(0, "other words")).code == "key_reused"
    answer = hub.router.call("saop.turn", turn(1), DEVELOPER, key="k-1")
    again = hub.router.call("saop.turn", turn(1), DEVELOPER, key="k-1")
    assert isinstance(answer, Accepted)
    assert isinstance(again, Accepted)
    assert again.reply == answer.reply
    assert again.repeated


@proves("SAOP-TURNS")
def test_turn_index_starts_anew_in_each_attempt() -> None:
    hub = SaopHub()
    hub.turn(0)
    hub.do(HUMAN, MoveTask(TASK, "ready"))
    hub.do(DEVELOPER, ClaimTask(TASK, "developer"))
    hub.turn(0, "another attempt")
    turns = hub.call("saop.turns", {"task_id": TASK})["turns"]

    assert [(one["attempt"], one["content"]["thought"]) for one in turns] == [
        (1, "t"),
        (2, "another attempt"),
    ]


@proves("SAOP-ROLE")
def test_agent_cannot_send_turns_of_another_role() -> None:
    hub = SaopHub()
    alice = Actor("agent", "alice")
    assert hub.refusal("saop.turn", turn(), REVIEWER).code == "identity_mismatch"
    assert hub.refusal("saop.turn", turn(), alice).code == "identity_mismatch"
    assert "has no SAOP role" in hub.refusal("saop.turn", turn(), alice).detail
    assert hub.refusal("saop.turn", turn(role="reviewer")).path == "role"
    assert hub.refusal("saop.event", event(1, thought("x")), REVIEWER).code == ("identity_mismatch")
    hub.do(HUMAN, RegisterAgent("alice", saop_role="developer"))
    assert hub.call("saop.turn", turn(), alice)["ok"]
    assert hub.call("saop.turn", turn(7), OLGA)["ok"], "who runs the show tells of others"
    assert hub.code(alice, RegisterAgent("alice", saop_role="reviewer")) == "not_authorized"
    assert hub.code(HUMAN, RegisterAgent("bob", saop_role="boss")) == "invalid_field"
    assert hub.refusal("saop.turn", turn(), Actor("observer", "developer")).code == (
        "not_authorized"
    )


@proves("SAOP-ADOPT", "SAOP-TURNS")
def test_invalid_and_unknown_tasks_are_refused() -> None:
    hub = SaopHub()
    assert hub.refusal("saop.turn", turn(metadata={"task_id": ""})).code == "invalid_id"
    assert hub.refusal("saop.event", event(1, pulse("x"), "")).code == "invalid_id"
    assert hub.refusal("saop.turns", {"task_id": "nothing"}).code == "task_not_found"
    assert hub.refusal("saop.events", {"task_id": "nothing"}).code == "task_not_found"
    assert hub.refusal("saop.turns", {}).code == "invalid_field"
    assert hub.refusal("saop.turn", {**turn(), "role": 3}).path == "role"
    strict = SaopHub(saop.Choices(adopt=False))
    assert strict.refusal("saop.turn", turn()).code == "task_not_found"


@proves("SAOP-TURNS")
def test_agent_that_lost_its_task_gets_lease_lost() -> None:
    hub = SaopHub()
    hub.turn(0)
    hub.do(HUMAN, MoveTask(TASK, "ready"))
    hub.do(HUMAN, ClaimTask(TASK, "bob"))
    assert hub.refusal("saop.turn", turn(1)).code == "lease_lost"


@proves("SAOP-EVENTS")
def test_event_gets_its_task_from_its_session() -> None:
    hub = SaopHub()
    hub.do(HUMAN, CreateTask("One", "one", ready=True))
    hub.do(DEVELOPER, ClaimTask("one", "developer", "s-1"))
    hub.event(1, invoked("c-1"))
    hub.event(2, completed("c-1"))
    hub.event(3, pulse("elsewhere"), "s-2")
    hub.do(HUMAN, MoveTask("one", "ready"))
    hub.event(4, pulse("late"))
    of_task = hub.events(task_id="one")

    assert [one["payload"]["type"] for one in of_task] == [
        "TASK_TRANSITION",
        "TOOL_LIFECYCLE_INVOKED",
        "TOOL_LIFECYCLE_COMPLETED",
        "SANDBOX_PULSE",
        "TASK_TRANSITION",
        "SANDBOX_PULSE",
    ]
    assert [one["session_id"] for one in of_task[1:4]] == ["s-1", "s-1", "s-2"]
    assert [one["payload"]["line"] for one in hub.events(session_id="s-2")] == ["elsewhere"]
    positions = [one["position"] for one in hub.events()]
    assert positions == sorted(positions)
    third = of_task[2]["position"]
    assert hub.events(session_id="s-1", after=third) == [of_task[4], of_task[5]]
    assert len(hub.events(task_id="one", after=third, limit=2)) == 2
    in_it = hub.events(task_id="one", session_id="s-1")
    assert in_it == hub.events(session_id="s-1") == [*of_task[:3], *of_task[4:]]
    assert len(hub.events(limit=2)) == 2
    assert hub.events(session_id="s-9") == []


@proves("SAOP-EVENTS")
def test_repeated_event_is_recorded_once() -> None:
    hub = SaopHub()
    first = hub.event(1, invoked("c-1"))
    shouted = event(1, invoked("c-1"))
    head = hub.store.head()

    assert hub.event(1, invoked("c-1")) == first
    assert hub.store.head() == head
    upper = {**shouted, "event_id": shouted["event_id"].upper()}
    assert hub.call("saop.event", upper) == first, "an id is one in any case"
    assert hub.store.head() == head
    assert hub.refusal("saop.event", event(1, invoked("c-2"))).code == "key_reused"
    other = {**upper, "session_id": "s-2"}
    assert hub.refusal("saop.event", other).code == "key_reused"


@proves("SAOP-EVENTS")
def test_event_renews_the_lease() -> None:
    hub = SaopHub()
    hub.turn(0)
    hub.clock.advance(60_000)
    before = hub.lease(TASK)
    hub.event(1, pulse("still here"))
    after = hub.lease(TASK)

    assert before is not None
    assert after is not None
    assert after.expires_at == before.expires_at + 60_000


@proves("SAOP-ANOMALY")
def test_anomalous_events_are_recorded_and_reported() -> None:
    hub = SaopHub()
    hub.turn(0)
    assert hub.event(1, completed("c-1"))["anomaly"] == "orphan_completion"
    assert "anomaly" not in hub.event(2, invoked("c-2"))
    assert hub.event(3, invoked("c-2"))["anomaly"] == "second_invocation"
    assert "anomaly" not in hub.event(4, completed("c-2"))
    assert hub.event(5, completed("c-2"))["anomaly"] == "second_completion"
    assert "anomaly" not in hub.event(6, thought("a", final=True))
    assert hub.event(7, thought("b", final=True))["anomaly"] == "second_final"
    assert hub.event(8, thought("c"))["anomaly"] == "chunk_after_final"
    assert "anomaly" not in hub.event(9, thought("d", index=1))
    kinds = [name for stream, name in hub.lines() if stream == "trace:s-1"]
    assert (kinds.count("trace.recorded"), kinds.count("trace.anomaly")) == (9, 5)


@proves("SAOP-TRANSITION")
def test_transition_event_moves_a_task_only_if_its_sender_may() -> None:
    hub = SaopHub()
    hub.turn(0)
    moved = hub.event(1, transition("blocked", git_hash="f" * 40))
    assert moved["applied"]
    assert (hub.task(TASK).status, hub.task(TASK).head_hash) == ("blocked", "f" * 40)
    declined = hub.event(2, transition("done"))
    assert (declined["applied"], declined["reason"]["code"]) == (False, "invalid_transition")
    assert hub.task(TASK).status == "blocked"
    trace_only = hub.event(3, transition("somewhere"))
    assert not trace_only["applied"]
    assert "'somewhere' is no status" in trace_only["reason"]["detail"]
    adopted = hub.event(4, transition("in-progress", "another"))
    assert adopted["applied"], "adopted and claimed"
    assert "task_id" not in adopted, "it belongs to the task that began"
    assert hub.task("another").status == "in-progress"
    born = hub.call("saop.event", event(5, transition("review", "third")), OLGA)
    assert (born["applied"], born["reason"]["code"]) == (False, "task_not_found")
    assert hub.refusal("saop.events", {"task_id": "third"}).code == "task_not_found"
    assert hub.call("saop.event", event(8, transition("ready", "third")), OLGA)["applied"]
    assert hub.task("third").status == "ready"
    assert hub.event(6, transition("ready", TASK))["applied"]
    assert hub.event(7, transition("in-progress", TASK))["applied"]
    payloads = [one["payload"] for one in hub.events(task_id=TASK)]
    moves = [(one["from_state"], one["to_state"], one.get("requested", False)) for one in payloads]
    assert moves == [
        ("ready", "in-progress", False),
        ("in-progress", "blocked", False),
        ("anywhere", "somewhere", True),
        ("blocked", "ready", False),
        ("ready", "in-progress", False),
    ], "a move is told as it was, whatever the event says that has asked for it"
    assert payloads[1]["caused_by"] == event(1, {})["event_id"]
    (claimed,) = hub.events(task_id="another")
    assert claimed["event_id"] == event(4, {})["event_id"], "the claim tells it"
    sent = hub.events(session_id="s-1")
    assert len(sent) == 8, "a session has what it was sent, or what came of it"
    requested = [one["payload"]["to_state"] for one in sent if "requested" in one["payload"]]
    assert requested == ["done", "somewhere", "review", "ready"], "the last one began as that"
    moved = [one for one in sent if "requested" not in one["payload"]]
    assert [one["event_id"] for one in moved] == [event(at, {})["event_id"] for at in (1, 4, 6, 7)]
    assert {one["session_id"] for one in sent} == {"s-1"}
    assert findings(hub.store) == []


def read_in_pages(hub: SaopHub, session: str, limit: int) -> list[Any]:
    """Read the events of a session page by page."""
    found, after, end = list[Any](), -1, 0
    while end > after:
        after = end
        page = hub.call("saop.events", {"session_id": session, "after": after, "limit": limit})
        found += page["events"]
        end: int = page["cursor"]
    return found


@proves("SAOP-EVENTS", "SAOP-TRANSITION")
def test_session_lists_the_transitions_of_its_work() -> None:
    hub = SaopHub()
    for name in ("one", "two", "three"):
        hub.do(HUMAN, CreateTask(name, name, ready=True))
    hub.do(DEVELOPER, ClaimTask("one", "developer", "s-1"))
    held = hub.events(session_id="s-1")
    assert [one["payload"]["to_state"] for one in held] == ["in-progress"], "nothing was sent yet"
    for number in range(250):
        hub.do(DEVELOPER, NoteTask("one", f"line {number}"))
    hub.event(1, pulse("on one"))
    hub.do(DEVELOPER, ReportOutcome("one", "failed", apply=True))
    hub.do(HUMAN, MoveTask("one", "blocked"))
    hub.do(DEVELOPER, ClaimTask("two", "developer", "s-1"))
    hub.event(2, pulse("on two"))
    hub.do(DEVELOPER, MoveTask("two", "review"))
    hub.do(DEVELOPER, ClaimTask("three", "developer"))
    hub.do(DEVELOPER, MoveTask("three", "ready"))
    listed = [
        (one["task_id"], one["payload"].get("to_state", "a line"))
        for one in hub.events(session_id="s-1")
    ]

    assert listed == [
        ("one", "in-progress"),
        ("one", "a line"),
        ("one", "ready"),
        ("two", "in-progress"),
        ("two", "a line"),
        ("two", "review"),
    ]
    assert hub.events(task_id="three")[1]["session_id"] == "task:three", "it was in none"
    for limit in (1, 2, 3):
        assert read_in_pages(hub, "s-1", limit) == hub.events(session_id="s-1")


@proves("SAOP-EVENTS", "SAOP-TRANSITION")
def test_session_without_events_lists_its_transitions() -> None:
    hub = SaopHub()
    names = [f"t-{number}" for number in range(7)]
    for name in names:
        hub.do(HUMAN, CreateTask(name, name, ready=True))
        hub.do(DEVELOPER, ClaimTask(name, "developer", "s-1"))
    read = hub.events(session_id="s-1")
    assert [one["task_id"] for one in read] == names
    for name in names:
        hub.do(DEVELOPER, MoveTask(name, "review"))
    hub.do(DEVELOPER, ClaimTask("t-0", "developer", "s-2"))
    over = hub.events(session_id="s-1")
    assert over[:7] == read
    assert [(one["task_id"], one["payload"]["to_state"]) for one in over[7:]] == [
        (name, "review") for name in names
    ]
    assert hub.events(session_id="s-1", after=read[-1]["position"]) == over[7:]
    for limit in (1, 2, 7, 8):
        assert read_in_pages(hub, "s-1", limit) == over


@proves("SAOP-EVENTS", "SAOP-TRANSITION")
def test_requested_transition_is_listed_in_the_session_of_its_sender() -> None:
    hub = SaopHub()
    hub.do(HUMAN, CreateTask("One", "one", ready=True))
    hub.do(DEVELOPER, ClaimTask("one", "developer", "s-1"))
    hub.event(9, pulse("at work"))
    hub.call("saop.event", event(1, transition("review", "one"), "s-olga"), OLGA)
    hub.call("saop.event", event(2, transition("done", "one"), "s-olga"), OLGA)
    hub.call("saop.event", event(3, transition("ready", "one"), "s-olga"), OLGA)
    requested = hub.events(session_id="s-olga")
    states = [(one["session_id"], one["payload"]["to_state"]) for one in requested]
    assert states == [("s-1", "review"), ("s-olga", "done"), ("s-olga", "ready")]
    assert [one["payload"].get("requested") for one in requested] == [None, None, True]
    claimed, _, ended = hub.events(session_id="s-1")
    assert (claimed["payload"]["to_state"], ended) == ("in-progress", requested[0])
    for limit in (1, 2):
        assert read_in_pages(hub, "s-olga", limit) == requested


@proves("SAOP-COMMIT", "SAOP-TRANSITION")
def test_every_transition_has_the_checked_out_commit() -> None:
    commits = iter("abcdef")
    hub = SaopHub(saop.Choices(head=lambda: "9" * 40))
    hub.engine.current_commit = lambda: next(commits) * 40
    hub.do(HUMAN, CreateTask("One", "one", ready=True))
    hub.do(HUMAN, ClaimTask("one", "developer"))
    hub.do(HUMAN, MoveTask("one", "review"))
    hub.event(1, transition("done", "one"))
    hashes = [one["payload"]["git_hash"] for one in hub.events(task_id="one")]

    assert hashes == ["b" * 40, "c" * 40]
    assert hub.events(session_id="s-1")[0]["payload"]["git_hash"] == "9" * 40
    assert hub.task("one").head_hash == "c" * 40
    ids = [one["event_id"] for one in hub.events(task_id="one")]
    assert ids == [one["event_id"] for one in hub.events(task_id="one")]
    assert all(saop.safe_parse(one, "event").ok for one in hub.events())


@proves("SAOP-COMMIT", "SAOP-TRANSITION")
def test_checked_out_commit_outweighs_the_stated_one() -> None:
    hub = SaopHub(saop.Choices(head=lambda: "9" * 40))
    hub.engine.current_commit = lambda: "9" * 40
    hub.turn(0)
    assert hub.event(1, transition("blocked", git_hash="f" * 40))["applied"]
    assert not hub.event(2, transition("done", git_hash="f" * 40))["applied"]
    shown = [one["payload"]["git_hash"] for one in hub.events(session_id="s-1")]
    assert shown == ["9" * 40, "9" * 40]
    assert hub.task(TASK).head_hash == "9" * 40
    original = hub.store.trace_event(event(1, {})["event_id"])
    assert original is not None
    assert ("f" * 40).encode() in original.line, "its words are kept as they were"


@proves("SAOP-MASKED")
def test_secrets_in_turns_and_events_are_masked() -> None:
    hub = SaopHub()
    hidden = {"note": SECRET}
    hub.call("saop.turn", {**turn(0, f"my key is {SECRET}", metadata=hidden), "more": hidden})
    hub.event(1, invoked("c-1", command=f"curl -H {SECRET}"))
    assert hub.event(2, pulse(f"token {SECRET}"))["masked"]
    assert not hub.event(3, pulse("all is well"))["masked"]
    stored = b"".join(entry.line for entry in hub.store.entries(0, 100))
    events = hub.events(session_id="s-1")

    assert SECRET.encode() not in stored
    assert [one["payload"].get("masked") for one in events] == [None, True, False]
    assert hub.call("saop.turns", {"task_id": TASK})["turns"][0]["masked"]


@proves("SAOP-MASKED", "REDACT-TOLD")
def test_masked_secrets_are_warned_about_with_their_path() -> None:
    hub = SaopHub()

    def warnings(operation: str, message: dict[str, Any]) -> tuple[str, ...]:
        answer = hub.router.call(operation, message, DEVELOPER)
        assert isinstance(answer, Accepted)
        return answer.warnings

    masked = "a secret was masked: {} (github_token)"
    hidden = turn(0, f"my key is {SECRET}", metadata={"note": SECRET})
    assert warnings("saop.turn", hidden) == (
        masked.format("content.thought"),
        masked.format("metadata.note"),
    )
    assert warnings("saop.turn", turn(1)) == ()
    first = event(1, thought(f"it is {SECRET[:9]}"))
    assert warnings("saop.event", first) == (), "it waits"
    last = event(2, thought(SECRET[9:], final=True))
    assert warnings("saop.event", last) == (masked.format("payload.chunk"),)
    line = event(3, pulse(f"token {SECRET}"))
    assert warnings("saop.event", line) == (masked.format("payload.line"),)
    assert warnings("saop.event", line) == (masked.format("payload.line"),), "again as before"
    call = event(4, invoked("c-1", command=["curl", SECRET]))
    assert warnings("saop.event", call) == (masked.format("payload.arguments.command[1]"),)
    begin, body, *_ = PEM.splitlines()
    assert warnings("saop.event", event(5, pulse(begin))) == ()
    covered = warnings("saop.event", event(6, pulse(body)))
    assert covered == ("a secret was masked: payload.line (private_key)",)


@proves("SAOP-MASKED")
def test_secret_is_masked_across_every_chunk_border() -> None:
    text = f"we use {SECRET} for this"
    hub = SaopHub()
    for cut in range(len(text) + 1):
        parts = text[:cut], text[cut:]
        first = hub.event(2 * cut, thought(parts[0], index=cut), f"s-{cut}")
        again = hub.event(2 * cut, thought(parts[0], index=cut), f"s-{cut}")
        hub.event(2 * cut + 1, thought(parts[1], final=True, index=cut), f"s-{cut}")
        assert first == again
        events = hub.events(session_id=f"s-{cut}")
        whole = "".join(one["payload"]["chunk"] for one in events)
        assert whole.startswith("we use [REDACTED:github_token:"), whole
        assert whole.endswith("] for this")
    assert SECRET.encode() not in b"".join(one.line for one in hub.store.entries(0, 1_000))


@proves("SAOP-MASKED")
def test_carry_over_is_bounded() -> None:
    tails = saop.MemoryCarryOver(2)
    for number in range(3):
        tails.put([StoredCarryOver(f"k-{number}", "e", "", f"held {number}")])

    assert tails.get("k-0", lambda _: True) == ""
    assert tails.get("k-2", lambda _: True) == "held 2"


def recorded_chunks(hub: SaopHub) -> list[Any]:
    """Return the recorded thought chunks."""
    events = hub.events(session_id="s-1")
    return [one["payload"]["chunk"] for one in events if "chunk" in one["payload"]]


@proves("SAOP-MASKED")
def test_repeated_older_chunk_does_not_change_the_carry_over() -> None:
    hub = SaopHub()
    hub.turn(0)
    pieces = ["alpha beta-one", " gamma " + SECRET[:20], SECRET[20:] + " end"]
    hub.event(1, thought(pieces[0]))
    hub.event(2, thought(pieces[1]))
    hub.event(1, thought(pieces[0]))
    hub.event(3, thought(pieces[2], final=True))
    hub.event(1, thought(pieces[0]))
    hub.event(2, thought(pieces[1]))
    whole = "".join(recorded_chunks(hub))

    assert whole.startswith("alpha beta-one gamma [REDACTED:github_token:")
    assert whole.endswith("] end")


@proves("SAOP-MASKED", "SAOP-ROLE")
def test_carry_over_is_separate_per_agent() -> None:
    hub = SaopHub()
    hub.turn(0)
    mallory = Actor("agent", "mallory")
    hub.do(HUMAN, RegisterAgent("mallory", saop_role="developer"))
    hub.event(1, thought(f"key: {SECRET[:30]}"))
    assert hub.refusal("saop.event", event(8, thought("z ")), REVIEWER).code == (
        "identity_mismatch"
    )
    hub.call("saop.event", event(9, thought("z ")), mallory)
    last = thought(f"{SECRET[30:]} rest", final=True)
    hub.event(2, {**last, "turn_index": 0.0})
    stored = b"".join(entry.line for entry in hub.store.entries(0, 100))

    assert [text for text in recorded_chunks(hub) if "z" in text] == ["z "]
    assert SECRET[:12].encode() not in stored
    assert SECRET[-12:].encode() not in stored


@proves("SAOP-MASKED")
def test_secrets_are_masked_in_every_field_of_an_event() -> None:
    hub = SaopHub()
    hub.turn(0)
    hub.event(1, invoked(SECRET))
    assert "anomaly" not in hub.event(2, completed(SECRET)), "it is the same call, masked"
    hub.event(3, transition(SECRET, from_state=SECRET))
    hub.event(4, transition("blocked", git_hash=SECRET))
    stored = b"".join(entry.line for entry in hub.store.entries(0, 100))

    assert SECRET.encode() not in stored
    assert hub.task(TASK).status == "blocked"
    assert hub.task(TASK).head_hash == ""
    plain = "toolu_01A09q90qw90lq917835lq9"
    hub.event(5, invoked(plain))
    assert hub.events(session_id="s-1")[-1]["payload"]["call_id"] == plain


@proves("SAOP-TURNS")
def test_missing_turns_are_reported_by_attempt() -> None:
    hub = SaopHub()
    hub.do(HUMAN, CreateTask("One", TASK, ready=True))

    def attempt(*indexes: int) -> None:
        hub.do(DEVELOPER, ClaimTask(TASK, "developer"))
        for index in indexes:
            hub.turn(index)
        hub.do(HUMAN, MoveTask(TASK, "ready"))

    attempt(0, 2)
    attempt(0, 1, 2)
    attempt(3, 4)  # continues the count, as a session file does
    attempt(7, 9_007_199_254_740_991)
    attempt(1)
    answer = hub.call("saop.turns", {"task_id": TASK})
    missing = [(one["attempt"], one["first"], one["last"]) for one in answer["missing"]]
    assert missing == [(1, 1, 1), (4, 5, 6), (4, 8, 9_007_199_254_740_990), (5, 0, 0)]
    assert answer["gaps"] == (1, 5, 6, *range(8, 1_005)), "the first thousand"
    last = hub.call("saop.turns", {"task_id": TASK, "attempt": 3})
    assert (last["missing"], last["gaps"]) == ([], ())
    paged, cursor = list[Any](), ""
    while True:
        page = hub.call("saop.turns", {"task_id": TASK, "limit": 1, "cursor": cursor})
        paged += page["missing"]
        if not (cursor := page["cursor"]):
            break
    assert paged == answer["missing"]


@proves("SAOP-LARGE")
def test_call_id_length_is_limited() -> None:
    hub = SaopHub()
    assert hub.refusal("saop.event", event(1, invoked("c" * 257))).code == "invalid_field"


@proves("SAOP-ROLE", "SAOP-EVENTS")
def test_events_of_other_agents_are_not_attached_to_the_task() -> None:
    hub = SaopHub()
    mallory = Actor("agent", "mallory")
    hub.do(HUMAN, RegisterAgent("mallory", saop_role="developer"))
    hub.do(HUMAN, CreateTask("One", "one", ready=True))
    hub.do(DEVELOPER, ClaimTask("one", "developer", "s-1"))
    hub.turn(0)
    refused = hub.refusal("saop.event", event(1, pulse("rm -rf /")), mallory)
    assert refused.code == "unauthorized_agent"
    assert hub.call("saop.event", event(2, pulse("told of it")), OLGA)["ok"]
    hub.event(3, invoked("c-1"), "s-2")
    theirs = hub.call("saop.event", event(4, completed("c-1"), "s-2"), mallory)
    assert theirs["anomaly"] == "orphan_completion", "nobody ends the call of another"
    assert "anomaly" not in hub.event(5, completed("c-1"), "s-2")
    moved = hub.call("saop.event", event(6, transition("review", "one"), "s-2"), mallory)
    assert not moved["applied"]
    assert [one["position"] for one in hub.events(session_id="s-2") if one["task_id"]] == []
    assert "rm" not in str(hub.events(task_id="one"))
    assert hub.refusal("saop.turn", turn(7), mallory).code == "unauthorized_agent"
    lines = [entry.line for entry in hub.store.entries(0, 100)]
    assert sum(b'"agent":"developer"' in line for line in lines if b"told of it" in line) == 1


@proves("SAOP-TRANSITION", "SAOP-EVENTS")
def test_repeated_transition_moves_nothing() -> None:
    hub = SaopHub()
    hub.turn(0)
    assert hub.event(1, transition("blocked"))["applied"]
    assert hub.event(1, transition("blocked"))["applied"], "it is there"
    hub.do(HUMAN, MoveTask(TASK, "ready"))
    again = hub.event(1, transition("blocked"))

    assert (again["applied"], hub.task(TASK).status) == (False, "ready")
    assert "recorded before" in again["reason"]["detail"]


@proves("SAOP-TURNS", "SAOP-EVENTS")
def test_repeat_renews_the_lease_and_is_answered_after_the_attempt() -> None:
    hub = SaopHub()
    first = hub.turn(0)
    hub.event(1, pulse("x"))
    hub.clock.advance(60_000)
    before = hub.lease(TASK)
    hub.event(1, pulse("x"))
    after = hub.lease(TASK)
    assert before is not None
    assert after is not None
    assert after.expires_at == before.expires_at + 60_000
    hub.do(HUMAN, MoveTask(TASK, "ready"))
    hub.do(HUMAN, ClaimTask(TASK, "bob"))
    assert hub.turn(0) == first
    assert hub.refusal("saop.turn", turn(0, "other words")).code == "lease_lost"
    assert hub.refusal("saop.turn", turn(1)).code == "lease_lost"


@proves("SAOP-MASKED")
def test_unreadable_message_stores_no_part_of_a_secret() -> None:
    hub = SaopHub()
    broken = '{"turn_index":0,"content":"' + "x " * 470 + SECRET + '"'
    for text in (broken, broken + " y" * 1_000):
        assert hub.refusal("saop.turn", text).code == "invalid_json"
    stored = b"".join(entry.line for entry in hub.store.entries(0, 100))

    assert SECRET[:12].encode() not in stored


@proves("SAOP-LARGE")
def test_long_thought_is_stored_whole_and_an_oversized_one_refused() -> None:
    hub = SaopHub()
    long = "x " * 5_000_000
    assert hub.turn(0, long)["ok"]
    (kept,) = hub.call("saop.turns", {"task_id": TASK})["turns"]
    assert kept["content"]["thought"] == long
    longer = json.dumps(turn(1, "y" * 17_000_000))
    head = hub.store.head()
    assert hub.refusal("saop.turn", longer).code == "message_too_large"
    sent = hub.router.send(longer, speaker=DEVELOPER)
    assert isinstance(sent, Rejected)
    assert sent.code == "message_too_large"
    refused = hub.store.entries(head, 10)
    assert all(len(entry.line) < 5_000 for entry in refused), "not kept by the back door"
    big_event = event(1, pulse("z" * 300_000))
    assert hub.refusal("saop.event", big_event).code == "message_too_large"


@proves("SAOP-SHAPES", "SAOP-TURNS")
def test_messages_are_recognized_bare_and_wrapped() -> None:
    hub = SaopHub()

    def send(message: Any) -> str:
        answer = hub.router.send(json.dumps(message), speaker=DEVELOPER)
        if answer is None:
            return "nobody's"
        return answer.kind if isinstance(answer, Accepted) else f"{answer.kind} {answer.code}"

    assert send(turn(0)) == "saop.turn"
    assert send({"message": turn(1)}) == "saop.turn"
    assert send({"payload": event(1, pulse("x"))}) == "saop.event"
    assert send(event(2, thought("x"))) == "saop.event"
    assert send({**turn(2), "agent_id": "boss"}) == "saop.turn invalid_envelope"
    assert send(event(3, {"type": "HITL_BLOCK"})) == "saop.event invalid_envelope"
    assert send({"turn_index": 1}) == "nobody's"
    assert send(["event_id"]) == "nobody's"
    assert send({"hello": "world"}) == "nobody's"
    assert hub.router.send("event_id" + "x" * 17_000_000) is None
    assert hub.router.send('"event_id"' + "x" * 17_000_000) is None
    many = {**turn(3), "agent_id": 1, "role": 2, "content": 3}
    detail = hub.refusal("saop.turn", many).detail
    assert detail.startswith("agent_id: ")
    assert "; role: " in detail
    assert hub.router.send(json.dumps(turn(9)), via="inbox") is not None


@proves("SAOP-SHAPES")
def test_dialect_lists_its_kinds_of_message() -> None:
    assert linter_of(saop.dialect()).message_types == ("turn", "event", "payload")


@proves("SAOP-TABLES")
@pytest.mark.parametrize("damage", ["missing", "stranger", "differs", "beyond"])
def test_verify_finds_log_rows_that_disagree(damage: str) -> None:
    hub = SaopHub()
    hub.turn(0)
    hub.event(1, pulse("x"))
    store = hub.store.copy()
    logs = store.tables.log_rows
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
            "stranger": "it has an unexpected row in the logs",
            "beyond": "a row of the logs has no entry",
        }[damage]
    ]


@proves("SAOP-TURNS")
def test_published_event_shape_matches_the_accepted_one() -> None:
    operations = {one.name: one for one in saop.dialect().operations}
    _, parts = msgspec.json.schema_components([operations["saop.event"].input])
    described = msgspec.json.encode(parts).decode()
    assert all(f'"{name}"' in described for name in saop.TYPES.by_name)
    assert '"Payload"' not in described
    assert "\\\\A" not in described
    never = {**pulse("x"), "timestamp": "2026-02-30T00:00:00Z"}
    assert SaopHub().refusal("saop.event", event(1, never)).path == "payload.timestamp"


@proves("SAOP-TURNS")
def test_turns_of_a_reviewer_have_their_own_attempt_number() -> None:
    hub = SaopHub()
    for index in (0, 1):
        hub.call("saop.turn", turn(index))
    hub.do(DEVELOPER, ReportOutcome(TASK, "done", apply=True))
    own = {"agent_id": "reviewer", "role": "reviewer"}
    first = hub.call("saop.turn", turn(0, "I look", **own), REVIEWER)
    hub.call("saop.turn", turn(2, "I judge", **own), REVIEWER)
    assert hub.call("saop.turn", turn(0, "I look", **own), REVIEWER) == first, "once"
    other = hub.refusal("saop.turn", turn(2, "or not", **own), REVIEWER)
    assert other.code == "key_reused"
    assert f"turn 2 beside the attempts on {TASK}" in other.detail
    hub.call("saop.turn", turn(2, "late"))
    turns = hub.call("saop.turns", {"task_id": TASK})["turns"]
    assert [(one["attempt"], one["agent_id"], one["turn_index"]) for one in turns] == [
        *((1, "developer", 0), (1, "developer", 1), (1, "developer", 2)),
        *((-1, "reviewer", 0), (-1, "reviewer", 2)),
    ]


def send_review(hub: SaopHub, actor: Actor, index: int = 0, text: str = "I look") -> Any:
    """Send a turn of a reviewer."""
    return hub.call("saop.turn", turn(index, text, agent_id="reviewer", role="reviewer"), actor)


def send_two_reviews(hub: SaopHub) -> tuple[Actor, Actor]:
    """Complete the developer's attempt and send a turn of each of two reviewers."""
    rita = Actor("agent", "rita")
    hub.do(HUMAN, RegisterAgent("rita", saop_role="reviewer"))
    hub.turn(0)
    hub.do(DEVELOPER, ReportOutcome(TASK, "done", apply=True))
    send_review(hub, REVIEWER, text="I look")
    send_review(hub, rita, text="so do I")
    return REVIEWER, rita


@proves("SAOP-TURNS")
def test_each_reviewer_has_its_own_attempt_number_per_round() -> None:
    hub = SaopHub()
    reviewer, rita = send_two_reviews(hub)
    hub.do(HUMAN, MoveTask(TASK, "ready"))
    hub.do(DEVELOPER, ClaimTask(TASK, "developer"))
    hub.do(DEVELOPER, ReportOutcome(TASK, "done", apply=True))
    send_review(hub, rita, text="once more")
    send_review(hub, reviewer, text="and I")
    send_review(hub, rita, 1, "fine")
    turns = hub.call("saop.turns", {"task_id": TASK})["turns"]
    assert [
        (one["attempt"], one["by"], one["after_attempt"], one["turn_index"]) for one in turns
    ] == [
        *((1, "", None, 0), (-1, "reviewer", 1, 0), (-2, "rita", 1, 0)),
        *((-3, "rita", 2, 0), (-3, "rita", 2, 1), (-4, "reviewer", 2, 0)),
    ]
    again = hub.call("saop.turns", {"task_id": TASK, "attempt": -3, "after": 0})["turns"]
    assert [one["content"]["thought"] for one in again] == ["fine"]
    assert findings(hub.store) == []


@proves("SAOP-TURNS")
def test_turns_recorded_under_the_shared_number_are_recognized() -> None:
    """Turns without an attempt once shared the number 0; before the first attempt they still do."""
    hub = SaopHub()
    hub.do(HUMAN, CreateTask("One", TASK, ready=True))
    first = send_review(hub, HUMAN)
    hub.do(HUMAN, ClaimTask(TASK, "developer"))
    hub.do(DEVELOPER, ReportOutcome(TASK, "done", apply=True))
    head = hub.store.head()
    assert send_review(hub, REVIEWER) == first
    assert hub.store.head() == head
    assert send_review(hub, REVIEWER, text="another time") != first


@proves("SAOP-TURNS")
def test_turns_of_reviewers_are_paged() -> None:
    hub = SaopHub()
    send_two_reviews(hub)
    read, cursor = list[int](), ""
    while not read or cursor:
        page = hub.call("saop.turns", {"task_id": TASK, "limit": 1, "cursor": cursor})
        read += [one["attempt"] for one in page["turns"]]
        cursor = page["cursor"]
    assert read == [1, -1, -2]
    hub.do(HUMAN, CreateTask("Two", "two"))
    assert hub.call("saop.turns", {"task_id": "two"})["turns"] == []


@proves("SAOP-TURNS")
def test_repeated_reviewer_turn_is_answered_during_another_attempt() -> None:
    hub = SaopHub()
    _, rita = send_two_reviews(hub)
    first = send_review(hub, rita, text="so do I")
    hub.do(HUMAN, MoveTask(TASK, "ready"))
    hub.do(DEVELOPER, ClaimTask(TASK, "developer"))
    assert send_review(hub, rita, text="so do I") == first
    other = turn(1, "more", agent_id="reviewer", role="reviewer")
    assert hub.refusal("saop.turn", other, rita).code == "unauthorized_agent"


@proves("SAOP-EVENTS")
def test_event_without_a_task_is_reported() -> None:
    hub = SaopHub()
    for task in ("one", "two"):
        hub.do(HUMAN, CreateTask(task, task, ready=True), ClaimTask(task, "developer"))
    assert hub.call("saop.event", event(1, pulse("$ ls"), "s-9"))["task_id"] is None
    hub.do(DEVELOPER, ReportOutcome("two", "done", apply=True))
    assert "task_id" not in hub.call("saop.event", event(2, pulse("$ ls"), "s-9"))


@proves("LOST-CURSOR")
def test_cursor_beyond_the_end_is_reset_with_a_gap() -> None:
    hub = SaopHub()
    hub.turn(0)
    end = hub.store.head()
    assert "gap" not in hub.call("saop.events", {"after": end})
    lost = hub.call("saop.events", {"after": end + 1})
    assert (lost["events"], lost["cursor"]) == ([], end)
    assert lost["gap"] == {"after": end + 1, "until": end}
