"""Properties of every dialect: complete tables, accepted and refused calls of each operation."""

from collections import Counter
from typing import Any, get_args

import msgspec
import pytest

from dragoman.bootstrap import build_dialects
from dragoman.core.errors import REFUSALS
from dragoman.core.event_table import EVENT_NAMES
from dragoman.core.intent.candidate import DialectName
from dragoman.engine.operation import Dialect
from dragoman.engine.request import Accepted, Rejected
from tests.conformance.protocol.cases import CASES
from tests.conformance.surface.surfaces import AGENTS, HubDirect, Operation
from tests.engine.lab import HUMAN
from tests.requirements import proves
from tests.surfaces.http.hub_server import HubServer

pytestmark = proves("DIALECT-COMPLETE")

DIALECTS = build_dialects()
each_dialect = pytest.mark.parametrize("dialect", DIALECTS, ids=lambda dialect: dialect.name)


@each_dialect
def test_every_refusal_and_every_event_is_mapped(dialect: Dialect) -> None:
    assert set(dialect.errors.codes) <= set(REFUSALS)
    assert dialect.events
    assert dialect.events <= set(EVENT_NAMES)


def test_agents_can_register_for_each_dialect_and_no_other() -> None:
    assert set(get_args(DialectName)) == {dialect.name for dialect in DIALECTS}


def test_operation_names_are_unique() -> None:
    names = Counter(one.name for dialect in DIALECTS for one in dialect.operations)
    assert [name for name, times in names.items() if times > 1] == []


@each_dialect
def test_every_shape_has_a_json_schema(dialect: Dialect) -> None:
    for operation in dialect.operations:
        schema = msgspec.json.schema(operation.input)
        assert "$defs" in schema or schema["type"] == "object", operation.name


@each_dialect
def test_every_operation_has_an_accepted_case(dialect: Dialect) -> None:
    server = HubServer()
    for name, role in AGENTS.items():
        server.add_agent(name, role)
    hub = HubDirect(server)
    called = set[str]()
    for step in CASES[dialect.name]:
        assert hub.take(step).code == "", step
        if isinstance(step, Operation):
            called.add(step.name)
    assert called == {operation.name for operation in dialect.operations}


@proves("NAME-GRAMMAR")
@pytest.mark.parametrize(
    ("name", "field", "arguments"),
    [
        ("mail.send", "id", {"to": "bob", "subject": "Hello", "body_md": "Good day."}),
        ("wave.start", "wave_id", {"beads": ["ol-1"], "parallel": 1}),
        ("workq.create", "item_id", {"title": "One"}),
        ("ccos.delegate", "intent_id", {"goal": "Sum up"}),
    ],
)
def test_created_objects_get_an_id_and_empty_ids_are_refused(
    name: str, field: str, arguments: dict[str, Any]
) -> None:
    server = HubServer()
    for agent, role in AGENTS.items():
        server.add_agent(agent, role)
    router = server.deps.router

    empty = router.call(name, {**arguments, field: ""}, HUMAN)
    assert isinstance(empty, Rejected)
    assert (empty.ours or empty.code, field in empty.path) == ("invalid_id", True)
    assert "'' is not a valid" in empty.detail
    generated = router.call(name, {**arguments, field: None}, HUMAN)
    assert isinstance(generated, Accepted), generated
    assert generated.reply[field]


@each_dialect
def test_every_operation_refuses_malformed_arguments_with_a_code_of_its_dialect(
    dialect: Dialect,
) -> None:
    router = HubServer().deps.router
    for operation in dialect.operations:
        for nonsense in ("[]", '"words"', "7", '{"a":'):
            answer = router.call(operation.name, nonsense, HUMAN)
            assert isinstance(answer, Rejected), (operation.name, nonsense, answer)
            assert answer.code in map(dialect.errors.code, REFUSALS), (
                operation.name,
                nonsense,
                answer,
            )
            assert answer.detail, (operation.name, nonsense)
