"""Claude Code's session files: `~/.claude/projects/PROJECT/SESSION.jsonl`, one object a line.

A line of type `assistant` holds a part of the model's answer; parts of one answer share their
`message.id`. A line of type `user` holds what a person said or what tools returned. All other lines
are bookkeeping, and so are texts that the program itself writes in these places. Lines of
sub-agents (`isSidechain`) are read from their own files only,
`agent-ID.jsonl`, which contain no others.
"""

import re
from collections.abc import Callable, Iterator
from typing import Any, Final

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

NAME: Final = "claude-code"
_TIMED_OUT: Final = "timed out after"
_UNFINISHED_REASONS: Final = ("", "tool_use", "pause_turn")
"""Stop reasons after which the answer may continue: a tool use has a line of its own."""
_DENIED_PREFIX: Final = "The user doesn't want to "
"""Prefix of the output of a tool call that a person has denied."""
_PROGRAM_MARKS: Final = ("isMeta", "isCompactSummary", "isApiErrorMessage")
"""Marks of lines written by the program, not by the agent or a person."""
_SUBAGENT_MARK: Final = "isSidechain"
"""Mark of lines of a sub-agent."""
_SYNTHETIC_MODEL: Final = "<synthetic>"
"""Model name of answers that the program itself makes up."""
_PROGRAM_PREFIXES: Final = (
    *("<command-name>", "<command-message>", "<local-command-", "<task-notification>"),
    "[Request interrupted by user",
)
"""Prefixes of texts about the program that nobody wrote to the agent."""
_REMINDER: Final = re.compile(r"<system-reminder>.*?</system-reminder>\s*", re.DOTALL)
_PROMPT, _PERSON = "prompt", "human"
"""Mode and origin of a queued prompt that a person wrote."""
_TURN_END: Final = ("system", "turn_duration")
"""Type and subtype of the line after the last answer to a person."""


class ClaudeCode:
    """Reader of Claude Code's session files."""

    name = NAME
    has_whole_answers = False

    def __init__(self) -> None:
        self.session = ""
        self._agent: str | None = None
        """Sub-agent whose file this is; empty for a session's own file, None while unknown."""
        self._seen: set[str] = set()
        """Ids of the lines so far; the program writes some lines twice."""

    @staticmethod
    def recognizes(line: Record) -> bool:
        """Tell whether a line can only be from such a file."""
        return "sessionId" in line and isinstance(line.get("type"), str)

    def steps(self, line: Record) -> Iterator[AgentStep]:
        """Convert a line to steps."""
        if not self._belongs_to_file(line):
            return
        message = as_record(line.get("message")) or _queued_prompt(
            as_record(line.get("attachment"))
        )
        id = as_string(line.get("uuid"))
        if any(line.get(mark) is True for mark in _PROGRAM_MARKS) or (id and id in self._seen):
            return
        self._seen.add(id)
        if (line.get("type"), line.get("subtype")) == _TURN_END:
            yield AnswerEnd()
        if not message or message.get("model") == _SYNTHETIC_MODEL:
            return
        at = as_timestamp(line.get("timestamp"))
        if line.get("type") == "assistant":
            yield from _assistant_steps(message, at)
        elif line.get("type") in ("user", "attachment"):
            yield from _user_steps(message, as_record(line.get("toolUseResult")), at)

    def _belongs_to_file(self, line: Record) -> bool:
        """Tell whether a line belongs to this file's agent, known from the first marked line.

        A sub-agent's line names the session that it works for; its own session name is its file's
        name.
        """
        agent = (as_string(line.get("agentId")) or None) if line.get(_SUBAGENT_MARK) is True else ""
        if self._agent is None and _SUBAGENT_MARK in line:
            self._agent = agent or ""
        file_name = f"agent-{self._agent}" if self._agent else ""
        self.session = file_name or self.session or as_string(line.get("sessionId"))
        return agent == (self._agent or "")


def _queued_prompt(attachment: Record) -> Record:
    """Extract a prompt that a person queued while the agent worked; skip other attachments."""
    prompt: Any = attachment.get("prompt")
    origin = as_record(attachment.get("origin")).get("kind", _PERSON)
    is_from_person = attachment.get("commandMode", _PROMPT) == _PROMPT and origin == _PERSON
    is_prompt = attachment.get("type") == "queued_command" and attachment.get("isMeta") is not True
    return {"content": prompt} if is_prompt and is_from_person else {}


def _assistant_steps(message: Record, at: int | None) -> Iterator[AgentStep]:
    answer_id = as_string(message.get("id"))
    for block in as_records(message.get("content")):
        read_block = _BLOCK_READERS.get(as_string(block.get("type")))
        if read_block is not None:
            yield from read_block(block, answer_id, at)
    if as_string(message.get("stop_reason")) not in _UNFINISHED_REASONS:
        yield AnswerEnd()


def _thought_steps(block: Record, answer: str, at: int | None) -> Iterator[AgentStep]:
    thought = as_string(block.get("thinking"))
    if thought:
        yield Thought(thought, answer=answer, at=at)


def _text_steps(block: Record, answer: str, at: int | None) -> Iterator[AgentStep]:
    yield AnswerText(as_string(block.get("text")), answer=answer, at=at)


def _tool_use_steps(block: Record, answer: str, at: int | None) -> Iterator[AgentStep]:
    tool, given_arguments = as_string(block.get("name")), as_arguments(block.get("input"))
    yield ToolRequest(tool, given_arguments, answer=answer, at=at)
    yield ToolStart(as_string(block.get("id")), tool, given_arguments, at=at)


def _server_tool_steps(block: Record, _: str, at: int | None) -> Iterator[AgentStep]:
    """Result of a tool that the provider ran: what it found, or the error."""
    content: Any = block.get("content")
    failed = "error_code" in as_record(content)
    output = readable_text(content) if failed else "\n".join(map(_format_hit, as_records(content)))
    call_id = as_string(block.get("tool_use_id"))
    yield ToolEnd(call_id, "failure" if failed else "success", output, at=at)


def _format_hit(hit: Record) -> str:
    return f"{as_string(hit.get('title'))} {as_string(hit.get('url'))}".strip()


_BLOCK_READERS: Final[dict[str, Callable[[Record, str, int | None], Iterator[AgentStep]]]] = {
    "thinking": _thought_steps,
    "text": _text_steps,
    "tool_use": _tool_use_steps,
    "server_tool_use": _tool_use_steps,
    "web_search_tool_result": _server_tool_steps,
}
"""Type of a block in an answer -> its reader."""


def _user_steps(message: Record, result: Record, at: int | None) -> Iterator[AgentStep]:
    content: Any = message.get("content")
    for block in [{"text": content}] if isinstance(content, str) else as_records(content):
        if block.get("type") == "tool_result":
            yield _tool_end(block, result, at)
            continue
        spoken_text = _REMINDER.sub("", as_string(block.get("text")))
        if spoken_text and not spoken_text.startswith(_PROGRAM_PREFIXES):
            yield Observation(f"user: {spoken_text}", at=at)


def _tool_end(block: Record, result: Record, at: int | None) -> ToolEnd:
    output = readable_text(block.get("content"))
    duration_ms = as_milliseconds(result.get("durationMs", result.get("totalDurationMs")))
    failed = block.get("is_error") is True
    is_timeout = result.get("timedOutAfterMs") is not None or (failed and _TIMED_OUT in output)
    status: ToolStatus = "timeout" if is_timeout else "failure" if failed else "success"
    call_id, has_run = (
        as_string(block.get("tool_use_id")),
        not (failed and output.startswith(_DENIED_PREFIX)),
    )
    return ToolEnd(call_id, status, output, duration_ms=duration_ms, has_run=has_run, at=at)
