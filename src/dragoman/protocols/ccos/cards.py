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
from dragoman.core.limits import MAX_SKILL_LENGTH, MAX_SKILLS
from dragoman.core.rules.scoring import significant_words
from dragoman.text.safe_text import safe_text
from dragoman.text.shape_words import shape_fault
from dragoman.text.strict_json import StrictJsonError, parse_json

MAX_CARD_BYTES: Final = 256 * 1024
_MAX_NAME_CHARS: Final = 64
_MAX_QUOTED_CHARS: Final = 40
_NON_NAME_CHARS: Final = re.compile(r"[^a-z0-9._-]+")

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


class InvalidCard(ValueError):
    """A card that cannot be used, with the reason."""


class CardAgent(Struct, frozen=True):
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
    meaningless: tuple[str, ...] = ()
    """Skills that are only stop words, such as `agent`: they are left out."""
    too_long: tuple[str, ...] = ()
    """Texts that are too long for a tag or a name: they are left out too."""

    def skipped_skills(self) -> Iterator[str]:
        """Remarks on skills that are left out."""
        if self.meaningless:
            yield (
                f"words that say nothing were left out of its skills: {', '.join(self.meaningless)}"
            )
        if self.too_long:
            begin = ", ".join(f"{words[:_MAX_QUOTED_CHARS]}…" for words in self.too_long)
            yield (
                f"what has more than {MAX_SKILL_LENGTH} characters was left out of its "
                f"skills: {begin}"
            )


def parse_card(data: bytes, name: str = "") -> CardAgent:
    """Parse a card; the agent gets this name or its own. Raises InvalidCard."""
    try:
        card = msgspec.convert(parse_json(data, MAX_CARD_BYTES), Card)
    except (StrictJsonError, msgspec.ValidationError) as error:
        raise InvalidCard(f"this is not an agent card: {shape_fault(error, Card)}") from None
    agent_name = name or to_agent_name(card.name)
    malformed = check_agent(agent_name)
    if malformed is not None:
        raise InvalidCard(
            f"the agent cannot be called {agent_name[:40]!a}: give it a name with --name"
        )
    named = _skill_texts(card)
    short = [words for words in named if len(words) <= MAX_SKILL_LENGTH]
    skills = tuple(words for words in short if significant_words(words))
    if not skills:
        raise InvalidCard(
            f"the card of {agent_name} names no skill: nothing could be delegated to it"
        )
    if len(skills) > MAX_SKILLS:
        raise InvalidCard(
            f"the card of {agent_name} names {len(skills)} skills (ids, names and tags); an "
            "agent may "
            f"have {MAX_SKILLS}: register it with those that matter (dragoman agent add, "
            "ccos.register)"
        )
    interface = next(iter(card.supported_interfaces), Interface(card.url, card.preferred_transport))
    return CardAgent(
        name=agent_name,
        title=_plain_text(card.name),
        skills=skills,
        url=_plain_text(interface.url),
        binding=_plain_text(interface.protocol_binding),
        version=_plain_text(card.version),
        meaningless=tuple(words for words in short if not significant_words(words)),
        too_long=tuple(words for words in named if len(words) > MAX_SKILL_LENGTH),
    )


def to_agent_name(title: str) -> str:
    """A title in the form of a name: Route Planner (EU) -> route-planner-eu."""
    return _NON_NAME_CHARS.sub("-", title.lower()).strip("-._")[:_MAX_NAME_CHARS]


def _skill_texts(card: Card) -> list[str]:
    """Ids, names and tags of all skills, each once, in order."""
    words = (word for skill in card.skills for word in (skill.id, skill.name, *skill.tags))
    seen = dict.fromkeys(_plain_text(word).lower() for word in words)
    return [word for word in seen if word]


def _plain_text(text: str) -> str:
    return safe_text(text, one_line=True).strip()
