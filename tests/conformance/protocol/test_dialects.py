"""Every dialect does what a dialect must; created objects have ids; a sixth dialect is found."""

from typing import Any

import pytest

from dragoman.bootstrap.dialects import build_dialects
from dragoman.engine.hub import Hub
from dragoman.engine.operation import Dialect
from dragoman.engine.request import Accepted, Rejected
from dragoman.protocols import acp, agentmail, aof, ccos, saop
from dragoman.services.workq import HubWorkq
from dragoman.testing import DialectConformance
from tests.conformance.protocol.cases import CASES, MESSAGES
from tests.conformance.surface.surfaces import AGENTS
from tests.engine.lab import HUMAN
from tests.requirements import proves
from tests.surfaces.http.hub_server import HubServer

pytestmark = proves("DIALECT-COMPLETE")


class TestAof(DialectConformance):
    dialect = aof.dialect()
    steps = CASES["aof"]
    messages = MESSAGES["aof"]


class TestAgentMail(DialectConformance):
    dialect = agentmail.dialect()
    steps = CASES["agentmail"]
    messages = MESSAGES["agentmail"]


class TestAcp(DialectConformance):
    dialect = acp.dialect()
    steps = CASES["acp"]
    messages = MESSAGES["acp"]

    def dialect_of(self, hub: Hub) -> Dialect:
        return acp.dialect(acp.Choices(workq=HubWorkq(hub)))


class TestCcos(DialectConformance):
    dialect = ccos.dialect()
    steps = CASES["ccos"]
    messages = MESSAGES["ccos"]


class TestSaop(DialectConformance):
    dialect = saop.dialect()
    steps = CASES["saop"]
    messages = MESSAGES["saop"]


DIALECTS = build_dialects()


def test_every_dialect_is_tested_and_shows_its_events() -> None:
    assert {dialect.name for dialect in DIALECTS} == set(CASES) == set(MESSAGES)
    assert all(dialect.events for dialect in DIALECTS)


@pytest.mark.parametrize("name", MESSAGES)
def test_a_message_is_recognized_by_its_dialect_first(name: str) -> None:
    router = HubServer().deps.router
    for message in MESSAGES[name]:
        routed = router.parse(message)
        assert routed is not None
        assert routed.dialect.name == name


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
