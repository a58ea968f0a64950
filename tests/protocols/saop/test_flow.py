"""The data flow of section 4, step by step: agent, orchestrator, bus, database, UI."""

from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import apsw

from dragoman.core.attempt import ReportOutcome
from dragoman.engine.request import Accepted
from dragoman.protocols import saop
from dragoman.store.sqlite import SqliteStore
from dragoman.store.sqlite.apsw_types import open_database
from dragoman.system.clock import SequentialIds
from tests.protocols.saop.hub import (
    DEVELOPER,
    TASK,
    completed,
    event,
    invoked,
    thought,
    turn,
)
from tests.requirements import proves
from tests.surfaces.http.hub_server import HubServer, serving
from tests.surfaces.http.reader import Reader, follow_stream

COMMIT = "0a1b2c3d4e5f60718293a4b5c6d7e8f901234567"


class SaopStack:
    """Hub with a real database, for all participants of the flow."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.server = HubServer(SqliteStore.open(path, SequentialIds()))
        self.server.hub.engine.current_commit = lambda: COMMIT

    def submit(self, operation: str, message: dict[str, Any]) -> Any:
        """Send a message as the agent."""
        answer = self.server.deps.router.call(operation, message, DEVELOPER)
        assert isinstance(answer, Accepted), answer
        return answer.reply

    def rows(self, sql: str) -> list[Any]:
        """Query the database directly."""
        connection = open_database(self.path, apsw.SQLITE_OPEN_READONLY)
        try:
            return connection.execute(sql).fetchall()
        finally:
            connection.close()


@contextmanager
def open_stack(path: Path) -> Generator[tuple[SaopStack, Reader]]:
    """Open the hub, with a reader of its traces as UI."""
    stack = SaopStack(path)
    with serving(stack.server), follow_stream(stack.server, "?form=trace") as ui:
        assert ui.frame() is not None
        yield stack, ui


@proves("SAOP-FLOW", "SAOP-TABLES", "SAOP-BUS")
def test_data_flow_follows_the_specification_step_by_step(tmp_path: Path) -> None:
    with open_stack(tmp_path / "flow.db") as (stack, ui):
        # Agent ->> Orchestrator: TurnEnvelope; Orchestrator ->> SQLite: INSERT INTO agent_logs
        stack.submit("saop.turn", turn(0, "I look at the tests"))
        assert stack.rows(
            "SELECT task_id, turn_index, envelope_json ->> '$.content.thought' FROM agent_logs "
            "WHERE turn_index IS NOT NULL"
        ) == [(TASK, 0, "I look at the tests")]
        (claimed,) = ui.take(1)
        assert claimed.data["payload"]["to_state"] == "in-progress"
        # Orchestrator ->> EventBus: THOUGHT_STREAM chunks; EventBus ->> UI: reasoning tokens
        stack.submit("saop.event", event(1, thought("I look ")))
        stack.submit("saop.event", event(2, thought("at the tests", final=True)))
        chunks = ui.take(2)
        assert "".join(one.data["payload"]["chunk"] for one in chunks) == "I look at the tests"
        # Agent ->> Orchestrator: tool invocation; ->> EventBus: TOOL_LIFECYCLE_INVOKED
        stack.submit("saop.event", event(3, invoked("c-1", command="pytest")))
        (call,) = ui.take(1)
        assert call.data["payload"]["arguments"] == {"command": "pytest"}
        # Orchestrator ->> Agent: tool result; ->> EventBus: TOOL_LIFECYCLE_COMPLETED
        stack.submit("saop.event", event(4, completed("c-1")))
        assert [one.event for one in ui.take(1)] == ["TOOL_LIFECYCLE_COMPLETED"]
        # Orchestrator ->> EventBus: TASK_TRANSITION (on state change), in any dialect
        stack.server.hub.submit(DEVELOPER, ReportOutcome(TASK, "done", apply=True))
        (moved,) = ui.take(1)
        assert moved.data["payload"] == {
            "type": "TASK_TRANSITION",
            "task_id": TASK,
            "from_state": "in-progress",
            "to_state": "review",
            "git_hash": COMMIT,
            "timestamp": "2026-02-09T20:55:00.000Z",
        }
        # SQLite -->> Orchestrator: persist all events
        assert stack.rows("SELECT count(event_id) FROM agent_logs") == [(6,)]
        assert stack.rows("SELECT id, status, head_hash FROM tasks") == [(TASK, "review", COMMIT)]
        kept = stack.submit("saop.events", {"task_id": TASK})["events"]
        assert all(saop.safe_parse(one, "event").ok for one in kept)
        assert len(kept) == 6
