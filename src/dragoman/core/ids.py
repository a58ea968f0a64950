"""Grammar of names: task ids, aliases, agents, sessions, streams (S-NAME)."""

import re

from dragoman.core.errors import Refusal
from dragoman.text.lazy_regex import lazy_regex

# --- patterns ---------------------------------------------------------------------------------

_ALIAS_KIND_PATTERN = "[a-z][a-z0-9]{0,15}"

ID_PATTERN = "[A-Za-z0-9][A-Za-z0-9._-]{0,127}"
"""Pattern of an id, as a regular expression; published in descriptions of the surfaces."""

AGENT_PATTERN = f"{ID_PATTERN}(?:@{ID_PATTERN})?"

ALIAS_PATTERN = f"{_ALIAS_KIND_PATTERN}:{ID_PATTERN}"

TASK_NAME_PATTERN = f"(?:{_ALIAS_KIND_PATTERN}:)?{ID_PATTERN}"

SESSION_PATTERN = "[A-Za-z0-9][A-Za-z0-9._:@/-]{0,255}"

AOF_ID_PATTERN = "TASK-[0-9]{4}-[0-9]{2}-[0-9]{2}-(?:[0-9]{3}|[A-Za-z0-9_-]{8})"

_ID_RE = lazy_regex(ID_PATTERN, re.ASCII)

_AGENT_RE = lazy_regex(AGENT_PATTERN, re.ASCII)

_VERSION_RE = lazy_regex(r"[0-9]{1,4}(\.[0-9]{1,4}){0,2}", re.ASCII)

_ALIAS_KIND_RE = lazy_regex(_ALIAS_KIND_PATTERN, re.ASCII)

_TASK_NAME_RE = lazy_regex(TASK_NAME_PATTERN, re.ASCII)

MAX_KEY_LENGTH = 256

_SESSION_RE = lazy_regex(SESSION_PATTERN, re.ASCII)

_AOF_ID_RE = lazy_regex(AOF_ID_PATTERN, re.ASCII)

_NUMBERED_AOF_ID_RE = lazy_regex("TASK-[0-9]{4}-[0-9]{2}-[0-9]{2}-[0-9]{3}(?:[0-9]{5})?", re.ASCII)

EVENT_ID_PATTERN = (
    "(?:[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[1-8][0-9a-fA-F]{3}-[89abAB][0-9a-fA-F]{3}-[0-9a-fA-F]{12}"
    "|0{8}-0{4}-0{4}-0{4}-0{12}|[fF]{8}-[fF]{4}-[fF]{4}-[fF]{4}-[fF]{12})"
)
"""Pattern of a UUID as in RFC 9562, the nil and the max UUID included."""

_EVENT_ID_RE = lazy_regex(EVENT_ID_PATTERN, re.ASCII)

_MAX_QUOTED = 140
"""Characters shown of an invalid name: enough for any valid one."""

MAX_THREE_DIGIT_NUMBER = 999
"""A day's AOF ids are numbered up to here; after that their tail has eight characters."""


# --- checks -----------------------------------------------------------------------------------


def _check_pattern(
    pattern: re.Pattern[str], what: str, text: str, allowed: str, path: str = ""
) -> Refusal | None:
    return None if pattern.fullmatch(text) else _invalid_id(what, text, allowed, path)


def _invalid_id(what: str, text: str, allowed: str, path: str = "") -> Refusal:
    shown = text if len(text) <= 40 else text[:40] + "…"
    detail = f"{shown!a} is not a valid {what}: use {allowed}, ASCII only"
    return Refusal("invalid_id", detail, path=path)


def check_id(text: str, what: str, path: str = "") -> Refusal | None:
    """Refuse unless `text`, in this field, can name a task, a letter, a handoff or a wave."""
    allowed = "1 to 128 of A-Z a-z 0-9 . _ -, starting with a letter or digit"
    return _check_pattern(_ID_RE, what, text, allowed, path)


def check_task_id(text: str, path: str = "") -> Refusal | None:
    """Refuse unless `text`, in this field, can name a task."""
    return check_id(text, "task id", path)


def check_agent(text: str, path: str = "") -> Refusal | None:
    """Refuse unless `text`, in this field, can name an agent or a person."""
    allowed = "1 to 128 of A-Z a-z 0-9 . _ -, optionally followed by @host"
    return _check_pattern(_AGENT_RE, "name", text, allowed, path)


def check_session(text: str, path: str = "") -> Refusal | None:
    """Refuse unless `text`, in this field, can name a session."""
    return _check_pattern(_SESSION_RE, "session", text, "1 to 256 of A-Z a-z 0-9 . _ : @ / -", path)


def check_event_id(text: str) -> Refusal | None:
    """Refuse unless `text` can name an event of a trace."""
    return _check_pattern(_EVENT_ID_RE, "event id", text, "a UUID")


def check_dialect(text: str) -> Refusal | None:
    """Refuse unless `text` can name a dialect."""
    return _check_pattern(
        _ALIAS_KIND_RE, "dialect", text, "1 to 16 of a-z 0-9, starting with a letter"
    )


def check_spoken_dialect(text: str) -> Refusal | None:
    """Refuse unless `text` names a dialect, perhaps with its version, as in aof/1."""
    name, slash, version = text.partition("/")
    if not slash or check_dialect(name):
        return check_dialect(text)
    return _check_pattern(
        _VERSION_RE, "version of a dialect", version, "numbers with dots, such as 1.0.0"
    )


def check_alias(text: str, path: str = "") -> Refusal | None:
    """Refuse unless `text`, in this field, is an alias: a kind of name, a colon, a name."""
    kind, colon, name = text.partition(":")
    if colon and _ALIAS_KIND_RE.fullmatch(kind):
        return check_task_id(name, path)
    detail = f"{text[:40]!a} is not an alias: use KIND:NAME, for example bead:ol-527.1"
    return Refusal("invalid_id", detail, path=path)


def check_key(text: str) -> Refusal | None:
    """Refuse unless `text` can be an idempotency key."""
    # Every request has one: this takes a third of the time of a regular expression.
    if 0 < len(text) <= MAX_KEY_LENGTH and text.isascii() and text.isprintable():
        return None
    return _invalid_id("key", text, f"1 to {MAX_KEY_LENGTH} printable characters")


# --- names ------------------------------------------------------------------------------------


def is_task_name(text: str) -> bool:
    """True if `text` can be a task's id, an alias or a bare alias name."""
    return _TASK_NAME_RE.fullmatch(text) is not None


def bare_name(name: str) -> str:
    """Name of a task without the kind that an alias begins with."""
    return name.rpartition(":")[2]


def safe_name(text: str) -> str:
    """Name as the ledger may keep it: whole if it is valid, else its beginning, escaped."""
    return text if not text or is_task_name(text) else ascii(text[:40])


def quote_name(text: str) -> str:
    """Invalid name as a sentence shows it: its beginning, quoted and escaped."""
    return ascii(text[:_MAX_QUOTED])


def is_aof_id(text: str) -> bool:
    """True if `text` is an AOF/1 task id (S-NAME)."""
    return _AOF_ID_RE.fullmatch(text) is not None


def format_aof_id(day: str, number: int) -> str:
    """AOF id of a day's n-th task; beyond three digits they have eight.

    Counted and not random, so that the ids of a day stay together in every index.
    """
    return (
        f"TASK-{day}-{number:03d}"
        if number <= MAX_THREE_DIGIT_NUMBER
        else f"TASK-{day}-{number:08d}"
    )


def is_numbered_aof_id(text: str) -> bool:
    """True if `text` is an AOF id as the hub assigns them: a day and a number."""
    return _NUMBERED_AOF_ID_RE.fullmatch(text) is not None


# --- streams ----------------------------------------------------------------------------------


def handoff_stream(handoff_id: str) -> str:
    return "handoff:" + handoff_id


def workq_stream(item_id: str) -> str:
    """Stream of an item of the work queue."""
    return "workq:" + item_id


def mail_stream(mail_id: str) -> str:
    """Stream of a letter."""
    return "mail:" + mail_id


def wave_stream(wave_id: str) -> str:
    return "wave:" + wave_id


def intent_stream(intent_id: str) -> str:
    return "intent:" + intent_id


def reputation_stream(name: str) -> str:
    """Stream of an agent's capabilities and reputation."""
    return "reputation:" + name


RESERVATIONS_STREAM = "reservations:default"
"""Stream of all reservations: a single one, so that two conflicting ones cannot both be taken."""


def task_stream(task_id: str) -> str:
    return "task:" + task_id


def agent_stream(name: str) -> str:
    """Stream of what is known of an agent or a person."""
    return "agent:" + name


def trace_stream(session: str) -> str:
    """Stream of a session's events."""
    return "trace:" + session


def turns_stream(task_id: str) -> str:
    """Stream of a task's turns."""
    return "turns:" + task_id


ACTOR_STREAMS = "actor:"
"""Beginning of the streams of actors."""


def actor_stream(role: str, name: str) -> str:
    """Stream of an actor's refusals."""
    return f"{ACTOR_STREAMS}{role}:{name}"
