"""Agent cards of A2A: what an agent says about itself, as the registry understands it.

A card is a claim. It says what an agent can do and where it is; how far it is trusted and what it
may cost is not for its own card to say.
"""

import re
from typing import Annotated, Final

import msgspec
from msgspec import Meta, Struct

from dragoman.core.ids import check_agent
from dragoman.core.rules.scoring import telling
from dragoman.text.safe_text import safe_text
from dragoman.text.shape_words import shape_fault
from dragoman.text.strict_json import StrictJsonError, parse_json

MOST_BYTES: Final = 256 * 1024
_MOST_SKILLS: Final = 64
_MOST_WORDS: Final = 64
"""How many characters a skill may have: a tag or a name, not a sentence."""
_LONGEST_NAME: Final = 64
_NOT_IN_NAMES: Final = re.compile(r"[^a-z0-9._-]+")

Words = Annotated[str, Meta(max_length=10_000)]


class Skill(Struct, frozen=True):
    """One thing that the agent can do."""

    id: Words = ""
    name: Words = ""
    tags: tuple[Words, ...] = ()


class Interface(Struct, frozen=True, rename="camel"):
    """One way to reach it."""

    url: Words
    protocol_binding: Words = ""


class Card(Struct, frozen=True, rename="camel"):
    """The parts of a card that matter here, of A2A 0.3 and 1.0."""

    name: Words
    skills: tuple[Skill, ...] = ()
    description: Words = ""
    version: Words = ""
    url: Words = ""
    preferred_transport: Words = ""
    supported_interfaces: tuple[Interface, ...] = ()


class BadCard(ValueError):
    """Why something is no card that can be used."""


class Discovered(Struct, frozen=True):
    """An agent as its card presents it."""

    name: str
    """The card's name in the form that names have here."""
    title: str
    skills: tuple[str, ...]
    url: str
    """Where it listens; empty: the card does not say."""
    binding: str
    """What it speaks there, in the words of A2A, such as JSONRPC."""
    version: str
    idle: tuple[str, ...] = ()
    """What the card names as skills and says nothing, such as `agent`: it is left out."""


def read_card(data: bytes, name: str = "") -> Discovered:
    """The agent of a card, under this name or its own; BadCard says what is wrong."""
    try:
        card = msgspec.convert(parse_json(data, MOST_BYTES), Card)
    except (StrictJsonError, msgspec.ValidationError) as error:
        raise BadCard(f"this is not an agent card: {shape_fault(error, Card)}") from None
    given = name or name_of(card.name)
    malformed = check_agent(given)
    if malformed is not None:
        raise BadCard(f"the agent cannot be called {given[:40]!a}: give it a name with --name")
    named = _named(card)
    skills = tuple(word for word in named if telling(word))[:_MOST_SKILLS]
    if not skills:
        raise BadCard(f"the card of {given} names no skill: nothing could be delegated to it")
    where = next(iter(card.supported_interfaces), Interface(card.url, card.preferred_transport))
    return Discovered(
        name=given,
        title=_plain(card.name),
        skills=skills,
        url=_plain(where.url),
        binding=_plain(where.protocol_binding),
        version=_plain(card.version),
        idle=tuple(word for word in named if not telling(word)),
    )


def name_of(title: str) -> str:
    """A title in the form of a name: Route Planner (EU) -> route-planner-eu."""
    return _NOT_IN_NAMES.sub("-", title.lower()).strip("-._")[:_LONGEST_NAME]


def _named(card: Card) -> list[str]:
    """Tags and names of all skills, each once, in their order."""
    words = (word for skill in card.skills for word in (skill.id, skill.name, *skill.tags))
    seen = dict.fromkeys(_plain(word).lower() for word in words)
    return [word for word in seen if 0 < len(word) <= _MOST_WORDS]


def _plain(text: str) -> str:
    return safe_text(text, one_line=True).strip()
