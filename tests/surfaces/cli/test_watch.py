"""`watch`: frames on a terminal, lines in a pipe, and a remote hub, for any number of events."""

import json
from io import StringIO
from pathlib import Path
from typing import Any

import pytest

from dragoman.bootstrap.cli_wiring import CLI_WIRING
from dragoman.store.sqlite import SqliteStore
from dragoman.surfaces.cli.app import main
from dragoman.surfaces.cli.commands.watch import (
    TurnAuthors,
    WatchedEvent,
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
    authors = TurnAuthors()
    again = turn(1)
    later = WatchedEvent(
        1, AT, "turn.recorded", "turns:T", "agent:ada", {**again.body, "attempt": 2}
    )
    assert "turn 0 of agent:rita, beside attempt 1 (" in format_line(review_turn(0), TurnAuthors())
    assert [
        format_line(one, authors).partition("Z  ")[2].partition(" (")[0]
        for one in (turn(0), review_turn(0), again, later)
    ] == [
        "turn 0",
        "turn 0 of agent:rita, beside attempt 1",
        "turn 1 of agent:ada, attempt 1",
        "turn 1 of agent:ada, attempt 2",
    ]


def test_json_names_the_attempt_beside_which_a_turn_stands() -> None:
    objects = [event_to_dict(one) for one in (turn(0), review_turn(0))]
    assert [(one["attempt"], one["after_attempt"]) for one in objects] == [(1, None), (-2, 1)]


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
    for part in ("thought: ", "It is fixed.", "| 1 failed, 1 passed", "tool WebFetch", "red"):
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
