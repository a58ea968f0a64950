"""At every door what is wrong with a shape is told in the same words, with its place."""

import asyncio
import json
import re
from collections.abc import Callable, Generator, Iterator
from typing import Any, Final

import pytest
from mcp.client import Client
from msgspec.structs import fields

from dragoman.config import parse
from dragoman.config.sections import TABLES, keys_of_sections
from dragoman.core.errors import SettingsError
from dragoman.engine.faults import Fault
from dragoman.engine.operation import Dialect, Operation
from dragoman.protocols.acp.actions import SHAPES
from dragoman.surfaces.http.endpoint import read_query, shaped
from dragoman.surfaces.http.problems import HttpProblem
from dragoman.surfaces.mcp.tool import Denied, Visit
from dragoman.surfaces.mcp.tools import table
from tests.requirements import proves
from tests.surfaces.http.house import House, serving
from tests.surfaces.mcp.clients import talk
from tests.surfaces.mcp.stand import furnish

pytestmark = proves("SHAPE-DOORS")

Door = Callable[[House, Any], tuple[str, str | None]]
"""Gives what is wrong, and its path where the door tells it apart."""

ODD: Final[tuple[Any, ...]] = (
    *(7, -1, 1.5, True, None, "", " ", "odd", "x" * 70_000),
    *([], [7], [[]], [{"odd": 1}], {"odd": 1}, {"odd": {}}, {"type": "odd"}),
)
"""What hardly any field takes, and no field takes all of."""
RAW: Final = re.compile(r"`|\$|Expected|Object |Invalid |of the form '|None|UNSET")
"""What only the library that reads shapes would say, or a pattern that has no words."""


@pytest.fixture(scope="module")
def house() -> Generator[House]:
    """Give a hub with every dialect, behind HTTP and MCP."""
    with serving(furnish(House())) as served:
        served.welcome("ada")
        yield served


def _post(path: str, by: str = "ada") -> Door:
    def ask(house: House, value: Any) -> tuple[str, str | None]:
        answer = house.ask("POST", path, value, by=by)
        assert answer.status == 422, answer
        return answer.json["detail"], answer.json.get("path", "")

    return ask


def _query(house: House, value: str) -> tuple[str, str | None]:
    answer = house.ask("GET", f"/v1/tasks?{value}", by="ada")
    assert (answer.status, answer.code) == (400, "invalid_request")
    return answer.json["detail"], answer.json.get("path", "")


def _acp(house: House, value: Any) -> tuple[str, str | None]:
    answer = house.ask("POST", "/v1/acp/acp_handoff", value, by="ada")
    assert (answer.status, answer.json["error"]["code"]) == (422, "schema_invalid")
    return answer.json["error"]["detail"], None


def _mcp(tool: str) -> Door:
    async def use(client: Client, value: Any) -> Any:
        answer = await client.call_tool(tool, value)
        assert answer.is_error
        return answer.structured_content

    def ask(house: House, value: Any) -> tuple[str, str | None]:
        told = talk(house, "ada", lambda client: use(client, value))
        assert told["code"] in ("invalid_field", "invalid_envelope")
        return told["detail"].removeprefix(f"{tool}: "), None

    return ask


def _settings(_: House, text: str) -> tuple[str, str | None]:
    with pytest.raises(SettingsError) as raised:
        parse(text, {})
    return raised.value.detail, None


def _variable(_: House, said: tuple[str, str]) -> tuple[str, str | None]:
    with pytest.raises(SettingsError) as raised:
        parse("", dict([said]))
    return raised.value.detail, None


tasks, do = _post("/v1/tasks"), _post("/v1/do", by="owner")
messages, signed = _post("/v1/messages"), _post("/v1/signed")
complete = _post("/v1/aof/aof_task_complete")
letter, inbox = _post("/v1/agentmail/mail.send"), _post("/v1/agentmail/mail.inbox")
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


CASES: Final[list[tuple[Door, Any, str]]] = [
    # A kind that it is not.
    (tasks, {"title": 7}, "title: it must be a text, not a whole number"),
    (_query, "limit=many", "limit: it must be a whole number"),
    (messages, ENVELOPE | {"taskId": 7}, "taskId: it must be a text, not a whole number"),
    (messages, ENVELOPE | {"payload": []}, "payload: it must be an object, not a list"),
    (letter, {"subject": 1, "body_md": ""}, "subject: it must be a text, not a whole number"),
    (_acp, OFFER | {"task": 7}, "task: it must be an object, not a whole number"),
    (delegate, {"goal": 7}, "goal: it must be a text, not a whole number"),
    (turns, {"task_id": []}, "task_id: it must be a text, not a list"),
    (claim, {"task": []}, "task: it must be a text, not a list"),
    (_settings, "[http]\nport = 'x'", "line 2: http.port: it must be a whole number, not a text"),
    (
        _settings,
        "[agents.ada]\ncommand = 'a'",
        "line 2: agents.ada.command: it must be a list, not a text",
    ),
    (
        _variable,
        ("DRAGOMAN_HTTP_PORT", "x"),
        "the variable DRAGOMAN_HTTP_PORT: it must be a whole number",
    ),
    # What is missing.
    (tasks, {}, "title: it is missing"),
    (do, {"commands": [{"type": "task.create"}]}, "commands[0].title: it is missing"),
    (complete, {"outcome": "done"}, "summaryRef: it is missing"),
    (letter, {"subject": "x"}, "body_md: it is missing"),
    (_acp, OFFER | {"context": {"constraints": ["c"]}}, "context.summary: it is missing"),
    (delegate, {}, "goal: it is missing"),
    (turns, {}, "task_id: it is missing"),
    (event, {}, "event_id: it is missing; session_id: it is missing; payload: it is missing"),
    (claim, {"task": None}, "task: it must be a text, not null"),
    (tool_complete, {}, "task: it is missing"),
    (signed, {"envelope": {}, "signature": {}}, "signature.agent: it is missing"),
    # What there is not.
    (tasks, {"titel": "x"}, "titel: there is no such field; did you mean title?"),
    (_query, "limits=1", "'limits' is not asked for here; did you mean limit?"),
    (_acp, OFFER | {"sla": {"x": 1}}, "sla.x: there is no such field; known: proposed"),
    (delegate, {"goal": "x", "gaol": 1}, "gaol: there is no such field; did you mean goal?"),
    (turns, {"task": "x"}, "task: there is no such field; did you mean task_id?"),
    (claim, {"tusk": "x"}, "tusk: there is no such field; did you mean task?"),
    (_settings, "[http]\nprot = 1", "line 2: http.prot is not a setting; did you mean port?"),
    # A value that is none of those that there are.
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
    (_settings, "[hub]\non_stop = 'x'", "line 2: hub.on_stop: 'x' is not one of: release, keep"),
    # Too little, too much.
    (tasks, {"title": "x", "max_attempts": 0}, "max_attempts: it must be a whole number, at"),
    (tasks, {"title": ""}, "title: it must be a text of at least 1 character"),
    (_query, "limit=0", "limit: it must be a whole number, at least 1"),
    (inbox, {"limit": 1_001}, "limit: it must be a whole number, at most 1000"),
    (delegate, {"goal": ""}, "goal: it must be a text of at least 1 character"),
    (do, {"commands": []}, "commands: it must be a list of at least 1 entry"),
    (claim, {"minutes": -1}, "minutes: it must be a whole number, at least 0"),
    (
        _settings,
        "[dispatch]\npoll_ms = 0",
        "line 2: dispatch.poll_ms: it must be a whole number, at",
    ),
    # A form that it has not.
    (
        turns,
        {"task_id": "x", "cursor": "x"},
        "cursor: it must be the cursor of the page",
    ),
    (
        _acp,
        OFFER | {"task": TASK | {"title": " "}},
        "task.title: it must be a text of at most 500 characters, not empty and not blank",
    ),
    # Deep down, and among several shapes.
    (
        _acp,
        OFFER | {"artifacts": [{"artifact_id": "a", "ref": {"type": "file", "path": 7}}]},
        "artifacts[0].ref.path: it must be a text, not a whole number",
    ),
    (
        do,
        {"commands": [{"type": "task.crate"}]},
        "commands[0].type: 'task.crate' is not one",
    ),
    (
        do,
        {"commands": [{"type": "task.move", "task": "x", "to": "lost"}]},
        f"commands[0].to: 'lost' is not one of: {STATES}",
    ),
    (letter, {"subject": "x", "body_md": "", "to": [7]}, "to[0]: it must be a text, not a"),
    # No object at all.
    *(
        (door, NO_OBJECT, "it must be an object")
        for door in (tasks, do, complete, letter, inbox, delegate, turn, turns, event)
    ),
]


@pytest.mark.parametrize(("door", "value", "told"), CASES)
def test_each_door_tells_what_is_wrong_and_where(
    house: House, door: Door, value: Any, told: str
) -> None:
    detail, path = door(house, value)
    assert detail.startswith(told), detail
    place, colon, _ = detail.partition(": ")
    assert path is None or "asked for" in detail or path == (place if colon else "")
    assert RAW.search(detail) is None, detail


def _odd(shape: Any) -> Iterator[dict[str, Any]]:
    """Objects with something odd in one field."""
    yield {"odd": 1}
    for field in fields(shape):
        yield from ({field.encode_name: odd} for odd in ODD)


def _refused_bodies(house: House) -> Iterator[str]:
    for endpoint in house.app.endpoints:
        yield from _problems(read_query, b"odd=1", endpoint.query)
        for field in fields(endpoint.query):
            for odd in (b"", b"-1", b"1.5", b"odd"):
                query = field.encode_name.encode() + b"=" + odd
                yield from _problems(read_query, query, endpoint.query)
        if endpoint.reads and endpoint.body not in (None, Any):
            for value in _odd(endpoint.body):
                yield from _problems(shaped, json.dumps(value).encode(), endpoint.body, 1_000_000)


def _problems(read: Callable[..., Any], *given: Any) -> Iterator[str]:
    try:
        read(*given)
    except HttpProblem as problem:
        yield problem.problem.detail


def _said(house: House) -> Iterator[tuple[Dialect, Operation, Any]]:
    for dialect in house.door.interpreter.dialects:
        for operation in dialect.operations:
            # Where there are several, the action says which shape it is.
            shapes = SHAPES if operation.name == "acp_handoff" else {"": operation.shape}
            for action, shape in shapes.items():
                for value in _odd(shape):
                    yield dialect, operation, {"action": action, **value} if action else value


def _refused_by_dialects(house: House) -> Iterator[str]:
    for _, operation, value in _said(house):
        read = operation.read(value)
        if isinstance(read, Fault):
            yield read.detail


def _linted(house: House) -> Iterator[str]:
    for dialect, _, value in _said(house):
        yield from (issue["reason"] for issue in dialect.lint(value, "", True).issues)


def _refused_arguments(_: House) -> Iterator[str]:
    async def at_desk(work: Callable[..., Any], *, reads: bool) -> dict[str, Any]:
        return {"work": work, "reads": reads}

    async def answers() -> list[Any]:
        return [
            await tool.run(Visit({name: odd}, at_desk, None))
            for tool in table(()).values()
            for name in tool.schema["properties"]
            for odd in ODD
        ]

    for answer in asyncio.run(answers()):
        if isinstance(answer, Denied):
            yield answer.detail


def _refused_settings(_: House) -> Iterator[str]:
    named = [(kind + ".x", shape.__struct_fields__) for kind, shape in TABLES.items()]
    for section, keys in (*keys_of_sections().items(), *named):
        for key in keys:
            for odd in ("7", "1.5", "true", '"odd"', '["odd"]', "[[7]]", "[7]", "{ odd = 1 }"):
                try:
                    parse(f"[{section}]\n{key} = {odd}", {})
                except SettingsError as error:
                    yield error.detail


@pytest.mark.parametrize(
    "refused",
    [_refused_bodies, _refused_by_dialects, _linted, _refused_arguments, _refused_settings],
)
def test_no_door_tells_it_in_the_words_of_a_library(
    house: House, refused: Callable[[House], Iterator[str]]
) -> None:
    told = set(refused(house))
    assert len(told) > 20
    assert [detail for detail in sorted(told) if RAW.search(detail)] == []
