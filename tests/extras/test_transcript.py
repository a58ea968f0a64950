"""Capture of session files as turns and events."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from dragoman.core.timestamps import parse_rfc3339
from dragoman_traces.transcript import (
    READERS,
    CapturedMessage,
    CaptureTarget,
    Transcript,
)
from tests.requirements import proves

pytestmark = proves("CAPTURE-TRANSCRIPT")

FOLDER = Path(__file__).parent / "transcripts"
NOW = parse_rfc3339("2026-03-01T00:00:00Z")
ABOUT = CaptureTarget("T-1")
CLAUDE = {"sessionId": "s"}
WORDS = [{"type": "text", "text": "words"}]
ASSISTANT_MESSAGE = {"role": "assistant", "content": WORDS}


def capture(
    lines: list[bytes], about: CaptureTarget = ABOUT, kind: str = ""
) -> list[CapturedMessage]:
    """Capture all turns and events of a file."""
    transcript = Transcript(about, NOW, kind)
    return [*(one for line in lines for one in transcript.feed(line)), *transcript.close()]


def sample_lines(name: str) -> list[bytes]:
    """Return the lines of a sample file."""
    return (FOLDER / name).read_bytes().splitlines()


def turns(captured: list[CapturedMessage]) -> list[dict[str, Any]]:
    """Return the captured turns."""
    return [one.message for one in captured if one.kind == "turn"]


def payloads(captured: list[CapturedMessage], prefix: str = "") -> Iterator[dict[str, Any]]:
    """Yield the payloads of the captured events."""
    for one in captured:
        if one.kind == "event" and one.message["payload"]["type"].startswith(prefix):
            yield one.message["payload"]


def test_claude_code_session_is_captured() -> None:
    captured = capture(sample_lines("claude-code.jsonl"))
    first, second, third = turns(captured)
    assert first == {
        "turn_index": 0,
        "agent_id": "developer",
        "role": "developer",
        "content": {
            "thought": "First I look at how the test fails.",
            "action": "I run the test.\n\nConfidence: 0.8\n\n"
            'Bash {"command":"pytest -q","description":"Run the test"}',
            "observation": "user: The parser test fails. Please fix it.",
        },
        "metadata": {
            "version": "1.0.0",
            "task_id": "T-1",
            "timestamp": "2026-02-21T10:00:02.000Z",
            "confidence": 0.8,
            "estimated_complexity": "medium",
            "session_id": "7c1e6f0a-3f57-4c0c-8f0e-6a0d1a2b3c4d",
            "captured": {
                "from": "claude-code",
                "session": "7c1e6f0a-3f57-4c0c-8f0e-6a0d1a2b3c4d",
                "filled": ["estimated_complexity"],
            },
        },
    }
    assert second["content"]["observation"] == "Bash: F.\n1 failed, 1 passed"
    assert second["content"]["thought"] == "An off-by-one."
    assert second["metadata"]["confidence"] == 0.5
    assert second["metadata"]["captured"]["filled"] == ["confidence", "estimated_complexity"]
    assert third["content"] == {
        "thought": "",
        "action": "It is fixed.",
        "observation": "Edit: The file was changed.\n[image]\n\n"
        "WebFetch: Request timed out after 30 s\n\nuser: never mind the page",
    }
    ended = [
        (one["call_id"], one["tool"], one["status"], one["duration_ms"])
        for one in payloads(captured, "TOOL_LIFECYCLE_COMPLETED")
    ]
    assert ended == [
        ("toolu_01", "Bash", "failure", 2_500),
        ("toolu_02", "Edit", "success", 250),
        ("toolu_03", "WebFetch", "timeout", 30_000),
    ]
    assert [one["line"] for one in payloads(captured, "SANDBOX")] == ["F.", "1 failed, 1 passed"]
    began = next(payloads(captured, "TOOL_LIFECYCLE_INVOKED"))
    assert began["arguments"] == {"command": "pytest -q", "description": "Run the test"}


def test_thought_of_a_turn_ends_once() -> None:
    captured = capture(sample_lines("claude-code.jsonl"))
    thoughts = [
        (one["turn_index"], one["chunk"], one["is_final"]) for one in payloads(captured, "THOUGHT")
    ]
    assert thoughts == [
        (0, "First I look at how the test fails.", True),
        (1, "An off-by-one.", True),
    ]


@proves("CAPTURE-THOUGHTS")
def test_thought_is_complete_before_the_following_tools() -> None:
    def answer(*blocks: dict[str, Any]) -> bytes:
        message = {"id": "m", "content": blocks}
        return msgspec.json.encode({"sessionId": "s", "type": "assistant", "message": message})

    lines = [
        answer({"type": "thinking", "thinking": "a"}),
        answer({"type": "text", "text": "words"}),
        answer({"type": "thinking", "thinking": "b"}),
        answer({"type": "tool_use", "id": "t", "name": "Read", "input": {}}),
        answer({"type": "thinking", "thinking": "too late"}),
    ]
    events = [one.message["payload"] for one in capture(lines) if one.kind == "event"]
    chunks = [(one["type"], one.get("chunk"), one.get("is_final")) for one in events]
    assert chunks == [
        ("THOUGHT_STREAM", "a", False),
        ("THOUGHT_STREAM", "\n\nb", True),
        ("TOOL_LIFECYCLE_INVOKED", None, None),
    ]
    assert turns(capture(lines))[0]["content"]["thought"] == "a\n\nb\n\ntoo late"
    assert not [*payloads(capture([answer({"type": "thinking", "thinking": ""})]), "THOUGHT")]


@proves("CAPTURE-THOUGHTS")
@pytest.mark.parametrize("length", [1, 32_767, 32_768, 40_000])
@pytest.mark.parametrize("kind", ["claude-code", "codex"])
def test_chunks_of_a_thought_are_the_text_of_its_turn(kind: str, length: int) -> None:
    thoughts = ["a" * length, "b", "c" * length]
    if kind == "codex":
        summary = [{"type": "summary_text", "text": text} for text in thoughts]
        line = {"type": "response_item", "payload": {"type": "reasoning", "summary": summary}}
    else:
        blocks = [{"type": "thinking", "thinking": text} for text in thoughts]
        line = {**CLAUDE, "type": "assistant", "message": {"id": "m", "content": blocks}}
    captured = capture([msgspec.json.encode(line)])
    joined = "".join(one["chunk"] for one in payloads(captured, "THOUGHT"))
    assert joined == turns(captured)[0]["content"]["thought"] == "\n\n".join(thoughts)


@proves("CAPTURE-THOUGHTS")
@pytest.mark.parametrize("blank", [" ", "\n", "\t"])
@pytest.mark.parametrize("before", [32_767, 32_760, 30_000])
def test_long_thought_is_cut_between_words(before: int, blank: str) -> None:
    value = "v" * 4_000
    thought = f"{'a' * before}{blank}{value}{blank}{'b ' * 40_000}"
    block = {"type": "thinking", "thinking": thought}
    line = {**CLAUDE, "type": "assistant", "message": {"id": "m", "content": [block]}}
    chunks = [one["chunk"] for one in payloads(capture([msgspec.json.encode(line)]), "THOUGHT")]
    assert "".join(chunks) == thought
    assert [chunk.count(value) for chunk in chunks if "v" in chunk] == [1]
    assert max(map(len, chunks)) <= 32_768


def test_codex_session_is_captured() -> None:
    captured = capture(sample_lines("codex.jsonl"))
    first, second, third, fourth = turns(captured)
    assert first["content"] == {
        "thought": "**Listing files**",
        "action": 'shell {"command":["bash","-lc","ls"],"workdir":"/home/ada/parser"}',
        "observation": "user: list the files",
    }
    assert first["metadata"]["session_id"] == "019c4895-344c-79b1-83b2-00413ff7f9a9"
    assert second["content"]["observation"] == "shell: parser.py\ntests\n"
    assert second["content"]["action"].startswith('apply_patch {"input":"*** Begin Patch')
    assert third["content"]["observation"] == "apply_patch: the patch does not apply"
    assert fourth["content"]["action"] == (
        'web_search {"type":"search","query":"sleep"}\n\nThere are two.\nConfidence: 95%'
    )
    assert fourth["metadata"]["confidence"] == 0.95
    ended = [
        (one["tool"], one["status"], one["duration_ms"])
        for one in payloads(captured, "TOOL_LIFECYCLE_COMPLETED")
    ]
    assert ended == [
        ("shell", "success", 120),
        ("apply_patch", "failure", 200),
        ("local_shell", "timeout", 10_000),
        ("web_search", "success", 0),
    ]


def _codex(**item: Any) -> bytes:
    return msgspec.json.encode({"type": "response_item", "payload": item})


def test_codex_searches_are_tool_calls_with_unique_ids() -> None:
    search = {"type": "web_search_call", "action": {"type": "search", "query": "q"}}
    lines = [
        _codex(**search, status="completed"),
        _codex(**search, status="failed", id="ws_1"),
        _codex(**search, status="completed"),
        _codex(type="message", role="assistant", content=WORDS),
    ]
    captured = capture(lines)
    began = [one["call_id"] for one in payloads(captured, "TOOL_LIFECYCLE_INVOKED")]
    ended = {
        one["call_id"]: one["status"] for one in payloads(captured, "TOOL_LIFECYCLE_COMPLETED")
    }
    assert began == [*ended]
    assert [*ended.values()] == ["success", "failure", "success"]
    assert began[1] == "ws_1"


@pytest.mark.parametrize(
    "text",
    [
        "# AGENTS.md instructions for /home/ada\n\n<INSTRUCTIONS>\nBe brief.\n</INSTRUCTIONS>",
        "<turn_aborted>\nThe user interrupted the previous turn on purpose.\n</turn_aborted>",
        "<skill>\n<name>demo</name>\n</skill>",
        "<subagent_notification>{}</subagent_notification>",
        "\n<environment_context>\n</environment_context>",
    ],
)
def test_codex_messages_injected_as_user_are_not_observed(text: str) -> None:
    part, prompt = ({"type": "input_text", "text": one} for one in (text, "go on"))
    observed = "user: go on"
    for content, expected in (
        ([part], ""),
        ([part, prompt], observed),
        ([prompt], observed),
        (text, ""),
    ):
        lines = [
            _codex(type="message", role="user", content=content),
            _codex(type="message", role="assistant", content=WORDS),
        ]
        (turn,) = turns(capture(lines))
        assert turn["content"]["observation"] == expected


@proves("CAPTURE-OTLP")
@pytest.mark.parametrize("kind", ["", "otlp"])
def test_opentelemetry_spans_are_captured(kind: str) -> None:
    captured = capture([(FOLDER / "otlp.json").read_bytes()], kind=kind)
    first, second = turns(captured)
    assert first["content"] == {
        "thought": "A tool knows.",
        "action": 'get_weather {"city":"Paris"}',
        "observation": "user: Weather in Paris?",
    }
    assert first["metadata"]["timestamp"] == "2026-02-21T12:00:03.000Z"
    assert second["content"] == {
        "thought": "",
        "action": "It rains.",
        "observation": 'get_weather: rain\n\ncall_9: {"wind":3}',
    }
    assert second["metadata"]["session_id"] == "conv-1"
    ended = [
        (one["tool"], one["status"], one["duration_ms"])
        for one in payloads(captured, "TOOL_LIFECYCLE_COMPLETED")
    ]
    assert ended == [("get_weather", "success", 1_750), ("broken", "timeout", 0)]


@pytest.mark.parametrize("name", ["claude-code.jsonl", "codex.jsonl"])
def test_event_ids_are_deterministic_and_unique(name: str) -> None:
    def ids() -> list[str]:
        captured = capture(sample_lines(name))
        return [one.message["event_id"] for one in captured if one.kind == "event"]

    assert ids() == ids()
    assert len(set(ids())) == len(ids())
    assert all(one[14] == "8" and one[19] in "89ab" for one in ids())
    other = capture(sample_lines(name), CaptureTarget("T-2"))
    assert not set(ids()) & {one.message.get("event_id") for one in other}


@pytest.mark.parametrize("name", ["claude-code.jsonl", "codex.jsonl"])
@pytest.mark.parametrize("cut", [4, 7, 10])
def test_capture_of_a_longer_file_begins_with_that_of_the_shorter(name: str, cut: int) -> None:
    lines = sample_lines(name)
    transcript = Transcript(ABOUT, NOW)
    early = [one for line in lines[:cut] for one in transcript.feed(line)]
    assert capture(lines)[: len(early)] == early


@pytest.mark.parametrize(
    ("name", "over"),
    [
        ("claude-code.jsonl", {0, 1, 2, 3, 14}),
        ("codex.jsonl", {*range(7), 16}),
        ("otlp.json", {0, 1}),
    ],
)
def test_turn_is_over_when_recorded_and_no_tool_runs(name: str, over: set[int]) -> None:
    lines = [(FOLDER / name).read_bytes()] if name.endswith("json") else sample_lines(name)
    found = set[int]()
    for count in range(len(lines) + 1):
        transcript = Transcript(ABOUT, NOW)
        for line in lines[:count]:
            list(transcript.feed(line))
        if transcript.is_finished:
            found.add(count)
    assert found == over


@proves("CAPTURE-WHOLE")
@pytest.mark.parametrize(
    ("reply", "end", "other"),
    [
        (
            {**CLAUDE, "type": "assistant", "message": {"stop_reason": None, "content": WORDS}},
            {**CLAUDE, "type": "system", "subtype": "turn_duration"},
            {**CLAUDE, "type": "system", "subtype": "local_command"},
        ),
        (
            {"type": "response_item", "payload": {**ASSISTANT_MESSAGE, "type": "message"}},
            {"type": "event_msg", "payload": {"type": "turn_aborted"}},
            {"type": "event_msg", "payload": {"type": "agent_message", "message": "words"}},
        ),
    ],
    ids=["claude-code", "codex"],
)
def test_turn_is_over_only_by_its_end_record(
    reply: dict[str, Any], end: dict[str, Any], other: dict[str, Any]
) -> None:
    def is_over(*lines: dict[str, Any]) -> bool:
        transcript = Transcript(ABOUT, NOW)
        for line in lines:
            list(transcript.feed(msgspec.json.encode(line)))
        assert transcript.has_content == (reply in lines), "an end alone begins nothing"
        return transcript.is_finished

    assert not is_over(reply)
    assert not is_over(reply, other)
    assert is_over(reply, end)
    assert not is_over(reply, end, reply), "it goes on after all"
    assert is_over(end)


def test_long_thought_is_chunked_in_events_and_whole_in_its_turn() -> None:
    thought = "é" * 70_000
    line = {
        "sessionId": "s",
        "type": "assistant",
        "message": {"id": "m", "content": [{"type": "thinking", "thinking": thought}]},
    }
    captured = capture([msgspec.json.encode(line)])
    chunks = [one["chunk"] for one in payloads(captured, "THOUGHT")]
    assert (len(chunks), "".join(chunks)) == (3, thought)
    assert turns(captured)[0]["content"]["thought"] == thought
    assert turns(captured)[0]["metadata"]["timestamp"] == "2026-03-01T00:00:00.000Z"


def test_oversized_arguments_and_output_are_left_out_by_name() -> None:
    uses = {"type": "tool_use", "id": "t", "name": "Bash", "input": {"command": "x" * 140_000}}
    result = {"type": "tool_result", "tool_use_id": "t", "content": "line\n" * 250}
    lines = [
        {"sessionId": "s", "type": "assistant", "message": {"id": "m", "content": [uses]}},
        {"sessionId": "s", "type": "user", "message": {"content": [result]}},
    ]
    captured = capture([*map(msgspec.json.encode, lines)])
    began = next(payloads(captured, "TOOL_LIFECYCLE_INVOKED"))
    assert list(began["arguments"]) == ["left_out"]
    assert len(turns(captured)[0]["content"]["action"]) > 140_000
    pulses = [one["line"] for one in payloads(captured, "SANDBOX")]
    assert (len(pulses), pulses[-1][:15]) == (201, "… 50 more lines")


def test_tool_result_without_a_call_is_captured_as_unknown() -> None:
    result = {"type": "tool_result", "tool_use_id": "lost", "content": "x"}
    line = {"sessionId": "s", "type": "user", "message": {"content": [result]}}
    (ended,) = payloads(capture([msgspec.json.encode(line)]))
    assert (ended["call_id"], ended["tool"], ended["duration_ms"]) == ("lost", "unknown", 0)


def test_unreadable_lines_are_counted_and_skipped() -> None:
    transcript = Transcript(ABOUT, NOW)
    for line in (b"", b"not json", b"[1]", b'{"half":', b"\xff", b'{"who":"knows"}'):
        assert list(transcript.feed(line)) == []
    assert list(transcript.close()) == []
    assert (transcript.kind, transcript.session) == ("", "")
    assert transcript.unreadable == [2, 3, 4, 5]
    for line in sample_lines("codex.jsonl"):
        list(transcript.feed(line))
    assert (transcript.kind, transcript.session[:8]) == ("codex", "019c4895")
    assert len(list(transcript.close())) == 1


@pytest.mark.parametrize("kind", READERS)
@pytest.mark.parametrize(
    "line",
    [
        b'{"type":1,"payload":[],"message":"x","resourceSpans":{}}',
        b'{"type":"assistant","message":{"content":[1,{"type":"thinking"},{"type":"new"}]}}',
        b'{"type":"assistant","message":{"content":"text"},"timestamp":"yesterday"}',
        b'{"type":"user","message":{"content":[{"type":"text"},7]}}',
        b'{"type":"response_item","payload":{"type":"message","role":"system"}}',
        b'{"type":"response_item","payload":{"type":"reasoning","summary":[{"text":""}]}}',
        b'{"type":"response_item","payload":{"type":"new"}}',
        (
            b'{"resourceSpans":[{"scopeSpans":[{"spans":[{"startTimeUnixNano":"x","attributes":'
            b'[{"key":"gen_ai.operation.name","value":{"intValue":"x"}}]}]}]}]}'
        ),
        (
            b'{"resourceSpans":[{"scopeSpans":[{"spans":[{"attributes":[{"key":'
            b'"gen_ai.operation.name","value":{"stringValue":"chat"}},{"key":'
            b'"gen_ai.output.messages","value":{"stringValue":"[{"}},{"key":'
            b'"gen_ai.input.messages","value":{}}]}]}]}]}'
        ),
    ],
)
def test_unexpected_records_capture_nothing(kind: str, line: bytes) -> None:
    assert capture([line], kind=kind) == []


def test_tool_inputs_and_outputs_of_other_shapes_are_captured() -> None:
    item = {"type": "function_call", "name": "f", "arguments": "not json", "id": "c"}
    outputs: list[Any] = [None, ["a"], [{"type": "input_text", "text": "b"}], '{"half"', {"x": 1}]
    lines = [
        {"type": "response_item", "payload": item},
        *(
            {"type": "response_item", "payload": {"type": "function_call_output", "output": out}}
            for out in outputs
        ),
        {"type": "response_item", "payload": {"type": "message", "role": "assistant"}},
        {"type": "response_item", "payload": {**item, "arguments": None, "input": None}},
        {"type": "response_item", "payload": {**item, "arguments": [1], "name": 7}},
    ]
    captured = capture([*map(msgspec.json.encode, lines)])
    first, second = turns(captured)
    assert first["content"]["action"] == 'f {"input":"not json"}'
    assert second["content"]["observation"] == (
        'unknown: ["a"]\n\nunknown: b\n\nunknown: {"half"\n\nunknown: {"x":1}'
    )
    assert second["content"]["action"] == 'f {}\n\n {"input":[1]}'


def _claude(
    kind: str, content: Any, answer: str = "", stop: str | None = None, **more: Any
) -> bytes:
    message = {"role": kind, "content": content, "id": answer, "stop_reason": stop}
    message["model"] = more.pop("model", "claude")
    return msgspec.json.encode({**CLAUDE, "type": kind, "message": message, **more})


@proves("CAPTURE-WHOLE")
def test_unanswered_tool_keeps_only_its_own_turn_open() -> None:
    call = {"type": "tool_use", "id": "i1", "name": "Bash", "input": {"command": "sleep 999"}}
    transcript = Transcript(ABOUT, NOW)
    list(transcript.feed(_claude("assistant", [call, *WORDS], "m1", "end_turn")))
    assert not transcript.is_finished
    list(transcript.feed(_claude("user", "never mind")))
    list(transcript.feed(_claude("assistant", WORDS, "m2", "end_turn")))
    assert transcript.is_finished


def _queued_command(prompt: Any, **more: Any) -> bytes:
    attachment = {"type": "queued_command", "prompt": prompt, **more}
    return msgspec.json.encode({**CLAUDE, "type": "attachment", "attachment": attachment})


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        (_queued_command("also the docs"), "user: also the docs"),
        (
            _queued_command("also the docs", commandMode="prompt", origin={"kind": "human"}),
            "user: also",
        ),
        (
            _queued_command([{"type": "text", "text": "also the docs"}], commandMode="prompt"),
            "user: also",
        ),
        (_queued_command("<task-notification>task 7 is done</task-notification>"), ""),
        (_queued_command("task 7 is done", commandMode="task-notification"), ""),
        (_queued_command("words of another session", origin={"kind": "peer"}), ""),
        (_queued_command("go on", isMeta=True), ""),
        (_queued_command("a file").replace(b"queued_command", b"edited_text_file"), ""),
    ],
)
def test_queued_prompts_of_a_person_are_observed(line: bytes, expected: str) -> None:
    (turn,) = turns(capture([line, _claude("assistant", WORDS, "m1", "end_turn")]))
    observed = turn["content"]["observation"]
    assert observed.startswith(expected)
    assert bool(observed) == bool(expected)


def test_slash_commands_are_not_observed() -> None:
    lines = [
        _claude("user", "<command-name>/clear</command-name>"),
        _claude("user", "<local-command-stdout></local-command-stdout>"),
        _claude("user", "go on"),
        _claude("assistant", WORDS, "m1", "end_turn"),
    ]
    (turn,) = turns(capture(lines))
    assert turn["content"]["observation"] == "user: go on"


def test_messages_injected_by_the_program_are_not_observed() -> None:
    reminder = "<system-reminder>Be brief.\nAlways.</system-reminder>"
    lines = [
        _claude("user", "This session goes on from another one.", isCompactSummary=True),
        _claude("user", "<task-notification>task 7 is done</task-notification>"),
        _claude("user", [{"type": "text", "text": "[Request interrupted by user for tool use]"}]),
        _claude("user", [{"type": "text", "text": reminder}]),
        _claude("user", f"{reminder}\ngo on"),
        _claude("assistant", WORDS, "m0", "end_turn", model="<synthetic>"),
        _claude("assistant", WORDS, "m1", "end_turn", isApiErrorMessage=True),
        _claude("assistant", WORDS, "m2", "end_turn"),
    ]
    (turn,) = turns(capture(lines))
    assert turn["content"]["observation"] == "user: go on"


def _assistant_line(id: str, **more: Any) -> bytes:
    message = {"role": "assistant", "id": id, "content": [{"type": "text", "text": id}]}
    return msgspec.json.encode({**CLAUDE, "type": "assistant", "message": message, **more})


SIDECHAIN = {"isSidechain": True, "agentId": "a9f"}


@pytest.mark.parametrize(
    ("lines", "session", "actions"),
    [
        (
            [_assistant_line("m1", **SIDECHAIN), _assistant_line("m2", **SIDECHAIN)],
            "agent-a9f",
            ["m1", "m2"],
        ),
        (
            [
                _assistant_line("m1", **SIDECHAIN),
                _assistant_line("m2", **{**SIDECHAIN, "agentId": "b"}),
            ],
            "agent-a9f",
            ["m1"],
        ),
        (
            [_assistant_line("m1", isSidechain=False), _assistant_line("m2", **SIDECHAIN)],
            "s",
            ["m1"],
        ),
        (
            [_assistant_line("m1", isSidechain=True), _assistant_line("m2", isSidechain=False)],
            "s",
            ["m2"],
        ),
    ],
    ids=["its own file", "beside another one", "in a session", "without a name"],
)
def test_sidechain_lines_belong_to_the_file_of_their_agent(
    lines: list[bytes], session: str, actions: list[str]
) -> None:
    found = turns(capture(lines))
    assert [turn["content"]["action"] for turn in found] == actions
    assert {turn["metadata"]["session_id"] for turn in found} == {session}


def test_duplicate_line_counts_once() -> None:
    call = {"type": "tool_use", "id": "i1", "name": "Bash", "input": {"command": "ls"}}
    result = {"type": "tool_result", "tool_use_id": "i1", "content": "one"}
    lines = [
        _claude("assistant", [call], "m1", uuid="u1"),
        _claude("user", [result], uuid="u2"),
        _claude("assistant", WORDS, "m2", "end_turn", uuid="u3"),
    ]
    doubled = [line for line in lines for _ in range(2)]

    assert [one.message["payload"]["type"] for one in capture(doubled) if one.kind == "event"] == [
        "TOOL_LIFECYCLE_INVOKED",
        "SANDBOX_PULSE",
        "TOOL_LIFECYCLE_COMPLETED",
    ]
    assert [turn["content"] for turn in turns(capture(doubled))] == [
        turn["content"] for turn in turns(capture(lines))
    ]


@pytest.mark.parametrize(
    ("found", "status", "output"),
    [
        ([{"title": "Docs", "url": "https://d.example"}], "success", "Docs https://d.example"),
        ({"error_code": "max_uses_exceeded"}, "failure", '{"error_code":"max_uses_exceeded"}'),
    ],
)
def test_server_side_search_is_a_completed_tool_call(found: Any, status: str, output: str) -> None:
    began = {"type": "server_tool_use", "id": "s1", "name": "web_search", "input": {"query": "q"}}
    ended = {"type": "web_search_tool_result", "tool_use_id": "s1", "content": found}
    lines = [
        _claude("assistant", [began, ended], "m1"),
        _claude("assistant", WORDS, "m2", "end_turn"),
    ]
    captured = capture(lines)

    (completed,) = payloads(captured, "TOOL_LIFECYCLE_COMPLETED")
    assert (completed["tool"], completed["status"]) == ("web_search", status)
    assert turns(captured)[1]["content"]["observation"] == f"web_search: {output}"


def _capture_exec(output: str) -> list[CapturedMessage]:
    """Capture a Codex call with this output."""
    call = {"type": "function_call", "name": "exec_command", "call_id": "c", "arguments": "{}"}
    ended = {"type": "function_call_output", "call_id": "c", "output": output}
    items = ({"type": "response_item", "payload": payload} for payload in (call, ended))
    return capture([*map(msgspec.json.encode, items)])


@pytest.mark.parametrize(
    "output",
    [
        "exec command rejected by user",
        "aborted",
        "aborted by user after 2.1s",
        "failed to parse function arguments: missing field `cmd`",
    ],
)
def test_rejected_call_has_failed_without_output(output: str) -> None:
    captured = _capture_exec(output)

    assert [one["status"] for one in payloads(captured, "TOOL_LIFECYCLE_COMPLETED")] == ["failure"]
    assert not [*payloads(captured, "SANDBOX_PULSE")]


def test_output_that_begins_like_a_rejection_is_a_success() -> None:
    (completed,) = payloads(_capture_exec("aborted merges: 0"), "TOOL_LIFECYCLE_COMPLETED")
    assert completed["status"] == "success"


def test_tool_denied_by_the_user_has_failed_without_output() -> None:
    call = {"type": "tool_use", "id": "i1", "name": "Bash", "input": {"command": "rm -r x"}}
    denial = "The user doesn't want to proceed with this tool use."
    result = {"type": "tool_result", "tool_use_id": "i1", "content": denial, "is_error": True}
    captured = capture([_claude("assistant", [call], "m1"), _claude("user", [result])])

    assert [one["status"] for one in payloads(captured, "TOOL_LIFECYCLE_COMPLETED")] == ["failure"]
    assert not [*payloads(captured, "SANDBOX_PULSE")]


def test_header_before_the_output_of_a_call_is_stripped() -> None:
    def printed(output: str) -> list[str]:
        return [one["line"] for one in payloads(_capture_exec(output), "SANDBOX_PULSE")]

    head = "Chunk ID: 1\nWall time: 0.5 seconds\nProcess exited with code 0\n"
    assert printed(f"{head}Output:\none\nOutput:\ntwo") == ["one", "Output:", "two"]
    assert printed("Output:\none") == ["Output:", "one"]
