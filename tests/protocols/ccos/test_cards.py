"""Agent cards of A2A: what is taken from them, and what is not."""

import json
from typing import Any

import pytest

from dragoman.protocols.ccos.cards import BadCard, Discovered, read_card
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


def card(value: Any, name: str = "") -> Discovered:
    return read_card(json.dumps(value).encode(), name)


def test_a_card_says_what_the_agent_can_do_and_where_it_is() -> None:
    found = card(OLD)
    assert found == Discovered(
        name="route-planner-eu",
        title="Route Planner (EU)",
        skills=("plan", "plan a route", "maps", "routing", "traffic"),
        url="https://planner.example/a2a/v1",
        binding="JSONRPC",
        version="1.2.0",
    )


def test_a_card_of_version_1_names_its_first_interface() -> None:
    found = card(NEW, "adder")
    assert (found.name, found.url, found.binding) == (
        "adder",
        "https://sum.example/rest",
        "HTTP+JSON",
    )


def test_nothing_in_a_card_steers_a_terminal() -> None:
    found = card(NEW | {"name": "a\x1b[31mb\u202e", "skills": [{"name": "x\x07y"}]})
    assert found.title == "ab\ufffd"
    assert found.skills == ("x\ufffdy",)


def test_skills_of_a_card_are_never_cut_off_in_silence() -> None:
    many = [{"id": f"skill-{number}"} for number in range(257)]
    assert len(card(NEW | {"skills": many[:256]}).skills) == 256
    with pytest.raises(BadCard, match=r"names 257 skills .* may have 256: register it with those"):
        card(NEW | {"skills": many})


def test_and_a_sentence_that_is_no_skill_is_told() -> None:
    sentence = "I am the best agent for everything " * 4
    skills = [{"name": sentence, "tags": ["sum"]}, {"name": "x" * 120}]
    found = card(NEW | {"skills": skills})
    assert found.skills == ("sum", "x" * 120)
    assert found.too_long == (sentence.strip().lower(),)
    with hand_hub() as hub:
        told = hub.call("ccos.discover", card=NEW | {"skills": skills})
    assert told["remark"].startswith(
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
def test_what_is_no_card_is_told(value: Any, reason: str) -> None:
    with pytest.raises(BadCard, match=reason):
        card(value)


def test_what_is_no_json_is_told() -> None:
    with pytest.raises(BadCard, match="not an agent card"):
        read_card(b"<html>")


def test_a_card_does_not_take_over_who_is_known_by_its_name() -> None:
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


def test_a_tag_that_says_nothing_is_left_out_and_the_rest_counts() -> None:
    skills = [{"id": "sum", "name": "sum", "tags": ["agent", "the"]}]
    assert (card(NEW | {"skills": skills}).skills, card(NEW).idle) == (("sum",), ())
    with hand_hub() as hub:
        told = hub.call("ccos.discover", card=NEW | {"skills": skills})
    left_out, _, more = told["remark"].partition("; ")
    assert (told["skills"], left_out) == (
        ["sum"],
        "words that say nothing were left out of its skills: agent, the",
    )
    assert more.startswith("nothing reaches sum")
