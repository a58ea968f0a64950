"""Claude Code's session files: `~/.claude/projects/PROJECT/SESSION.jsonl`, one object a line.

A line of type `assistant` holds a part of the model's answer, those of one answer under the same
`message.id`; one of type `user` what a person said or what tools gave. All else is bookkeeping, and
so is what the program itself says in their place. Lines of sub-agents (`isSidechain`) are left to
their own files, `agent-ID.jsonl`, which have no others.
"""

import re
from collections.abc import Callable, Iterator
from typing import Any, Final

from dragoman.protocols.saop.capture.loose import (
    Record,
    arguments,
    as_text,
    milliseconds,
    moment,
    record,
    records,
    text,
)
from dragoman.protocols.saop.capture.steps import (
    Called,
    Ended,
    Observed,
    Planned,
    Returned,
    Spoke,
    Status,
    Step,
    Thought,
)

NAME: Final = "claude-code"
_TIMED_OUT: Final = "timed out after"
_GOES_ON: Final = ("", "tool_use", "pause_turn")
"""Stop reasons after which the answer may continue: a tool use has a line of its own."""
_NOT_RUN: Final = "The user doesn't want to "
"""Prefix of the output of a tool call that a person has denied."""
_NOBODYS: Final = ("isMeta", "isCompactSummary", "isApiErrorMessage")
"""Marks of lines written by the program, not by the agent or a person."""
_ASIDE: Final = "isSidechain"
"""Mark of lines of a sub-agent."""
_OWN_MODEL: Final = "<synthetic>"
"""Model name of answers that the program itself makes up."""
_COMMANDS: Final = (
    *("<command-name>", "<command-message>", "<local-command-", "<task-notification>"),
    "[Request interrupted by user",
)
"""Prefixes of texts about the program that nobody wrote to the agent."""
_REMINDER: Final = re.compile(r"<system-reminder>.*?</system-reminder>\s*", re.DOTALL)
_PROMPT, _PERSON = "prompt", "human"
"""Mode and origin of a queued prompt that a person wrote."""
_OVER: Final = ("system", "turn_duration")
"""Type and subtype of the line after the last answer to a person."""


class ClaudeCode:
    """Reader of Claude Code's session files."""

    name = NAME
    is_whole = False

    def __init__(self) -> None:
        self.session = ""
        self._agent: str | None = None
        """Sub-agent whose file this is; empty for a session's own file, None while unknown."""
        self._seen: set[str] = set()
        """Ids of the lines so far; the program writes some lines twice."""

    @staticmethod
    def is_ours(line: Record) -> bool:
        """Tell whether a line can only be from such a file."""
        return "sessionId" in line and isinstance(line.get("type"), str)

    def steps(self, line: Record) -> Iterator[Step]:
        """Convert a line to steps."""
        if not self._is_of_its_agent(line):
            return
        message = record(line.get("message")) or _queued(record(line.get("attachment")))
        id = text(line.get("uuid"))
        if any(line.get(mark) is True for mark in _NOBODYS) or (id and id in self._seen):
            return
        self._seen.add(id)
        if (line.get("type"), line.get("subtype")) == _OVER:
            yield Ended()
        if not message or message.get("model") == _OWN_MODEL:
            return
        at = moment(line.get("timestamp"))
        if line.get("type") == "assistant":
            yield from _answered(message, at)
        elif line.get("type") in ("user", "attachment"):
            yield from _told(message, record(line.get("toolUseResult")), at)

    def _is_of_its_agent(self, line: Record) -> bool:
        """Tell whether a line belongs to this file's agent, known from the first marked line.

        A sub-agent's line names the session that it works for; its own session name is its file's
        name.
        """
        whose = (text(line.get("agentId")) or None) if line.get(_ASIDE) is True else ""
        if self._agent is None and _ASIDE in line:
            self._agent = whose or ""
        own = f"agent-{self._agent}" if self._agent else ""
        self.session = own or self.session or text(line.get("sessionId"))
        return whose == (self._agent or "")


def _queued(attachment: Record) -> Record:
    """Extract a prompt that a person queued while the agent worked; skip other attachments."""
    said: Any = attachment.get("prompt")
    origin = record(attachment.get("origin")).get("kind", _PERSON)
    is_said = attachment.get("commandMode", _PROMPT) == _PROMPT and origin == _PERSON
    is_ours = attachment.get("type") == "queued_command" and attachment.get("isMeta") is not True
    return {"content": said} if is_ours and is_said else {}


def _answered(message: Record, at: int | None) -> Iterator[Step]:
    answer = text(message.get("id"))
    for block in records(message.get("content")):
        make = _BLOCKS.get(text(block.get("type")))
        if make is not None:
            yield from make(block, answer, at)
    if text(message.get("stop_reason")) not in _GOES_ON:
        yield Ended()


def _thought(block: Record, answer: str, at: int | None) -> Iterator[Step]:
    thought = text(block.get("thinking"))
    if thought:
        yield Thought(thought, answer=answer, at=at)


def _spoke(block: Record, answer: str, at: int | None) -> Iterator[Step]:
    yield Spoke(text(block.get("text")), answer=answer, at=at)


def _used(block: Record, answer: str, at: int | None) -> Iterator[Step]:
    tool, given = text(block.get("name")), arguments(block.get("input"))
    yield Planned(tool, given, answer=answer, at=at)
    yield Called(text(block.get("id")), tool, given, at=at)


def _used_there(block: Record, _: str, at: int | None) -> Iterator[Step]:
    """Result of a tool that the provider ran: what it found, or the error."""
    found: Any = block.get("content")
    failed = "error_code" in record(found)
    output = as_text(found) if failed else "\n".join(map(_hit, records(found)))
    call = text(block.get("tool_use_id"))
    yield Returned(call, "failure" if failed else "success", output, at=at)


def _hit(found: Record) -> str:
    return f"{text(found.get('title'))} {text(found.get('url'))}".strip()


_BLOCKS: Final[dict[str, Callable[[Record, str, int | None], Iterator[Step]]]] = {
    "thinking": _thought,
    "text": _spoke,
    "tool_use": _used,
    "server_tool_use": _used,
    "web_search_tool_result": _used_there,
}
"""Type of a block in an answer -> its reader."""


def _told(message: Record, result: Record, at: int | None) -> Iterator[Step]:
    content: Any = message.get("content")
    for block in [{"text": content}] if isinstance(content, str) else records(content):
        if block.get("type") == "tool_result":
            yield _returned(block, result, at)
            continue
        said = _REMINDER.sub("", text(block.get("text")))
        if said and not said.startswith(_COMMANDS):
            yield Observed(f"user: {said}", at=at)


def _returned(block: Record, result: Record, at: int | None) -> Returned:
    output = as_text(block.get("content"))
    took = milliseconds(result.get("durationMs", result.get("totalDurationMs")))
    failed = block.get("is_error") is True
    is_late = result.get("timedOutAfterMs") is not None or (failed and _TIMED_OUT in output)
    status: Status = "timeout" if is_late else "failure" if failed else "success"
    call, has_run = text(block.get("tool_use_id")), not (failed and output.startswith(_NOT_RUN))
    return Returned(call, status, output, duration_ms=took, has_run=has_run, at=at)
