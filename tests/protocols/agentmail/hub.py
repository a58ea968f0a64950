"""Test hub for Agent Mail with a manual clock, and letters as agents write them."""

from collections.abc import Mapping
from typing import Any

import msgspec

from dragoman.config import Settings
from dragoman.core.actor import Actor
from dragoman.core.agent import RegisterAgent
from dragoman.core.base import Command, Role
from dragoman.core.errors import Refusal
from dragoman.core.mail import Mail
from dragoman.core.task_state import Task
from dragoman.engine.queries.mail import find_letter
from dragoman.engine.queries.tasks import find_task
from dragoman.engine.request import Accepted, Rejected, Reply
from dragoman.engine.router import Router
from dragoman.engine.store_facts import StoreFacts
from dragoman.notify.notification import NotificationBuilder
from dragoman.protocols import agentmail, aof
from dragoman.protocols.aof.render import render_lines
from dragoman.services.notifier import Notifier
from tests.engine.lab import HUMAN, Lab, OpenStore
from tests.hub_services import Disk, build_services

MINUTE = 60_000
BEAD = "ol-527.1"

OLGA = Actor("orchestrator", "olga")
CHIRON = Actor("agent", "chiron")
SPAWNER = Actor("agent", "spawner")

Row = dict[str, Any]


def letter(type: str, *lines: str, bead: str = BEAD, **fields: Any) -> Row:
    """Build a letter of this type about the bead; an empty bead names none."""
    bead_line = [f"Issue: {bead}" if type.startswith("SPAWN") else f"Bead: {bead}"] if bead else []
    return {"subject": type, "body_md": "\n".join([*bead_line, *lines]), **fields}


def section(head: str, *lines: str) -> str:
    """Build a section of a body under its own heading."""
    return "\n".join(("", f"## {head}", *lines))


def offering(type: str = "OFFERING_READY", tests: str = "PASS", **fields: Any) -> Row:
    """Build a letter about completed work with its checks."""
    return letter(
        type,
        "Status: DONE",
        section("Changes", "- Commit: 0a1b2c3", "- Files: src/a.py, src/b.py"),
        section("Self-Validation", f"- Tests: {tests}", "- Lint: PASS", "- Build: PASS"),
        section("Summary", "It works."),
        **fields,
    )


def failed(type: str, commit: str = "", **fields: Any) -> Row:
    """Build a FAILED letter."""
    partial = (section("Partial Progress", f"- Commit: {commit}"),) if commit else ()
    return letter(
        "FAILED",
        "Status: FAILED",
        section("Failure", f"Type: {type}", "Reason: it broke", "Internal Attempts: 2"),
        *partial,
        section("Recommendation", "mend it"),
        **fields,
    )


def checkpoint(commit: str = "0a1b2c3", **fields: Any) -> Row:
    """Build a CHECKPOINT letter for a successor."""
    return letter(
        "CHECKPOINT",
        "Reason: CONTEXT_HIGH",
        section("Progress", f"- Commit: {commit}", "- Description: half", "- Context usage: 91%"),
        section("Next Steps for Successor", "Write the other half."),
        **fields,
    )


def help_request(question: str = "Which way?", **fields: Any) -> Row:
    """Build a HELP_REQUEST letter."""
    return letter(
        "HELP_REQUEST",
        "Issue Type: STUCK",
        section("Problem", "There are two ways."),
        section("What I Tried", "Both."),
        section("Question", question),
        **fields,
    )


class MailHub:
    """Hub with AOF and Agent Mail, its router and its duties."""

    def __init__(
        self, choices: agentmail.Choices | None = None, settings: Settings | None = None
    ) -> None:
        self.lab = Lab()
        self.choices = choices or agentmail.Choices()
        facts = StoreFacts(self.lab.store, lambda _task, _ref: False, now=self.lab.clock.now)
        dialects = (aof.dialect(), agentmail.dialect(self.choices))
        self.router = Router(self.lab.hub, dialects, facts)
        disk = Disk(self.lab.clock.now)
        notifier = Notifier(self.lab.hub, disk, NotificationBuilder(self.lab.store, ()), (), float)
        self.services = build_services(
            disk, notifier, self.lab.hub, self.router, settings or Settings()
        )

    @property
    def store(self) -> OpenStore:
        return self.lab.store

    def register(self, name: str, role: Role = "agent") -> None:
        """Register an agent."""
        self.do(HUMAN, RegisterAgent(name, role))

    def do(self, actor: Actor, *commands: Command) -> None:
        self.lab.do(actor, *commands)

    def ask(self, operation: str, arguments: Mapping[str, Any], actor: Actor) -> Any:
        """Call an operation that must be accepted, and return its reply."""
        answer = self.call(operation, arguments, actor)
        assert isinstance(answer, Accepted), answer
        return answer.reply

    def code(self, operation: str, arguments: Mapping[str, Any], actor: Actor) -> str:
        """Call an operation that must be refused, and return the code."""
        answer = self.call(operation, arguments, actor)
        assert isinstance(answer, Rejected), answer
        return answer.code

    def call(self, operation: str, arguments: Mapping[str, Any], actor: Actor) -> Reply:
        """Call an operation by name."""
        return self.router.call(operation, dict(arguments), actor)

    def send(self, actor: Actor, row: Row) -> Any:
        """Send a letter that must be accepted, and return the reply."""
        return self.ask("mail.send", row, actor)

    def effect(self, actor: Actor, row: Row) -> str:
        """Send a letter and return "applied", the code of its refused effect, or "none"."""
        effect = self.send(actor, row)["effect"]
        return "applied" if effect["applied"] else effect.get("code", "none")

    def inbox(self, actor: Actor, **filters: Any) -> list[str]:
        """Return the ids of the letters in an inbox."""
        return [row["id"] for row in self.rows(actor, **filters)]

    def rows(self, actor: Actor, **filters: Any) -> list[Row]:
        """Return the letters in an inbox."""
        return self.ask("mail.inbox", filters, actor)["messages"]

    def mail(self, id: str) -> Mail:
        found = find_letter(self.store, id)
        assert not isinstance(found, Refusal), found
        return found

    def task(self, name: str = BEAD) -> Task:
        return self.lab.task(name)

    def has_task(self, name: str = BEAD) -> bool:
        """Return whether a task of this name exists."""
        return not isinstance(find_task(self.store, name), Refusal)

    def pass_(self, minutes: float) -> None:
        """Advance the clock and run every duty."""
        self.lab.clock.advance(round(minutes * MINUTE))
        for service in self.services:
            service.run_once(self.lab.clock.now())

    def events(self, after: int = 0) -> list[dict[str, Any]]:
        """Return the rendered event lines after a position."""

        def aof_id(name: str) -> str:
            return self.task(name).aof_id

        entries = self.store.entries(after, 100_000)
        return [msgspec.json.decode(line) for e in entries for line in render_lines(e, aof_id)]

    def types(self, after: int = 0) -> list[str]:
        """Return the types of the event lines after a position."""
        return [line["type"] for line in self.events(after)]
