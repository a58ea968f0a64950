"""`watch`: frames on a terminal, lines in a pipe, and a remote hub, for any number of events."""

import json
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console as RichConsole

from dragoman.bootstrap.cli_wiring import CLI_WIRING
from dragoman.core.timestamps import to_rfc3339
from dragoman.store.sqlite import SqliteStore
from dragoman.surfaces.cli.app import main
from dragoman.surfaces.cli.commands.watch import (
    TurnAuthors,
    WatchedEvent,
    WatchState,
    draw,
    event_to_dict,
    format_line,
    format_milliseconds,
)
from dragoman.surfaces.cli.render import OutputClosed
from dragoman_traces.transcript import CaptureTarget, Transcript
from tests.requirements import proves
from tests.surfaces.cli.console import Console
from tests.surfaces.http.hub_server import HubServer as Hub
from tests.surfaces.http.hub_server import serving

pytestmark = proves("WATCH-TASK")

CLAUDE = Path(__file__).parents[2] / "extras" / "transcripts" / "claude-code.jsonl"
AT = "2026-02-21T10:00:00.000Z"


def event(type_: str, position: int = 1, at: str = AT, **payload: Any) -> WatchedEvent:
    """Build a trace event."""
    body = {"type": type_, "task": "T", "envelope": {"payload": {"type": type_, **payload}}}
    return WatchedEvent(position, at, "trace.recorded", "trace:s", "agent:ada", body)


def entry(name: str, **body: Any) -> WatchedEvent:
    """Build another entry about the task."""
    return WatchedEvent(1, AT, name, "task:T", "agent:ada", body)


def thought(chunk: str, *, is_final: bool = False) -> WatchedEvent:
    """Build a part of a thought of the first turn."""
    return event(
        "THOUGHT_STREAM", agent_id="developer", turn_index=0, chunk=chunk, is_final=is_final
    )


def turn(index: int, confidence: float = 0.9, **content: str) -> WatchedEvent:
    """Build a recorded turn."""
    envelope = {"content": {"thought": "", "action": "", "observation": "", **content}}
    return entry(
        "turn.recorded",
        attempt=1,
        agent="developer",
        turn_index=index,
        confidence=confidence,
        envelope=envelope,
    )


def tool_started(call: str, tool: str = "Bash", at: int = 0) -> WatchedEvent:
    """Build the start of a tool call."""
    timestamp = to_rfc3339(at)
    return event(
        "TOOL_LIFECYCLE_INVOKED",
        at=timestamp,
        call_id=call,
        tool=tool,
        arguments={},
        timestamp=timestamp,
    )


def tool_ended(call: str, status: str = "success", duration_ms: float = 1_500) -> WatchedEvent:
    """Build the end of a tool call."""
    return event(
        "TOOL_LIFECYCLE_COMPLETED",
        call_id=call,
        tool="Bash",
        status=status,
        duration_ms=duration_ms,
    )


def render_frame(state: WatchState, width: int = 100, height: int = 60) -> str:
    """Render the frame on a terminal of this size."""
    screen = RichConsole(file=StringIO(), width=width, height=height, color_system=None)
    with screen.capture() as captured:
        screen.print(draw(state.frame(), width, height))
    return captured.get()


def test_thought_grows_until_its_turn_replaces_it() -> None:
    state = WatchState("T", "Do it", "ready")
    for chunk in ("First ", "I look."):
        state.apply(thought(chunk))
    assert state.frame().thought == "First I look."
    state.apply(thought("", is_final=True))
    state.apply(turn(0, thought="First I look, all of it.", action="ls", observation="asked"))
    frame = state.frame()
    assert (frame.thought, frame.action, frame.observation) == (
        "First I look, all of it.",
        "ls",
        "asked",
    )
    state.apply(thought("Then"))
    assert state.frame().thought == "Then"


def review_turn(index: int) -> WatchedEvent:
    """Build a turn of a reviewer of the first attempt."""
    body = {
        **turn(index).body,
        "agent": "reviewer",
        "attempt": -2,
        "by": "rita",
        "after_attempt": 1,
    }
    return WatchedEvent(1, AT, "turn.recorded", "turns:T", "agent:rita", body)


def test_turns_of_several_authors_name_their_author() -> None:
    state, authors = WatchState("T", "Do it", "ready"), TurnAuthors()
    again = turn(1)
    later = WatchedEvent(
        1, AT, "turn.recorded", "turns:T", "agent:ada", {**again.body, "attempt": 2}
    )
    heads, lines = list[str](), list[str]()
    assert "turn 0 of agent:rita, beside attempt 1 (" in format_line(review_turn(0), TurnAuthors())
    for one in (turn(0), review_turn(0), again, later):
        state.apply(one)
        heads.append(render_frame(state).splitlines()[0].partition("ready  ")[2].partition("  ")[0])
        lines.append(format_line(one, authors).partition("Z  ")[2].partition(" (")[0])
    assert heads == [
        "developer, turn 0",
        "reviewer, turn 0 of agent:rita, beside attempt 1",
        "developer, turn 1 of agent:ada, attempt 1",
        "developer, turn 1 of agent:ada, attempt 2",
    ]
    assert lines == [head.partition(", ")[2] for head in heads]


def test_json_names_the_attempt_beside_which_a_turn_stands() -> None:
    objects = [event_to_dict(one) for one in (turn(0), review_turn(0))]
    assert [(one["attempt"], one["after_attempt"]) for one in objects] == [(1, None), (-2, 1)]


def test_tools_show_durations_and_outcomes() -> None:
    state = WatchState("T", "Do it", "in-progress")
    state.apply(tool_started("a", at=1_000))
    state.apply(tool_started("b", "Edit", at=3_500))
    output = render_frame(state)
    assert "Bash                         2.5 s  running" in output
    state.apply(tool_ended("a", "failure"))
    state.apply(tool_ended("lost"))
    frame = state.frame()
    assert [tool.call_id for tool in frame.running] == ["b"]
    assert [(tool.call_id, tool.status, tool.took_ms) for tool in frame.ended] == [
        ("a", "failure", 1_500),
        ("lost", "success", 1_500),
    ]
    assert "Bash                         1.5 s  failure" in render_frame(state)


def test_transitions_and_anomalies_are_notices() -> None:
    state = WatchState("T", "Do it", "ready")
    state.apply(entry("task.claimed", **{"from": "ready"}))
    assert state.frame().status == "in-progress"
    state.apply(entry("task.transitioned", **{"from": "in-progress", "to": "review"}))
    state.apply(entry("trace.anomaly", kind="orphan_completion", detail="nobody began it"))
    state.apply(entry("entropy.settled", kind="confidence", measured=0.1))
    state.apply(entry("task.requeued", attempt=1))
    state.apply(entry("task.noted", text="not shown"))
    state.apply(event("SOMETHING_NEW"))
    frame = state.frame()
    assert (frame.status, frame.count) == ("ready", 7)
    assert [text for _, text in frame.notices] == [
        "ready → in-progress by agent:ada",
        "in-progress → review by agent:ada",
        "orphan_completion: nobody began it",
        "confidence: settled",
        "in-progress → ready by agent:ada",
    ]
    assert "10:00:00  confidence: settled" in render_frame(state)


def test_frame_stays_small_for_any_number_of_events() -> None:
    state = WatchState("T", "Do it", "in-progress")
    for number in range(3_000):
        state.apply(event("SANDBOX_PULSE", line=f"line {number}"))
        state.apply(thought(f"word {number} "))
        state.apply(tool_started(f"{number}"))
        state.apply(turn(number, number % 100 / 100))
    frame = state.frame()
    assert frame.count == 12_000
    assert [len(frame.terminal), len(frame.running), len(frame.confidences)] == [100, 100, 40]
    assert len(state.frame().thought) <= 4_000
    output = render_frame(state, width=60, height=24)
    assert len(output.splitlines()) <= 24 + 3
    assert max(map(len, output.splitlines())) <= 60
    assert "line 2999" in output


def test_frame_cannot_control_the_terminal() -> None:
    state = WatchState("T", "\x1b[2J title", "in-progress")
    state.apply(event("SANDBOX_PULSE", line="\x1b]0;gone\x07\tred\x1b[31m"))
    state.apply(turn(0, thought="a\x1b[1Ab", action="x\r\ny"))
    assert "\x1b" not in render_frame(state)


@pytest.mark.parametrize(
    ("duration_ms", "expected"),
    [(0, "0 ms"), (999, "999 ms"), (1_500, "1.5 s"), (125_000, "2 m 05 s")],
)
def test_durations_are_readable(duration_ms: int, expected: str) -> None:
    assert format_milliseconds(duration_ms) == expected


@pytest.mark.parametrize(
    ("watched", "expected"),
    [
        (thought("so"), "thinks: so"),
        (thought("", is_final=True), "has thought"),
        (thought(""), "thinks"),
        (entry("task.noted", text="half"), "agent:ada  noted: half"),
        (
            entry("task.noted", words="of a newer release"),
            "agent:ada  task.noted words: of a newer release",
        ),
        (entry("task.sung", tune="high"), "agent:ada  task.sung tune: high"),
        (event("NEW"), "agent:ada  NEW about T"),
    ],
)
def test_each_event_has_a_line(watched: WatchedEvent, expected: str) -> None:
    assert format_line(watched, TurnAuthors()).endswith(f"Z  {expected}")


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
    assert lines[1].partition("Z  ")[2].startswith("turn 0 (0.80) thought: First I look")
    assert any(line.endswith("tool Bash failure after 2.5 s") for line in lines)
    assert any(line.endswith("| 1 failed, 1 passed") for line in lines)
    found = traced("watch", "T-1", "--json").objects
    assert [one["position"] for one in found] == [*range(1, 15)]
    assert found[1]["message"]["content"]["observation"].startswith("user: ")
    assert found[2]["type"] == "THOUGHT_STREAM"
    traced.ask("task", "claim", "T-1", "--agent", "developer")
    assert [one["type"] for one in traced("watch", "T-1", "--json").objects] == ["task.claimed"]
    assert len(traced("watch", "T-1", "--after", "0", "--json").objects) == 15


def test_terminal_gets_a_frame(traced: Console) -> None:
    shown = traced.on_terminal("watch", "T-1").out
    for part in ("thought", "It is fixed.", "terminal", "1 failed, 1 passed", "WebFetch"):
        assert part in shown


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


class ClosingReader(StringIO):
    """Stream whose reader leaves after three lines."""

    def write(self, text: str, /) -> int:
        if self.getvalue().count("\n") == 3:
            raise BrokenPipeError
        return super().write(text)


def test_remote_hub_is_watched_by_its_stream(
    traced: Console, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = SqliteStore.open(traced.data / "dragoman.db", lambda: "never")
    with serving(Hub(store)) as hub:
        monkeypatch.chdir(tmp_path)
        monkeypatch.setenv("DRAGOMAN_URL", f"http://127.0.0.1:{hub.port}")
        monkeypatch.setenv("DRAGOMAN_TOKEN", hub.tokens["owner"])
        out = ClosingReader()
        with pytest.raises(OutputClosed):
            main(CLI_WIRING, ["watch", "T-1", "--after", "0"], out, StringIO(), lambda: True)
    assert "thinks: First I look at" in out.getvalue()


class ClosingWarnings(StringIO):
    """Error stream whose reader leaves after the first line."""

    def write(self, text: str, /) -> int:
        written = super().write(text)
        if "\n" in text:
            raise BrokenPipeError
        return written


def test_position_beyond_the_end_of_a_remote_hub_is_a_warning(
    traced: Console, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = SqliteStore.open(traced.data / "dragoman.db", lambda: "never")
    with serving(Hub(store)) as hub:
        monkeypatch.chdir(tmp_path)
        monkeypatch.setenv("DRAGOMAN_URL", f"http://127.0.0.1:{hub.port}")
        monkeypatch.setenv("DRAGOMAN_TOKEN", hub.tokens["owner"])
        err, end = ClosingWarnings(), store.head()
        with pytest.raises((OutputClosed, BrokenPipeError)):
            main(CLI_WIRING, ["watch", "T-1", "--after", "5000"], StringIO(), err, lambda: True)
    assert f"warning: the ledger ends at {end}, before 5000" in err.getvalue()


def test_tool_may_begin_in_any_valid_year() -> None:
    state, timestamp = WatchState("T", "Do it", "ready"), "0000-01-01T00:00:00Z"
    state.apply(
        event(
            "TOOL_LIFECYCLE_INVOKED", call_id="c", tool="Sundial", arguments={}, timestamp=timestamp
        )
    )
    assert "Sundial" in render_frame(state)
