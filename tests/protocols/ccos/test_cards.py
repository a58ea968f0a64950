"""Agent cards of A2A: fields that are used, and refusals."""

import json
from typing import Any

import pytest

from dragoman.protocols.ccos.translate import CardAgent, InvalidCard, parse_card
from dragoman.testing import Refused, hand_hub
from tests.requirements import proves

pytestmark = proves("CCOS-CARDS")

OLD: dict[str, Any] = {
    "protocolVersion": "0.3.0",
    "name": "Route Planner (EU)",
    "description": "Plans routes.",
    "url": "https://planner.example/a2a/v1",
    "preferredTransport": "JSONRPC",
    "version": "1.2.0",
    "skills": [
        {"id": "plan", "name": "Plan a route", "tags": ["maps", "Routing"], "description": "…"},
        {"id": "plan", "name": "Traffic", "tags": ["maps"]},
    ],
}
NEW: dict[str, Any] = {
    "name": "Sum",
    "supportedInterfaces": [
        {"url": "https://sum.example/rest", "protocolBinding": "HTTP+JSON"},
        {"url": "https://sum.example/rpc", "protocolBinding": "JSONRPC"},
    ],
    "skills": [{"id": "sum", "name": "sum", "tags": []}],
}


def card(value: Any, name: str = "") -> CardAgent:
    return parse_card(json.dumps(value).encode(), name)


def test_card_has_skills_and_address() -> None:
    found = card(OLD)
    assert found == CardAgent(
        name="route-planner-eu",
        title="Route Planner (EU)",
        skills=("plan", "plan a route", "maps", "routing", "traffic"),
        url="https://planner.example/a2a/v1",
        binding="JSONRPC",
        version="1.2.0",
    )


def test_version_1_card_gives_its_first_interface() -> None:
    found = card(NEW, "adder")
    assert (found.name, found.url, found.binding) == (
        "adder",
        "https://sum.example/rest",
        "HTTP+JSON",
    )


def test_control_characters_are_removed_from_a_card() -> None:
    found = card(NEW | {"name": "a\x1b[31mb\u202e", "skills": [{"name": "x\x07y"}]})
    assert found.title == "ab\ufffd"
    assert found.skills == ("x\ufffdy",)


def test_card_with_too_many_skills_is_refused() -> None:
    many = [{"id": f"skill-{number}"} for number in range(257)]
    assert len(card(NEW | {"skills": many[:256]}).skills) == 256
    with pytest.raises(
        InvalidCard, match=r"names 257 skills .* may have 256: register it with those"
    ):
        card(NEW | {"skills": many})


def test_overlong_skill_is_left_out_with_a_remark() -> None:
    sentence = "I am the best agent for everything " * 4
    skills = [{"name": sentence, "tags": ["sum"]}, {"name": "x" * 120}]
    found = card(NEW | {"skills": skills})
    assert found.skills == ("sum", "x" * 120)
    assert found.too_long == (sentence.strip().lower(),)
    with hand_hub() as hub:
        answer = hub.call("ccos.discover", card=NEW | {"skills": skills})
    assert answer["remark"].startswith(
        "what has more than 120 characters was left out of its skills: i am the best agent"
    )


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        ([], "not an agent card"),
        ({"skills": []}, "not an agent card"),
        (NEW | {"name": "水"}, "give it a name"),
        (NEW | {"skills": ()}, "names no skill"),
        (NEW | {"skills": [{"name": " "}]}, "names no skill"),
        (NEW | {"skills": [{"name": "the best agent"}]}, "names no skill"),
    ],
)
def test_invalid_card_is_refused(value: Any, reason: str) -> None:
    with pytest.raises(InvalidCard, match=reason):
        card(value)


def test_invalid_json_is_refused() -> None:
    with pytest.raises(InvalidCard, match="not an agent card"):
        parse_card(b"<html>")


def test_card_does_not_take_over_a_registered_name() -> None:
    card = {"name": "Ada", "url": "https://evil.example", "skills": [{"id": "x", "name": "paint"}]}
    with hand_hub() as hub:
        known: dict[str, Any] = {
            "skills": ["translate"],
            "trust": "T2",
            "reach": "https://ada.example",
        }
        hub.call("ccos.register", agent_id="ada", **known)
        with pytest.raises(Refused, match="somebody else is called ada"):
            hub.call("ccos.discover", card=card)
        hub.call("ccos.discover", card=card, agent_id="ada")
        (ada,) = hub.call("ccos.agents")["agents"]
        assert (ada["reach"], ada["trust"]) == ("https://evil.example", "T0")
        hub.call("ccos.register", agent_id="ada", **known | {"reach": "https://evil.example"})
        hub.call("ccos.discover", card=card)
        (ada,) = hub.call("ccos.agents")["agents"]
        assert ada["trust"] == "T2"


def test_meaningless_tags_are_left_out_with_a_remark() -> None:
    skills = [{"id": "sum", "name": "sum", "tags": ["agent", "the"]}]
    assert (card(NEW | {"skills": skills}).skills, card(NEW).meaningless) == (("sum",), ())
    with hand_hub() as hub:
        answer = hub.call("ccos.discover", card=NEW | {"skills": skills})
    left_out, _, more = answer["remark"].partition("; ")
    assert (answer["skills"], left_out) == (
        ["sum"],
        "words that say nothing were left out of its skills: agent, the",
    )
    assert more.startswith("nothing reaches sum")
