"""Session files become turns and events: what is taken from where, each once, whatever happens."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from dragoman.core.moments import parse_rfc3339
from dragoman.protocols.saop.capture.scribe import About, Captured
from dragoman.protocols.saop.capture.transcript import READERS, Transcript
from tests.requirements import proves

pytestmark = proves("CAPTURE-TRANSCRIPT")

FOLDER = Path(__file__).parent / "transcripts"
NOW = parse_rfc3339("2026-03-01T00:00:00Z")
ABOUT = About("T-1")
CLAUDE = {"sessionId": "s"}
WORDS = [{"type": "text", "text": "words"}]
SAID = {"role": "assistant", "content": WORDS}


def capture(lines: list[bytes], about: About = ABOUT, kind: str = "") -> list[Captured]:
    """All that a record comes to."""
    transcript = Transcript(about, NOW, kind)
    return [*(one for line in lines for one in transcript.feed(line)), *transcript.close()]


def lines_of(name: str) -> list[bytes]:
    """The lines of a sample."""
    return (FOLDER / name).read_bytes().splitlines()


def turns(captured: list[Captured]) -> list[dict[str, Any]]:
    """The turns among what was captured."""
    return [one.message for one in captured if one.kind == "turn"]


def payloads(captured: list[Captured], prefix: str = "") -> Iterator[dict[str, Any]]:
    """What the events among it say."""
    for one in captured:
        if one.kind == "event" and one.message["payload"]["type"].startswith(prefix):
            yield one.message["payload"]


def test_a_session_of_claude_code() -> None:
    captured = capture(lines_of("claude-code.jsonl"))
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


def test_the_thought_of_a_turn_ends_once() -> None:
    captured = capture(lines_of("claude-code.jsonl"))
    said = [
        (one["turn_index"], one["chunk"], one["is_final"]) for one in payloads(captured, "THOUGHT")
    ]
    assert said == [
        (0, "First I look at how the test fails.", True),
        (1, "An off-by-one.", True),
    ]


@proves("CAPTURE-THOUGHTS")
def test_a_thought_is_told_whole_before_the_tools_that_follow_it() -> None:
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
    told = [(one["type"], one.get("chunk"), one.get("is_final")) for one in events]
    assert told == [
        ("THOUGHT_STREAM", "a", False),
        ("THOUGHT_STREAM", "\n\nb", True),
        ("TOOL_LIFECYCLE_INVOKED", None, None),
    ]
    assert turns(capture(lines))[0]["content"]["thought"] == "a\n\nb\n\ntoo late"
    assert not [*payloads(capture([answer({"type": "thinking", "thinking": ""})]), "THOUGHT")]


@proves("CAPTURE-THOUGHTS")
@pytest.mark.parametrize("length", [1, 32_767, 32_768, 40_000])
@pytest.mark.parametrize("kind", ["claude-code", "codex"])
def test_the_chunks_of_a_thought_are_the_text_of_its_turn(kind: str, length: int) -> None:
    thoughts = ["a" * length, "b", "c" * length]
    if kind == "codex":
        summary = [{"type": "summary_text", "text": text} for text in thoughts]
        line = {"type": "response_item", "payload": {"type": "reasoning", "summary": summary}}
    else:
        blocks = [{"type": "thinking", "thinking": text} for text in thoughts]
        line = {**CLAUDE, "type": "assistant", "message": {"id": "m", "content": blocks}}
    captured = capture([msgspec.json.encode(line)])
    told = "".join(one["chunk"] for one in payloads(captured, "THOUGHT"))
    assert told == turns(captured)[0]["content"]["thought"] == "\n\n".join(thoughts)


@proves("CAPTURE-THOUGHTS")
@pytest.mark.parametrize("blank", [" ", "\n", "\t"])
@pytest.mark.parametrize("before", [32_767, 32_760, 30_000])
def test_no_word_of_a_long_thought_is_cut_that_the_hub_may_know(before: int, blank: str) -> None:
    value = "v" * 4_000
    thought = f"{'a' * before}{blank}{value}{blank}{'b ' * 40_000}"
    block = {"type": "thinking", "thinking": thought}
    line = {**CLAUDE, "type": "assistant", "message": {"id": "m", "content": [block]}}
    chunks = [one["chunk"] for one in payloads(capture([msgspec.json.encode(line)]), "THOUGHT")]
    assert "".join(chunks) == thought
    assert [chunk.count(value) for chunk in chunks if "v" in chunk] == [1]
    assert max(map(len, chunks)) <= 32_768


def test_a_session_of_codex() -> None:
    captured = capture(lines_of("codex.jsonl"))
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


def test_searches_of_codex_are_tools_each_with_an_id() -> None:
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
def test_what_codex_tells_the_model_in_the_place_of_a_person_is_nobodys_words(text: str) -> None:
    part, asked = ({"type": "input_text", "text": one} for one in (text, "go on"))
    said = "user: go on"
    for content, seen in (([part], ""), ([part, asked], said), ([asked], said), (text, "")):
        lines = [
            _codex(type="message", role="user", content=content),
            _codex(type="message", role="assistant", content=WORDS),
        ]
        (turn,) = turns(capture(lines))
        assert turn["content"]["observation"] == seen


@proves("CAPTURE-OTLP")
@pytest.mark.parametrize("kind", ["", "otlp"])
def test_spans_of_opentelemetry(kind: str) -> None:
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
def test_the_same_lines_give_the_same_ids_and_no_id_twice(name: str) -> None:
    def ids() -> list[str]:
        captured = capture(lines_of(name))
        return [one.message["event_id"] for one in captured if one.kind == "event"]

    assert ids() == ids()
    assert len(set(ids())) == len(ids())
    assert all(one[14] == "8" and one[19] in "89ab" for one in ids())
    other = capture(lines_of(name), About("T-2"))
    assert not set(ids()) & {one.message.get("event_id") for one in other}


@pytest.mark.parametrize("name", ["claude-code.jsonl", "codex.jsonl"])
@pytest.mark.parametrize("cut", [4, 7, 10])
def test_what_has_grown_begins_with_what_was_there(name: str, cut: int) -> None:
    lines = lines_of(name)
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
def test_a_turn_is_over_when_the_record_says_so_and_no_tool_runs(name: str, over: set[int]) -> None:
    lines = [(FOLDER / name).read_bytes()] if name.endswith("json") else lines_of(name)
    found = set[int]()
    for count in range(len(lines) + 1):
        transcript = Transcript(ABOUT, NOW)
        for line in lines[:count]:
            list(transcript.feed(line))
        if transcript.is_over:
            found.add(count)
    assert found == over


@proves("CAPTURE-WHOLE")
@pytest.mark.parametrize(
    ("spoken", "end", "other"),
    [
        (
            {**CLAUDE, "type": "assistant", "message": {"stop_reason": None, "content": WORDS}},
            {**CLAUDE, "type": "system", "subtype": "turn_duration"},
            {**CLAUDE, "type": "system", "subtype": "local_command"},
        ),
        (
            {"type": "response_item", "payload": {**SAID, "type": "message"}},
            {"type": "event_msg", "payload": {"type": "turn_aborted"}},
            {"type": "event_msg", "payload": {"type": "agent_message", "message": "words"}},
        ),
    ],
    ids=["claude-code", "codex"],
)
def test_only_the_record_says_that_an_answer_is_over(
    spoken: dict[str, Any], end: dict[str, Any], other: dict[str, Any]
) -> None:
    def is_over(*lines: dict[str, Any]) -> bool:
        transcript = Transcript(ABOUT, NOW)
        for line in lines:
            list(transcript.feed(msgspec.json.encode(line)))
        assert transcript.is_begun == (spoken in lines), "an end alone begins nothing"
        return transcript.is_over

    assert not is_over(spoken)
    assert not is_over(spoken, other)
    assert is_over(spoken, end)
    assert not is_over(spoken, end, spoken), "it goes on after all"
    assert is_over(end)


def test_a_long_thought_is_cut_into_chunks_and_kept_whole_in_its_turn() -> None:
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


def test_what_would_not_fit_into_an_event_is_named_there() -> None:
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


def test_an_end_without_a_beginning_is_told_as_it_is() -> None:
    result = {"type": "tool_result", "tool_use_id": "lost", "content": "x"}
    line = {"sessionId": "s", "type": "user", "message": {"content": [result]}}
    (ended,) = payloads(capture([msgspec.json.encode(line)]))
    assert (ended["call_id"], ended["tool"], ended["duration_ms"]) == ("lost", "unknown", 0)


def test_lines_that_are_no_records_are_counted_and_the_rest_is_taken() -> None:
    transcript = Transcript(ABOUT, NOW)
    for line in (b"", b"not json", b"[1]", b'{"half":', b"\xff", b'{"who":"knows"}'):
        assert list(transcript.feed(line)) == []
    assert list(transcript.close()) == []
    assert (transcript.kind, transcript.session) == ("", "")
    assert transcript.unreadable == [2, 3, 4, 5]
    for line in lines_of("codex.jsonl"):
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
def test_records_that_are_not_as_expected_come_to_nothing(kind: str, line: bytes) -> None:
    assert capture([line], kind=kind) == []


def test_what_tools_give_in_other_shapes() -> None:
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
def test_a_tool_that_never_answered_keeps_only_its_own_turn_open() -> None:
    call = {"type": "tool_use", "id": "i1", "name": "Bash", "input": {"command": "sleep 999"}}
    transcript = Transcript(ABOUT, NOW)
    list(transcript.feed(_claude("assistant", [call, *WORDS], "m1", "end_turn")))
    assert not transcript.is_over
    list(transcript.feed(_claude("user", "never mind")))
    list(transcript.feed(_claude("assistant", WORDS, "m2", "end_turn")))
    assert transcript.is_over


def _queued(prompt: Any, **more: Any) -> bytes:
    attachment = {"type": "queued_command", "prompt": prompt, **more}
    return msgspec.json.encode({**CLAUDE, "type": "attachment", "attachment": attachment})


@pytest.mark.parametrize(
    ("line", "seen"),
    [
        (_queued("also the docs"), "user: also the docs"),
        (_queued("also the docs", commandMode="prompt", origin={"kind": "human"}), "user: also"),
        (_queued([{"type": "text", "text": "also the docs"}], commandMode="prompt"), "user: also"),
        (_queued("<task-notification>task 7 is done</task-notification>"), ""),
        (_queued("task 7 is done", commandMode="task-notification"), ""),
        (_queued("words of another session", origin={"kind": "peer"}), ""),
        (_queued("go on", isMeta=True), ""),
        (_queued("a file").replace(b"queued_command", b"edited_text_file"), ""),
    ],
)
def test_what_a_person_says_while_the_agent_works_is_observed(line: bytes, seen: str) -> None:
    (turn,) = turns(capture([line, _claude("assistant", WORDS, "m1", "end_turn")]))
    observed = turn["content"]["observation"]
    assert observed.startswith(seen)
    assert bool(observed) == bool(seen)


def test_commands_of_the_program_itself_are_nobodys_words() -> None:
    lines = [
        _claude("user", "<command-name>/clear</command-name>"),
        _claude("user", "<local-command-stdout></local-command-stdout>"),
        _claude("user", "go on"),
        _claude("assistant", WORDS, "m1", "end_turn"),
    ]
    (turn,) = turns(capture(lines))
    assert turn["content"]["observation"] == "user: go on"


def test_what_the_program_itself_says_in_the_place_of_others_is_nobodys_words() -> None:
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


def _said_by(id: str, **more: Any) -> bytes:
    words = {"role": "assistant", "id": id, "content": [{"type": "text", "text": id}]}
    return msgspec.json.encode({**CLAUDE, "type": "assistant", "message": words, **more})


ASIDE = {"isSidechain": True, "agentId": "a9f"}


@pytest.mark.parametrize(
    ("lines", "session", "said"),
    [
        ([_said_by("m1", **ASIDE), _said_by("m2", **ASIDE)], "agent-a9f", ["m1", "m2"]),
        (
            [_said_by("m1", **ASIDE), _said_by("m2", **{**ASIDE, "agentId": "b"})],
            "agent-a9f",
            ["m1"],
        ),
        ([_said_by("m1", isSidechain=False), _said_by("m2", **ASIDE)], "s", ["m1"]),
        ([_said_by("m1", isSidechain=True), _said_by("m2", isSidechain=False)], "s", ["m2"]),
    ],
    ids=["its own file", "beside another one", "in a session", "without a name"],
)
def test_a_sub_agent_has_a_file_of_its_own(
    lines: list[bytes], session: str, said: list[str]
) -> None:
    found = turns(capture(lines))
    assert [turn["content"]["action"] for turn in found] == said
    assert {turn["metadata"]["session_id"] for turn in found} == {session}


def test_a_line_that_stands_there_twice_counts_once() -> None:
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
def test_a_search_of_the_models_own_side_is_a_tool_that_ends(
    found: Any, status: str, output: str
) -> None:
    began = {"type": "server_tool_use", "id": "s1", "name": "web_search", "input": {"query": "q"}}
    ended = {"type": "web_search_tool_result", "tool_use_id": "s1", "content": found}
    lines = [
        _claude("assistant", [began, ended], "m1"),
        _claude("assistant", WORDS, "m2", "end_turn"),
    ]
    captured = capture(lines)

    (told,) = payloads(captured, "TOOL_LIFECYCLE_COMPLETED")
    assert (told["tool"], told["status"]) == ("web_search", status)
    assert turns(captured)[1]["content"]["observation"] == f"web_search: {output}"


def _exec(output: str) -> list[Captured]:
    """What a call of Codex with this output comes to."""
    call = {"type": "function_call", "name": "exec_command", "call_id": "c", "arguments": "{}"}
    ended = {"type": "function_call_output", "call_id": "c", "output": output}
    items = ({"type": "response_item", "payload": payload} for payload in (call, ended))
    return capture([*map(msgspec.json.encode, items)])


@pytest.mark.parametrize(
    "why",
    [
        "exec command rejected by user",
        "aborted",
        "aborted by user after 2.1s",
        "failed to parse function arguments: missing field `cmd`",
    ],
)
def test_a_call_that_was_not_carried_out_has_failed_and_printed_nothing(why: str) -> None:
    captured = _exec(why)

    assert [one["status"] for one in payloads(captured, "TOOL_LIFECYCLE_COMPLETED")] == ["failure"]
    assert not [*payloads(captured, "SANDBOX_PULSE")]


def test_a_tool_that_begins_with_such_a_word_has_run() -> None:
    (told,) = payloads(_exec("aborted merges: 0"), "TOOL_LIFECYCLE_COMPLETED")
    assert told["status"] == "success"


def test_a_tool_that_a_person_has_not_allowed_has_printed_nothing() -> None:
    call = {"type": "tool_use", "id": "i1", "name": "Bash", "input": {"command": "rm -r x"}}
    said = "The user doesn't want to proceed with this tool use."
    result = {"type": "tool_result", "tool_use_id": "i1", "content": said, "is_error": True}
    captured = capture([_claude("assistant", [call], "m1"), _claude("user", [result])])

    assert [one["status"] for one in payloads(captured, "TOOL_LIFECYCLE_COMPLETED")] == ["failure"]
    assert not [*payloads(captured, "SANDBOX_PULSE")]


def test_what_is_told_of_a_call_before_its_output_is_no_output() -> None:
    def printed(output: str) -> list[str]:
        return [one["line"] for one in payloads(_exec(output), "SANDBOX_PULSE")]

    head = "Chunk ID: 1\nWall time: 0.5 seconds\nProcess exited with code 0\n"
    assert printed(f"{head}Output:\none\nOutput:\ntwo") == ["one", "Output:", "two"]
    assert printed("Output:\none") == ["Output:", "one"]
