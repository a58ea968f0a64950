"""A hub that speaks Agent Mail under a hand-moved clock, and letters as agents write them."""

from collections.abc import Mapping
from typing import Any

import msgspec

from dragoman.config import Settings
from dragoman.core.actors import Actor
from dragoman.core.commands import AnyCommand, RegisterAgent
from dragoman.core.errors import Refusal
from dragoman.core.events import Role
from dragoman.core.states.letter import Mail
from dragoman.core.states.task import Task
from dragoman.engine.facts import StoreFacts
from dragoman.engine.interpreter import Interpreter
from dragoman.engine.plan import Answer, Taken, Turned
from dragoman.engine.reads.ask import find_task
from dragoman.engine.reads.mailbox import find_letter
from dragoman.notify.notice import News, Notice
from dragoman.protocols import agentmail, aof
from dragoman.protocols.aof.render import render_lines
from dragoman.services.notifier import Notifier
from tests.duties import Disk, duties_beside
from tests.engine.lab import HUMAN, Lab, OpenStore

MINUTE = 60_000
BEAD = "ol-527.1"

OLGA = Actor("orchestrator", "olga")
CHIRON = Actor("agent", "chiron")
SPAWNER = Actor("agent", "spawner")

Row = dict[str, Any]


def letter(type: str, *lines: str, bead: str = BEAD, **fields: Any) -> Row:
    """A letter of this type about the bead (empty: about none)."""
    bead_line = [f"Issue: {bead}" if type.startswith("SPAWN") else f"Bead: {bead}"] if bead else []
    return {"subject": type, "body_md": "\n".join([*bead_line, *lines]), **fields}


def section(head: str, *lines: str) -> str:
    """A part of a body under a heading of its own."""
    return "\n".join(("", f"## {head}", *lines))


def offering(type: str = "OFFERING_READY", tests: str = "PASS", **fields: Any) -> Row:
    """Work that is done, with what was checked."""
    return letter(
        type,
        "Status: DONE",
        section("Changes", "- Commit: 0a1b2c3", "- Files: src/a.py, src/b.py"),
        section("Self-Validation", f"- Tests: {tests}", "- Lint: PASS", "- Build: PASS"),
        section("Summary", "It works."),
        **fields,
    )


def failed(type: str, commit: str = "", **fields: Any) -> Row:
    """Work that did not succeed."""
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
    """Work that somebody else has to go on with."""
    return letter(
        "CHECKPOINT",
        "Reason: CONTEXT_HIGH",
        section("Progress", f"- Commit: {commit}", "- Description: half", "- Context usage: 91%"),
        section("Next Steps for Successor", "Write the other half."),
        **fields,
    )


def help_request(question: str = "Which way?", **fields: Any) -> Row:
    """A question of somebody who is stuck."""
    return letter(
        "HELP_REQUEST",
        "Issue Type: STUCK",
        section("Problem", "There are two ways."),
        section("What I Tried", "Both."),
        section("Question", question),
        **fields,
    )


class MailHub:
    """The hub, its doors and its duties."""

    def __init__(
        self, choices: agentmail.Choices | None = None, settings: Settings | None = None
    ) -> None:
        self.lab = Lab()
        self.choices = choices or agentmail.Choices()
        facts = StoreFacts(self.lab.store, lambda _task, _ref: False, now=self.lab.clock.now)
        dialects = (aof.dialect(), agentmail.dialect(self.choices))
        self.router = Interpreter(self.lab.hub, dialects, facts)
        disk = Disk(self.lab.clock.now)
        notifier = Notifier[Notice](self.lab.hub, disk, News(self.lab.store, ()), (), float)
        self.duties = duties_beside(
            disk, notifier, self.lab.hub, self.router, settings or Settings()
        )

    @property
    def store(self) -> OpenStore:
        """Where everything is kept."""
        return self.lab.store

    def register(self, name: str, role: Role = "agent") -> None:
        """Make somebody known."""
        self.do(HUMAN, RegisterAgent(name, role))

    def do(self, actor: Actor, *commands: AnyCommand) -> None:
        """Whatever else happens."""
        self.lab.do(actor, *commands)

    def ask(self, operation: str, arguments: Mapping[str, Any], actor: Actor) -> Any:
        """The reply to an operation that must be accepted."""
        answer = self.call(operation, arguments, actor)
        assert isinstance(answer, Taken), answer
        return answer.reply

    def code(self, operation: str, arguments: Mapping[str, Any], actor: Actor) -> str:
        """The code of an operation that must be refused."""
        answer = self.call(operation, arguments, actor)
        assert isinstance(answer, Turned), answer
        return answer.code

    def call(self, operation: str, arguments: Mapping[str, Any], actor: Actor) -> Answer:
        """An operation by its name."""
        return self.router.call(operation, dict(arguments), actor)

    def send(self, actor: Actor, row: Row) -> Any:
        """The reply to a letter that must be taken."""
        return self.ask("mail.send", row, actor)

    def effect(self, actor: Actor, row: Row) -> str:
        """ "applied", or the code why a letter that was taken changed nothing else, or "none"."""
        effect = self.send(actor, row)["effect"]
        return "applied" if effect["applied"] else effect.get("code", "none")

    def inbox(self, actor: Actor, **filters: Any) -> list[str]:
        """The ids of the letters in a box."""
        return [row["id"] for row in self.rows(actor, **filters)]

    def rows(self, actor: Actor, **filters: Any) -> list[Row]:
        """The letters in a box."""
        return self.ask("mail.inbox", filters, actor)["messages"]

    def mail(self, id: str) -> Mail:
        """A letter as it stands now."""
        found = find_letter(self.store, id)
        assert not isinstance(found, Refusal), found
        return found

    def task(self, name: str = BEAD) -> Task:
        """A task as it stands now."""
        return self.lab.task(name)

    def has_task(self, name: str = BEAD) -> bool:
        """Whether there is a task of this name."""
        return not isinstance(find_task(self.store, name), Refusal)

    def pass_(self, minutes: float) -> None:
        """Time goes by, and every duty is done."""
        self.lab.clock.advance(round(minutes * MINUTE))
        for duty in self.duties:
            duty.run_once(self.lab.clock.now())

    def events(self, after: int = 0) -> list[dict[str, Any]]:
        """The lines of the event files."""

        def aof_id(name: str) -> str:
            return self.task(name).aof_id

        entries = self.store.entries(after, 100_000)
        return [msgspec.json.decode(line) for e in entries for line in render_lines(e, aof_id)]

    def types(self, after: int = 0) -> list[str]:
        """The types of those lines."""
        return [line["type"] for line in self.events(after)]
