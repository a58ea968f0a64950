"""`dragoman demo`: two agents, two crashes and a handoff, in simulated time.

Real messages go to a real hub with a manual clock.
"""

import json
from collections.abc import Generator, Iterator
from contextlib import closing
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated, Any

from msgspec import Struct

from dragoman.core.actor import Actor
from dragoman.core.attempt import ClaimTask
from dragoman.core.base import Command
from dragoman.core.read import Receipt
from dragoman.core.task_state import CreateTask, MoveTask
from dragoman.core.timestamps import parse_rfc3339, to_rfc3339
from dragoman.engine.request import Rejected, Reply
from dragoman.surfaces.cli.command import CliCommand, option
from dragoman.surfaces.cli.commands.task_read import load_task
from dragoman.surfaces.cli.commands.verify import no_progress_bars, summarize_counts, verify_all
from dragoman.surfaces.cli.context import CommandContext, CommandResult, raise_usage_error
from dragoman.surfaces.cli.data_directory import DataDirectory
from dragoman.surfaces.cli.render import Screen
from dragoman.system.clock import ManualClock

_START = parse_rfc3339("2026-02-09T09:00:00Z")

_INTRODUCTION = (
    "A hub keeps tasks, hands each to one agent at a time, and writes it all down.",
    "Here mia is a person with work to do, ada and ben are agents that speak AOF/1;",
    "time is simulated, everything else is real.",
)

_NEXT_COMMANDS = (
    "dragoman init                                  make a data directory here",
    'dragoman task create "My first task" --ready   make a task in it',
    "dragoman events --follow                       watch what happens",
)

_ACTOR_STYLES = {
    "mia": "bold magenta",
    "ada": "bold yellow",
    "ben": "bold cyan",
    "hub": "bold green",
}


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
    with TemporaryDirectory(prefix="dragoman-demo-") as folder:
        clock = ManualClock(start)
        directory = context.wiring.open_demo_directory(keep or Path(folder), clock)
        with closing(directory.hub):
            steps = list(play(DemoHub(directory, clock)))
            files = list(describe_files(directory.path))
    data: dict[str, object] = {
        "steps": [
            {"at": to_rfc3339(s.at), "who": s.actor, "what": s.text, "why": s.explanation or None}
            for s in steps
        ],
        "files": [path for path, _ in files],
        "kept": None if keep is None else str(keep),
    }

    def show(screen: Screen) -> None:
        for line in (*_INTRODUCTION, ""):
            screen.line(line)
        for step in steps:
            clock = to_rfc3339(step.at)[11:19]
            screen.line(f"{clock}  ", (f"{step.actor:<5}", _ACTOR_STYLES[step.actor]), step.text)
            if step.explanation:
                screen.line((f"{'':<15}{step.explanation}", "dim italic"))
        where = f"in {keep}" if keep else "and took away (--keep DIR leaves them)"
        screen.line()
        screen.line(f"The files it made, {where}:")
        width = max(len(path) for path, _ in files)
        for path, meaning in files:
            screen.line(f"  {path:<{width}}  ", (meaning, "dim italic"))
        screen.line()
        screen.line("Try it yourself:")
        for line in _NEXT_COMMANDS:
            screen.line(f"  {line}")

    return CommandResult(data, show)


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


# --- hub --------------------------------------------------------------------------------------


class DemoStep(Struct, frozen=True):
    """One line of the story: who did what, and why it matters."""

    at: int
    actor: str
    text: str
    explanation: str = ""


class DemoHub(Struct, frozen=True):
    """A hub with a manual clock. Files are up to date after each call."""

    directory: DataDirectory
    clock: ManualClock

    def step(self, actor: str, text: str, explanation: str = "") -> DemoStep:
        """A step that happens now."""
        return DemoStep(self.clock.now(), actor, text, explanation)

    def after(self, seconds: int) -> None:
        """Advance the clock."""
        self.clock.advance(seconds * 1_000)

    def submit(self, actor: Actor, command: Command) -> Receipt:
        """Submit a command."""
        receipt = self.directory.hub.submit(actor, command).receipts[0]
        self._catch_up()
        return receipt

    def send(
        self, sender: Actor, kind: str, task: str, payload: dict[str, Any], to: str = "dispatcher"
    ) -> str:
        """Send an AOF message as its sender; the status of its task then, or the refusal."""
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
        answer = self.directory.router.send(json.dumps(envelope), speaker=sender)
        assert answer is not None, "an envelope is always somebody's"
        self._catch_up()
        return _describe_reply(answer)

    def report_done(self, agent: Actor, task: str, notes: str) -> str:
        """Write a summary file as an agent does, then report the task done."""
        summary = self.directory.path / "tasks/in-progress" / task / "outputs/summary.md"
        summary.write_text(f"{notes}\n", encoding="utf-8")
        payload: dict[str, Any] = {
            "outcome": "done",
            "summaryRef": "outputs/summary.md",
            "deliverables": [],
            "tests": {"total": 12, "passed": 12, "failed": 0},
            "blockers": [],
            "notes": notes,
        }
        return self.send(agent, "completion.report", task, payload)

    def end_session(self, agent: Actor, session: str) -> str:
        """End a session; the status of its task then."""
        answer = self.directory.router.call("session_end", {"sessionId": session}, agent)
        self._catch_up()
        return _describe_reply(answer)

    def lease_end(self, task: str) -> int:
        """Expiry of the task's lease."""
        lease = load_task(self.directory.hub, task).lease
        assert lease is not None, "somebody holds the task"
        return lease.expires_at

    def pass_lease_end(self, task: str) -> str:
        """Advance the clock to five seconds after the end of the task's lease, and run every
        service once; the transition of the task, and its reason."""
        self.clock.advance(self.lease_end(task) - self.clock.now() + 5_000)
        for service in self.directory.services:
            service.run_once(self.clock.now())
        self._catch_up()
        logs = sorted((self.directory.path / "events").iterdir())
        lines = (json.loads(line) for log in logs for line in log.read_bytes().splitlines())
        moves = [
            line["payload"]
            for line in lines
            if line["type"] == "task.transitioned" and line["taskId"] == task
        ]
        return "{from} → {to}, {reason}".format(**moves[-1])

    def _catch_up(self) -> None:
        for _, error in self.directory.catch_up():
            raise error


def _describe_reply(answer: Reply) -> str:
    if isinstance(answer, Rejected):
        return f"refused, {answer.code}"
    return f"{answer.receipts[0].status}"


# --- story ------------------------------------------------------------------------------------

_MIA = Actor("human", "mia", "demo")
_ADA = Actor("agent", "ada", "demo")
_BEN = Actor("agent", "ben", "demo")


def play(hub: DemoHub) -> Iterator[DemoStep]:
    """Play the story, step by step."""
    login, test = yield from _hand_over_and_crash(hub)
    yield from _recover_and_finish(hub, login, test)


def _hand_over_and_crash(hub: DemoHub) -> Generator[DemoStep, None, tuple[str, str]]:
    """Two tasks, two agents, two crashes; the ids of the tasks."""
    step, after = hub.step, hub.after
    made = hub.submit(_MIA, CreateTask("Login by e-mail", ready=True))
    login = made.task
    yield step("mia", f'creates {login} "Login by e-mail": {made.status}')
    after(5)
    held = hub.submit(_ADA, ClaimTask(login, "ada", "ada-1"))
    yield step(
        "ada",
        f"claims {_short(login)}: attempt {held.attempt}, lease {_until(held.expires_at)}",
        "A claim is a lease: ada must show signs of life, or lose it.",
    )
    after(175)
    progress = "form and mail are written"
    payload = {"taskId": login, "agentId": "ada", "progress": progress}
    status = hub.send(_ADA, "status.update", login, payload)
    yield step(
        "ada",
        f'status.update "{progress}": {status}',
        f"A line in the work log. It shows life too: lease {_until(hub.lease_end(login))}.",
    )
    after(60)
    made = hub.submit(_ADA, CreateTask("Test the login", ready=True, assignee="ben", parent=login))
    test = made.task
    status = hub.send(_ADA, "handoff.request", test, _handoff_payload(hub, login, test), to="ben")
    yield step("ada", f"creates {test}, a part of {_short(login)}: {made.status}")
    yield step(
        "ada",
        f"handoff.request to ben: {_short(test)} stays {status}",
        "What is asked for lies in the task's folder: inputs/handoff.md.",
    )
    after(30)
    hub.send(_BEN, "handoff.accepted", test, {"taskId": test, "accepted": True})
    held = hub.submit(_BEN, ClaimTask(test, "ben", "ben-1"))
    yield step(
        "ben",
        f"handoff.accepted, and claims {_short(test)}: attempt {held.attempt}, "
        f"lease {_until(held.expires_at)}",
    )
    after(30)
    yield step(
        "ada",
        "crashes in the middle of its work, without a word",
        "Nobody has to notice: its lease will end by itself.",
    )
    after(90)
    status = hub.report_done(_BEN, test, "All tests pass.")
    yield step(
        "ben",
        f"completion.report done: {_short(test)} is {status} until its session ends",
        "run_result.json is on the disk.",
    )
    after(1)
    yield step("ben", "crashes too, before its session has ended")
    return login, test


def _recover_and_finish(hub: DemoHub, login: str, test: str) -> Iterator[DemoStep]:
    step, after = hub.step, hub.after
    yield step(
        "hub",
        f"ticks: {_short(login)} {hub.pass_lease_end(login)}",
        "ada has reported nothing: somebody may begin anew.",
    )
    yield step(
        "hub",
        f"ticks: {_short(test)} {hub.pass_lease_end(test)}",
        "ben had reported: work that is finished is not done twice.",
    )
    after(30)
    held = hub.submit(_BEN, ClaimTask(login, "ben", "ben-2"))
    yield step(
        "ben",
        f"is back and claims {_short(login)}: attempt {held.attempt}, fence {held.fence}",
    )
    after(40)
    yield step(
        "ada",
        f"is back too, completion.report done: {hub.report_done(_ADA, login, 'Done.')}",
        "Work from the past cannot overwrite the present.",
    )
    after(120)
    hub.report_done(_BEN, login, "Login by e-mail works.")
    status = hub.end_session(_BEN, "ben-2")
    yield step(
        "ben",
        f"completion.report done, session_end: {_short(login)} is in {status}",
        "Nobody approves their own work: a person looks at it first.",
    )
    after(300)
    done = [hub.submit(_MIA, MoveTask(task, "done", "good")) for task in (test, login)]
    now = ", ".join(f"{_short(receipt.task)} is {receipt.status}" for receipt in done)
    yield step("mia", f"reviews both: {now}")
    after(1)
    report = verify_all(hub.directory, no_progress_bars)
    outcome = "all good" if not report.finding_count else f"{report.finding_count} findings"
    yield step(
        "hub",
        f"verifies: {summarize_counts(report)}: {outcome}",
        "Ledger, states and files agree: a change or a gap would show.",
    )


def _handoff_payload(hub: DemoHub, login: str, test: str) -> dict[str, Any]:
    return {
        "taskId": test,
        "parentTaskId": login,
        "fromAgent": "ada",
        "toAgent": "ben",
        "acceptanceCriteria": ["A wrong code is refused", "A code works once only"],
        "expectedOutputs": ["outputs/summary.md"],
        "contextRefs": [f"tasks/in-progress/{login}.md"],
        "constraints": ["No new dependencies"],
        "dueBy": to_rfc3339(hub.clock.now() + 3 * 3_600_000),
    }


def _until(moment: int) -> str:
    return f"until {to_rfc3339(moment)[11:19]}"


def _short(task: str) -> str:
    """Last part of a task's id, enough to tell the two tasks apart."""
    return task.rpartition("-")[2]


COMMANDS = (CliCommand("demo", demo, takes_as=False),)
