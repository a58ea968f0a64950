"""`dragoman hook`: the hook of a coding agent tells the hub what its session does."""

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Annotated, Any, Final, cast

from msgspec import Struct

from dragoman.core.attempt import LimitAttempt
from dragoman.core.base import Command
from dragoman.core.errors import DragomanError
from dragoman.core.limits import MAX_REASON
from dragoman.core.mail import Mail, ReadMail
from dragoman.core.presence import PresenceState, ReportPresence, find_session
from dragoman.engine.ports import ListQuery, Store, TaskQuery
from dragoman.engine.queries.agents import find_agent
from dragoman.engine.queries.mail import mail_page
from dragoman.engine.queries.tasks import list_tasks
from dragoman.engine.usage_limits import find_limit_end
from dragoman.surfaces.cli.agent_clients import HookChoice
from dragoman.surfaces.cli.command import AgentOption, CliCommand, argument
from dragoman.surfaces.cli.context import STANDARD_INPUT, CommandContext, CommandResult, read_source
from dragoman.surfaces.cli.render import Screen
from dragoman.text.strict_json import get_field

_MAX_BYTES: Final = 8 * 1024 * 1024
_MAX_LETTERS: Final = 5
_MAX_HELD: Final = 100
_MAX_LETTER_CHARS: Final = 4_000
_MAX_PLAN_LINES: Final = 5

_STATES: Final[Mapping[str, PresenceState]] = {
    "SessionStart": "idle",
    "UserPromptSubmit": "working",
    "PostToolUse": "working",
    "PostToolUseFailure": "working",
    "PermissionRequest": "waiting",
    "Notification": "waiting",
    "Stop": "idle",
    "StopFailure": "idle",
    "SessionEnd": "ended",
}
"""Event of a client -> what its session does then."""

_WAITING_NOTIFICATIONS: Final = ("", "permission_prompt", "idle_prompt", "elicitation_dialog")

_LIMIT_TEXTS: Final = ("error_message", "last_assistant_message", "error_details")
"""Fields with the sentence about a limit; programs of different versions have one or another."""

_TAKES_CONTEXT: Final = ("SessionStart", "UserPromptSubmit")
"""Events whose hook can add to what the model reads."""


def hook(
    context: CommandContext,
    client: Annotated[HookChoice, argument("CLIENT", "The coding agent.")],
    *,
    agent: AgentOption = "",
) -> CommandResult:
    """Tell the hub what a session of a coding agent does.

    `dragoman connect CLIENT --hooks` installs it. It reads the event on standard input, reports
    that the session works, waits for a person or is idle, and gives the agent its new letters at
    its next turn. It fails for nothing, so that it never stops an agent.

    \b
    Example:
      dragoman hook claude-code < event.json
    """
    try:
        event = _Event.parse(read_source(STANDARD_INPUT, _MAX_BYTES))
        return _report(context, context.acting_agent(agent) or client, event)
    except (DragomanError, OSError):
        return _NOTHING_TO_SAY


class _Event(Struct, frozen=True):
    """An event of a client's session."""

    name: str
    session: str
    state: PresenceState
    text: str
    is_reminder: bool
    """It says again, later and in general words, that the session waits for a permission."""
    limited: str = ""
    """Sentence about a usage limit that ended the turn."""

    @classmethod
    def parse(cls, data: bytes) -> "_Event | None":
        """Parse what a hook is given; None: it is no event that we report."""
        try:
            given = json.loads(data)
        except ValueError:
            return None
        name, session = get_field(given, "hook_event_name"), get_field(given, "session_id")
        kind = get_field(given, "notification_type") or ""
        if not (isinstance(name, str) and isinstance(session, str) and name in _STATES):
            return None
        if name == "Notification" and kind not in _WAITING_NOTIFICATIONS:
            return None
        text = _question(name, given)[:MAX_REASON]
        return cls(
            name,
            session,
            _STATES[name],
            text,
            # Older programs name no kind.
            is_reminder=name == "Notification" and "permission" in (kind or text),
            limited=_limit(name, given)[:MAX_REASON],
        )


def _question(name: str, given: Any) -> str:
    """Text of a question that the session waits with."""
    if name == "Notification":
        return f"{get_field(given, 'message') or ''}"
    if name != "PermissionRequest":
        return ""
    tool, arguments = get_field(given, "tool_name"), get_field(given, "tool_input")
    if tool == "AskUserQuestion" and (asked := "; ".join(_asked(arguments))):
        return asked
    if tool == "ExitPlanMode" and (plan := _plan(arguments)):
        return f"may it carry out its plan: {plan}"
    shown = get_field(arguments, "command") or get_field(arguments, "file_path") or ""
    return f"may it use {tool}{f': {shown}' if shown else '?'}"


def _asked(arguments: Any) -> Iterator[str]:
    """Questions of a model to its person, each with its options."""
    for one in _items(arguments, "questions"):
        labels = [f"{get_field(option, 'label')}" for option in _items(one, "options")]
        options = f" ({' / '.join(labels)})" if labels else ""
        yield f"{get_field(one, 'question')}{options}"


def _plan(arguments: Any) -> str:
    """First lines of a plan that a person is to approve."""
    lines = f"{get_field(arguments, 'plan') or ''}".split("\n")
    return " / ".join([line.strip() for line in lines if line.strip()][:_MAX_PLAN_LINES])


def _items(holder: Any, name: str) -> list[Any]:
    found = get_field(holder, name)
    return cast(list[Any], found) if isinstance(found, list) else []


_NOTHING_TO_SAY: Final = CommandResult({}, lambda _: None)


def _limit(name: str, given: Any) -> str:
    """Sentence about a usage limit that ended a turn."""
    kinds = (get_field(given, "error_type"), get_field(given, "error"))
    if name != "StopFailure" or "rate_limit" not in kinds:
        return ""
    found = (get_field(given, field) for field in _LIMIT_TEXTS)
    return next((f"{text}" for text in found if text), "rate_limit")


def _held_tasks(store: Store, name: str) -> list[str]:
    held = list_tasks(store, TaskQuery("in-progress", name, limit=_MAX_HELD))
    return [view.task.id for view in held if view.lease and view.lease.holder == name]


def _report(context: CommandContext, name: str, event: _Event | None) -> CommandResult:
    if event is None:
        return _NOTHING_TO_SAY
    with context.open_for_writing() as directory:
        store = directory.hub.store
        if event.is_reminder and _is_waiting(store, name, event.session):
            return _NOTHING_TO_SAY
        letters = _new_letters(store, name) if event.name in _TAKES_CONTEXT else ()
        commands: list[Command] = [ReportPresence(name, event.session, event.state, event.text)]
        if event.limited:
            until = find_limit_end(event.limited, directory.hub.clock.now())
            pauses = directory.settings.attempts.pauses_limited
            commands += (
                LimitAttempt(task, until, event.limited, pauses=pauses)
                for task in _held_tasks(store, name)
            )
        commands += (ReadMail(letter.id) for letter in letters)
        directory.hub.submit(context.actor(directory, name), *commands)
    if not letters:
        return _NOTHING_TO_SAY
    output = {"hookEventName": event.name, "additionalContext": _describe_letters(letters)}
    data = {"hookSpecificOutput": output}

    def show(screen: Screen) -> None:
        screen.json(data)

    return CommandResult(data, show)


def _is_waiting(store: Store, name: str, session: str) -> bool:
    known = find_agent(store, name)
    current = find_session(known.sessions, session) if known else None
    return current is not None and current.state == "waiting"


def _new_letters(store: Store, name: str) -> Sequence[Mail]:
    page = mail_page(store, ListQuery(f"unread:{name}", limit=_MAX_LETTERS))
    return [letter.mail for letter in page.letters]


def _describe_letters(letters: Sequence[Mail]) -> str:
    parts = ["New letters from the hub `dragoman`. Answer with its tool `send`, if one needs it."]
    for letter in letters:
        body = letter.body[:_MAX_LETTER_CHARS]
        cut = "\n(cut)" if len(letter.body) > _MAX_LETTER_CHARS else ""
        parts.append(f"From {letter.sender}, id {letter.id}: {letter.subject}\n{body}{cut}")
    return "\n\n".join(parts)


COMMANDS = (CliCommand("hook", hook),)
