"""Who sits at the keyboard, and on whose behalf a command speaks."""

import os
import pwd
import re

from dragoman.core.actors import Actor
from dragoman.core.errors import Refused
from dragoman.core.ids import check_agent

_FOREIGN = re.compile(r"[^A-Za-z0-9._-]+", re.ASCII)
_LONGEST = 128
CLOCK_WAS_SET = "--now"
"""How entries say that somebody has set the clock by which they happened."""


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


def door(*, speaks_for_another: bool, clock_was_set: bool) -> str:
    """The door as entries name it: who typed, where another is named, and if time was set."""
    person = f"human:{login_name()}" if speaks_for_another else ""
    return " ".join(filter(None, ("cli", person, CLOCK_WAS_SET if clock_was_set else "")))


def actor_for(agent: str, *, clock_was_set: bool) -> Actor:
    """The agent that was named, or the person."""
    via = door(speaks_for_another=bool(agent), clock_was_set=clock_was_set)
    if not agent:
        return Actor("human", login_name(), via)
    refusal = check_agent(agent)
    if refusal is not None:
        raise Refused(refusal)
    return Actor("agent", agent, via)
