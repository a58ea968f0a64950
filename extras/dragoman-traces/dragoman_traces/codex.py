"""Codex's session files: `~/.codex/sessions/YYYY/MM/DD/rollout-….jsonl`, one object a line.

Each line has `timestamp`, `type` and `payload`. Model output and tool results are `response_item`;
`event_msg` repeats them for a screen and is skipped, except for the end of an answer, which only it
reports.
"""

import re
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any, Final, cast

import msgspec
from msgspec import Struct

from dragoman_traces.steps import (
    AgentStep,
    AnswerEnd,
    AnswerText,
    Observation,
    Record,
    Thought,
    ToolEnd,
    ToolRequest,
    ToolStart,
    ToolStatus,
    as_arguments,
    as_milliseconds,
    as_record,
    as_records,
    as_string,
    as_timestamp,
    readable_text,
)

NAME: Final = "codex"
_LINE_TYPES: Final = frozenset({"session_meta", "response_item", "event_msg", "turn_context"})
_ANSWER_END_EVENTS: Final = frozenset(
    {"token_count", "task_complete", "turn_complete", "turn_aborted"}
)
"""Events after an answer: its token count, or the end of the turn."""
_HEADER_CHARS: Final = 400
"""Length of the beginning of a plain-text output that may hold an exit code and a time."""
_EXIT_CODE: Final = re.compile(
    r"^(?:Exit code:|Process exited with code) (-?[0-9]{1,6})", re.MULTILINE
)
_WALL_TIME: Final = re.compile(r"^Wall time: ([0-9]{1,9}(?:\.[0-9]{1,9})?) seconds", re.MULTILINE)
_OUTPUT_HEADING: Final = re.compile(r"^Output:\n", re.MULTILINE)
"""Separates the header of an output from what the tool has printed."""
_TIMED_OUT: Final = "timed out after"
_NOT_RUN: Final = re.compile(
    r"exec command rejected by user|aborted(?: by user after [0-9.]{1,12}s)?\s*\Z"
    r"|failed to parse function arguments"
)
"""Beginning of the output of a call that did not run; it has neither exit code nor time."""
_PROGRAM_PREFIXES: Final = (
    *("<environment_context>", "<user_instructions>", "<permissions instructions>"),
    *("# AGENTS.md instructions for ", "<additional_context>", "<skill>"),
    *("<turn_aborted>", "<subagent_notification>"),
)
"""Prefixes of message parts that the program added."""
_FAILED_STATUSES: Final = ("failed", "incomplete")


class Codex:
    """Reader of Codex's session files."""

    name = NAME
    has_whole_answers = False

    def __init__(self) -> None:
        self.session = ""
        self._searches = 0

    @staticmethod
    def recognizes(line: Record) -> bool:
        """Tell whether a line can only be from such a file."""
        return line.get("type") in _LINE_TYPES and isinstance(line.get("payload"), dict)

    def steps(self, line: Record) -> Iterator[AgentStep]:
        """Convert a line to steps."""
        payload, at = as_record(line.get("payload")), as_timestamp(line.get("timestamp"))
        if line.get("type") == "session_meta":
            self.session = self.session or as_string(payload.get("id"))
        elif line.get("type") == "event_msg" and payload.get("type") in _ANSWER_END_EVENTS:
            yield AnswerEnd()
        elif line.get("type") == "response_item" and payload.get("type") == "web_search_call":
            self._searches += 1
            yield from _web_search_steps(payload, f"web_search-{self._searches}", at)
        elif line.get("type") == "response_item":
            read_item = _ITEM_READERS.get(as_string(payload.get("type")))
            if read_item is not None:
                yield from read_item(payload, at)


def _reasoning_steps(item: Record, at: int | None) -> Iterator[AgentStep]:
    """Readable reasoning: the summary, and the content where it is not encrypted."""
    for part in (*as_records(item.get("summary")), *as_records(item.get("content"))):
        if thought := as_string(part.get("text")):
            yield Thought(thought, at=at)


def _message_steps(item: Record, at: int | None) -> Iterator[AgentStep]:
    content: Any = item.get("content")
    if item.get("role") == "assistant":
        yield AnswerText(readable_text(content), at=at)
    elif item.get("role") == "user" and (parts := _person_parts(content)):
        yield Observation(f"user: {readable_text(parts)}", at=at)


def _person_parts(content: Any) -> Any:
    """Drop the parts of a message that the program added to a person's text."""
    if isinstance(content, list):
        return [
            part
            for part in as_records(cast(Any, content))
            if not _is_program_text(part.get("text"))
        ]
    return None if _is_program_text(content) else content


def _is_program_text(value: Any) -> bool:
    return as_string(value).lstrip().startswith(_PROGRAM_PREFIXES)


def _function_call_steps(item: Record, at: int | None) -> Iterator[AgentStep]:
    tool = as_string(item.get("name"))
    yield from _tool_start_steps(
        item, tool, as_arguments(item.get("arguments", item.get("input"))), at
    )


def _shell_call_steps(item: Record, at: int | None) -> Iterator[AgentStep]:
    yield from _tool_start_steps(item, "local_shell", as_arguments(item.get("action")), at)


def _tool_start_steps(
    item: Record, tool: str, arguments: Any, at: int | None
) -> Iterator[AgentStep]:
    yield ToolRequest(tool, arguments, at=at)
    yield ToolStart(
        as_string(item.get("call_id")) or as_string(item.get("id")), tool, arguments, at=at
    )


def _web_search_steps(item: Record, number: str, at: int | None) -> Iterator[AgentStep]:
    """A web search that the provider ran; its result is not recorded."""
    call_id = as_string(item.get("id")) or number
    yield from _tool_start_steps(
        {"id": call_id}, "web_search", as_arguments(item.get("action")), at
    )
    yield ToolEnd(
        call_id, "failure" if item.get("status") in _FAILED_STATUSES else "success", "", at=at
    )


def _tool_output_steps(item: Record, at: int | None) -> Iterator[AgentStep]:
    outcome = _parse_outcome(item.get("output"))
    yield ToolEnd(
        as_string(item.get("call_id")),
        outcome.status,
        outcome.output,
        duration_ms=outcome.duration_ms,
        has_run=outcome.has_run,
        at=at,
    )


_ITEM_READERS: Final[dict[str, Callable[[Record, int | None], Iterator[AgentStep]]]] = {
    "reasoning": _reasoning_steps,
    "message": _message_steps,
    "function_call": _function_call_steps,
    "custom_tool_call": _function_call_steps,
    "local_shell_call": _shell_call_steps,
    "function_call_output": _tool_output_steps,
    "custom_tool_call_output": _tool_output_steps,
}
"""Type of an item -> its reader."""


class _ToolOutcome(Struct, frozen=True):
    """Result of a tool call."""

    output: str
    status: ToolStatus
    duration_ms: int | None
    has_run: bool = True


def _parse_outcome(output: Any) -> _ToolOutcome:
    """Parse an output, with exit code and time in a JSON object or in the text before it."""
    result = as_record(output)
    if isinstance(output, str) and output.startswith("{"):
        with suppress(msgspec.DecodeError, UnicodeEncodeError, RecursionError):
            result = as_record(msgspec.json.decode(output.encode()))
    if "output" in result or "content" in result:
        text, meta = (
            readable_text(result.get("output", result.get("content"))),
            as_record(result.get("metadata")),
        )
        code: Any = meta.get("exit_code", 0 if result.get("success", True) is True else 1)
        return _ToolOutcome(
            text, _tool_status(code, text), as_milliseconds(meta.get("duration_seconds"), 1_000)
        )
    text = readable_text(output)
    if _NOT_RUN.match(text):
        return _ToolOutcome(text, "failure", None, has_run=False)
    code, time = (
        _EXIT_CODE.search(text, 0, _HEADER_CHARS),
        _WALL_TIME.search(text, 0, _HEADER_CHARS),
    )
    duration_ms = as_milliseconds(float(time[1]), 1_000) if time else None
    status = _tool_status(int(code[1]) if code else 0, text)
    body = _OUTPUT_HEADING.search(text, 0, _HEADER_CHARS) if code or time else None
    return _ToolOutcome(text[body.end() :] if body else text, status, duration_ms)


def _tool_status(code: Any, text: str) -> ToolStatus:
    if code == 0:
        return "success"
    return "timeout" if _TIMED_OUT in text[:_HEADER_CHARS] else "failure"
