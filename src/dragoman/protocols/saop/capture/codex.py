"""Codex's session files: `~/.codex/sessions/YYYY/MM/DD/rollout-….jsonl`, one object a line.

Each line has `timestamp`, `type` and `payload`. What the model gave and what tools answered are
`response_item`; `event_msg` says the same again for a screen, and is left out, but for the end of
an answer, which it alone tells.
"""

import re
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any, Final, cast

import msgspec
from msgspec import Struct

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

NAME: Final = "codex"
_KINDS: Final = frozenset({"session_meta", "response_item", "event_msg", "turn_context"})
_ENDS: Final = frozenset({"token_count", "task_complete", "turn_complete", "turn_aborted"})
"""Events after an answer: its token count, or the end of the turn."""
_HEAD: Final = 400
"""Length of the beginning of a plain-text output that may hold an exit code and a time."""
_CODE: Final = re.compile(r"^(?:Exit code:|Process exited with code) (-?[0-9]{1,6})", re.MULTILINE)
_TIME: Final = re.compile(r"^Wall time: ([0-9]{1,9}(?:\.[0-9]{1,9})?) seconds", re.MULTILINE)
_BODY: Final = re.compile(r"^Output:\n", re.MULTILINE)
"""Separates the header of an output from what the tool has printed."""
_TIMED_OUT: Final = "timed out after"
_NOT_RUN: Final = re.compile(
    r"exec command rejected by user|aborted(?: by user after [0-9.]{1,12}s)?\s*\Z"
    r"|failed to parse function arguments"
)
"""Beginning of the output of a call that did not run; it has neither exit code nor time."""
_SETTING: Final = (
    *("<environment_context>", "<user_instructions>", "<permissions instructions>"),
    *("# AGENTS.md instructions for ", "<additional_context>", "<skill>"),
    *("<turn_aborted>", "<subagent_notification>"),
)
"""Prefixes of message parts that the program added."""
_FAILED: Final = ("failed", "incomplete")


class Codex:
    """Reader of Codex's session files."""

    name = NAME
    is_whole = False

    def __init__(self) -> None:
        self.session = ""
        self._searches = 0

    @staticmethod
    def is_ours(line: Record) -> bool:
        """Tell whether a line can only be from such a file."""
        return line.get("type") in _KINDS and isinstance(line.get("payload"), dict)

    def steps(self, line: Record) -> Iterator[Step]:
        """Convert a line to steps."""
        payload, at = record(line.get("payload")), moment(line.get("timestamp"))
        if line.get("type") == "session_meta":
            self.session = self.session or text(payload.get("id"))
        elif line.get("type") == "event_msg" and payload.get("type") in _ENDS:
            yield Ended()
        elif line.get("type") == "response_item" and payload.get("type") == "web_search_call":
            self._searches += 1
            yield from _searched(payload, f"web_search-{self._searches}", at)
        elif line.get("type") == "response_item":
            make = _ITEMS.get(text(payload.get("type")))
            if make is not None:
                yield from make(payload, at)


def _reasoned(item: Record, at: int | None) -> Iterator[Step]:
    """Readable reasoning: the summary, and the content where it is not encrypted."""
    for part in (*records(item.get("summary")), *records(item.get("content"))):
        if thought := text(part.get("text")):
            yield Thought(thought, at=at)


def _message(item: Record, at: int | None) -> Iterator[Step]:
    content: Any = item.get("content")
    if item.get("role") == "assistant":
        yield Spoke(as_text(content), at=at)
    elif item.get("role") == "user" and (said := _of_a_person(content)):
        yield Observed(f"user: {as_text(said)}", at=at)


def _of_a_person(content: Any) -> Any:
    """Drop the parts of a message that the program added to a person's text."""
    if isinstance(content, list):
        return [part for part in records(cast(Any, content)) if not _is_setting(part.get("text"))]
    return None if _is_setting(content) else content


def _is_setting(said: Any) -> bool:
    return text(said).lstrip().startswith(_SETTING)


def _called(item: Record, at: int | None) -> Iterator[Step]:
    tool = text(item.get("name"))
    yield from _began(item, tool, arguments(item.get("arguments", item.get("input"))), at)


def _shell(item: Record, at: int | None) -> Iterator[Step]:
    yield from _began(item, "local_shell", arguments(item.get("action")), at)


def _began(item: Record, tool: str, given: Any, at: int | None) -> Iterator[Step]:
    yield Planned(tool, given, at=at)
    yield Called(text(item.get("call_id")) or text(item.get("id")), tool, given, at=at)


def _searched(item: Record, number: str, at: int | None) -> Iterator[Step]:
    """A web search that the provider ran; its result is not recorded."""
    call = text(item.get("id")) or number
    yield from _began({"id": call}, "web_search", arguments(item.get("action")), at)
    yield Returned(call, "failure" if item.get("status") in _FAILED else "success", "", at=at)


def _returned(item: Record, at: int | None) -> Iterator[Step]:
    end = _end_of(item.get("output"))
    yield Returned(
        text(item.get("call_id")),
        end.status,
        end.output,
        duration_ms=end.took,
        has_run=end.has_run,
        at=at,
    )


_ITEMS: Final[dict[str, Callable[[Record, int | None], Iterator[Step]]]] = {
    "reasoning": _reasoned,
    "message": _message,
    "function_call": _called,
    "custom_tool_call": _called,
    "local_shell_call": _shell,
    "function_call_output": _returned,
    "custom_tool_call_output": _returned,
}
"""Type of an item -> its reader."""


class _End(Struct, frozen=True):
    """Result of a tool call."""

    output: str
    status: Status
    took: int | None
    has_run: bool = True


def _end_of(output: Any) -> _End:
    """Parse an output, with exit code and time in a JSON object or in the text before it."""
    told = record(output)
    if isinstance(output, str) and output.startswith("{"):
        with suppress(msgspec.DecodeError, UnicodeEncodeError, RecursionError):
            told = record(msgspec.json.decode(output.encode()))
    if "output" in told or "content" in told:
        said, meta = as_text(told.get("output", told.get("content"))), record(told.get("metadata"))
        code: Any = meta.get("exit_code", 0 if told.get("success", True) is True else 1)
        return _End(said, _status(code, said), milliseconds(meta.get("duration_seconds"), 1_000))
    said = as_text(output)
    if _NOT_RUN.match(said):
        return _End(said, "failure", None, has_run=False)
    code, time = _CODE.search(said, 0, _HEAD), _TIME.search(said, 0, _HEAD)
    took = milliseconds(float(time[1]), 1_000) if time else None
    status = _status(int(code[1]) if code else 0, said)
    body = _BODY.search(said, 0, _HEAD) if code or time else None
    return _End(said[body.end() :] if body else said, status, took)


def _status(code: Any, said: str) -> Status:
    if code == 0:
        return "success"
    return "timeout" if _TIMED_OUT in said[:_HEAD] else "failure"
