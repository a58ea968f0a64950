"""Shape errors: the same wording on every surface, with the path of the field."""

import asyncio
import re
from collections.abc import Callable, Generator, Iterator
from typing import Any, Final

import pytest
from mcp.client import Client
from msgspec.structs import fields

from dragoman.config import parse_settings
from dragoman.config.sections import TABLE_SECTIONS, section_keys
from dragoman.core.errors import SettingsError
from dragoman.engine.lint import linter_of
from dragoman.engine.operation import Dialect, Fault, Operation
from dragoman.protocols.acp.wire import ACTION_SHAPES
from dragoman.surfaces.http.endpoint import convert_body, parse_query
from dragoman.surfaces.http.errors import HttpProblem
from dragoman.surfaces.mcp.tool import ToolCall, ToolError
from dragoman.surfaces.mcp.tools import build_tools
from tests.requirements import proves
from tests.surfaces.http.hub_server import HubServer, serving
from tests.surfaces.mcp.clients import run_with_client
from tests.surfaces.mcp.mcp_hub import mount_mcp

pytestmark = proves("SHAPE-DOORS")

Surface = Callable[[HubServer, Any], tuple[str, str | None]]
"""Sends a value; returns the error text, and its path where the surface has it separately."""

ODD_VALUES: Final[tuple[Any, ...]] = (
    *(7, -1, 1.5, True, None, "", " ", "odd", "x" * 70_000),
    *([], [7], [[]], [{"odd": 1}], {"odd": 1}, {"odd": {}}, {"type": "odd"}),
)
"""Values that few fields accept, and none accepts all of."""
LIBRARY_WORDING: Final = re.compile(r"`|\$|Expected|Object |Invalid |of the form '|None|UNSET")
"""Wording of the library that converts shapes, or a pattern without a description."""


@pytest.fixture(scope="module")
def server() -> Generator[HubServer]:
    """Give a hub with every dialect, behind HTTP and MCP."""
    with serving(mount_mcp(HubServer())) as served:
        served.add_agent("ada")
        yield served


def _post(path: str, by: str = "ada") -> Surface:
    def post(server: HubServer, value: Any) -> tuple[str, str | None]:
        response = server.request("POST", path, value, by=by)
        assert response.status == 422, response
        return response.json["detail"], response.json.get("path", "")

    return post


def _query(server: HubServer, value: str) -> tuple[str, str | None]:
    response = server.request("GET", f"/v1/tasks?{value}", by="ada")
    assert (response.status, response.code) == (400, "invalid_request")
    return response.json["detail"], response.json.get("path", "")


def _acp(server: HubServer, value: Any) -> tuple[str, str | None]:
    response = server.request("POST", "/v1/acp/acp_handoff", value, by="ada")
    assert (response.status, response.json["error"]["code"]) == (422, "schema_invalid")
    return response.json["error"]["detail"], None


def _mcp(tool: str) -> Surface:
    async def call_tool(client: Client, value: Any) -> Any:
        response = await client.call_tool(tool, value)
        assert response.is_error
        return response.structured_content

    def call(server: HubServer, value: Any) -> tuple[str, str | None]:
        refusal = run_with_client(server, "ada", lambda client: call_tool(client, value))
        assert refusal["code"] in ("invalid_field", "invalid_envelope")
        return refusal["detail"].removeprefix(f"{tool}: "), None

    return call


def _settings(_: HubServer, text: str) -> tuple[str, str | None]:
    with pytest.raises(SettingsError) as raised:
        parse_settings(text, {})
    return raised.value.detail, None


def _variable(_: HubServer, variable: tuple[str, str]) -> tuple[str, str | None]:
    with pytest.raises(SettingsError) as raised:
        parse_settings("", dict([variable]))
    return raised.value.detail, None


tasks, commands = _post("/v1/tasks"), _post("/v1/internal/commands", by="owner")
messages, signed = _post("/v1/messages"), _post("/v1/signed")
complete = _post("/v1/aof/aof_task_complete")
mail, inbox = _post("/v1/agentmail/mail.send"), _post("/v1/agentmail/mail.inbox")
delegate, register = _post("/v1/ccos/ccos.delegate"), _post("/v1/ccos/ccos.register")
turn, turns = _post("/v1/saop/saop.turn"), _post("/v1/saop/saop.turns")
event = _post("/v1/saop/saop.event")
claim, tool_complete = _mcp("claim"), _mcp("complete")

ENVELOPE: Final[dict[str, Any]] = {
    "protocol": "aof",
    "version": 1,
    "type": "status.update",
    "taskId": "TASK-2026-02-09-001",
    "fromAgent": "ada",
    "toAgent": "dispatcher",
    "sentAt": "2026-02-09T20:55:00Z",
    "payload": {},
}
TASK: Final[dict[str, Any]] = {
    "task_id": "T",
    "title": "t",
    "objective": "o",
    "success_criteria": ["it runs"],
    "priority": "low",
}
OFFER: Final[dict[str, Any]] = {
    "action": "initiate",
    "to_agent": "bob",
    "task": TASK,
    "context": {"summary": "s"},
    "work_state": {"status": "review", "next_step": "n"},
    "artifacts": [],
}
NO_OBJECT: Final[list[Any]] = []
STATES: Final = "backlog, ready, in-progress, blocked, review, done, deadletter, cancelled"


CASES: Final[list[tuple[Surface, Any, str]]] = [
    # Wrong type.
    (tasks, {"title": 7}, "title: it must be a text, not a whole number"),
    (_query, "limit=many", "limit: it must be a whole number"),
    (messages, ENVELOPE | {"taskId": 7}, "taskId: it must be a text, not a whole number"),
    (messages, ENVELOPE | {"payload": []}, "payload: it must be an object, not a list"),
    (mail, {"subject": 1, "body_md": ""}, "subject: it must be a text, not a whole number"),
    (_acp, OFFER | {"task": 7}, "task: it must be an object, not a whole number"),
    (delegate, {"goal": 7}, "goal: it must be a text, not a whole number"),
    (turns, {"task_id": []}, "task_id: it must be a text, not a list"),
    (claim, {"task": []}, "task: it must be a text, not a list"),
    (_settings, "[http]\nport = 'x'", "http.port: it must be a whole number, not a text"),
    (
        _settings,
        "[agents.ada]\ncommand = 'a'",
        "agents.ada.command: it must be a list, not a text",
    ),
    (
        _variable,
        ("DRAGOMAN_HTTP_PORT", "x"),
        "the variable DRAGOMAN_HTTP_PORT: it must be a whole number",
    ),
    # Missing field.
    (tasks, {}, "title: it is missing"),
    (commands, {"commands": [{"type": "task.create"}]}, "commands[0].title: it is missing"),
    (complete, {"outcome": "done"}, "summaryRef: it is missing"),
    (mail, {"subject": "x"}, "body_md: it is missing"),
    (_acp, OFFER | {"context": {"constraints": ["c"]}}, "context.summary: it is missing"),
    (delegate, {}, "goal: it is missing"),
    (turns, {}, "task_id: it is missing"),
    (event, {}, "event_id: it is missing; session_id: it is missing; payload: it is missing"),
    (claim, {"task": None}, "task: it must be a text, not null"),
    (tool_complete, {}, "task: it is missing"),
    (signed, {"envelope": {}, "signature": {}}, "signature.agent: it is missing"),
    # Unknown field.
    (tasks, {"titel": "x"}, "titel: there is no such field; did you mean title?"),
    (_query, "limits=1", "'limits' is not a parameter here; did you mean limit?"),
    (_acp, OFFER | {"sla": {"x": 1}}, "sla.x: there is no such field; known: proposed"),
    (delegate, {"goal": "x", "gaol": 1}, "gaol: there is no such field; did you mean goal?"),
    (turns, {"task": "x"}, "task: there is no such field; did you mean task_id?"),
    (claim, {"tusk": "x"}, "tusk: there is no such field; did you mean task?"),
    (_settings, "[http]\nprot = 1", "http.prot is not a setting; did you mean port?"),
    # Value outside of an enumeration.
    (
        tasks,
        {"title": "x", "priority": "huge"},
        "priority: 'huge' is not one of: critical, high, normal, low",
    ),
    (_query, "status=lost", f"status: 'lost' is not one of: {STATES}"),
    (
        messages,
        ENVELOPE | {"payload": {"status": "lost"}},
        f"payload.status: 'lost' is not one of: {STATES}",
    ),
    (messages, ENVELOPE | {"version": 2}, "version: it must be 1, not 2"),
    (inbox, {"box": "attic"}, "box: 'attic' is not one of: in, sent, overdue, waiting"),
    (
        _acp,
        OFFER | {"task": TASK | {"priority": "huge"}},
        "task.priority: 'huge' is not one of: low, normal, high, critical",
    ),
    (register, {"skills": ["a"], "trust": "T9"}, "trust: 'T9' is not one of: T0, T1, T2"),
    (
        tool_complete,
        {"task": "x", "outcome": "perhaps"},
        "outcome: 'perhaps' is not one of: done, blocked, needs_review, partial",
    ),
    (
        _settings,
        "[redaction]\nrules = 'x'",
        "redaction.rules: 'x' is not one of: all, known",
    ),
    # Out of range.
    (tasks, {"title": "x", "max_attempts": 0}, "max_attempts: it must be a whole number, at"),
    (tasks, {"title": ""}, "title: it must be a text of at least 1 character"),
    (_query, "limit=0", "limit: it must be a whole number, at least 1"),
    (inbox, {"limit": 1_001}, "limit: it must be a whole number, at most 1000"),
    (delegate, {"goal": ""}, "goal: it must be a text of at least 1 character"),
    (commands, {"commands": []}, "commands: it must be a list of at least 1 entry"),
    (claim, {"minutes": -1}, "minutes: it must be a whole number, at least 0"),
    (
        _settings,
        "[dispatch]\npoll_ms = 0",
        "dispatch.poll_ms is 0; it must be from 10",
    ),
    # Wrong format.
    (
        turns,
        {"task_id": "x", "cursor": "x"},
        "cursor: it must be the cursor of the previous page",
    ),
    (
        _acp,
        OFFER | {"task": TASK | {"title": " "}},
        "task.title: it must be a text of at most 500 characters, not empty and not blank",
    ),
    # Nested, and among several shapes.
    (
        _acp,
        OFFER | {"artifacts": [{"artifact_id": "a", "ref": {"type": "file", "path": 7}}]},
        "artifacts[0].ref.path: it must be a text, not a whole number",
    ),
    (
        commands,
        {"commands": [{"type": "task.crate"}]},
        "commands[0].type: 'task.crate' is not one",
    ),
    (
        commands,
        {"commands": [{"type": "task.move", "task": "x", "to": "lost"}]},
        f"commands[0].to: 'lost' is not one of: {STATES}",
    ),
    (mail, {"subject": "x", "body_md": "", "to": [7]}, "to[0]: it must be a text, not a"),
    # Not an object.
    *(
        (surface, NO_OBJECT, "it must be an object")
        for surface in (tasks, commands, complete, mail, inbox, delegate, turn, turns, event)
    ),
]


@pytest.mark.parametrize(("surface", "value", "expected"), CASES)
def test_each_surface_says_what_is_wrong_and_in_which_field(
    server: HubServer, surface: Surface, value: Any, expected: str
) -> None:
    detail, path = surface(server, value)
    assert detail.startswith(expected), detail
    field, colon, _ = detail.partition(": ")
    assert path is None or "not a parameter" in detail or path == (field if colon else "")
    assert LIBRARY_WORDING.search(detail) is None, detail


def _with_odd_field(shape: Any) -> Iterator[dict[str, Any]]:
    """Yield objects with an odd value in one field."""
    yield {"odd": 1}
    for field in fields(shape):
        yield from ({field.encode_name: odd} for odd in ODD_VALUES)


def _body_refusals(server: HubServer) -> Iterator[str]:
    for endpoint in server.app.endpoints:
        yield from _problems(parse_query, b"odd=1", endpoint.query)
        for field in fields(endpoint.query):
            for odd in (b"", b"-1", b"1.5", b"odd"):
                query = field.encode_name.encode() + b"=" + odd
                yield from _problems(parse_query, query, endpoint.query)
        if endpoint.parses_body and endpoint.body not in (None, Any):
            for value in _with_odd_field(endpoint.body):
                yield from _problems(convert_body, value, endpoint.body)


def _problems(read: Callable[..., Any], *arguments: Any) -> Iterator[str]:
    try:
        read(*arguments)
    except HttpProblem as problem:
        yield problem.problem.detail


def _odd_messages(server: HubServer) -> Iterator[tuple[Dialect, Operation, Any]]:
    for dialect in server.deps.router.dialects:
        for operation in dialect.operations:
            # Where there are several shapes, the action chooses one.
            shapes = ACTION_SHAPES if operation.name == "acp_handoff" else {"": operation.input}
            for action, shape in shapes.items():
                for value in _with_odd_field(shape):
                    yield dialect, operation, {"action": action, **value} if action else value


def _dialect_refusals(server: HubServer) -> Iterator[str]:
    for _, operation, value in _odd_messages(server):
        read = operation.read(value)
        if isinstance(read, Fault):
            yield read.detail


def _lint_reasons(server: HubServer) -> Iterator[str]:
    for dialect, _, value in _odd_messages(server):
        yield from (issue["reason"] for issue in linter_of(dialect).check(value, "", True).issues)


def _argument_refusals(_: HubServer) -> Iterator[str]:
    async def run_in_context(work: Callable[..., Any], *, reads: bool) -> dict[str, Any]:
        return {"work": work, "reads": reads}

    async def responses() -> list[Any]:
        return [
            await tool.run(ToolCall({name: odd}, run_in_context, None))
            for tool in build_tools(()).values()
            for name in tool.schema["properties"]
            for odd in ODD_VALUES
        ]

    for response in asyncio.run(responses()):
        if isinstance(response, ToolError):
            yield response.detail


def _setting_refusals(_: HubServer) -> Iterator[str]:
    agent_sections = [
        (kind + ".x", shape.__struct_fields__) for kind, shape in TABLE_SECTIONS.items()
    ]
    for section, keys in (*section_keys().items(), *agent_sections):
        for key in keys:
            for odd in ("7", "1.5", "true", '"odd"', '["odd"]', "[[7]]", "[7]", "{ odd = 1 }"):
                try:
                    parse_settings(f"[{section}]\n{key} = {odd}", {})
                except SettingsError as error:
                    yield error.detail


@pytest.mark.parametrize(
    "refusals",
    [_body_refusals, _dialect_refusals, _lint_reasons, _argument_refusals, _setting_refusals],
)
def test_no_surface_uses_the_wording_of_a_library(
    server: HubServer, refusals: Callable[[HubServer], Iterator[str]]
) -> None:
    details = set(refusals(server))
    assert len(details) > 20
    assert [detail for detail in sorted(details) if LIBRARY_WORDING.search(detail)] == []
