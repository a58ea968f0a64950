"""A hub in its own process with agents, work and trouble in it, driven over its HTTP API."""

import json
import urllib.error
import urllib.request
from collections.abc import Generator
from contextlib import contextmanager
from typing import Any

from tests.e2e.hub_process import HubProcess, run_hub
from tests.e2e.program import Program
from tests.protocols.acp.hub import offer
from tests.protocols.saop.hub import completed, event, invoked, pulse, thought

AGENTS = ("ada", "ben", "cyd")
OBSERVER = "olga"

LONG_QUESTION = (
    "The rates come with 4 decimals, and the ledger keeps 2. Shall I round half to even, as the "
    "old importer did, or keep the remainder in a column of its own?"
)


class Refused(Exception):
    """The hub refused a request."""


class Fleet:
    """A running hub, and a token for each of its agents."""

    def __init__(self, program: Program, hub: HubProcess, tokens: dict[str, str]) -> None:
        self.program = program
        self.hub = hub
        self.tokens = {**tokens, "owner": (program.data / "token").read_text().strip()}

    @property
    def url(self) -> str:
        """URL of the hub."""
        return self.hub.url

    def call(self, path: str, body: Any = None, by: str = "owner") -> Any:
        """GET a path, or POST a body to it."""
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(  # noqa: S310  our own hub
            self.url + path,
            data,
            {"Authorization": f"Bearer {self.tokens[by]}", "Content-Type": "application/json"},
        )
        try:
            with urllib.request.urlopen(request, timeout=30) as reply:  # noqa: S310  the same
                return json.load(reply)
        except urllib.error.HTTPError as error:
            raise Refused(error.read().decode()) from None

    def create(self, id: str, title: str, **fields: Any) -> str:
        """Create a task that is ready."""
        self.call("/v1/tasks", {"id": id, "title": title, "ready": True, **fields})
        return id

    def act(self, task: str, action: str, by: str = "owner", **fields: Any) -> Any:
        """Do something with a task."""
        return self.call(f"/v1/tasks/{task}/{action}", fields, by)

    def claim(self, task: str, by: str) -> Any:
        """Claim a task for an agent."""
        return self.act(task, "claim", by, agent=by)

    def sign_in_path(self, by: str = "owner") -> str:
        """Path of a new one-time link."""
        return self.call("/v1/sign-in/links", {}, by)["path"]


@contextmanager
def running_fleet(program: Program) -> Generator[Fleet]:
    """Run a hub with three agents and an observer, and no work."""
    tokens = add_agents(program)
    with run_hub(program) as hub:
        yield Fleet(program, hub, tokens)


def add_agents(program: Program) -> dict[str, str]:
    """Register the agents and the observer; return their tokens."""
    for name in AGENTS:
        role = ("--saop-role", "developer") if name == "ada" else ()
        program.prepare("agent", "add", name, "--speaks", "acp", *role)
    program.prepare("agent", "add", OBSERVER, "--role", "observer")
    names = (*AGENTS, OBSERVER)
    return {name: program.ask_here("agent", "token", name)["token"] for name in names}


def add_trouble(fleet: Fleet) -> None:
    """Add work in every status, and something of each kind that needs a person."""
    _add_work(fleet)
    _add_trace(fleet)
    _add_questions(fleet)
    _add_handoffs(fleet)
    _add_letters(fleet)


def _add_work(fleet: Fleet) -> None:
    body = "Read the CSV of the bank, check the sums, and write one entry for each line."
    fleet.create("import-rates", "Import exchange rates from the bank's nightly CSV", body=body)
    fleet.create("fix-login", "Fix the redirect loop after login with an expired cookie")
    fleet.create("quote-pdf", "Quotes as PDF", priority="high")
    fleet.create("drop-py310", "Drop Python 3.10", priority="low")
    fleet.create("nightly-report", "Nightly report of failed payments", assignee="cyd")
    fleet.create("release-notes", "Write the release notes", blocked_by=["fix-login"])
    fleet.call("/v1/tasks", {"id": "dark-mode", "title": "Dark mode for the customer portal"})
    fleet.create("flaky-upload", "Upload fails once in a while", max_attempts=1)
    fleet.create("old-idea", "An idea that nobody needs any more")
    fleet.act("old-idea", "move", to="cancelled", reason="nobody needs it")
    fleet.create("rename-table", "Rename the table of customers")
    fleet.claim("rename-table", "cyd")
    fleet.act("rename-table", "complete", "cyd", notes="Renamed, and the migration is tested.")
    fleet.act("rename-table", "approve")
    fleet.act("fix-login", "claim", "ada", agent="ada", session="login")
    fleet.act("fix-login", "update", "ada", progress="found the cookie that is never cleared")
    fleet.claim("flaky-upload", "ben")
    fleet.act("flaky-upload", "fail", "ben", notes="The server closed the connection at 64 MiB.")
    fleet.claim("drop-py310", "cyd")
    done = "Removed the branch of the old version.\nAll 812 tests pass; the changelog has a line."
    fleet.act("drop-py310", "complete", "cyd", notes=done)


def _add_trace(fleet: Fleet) -> None:
    """Add what ada thinks and does at its task."""
    steps: tuple[dict[str, Any], ...] = (
        thought("The loop ends at /login, so the cookie must come back with each answer."),
        invoked("c1", command="pytest tests/test_login.py -x"),
        pulse("tests/test_login.py .....\x1b[31mF\x1b[0m"),
        pulse("E   assert 302 == 200"),
        completed("c1"),
        thought("`clear` has no path: the browser keeps the old one.", final=True),
        invoked("c2", command="sed -i s/clear/clear_all/ app/session.py"),
        completed("c2"),
    )
    for number, payload in enumerate(steps, start=1):
        fleet.call("/v1/saop/saop.event", event(number, payload, "login"), "ada")


def _add_questions(fleet: Fleet) -> None:
    fleet.claim("import-rates", "ben")
    fleet.act("import-rates", "ask", "ben", text=LONG_QUESTION)
    fleet.claim("quote-pdf", "cyd")
    fleet.act(
        "quote-pdf", "block", "cyd", blockers=["Which template: the old one, or that of sales?"]
    )
    fleet.call("/v1/agents/cyd/pause", {"reason": "its budget of the day is used up"})


def _add_handoffs(fleet: Fleet) -> None:
    for task, gate in (("hand-invoices", True), ("hand-search", False)):
        fleet.create(task, f"Hand over the {task.partition('-')[2]}", assignee="ada")
        message = offer("ben", task, policy={"requires_human_approval": gate})
        fleet.call("/v1/acp/acp_handoff", message, "ada")


def _add_letters(fleet: Fleet) -> None:
    letters = (
        ("ada", ["ben"], "Names of the columns", "They end in `_at` where they are times."),
        ("ben", ["ada"], "Re: Names of the columns", "Good. I rename `created` then."),
    )
    for sender, to, subject, text in letters:
        letter = {"to": to, "subject": subject, "body_md": text, "thread_id": "columns"}
        fleet.call("/v1/agentmail/mail.send", letter, sender)
