"""`watch`: frames on a terminal and lines in a pipe, for any number of events."""

import json
from pathlib import Path
from typing import Any

import pytest

from dragoman.surfaces.cli.commands.watch import entry_to_object, format_line
from dragoman_traces.transcript import CaptureTarget, Transcript
from tests.requirements import proves
from tests.surfaces.cli.console import Console

pytestmark = proves("WATCH-TASK")

CLAUDE = Path(__file__).parents[2] / "extras" / "transcripts" / "claude-code.jsonl"
AT = "2026-02-21T10:00:00.000Z"


def entry(name: str, stream: str = "task:T", **body: Any) -> dict[str, Any]:
    """Build an entry about the task."""
    return {
        "position": 1,
        "at": AT,
        "type": name,
        "stream": stream,
        "actor": "agent:ada",
        "body": body,
    }


def event(type_: str, **payload: Any) -> dict[str, Any]:
    """Build a trace event."""
    envelope = {"payload": {"type": type_, **payload}}
    return entry("trace.recorded", "trace:s", type=type_, task="T", envelope=envelope)


def thought(chunk: str) -> dict[str, Any]:
    """Build a part of a thought of the first turn."""
    return event("THOUGHT_STREAM", agent_id="developer", turn_index=0, chunk=chunk)


def turn(**more: Any) -> dict[str, Any]:
    """Build a recorded turn."""
    content = {"thought": "why", "action": "", "observation": "so"}
    body = {"attempt": 1, "turn_index": 0, "confidence": 0.9, "envelope": {"content": content}}
    return entry("turn.recorded", "turns:T", **(body | more))


OUTSIDE = turn(attempt=-2, by="rita", after_attempt=1)


def test_json_names_the_attempt_beside_which_a_turn_stands() -> None:
    (of_attempt, outside) = (entry_to_object(one) for one in (turn(), OUTSIDE))
    assert (of_attempt["attempt"], "after_attempt" in of_attempt) == (1, False)
    assert (outside["attempt"], outside["after_attempt"]) == (-2, 1)


@pytest.mark.parametrize(
    ("watched", "expected"),
    [
        (thought("so"), "thinks: so"),
        (thought(""), "thinks"),
        (turn(), "turn 0 (0.9) thought: why; observation: so"),
        (OUTSIDE, "turn 0 of rita, beside attempt 1 (0.9) thought: why; observation: so"),
        (entry("task.noted", text="half"), "agent:ada  noted: half"),
        (
            entry("task.noted", words="of a newer release"),
            "agent:ada  task.noted words: of a newer release",
        ),
        (entry("task.sung", tune="high"), "agent:ada  task.sung tune: high"),
        (event("NEW"), "agent:ada  NEW about T"),
    ],
)
def test_each_event_has_a_line(watched: dict[str, Any], expected: str) -> None:
    assert format_line(watched).endswith(f"Z  {expected}")


@pytest.fixture
def traced(dragoman: Console) -> Console:
    """Give a data directory with a session of T-1 and one of T-2."""
    for task in ("T-1", "T-2"):
        transcript = Transcript(CaptureTarget(task), 0)
        lines = CLAUDE.read_bytes().splitlines()
        captured = [*(one for line in lines for one in transcript.feed(line)), *transcript.close()]
        first = next(one for one in captured if one.kind == "turn")
        for one in (first, *(one for one in captured if one is not first)):
            message = one.message if one.kind == "turn" else {**one.message, "task_id": task}
            assert dragoman("call", f"saop.{one.kind}", json.dumps(message)).code == 0
    return dragoman


def test_pipe_gets_a_line_or_an_object_per_event(traced: Console) -> None:
    lines = traced("watch", "T-1").out.splitlines()
    assert len(lines) == 14
    assert lines[1].partition("Z  ")[2].startswith("turn 0 (0.8) thought: First I look")
    assert any("tool Bash failure after 25" in line for line in lines)
    assert any(line.endswith("> 1 failed, 1 passed") for line in lines)
    found = traced("watch", "T-1", "--json").objects
    assert [one["position"] for one in found] == [*range(1, 15)]
    assert found[1]["message"]["content"]["observation"].startswith("user: ")
    assert found[2]["type"] == "THOUGHT_STREAM"
    traced.ask("task", "claim", "T-1", "--agent", "developer")
    assert [one["type"] for one in traced("watch", "T-1", "--json").objects] == ["task.claimed"]
    assert len(traced("watch", "T-1", "--after", "0", "--json").objects) == 15


def test_terminal_gets_lines_that_cannot_control_it(traced: Console) -> None:
    pulse = {"type": "SANDBOX_PULSE", "line": "\x1b[2Jred", "masked": False, "timestamp": AT}
    message = {
        "event_id": "01890a5d-ac96-774b-bcce-b302099a8057",
        "session_id": "s-1",
        "task_id": "T-1",
        "payload": pulse,
    }
    assert traced("call", "saop.event", json.dumps(message)).code == 0
    shown = traced.on_terminal("watch", "T-1").out
    for part in ("thought: ", "It is fixed.", "> 1 failed, 1 passed", "tool WebFetch", "red"):
        assert part in shown
    assert "\x1b" not in shown


def test_new_entries_are_shown(traced: Console) -> None:
    commands = [("task", "claim", "T-1", "--agent", "developer"), ("task", "move", "T-1", "ready")]

    def wait() -> bool:
        if commands:
            traced.ask(*commands.pop(0))
            return True
        return False

    first, second = traced("watch", "T-1", "--after", "28", wait=wait).out.splitlines()
    assert first.endswith("claimed by developer: attempt 1, fence 1, lease 5m")
    assert second.endswith("in-progress → ready")


@proves("SAOP-TRANSITION")
def test_transition_request_is_not_shown_as_a_transition(traced: Console) -> None:
    traced.ask("task", "claim", "T-1", "--agent", "developer", "--session", "s-9")
    payload = {
        "type": "TASK_TRANSITION",
        "task_id": "T-1",
        "from_state": "in-progress",
        "to_state": "done",
        "timestamp": AT,
    }
    event = {
        "event_id": "01890a5d-ac96-774b-bcce-b302099a8057",
        "session_id": "s-9",
        "payload": payload,
    }
    reply = traced("call", "saop.event", json.dumps(event), "--as", "developer").json
    assert reply["applied"] is False
    line = traced("watch", "T-1").out.splitlines()[-1]
    expected = "TASK_TRANSITION asked for in session s-9 about T-1: in-progress → done"
    assert line.endswith(f"agent:developer  {expected}")
    assert expected in traced("events").out
    (*_, shown) = traced("watch", "T-1", "--json").objects
    assert shown["message"] == event | {"payload": payload | {"requested": True}}
