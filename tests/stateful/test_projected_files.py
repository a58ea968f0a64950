"""The projected files equal a rebuild after any sequence of operations of all dialects."""

import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from random import Random
from typing import Any

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from dragoman.bootstrap.dialects import build_dialects
from dragoman.config import Settings
from dragoman.core.actor import Actor
from dragoman.core.attempt import EndAttempt, ReportOutcome
from dragoman.core.base import Role
from dragoman.core.errors import Refused
from dragoman.core.task_state import EditTask, MoveTask, NoteTask
from dragoman.engine.router import Router
from dragoman.engine.store_facts import StoreFacts
from dragoman.files.layout import CURSOR_FILE
from dragoman.files.projector import Projector
from dragoman.protocols import aof
from dragoman.services.timers import time_driven_services
from dragoman.system.safe_fs import SafeDisk
from dragoman.testing import Call, Do
from tests.conformance.protocol.cases import CASES
from tests.engine.lab import Lab
from tests.files.lab import read_tree
from tests.requirements import proves

pytestmark = proves("FILES-AS-REBUILT")

ACTORS: Mapping[str, Role] = {
    "ada": "agent",
    "bob": "agent",
    "olga": "orchestrator",
    "hera": "human",
}
TASKS = ("TASK-2026-02-09-001", "TASK-2026-02-09-002", "t-1", "i-1", "i-2", "task-abc-123")

STEPS = [step for steps in CASES.values() for step in steps]
DIALECTS = [[step for step in steps if isinstance(step, Call)] for steps in CASES.values()]
CALLS = [call for calls in DIALECTS for call in calls]
COMMANDS = [
    *(step.command for step in STEPS if isinstance(step, Do)),
    *(NoteTask(task, "a note") for task in TASKS),
    *(EditTask(task, priority="high") for task in TASKS),
    *(EditTask(task, assignee="bob") for task in TASKS),
    *(MoveTask(task, to) for task in TASKS for to in ("backlog", "ready", "blocked", "review")),
    *(ReportOutcome(task, "done", apply=True) for task in TASKS),
    *(EndAttempt(task) for task in TASKS),
]

MEANINGS = {
    "taskId": "task",
    "task_id": "task",
    "task": "task",
    "parentTaskId": "task",
    "item_id": "task",
    "bead": "task",
    "intent_id": "intent",
    "follows": "intent",
    "agent_id": "agent",
    "fromAgent": "agent",
    "toAgent": "agent",
    "to_agent": "agent",
    "agentId": "agent",
}
"""Field -> kind of thing that it names: any name of that kind may stand there."""


def _fields(value: Any, field: str = "") -> Iterator[tuple[str, Any]]:
    """Every field with a plain value, however deep."""
    if isinstance(value, Mapping):
        for name, inner in value.items():  # pyright: ignore[reportUnknownVariableType]
            yield from _fields(inner, str(name))  # pyright: ignore[reportUnknownArgumentType]
    else:
        yield field, value


FIELDS = [field for call in CALLS for field in _fields(call.arguments)]


def _pool(field: str) -> list[Any]:
    """Values that calls of any dialect have in fields of this meaning."""
    meaning = MEANINGS.get(field, field)
    found = [value for name, value in FIELDS if MEANINGS.get(name, name) == meaning]
    return [*found, *TASKS] if meaning == "task" else found


EXTRA_FIELDS: tuple[Mapping[str, object], ...] = ({}, {"x": 1}, {"x": 2}, {"meta": {"x": 1}})
"""Further fields of a message that may have some."""

OPEN_MESSAGES = ("ccos.request", "ccos.result")

RANDOMS = st.randoms(use_true_random=True)
"""Even choices: hypothesis by itself prefers the first of each list."""


def vary(call: Call, random: Random) -> Call:
    """A call of a case, by anybody, with up to two fields of other calls, and further ones."""
    fields = sorted({name for name, _ in _fields(call.arguments)})
    varied = random.sample(fields, min(random.choice((0, 0, 1, 2)), len(fields)))

    def vary_value(value: Any, field: str) -> Any:
        if isinstance(value, Mapping):
            inner: Mapping[str, Any] = value  # pyright: ignore[reportUnknownVariableType]
            return {name: vary_value(part, name) for name, part in inner.items()}
        return random.choice(_pool(field)) if field in varied else value

    by = random.choice((call.by, call.by, call.by, *ACTORS))
    extra = random.choice(EXTRA_FIELDS if call.operation in OPEN_MESSAGES else EXTRA_FIELDS[:1])
    return Call(by, call.operation, {**vary_value(call.arguments, ""), **extra})


class FilesMachine(RuleBasedStateMachine):
    """Operations of all dialects, commands, and time; the files follow each of them."""

    def __init__(self) -> None:
        super().__init__()
        self._folder = tempfile.TemporaryDirectory(prefix="dragoman-files-")
        self._path = Path(self._folder.name)
        self._lab = Lab()
        self._projector = self._open_projector("kept")
        self._rebuilds = 0
        facts = StoreFacts(self._lab.store, lambda _task, _ref: True, now=self._lab.clock.now)
        self._router = Router(self._lab.hub, build_dialects(), facts)

    def _open_projector(self, folder: str) -> Projector:
        (self._path / folder).mkdir()
        disk = SafeDisk(self._path / folder)
        return Projector(self._lab.hub, disk, aof.render_lines, self._warn)

    def _warn(self, text: str) -> None:
        raise AssertionError(text)

    def teardown(self) -> None:
        """Close the hub and remove its folder."""
        self._lab.hub.close()
        self._folder.cleanup()

    @initialize()
    def prepare(self) -> None:
        """Create the tasks of the cases, and some of their agents' work."""
        for step in STEPS:
            if isinstance(step, Do):
                self.command(step.command, step.by)

    @rule(random=RANDOMS, times=st.integers(1, 3))
    def call(self, random: Random, times: int) -> None:
        """Call an operation, perhaps more than once with other fields."""
        call = random.choice(random.choice(DIALECTS))
        for _ in range(times):
            self.submit(vary(call, random))

    @rule(random=RANDOMS)
    def give_command(self, random: Random) -> None:
        """Give a command of the core."""
        self.command(random.choice(COMMANDS), random.choice(list(ACTORS)))

    def submit(self, call: Call) -> None:
        """Call an operation; whether it is accepted does not matter."""
        actor = Actor(ACTORS[call.by], call.by)
        self._router.call(call.operation, dict(call.arguments), actor)

    def command(self, command: Any, by: str) -> None:
        """Give a command; whether it is accepted does not matter."""
        try:
            self._lab.hub.submit(Actor(ACTORS[by], by), command)
        except Refused:
            return

    @rule(minutes=st.sampled_from((1, 6, 60, 24 * 60)))
    def pass_time(self, minutes: int) -> None:
        """Let time pass, and run every time-driven service."""
        self._lab.clock.advance(minutes * 60_000)
        for service in time_driven_services(self._lab.hub, Settings()):
            service.run_once(self._lab.clock.now())

    @invariant()
    def files_equal_a_rebuild(self) -> None:
        """Bring the files up to date, and compare them with those of a new folder."""
        self._projector.catch_up()
        assert [*self._projector.compare(lambda _: None)] == []
        self._rebuilds += 1
        fresh = f"fresh-{self._rebuilds}"
        self._open_projector(fresh).rebuild(lambda _: None)
        expected, found = read_tree(self._path / fresh), read_tree(self._path / "kept")
        assert _comparable(found) == _comparable(expected)


def _comparable(tree: Mapping[str, bytes]) -> dict[str, bytes]:
    """All files but the cursor and heartbeats, of which the ledger has the first and the last."""
    return {
        path: data
        for path, data in tree.items()
        if path != CURSOR_FILE and not path.endswith("run_heartbeat.json")
    }


TestFiles = FilesMachine.TestCase
TestFiles.settings = settings(
    max_examples=max(20, settings().max_examples // 5),
    stateful_step_count=min(settings().stateful_step_count, 40),
)


def test_repeated_requests_with_other_fields_leave_no_stale_file() -> None:
    """The terms of an intent change without an event of its task, when its agent is vetoed."""
    machine = FilesMachine()
    request = {"intent_id": "i-1", "agent_id": "ada", "goal": "Translate it"}
    for extra in ({"x": 1}, {"x": 2}):
        machine.submit(Call("olga", "ccos.request", {**request, **extra}))
        machine.files_equal_a_rebuild()
    machine.teardown()
