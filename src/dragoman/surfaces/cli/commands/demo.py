"""`dragoman demo`: two agents, two crashes and a handoff, in simulated time.

Real messages go to a real hub with a manual clock.
"""

from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated, Any

import msgspec
from msgspec import Struct

from dragoman.core.actor import Actor
from dragoman.core.attempt import ClaimTask
from dragoman.core.base import Command
from dragoman.core.read import Receipt
from dragoman.core.task_state import CreateTask, MoveTask
from dragoman.core.timestamps import parse_rfc3339, to_rfc3339
from dragoman.engine.request import Rejected, Reply
from dragoman.surfaces.cli.command import CliCommand, option
from dragoman.surfaces.cli.commands.task import load_task
from dragoman.surfaces.cli.commands.verify import no_progress_bars, summarize_counts, verify_all
from dragoman.surfaces.cli.context import CommandContext, CommandResult, raise_usage_error
from dragoman.surfaces.cli.data_directory import CliWiring, DataDirectory
from dragoman.surfaces.cli.render import Screen
from dragoman.system.clock import ManualClock

_START = parse_rfc3339("2026-02-09T09:00:00Z")

_INTRODUCTION = (
    "A hub keeps tasks, hands each to one agent at a time, and writes it all down.",
    "Here mia is a person with work to do, ada and ben are agents that speak AOF/1;",
    "time is simulated, everything else is real.",
)

_NEXT_COMMANDS = (
    'dragoman task create "My first task" --ready   make one, in ./.dragoman',
    "dragoman task claim --agent ada                take it, as an agent would",
    "dragoman events --follow                       watch what happens",
)

_ACTOR_STYLES = {
    "mia": "bold magenta",
    "ada": "bold yellow",
    "ben": "bold cyan",
    "hub": "bold green",
}


class _DemoRun(Struct, frozen=True):
    """Result of the demo, to be printed."""

    steps: "Sequence[DemoStep]"
    files: Sequence[tuple[str, str]]
    keep_folder: Path | None


def demo(
    context: CommandContext,
    keep: Annotated[
        Path | None,
        option("--keep", "DIR", "Leave the data directory of the demo there, to look at."),
    ] = None,
) -> CommandResult:
    """Play a story in AOF/1: a handoff, crashes, a review.

    Takes a moment, in simulated time; without --keep it leaves nothing behind.

    \b
    Examples:
      dragoman demo
      dragoman demo --keep seen && dragoman --data seen task list
    """

    if keep is not None and keep.exists() and not (keep.is_dir() and not any(keep.iterdir())):
        raise_usage_error(f"--keep {keep}: there is something already; name a new or empty folder")
    start = _START if context.shared.now is None else context.shared.now
    with open_demo_hub(context.wiring, start, keep) as demo_hub:
        steps = list(run_scenario(demo_hub))
        files = list(describe_files(demo_hub.directory.path))
    run = _DemoRun(steps, files, keep)
    data: dict[str, object] = {
        "steps": [
            {"at": to_rfc3339(s.at), "who": s.actor, "what": s.text, "why": s.explanation or None}
            for s in steps
        ],
        "files": [path for path, _ in files],
        "kept": None if keep is None else str(keep),
    }
    return CommandResult(data, lambda screen: _print_run(run, screen))


def _print_run(run: _DemoRun, screen: Screen) -> None:
    for line in _INTRODUCTION:
        screen.line(line)
    screen.line()
    for step in run.steps:
        clock = to_rfc3339(step.at)[11:19]
        screen.line(f"{clock}  ", (f"{step.actor:<5}", _ACTOR_STYLES[step.actor]), step.text)
        if step.explanation:
            screen.line((f"{'':<15}{step.explanation}", "dim italic"))
    screen.line()
    _print_files(run, screen)
    screen.line()
    screen.line("Try it yourself:")
    for line in _NEXT_COMMANDS:
        screen.line(f"  {line}")


def _print_files(run: _DemoRun, screen: Screen) -> None:
    where = f"in {run.keep_folder}" if run.keep_folder else "and took away (--keep DIR leaves them)"
    screen.line(f"The files it made, {where}:")
    width = max(len(path) for path, _ in run.files)
    for path, meaning in run.files:
        screen.line(f"  {path:<{width}}  ", (meaning, "dim italic"))


# --- files ------------------------------------------------------------------------------------

_FILE_MEANINGS = (
    ("dragoman.db", "the ledger"),
    ("checkpoints.jsonl", "its signatures"),
    ("events/*.jsonl", "what happened, by day"),
    ("runs/*/attempts/*/*", "the attempt that died"),
    ("runs/*/run.json", "who worked on it"),
    ("runs/*/run_heartbeat.json", "the last sign of life"),
    ("runs/*/run_result.json", "the report"),
    ("tasks/*/*.md", "state, text, work log"),
    ("tasks/*/*/inputs/handoff.json", "what was asked of ben"),
    ("tasks/*/*/inputs/handoff.md", "the same, to read"),
    ("tasks/*/*/outputs/*", "an agent's own file"),
)
"""Glob pattern -> what the file is for; other files are bookkeeping."""


def describe_files(data: Path) -> Iterator[tuple[str, str]]:
    """List every file that is worth reading, and its purpose."""
    for pattern, meaning in _FILE_MEANINGS:
        for path in sorted(data.glob(pattern)):
            yield path.relative_to(data).as_posix(), meaning


COMMANDS = (CliCommand("demo", demo, takes_as=False),)


# --- hub --------------------------------------------------------------------------------------


class DemoHub(Struct, frozen=True):
    """A hub with a manual clock. Files are up to date after each call."""

    directory: DataDirectory
    clock: ManualClock

    def advance(self, seconds: int) -> None:
        """Advance the clock."""
        self.clock.advance(seconds * 1_000)

    def submit(self, actor: Actor, command: Command) -> Receipt:
        """Submit a command."""
        receipt = self.directory.hub.submit(actor, command).receipts[0]
        self._catch_up()
        return receipt

    def send(
        self, sender: Actor, kind: str, task: str, payload: dict[str, Any], to: str = "dispatcher"
    ) -> Reply:
        """Send an AOF message as its sender."""
        envelope = {
            "protocol": "aof",
            "version": 1,
            "type": kind,
            "taskId": task,
            "fromAgent": sender.name,
            "toAgent": to,
            "sentAt": to_rfc3339(self.clock.now()),
            "payload": payload,
        }
        answer = self.directory.router.send(msgspec.json.encode(envelope), speaker=sender)
        assert answer is not None, "an envelope is always somebody's"
        self._catch_up()
        return answer

    def call_operation(self, caller: Actor, operation: str, arguments: dict[str, Any]) -> Reply:
        """Call an operation."""
        answer = self.directory.router.call(operation, arguments, caller)
        self._catch_up()
        return answer

    def tick(self) -> None:
        """Run every service once."""
        now = self.clock.now()
        for service in self.directory.services:
            service.run_once(now)
        self._catch_up()

    def write_file(self, path: str, text: str) -> None:
        """Write a file below the data directory, as an agent does."""
        (self.directory.path / path).write_text(text, encoding="utf-8")

    def last_transition(self, task: str) -> str:
        """Last transition of a task in the event files, with its reason."""
        lines = (
            msgspec.json.decode(line)
            for log in sorted((self.directory.path / "events").iterdir())
            for line in log.read_bytes().splitlines()
        )
        moves = [
            line["payload"]
            for line in lines
            if line["type"] == "task.transitioned" and line["taskId"] == task
        ]
        return "{from} → {to}, {reason}".format(**moves[-1])

    def _catch_up(self) -> None:
        for _, error in self.directory.catch_up():
            raise error


def describe_outcome(answer: Reply) -> str:
    """Status of the task after a message, or the refusal code."""
    if isinstance(answer, Rejected):
        return f"refused, {answer.code}"
    return f"{answer.receipts[0].status}"


@contextmanager
def open_demo_hub(wiring: CliWiring, start: int, keep: Path | None) -> Generator[DemoHub]:
    """Open a hub whose clock begins at `start`, in a temporary folder unless one is named."""
    with TemporaryDirectory(prefix="dragoman-demo-") as folder:
        clock = ManualClock(start)
        directory = wiring.open_demo_directory(keep or Path(folder), clock)
        try:
            yield DemoHub(directory, clock)
        finally:
            directory.hub.close()


# --- scenario ---------------------------------------------------------------------------------

_MIA = Actor("human", "mia", "demo")

_ADA = Actor("agent", "ada", "demo")

_BEN = Actor("agent", "ben", "demo")

_HOUR_MS = 3_600_000


class DemoStep(Struct, frozen=True):
    """One line of the scenario: who did what, and why it matters."""

    at: int
    actor: str
    text: str
    explanation: str = ""


class DemoTasks(Struct):
    """Ids of the two tasks of the scenario; the hub assigns them."""

    login: str = ""
    test: str = ""


Scene = Callable[[DemoHub, DemoTasks], Iterator[DemoStep]]


def run_scenario(hub: DemoHub) -> Iterator[DemoStep]:
    """Run the whole scenario, step by step."""
    cast = DemoTasks()
    for act in _SCENES:
        yield from act(hub, cast)


def _create_and_claim(hub: DemoHub, tasks: DemoTasks) -> Iterator[DemoStep]:
    receipt = hub.submit(_MIA, CreateTask("Login by e-mail", ready=True))
    tasks.login = receipt.task
    yield _make_step(hub, "mia", f'creates {receipt.task} "Login by e-mail": {receipt.status}')
    hub.advance(5)
    held = hub.submit(_ADA, ClaimTask(tasks.login, "ada", "ada-1"))
    yield _make_step(
        hub,
        "ada",
        f"claims {_short_id(tasks.login)}: attempt {held.attempt}, lease {_until(held.expires_at)}",
        "A claim is a lease: ada must show signs of life, or lose it.",
    )


def _report_progress(hub: DemoHub, tasks: DemoTasks) -> Iterator[DemoStep]:
    hub.advance(175)
    progress = "form and mail are written"
    payload = {"taskId": tasks.login, "agentId": "ada", "progress": progress}
    answer = hub.send(_ADA, "status.update", tasks.login, payload)
    yield _make_step(
        hub,
        "ada",
        f'status.update "{progress}": {describe_outcome(answer)}',
        f"A line in the work log. It shows life too: lease {_until(_lease_end(hub, tasks.login))}.",
    )


def _request_handoff(hub: DemoHub, tasks: DemoTasks) -> Iterator[DemoStep]:
    hub.advance(60)
    receipt = hub.submit(
        _ADA, CreateTask("Test the login", ready=True, assignee="ben", parent=tasks.login)
    )
    tasks.test = receipt.task
    answer = hub.send(_ADA, "handoff.request", tasks.test, _handoff_payload(hub, tasks), to="ben")
    yield _make_step(
        hub,
        "ada",
        f"creates {receipt.task}, a part of {_short_id(tasks.login)}: {receipt.status}",
    )
    yield _make_step(
        hub,
        "ada",
        f"handoff.request to ben: {_short_id(tasks.test)} stays {describe_outcome(answer)}",
        "What is asked for lies in the task's folder: inputs/handoff.md.",
    )
    hub.advance(30)
    hub.send(_BEN, "handoff.accepted", tasks.test, {"taskId": tasks.test, "accepted": True})
    held = hub.submit(_BEN, ClaimTask(tasks.test, "ben", "ben-1"))
    yield _make_step(
        hub,
        "ben",
        f"handoff.accepted, and claims {_short_id(tasks.test)}: attempt {held.attempt}, "
        f"lease {_until(held.expires_at)}",
    )


def _crash_both(hub: DemoHub, tasks: DemoTasks) -> Iterator[DemoStep]:
    hub.advance(30)
    yield _make_step(
        hub,
        "ada",
        "crashes in the middle of its work, without a word",
        "Nobody has to notice: its lease will end by itself.",
    )
    hub.advance(90)
    answer = _report_done(hub, _BEN, tasks.test, "All tests pass.")
    yield _make_step(
        hub,
        "ben",
        f"completion.report done: {_short_id(tasks.test)} is {describe_outcome(answer)} until "
        "its session ends",
        "run_result.json is on the disk.",
    )
    hub.advance(1)
    yield _make_step(hub, "ben", "crashes too, before its session has ended")


def _expire_leases(hub: DemoHub, tasks: DemoTasks) -> Iterator[DemoStep]:
    _pass_lease_end(hub, tasks.login)
    yield _make_step(
        hub,
        "hub",
        f"ticks: {_short_id(tasks.login)} {hub.last_transition(tasks.login)}",
        "ada has reported nothing: somebody may begin anew.",
    )
    _pass_lease_end(hub, tasks.test)
    yield _make_step(
        hub,
        "hub",
        f"ticks: {_short_id(tasks.test)} {hub.last_transition(tasks.test)}",
        "ben had reported: work that is finished is not done twice.",
    )


def _claim_again(hub: DemoHub, tasks: DemoTasks) -> Iterator[DemoStep]:
    hub.advance(30)
    held = hub.submit(_BEN, ClaimTask(tasks.login, "ben", "ben-2"))
    yield _make_step(
        hub,
        "ben",
        f"is back and claims {_short_id(tasks.login)}: attempt {held.attempt}, fence {held.fence}",
    )
    hub.advance(40)
    answer = _report_done(hub, _ADA, tasks.login, "Done.")
    yield _make_step(
        hub,
        "ada",
        f"is back too, completion.report done: {describe_outcome(answer)}",
        "Work from the past cannot overwrite the present.",
    )


def _finish_and_review(hub: DemoHub, tasks: DemoTasks) -> Iterator[DemoStep]:
    hub.advance(120)
    _report_done(hub, _BEN, tasks.login, "Login by e-mail works.")
    answer = hub.call_operation(_BEN, "session_end", {"sessionId": "ben-2"})
    yield _make_step(
        hub,
        "ben",
        f"completion.report done, session_end: {_short_id(tasks.login)} is in "
        f"{describe_outcome(answer)}",
        "Nobody approves their own work: a person looks at it first.",
    )
    hub.advance(300)
    approved = [
        hub.submit(_MIA, MoveTask(task, "done", "good")) for task in (tasks.test, tasks.login)
    ]
    now = ", ".join(f"{_short_id(receipt.task)} is {receipt.status}" for receipt in approved)
    yield _make_step(hub, "mia", f"reviews both: {now}")


def _verify_everything(hub: DemoHub, tasks: DemoTasks) -> Iterator[DemoStep]:
    del tasks
    hub.advance(1)
    verdict = verify_all(hub.directory, no_progress_bars)
    outcome = "all good" if not verdict.finding_count else f"{verdict.finding_count} findings"
    yield _make_step(
        hub,
        "hub",
        f"verifies: {summarize_counts(verdict)}: {outcome}",
        "Ledger, states and files agree: a change or a gap would show.",
    )


_SCENES: tuple[Scene, ...] = (
    _create_and_claim,
    _report_progress,
    _request_handoff,
    _crash_both,
    _expire_leases,
    _claim_again,
    _finish_and_review,
    _verify_everything,
)


def _handoff_payload(hub: DemoHub, tasks: DemoTasks) -> dict[str, Any]:
    return {
        "taskId": tasks.test,
        "parentTaskId": tasks.login,
        "fromAgent": "ada",
        "toAgent": "ben",
        "acceptanceCriteria": ["A wrong code is refused", "A code works once only"],
        "expectedOutputs": ["outputs/summary.md"],
        "contextRefs": [f"tasks/in-progress/{tasks.login}.md"],
        "constraints": ["No new dependencies"],
        "dueBy": to_rfc3339(hub.clock.now() + 3 * _HOUR_MS),
    }


def _report_done(hub: DemoHub, agent: Actor, task: str, notes: str) -> Reply:
    """Write a summary file, then report the task done."""
    hub.write_file(f"tasks/in-progress/{task}/outputs/summary.md", f"{notes}\n")
    payload: dict[str, Any] = {
        "outcome": "done",
        "summaryRef": "outputs/summary.md",
        "deliverables": [],
        "tests": {"total": 12, "passed": 12, "failed": 0},
        "blockers": [],
        "notes": notes,
    }
    return hub.send(agent, "completion.report", task, payload)


def _pass_lease_end(hub: DemoHub, task: str) -> None:
    """Advance the clock to five seconds after the end of the task's lease, then tick."""
    hub.clock.advance(_lease_end(hub, task) - hub.clock.now() + 5_000)
    hub.tick()


def _lease_end(hub: DemoHub, task: str) -> int:
    """Expiry of the task's lease."""
    lease = load_task(hub.directory.hub, task).lease
    assert lease is not None, "somebody holds the task"
    return lease.expires_at


def _until(moment: int) -> str:
    return f"until {to_rfc3339(moment)[11:19]}"


def _short_id(task: str) -> str:
    """Last part of a task's id, enough to tell the two tasks apart."""
    return task.rpartition("-")[2]


def _make_step(hub: DemoHub, actor: str, text: str, explanation: str = "") -> DemoStep:
    return DemoStep(hub.clock.now(), actor, text, explanation)
