"""Who sits at the keyboard, and on whose behalf a command speaks."""

import os
import pwd
import re

from dragoman.core.actors import Actor
from dragoman.core.errors import Refused
from dragoman.core.ids import check_agent

_FOREIGN = re.compile(r"[^A-Za-z0-9._-]+", re.ASCII)
_LONGEST = 128


def login_name() -> str:
    """The name of this process's user; the number where the machine has no name for it."""
    user = os.getuid()
    try:
        name = pwd.getpwuid(user).pw_name
    except KeyError:
        name = ""
    return fit(name) or f"uid-{user}"


def fit(name: str) -> str:
    """A login name in the grammar of ids; empty when nothing of it is left."""
    return _FOREIGN.sub("-", name).lstrip("._-")[:_LONGEST]


def actor_for(agent: str, *, clock_was_set: bool) -> Actor:
    """The agent that was named, or the person; the door tells who typed, and if time was set."""
    person = Actor("human", login_name())
    words = ("cli", person.label if agent else "", "--now" if clock_was_set else "")
    via = " ".join(filter(None, words))
    if not agent:
        return Actor(person.role, person.name, via)
    refusal = check_agent(agent)
    if refusal is not None:
        raise Refused(refusal)
    return Actor("agent", agent, via)
