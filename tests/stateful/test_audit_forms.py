"""The five audit forms agree after any messages of all dialects to one hub."""

import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from random import Random
from typing import Any

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from dragoman.config import Settings
from dragoman.core.actor import Actor
from dragoman.core.attempt import ClaimTask, ReleaseTask
from dragoman.core.base import Command
from dragoman.core.errors import Refused
from dragoman.core.handoff.state import Handoff
from dragoman.core.question_state import AnswerQuestion
from dragoman.core.task_state import (
    CreateTask,
    EditTask,
    MoveTask,
    RewindTask,
    SendBackTask,
    Task,
)
from dragoman.files.projector import Projector
from dragoman.protocols import aof
from dragoman.services.timers import time_driven_services
from dragoman.system.safe_fs import SafeDisk
from tests.engine import handoffs
from tests.engine.mixed_hub import MixedHub, aof_message, tool_event, turn
from tests.requirements import proves
from tests.stateful.audit_forms import Forms, check_forms

pytestmark = proves("AUDIT-FORMS")

AGENTS = ("ada", "bob", "cleo", "dan")
NAMES = ("TASK-2026-02-09-001", "TASK-2026-02-09-002", "ol-1", "t-1", "i-1", "i-2", "s-1")
"""Names of tasks; each is born in the dialect that speaks of it first."""

HERA = Actor("human", "hera")
OLGA = Actor("orchestrator", "olga")
CORA = Actor("coordinator", "cora")

RANDOMS = st.randoms(use_true_random=True)
"""Even choices: hypothesis by itself prefers the first of each list."""


class Fleet:
    """A hub with its files, and agents that speak any dialect about any task."""

    def __init__(self, folder: Path) -> None:
        self.hub = MixedHub()
        self.events = 0
        self.offers = 0
        self.turns = 0
        self.projector = Projector(self.hub.hub, SafeDisk(folder), aof.render_lines, _fail)
        self.forms = Forms(self.hub.store, folder, self.hub.router)

    def check(self) -> None:
        """Bring the files up to date, and compare all forms."""
        self.projector.catch_up()
        check_forms(self.forms)

    def send(self, message: Mapping[str, Any], by: str) -> None:
        """Send a message; whether it is accepted does not matter."""
        self.hub.router.send(message, speaker=Actor("agent", by), via="test")

    def call(self, operation: str, by: str | Actor, **arguments: Any) -> None:
        """Call an operation; whether it is accepted does not matter."""
        actor = by if isinstance(by, Actor) else Actor("agent", by)
        self.hub.router.call(operation, arguments, actor)

    def do(self, actor: Actor, command: Command) -> None:
        """Give a command; whether it is accepted does not matter."""
        try:
            self.hub.hub.submit(actor, command)
        except Refused:
            return

    def pass_time(self, milliseconds: int) -> None:
        """Let time pass, and run every time-driven service."""
        self.hub.clock.advance(milliseconds)
        for service in time_driven_services(self.hub.hub, Settings()):
            service.run_once(self.hub.clock.now())

    def task(self, name: str) -> Task | None:
        """The task of this name, if it is known."""
        known = (one for one in self.forms.tasks() if name in (one.id, *_bare(one.aliases)))
        return next(known, None)

    def handoff_of(self, name: str) -> Handoff | None:
        """The active handoff of a task."""
        task = self.task(name)
        id = task.handoff.id if task is not None and task.handoff is not None else ""
        return handoffs.state(self.hub, id) if id else None

    # What agents say

    def say_aof(self, who: str, name: str, random: Random) -> None:
        """An AOF message about a task."""
        task = self.task(name)
        id = name if task is None else task.aof_id
        tests = {"total": 1, "passed": 1, "failed": 0}
        report = {"summaryRef": "outputs/summary.md", "tests": tests, "notes": "so it is"}
        other = random.choice(AGENTS)
        messages: list[Any] = [
            ("status.update", {"agentId": who, "progress": "half of it"}),
            ("status.update", {"agentId": who, "status": "blocked", "blockers": ["no key"]}),
            ("status.update", {"agentId": who, "status": random.choice(("ready", "review"))}),
            ("completion.report", {"outcome": "done", **report}),
            ("completion.report", {"outcome": "done", **report}),
            ("completion.report", {"outcome": "partial", **report}),
            ("completion.report", {"outcome": "needs_review", **report}),
            ("completion.report", {"outcome": "blocked", "blockers": ["no key"], **report}),
            ("handoff.accepted", {"accepted": True}),
            ("status.update", {"agentId": who, "notes": "going on"}),
            ("handoff.rejected", {"accepted": False, "reason": "no time"}),
        ]
        kind, payload = random.choice(messages)
        self.send(aof_message(kind, id, who, other, **payload), who)
        if kind == "completion.report" and random.random() < 0.7:
            self.call("session_end", who, sessionId=f"s-{who}")

    def delegate_aof(self, who: str, name: str, random: Random) -> None:
        """An AOF request to take a part of a task."""
        task, part = self.task(name), self.task(random.choice(NAMES))
        if task is None or part is None:
            return
        other = random.choice(AGENTS)
        self.send(
            aof_message(
                "handoff.request",
                part.aof_id,
                who,
                other,
                parentTaskId=task.aof_id,
                fromAgent=who,
                toAgent=other,
                dueBy="2026-02-10T14:30:00.000Z",
                acceptanceCriteria=["it is dry"],
            ),
            who,
        )

    def say_mail(self, who: str, name: str, random: Random) -> None:
        """A letter about a task."""
        bodies = {
            "BEAD_ACCEPTED": f"Session: s-{who}\n",
            "PROGRESS": "Step: 1\nStatus: going\n",
            "HELP_REQUEST": "Issue Type: STUCK\n\n## Question\nWhich key?\n",
            "HELP_RESPONSE": "## Guidance\nThe red one.\n",
            "OFFERING_READY": "Status: READY\nTests: PASS\n\n## Summary\ndone\n",
            "DONE": "Status: DONE\n\n## Summary\ndone\n",
            "FAILED": "Status: FAILED\n\n## Failure\nType: {}\nReason: broken\n".format(
                random.choice(("TESTS_FAIL", "ERROR", "SPEC_IMPOSSIBLE", "CONTEXT_HIGH"))
            ),
            "CHECKPOINT": "Reason: {}\nCommit: abc1234\n\n## Next Steps for Successor\nx\n".format(
                random.choice(("MANUAL", "CONTEXT_HIGH"))
            ),
            "": "Good morning.\n",
        }
        type = random.choice((*bodies, "BEAD_ACCEPTED", "DONE"))
        letter = {
            "to": [random.choice(AGENTS)],
            "subject": f"[{name}] {type or 'hello'}",
            "body_md": f"Bead: {name}\n{bodies[type]}",
        }
        self.call("mail.send", who, **letter)

    def say_acp(self, who: str, name: str, random: Random) -> None:
        """The next action of a task's handoff, or a new offer, or a message."""
        handoff = self.handoff_of(name)
        if handoff is None or random.random() < 0.1:
            self.offers += 1
            package = handoffs.package(name)
            del package["policy"], package["verification"], package["artifacts"]
            more = {} if handoff is None else {"supersedes": handoff.id}
            self.call(
                "acp_handoff",
                who,
                action="initiate",
                to_agent=random.choice(AGENTS),
                handoff_id=f"h-{self.offers}",
                **package,
                **more,
            )
            return
        actions = {
            "proposed": ("accept", "accept", "accept", "reject", "withdraw"),
            "validating": ("accept", "reject", "withdraw"),
            "accepted": ("activate", "activate", "activate", "reject", "withdraw"),
            "activated": ("complete", "complete", "reject", "activate", "reassign"),
        }
        action = random.choice(actions[handoff.status])
        by: str | Actor = handoff.sender if action == "withdraw" else handoff.recipient
        more: dict[str, Any] = {}
        if action == "reject":
            more = {"reason": "other", "detail": "no time"}
        elif action == "reassign":
            by, more = CORA, {"to_agent": random.choice(AGENTS)}
        if random.random() < 0.1:
            by = who
        self.call("acp_handoff", by, action=action, handoff_id=handoff.id, **more)
        if action == "complete" and random.random() < 0.5:
            self.call("acp_handoff", handoff.sender, action="close", handoff_id=handoff.id)

    def send_acp(self, who: str, name: str, random: Random) -> None:
        """An ACP message about a task."""
        type = random.choice(("status.update", "status.blocked", "status.complete"))
        payload = {"text": "so it is", "blocking_issue": "no key"}
        to = [random.choice(AGENTS)]
        self.call("acp_send", who, to=to, type=type, task_id=name, payload=payload)

    def say_ccos(self, who: str, name: str, random: Random) -> None:
        """A result or an update of an intent."""
        own = {"intent_id": name, "agent_id": who}
        messages: list[dict[str, Any]] = [
            {"success": True, "output": "it is done"},
            {"success": True, "output": {"pages": 3}},
            {"success": False, "error": "no key"},
            {"success": False, "error": "no time", "meta": {"kind": "rejected"}},
            {"progress": 50, "message": "half of it"},
        ]
        self.send({**own, **random.choice(messages)}, who)

    def delegate_ccos(self, who: str, name: str, random: Random) -> None:
        """A goal for the best agent, or for one of them."""
        goal = {"intent_id": name, "goal": "Write python tests"}
        patience = {"timeout_ms": 600_000} if random.random() < 0.3 else {}
        if random.random() < 0.5:
            self.call("ccos.delegate", OLGA, **goal, **patience)
        else:
            self.call("ccos.request", OLGA, agent_id=who, **goal)

    def say_saop(self, who: str, name: str, random: Random) -> None:
        """A turn or an event of a session."""
        self.turns += 1
        states = ("review", "blocked", "ready", "in-progress", "thinking")
        transition = {
            "type": "TASK_TRANSITION",
            "task_id": name,
            "from_state": "in-progress",
            "to_state": random.choice(states),
        }
        thought = {"type": "THOUGHT_STREAM", "agent_id": "developer", "turn_index": 0}
        thought |= {"chunk": "hm", "is_final": False}
        self.events += 1
        self.send(
            random.choice(
                (
                    turn(name, self.turns),
                    tool_event(self.events, f"s-{who}", **transition),
                    tool_event(self.events, f"s-{who}", **thought),
                )
            ),
            who,
        )

    def claim(self, who: str, name: str, random: Random) -> None:
        """Take a task, or give it back."""
        if random.random() < 0.15:
            self.do(Actor("agent", who), ReleaseTask(name, "later"))
        else:
            self.do(Actor("agent", who), ClaimTask(name, who, session=f"s-{who}"))


def _bare(aliases: tuple[str, ...]) -> list[str]:
    return [alias.partition(":")[2] for alias in aliases]


def _fail(text: str) -> None:
    raise AssertionError(text)


SAYINGS: tuple[Callable[[Fleet, str, str, Random], None], ...] = (
    Fleet.say_aof,
    Fleet.say_aof,
    Fleet.delegate_aof,
    Fleet.say_mail,
    Fleet.say_mail,
    Fleet.say_acp,
    Fleet.say_acp,
    Fleet.send_acp,
    Fleet.say_ccos,
    Fleet.delegate_ccos,
    Fleet.say_saop,
    Fleet.claim,
)


class AuditMachine(RuleBasedStateMachine):
    """Messages of all dialects, people, and time; all forms are compared after each step."""

    def __init__(self) -> None:
        super().__init__()
        self._folder = tempfile.TemporaryDirectory(prefix="dragoman-forms-")
        self._fleet = Fleet(Path(self._folder.name))

    def teardown(self) -> None:
        """Close the hub and remove its folder."""
        self._fleet.hub.hub.close()
        self._folder.cleanup()

    @initialize()
    def prepare(self) -> None:
        """Register the agents, and create a task."""
        for agent in AGENTS:
            self._fleet.hub.register(agent, saop="developer")
            self._fleet.call("ccos.register", OLGA, agent_id=agent, skills=["python"])
        self._fleet.do(HERA, CreateTask("Mend the roof", NAMES[0], ready=True))
        self._fleet.do(HERA, CreateTask("Paint it", NAMES[1], ready=True, review_required=False))

    @rule(random=RANDOMS)
    def say(self, random: Random) -> None:
        """Somebody says something about a task: mostly its owner."""
        name = random.choice(NAMES[: random.choice((2, 5, len(NAMES)))])
        task = self._fleet.task(name)
        owner = task.assignee if task is not None else ""
        is_owner = owner in AGENTS and random.random() < 0.8
        who = owner if is_owner else random.choice(AGENTS)
        if task is not None and task.status == "ready" and random.random() < 0.5:
            self._fleet.claim(who, name, random)
        saying = random.choice(SAYINGS)
        for _ in range(random.choice((1, 1, 4)) if saying is Fleet.say_acp else 1):
            saying(self._fleet, who, name, random)

    @rule(random=RANDOMS)
    def decide(self, random: Random) -> None:
        """A person decides about a task."""
        tasks = [*self._fleet.forms.tasks()]
        waiting = [one for one in tasks if one.status == "review"]
        task = random.choice(waiting if waiting and random.random() < 0.6 else tasks)
        name = task.id
        commands: list[Command] = [
            *([MoveTask(name, "done", "good")] * 3 if task.status == "review" else []),
            MoveTask(name, random.choice(("ready", "blocked", "cancelled", "review")), "so"),
            SendBackTask(name, "not yet"),
            AnswerQuestion(name, "the red one"),
            EditTask(name, assignee=random.choice(("", *AGENTS)), take=random.random() < 0.5),
            EditTask(name, review_required=random.random() < 0.5),
        ]
        if random.random() < 0.15:
            versions = self._fleet.hub.store.stream(f"task:{task.id}")
            last = 1 if versions is None else versions.version
            commands = [RewindTask(name, random.randint(0, last), reason="once more")]
        self._fleet.do(HERA, random.choice(commands))

    @rule(minutes=st.sampled_from((1, 6, 20, 60, 24 * 60)))
    def pass_time(self, minutes: int) -> None:
        """Let time pass."""
        self._fleet.pass_time(minutes * 60_000)

    @invariant()
    def forms_agree(self) -> None:
        """Compare all forms of all tasks."""
        self._fleet.check()


TestAuditForms = AuditMachine.TestCase
TestAuditForms.settings = settings(
    max_examples=max(20, settings().max_examples // 5),
    stateful_step_count=min(settings().stateful_step_count, 60),
)
