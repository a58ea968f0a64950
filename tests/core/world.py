"""World of plain dictionaries in which deciders run without an engine or a store."""

from collections.abc import Callable, Iterable
from typing import Any

from msgspec.structs import replace

from dragoman.core.actor import Actor, CommandRefused, MessageReceived
from dragoman.core.agent import AgentRecord, Reputation
from dragoman.core.attempt import ClaimTask
from dragoman.core.attempt_state import Lease
from dragoman.core.base import Command, Event, Status
from dragoman.core.deciders import decide
from dragoman.core.errors import Refusal
from dragoman.core.handoff.state import Handoff
from dragoman.core.ids import check_alias, check_task_id
from dragoman.core.intent.state import Intent, IntentDispatched
from dragoman.core.mail import Mail
from dragoman.core.read import Decision, TimedEvent
from dragoman.core.reservation import Reservations
from dragoman.core.task_state import Task
from dragoman.core.trace import RecordedEntry, Trace, TurnLog
from dragoman.core.wave import Wave
from dragoman.core.work_queue import WorkItem
from dragoman.ledger.stream_state import fold

NOW = 1_770_647_400_000
"""2026-02-09T14:30:00.000Z."""

TTL = 300_000

HUMAN = Actor("human", "hera")
ORCHESTRATOR = Actor("orchestrator", "olga")
COORDINATOR = Actor("coordinator", "cora")
HUB = Actor("system", "hub")
FILE = Actor("file", "fs")
TRUSTED_FILE = Actor("trusted-file", "fs")
OBSERVER = Actor("observer", "otto")
ALICE = Actor("agent", "alice")
BOB = Actor("agent", "bob")


class WorldRead:
    """Facts that a decider reads, on behalf of one actor."""

    def __init__(self, actor: Actor, world: "World") -> None:
        self.actor = actor
        self._world = world

    def task(self, name: str) -> Task | Refusal:
        """Find a task by primary id, by KIND:NAME, or by the bare name of an alias."""
        if name in self._world.tasks:
            return self._world.tasks[name]
        found = list(self._world.names.get(name, ()))
        if found:
            one = self._world.tasks[found[0]]
            return one if len(found) == 1 else Refusal("ambiguous_name", name)
        malformed = check_alias(name) if ":" in name else check_task_id(name)
        return malformed or Refusal("task_not_found", name)

    def task_at(self, task: Task, version: int) -> Task | None:
        """Task at an earlier version, if the test has set one."""
        return self._world.past.get((task.id, version))

    def before_end(self, task: Task) -> int:
        """Last version that the test has set."""
        return max(version for id, version in self._world.past if id == task.id)

    def is_taken(self, name: str) -> bool:
        """True if any task has this name."""
        found = self.task(name)
        return isinstance(found, Task) or found.code == "ambiguous_name"

    def lease(self, task: Task) -> Lease | None:
        """Lease of the task, valid or expired."""
        return self._world.leases.get(task.id)

    def requested(self, request_id: str) -> str:
        """Intent of the request with this id."""
        return self._world.requests.get(request_id, "")

    def agent(self, name: str) -> AgentRecord | None:
        return self._world.agents.get(name)

    def is_known(self, name: str) -> bool:
        """True if an agent is registered under this name; nobody has spoken here."""
        return name in self._world.agents

    def handoff(self, id: str) -> Handoff | None:
        return self._world.handoffs.get(id)

    def work_item(self, id: str) -> WorkItem | None:
        return self._world.work_items.get(id)

    def mail(self, id: str) -> Mail | None:
        return self._world.mails.get(id)

    def wave(self, id: str) -> Wave | None:
        return self._world.waves.get(id)

    def coordinators(self) -> tuple[str, ...]:
        """Registered coordinators."""
        known = self._world.agents.values()
        return tuple(one.name for one in known if one.role == "coordinator")

    def open_waves(self) -> tuple[Wave, ...]:
        """Waves that have not ended."""
        return tuple(wave for wave in self._world.waves.values() if wave.ended_at is None)

    def history(self, stream: str) -> tuple[TimedEvent, ...]:
        """Events of a stream."""
        return tuple(self._world.histories.get(stream, ()))

    def reservations(self) -> Reservations:
        return self._world.reservations

    def intent(self, id: str) -> Intent | None:
        return self._world.intents.get(id)

    def reputation(self, name: str) -> Reputation | None:
        """Reputation of an agent."""
        return self._world.reputations.get(name)

    def trace(self, session: str) -> Trace | None:
        """Trace of a session."""
        return self._world.traces.get(session)

    def turns(self, task: str) -> TurnLog | None:
        """Turns of a task."""
        return self._world.turn_logs.get(task)

    def logged(self, key: str) -> RecordedEntry | None:
        """No entry: nothing was recorded before."""
        del key

    def held(self, session: str, holder: str) -> tuple[str, ...]:
        """No tasks: nothing is held in any session."""
        del session, holder
        return ()

    @property
    def cause(self) -> str:
        """Id of the request."""
        return self._world.cause

    def next_ready(
        self, queues: tuple[str, ...], now: int, may_begin: Callable[[Task], bool]
    ) -> Task | None:
        """Oldest task that is ready in these queues."""
        return next(
            (
                task
                for task in self._world.tasks.values()
                if task.status == "ready"
                and not task.open_blockers
                and task.not_before <= now
                and task.reserved_for in queues
                and may_begin(task)
            ),
            None,
        )

    def last_number(self, day: str) -> int:
        """Last AOF number of a day."""
        return self._world.numbers.get(day, 0)


class World:
    """Tasks, leases and all other states, and the events that change them."""

    def __init__(self, *tasks: Task, leases: Iterable[tuple[str, Lease]] = ()) -> None:
        self.tasks: dict[str, Task] = {}
        self.names: dict[str, set[str]] = {}
        for known in tasks:
            self.put(known)
        self.leases = dict(leases)
        self.agents: dict[str, AgentRecord] = {}
        self.mails: dict[str, Mail] = {}
        self.handoffs: dict[str, Handoff] = {}
        self.work_items: dict[str, WorkItem] = {}
        self.waves: dict[str, Wave] = {}
        self.histories: dict[str, list[TimedEvent]] = {}
        self.reservations = Reservations()
        self.intents: dict[str, Intent] = {}
        self.requests: dict[str, str] = {}
        self.reputations: dict[str, Reputation] = {}
        self.traces: dict[str, Trace] = {}
        self.turn_logs: dict[str, TurnLog] = {}
        self._states: dict[str, dict[str, Any]] = {
            "task": self.tasks,
            "agent": self.agents,
            "mail": self.mails,
            "handoff": self.handoffs,
            "workq": self.work_items,
            "intent": self.intents,
            "reputation": self.reputations,
            "trace": self.traces,
            "turns": self.turn_logs,
        }
        """Kind of stream -> its states; waves and reservations are tested on a real hub."""
        self.numbers: dict[str, int] = {}
        self.cause = "cause-1"
        self.past: dict[tuple[str, int], Task] = {}

    def put(self, known: Task) -> None:
        """Set the present state of a task."""
        self.tasks[known.id] = known
        for name in _names(known):
            self.names.setdefault(name, set()).add(known.id)

    def decide(self, actor: Actor, command: Command, now: int = NOW) -> Decision | Refusal:
        """Decide a command; nothing changes."""
        return decide(command, WorldRead(actor, self), now)

    def code(self, actor: Actor, command: Command, now: int = NOW) -> str:
        """Code of the refusal; empty if the command is accepted."""
        answer = self.decide(actor, command, now)
        return answer.code if isinstance(answer, Refusal) else ""

    def do(self, actor: Actor, command: Command, now: int = NOW) -> Decision:
        """Decide a command that must be accepted, and apply its events."""
        decision = self.decide(actor, command, now)
        assert isinstance(decision, Decision), decision
        self.apply(decision, now)
        return decision

    def apply(self, decision: Decision, now: int = NOW) -> None:
        """Apply the events of a decision."""
        for stream, event in decision.events:
            assert not isinstance(event, CommandRefused | MessageReceived)
            self.histories.setdefault(stream, []).append((event, now))
            kind, _, name = stream.partition(":")
            states = self._states[kind]
            state = fold(states.get(name), event, now)
            if isinstance(state, Task):
                self.put(state)
            else:
                states[name] = state
            if isinstance(event, IntentDispatched):
                self.requests[event.request_id] = event.intent
        if decision.lease is not None and decision.lease.lease is None:
            del self.leases[decision.lease.task]
        elif decision.lease is not None and decision.lease.lease is not None:
            self.leases[decision.lease.task] = decision.lease.lease
        if decision.aof_number is not None:
            day, number = decision.aof_number
            self.numbers[day] = number


def task(
    task_id: str = "T",
    status: Status = "ready",
    assignee: str = "",
    *,
    attempts: int = 0,
    agents: tuple[str, ...] = (),
    review_required: bool = True,
) -> Task:
    """Task as it is after some attempts; its owner has ended the last one itself."""
    return Task(
        id=task_id,
        aof_id=f"TASK-2026-02-09-{len(task_id):03d}",
        title=f"title of {task_id}",
        status=status,
        created_at=NOW,
        updated_at=NOW,
        moved_at=NOW,
        review_required=review_required,
        assignee=assignee,
        attempts=attempts,
        fence=attempts,
        agents=agents,
        ended_by=assignee if assignee in agents and status != "in-progress" else "",
    )


def lease(holder: str = "alice", fence: int = 1, *, expires_at: int = NOW + TTL) -> Lease:
    """Lease as a claim grants it."""
    begun = expires_at - TTL
    return Lease(holder, fence, TTL, begun, expires_at, started_at=begun, progress_at=begun)


def held(*, review_required: bool = True, expires_at: int = NOW + TTL) -> World:
    """World with one task, T, that alice holds in her first attempt."""
    held_task = task(
        "T",
        "in-progress",
        "alice",
        attempts=1,
        agents=("alice",),
        review_required=review_required,
    )
    return World(held_task, leases=[("T", lease(expires_at=expires_at))])


def reclaimed() -> World:
    """World in which alice's lease on T ran out and bob holds it in the second attempt."""
    reclaimed_task = task("T", "in-progress", "bob", attempts=2, agents=("alice", "bob"))
    return World(reclaimed_task, leases=[("T", lease("bob", 2))])


def claim(world: World, agent: Actor = ALICE, name: str = "T", now: int = NOW) -> Decision:
    """Claim a task as this agent, for itself."""
    return world.do(agent, ClaimTask(name, agent.name), now)


def events_of(decision: Decision | Refusal) -> list[Event]:
    """Events of an accepted decision, without their streams."""
    assert isinstance(decision, Decision), decision
    return [event for _, event in decision.events]


def with_fields(world: World, name: str = "T", **fields: object) -> World:
    """World with some fields of a task changed."""
    world.put(replace(world.tasks[name], **fields))
    return world


def _names(found: Task) -> set[str]:
    bare = {alias.partition(":")[2] for alias in found.aliases}
    return {found.aof_id, f"aof:{found.aof_id}", *found.aliases, *bare}
