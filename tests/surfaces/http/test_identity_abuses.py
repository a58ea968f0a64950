"""Every field of a message that says who speaks, with the name of somebody else."""

import os
from collections.abc import Iterator, Mapping
from copy import deepcopy
from typing import Any

import pytest

from dragoman.core.actor import Actor
from dragoman.core.task_state import CreateTask
from dragoman.testing import Call, Do
from tests.conformance.protocol.cases import CASES
from tests.conftest import LONG_RUN
from tests.protocols.saop.hub import event, thought, turn
from tests.requirements import proves
from tests.surfaces.http.hub_server import HubServer, Response, serving

pytestmark = proves("HTTP-ABUSES")

SPEAKER_FIELDS: Mapping[str, tuple[str, ...]] = {
    "aof_task_update": ("agentId", "fromAgent"),
    "aof_task_complete": ("agentId", "fromAgent"),
    "status.update": ("fromAgent", "payload.agentId"),
    "completion.report": ("fromAgent",),
    "handoff.request": ("fromAgent", "payload.fromAgent"),
    "handoff.accepted": ("fromAgent",),
    "handoff.rejected": ("fromAgent",),
    "mail.send": ("from", "sender_name"),
    "acp_handoff": ("from_agent",),
    "acp_send": ("from",),
    "workq.claim": ("owner",),
    "ccos.update": ("agent_id",),
    "ccos.result": ("agent_id",),
    "saop.turn": ("agent_id",),
    "saop.event": ("payload.agent_id",),
}
"""Operation -> its fields that name the speaker."""

AS_MESSAGES = {
    "completion.report": "aof",
    "status.update": "aof",
    "handoff.request": "aof",
    "handoff.accepted": "aof",
    "handoff.rejected": "aof",
    "mail.send": "agentmail",
    "ccos.result": "ccos",
    "saop.turn": "saop",
    "saop.event": "saop",
}
"""Operation -> the dialect in whose messages it comes, too."""

COMMON_VALUES: tuple[Any, ...] = ("cyd", "olga", "hub", "ADA", "\u0430da", "ada\u200b", ["ada"])

RARE_VALUES: tuple[Any, ...] = (
    *("system", "owner", "human", "dispatcher", "coordinator", "agent:ada", "human:hera"),
    *("ada ", " ada", "ada\n", "ada\0", "ada\t", "a\u0301da", "ad\uff41", "ada.", "ada/", "../ada"),
    *("ada,cyd", "ada;cyd", "ada cyd", "*", "%", "@all", "x" * 300, "\u202eada", "\ud83d\ude00"),
    *(7, 1.5, True, {"name": "ada"}, {}, [], ["ada", "cyd"], [["ada"]]),
)

VALUES = COMMON_VALUES + (RARE_VALUES if os.environ.get(LONG_RUN) else ())

SAOP_STEPS: tuple[Call | Do, ...] = (
    Call("developer", "saop.turn", turn()),
    Call("developer", "saop.event", event(1, thought("hm"))),
)

STEPS = {**CASES, "saop": SAOP_STEPS}


def with_field(arguments: Mapping[str, Any], field: str, value: Any) -> dict[str, Any]:
    """Copy arguments with another value at a path."""
    copied: dict[str, Any] = deepcopy(dict(arguments))
    *way, last = field.split(".")
    part = copied
    for name in way:
        part = part[name]
    part[last] = value
    return copied


def abuses_of(dialect: str, call: Call) -> Iterator[tuple[str, dict[str, Any]]]:
    """Requests by the same caller that name somebody else: path and body."""
    paths = [f"/v1/{dialect}/{call.operation}"]
    if call.operation in AS_MESSAGES:
        paths.append(f"/v1/messages?dialect={AS_MESSAGES[call.operation]}")
    for field in SPEAKER_FIELDS.get(call.operation, ()):
        for value in VALUES:
            for path in paths:
                yield path, with_field(call.arguments, field, value)


def check_refused(server: HubServer, by: str, response: Response, before: int, said: str) -> None:
    """Check that a request was refused, and that nothing is on record but the refusal."""
    assert 400 <= response.status < 500, (said, response)
    refusals = (f"actor:agent:{by}", f"actor:orchestrator:{by}")
    for entry in server.store.entries(before, 100):
        assert entry.stream in refusals or entry.event == "intent.anomaly", (said, entry)


@pytest.fixture
def server() -> Iterator[HubServer]:
    """Give a hub with the agents of the cases, and one whom nobody may speak for."""
    with serving(HubServer()) as server:
        server.add_agent("ada")
        server.add_agent("bob")
        server.add_agent("cyd")
        server.add_agent("developer")
        server.add_agent("olga", "orchestrator")
        yield server


@pytest.mark.parametrize("dialect", STEPS)
def test_nobody_speaks_for_another(server: HubServer, dialect: str) -> None:
    tried = set[str]()
    for step in STEPS[dialect]:
        if isinstance(step, Do):
            role = "orchestrator" if step.by == "olga" else "agent"
            server.submit(step.command, actor=Actor(role, step.by))
            continue
        for path, body in abuses_of(dialect, step):
            before = server.store.head()
            response = server.request("POST", path, body, by=step.by)
            check_refused(server, step.by, response, before, f"{path} {body}")
            tried.add(step.operation)
        answer = server.request(
            "POST", f"/v1/{dialect}/{step.operation}", dict(step.arguments), by=step.by
        )
        assert answer.status in (200, 201), (step, answer)
    named = {call.operation for call in STEPS[dialect] if isinstance(call, Call)}
    assert tried == named & SPEAKER_FIELDS.keys()


@pytest.mark.parametrize("value", ["cyd", "olga", "hub", "ADA", "\u0430da", "ada "])
@pytest.mark.parametrize("path", ["/v1/work", "/v1/tasks/T/claim"])
def test_nobody_claims_for_another(server: HubServer, path: str, value: str) -> None:
    server.submit(CreateTask("One", "T", ready=True))
    before = server.store.head()
    response = server.request("POST", path, {"agent": value}, by="ada")
    check_refused(server, "ada", response, before, f"{path} {value!a}")


def test_each_operation_that_writes_is_listed_or_names_no_speaker() -> None:
    """A new operation has to be listed here if one of its fields names the speaker."""
    unlisted = {
        (call.operation, name)
        for calls in STEPS.values()
        for call in calls
        if isinstance(call, Call) and call.operation not in SPEAKER_FIELDS
        for name, value in call.arguments.items()
        if value == call.by
    }
    assert not unlisted
