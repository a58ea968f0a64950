"""The person at the keyboard: login name, and the actor and `via` label of a command."""

import os
import pwd
import re

from dragoman.core.actor import Actor
from dragoman.core.errors import Refused
from dragoman.core.ids import check_agent

_NOT_IN_IDS = re.compile(r"[^A-Za-z0-9._-]+", re.ASCII)
_MAX_NAME = 128
CLOCK_OVERRIDDEN = "--now"
"""Mark in the `via` label of entries that were made under a clock set by --now."""


def login_name() -> str:
    """Name of this process's user; its number where the machine has no name for it."""
    user = os.getuid()
    try:
        name = pwd.getpwuid(user).pw_name
    except KeyError:
        name = ""
    return sanitize_login(name) or f"uid-{user}"


def sanitize_login(name: str) -> str:
    """Reduce a login name to the grammar of ids; may be empty."""
    return _NOT_IN_IDS.sub("-", name).lstrip("._-")[:_MAX_NAME]


def via_label(*, acts_for_agent: bool, clock_overridden: bool) -> str:
    """`via` label of entries: the person where an agent is named, and whether --now was given."""
    person = f"human:{login_name()}" if acts_for_agent else ""
    return " ".join(filter(None, ("cli", person, CLOCK_OVERRIDDEN if clock_overridden else "")))


def make_actor(agent: str, *, clock_overridden: bool) -> Actor:
    """Make the actor: the named agent, or the person."""
    via = via_label(acts_for_agent=bool(agent), clock_overridden=clock_overridden)
    if not agent:
        return Actor("human", login_name(), via)
    refusal = check_agent(agent)
    if refusal is not None:
        raise Refused(refusal)
    return Actor("agent", agent, via)
