"""watch: what is seen of a task, however much comes: on a terminal, in a pipe, from afar."""

import json
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console as Rich

from dragoman.bootstrap.house import HOUSE
from dragoman.core.moments import to_rfc3339
from dragoman.store.sqlite import SqliteStore
from dragoman.surfaces.cli.app import main
from dragoman.surfaces.cli.screen import ReaderGone
from dragoman.surfaces.cli.trace.watch_scene import Happening, Scene, Writers
from dragoman.surfaces.cli.trace.watch_view import as_object, draw, line_of, seconds
from tests.requirements import proves
from tests.surfaces.cli.console import Console
from tests.surfaces.http.house import House as Hub
from tests.surfaces.http.house import serving

pytestmark = proves("WATCH-TASK")

CLAUDE = Path(__file__).parents[2] / "protocols" / "saop" / "transcripts" / "claude-code.jsonl"
AT = "2026-02-21T10:00:00.000Z"


def event(type_: str, position: int = 1, at: str = AT, **payload: Any) -> Happening:
    """An event of a trace."""
    body = {"type": type_, "task": "T", "envelope": {"payload": {"type": type_, **payload}}}
    return Happening(position, at, "trace.recorded", "trace:s", "agent:ada", body)


def entry(name: str, **body: Any) -> Happening:
    """Another entry about the task."""
    return Happening(1, AT, name, "task:T", "agent:ada", body)


def thought(chunk: str, *, is_final: bool = False) -> Happening:
    """A part of a thought of the first turn."""
    return event(
        "THOUGHT_STREAM", agent_id="developer", turn_index=0, chunk=chunk, is_final=is_final
    )


def turn(index: int, confidence: float = 0.9, **content: str) -> Happening:
    """A turn."""
    envelope = {"content": {"thought": "", "action": "", "observation": "", **content}}
    return entry(
        "turn.recorded",
        attempt=1,
        agent="developer",
        turn_index=index,
        confidence=confidence,
        envelope=envelope,
    )


def began(call: str, tool: str = "Bash", at: int = 0) -> Happening:
    """A call of a tool."""
    when = to_rfc3339(at)
    return event(
        "TOOL_LIFECYCLE_INVOKED", at=when, call_id=call, tool=tool, arguments={}, timestamp=when
    )


def ended(call: str, status: str = "success", took: float = 1_500) -> Happening:
    """Its end."""
    return event(
        "TOOL_LIFECYCLE_COMPLETED", call_id=call, tool="Bash", status=status, duration_ms=took
    )


def drawn(scene: Scene, width: int = 100, height: int = 60) -> str:
    """The picture as a terminal of this size shows it."""
    screen = Rich(file=StringIO(), width=width, height=height, color_system=None)
    with screen.capture() as captured:
        screen.print(draw(scene.picture(), width, height))
    return captured.get()


def test_a_thought_grows_until_it_is_final_and_its_turn_takes_its_place() -> None:
    scene = Scene("T", "Do it", "ready")
    for chunk in ("First ", "I look."):
        scene.take(thought(chunk))
    assert scene.picture().thought == "First I look."
    scene.take(thought("", is_final=True))
    scene.take(turn(0, thought="First I look, all of it.", action="ls", observation="asked"))
    seen = scene.picture()
    assert (seen.thought, seen.action, seen.observation) == (
        "First I look, all of it.",
        "ls",
        "asked",
    )
    scene.take(thought("Then"))
    assert scene.picture().thought == "Then"


def judged(index: int) -> Happening:
    """A turn of somebody who looks at what was done in the first attempt."""
    body = {**turn(index).body, "agent": "reviewer", "attempt": -2, "by": "rita", "beside": 1}
    return Happening(1, AT, "turn.recorded", "turns:T", "agent:rita", body)


def test_where_several_show_turns_each_says_whose_it_is() -> None:
    scene, writers = Scene("T", "Do it", "ready"), Writers()
    again = turn(1)
    later = Happening(1, AT, "turn.recorded", "turns:T", "agent:ada", {**again.body, "attempt": 2})
    heads, lines = list[str](), list[str]()
    assert "turn 0 of agent:rita, beside attempt 1 (" in line_of(judged(0), Writers())
    for one in (turn(0), judged(0), again, later):
        scene.take(one)
        heads.append(drawn(scene).splitlines()[0].partition("ready  ")[2].partition("  ")[0])
        lines.append(line_of(one, writers).partition("Z  ")[2].partition(" (")[0])
    assert heads == [
        "developer, turn 0",
        "reviewer, turn 0 of agent:rita, beside attempt 1",
        "developer, turn 1 of agent:ada, attempt 1",
        "developer, turn 1 of agent:ada, attempt 2",
    ]
    assert lines == [head.partition(", ")[2] for head in heads]


def test_a_program_is_told_beside_which_attempt_a_turn_stands() -> None:
    told = [as_object(one) for one in (turn(0), judged(0))]
    assert [(one["attempt"], one["beside"]) for one in told] == [(1, None), (-2, 1)]


def test_tools_run_and_end_with_their_durations() -> None:
    scene = Scene("T", "Do it", "in-progress")
    scene.take(began("a", at=1_000))
    scene.take(began("b", "Edit", at=3_500))
    told = drawn(scene)
    assert "Bash                         2.5 s  running" in told
    scene.take(ended("a", "failure"))
    scene.take(ended("lost"))
    seen = scene.picture()
    assert [tool.call for tool in seen.running] == ["b"]
    assert [(tool.call, tool.status, tool.took_ms) for tool in seen.ended] == [
        ("a", "failure", 1_500),
        ("lost", "success", 1_500),
    ]
    assert "Bash                         1.5 s  failure" in drawn(scene)


def test_moves_and_what_somebody_should_look_at_are_remarked() -> None:
    scene = Scene("T", "Do it", "ready")
    scene.take(entry("task.claimed", **{"from": "ready"}))
    assert scene.picture().status == "in-progress"
    scene.take(entry("task.transitioned", **{"from": "in-progress", "to": "review"}))
    scene.take(entry("trace.anomaly", kind="orphan_completion", detail="nobody began it"))
    scene.take(entry("entropy.settled", kind="confidence", measured=0.1))
    scene.take(entry("task.requeued", attempt=1))
    scene.take(entry("task.noted", text="not shown"))
    scene.take(event("SOMETHING_NEW"))
    seen = scene.picture()
    assert (seen.status, seen.count) == ("ready", 7)
    assert [said for _, said in seen.remarks] == [
        "ready → in-progress by agent:ada",
        "in-progress → review by agent:ada",
        "orphan_completion: nobody began it",
        "confidence: settled",
        "in-progress → ready by agent:ada",
    ]
    assert "10:00:00  confidence: settled" in drawn(scene)


def test_however_much_comes_the_picture_stays_small_and_is_drawn_by_its_own_clock() -> None:
    scene = Scene("T", "Do it", "in-progress")
    for number in range(3_000):
        scene.take(event("SANDBOX_PULSE", line=f"line {number}"))
        scene.take(thought(f"word {number} "))
        scene.take(began(f"{number}"))
        scene.take(turn(number, number % 100 / 100))
    seen = scene.picture()
    assert seen.count == 12_000
    assert [len(seen.terminal), len(seen.running), len(seen.confidences)] == [100, 100, 40]
    assert len(scene.picture().thought) <= 4_000
    told = drawn(scene, width=60, height=24)
    assert len(told.splitlines()) <= 24 + 3
    assert max(map(len, told.splitlines())) <= 60
    assert "line 2999" in told


def test_nothing_that_comes_steers_the_terminal() -> None:
    scene = Scene("T", "\x1b[2J title", "in-progress")
    scene.take(event("SANDBOX_PULSE", line="\x1b]0;gone\x07\tred\x1b[31m"))
    scene.take(turn(0, thought="a\x1b[1Ab", action="x\r\ny"))
    assert "\x1b" not in drawn(scene)


@pytest.mark.parametrize(
    ("took", "told"), [(0, "0 ms"), (999, "999 ms"), (1_500, "1.5 s"), (125_000, "2 m 05 s")]
)
def test_lengths_of_time_are_told_as_people_compare_them(took: int, told: str) -> None:
    assert seconds(took) == told


@pytest.mark.parametrize(
    ("one", "told"),
    [
        (thought("so"), "thinks: so"),
        (thought("", is_final=True), "has thought"),
        (thought(""), "thinks"),
        (entry("task.noted", text="half"), "agent:ada  noted: half"),
        (entry("task.noted", words="of a newer release"), "task.noted"),
        (entry("task.sung"), "task.sung"),
        (event("NEW"), "trace.recorded"),
    ],
)
def test_a_line_for_each_thing_that_happens(one: Happening, told: str) -> None:
    assert line_of(one, Writers()).endswith(f"Z  {told}")


@pytest.fixture
def traced(dragoman: Console) -> Console:
    """Give a data directory with a session of T-1, and one of T-2."""
    for task in ("T-1", "T-2"):
        assert dragoman("trace", str(CLAUDE), "--task", task).code == 0
    return dragoman


def test_in_a_pipe_there_is_a_line_or_an_object_for_each(traced: Console) -> None:
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


def test_on_a_terminal_there_is_a_picture(traced: Console) -> None:
    shown = traced.on_terminal("watch", "T-1").out
    for words in ("thought", "It is fixed.", "terminal", "1 failed, 1 passed", "WebFetch"):
        assert words in shown


def test_what_happens_meanwhile_is_seen(traced: Console) -> None:
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
def test_what_was_only_asked_for_is_not_told_as_a_move(traced: Console) -> None:
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
    told = traced("call", "saop.event", json.dumps(event), "--as", "developer").json
    assert told["applied"] is False
    line = traced("watch", "T-1").out.splitlines()[-1]
    asked = "TASK_TRANSITION asked for in session s-9 about T-1: in-progress → done"
    assert line.endswith(f"agent:developer  {asked}")
    assert asked in traced("events").out
    (*_, shown) = traced("watch", "T-1", "--json").objects
    assert shown["message"] == event | {"payload": payload | {"requested": True}}


class Leaves(StringIO):
    """A reader that leaves after some lines."""

    def write(self, text: str, /) -> int:
        if self.getvalue().count("\n") == 3:
            raise BrokenPipeError
        return super().write(text)


def test_a_hub_elsewhere_is_watched_by_its_stream(
    traced: Console, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = SqliteStore.open(traced.data / "dragoman.db", lambda: "never")
    with serving(Hub(store)) as hub:
        monkeypatch.chdir(tmp_path)
        monkeypatch.setenv("DRAGOMAN_URL", f"http://127.0.0.1:{hub.port}")
        monkeypatch.setenv("DRAGOMAN_TOKEN", hub.tokens["owner"])
        out = Leaves()
        with pytest.raises(ReaderGone):
            main(HOUSE, ["watch", "T-1", "--after", "0"], out, StringIO(), lambda: True)
    assert "thinks: First I look at" in out.getvalue()


class Told(StringIO):
    """Who is told something and has heard enough."""

    def write(self, text: str, /) -> int:
        written = super().write(text)
        if "\n" in text:
            raise BrokenPipeError
        return written


def test_whoever_is_beyond_the_end_of_a_hub_elsewhere_is_told(
    traced: Console, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = SqliteStore.open(traced.data / "dragoman.db", lambda: "never")
    with serving(Hub(store)) as hub:
        monkeypatch.chdir(tmp_path)
        monkeypatch.setenv("DRAGOMAN_URL", f"http://127.0.0.1:{hub.port}")
        monkeypatch.setenv("DRAGOMAN_TOKEN", hub.tokens["owner"])
        err, end = Told(), store.head()
        with pytest.raises((ReaderGone, BrokenPipeError)):
            main(HOUSE, ["watch", "T-1", "--after", "5000"], StringIO(), err, lambda: True)
    assert f"warning: the ledger ends at {end}, before 5000" in err.getvalue()


def test_a_tool_may_have_begun_in_any_year_that_is_in_shape() -> None:
    scene, when = Scene("T", "Do it", "ready"), "0000-01-01T00:00:00Z"
    scene.take(
        event("TOOL_LIFECYCLE_INVOKED", call_id="c", tool="Sundial", arguments={}, timestamp=when)
    )
    assert "Sundial" in drawn(scene)
