"""`trace` on session files: repeated, growing, followed and refused; and exported spans."""

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


def trace(dragoman: Console, file: Path, *args: str, code: int = 0) -> Any:
    """Import a session file into task T-1 and return the reply."""
    return dragoman.ask("trace", str(file), "--task", "T-1", *args, code=code)


def query(dragoman: Console, operation: str) -> Any:
    """Query an operation about T-1."""
    return dragoman("call", operation, '{"task_id":"T-1"}').json


def test_session_file_is_imported_once(dragoman: Console) -> None:
    reply = trace(dragoman, CLAUDE)
    assert (reply["format"], reply["turns"], reply["events"], reply["new"]) == (
        "claude-code",
        3,
        10,
        13,
    )
    again = trace(dragoman, CLAUDE)
    assert (again["turns"], again["events"], again["new"]) == (3, 10, 0)
    turns, events = query(dragoman, "saop.turns"), query(dragoman, "saop.events")
    assert [turn["turn_index"] for turn in turns["turns"]] == [0, 1, 2]
    assert turns["gaps"] == []
    assert turns["turns"][1]["content"]["thought"] == "An off-by-one."
    kinds = [event["payload"]["type"] for event in events["events"]]
    assert kinds.count("TOOL_LIFECYCLE_COMPLETED") == 3
    assert {event["task_id"] for event in events["events"]} == {"T-1"}
    output = dragoman("trace", str(CLAUDE), "--task", "T-1").out
    assert output == "T-1: 3 turns and 10 events of a claude-code session, 0 of them new\n"


def test_growing_file_is_imported_in_parts(dragoman: Console, tmp_path: Path) -> None:
    lines = CODEX.read_bytes().splitlines(keepends=True)
    file = tmp_path / "rollout.jsonl"
    # The last line is incomplete; its rest is written later.
    file.write_bytes(b"".join(lines[:8]) + lines[8][:40])
    first = trace(dragoman, file)
    assert (first["turns"], first["lastTurnOpen"], first["unreadable"]) == (0, True, [9])
    file.write_bytes(b"".join(lines))
    second = trace(dragoman, file)
    assert (second["turns"], second["lastTurnOpen"], second["unreadable"]) == (4, False, [])
    assert second["new"] == second["turns"] + second["events"] - first["events"]
    assert first["events"] == 0, "a task that is not known begins with a turn"
    file.write_bytes(b"".join(lines[:12]))
    assert trace(dragoman, file, "--close")["new"] == 0
    assert (
        "it is imported when it is, or with --close"
        in dragoman("trace", str(file), "--task", "T-1").out
    )


@proves("CAPTURE-WHOLE")
@pytest.mark.parametrize("file", [CLAUDE, CODEX], ids=lambda file: file.stem)
def test_import_in_parts_equals_import_at_once(
    dragoman: Console, tmp_path: Path, file: Path
) -> None:
    """Turns are recorded completely or not yet, and every event has its task."""
    lines = file.read_bytes().splitlines(keepends=True)
    growing = tmp_path / "session.jsonl"
    for count in range(3, len(lines) + 1):
        growing.write_bytes(b"".join(lines[:count]))
        trace(dragoman, growing)
    piecemeal = query(dragoman, "saop.turns")["turns"], query(dragoman, "saop.events")["events"]

    at_once = Console(tmp_path / "other")
    trace(at_once, file)
    turns, events = query(at_once, "saop.turns")["turns"], query(at_once, "saop.events")["events"]
    assert [one["content"] for one in piecemeal[0]] == [one["content"] for one in turns]
    ids = {one["event_id"] for one in events}
    assert {one["event_id"] for one in piecemeal[1]} == ids
    assert {one["task_id"] for one in piecemeal[1]} == {"T-1"}


@proves("CAPTURE-WHOLE")
def test_events_are_deferred_until_the_first_turn(dragoman: Console, tmp_path: Path) -> None:
    file = tmp_path / "session.jsonl"
    file.write_bytes(b"".join(CLAUDE.read_bytes().splitlines(keepends=True)[:6]))
    reply = trace(dragoman, file)
    assert (reply["new"], reply["lastTurnOpen"], reply["deferredEvents"]) == (0, True, 2)
    assert "2 events wait for the first turn" in dragoman("trace", str(file), "--task", "T-1").out
    assert trace(dragoman, file, "--close")["new"] == 3


@proves("CAPTURE-WHOLE")
def test_events_are_deferred_until_an_accepted_turn(dragoman: Console, tmp_path: Path) -> None:
    """The first turn is too long; the task begins with the second and has the events of both."""
    file = tmp_path / "session.jsonl"
    content = CLAUDE.read_bytes()
    file.write_bytes(content.replace(b"Please fix it.", b"x" * 17_000_000))
    reply = trace(dragoman, file, code=1)
    assert [(one["what"], one["code"]) for one in reply["refused"]] == [
        ("turn 0", "message_too_large")
    ]
    assert (reply["turns"], reply["events"], reply["deferredEvents"]) == (2, 10, 0)
    assert len(query(dragoman, "saop.events")["events"]) == 10


def test_follow_imports_the_last_turn_when_it_is_complete(
    dragoman: Console, tmp_path: Path
) -> None:
    outputs = list[str]()

    def wait() -> bool:
        outputs.append(dragoman("call", "saop.turns", '{"task_id":"T-1"}').out)
        return False

    # Turns recorded while the command still waits for more.
    dragoman("trace", str(CLAUDE), "--task", "T-1", "--follow", wait=wait)
    assert [len(json.loads(one)["turns"]) for one in outputs] == [3]


def test_byte_order_mark_is_skipped(dragoman: Console, tmp_path: Path) -> None:
    file = tmp_path / "session.jsonl"
    file.write_bytes(BOM_UTF8 + b"\n".join(CLAUDE.read_bytes().splitlines()[2:]))
    reply = trace(dragoman, file)
    assert (reply["turns"], reply["unreadable"]) == (3, [])
    first = query(dragoman, "saop.turns")["turns"][0]["content"]["observation"]
    assert first == "user: The parser test fails. Please fix it."


def test_follow_imports_each_line_as_it_arrives(dragoman: Console, tmp_path: Path) -> None:
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

    args = ("trace", str(file), "--task", "T-1", "--follow", "--json")
    *imported, summary = dragoman(*args, wait=wait).objects
    assert summary["new"] == len(imported) == 13
    assert [one["what"] for one in imported if one["what"].startswith("turn")] == [
        "turn 0",
        "turn 1",
        "turn 2",
    ]
    assert sorted(one["position"] for one in imported) == [one["position"] for one in imported]
    assert (
        "     2  turn 0\n"
        in dragoman("--data", str(tmp_path / "other"), *args[:-1], wait=lambda: False).out
    )


def test_shrunken_file_is_refused(dragoman: Console, tmp_path: Path) -> None:
    file = tmp_path / "session.jsonl"
    file.write_bytes(CLAUDE.read_bytes())

    def wait() -> bool:
        file.write_bytes(b"")
        return True

    result = dragoman("trace", str(file), "--task", "T-1", "--follow", wait=wait)
    assert (result.code, "has become shorter" in result.err) == (2, True)


@proves("CAPTURE-OTLP")
def test_spans_survive_a_round_trip(dragoman: Console, tmp_path: Path) -> None:
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
def test_spans_are_posted_to_a_collector(
    dragoman: Console, monkeypatch: pytest.MonkeyPatch
) -> None:
    trace(dragoman, CODEX)
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_HEADERS", "x-team=a%20b, y=1")
    with receiving() as collector:
        url = collector.url(path="/v1/traces")
        reply = dragoman.ask("otlp", "T-1", "--to", url)
        assert reply["spans"] == 9
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
    ("body", "expected"),
    [
        (b'{"partialSuccess":{"rejectedSpans":"2","errorMessage":"no room"}}', "2 of 9 spans: no"),
        (b'{"partialSuccess":{"rejectedSpans":9}}', "9 of 9 spans: it does not say why"),
        (b'{"partialSuccess":{"errorMessage":"use gRPC"}}', ""),
        (b'{"partialSuccess":{}}', ""),
        (b"OK", ""),
    ],
)
def test_spans_rejected_by_the_collector_are_not_counted_as_sent(
    dragoman: Console, body: bytes, expected: str
) -> None:
    trace(dragoman, CODEX)
    with receiving() as collector:
        head = f"HTTP/1.1 200 OK\r\nContent-Length: {len(body)}\r\n\r\n"
        collector.answers.append(text(head.encode() + body))
        result = dragoman("otlp", "T-1", "--to", collector.url(path="/v1/traces"))
    assert (result.code, expected in result.err) == (1 if expected else 0, True)
    assert ("were sent" in result.out) is not bool(expected)


@proves("CAPTURE-OTLP")
@pytest.mark.parametrize("headers", ["x=a%0Ab", "x=s3cr%C3%A9t", "s3cret", "=s3cret", "s3 cret=1"])
def test_invalid_exporter_headers_are_named_by_their_index(
    dragoman: Console, monkeypatch: pytest.MonkeyPatch, headers: str
) -> None:
    trace(dragoman, CODEX)
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_HEADERS", f"y=1,{headers}")
    result = dragoman("otlp", "T-1", "--to", "http://127.0.0.1:9/v1/traces")
    assert (result.code, "OTEL_EXPORTER_OTLP_HEADERS: part 2 is no header" in result.err) == (
        2,
        True,
    )
    assert "s3" not in result.err


def test_secrets_are_masked_on_import(dragoman: Console, tmp_path: Path) -> None:
    secret = "ghp_" + "aB3dE6gH9jK2mN5pQ8sT1vW4yZ7bC0eF3hJ6"
    file = tmp_path / "session.jsonl"
    found = CLAUDE.read_bytes().replace(b"1 failed, 1 passed", secret.encode())
    file.write_bytes(found.replace(b"An off-by-one.", b"Is it " + secret.encode()))
    reply = trace(dragoman, file)
    assert reply["masked"] == trace(dragoman, file)["masked"] == 3
    assert secret not in dragoman("events", "--json").out
    assert "secrets were masked in 3 of them" in dragoman("trace", str(file), "--task", "T-1").out


@proves("REDACT-LINES")
def test_private_key_in_terminal_output_is_masked_in_all_lines(
    dragoman: Console, tmp_path: Path
) -> None:
    file = tmp_path / "session.jsonl"
    shown = json.dumps(f"1 failed\n{PEM}\nbye")[1:-1].encode()
    file.write_bytes(CLAUDE.read_bytes().replace(b"1 failed, 1 passed", shown))
    reply = trace(dragoman, file)
    assert reply["new"] == 13 + len(PEM.splitlines()) + 1
    assert "q7Xz" not in dragoman("events", "--json").out
    assert "q7Xz" not in dragoman("otlp", "T-1").out
    lines = [one["payload"].get("line") for one in query(dragoman, "saop.events")["events"]]
    assert {"-----BEGIN RSA PRIVATE KEY-----", "-----END RSA PRIVATE KEY-----"} < set(lines)
    entries = map(json.loads, dragoman("events", "--json").out.splitlines())
    pulses = [one for one in entries if one["body"].get("type") == "SANDBOX_PULSE"]
    assert len({one["cause"] for one in pulses}) == 1, "each has what the one before has left"
    assert trace(dragoman, file)["new"] == 0


@proves("SAOP-ROLE")
def test_agent_has_its_registered_role(dragoman: Console) -> None:
    dragoman.make("Its task", "--id", "T-1", "--ready")
    dragoman.ask("agent", "add", "rv", "--saop-role", "reviewer")
    assert trace(dragoman, CLAUDE, "--as", "rv")["refused"] == []
    assert {one["role"] for one in query(dragoman, "saop.turns")["turns"]} == {"reviewer"}
    reply = trace(dragoman, CODEX, "--as", "rv", "--role", "developer", code=1)
    assert reply["detail"] == (
        "rv has the SAOP role reviewer, and cannot act as developer: use the role reviewer"
    )


@proves("SAOP-ROLE")
def test_person_imports_as_developer_by_default(dragoman: Console) -> None:
    trace(dragoman, CLAUDE)
    trace(dragoman, CODEX, "--role", "architect")
    roles = [one["role"] for one in query(dragoman, "saop.turns")["turns"]]
    assert (roles[0], roles[-1]) == ("developer", "architect")


def test_unauthorized_import_is_refused_once(dragoman: Console) -> None:
    dragoman.make("Its task", "--id", "T-1", "--ready")
    reply = trace(dragoman, CLAUDE, "--as", "ada", code=1)
    assert reply["code"] == "identity_mismatch"
    assert len(reply["refused"]) == 1
    assert reply["new"] == 0
    result = dragoman("trace", str(CLAUDE), "--task", "T-1", "--as", "ada")
    assert "refused: 1; the rest is imported" in result.out
    assert "THOUGHT_STREAM was refused: identity_mismatch" in result.err


@proves("CAPTURE-AGAIN")
@pytest.mark.parametrize("file", [CLAUDE, CODEX], ids=["claude-code", "codex"])
def test_new_attempt_does_not_duplicate_imported_turns(dragoman: Console, file: Path) -> None:
    as_dev = ("--as", "developer")
    first = trace(dragoman, file, *as_dev)
    before = query(dragoman, "saop.turns")
    dragoman.ask("task", "move", "T-1", "ready")
    dragoman.ask("task", "claim", "T-1", "--agent", "developer", "--session", "another-stay")
    again = trace(dragoman, file, *as_dev)
    assert (again["new"], again["turns"], again["refused"]) == (0, first["turns"], [])
    assert query(dragoman, "saop.turns") == before
    assert len(query(dragoman, "saop.events")["events"]) == first["events"] + 3  # + moves


@proves("CAPTURE-AGAIN")
def test_new_turns_belong_to_the_new_attempt(dragoman: Console, tmp_path: Path) -> None:
    lines = CLAUDE.read_bytes().splitlines(keepends=True)
    file, as_dev = tmp_path / "session.jsonl", ("--as", "developer")
    file.write_bytes(b"".join(lines[:-1]))
    first = trace(dragoman, file, *as_dev)
    dragoman.ask("task", "move", "T-1", "ready")
    dragoman.ask("task", "claim", "T-1", "--agent", "developer")
    file.write_bytes(b"".join(lines))
    again = trace(dragoman, file, *as_dev)
    assert (again["turns"], again["refused"]) == (3, [])
    turns = query(dragoman, "saop.turns")["turns"]
    assert [turn["turn_index"] for turn in turns] == [0, 1, 2]
    assert [turn["attempt"] for turn in turns] == [1] * first["turns"] + [2] * (3 - first["turns"])


def test_second_session_of_an_attempt_is_numbered_after_the_first(dragoman: Console) -> None:
    trace(dragoman, CLAUDE)
    assert trace(dragoman, CODEX)["turns"] == 4
    assert trace(dragoman, CODEX)["new"] == trace(dragoman, CLAUDE)["new"] == 0
    turns = query(dragoman, "saop.turns")["turns"]
    assert [turn["turn_index"] for turn in turns] == [*range(7)]
    assert turns[3]["content"]["thought"] == "**Listing files**"


@proves("CAPTURE-AGAIN")
def test_sessions_and_sub_agents_of_one_claim_are_all_imported(
    dragoman: Console, tmp_path: Path
) -> None:
    """Their lines have the same numbers, and their events the session of the claim."""
    dragoman.ask("task", "create", "Fix", "--id", "T-1", "--ready")
    dragoman.ask("task", "claim", "T-1", "--agent", "developer", "--session", "stay")
    later, helper = tmp_path / "later.jsonl", tmp_path / "agent-a9f.jsonl"
    content = CLAUDE.read_bytes().replace(b"toolu_", b"toolv_").replace(b"pytest", b"make test #")
    later.write_bytes(content.replace(b"7c1e6f0a", b"8d2f7a1b"))
    aside = content.replace(b'"isSidechain":false', b'"isSidechain":true,"agentId":"a9f"')
    helper.write_bytes(aside.replace(b"toolv_", b"toolw_"))
    for file in (CLAUDE, later, helper):
        reply = trace(dragoman, file, "--as", "developer")
        assert (reply["turns"], reply["events"], reply["new"]) == (3, 10, 13)
        assert trace(dragoman, file, "--as", "developer")["new"] == 0
    events = query(dragoman, "saop.events")["events"]
    assert [event["session_id"] for event in events].count("stay") == 31  # and the claim
    assert [turn["turn_index"] for turn in query(dragoman, "saop.turns")["turns"]] == [*range(9)]


def test_changed_turn_is_refused_as_key_reused(dragoman: Console, tmp_path: Path) -> None:
    trace(dragoman, CLAUDE)
    file = tmp_path / "session.jsonl"
    file.write_bytes(CLAUDE.read_bytes().replace(b"It is fixed.", b"It was never broken."))
    reply = trace(dragoman, file, code=1)
    assert [(one["what"], one["code"]) for one in reply["refused"]] == [("turn 2", "key_reused")]
    assert reply["turns"] == 2


@proves("CLI-EVENTS")
def test_events_command_summarizes_trace_events(dragoman: Console) -> None:
    trace(dragoman, CLAUDE)
    output = dragoman("events").out
    for kind in ("SANDBOX_PULSE", "TOOL_LIFECYCLE_COMPLETED", "THOUGHT_STREAM"):
        line = next(line for line in output.splitlines() if kind in line)
        assert line.partition(" about T-1: ")[2], line
    assert "TOOL_LIFECYCLE_COMPLETED in session" in output
    assert " about T-1: Bash " in output


@pytest.mark.parametrize(
    ("args", "expected"),
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
def test_invalid_arguments_are_usage_errors(
    dragoman: Console, args: tuple[str, ...], expected: str
) -> None:
    result = dragoman("trace", *args)
    assert (result.code, expected in result.err) == (2, True), result
