"""Waves: started, released bead by bead, closed with a report, and resumed after a restart."""

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from dragoman.core.actor import HUB_ACTOR, Actor
from dragoman.core.attempt import CheckpointTask, ClaimTask, ReportOutcome
from dragoman.core.base import Command, Role
from dragoman.core.errors import Refusal
from dragoman.core.reservation import ReserveFiles
from dragoman.core.task_state import CreateTask, LinkTask, MoveTask
from dragoman.core.wave import AdvanceWave, StartWave, Wave, WaveBead, wave_start_commands
from dragoman.engine.queries.entries import stream_entries
from dragoman.engine.queries.mail import all_mail
from dragoman.engine.queries.waves import find_reservations, find_wave, open_wave_ids, wave_status
from dragoman.engine.schemas.waves import wave_resource
from dragoman.services.timers import WaveService
from dragoman.store.sqlite import SqliteStore
from dragoman.testing import HandHub
from dragoman.testing.hand_hub import Work
from tests.engine.lab import ALICE, BOB, HUMAN, Lab, findings
from tests.requirements import proves

HOUR = 3_600_000
EVERY_STEP = -1
ORCHESTRATOR = Actor("orchestrator", "olga")


def start(
    lab: Lab,
    *beads: str | WaveBead,
    parallel: int = 2,
    id: str = "W",
    retries: dict[str, int] | None = None,
) -> None:
    """Start a wave as its orchestrator."""
    wave_beads = tuple(WaveBead(bead) if isinstance(bead, str) else bead for bead in beads)
    wave = StartWave(wave_beads, parallel, id, retries or {})
    lab.do(ORCHESTRATOR, *wave_start_commands(wave, {}))


def run(lab: Lab) -> int:
    """Run the service once."""
    return WaveService(lab.hub).run_once(lab.clock.now())


def statuses(lab: Lab, *names: str) -> list[str]:
    """Statuses of beads."""
    return [lab.task(name).status for name in names]


def shown_status(lab: Lab, id: str = "W") -> dict[str, Any]:
    """The status of a wave as the surfaces show it."""
    wave = find_wave(lab.store, id)
    assert isinstance(wave, Wave)
    return wave_resource(wave_status(lab.store, wave, lab.clock.now()))


def complete_bead(lab: Lab, name: str, agent: Actor = ALICE) -> None:
    """Claim a bead and report it as done."""
    lab.do(agent, ClaimTask(name, agent.name))
    lab.do(agent, ReportOutcome(name, "done", apply=True))


def report_failure(lab: Lab, name: str, type: str) -> None:
    """Claim a bead and report a failure of this type."""
    lab.do(ALICE, ClaimTask(name, "alice"))
    lab.do(ALICE, ReportOutcome(name, "failed", details={"failure_type": type}, apply=True))
    lab.clock.advance(HOUR)


@proves("WAVE-START")
def test_unknown_beads_are_adopted_and_known_beads_keep_their_status() -> None:
    lab = Lab()
    lab.do(HUMAN, CreateTask("ready one", "R", ready=True))
    lab.do(HUMAN, CreateTask("at work", "P", ready=True))
    lab.do(HUMAN, CreateTask("over", "O"), MoveTask("O", "cancelled"))
    lab.do(ALICE, ClaimTask("P", "alice"))
    start(lab, "new-1", "R", "P", "O", parallel=1)
    assert statuses(lab, "new-1", "R", "P", "O") == [
        "backlog",
        "backlog",
        "in-progress",
        "cancelled",
    ]
    assert lab.task("bead:new-1").id == "new-1"
    assert [bead["waits_for"]["what"] for bead in shown_status(lab)["beads"][:2]] == [
        "slot",
        "slot",
    ]
    assert findings(lab.store) == []


@proves("WAVE-START")
def test_first_beads_are_released_at_the_start() -> None:
    lab = Lab()
    start(lab, "a", "b", "c")
    assert statuses(lab, "a", "b", "c") == ["ready", "ready", "backlog"]
    assert run(lab) == 0


@proves("WAVE-START")
def test_only_orchestrating_roles_start_waves() -> None:
    lab = Lab()
    wave = StartWave((WaveBead("a"),), 1, "W")
    expected: list[tuple[Role, str]] = [
        ("agent", "not_authorized"),
        ("observer", "not_authorized"),
        ("coordinator", ""),
    ]
    for role, code in expected:
        assert lab.code(Actor(role, "x"), *wave_start_commands(wave, {})) == code
    assert lab.code(HUMAN, *wave_start_commands(wave, {})) == "already_exists"


@proves("WAVE-START")
@pytest.mark.parametrize(
    "wave",
    [
        StartWave((), 1),
        StartWave((WaveBead("a"),), 0),
        StartWave((WaveBead("a"), WaveBead("a")), 1),
        StartWave((WaveBead("a", ("/x",)),), 1),
        StartWave((WaveBead("a"),), 1, retries={"tests fail": 1}),
        StartWave((WaveBead("a"),), 1, retries={"TESTS_FAIL": -1}),
        StartWave(tuple(WaveBead(f"b{number}") for number in range(501)), 1),
        StartWave(
            tuple(WaveBead(f"b{n}", tuple(f"{n}/{file}" for file in range(6))) for n in range(96)),
            1,
        ),
    ],
)
def test_invalid_wave_is_refused_and_leaves_nothing(wave: StartWave) -> None:
    lab = Lab()
    assert lab.code(HUMAN, *wave_start_commands(wave, {})) == "invalid_field"
    assert [stream for stream, _ in lab.lines() if stream.startswith(("task:", "wave:"))] == []


@proves("WAVE-START")
def test_name_with_a_kind_must_exist() -> None:
    lab = Lab()
    wave = StartWave((WaveBead("ticket:7"),), 1, "W")
    assert lab.code(HUMAN, *wave_start_commands(wave, {})) == "task_not_found"
    lab.do(HUMAN, CreateTask("known", aliases=("ticket:7",)))
    assert lab.code(HUMAN, *wave_start_commands(wave, {})) == ""


@proves("WAVE-PARALLEL", "WAVE-COMPLETE")
def test_wave_from_start_to_closing_report() -> None:
    lab = Lab()
    start(lab, "a", "b", "c")
    complete_bead(lab, "a")
    assert run(lab) == 1
    assert statuses(lab, "a", "b", "c") == ["review", "ready", "ready"]
    lab.do(HUMAN, MoveTask("b", "cancelled", "not needed"))
    assert run(lab) == 0
    complete_bead(lab, "c")
    assert shown_status(lab)["complete"] is True
    lab.clock.advance(60_000)
    assert run(lab) == 1
    assert run(lab) == 0
    status = shown_status(lab)
    assert (status["complete"], status["counts"]) == (True, {"review": 2, "cancelled": 1})
    assert status["ended_at"] == "2026-02-09T14:31:00.000Z"
    assert list(open_wave_ids(lab.store)) == []
    (letter,) = [letter.mail for letter in all_mail(lab.store, "in:olga")]
    assert (letter.sender, letter.thread) == ("hub", "W")
    assert letter.subject == "Wave W is complete: 2 review, 1 cancelled"
    assert "- b: cancelled" in letter.body
    assert findings(lab.store) == []


@proves("WAVE-COMPLETE")
def test_closing_report_gives_the_reason_of_blocked_beads_as_the_status_does() -> None:
    lab = Lab()
    start(lab, "a", "b")
    lab.do(HUMAN, MoveTask("a", "blocked", "the key is missing"))
    complete_bead(lab, "b")
    assert run(lab) == 1
    (letter,) = [letter.mail for letter in all_mail(lab.store, "in:olga")]
    reason = shown_status(lab)["beads"][0]["why"]
    assert reason == "the key is missing"
    assert f"- a: blocked, attempts: 0: {reason}\n" in letter.body


@proves("WAVE-COMPLETE")
def test_wave_of_ended_beads_is_closed_by_the_hub_not_at_its_start() -> None:
    lab = Lab()
    lab.do(HUMAN, CreateTask("over", "a"), MoveTask("a", "cancelled"))
    start(lab, "a")
    assert len(list(open_wave_ids(lab.store))) == 1
    assert run(lab) == 1
    assert list(open_wave_ids(lab.store)) == []


@proves("WAVE-FILES")
def test_waves_that_share_a_file_take_turns() -> None:
    lab = Lab()
    start(lab, WaveBead("a", ("src/x.py",)), id="W1")
    start(lab, WaveBead("b", ("src/",)), "c", id="W2")
    assert statuses(lab, "a", "b", "c") == ["ready", "backlog", "ready"]
    waits = shown_status(lab, "W2")["beads"][0]["waits_for"]
    assert waits == {
        "what": "file",
        "file": "src/**",
        "reserved": "src/x.py",
        "by": {
            "id": "W1:a",
            "holder": None,
            "until": None,
            "task": "a",
            "wave": "W1",
        },
    }
    lab.do(ALICE, ClaimTask("a", "alice"))
    assert shown_status(lab, "W2")["beads"][0]["waits_for"]["by"]["holder"] == "alice"
    assert run(lab) == 0
    lab.do(ALICE, ReportOutcome("a", "done", apply=True))
    assert run(lab) == 2
    assert statuses(lab, "a", "b", "c") == ["review", "ready", "ready"]
    assert findings(lab.store) == []


@proves("WAVE-FILES")
def test_holder_of_a_bead_has_its_files_exclusively() -> None:
    lab = Lab()
    start(lab, WaveBead("a", ("src/x.py",)))
    lab.do(ALICE, ClaimTask("a", "alice"))
    assert lab.code(BOB, ReserveFiles(("src/x.py",), HOUR)) == "files_reserved"
    assert lab.code(ALICE, ReserveFiles(("src/x.py",), HOUR)) == ""


@proves("WAVE-FILES", "RESERVE-END")
def test_bead_is_released_when_a_conflicting_reservation_expires() -> None:
    lab = Lab()
    lab.do(BOB, ReserveFiles(("src/",), HOUR))
    start(lab, WaveBead("a", ("src/x.py",)))
    assert run(lab) == 0
    lab.clock.advance(HOUR)
    assert run(lab) == 1
    assert statuses(lab, "a") == ["ready"]
    assert [one.id for one in find_reservations(lab.store, lab.clock.now())] == ["W:a"]


@proves("WAVE-STATUS")
def test_bead_blocked_by_another_bead_does_not_occupy_its_slot() -> None:
    lab = Lab()
    for name in "ab":
        lab.do(HUMAN, CreateTask(name, name))
    lab.do(HUMAN, LinkTask("a", "blocked-by", "b"))
    start(lab, "a", "b", parallel=1)
    assert statuses(lab, "a", "b") == ["backlog", "ready"]
    assert shown_status(lab)["beads"][0]["waits_for"] == {"what": "task", "tasks": ("b",)}
    complete_bead(lab, "b")
    lab.do(HUMAN, MoveTask("b", "done"))
    run(lab)
    assert statuses(lab, "a", "b") == ["ready", "done"]
    lab.do(HUMAN, CreateTask("late", "c"))
    lab.do(HUMAN, LinkTask("a", "blocked-by", "c"))
    run(lab)
    assert statuses(lab, "a") == ["backlog"]


@proves("WAVE-RETRIES")
def test_bead_without_retries_is_blocked_after_one_failure() -> None:
    lab = Lab()
    start(lab, "a", parallel=1, retries={"TESTS_FAIL": 0})
    report_failure(lab, "a", "TESTS_FAIL")
    run(lab)
    assert shown_status(lab)["beads"][0]["why"].startswith(
        "failed once with TESTS_FAIL; wave W allows 0 retries"
    )


@proves("WAVE-RETRIES")
def test_bead_that_exceeds_the_retries_of_a_failure_type_is_blocked_with_the_reason() -> None:
    lab = Lab()
    start(lab, "a", "b", parallel=1, retries={"TESTS_FAIL": 1})
    report_failure(lab, "a", "TESTS_FAIL")
    report_failure(lab, "a", "BUILD_FAIL")
    run(lab)
    assert statuses(lab, "a", "b") == ["ready", "backlog"]
    report_failure(lab, "a", "TESTS_FAIL")
    assert run(lab) == 1
    assert statuses(lab, "a", "b") == ["blocked", "ready"]
    reason = "failed 2 times with TESTS_FAIL; wave W allows 1 retry"
    assert reason in list(stream_entries(lab.store, "task:a"))[-1].line.decode()
    beads = shown_status(lab)["beads"]
    assert beads[0]["why"].startswith(reason)
    assert "why" not in beads[1]


@proves("WAVE-RETRIES")
def test_checkpointed_attempt_counts_once_by_its_reason() -> None:
    lab = Lab()
    start(lab, "a", retries={"CONTEXT_HIGH": 1})
    for commit in ("", "abc123"):
        run(lab)
        assert statuses(lab, "a") == ["ready"]
        lab.do(ALICE, ClaimTask("a", "alice"))
        lab.do(ALICE, CheckpointTask("a", "CONTEXT_HIGH", commit))
        lab.do(ORCHESTRATOR, CheckpointTask("a", "CONTEXT_HIGH", next_steps=f"not {commit}"))
        lab.clock.advance(HOUR)
    run(lab)
    assert statuses(lab, "a") == ["blocked"]
    line = list(stream_entries(lab.store, "task:a"))[-2].line.decode()
    assert "failed 2 times with CONTEXT_HIGH; wave W allows 1 retry" in line


@proves("WAVE-RETRIES")
def test_unblocked_bead_is_retried() -> None:
    lab = Lab()
    start(lab, "a", retries={"TESTS_FAIL": 0})
    report_failure(lab, "a", "TESTS_FAIL")
    run(lab)
    assert statuses(lab, "a") == ["blocked"]
    lab.do(HUMAN, MoveTask("a", "ready"))
    run(lab)
    assert statuses(lab, "a") == ["ready"]


@proves("WAVE-RECOVERY")
@pytest.mark.parametrize("died_after", [*range(7), EVERY_STEP])
def test_wave_continues_after_a_hub_restart_at_any_step(tmp_path: Path, died_after: int) -> None:
    """The same wave, with the hub restarted after one of its steps, or after each."""
    hub = HandHub(lambda: SqliteStore.open(tmp_path / "dragoman.db", lambda: "waves"))
    beads = (WaveBead("a", ("x",)), WaveBead("b", ("x",)), WaveBead("c"))
    done = 0

    def step(*commands: Command, agent: str = "") -> None:
        nonlocal done
        for command in commands:
            hub.do(command, agent=agent)
        hub.tick()
        if died_after in (done, EVERY_STEP):
            hub.restart()
        done += 1

    for command in wave_start_commands(StartWave(beads, 2, "W"), {}):
        hub.do(command)
    step()
    for name in ("a", "c", "b"):
        step(ClaimTask(name, "ada"), agent="ada")
        Work(hub, name, "ada", 1, 1).finish()
        step()
    assert [hub.task(name).status for name in "abc"] == ["review"] * 3
    events = [line.event for line in hub.history()]
    assert events.count("wave.completed") == 1
    assert events.count("wave.bead_released") == 3
    assert events.count("mail.posted") == 1
    assert hub.verify() == []
    hub.close()


@proves("WAVE-RECOVERY")
def test_lost_step_is_repeated_and_no_step_is_taken_twice() -> None:
    lab = Lab()
    start(lab, "a", "b", parallel=1)
    complete_bead(lab, "a")
    lab.store.losses = 1
    run(lab)
    again = Lab(lab.store)
    run(again)
    assert [event for _, event in again.lines()].count("wave.bead_released") == 2
    assert statuses(again, "a", "b") == ["review", "ready"]


@proves("WAVE-COMPLETE")
def test_unreadable_wave_does_not_stop_the_others() -> None:
    lab = Lab()
    start(lab, "a", id="W1")
    start(lab, "b", id="W2")
    complete_bead(lab, "a")
    complete_bead(lab, "b")
    number = lab.store.tables.numbers["wave:W1"]
    rows = lab.store.tables.rows
    rows[number] = replace(rows[number], state=b"{")
    assert run(Lab(lab.store)) == 1
    assert list(open_wave_ids(lab.store)) == ["W1"]


@proves("WAVE-STATUS")
@pytest.mark.parametrize(("id", "code"), [("W", "wave_not_found"), ("no wave", "invalid_id")])
def test_unknown_wave_is_refused(id: str, code: str) -> None:
    lab = Lab()
    found = find_wave(lab.store, id)
    assert isinstance(found, Refusal)
    assert found.code == code
    assert lab.code(HUMAN, AdvanceWave(id)) == code


steps = st.lists(
    st.tuples(st.sampled_from("abcdef"), st.sampled_from(["work", "claim", "cancel"])), max_size=20
)


@proves("WAVE-PARALLEL", "WAVE-FILES", "WAVE-RECOVERY")
@settings(max_examples=60, deadline=None)
@given(steps, st.integers(1, 3), st.sets(st.integers(0, 19)))
def test_limit_and_file_exclusion_hold_in_any_sequence_with_hub_restarts(
    actions: list[tuple[str, str]], parallel: int, restarts: set[int]
) -> None:
    """Random actions of people and agents on two waves, with hub restarts between them."""
    lab = Lab()
    first = (WaveBead("a", ("x",)), WaveBead("b", ("x", "y")), WaveBead("c"))
    second = (WaveBead("d", ("y",)), WaveBead("e"), WaveBead("f", ("**",)))
    start(lab, *first, parallel=parallel, id="W1")
    start(lab, *second, parallel=parallel, id="W2")
    for number, (name, action) in enumerate(actions):
        # Rework that starts after a bead has ended does not count for the wave.
        if action in ("work", "claim") and lab.task(name).status == "ready":
            lab.do(ALICE, ClaimTask(name, "alice"))
        if action == "work":
            lab.ask(ALICE, ReportOutcome(name, "done", apply=True))
        if action == "cancel":
            lab.ask(HUMAN, MoveTask(name, "cancelled"))
        if number in restarts:
            clock = lab.clock.now()
            lab = Lab(lab.store)
            lab.clock.advance(clock - lab.clock.now())
        run(lab)
        for beads in ("abc", "def"):
            under_way = [bead for bead in statuses(lab, *beads) if bead in ("ready", "in-progress")]
            assert len(under_way) <= parallel
        files = {"a": {"x"}, "b": {"x", "y"}, "d": {"y"}, "f": {"x", "y"}}
        busy = [bead for bead in files if lab.task(bead).status in ("ready", "in-progress")]
        taken = [file for bead in busy for file in files[bead]]
        assert len(taken) == len(set(taken))
    assert findings(lab.store) == []


@proves("WAVE-STATUS")
def test_bead_in_backoff_shows_when_it_ends() -> None:
    lab = Lab()
    start(lab, "a")
    lab.do(ALICE, ClaimTask("a", "alice"))
    lab.do(ALICE, ReportOutcome("a", "failed", apply=True))
    (bead,) = shown_status(lab)["beads"]
    assert bead["waits_for"]["what"] == "rest"
    assert bead["waits_for"]["until"] > "2026-02-09T"


@proves("WAVE-RETRIES")
def test_only_failures_since_the_wave_start_and_the_last_unblock_count() -> None:
    lab = Lab()
    lab.do(HUMAN, CreateTask("a", "a", ready=True, max_attempts=9))
    report_failure(lab, "a", "TESTS_FAIL")
    start(lab, "a", retries={"TESTS_FAIL": 1})
    report_failure(lab, "a", "TESTS_FAIL")
    lab.do(HUMAN, MoveTask("a", "blocked"), MoveTask("a", "ready"))
    report_failure(lab, "a", "TESTS_FAIL")
    lab.do(ALICE, ClaimTask("a", "alice"))
    lab.do(ALICE, ReportOutcome("a", "failed", apply=True))
    assert statuses(lab, "a") == ["ready"]
    lab.clock.advance(HOUR)
    report_failure(lab, "a", "TESTS_FAIL")
    assert statuses(lab, "a") == ["blocked"]


@proves("WAVE-RETRIES")
def test_immediate_reclaim_does_not_evade_the_retry_limit() -> None:
    lab = Lab()
    start(lab, "a", retries={"TESTS_FAIL": 1})
    failed = ReportOutcome("a", "failed", details={"failure_type": "TESTS_FAIL"}, apply=True)
    receipt = lab.do(ALICE, ClaimTask("a", "alice"), failed, ClaimTask("a", "alice"), failed)
    assert receipt.status == "blocked", "nobody had to look at the wave for that"
    assert lab.code(ALICE, ClaimTask("a", "alice")) == "not_ready"
    line = list(stream_entries(lab.store, "task:a"))[-1].line.decode()
    assert "failed 2 times with TESTS_FAIL; wave W allows 1 retry" in line
    assert findings(lab.store) == []


@proves("WAVE-RETRIES")
def test_retry_limit_holds_from_the_batch_of_the_wave_start_until_the_wave_ends() -> None:
    lab = Lab()
    lab.do(HUMAN, CreateTask("a", "a", ready=True), CreateTask("b", "b"))
    lab.do(ALICE, ClaimTask("a", "alice"))
    wave = StartWave((WaveBead("a"),), 1, "W", {"TESTS_FAIL": 0})
    failed = ReportOutcome("a", "failed", details={"failure_type": "TESTS_FAIL"}, apply=True)
    started, reported = lab.batch(lab.request(ORCHESTRATOR, wave), lab.request(ALICE, failed))
    assert not isinstance(started, Refusal)
    assert reported.receipts[0].status == "blocked"
    run(lab)
    lab.do(HUMAN, MoveTask("a", "ready"))
    report_failure(lab, "a", "TESTS_FAIL")
    assert statuses(lab, "a") == ["ready"], "the wave is over"


@proves("WAVE-COMPLETE")
def test_finished_wave_does_not_advance_and_one_request_closes_only_one() -> None:
    lab = Lab()
    start(lab, "a", id="V")
    start(lab, "b", id="W")
    complete_bead(lab, "a")
    complete_bead(lab, "b")
    both = lab.ask(HUB_ACTOR, AdvanceWave("V"), AdvanceWave("W"))
    assert isinstance(both, Refusal), "each has a closing report of its own"
    assert run(lab) == 2
    before = lab.store.head()
    lab.do(HUB_ACTOR, AdvanceWave("V"))
    assert lab.store.head() == before
