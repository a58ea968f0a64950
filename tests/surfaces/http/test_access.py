"""Every route of the hub's own description with every kind of credential."""

import os
import re
from collections import Counter
from collections.abc import Generator, Mapping
from typing import Any

import pytest

from dragoman.core.agent import RevokeToken
from dragoman.core.attempt import ClaimTask
from dragoman.core.base import Status
from dragoman.core.task_state import CreateTask, MoveTask
from dragoman.testing import Call
from tests.conformance.protocol.cases import CASES
from tests.conftest import LONG_RUN
from tests.requirements import proves
from tests.surfaces.http.hub_server import DAY_MS, HubServer, Response, serving

pytestmark = proves("HTTP-ACCESS")

SECRET_WORD = "wombat"
"""It stands in all that only those may read who have a credential."""

INVALID = ("nobody", "garbage", "revoked", "expired")
"""Credentials that are none."""

OUTSIDERS = ("observer", "agent", "attempt")
"""Good credentials of somebody else than the holder of the task."""

INSIDERS = ("orchestrator", "human", "owner")

NAMES = {"name": "held", "id": "h-1"}
"""Parameter of a path -> the task of Cyd, and her handoff."""

REMARKS = frozenset({"task.noted", "task.aliased"})
"""Events of what every agent may add to a task of others: remarks, and names of its own dialect."""

MEANS_AN_AGENT = "/v1/agents/"

OWNERS_OWN = ("/v1/internal/commands", "/v1/internal/operations")
"""Routes for the token of the data directory alone."""

_QUESTION = {"text": "why?"}

BODIES: Mapping[str, Any] = {
    "/v1/tasks": {"title": "x"},
    "delegate": {"title": "x", "assignee": "ada", "due_by": "2026-12-01T00:00:00Z"},
    "claim": {},
    "heartbeat": {},
    "complete": {"notes": "x"},
    "fail": {"notes": "x"},
    "block": {"blockers": ["x"]},
    "release": {},
    "report": {"outcome": "done", "apply": True},
    "update": {"progress": "x"},
    "move": {"to": "done"},
    "approve": {},
    "retry": {},
    "send-back": {"reason": "x"},
    "ask": _QUESTION,
    "answer": _QUESTION,
    "withdraw": {"question": "q1"},
    "reopen": {},
    "assign": {"to": "ada", "take": True},
    "edit": {"title": "mine"},
    "note": {"text": "x"},
    "link": {"aliases": ["bead:mine"]},
    "pause": {"reason": "x"},
    "resume": {},
    "/v1/work": {},
    "/v1/signed": {
        "envelope": {"protocol": "aof"},
        "signature": {
            "agent": "cyd",
            "nonce": "0" * 16,
            "audience": "house",
            "expires": "2026-02-09T20:57:00.000Z",
            "alg": "ed25519",
            "value": "x",
        },
    },
    "/v1/messages": {"protocol": "aof", "version": 1},
    "/v1/internal/commands": {"actor": {"role": "human", "name": "cyd"}, "commands": []},
    "/v1/internal/operations": {},
    "/v1/internal/cli": {
        "args": ["task", "approve", "held"],
        "terminals": [False, False],
        "encoding": "utf-8",
        "environ": {},
        "inputs": {},
    },
}
"""Path, or its last word -> a body for it."""

CALLS = {
    call.operation: call.arguments
    for calls in CASES.values()
    for call in calls
    if isinstance(call, Call)
}
"""Operation of a dialect -> arguments that it takes."""

STATUSES: tuple[Status, ...] = (
    ("in-progress", "ready", "blocked", "review", "cancelled", "deadletter")
    if os.environ.get(LONG_RUN)
    else ("in-progress",)
)


def make_server(status: Status = "in-progress") -> HubServer:
    """Make a hub with a task of Cyd, held or in another status, and a credential of each kind."""
    server = HubServer()
    for name in ("ada", "bob", "cyd", "revoked", "expired"):
        server.add_agent(name)
    server.add_agent("observer", "observer")
    server.add_agent("orchestrator", "orchestrator")
    server.add_agent("human", "human")
    server.submit(RevokeToken("revoked"))
    server.clock.advance(DAY_MS + 1)
    server.add_agent("ada")
    server.add_agent("observer", "observer")
    server.add_agent("orchestrator", "orchestrator")
    server.add_agent("human", "human")
    server.submit(
        CreateTask(SECRET_WORD, "held", body=SECRET_WORD, ready=True, assignee="cyd"),
        ClaimTask("held", "cyd"),
        CreateTask("of Bob", "other", ready=True, assignee="bob"),
    )
    server.tokens |= {
        "agent": server.tokens["ada"],
        "garbage": "drg_cyd_000000000001_" + "x" * 43,
        "nobody": "",
    }
    return server


def prepare(server: HubServer, status: Status) -> None:
    """Take the attempt of another agent, offer Cyd's task, and bring it into a status."""
    claimed = server.post("/v1/tasks/other/claim", {"agent": "bob"}, by="orchestrator")
    server.tokens["attempt"] = claimed["token"]
    if status != "in-progress":
        server.submit(MoveTask("held", status))


@pytest.fixture(params=STATUSES)
def server(request: pytest.FixtureRequest) -> Generator[HubServer]:
    """Give a hub with a task of Cyd."""
    with serving(make_server()) as server:
        prepare(server, request.param)
        yield server


class Route:
    """A route of the description, and a request to it."""

    def __init__(self, method: str, path: str, described: Mapping[str, Any]) -> None:
        self.method = method.upper()
        self.path = path
        self.is_open = described.get("security") == []
        names = NAMES | ({"name": "cyd"} if path.startswith(MEANS_AN_AGENT) else {})
        self.target = re.sub(r"{(\w+)}", lambda found: names.get(found[1], "x"), path)
        if path == "/v1/internal/operations":
            self.target += "?operation=mail.send&role=agent&name=cyd&via=cli"
        operation = path.rpartition("/")[2]
        known = BODIES.get(path, BODIES.get(operation))
        self.body = (
            None if method == "get" else CALLS.get(operation, {}) if known is None else known
        )

    def ask(self, server: HubServer, by: str) -> Response:
        """Send the request with a credential; "nobody": without one."""
        return server.request(self.method, self.target, self.body, by="" if by == "nobody" else by)


def routes_of(server: HubServer) -> list[Route]:
    """All routes but the stream, which has no end when it is allowed."""
    paths = server.get("/openapi.json")["paths"]
    return [
        Route(method, path, described)
        for path, methods in paths.items()
        for method, described in methods.items()
        if path != "/v1/stream"
    ]


def test_credentials_that_are_none_read_and_change_nothing(server: HubServer) -> None:
    routes, asked = routes_of(server), Counter[int]()
    before = server.store.head()
    for route in routes:
        for by in INVALID:
            response = route.ask(server, by)
            asked[response.status] += 1
            assert SECRET_WORD.encode() not in response.body, (route.path, by)
            if not route.is_open:
                assert response.status == 401, (route.path, by, response)
    assert server.request("GET", "/v1/stream", by="").status == 401
    assert server.store.head() == before
    assert max(asked) < 500
    assert asked.total() >= 4 * 90


@pytest.mark.parametrize("by", OUTSIDERS)
def test_outsider_changes_nothing_of_others(server: HubServer, by: str) -> None:
    routes, start = routes_of(server), server.store.head()
    writes = [route for route in routes if route.method == "POST"]
    for route in routes:
        response = route.ask(server, by)
        assert response.status < 500, (route.path, response)
        if route.path in OWNERS_OWN:
            assert response.status == 403, (route.path, response)
    entries = server.store.entries(start, 10_000)
    changed = {entry.stream for entry in entries}
    assert "agent:cyd" not in changed
    assert {entry.event for entry in entries if entry.stream == "task:held"} <= REMARKS
    if by == "observer":
        assert changed <= {"actor:observer:observer"}
    if by == "attempt":
        assert not {one for one in changed if one.startswith("task:")} - {"task:other"}
    assert len(writes) > 60


@pytest.mark.parametrize("by", INSIDERS)
def test_no_route_fails_for_whoever_may_use_it(by: str) -> None:
    with serving(make_server()) as server:
        prepare(server, "in-progress")
        for route in routes_of(server):
            response = route.ask(server, by)
            assert response.status < 500, (route.path, response)
            if route.path in OWNERS_OWN and by != "owner":
                assert response.status == 403, (route.path, response)
            else:
                assert response.status != 401 or route.is_open, (route.path, response)
