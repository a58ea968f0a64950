"""`dragoman demo`: one task in five dialects, by a real hub and real agent processes.

The hub and its agents (`demo_agents.py`) are processes of their own; this one is mia, a person. It
follows the story of the task, and does what mia does.
"""

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import closing
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated, Any

from dragoman.core.actor import Actor
from dragoman.core.agent import DescribeAgent, IssueToken, RegisterAgent, Trust
from dragoman.core.errors import DragomanError, Refusal, Refused
from dragoman.core.timestamps import format_duration, to_rfc3339
from dragoman.engine.queries.story import Story, StoryItem, read_story, whole_story
from dragoman.engine.request import Rejected
from dragoman.engine.sentences import truncate
from dragoman.surfaces.cli.command import CliCommand, option
from dragoman.surfaces.cli.commands.verify import no_progress_bars, summarize_counts, verify_all
from dragoman.surfaces.cli.context import CommandContext, CommandResult, raise_usage_error
from dragoman.surfaces.cli.data_directory import DataDirectory
from dragoman.surfaces.cli.render import Screen, StyledText, pluralize
from dragoman.surfaces.story_text import join_chunks
from dragoman.system.bearer_tokens import new_token
from dragoman.system.demo_processes import DemoProcesses, agent_command, kill

_INTRODUCTION = (
    "One task, five dialects. mia is a person, wren and finch speak AOF/1, ivy writes",
    "letters (Agent Mail), rex speaks ACP and SAOP, and the goal is delegated by CCOS.",
    "Each agent is a process of its own, and so is the hub; nothing here is simulated.",
)

_TASK = "guide-fr"

_GOAL = "Translate the guide to French"

_HANDOFF = "review-fr"

_PAUSE_S = 1.0

_POLL_S = 0.02

_GIVE_UP_MS = 120_000

_MIA = Actor("human", "mia", "demo")

_STYLES = {
    "mia": "bold magenta",
    "wren": "bold yellow",
    "finch": "bold cyan",
    "ivy": "bold blue",
    "rex": "bold red",
    "hub": "bold green",
}

_DIALECTS = {
    "aof": "AOF/1",
    "agentmail": "Agent Mail",
    "saop": "SAOP",
    "acp": "ACP",
    "ccos": "CCOS",
}

_WIDTH = 96


def demo(
    context: CommandContext,
    keep: Annotated[
        Path | None,
        option("--keep", "DIR", "Leave the data directory of the demo there, to look at."),
    ] = None,
    *,
    fast: Annotated[bool, option("--fast", "", "Play it without pauses.")] = False,
) -> CommandResult:
    """Play one task in five dialects, by real processes.

    A goal is delegated to an agent, which is killed; its successor asks for help by mail, and hands
    its work to a reviewer, whom a person lets begin. Takes half a minute; without --keep it leaves
    nothing behind.

    \b
    Examples:
      dragoman demo
      dragoman demo --fast --keep seen && dragoman --data seen story guide-fr
    """
    if keep is not None and keep.exists() and not (keep.is_dir() and not any(keep.iterdir())):
        raise_usage_error(f"--keep {keep}: there is something already; name a new or empty folder")
    with TemporaryDirectory(prefix="dragoman-demo-") as folder:
        data = Path(folder) / "hub" if keep is None else keep
        player = _Player(context, data, 0 if fast else _PAUSE_S)
        player.play()
        directory = context.wiring.open_demo_directory(data)
        with closing(directory.hub):
            report = verify_all(directory, no_progress_bars)
            story = list(_read_story(directory))
            views = dict(_views(directory))
    verified = f"{summarize_counts(report)}: " + (
        "all good" if not report.finding_count else f"{report.finding_count} findings"
    )
    result: dict[str, object] = {
        "steps": player.steps,
        "views": views,
        "story": [{"at": to_rfc3339(one.at), "who": one.actor, "what": one.title} for one in story],
        "verified": verified,
        "kept": None if keep is None else str(keep),
    }

    def show(screen: Screen) -> None:
        screen.line()
        screen.line(("The same task in all five", "bold"))
        for name, view in views.items():
            screen.line(f"  {name:<11}{view}")
        screen.line()
        screen.line(("Its story, as the ledger has it", "bold"))
        for line in _story_lines(story):
            screen.line(line)
        screen.line()
        screen.line(("The proof", "bold"), f"  {verified}")
        screen.line()
        shown = "--data DIR" if keep is None else f"--data {keep}"
        screen.line("Look at it yourself" + (", with --keep DIR:" if keep is None else ":"))
        for line in (f"dragoman story {_TASK} --html story.html", f"dragoman why {_TASK}"):
            screen.line(f"  {line} {shown}")
        screen.line("  dragoman up                                     a hub of your own")

    return CommandResult(result, show)


# --- agents -----------------------------------------------------------------------------------

_STARTED_BY_HUB: Mapping[str, Trust] = {"wren": "T2", "finch": "T1"}
"""Agents of the hub's settings, each with its trust: wren is asked first."""

_OTHERS = {"ivy": (("agentmail",), ""), "rex": (("acp", "saop"), "reviewer")}
"""Agents beside the hub -> what they speak, and their role in SAOP."""


def _settings(pause: float) -> str:
    """Settings of the hub: two agents, and short rests."""
    sections = [
        '[owner]\nname = "mia"',
        "[retry]\nbase_ms = 100",
        "[dispatch]\npoll_ms = 100",
        "[hub]\ndrain_ms = 0",
    ]
    for name in _STARTED_BY_HUB:
        command = json.dumps(agent_command(name, pause))
        sections.append(f'[agents.{name}]\ncommand = {command}\nspeaks = ["aof"]')
    return "\n\n".join(sections) + "\n"


def _register_agents(directory: DataDirectory) -> dict[str, str]:
    """Register who takes part; the tokens of those beside the hub."""
    hub, tokens = directory.hub, dict[str, str]()
    hub.submit(_MIA, RegisterAgent("mia", "human"))
    for name, trust in _STARTED_BY_HUB.items():
        described = DescribeAgent(name, skills=("translate", "French"), trust=trust)
        hub.submit(_MIA, RegisterAgent(name, "agent", ("aof",)), described)
    for name, (speaks, role) in _OTHERS.items():
        token = new_token(name)
        tokens[name] = token.text
        issued = IssueToken(name, token.id, token.digest, hub.clock.now() + _TOKEN_MS)
        hub.submit(_MIA, RegisterAgent(name, "agent", speaks, saop_role=role), issued)
    return tokens


_TOKEN_MS = 3_600_000


# --- play -------------------------------------------------------------------------------------


class _Player:
    """Follows the story of the task, tells it, and does what mia does."""

    def __init__(self, context: CommandContext, data: Path, pause: float) -> None:
        self._context = context
        self._data = data
        self._pause = pause
        self._first = 0
        self._told: list[Told] = []
        self.steps: list[dict[str, str | None]] = []

    def play(self) -> None:
        """Play it from the beginning to the end."""
        for line in (*_INTRODUCTION, ""):
            self._print(line)
        open_directory, data = self._context.wiring.open_demo_directory, self._data
        directory = open_directory(data)
        with closing(directory.hub):
            (data / "dragoman.toml").write_text(_settings(self._pause))
            tokens = _register_agents(directory)
        processes = DemoProcesses(data)
        try:
            url = processes.start_hub()
            for name, token in tokens.items():
                processes.start_agent(name, self._pause, url, token)
            directory = open_directory(data)  # from now on it goes through the hub
            with closing(directory.hub):
                _call(directory, "ccos.delegate", goal=_GOAL, intent_id=_TASK)
                for item in self._follow(directory, processes):
                    self._tell(item)
                    self._act(directory, processes, item)
        finally:
            processes.stop()

    def _follow(self, directory: DataDirectory, processes: DemoProcesses) -> Iterator[StoryItem]:
        """Items of the story as they come, until the intent is satisfied."""
        position, clock = 0, directory.hub.clock
        end = clock.now() + _GIVE_UP_MS
        while clock.now() < end:
            for item in _read_story(directory, position):
                position = item.position
                yield item
                if item.type == "intent.satisfied":
                    return
            processes.wait(_POLL_S)
        raise DragomanError(f"the demo did not end within {format_duration(_GIVE_UP_MS)}")

    def _tell(self, item: StoryItem) -> None:
        """Tell an item, if it has its line, and once."""
        line = _LINES.get(item.type)
        told = None if line is None else line(item)
        if told is not None and told not in self._told:
            self._told.append(told)
            self._say(item.at, *told, dialect=_dialect_of(item))

    def _act(self, directory: DataDirectory, processes: DemoProcesses, item: StoryItem) -> None:
        """Do what mia does about an item."""
        process = _PROCESS.search(item.text) if item.type == "task.progressed" else None
        if process is not None:
            processes.wait(self._pause)
            kill(int(process[1]))
            why = "wren is gone in the middle of its work, without a word."
            self._say(directory.hub.clock.now(), "mia", f"kill -9 {process[1]}", why)
        elif item.type == "handoff.noted" and item.title.startswith("waiting"):
            processes.wait(2 * self._pause)
            _call(directory, "acp_handoff", action="approve", handoff_id=_HANDOFF)

    def _say(self, at: int, who: str, what: str, why: str = "", dialect: str = "") -> None:
        self._first = self._first or at
        step = {"at": to_rfc3339(at), "who": who, "dialect": dialect, "what": what, "why": why}
        self.steps.append({name: value or None for name, value in step.items()})
        seconds = (at - self._first) / 1_000
        self._print(
            f"{seconds:5.1f} s  ", (f"{who:<6}", _STYLES[who]), (f"{dialect:<11}", "dim"), what
        )
        if why:
            self._print((f"{'':<26}{why}", "dim italic"))

    def _print(self, *parts: StyledText) -> None:
        """Print a line at once; with --json nothing but the result is printed."""
        if not self._context.shared.json:
            self._context.out.line(*parts)
            self._context.out.flush()


def _call(directory: DataDirectory, operation: str, **arguments: Any) -> Any:
    """Call an operation as mia; its reply."""
    answer = directory.router.call(operation, arguments, _MIA)
    if isinstance(answer, Rejected):
        raise DragomanError(f"{operation}: {answer.code}: {answer.detail}")
    return answer.reply


def _read_story(directory: DataDirectory, after: int = 0) -> Iterator[StoryItem]:
    """The story after a position."""

    def read(position: int) -> Story | Refusal:
        return read_story(directory.hub.store, _TASK, directory.router.dialects, after=position)

    first = read(after)
    if isinstance(first, Refusal):
        raise Refused(first)
    return whole_story(first, read)


# --- lines ------------------------------------------------------------------------------------

Told = tuple[str, str] | tuple[str, str, str] | None
"""Speaker, words, and the reason why they matter."""

_PROCESS = re.compile(r"^process ([0-9]+)$", re.MULTILINE)


def _dialect_of(item: StoryItem) -> str:
    """The dialect of an item; an intent is of CCOS, whoever's words have changed it."""
    return _DIALECTS.get("ccos" if item.kind == "intent" else item.dialect, "")


def _by(item: StoryItem) -> str:
    """Name of the actor; hub, if it is none of the cast."""
    name = item.actor.partition(":")[2]
    return name if name in _STYLES else "hub"


def _tell_claim(item: StoryItem) -> Told:
    agent, _, attempt = item.title.removeprefix("claimed by ").partition(": ")
    return agent, f"begins: {attempt}"


def _tell_progress(item: StoryItem) -> Told:
    return _by(item), item.text.split("\n")[0]


def _tell_report(item: StoryItem) -> Told:
    took = f"after {(item.duration_ms or 0) / 1_000:.1f} s"
    if item.actor != "system:hub":
        return _by(item), f"{took}: {item.text}"
    return "hub", f"{took} wren ended by signal 9, without a report"


def _tell_letter(item: StoryItem) -> Told:
    kind, _, _ = item.title.partition(" ")
    if kind == "HELP_REQUEST":
        return _by(item), f"{kind} to ivy: {item.text.strip().splitlines()[-1]}"
    if kind == "HELP_RESPONSE":
        why = "finch, who speaks AOF/1, gets it as a status.update."
        return _by(item), f"{kind}: {item.text.strip().splitlines()[-1]}", why
    return None


def _tell_choice(item: StoryItem) -> Told:
    why = {
        "wren": "The one who is most likely to reach the goal is asked.",
        "finch": "It counts against wren. The next one is told what was done already.",
    }
    agent = item.title.partition(" ")[0]
    return ("hub", item.title, why[agent]) if agent in why else None


def _tell_offer(item: StoryItem) -> Told:
    why = "A file with its hash, criteria, and a gate that a person opens."
    return _by(item), f"hands it to rex for review, {item.title.rpartition('; ')[2]}", why


def _tell_wait(item: StoryItem) -> Told:
    if not item.title.startswith("waiting"):
        return None
    return _by(item), "accepts, and waits for a person's approval"


def _tell_trace(item: StoryItem) -> Told:
    if item.kind == "thought":
        return _by(item), f"… {item.text.strip()}"
    if item.duration_ms is not None:
        return _by(item), f"tool: {item.title.rpartition(': ')[2]} in {item.duration_ms} ms"
    return None


_LINES: Mapping[str, Callable[[StoryItem], Told]] = {
    "intent.created": lambda item: (_by(item), f"wants: {item.text}"),
    "intent.proposed": _tell_choice,
    "task.claimed": _tell_claim,
    "task.progressed": _tell_progress,
    "task.reported": _tell_report,
    "mail.posted": _tell_letter,
    "handoff.proposed": _tell_offer,
    "handoff.verified": lambda item: (_by(item), item.title),
    "handoff.noted": _tell_wait,
    "handoff.approved": lambda item: (_by(item), item.title),
    "trace.recorded": _tell_trace,
    "turn.recorded": lambda item: (_by(item), item.title),
    "intent.satisfied": lambda _: ("hub", "the goal is reached"),
}
"""Event -> its line, if it is told as it happens; the story at the end has all."""


# --- views ------------------------------------------------------------------------------------


def _views(directory: DataDirectory) -> Iterator[tuple[str, str]]:
    """State of the task in the end, as each dialect has it."""
    (file,) = (directory.path / "tasks").glob("*/*.md")
    yield "AOF/1", f"{file.parent.name}: {file.relative_to(directory.path)}"
    thread = _call(directory, "mail.summary", thread_id=_TASK)
    yield "Agent Mail", f"{thread['task_status']}: {pluralize(thread['messages'], 'letter')}"
    trace = _call(directory, "saop.events", task_id=_TASK, limit=500)["events"]
    moves = [one["payload"] for one in trace if one["payload"]["type"] == "TASK_TRANSITION"]
    yield "SAOP", f"{moves[-1]['to_state']}: {pluralize(len(moves), 'transition')}"
    handoff = _call(directory, "acp_handoff", action="query", handoff_id=_HANDOFF)
    yield "ACP", f"{handoff['status']}: finch → rex"
    intent = _call(directory, "ccos.intent", intent_id=_TASK)
    yield "CCOS", f"{intent['state']}: {' → '.join(intent['tried'])} were asked"


def _story_lines(story: Iterable[StoryItem]) -> Iterator[str]:
    """One line for each item, under its attempt."""
    attempt, first = -1, 0
    for item in join_chunks(story):
        first = first or item.at
        if item.attempt != attempt:
            attempt = item.attempt
            yield f"  attempt {attempt}" if attempt else "  before the first attempt"
        took = "" if item.duration_ms is None else f" ({format_duration(item.duration_ms)})"
        seconds = (item.at - first) / 1_000
        head = f"{seconds:7.1f} s  {_by(item):<6}{_dialect_of(item):<11}"
        yield f"{head}{truncate(item.title, _WIDTH - len(head) - len(took))}{took}"


COMMANDS = (CliCommand("demo", demo, takes_as=False, takes_now=False),)
