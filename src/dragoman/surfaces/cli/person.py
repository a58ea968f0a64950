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
"""Mark in the `via` label of entries that were made under a clock set by --now."""


def login_name() -> str:
    """Name of this process's user; its number where the machine has no name for it."""
    user = os.getuid()
    try:
        name = pwd.getpwuid(user).pw_name
    except KeyError:
        name = ""
    return fit(name) or f"uid-{user}"


def fit(name: str) -> str:
    """Reduce a login name to the grammar of ids; may be empty."""
    return _FOREIGN.sub("-", name).lstrip("._-")[:_LONGEST]


def door(*, speaks_for_another: bool, clock_was_set: bool) -> str:
    """`via` label of entries: the person where an agent is named, and whether --now was given."""
    person = f"human:{login_name()}" if speaks_for_another else ""
    return " ".join(filter(None, ("cli", person, CLOCK_WAS_SET if clock_was_set else "")))


def actor_for(agent: str, *, clock_was_set: bool) -> Actor:
    """Make the actor: the named agent, or the person."""
    via = door(speaks_for_another=bool(agent), clock_was_set=clock_was_set)
    if not agent:
        return Actor("human", login_name(), via)
    refusal = check_agent(agent)
    if refusal is not None:
        raise Refused(refusal)
    return Actor("agent", agent, via)
