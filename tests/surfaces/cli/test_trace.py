"""trace on session files: twice, growing, followed, refused; and spans on their way out."""

import json
import os
from codecs import BOM_UTF8
from pathlib import Path
from typing import Any

import pytest

from tests.notify.receiver import receiving, status, text
from tests.requirements import proves
from tests.surfaces.cli.console import Console
from tests.text.test_redact import PEM

pytestmark = proves("CAPTURE-TRANSCRIPT")

FOLDER = Path(__file__).parents[2] / "protocols" / "saop" / "transcripts"
CLAUDE, CODEX, OTLP = (FOLDER / name for name in ("claude-code.jsonl", "codex.jsonl", "otlp.json"))


def trace(dragoman: Console, file: Path, *words: str, code: int = 0) -> Any:
    """What the command says about a file of task T-1."""
    return dragoman.ask("trace", str(file), "--task", "T-1", *words, code=code)


def asked(dragoman: Console, operation: str) -> Any:
    """What an operation knows of T-1."""
    return dragoman("call", operation, '{"task_id":"T-1"}').json


def test_a_session_becomes_turns_and_events_of_its_task_once(dragoman: Console) -> None:
    said = trace(dragoman, CLAUDE)
    assert (said["format"], said["turns"], said["events"], said["new"]) == (
        "claude-code",
        3,
        10,
        13,
    )
    again = trace(dragoman, CLAUDE)
    assert (again["turns"], again["events"], again["new"]) == (3, 10, 0)
    turns, events = asked(dragoman, "saop.turns"), asked(dragoman, "saop.events")
    assert [turn["turn_index"] for turn in turns["turns"]] == [0, 1, 2]
    assert turns["gaps"] == []
    assert turns["turns"][1]["content"]["thought"] == "An off-by-one."
    kinds = [event["payload"]["type"] for event in events["events"]]
    assert kinds.count("TOOL_LIFECYCLE_COMPLETED") == 3
    assert {event["task_id"] for event in events["events"]} == {"T-1"}
    told = dragoman("trace", str(CLAUDE), "--task", "T-1").out
    assert told == "T-1: 3 turns and 10 events of a claude-code session, 0 of them new\n"


def test_a_file_that_grows_is_taken_over_piece_by_piece(dragoman: Console, tmp_path: Path) -> None:
    lines = CODEX.read_bytes().splitlines(keepends=True)
    file = tmp_path / "rollout.jsonl"
    # The last line is being written: the rest of it comes later.
    file.write_bytes(b"".join(lines[:8]) + lines[8][:40])
    first = trace(dragoman, file)
    assert (first["turns"], first["unfinished"], first["unreadable"]) == (0, True, [9])
    file.write_bytes(b"".join(lines))
    second = trace(dragoman, file)
    assert (second["turns"], second["unfinished"], second["unreadable"]) == (4, False, [])
    assert second["new"] == second["turns"] + second["events"] - first["events"]
    assert first["events"] == 0, "a task that is not known begins with a turn"
    file.write_bytes(b"".join(lines[:12]))
    assert trace(dragoman, file, "--close")["new"] == 0
    assert (
        "it is taken when it is, or with --close"
        in dragoman("trace", str(file), "--task", "T-1").out
    )


@proves("CAPTURE-WHOLE")
@pytest.mark.parametrize("file", [CLAUDE, CODEX], ids=lambda file: file.stem)
def test_wherever_a_session_is_cut_what_has_come_since_is_taken(
    dragoman: Console, tmp_path: Path, file: Path
) -> None:
    """Each turn is recorded whole, or not yet; and no event is without its task."""
    lines = file.read_bytes().splitlines(keepends=True)
    growing = tmp_path / "session.jsonl"
    for count in range(3, len(lines) + 1):
        growing.write_bytes(b"".join(lines[:count]))
        trace(dragoman, growing)
    piecemeal = asked(dragoman, "saop.turns")["turns"], asked(dragoman, "saop.events")["events"]

    at_once = Console(tmp_path / "other")
    trace(at_once, file)
    turns, events = asked(at_once, "saop.turns")["turns"], asked(at_once, "saop.events")["events"]
    assert [one["content"] for one in piecemeal[0]] == [one["content"] for one in turns]
    told = {one["event_id"] for one in events}
    assert {one["event_id"] for one in piecemeal[1]} == told
    assert {one["task_id"] for one in piecemeal[1]} == {"T-1"}


@proves("CAPTURE-WHOLE")
def test_events_wait_for_the_turn_with_which_their_task_begins(
    dragoman: Console, tmp_path: Path
) -> None:
    file = tmp_path / "session.jsonl"
    file.write_bytes(b"".join(CLAUDE.read_bytes().splitlines(keepends=True)[:6]))
    said = trace(dragoman, file)
    assert (said["new"], said["unfinished"], said["waiting"]) == (0, True, 2)
    assert "2 events wait for the first turn" in dragoman("trace", str(file), "--task", "T-1").out
    assert trace(dragoman, file, "--close")["new"] == 3


@proves("CAPTURE-WHOLE")
def test_events_wait_for_a_turn_that_is_taken(dragoman: Console, tmp_path: Path) -> None:
    """The first one is too long: with the second the task begins, and has the events of both."""
    file = tmp_path / "session.jsonl"
    words = CLAUDE.read_bytes()
    file.write_bytes(words.replace(b"Please fix it.", b"x" * 17_000_000))
    said = trace(dragoman, file, code=1)
    assert [(one["what"], one["code"]) for one in said["refused"]] == [
        ("turn 0", "message_too_large")
    ]
    assert (said["turns"], said["events"], said["waiting"]) == (2, 10, 0)
    assert len(asked(dragoman, "saop.events")["events"]) == 10


def test_following_takes_the_last_turn_when_it_is_finished(
    dragoman: Console, tmp_path: Path
) -> None:
    told = list[str]()

    def wait() -> bool:
        told.append(dragoman("call", "saop.turns", '{"task_id":"T-1"}').out)
        return False

    # What is recorded while it still waits for more
    dragoman("trace", str(CLAUDE), "--task", "T-1", "--follow", wait=wait)
    assert [len(json.loads(one)["turns"]) for one in told] == [3]


def test_a_mark_of_utf_8_costs_no_line(dragoman: Console, tmp_path: Path) -> None:
    file = tmp_path / "session.jsonl"
    file.write_bytes(BOM_UTF8 + b"\n".join(CLAUDE.read_bytes().splitlines()[2:]))
    said = trace(dragoman, file)
    assert (said["turns"], said["unreadable"]) == (3, [])
    first = asked(dragoman, "saop.turns")["turns"][0]["content"]["observation"]
    assert first == "user: The parser test fails. Please fix it."


def test_following_takes_each_line_when_it_has_come(dragoman: Console, tmp_path: Path) -> None:
    lines = CLAUDE.read_bytes().splitlines(keepends=True)
    file = tmp_path / "session.jsonl"
    file.write_bytes(b"".join(lines[:4]) + lines[4][:20])
    rest = [lines[4][20:], *lines[5:]]

    def wait() -> bool:
        if not rest:
            return False
        with file.open("ab") as growing:
            growing.write(rest.pop(0))
        return True

    words = ("trace", str(file), "--task", "T-1", "--follow", "--json")
    *told, summary = dragoman(*words, wait=wait).objects
    assert summary["new"] == len(told) == 13
    assert [one["what"] for one in told if one["what"].startswith("turn")] == [
        "turn 0",
        "turn 1",
        "turn 2",
    ]
    assert sorted(one["position"] for one in told) == [one["position"] for one in told]
    assert (
        "     2  turn 0\n"
        in dragoman("--data", str(tmp_path / "other"), *words[:-1], wait=lambda: False).out
    )


def test_a_file_that_becomes_shorter_is_not_guessed_at(dragoman: Console, tmp_path: Path) -> None:
    file = tmp_path / "session.jsonl"
    file.write_bytes(CLAUDE.read_bytes())

    def wait() -> bool:
        file.write_bytes(b"")
        return True

    said = dragoman("trace", str(file), "--task", "T-1", "--follow", wait=wait)
    assert (said.code, "has become shorter" in said.err) == (2, True)


@proves("CAPTURE-OTLP")
def test_spans_come_in_and_go_out_again(dragoman: Console, tmp_path: Path) -> None:
    assert trace(dragoman, OTLP)["turns"] == 2
    spans = dragoman("otlp", "T-1").json
    (resource,) = spans["resourceSpans"]
    names = [span["name"] for span in resource["scopeSpans"][0]["spans"]]
    assert names == [
        "invoke_agent T-1",
        "chat developer",
        "chat developer",
        "execute_tool get_weather",
        "execute_tool broken",
    ]
    out = tmp_path / "out.json"
    out.write_text(json.dumps(spans))
    back = dragoman.ask("trace", str(out), "--task", "T-2")
    assert (back["format"], back["turns"]) == ("otlp", 2)
    first, second = (
        dragoman("call", "saop.turns", f'{{"task_id":"{task}"}}').json["turns"]
        for task in ("T-1", "T-2")
    )
    for one, other in zip(first, second, strict=True):
        assert one["content"] == other["content"]


@proves("CAPTURE-OTLP")
def test_a_collector_gets_them_by_post(dragoman: Console, monkeypatch: pytest.MonkeyPatch) -> None:
    trace(dragoman, CODEX)
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_HEADERS", "x-team=a%20b, y=1")
    with receiving() as collector:
        url = collector.url(path="/v1/traces")
        said = dragoman.ask("otlp", "T-1", "--to", url)
        assert said["spans"] == 9
        (request,) = collector.requests
        assert request.line == "POST /v1/traces HTTP/1.1"
        assert request.headers["content-type"] == "application/json"
        assert (request.headers["x-team"], request.headers["y"]) == ("a b", "1")
        assert json.loads(request.body) == dragoman("otlp", "T-1").json
        collector.answers.append(status(503))
        refused = dragoman.ask("otlp", "T-1", "--to", url, code=1)
        assert (refused["code"], "answered 503" in refused["detail"]) == ("not_delivered", True)
    gone = dragoman("otlp", "T-1", "--to", url)
    assert (gone.code, "was not reached" in gone.err) == (1, True)


@proves("CAPTURE-OTLP")
@pytest.mark.parametrize(
    ("body", "told"),
    [
        (b'{"partialSuccess":{"rejectedSpans":"2","errorMessage":"no room"}}', "2 of 9 spans: no"),
        (b'{"partialSuccess":{"rejectedSpans":9}}', "9 of 9 spans: it does not say why"),
        (b'{"partialSuccess":{"errorMessage":"use gRPC"}}', ""),
        (b'{"partialSuccess":{}}', ""),
        (b"OK", ""),
    ],
)
def test_what_a_collector_turns_down_was_not_sent(
    dragoman: Console, body: bytes, told: str
) -> None:
    trace(dragoman, CODEX)
    with receiving() as collector:
        head = f"HTTP/1.1 200 OK\r\nContent-Length: {len(body)}\r\n\r\n"
        collector.answers.append(text(head.encode() + body))
        said = dragoman("otlp", "T-1", "--to", collector.url(path="/v1/traces"))
    assert (said.code, told in said.err) == (1 if told else 0, True)
    assert ("were sent" in said.out) is not bool(told)


@proves("CAPTURE-OTLP")
@pytest.mark.parametrize("headers", ["x=a%0Ab", "x=s3cr%C3%A9t", "s3cret", "=s3cret", "s3 cret=1"])
def test_headers_that_cannot_be_sent_are_named_by_their_place(
    dragoman: Console, monkeypatch: pytest.MonkeyPatch, headers: str
) -> None:
    trace(dragoman, CODEX)
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_HEADERS", f"y=1,{headers}")
    said = dragoman("otlp", "T-1", "--to", "http://127.0.0.1:9/v1/traces")
    assert (said.code, "OTEL_EXPORTER_OTLP_HEADERS: part 2 is no header" in said.err) == (2, True)
    assert "s3" not in said.err


def test_secrets_are_taken_out_on_the_way_in(dragoman: Console, tmp_path: Path) -> None:
    secret = "ghp_" + "aB3dE6gH9jK2mN5pQ8sT1vW4yZ7bC0eF3hJ6"
    file = tmp_path / "session.jsonl"
    found = CLAUDE.read_bytes().replace(b"1 failed, 1 passed", secret.encode())
    file.write_bytes(found.replace(b"An off-by-one.", b"Is it " + secret.encode()))
    said = trace(dragoman, file)
    assert said["masked"] == trace(dragoman, file)["masked"] == 3
    assert secret not in dragoman("events", "--json").out
    assert (
        "secrets were taken out of 3 of them" in dragoman("trace", str(file), "--task", "T-1").out
    )


@proves("REDACT-LINES")
def test_a_private_key_that_a_shell_shows_is_masked_in_all_its_lines(
    dragoman: Console, tmp_path: Path
) -> None:
    file = tmp_path / "session.jsonl"
    shown = json.dumps(f"1 failed\n{PEM}\nbye")[1:-1].encode()
    file.write_bytes(CLAUDE.read_bytes().replace(b"1 failed, 1 passed", shown))
    said = trace(dragoman, file)
    assert said["new"] == 13 + len(PEM.splitlines()) + 1
    assert "q7Xz" not in dragoman("events", "--json").out
    assert "q7Xz" not in dragoman("otlp", "T-1").out
    lines = [one["payload"].get("line") for one in asked(dragoman, "saop.events")["events"]]
    assert {"-----BEGIN RSA PRIVATE KEY-----", "-----END RSA PRIVATE KEY-----"} < set(lines)
    entries = map(json.loads, dragoman("events", "--json").out.splitlines())
    pulses = [one for one in entries if one["body"].get("type") == "SANDBOX_PULSE"]
    assert len({one["cause"] for one in pulses}) == 1, "each has what the one before has left"
    assert trace(dragoman, file)["new"] == 0


@proves("SAOP-ROLE")
def test_an_agent_speaks_in_the_part_that_it_is_registered_with(dragoman: Console) -> None:
    dragoman.make("Its task", "--id", "T-1", "--ready")
    dragoman.ask("agent", "add", "rv", "--saop-role", "reviewer")
    assert trace(dragoman, CLAUDE, "--as", "rv")["refused"] == []
    assert {one["role"] for one in asked(dragoman, "saop.turns")["turns"]} == {"reviewer"}
    said = trace(dragoman, CODEX, "--as", "rv", "--role", "developer", code=1)
    assert said["detail"] == (
        "rv plays the reviewer, and cannot speak as the developer: let it speak as the reviewer"
    )


@proves("SAOP-ROLE")
def test_a_person_tells_of_a_developer_unless_it_says_otherwise(dragoman: Console) -> None:
    trace(dragoman, CLAUDE)
    trace(dragoman, CODEX, "--role", "architect")
    roles = [one["role"] for one in asked(dragoman, "saop.turns")["turns"]]
    assert (roles[0], roles[-1]) == ("developer", "architect")


def test_who_may_not_is_told_and_does_not_go_on_for_ever(dragoman: Console) -> None:
    dragoman.make("Its task", "--id", "T-1", "--ready")
    said = trace(dragoman, CLAUDE, "--as", "ada", code=1)
    assert said["code"] == "identity_mismatch"
    assert len(said["refused"]) == 1
    assert said["new"] == 0
    told = dragoman("trace", str(CLAUDE), "--task", "T-1", "--as", "ada")
    assert "refused: 1; what was taken stands" in told.out
    assert "THOUGHT_STREAM was refused: identity_mismatch" in told.err


@proves("CAPTURE-AGAIN")
@pytest.mark.parametrize("file", [CLAUDE, CODEX], ids=["claude-code", "codex"])
def test_a_new_attempt_does_not_double_what_was_taken_over(dragoman: Console, file: Path) -> None:
    as_dev = ("--as", "developer")
    first = trace(dragoman, file, *as_dev)
    before = asked(dragoman, "saop.turns")
    dragoman.ask("task", "move", "T-1", "ready")
    dragoman.ask("task", "claim", "T-1", "--agent", "developer", "--session", "another-stay")
    again = trace(dragoman, file, *as_dev)
    assert (again["new"], again["turns"], again["refused"]) == (0, first["turns"], [])
    assert asked(dragoman, "saop.turns") == before
    assert len(asked(dragoman, "saop.events")["events"]) == first["events"] + 3  # and the moves


@proves("CAPTURE-AGAIN")
def test_what_has_come_since_goes_to_the_new_attempt(dragoman: Console, tmp_path: Path) -> None:
    lines = CLAUDE.read_bytes().splitlines(keepends=True)
    file, as_dev = tmp_path / "session.jsonl", ("--as", "developer")
    file.write_bytes(b"".join(lines[:-1]))
    first = trace(dragoman, file, *as_dev)
    dragoman.ask("task", "move", "T-1", "ready")
    dragoman.ask("task", "claim", "T-1", "--agent", "developer")
    file.write_bytes(b"".join(lines))
    again = trace(dragoman, file, *as_dev)
    assert (again["turns"], again["refused"]) == (3, [])
    turns = asked(dragoman, "saop.turns")["turns"]
    assert [turn["turn_index"] for turn in turns] == [0, 1, 2]
    assert [turn["attempt"] for turn in turns] == [1] * first["turns"] + [2] * (3 - first["turns"])


def test_another_session_of_the_same_attempt_begins_behind_the_first(dragoman: Console) -> None:
    trace(dragoman, CLAUDE)
    assert trace(dragoman, CODEX)["turns"] == 4
    assert trace(dragoman, CODEX)["new"] == trace(dragoman, CLAUDE)["new"] == 0
    turns = asked(dragoman, "saop.turns")["turns"]
    assert [turn["turn_index"] for turn in turns] == [*range(7)]
    assert turns[3]["content"]["thought"] == "**Listing files**"


@proves("CAPTURE-AGAIN")
def test_sessions_and_sub_agents_of_one_stay_are_taken_over_each(
    dragoman: Console, tmp_path: Path
) -> None:
    """Their lines have the same numbers, and their events the session that the claim names."""
    dragoman.ask("task", "create", "Fix", "--id", "T-1", "--ready")
    dragoman.ask("task", "claim", "T-1", "--agent", "developer", "--session", "stay")
    later, helper = tmp_path / "later.jsonl", tmp_path / "agent-a9f.jsonl"
    words = CLAUDE.read_bytes().replace(b"toolu_", b"toolv_").replace(b"pytest", b"make test #")
    later.write_bytes(words.replace(b"7c1e6f0a", b"8d2f7a1b"))
    aside = words.replace(b'"isSidechain":false', b'"isSidechain":true,"agentId":"a9f"')
    helper.write_bytes(aside.replace(b"toolv_", b"toolw_"))
    for file in (CLAUDE, later, helper):
        said = trace(dragoman, file, "--as", "developer")
        assert (said["turns"], said["events"], said["new"]) == (3, 10, 13)
        assert trace(dragoman, file, "--as", "developer")["new"] == 0
    events = asked(dragoman, "saop.events")["events"]
    assert [event["session_id"] for event in events].count("stay") == 31  # and the claim
    assert [turn["turn_index"] for turn in asked(dragoman, "saop.turns")["turns"]] == [*range(9)]


def test_other_words_in_the_place_of_recorded_ones_are_refused(
    dragoman: Console, tmp_path: Path
) -> None:
    trace(dragoman, CLAUDE)
    file = tmp_path / "session.jsonl"
    file.write_bytes(CLAUDE.read_bytes().replace(b"It is fixed.", b"It was never broken."))
    said = trace(dragoman, file, code=1)
    assert [(one["what"], one["code"]) for one in said["refused"]] == [("turn 2", "key_reused")]
    assert said["turns"] == 2


@proves("CLI-EVENTS")
def test_lists_of_events_say_what_was_said(dragoman: Console) -> None:
    trace(dragoman, CLAUDE)
    told = dragoman("events").out
    for said in ("SANDBOX_PULSE", "TOOL_LIFECYCLE_COMPLETED", "THOUGHT_STREAM"):
        line = next(line for line in told.splitlines() if said in line)
        assert line.partition(" about T-1: ")[2], line
    assert "TOOL_LIFECYCLE_COMPLETED in session" in told
    assert " about T-1: Bash " in told


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("nowhere.jsonl", "--task", "T-1"), "nowhere.jsonl cannot be read"),
        ((str(CLAUDE),), "with --task ID"),
        ((__file__, "--task", "T-1"), "is no session file that is known here"),
        ((os.devnull, "--task", "T-1"), "is empty"),
        ((str(CLAUDE), "--task", "bad id!"), "is not the name of a task"),
        ((str(CLAUDE), "--task", "T-1", "--format", "codex"), "holds nothing of a codex session"),
        ((str(CLAUDE), "--task", "T-1", "--role", "boss"), "is not one of"),
        ((str(CLAUDE), "--task", "T-1", "--format", "word"), "is not one of"),
    ],
)
def test_what_cannot_be_understood(dragoman: Console, words: tuple[str, ...], told: str) -> None:
    said = dragoman("trace", *words)
    assert (said.code, told in said.err) == (2, True), said
