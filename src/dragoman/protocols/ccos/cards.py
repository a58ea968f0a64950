"""Agent cards of A2A: what an agent says about itself, as the registry understands it.

A card is a claim. It says what an agent can do and where it is; how far it is trusted and what it
may cost is not for its own card to say.
"""

import re
from collections.abc import Iterator
from typing import Annotated, Final

import msgspec
from msgspec import Meta, Struct

from dragoman.core.ids import check_agent
from dragoman.core.limits import SKILL, SKILLS
from dragoman.core.rules.scoring import telling
from dragoman.text.safe_text import safe_text
from dragoman.text.shape_words import shape_fault
from dragoman.text.strict_json import StrictJsonError, parse_json

MOST_BYTES: Final = 256 * 1024
_LONGEST_NAME: Final = 64
_QUOTED: Final = 40
_NOT_IN_NAMES: Final = re.compile(r"[^a-z0-9._-]+")

Words = Annotated[str, Meta(max_length=10_000)]


class Skill(Struct, frozen=True):
    """A skill of the agent."""

    id: Words = ""
    name: Words = ""
    tags: tuple[Words, ...] = ()


class Interface(Struct, frozen=True, rename="camel"):
    """An endpoint of the agent."""

    url: Words
    protocol_binding: Words = ""


class Card(Struct, frozen=True, rename="camel"):
    """The relevant parts of a card, of A2A 0.3 and 1.0."""

    name: Words
    skills: tuple[Skill, ...] = ()
    description: Words = ""
    version: Words = ""
    url: Words = ""
    preferred_transport: Words = ""
    supported_interfaces: tuple[Interface, ...] = ()


class BadCard(ValueError):
    """A card that cannot be used, with the reason."""


class Discovered(Struct, frozen=True):
    """An agent as its card presents it."""

    name: str
    """The card's name in the form of an agent name."""
    title: str
    skills: tuple[str, ...]
    url: str
    """Address of the agent; empty: the card does not say."""
    binding: str
    """Its protocol, in the terms of A2A, such as JSONRPC."""
    version: str
    idle: tuple[str, ...] = ()
    """Skills that are only stop words, such as `agent`: they are left out."""
    too_long: tuple[str, ...] = ()
    """Texts that are too long for a tag or a name: they are left out too."""

    def left_out(self) -> Iterator[str]:
        """Remarks on skills that are left out."""
        if self.idle:
            yield f"words that say nothing were left out of its skills: {', '.join(self.idle)}"
        if self.too_long:
            begin = ", ".join(f"{words[:_QUOTED]}…" for words in self.too_long)
            yield f"what has more than {SKILL} characters was left out of its skills: {begin}"


def read_card(data: bytes, name: str = "") -> Discovered:
    """Parse a card; the agent gets this name or its own. Raises InvalidCard."""
    try:
        card = msgspec.convert(parse_json(data, MOST_BYTES), Card)
    except (StrictJsonError, msgspec.ValidationError) as error:
        raise BadCard(f"this is not an agent card: {shape_fault(error, Card)}") from None
    given = name or name_of(card.name)
    malformed = check_agent(given)
    if malformed is not None:
        raise BadCard(f"the agent cannot be called {given[:40]!a}: give it a name with --name")
    named = _named(card)
    short = [words for words in named if len(words) <= SKILL]
    skills = tuple(words for words in short if telling(words))
    if not skills:
        raise BadCard(f"the card of {given} names no skill: nothing could be delegated to it")
    if len(skills) > SKILLS:
        raise BadCard(
            f"the card of {given} names {len(skills)} skills (ids, names and tags); an agent may "
            f"have {SKILLS}: register it with those that matter (dragoman agent add, ccos.register)"
        )
    where = next(iter(card.supported_interfaces), Interface(card.url, card.preferred_transport))
    return Discovered(
        name=given,
        title=_plain(card.name),
        skills=skills,
        url=_plain(where.url),
        binding=_plain(where.protocol_binding),
        version=_plain(card.version),
        idle=tuple(words for words in short if not telling(words)),
        too_long=tuple(words for words in named if len(words) > SKILL),
    )


def name_of(title: str) -> str:
    """A title in the form of a name: Route Planner (EU) -> route-planner-eu."""
    return _NOT_IN_NAMES.sub("-", title.lower()).strip("-._")[:_LONGEST_NAME]


def _named(card: Card) -> list[str]:
    """Ids, names and tags of all skills, each once, in order."""
    words = (word for skill in card.skills for word in (skill.id, skill.name, *skill.tags))
    seen = dict.fromkeys(_plain(word).lower() for word in words)
    return [word for word in seen if word]


def _plain(text: str) -> str:
    return safe_text(text, one_line=True).strip()
