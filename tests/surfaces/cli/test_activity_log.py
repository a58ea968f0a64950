"""Lines of a running hub about its tasks and agents."""

from dragoman.core.actor import HUB_ACTOR
from dragoman.core.agent import PauseAgent, RegisterAgent, ResumeAgent
from dragoman.core.attempt import ClaimTask, ExpireLease, ReleaseTask, ReportOutcome
from dragoman.core.backoff import Backoff
from dragoman.core.check_state import CheckResult, RecordChecks
from dragoman.core.question_state import AskQuestion
from dragoman.core.task_state import CreateTask, MoveTask, NoteTask, SendBackTask
from dragoman.surfaces.cli.activity_log import MAX_LINES, ActivityLog
from tests.engine.lab import ALICE, HUMAN, Lab
from tests.requirements import proves

pytestmark = proves("HUB-TERMINAL")


class Terminal:
    """A hub, and the lines that are printed about it."""

    def __init__(self) -> None:
        self.lab = Lab()
        self.lab.do(HUMAN, CreateTask("before it began", "old", ready=True))
        self.lines: list[str] = []
        self.log = ActivityLog(self.lab.store, self.lines.append)

    def take(self) -> list[str]:
        """Take the new lines, without their time."""
        self.log.run_once(0)
        lines = [line.partition("  ")[2] for line in self.lines]
        self.lines.clear()
        return lines


def claim(terminal: Terminal, task: str, max_attempts: int = 5) -> None:
    """Create a task, which alice claims."""
    terminal.lab.do(HUMAN, CreateTask("t", task, ready=True, max_attempts=max_attempts))
    terminal.lab.do(ALICE, ClaimTask(task, "alice"))
    assert terminal.take() == [f"{task}  alice began attempt 1"]


def test_start_and_end_of_work_are_printed_with_its_report() -> None:
    terminal = Terminal()
    lab = terminal.lab
    claim(terminal, "T")
    lab.do(ALICE, NoteTask("T", "half of it"))
    assert terminal.take() == []
    lab.do(ALICE, ReportOutcome("T", "done", "all\x1b[2J\nof it", apply=True))
    (line,) = terminal.take()
    assert line.startswith("T  alice reports done: all")
    assert line.endswith(": waits for a review: dragoman task approve T")
    lab.do(HUMAN, SendBackTask("T", "not dry"))
    assert terminal.take() == []
    lab.do(ALICE, ClaimTask("T", "alice"))
    lab.do(ALICE, ReportOutcome("T", "done", apply=True))
    lab.do(HUMAN, MoveTask("T", "done"))
    assert terminal.take()[-1] == "T  done"


def test_work_without_review_is_done_at_once() -> None:
    terminal = Terminal()
    lab = terminal.lab
    lab.do(HUMAN, CreateTask("t", "T", ready=True, review_required=False))
    lab.do(ALICE, ClaimTask("T", "alice"))
    lab.do(ALICE, ReportOutcome("T", "done", "all of it", apply=True))
    assert terminal.take()[1:] == ["T  alice reports done: all of it: done"]


@proves("EVIDENCE-CHECKS")
def test_checks_are_told_when_they_run_and_how_they_ended() -> None:
    terminal = Terminal()
    lab = terminal.lab
    lab.do(HUMAN, CreateTask("t", "T", ready=True, checks=("make test",), max_attempts=2))
    for attempt in (1, 2):
        lab.do(ALICE, ClaimTask("T", "alice"))
        lab.do(ALICE, ReportOutcome("T", "done", "all", apply=True))
        assert terminal.take()[1:] == ["T  alice reports done: all: the hub runs its checks"]
        lab.do(HUB_ACTOR, RecordChecks("T", attempt, (CheckResult("make test", 3),)))
        if attempt == 1:
            assert terminal.take() == [
                "T  a check failed, sent back: the check `make test` failed: exit code 3"
            ]
    (given_up,) = terminal.take()
    assert given_up.startswith("T  blocked: the check `make test` failed: exit code 3")
    lab.do(HUMAN, MoveTask("T", "ready"))
    lab.do(ALICE, ClaimTask("T", "alice"))
    lab.do(ALICE, ReportOutcome("T", "partial", apply=True))
    assert terminal.take()[-1].endswith("waits for a review: dragoman task approve T")
    lab.do(HUMAN, SendBackTask("T", "go on"))
    lab.do(ALICE, ClaimTask("T", "alice"))
    lab.do(ALICE, ReportOutcome("T", "done", apply=True))
    terminal.take()
    lab.do(HUB_ACTOR, RecordChecks("T", 4, (CheckResult("make test", 0),)))
    assert terminal.take() == [
        "T  its checks have passed: waits for a review: dragoman task approve T"
    ]


def test_lost_lease_is_told_in_words() -> None:
    terminal = Terminal()
    claim(terminal, "T")
    terminal.lab.clock.advance(60 * 60_000)
    terminal.lab.do(HUB_ACTOR, ExpireLease("T"))
    assert terminal.take() == ["T  attempt 1 failed: its lease ran out without a heartbeat"]


def test_failure_says_why_and_the_last_one_what_to_do() -> None:
    terminal = Terminal()
    lab = terminal.lab
    claim(terminal, "T", max_attempts=2)
    failed = ReportOutcome("T", "failed", "no brush", apply=True, backoff=Backoff(0, 0))
    lab.do(ALICE, failed)
    assert terminal.take() == ["T  attempt 1 failed: alice reports failed: no brush"]
    lab.do(ALICE, ClaimTask("T", "alice"))
    lab.do(ALICE, failed)
    last = terminal.take()[-1]
    assert last.startswith("T  given up after attempt 2")
    assert last.endswith(": dragoman task retry T")


def test_release_block_question_and_pause_are_printed() -> None:
    terminal = Terminal()
    lab = terminal.lab
    claim(terminal, "T")
    lab.do(ALICE, ReleaseTask("T", "tired"))
    lab.do(ALICE, ClaimTask("T", "alice"))
    lab.do(ALICE, ReleaseTask("T", ""))
    assert terminal.take() == ["T  given back: tired", "T  alice began attempt 2", "T  given back"]
    claim(terminal, "U")
    lab.do(ALICE, AskQuestion("U", "red or blue?"))
    assert terminal.take() == ['U  alice asks: red or blue?: dragoman task answer U "…"']
    lab.do(HUMAN, MoveTask("U", "blocked", "wait"))
    assert terminal.take() == ['U  wait: blocked: dragoman task answer U "…"']
    lab.do(HUMAN, RegisterAgent("alice"))
    lab.do(HUMAN, PauseAgent("alice", "it is enough"))
    lab.do(HUMAN, ResumeAgent("alice"))
    lab.do(HUB_ACTOR, PauseAgent("alice", "over budget"))
    assert terminal.take() == [
        "alice  paused: it is enough",
        "alice  resumed",
        "alice  alice is paused: over budget: dragoman agent resume alice",
    ]


def test_burst_is_cut_and_its_size_told() -> None:
    terminal = Terminal()
    for number in range(MAX_LINES + 5):
        terminal.lab.do(HUMAN, CreateTask("t", f"t{number}", ready=True))
        terminal.lab.do(HUMAN, MoveTask(f"t{number}", "cancelled"))
    assert terminal.log.run_once(0) == MAX_LINES
    assert terminal.lines[-1] == "… and 5 more: dragoman events"
    assert len(terminal.lines) == MAX_LINES + 1
    assert terminal.log.run_once(0) == 0
