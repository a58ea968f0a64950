"""`dragoman-traces` against a hub: session files repeated, growing, followed and refused; spans."""

import json
import os
from codecs import BOM_UTF8
from collections.abc import Callable, Generator
from pathlib import Path
from typing import Any

import pytest
from msgspec import Struct

from dragoman.core.agent import RegisterAgent
from dragoman_traces.__main__ import main
from tests.notify.receiver import receiving, status, text
from tests.requirements import proves
from tests.surfaces.http.hub_server import HubServer, serving
from tests.text.test_redact import PEM

pytestmark = proves("CAPTURE-TRANSCRIPT")

FOLDER = Path(__file__).parent / "transcripts"
CLAUDE, CODEX, OTLP = (FOLDER / name for name in ("claude-code.jsonl", "codex.jsonl", "otlp.json"))


class Output(Struct, frozen=True):
    """Exit code and output of a command."""

    code: int
    out: str
    err: str


class Traces:
    """The program, for one hub."""

    def __init__(
        self, server: HubServer, capsys: pytest.CaptureFixture[str], patch: pytest.MonkeyPatch
    ) -> None:
        self.server = server
        self._capsys = capsys
        self._patch = patch

    def __call__(
        self, *args: str, by: str = "owner", wait: Callable[[], bool] | None = None
    ) -> Output:
        """Run a command with the token of this agent."""
        self._patch.setenv("DRAGOMAN_URL", f"http://127.0.0.1:{self.server.port}")
        self._patch.setenv("DRAGOMAN_TOKEN", self.server.tokens[by])
        try:
            code = main(args, wait)
        except SystemExit as error:  # of argparse
            code = int(str(error.code))
        printed = self._capsys.readouterr()
        return Output(code, printed.out, printed.err)

    def import_(self, file: Path, *args: str, by: str = "owner", code: int = 0) -> Any:
        """Import a session file into task T-1 and return the summary."""
        result = self("import", str(file), "--task", "T-1", *args, by=by)
        assert result.code == code, result
        return json.loads(result.out)

    def query(self, operation: str, task: str = "T-1") -> Any:
        """Query an operation about a task."""
        return self.server.post(f"/v1/saop/{operation}", {"task_id": task})


@pytest.fixture
def traces(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> Generator[Traces]:
    """Give the program, and a hub with two agents that have a SAOP role."""
    with serving(HubServer()) as server:
        server.add_agent("developer")
        server.add_agent("ada")
        yield Traces(server, capsys, monkeypatch)


def test_session_file_is_imported_once(traces: Traces) -> None:
    reply = traces.import_(CLAUDE)
    assert (reply["format"], reply["turns"], reply["events"], reply["new"]) == (
        "claude-code",
        3,
        10,
        13,
    )
    again = traces.import_(CLAUDE)
    assert (again["turns"], again["events"], again["new"]) == (3, 10, 0)
    turns, events = traces.query("saop.turns"), traces.query("saop.events")
    assert [turn["turn_index"] for turn in turns["turns"]] == [0, 1, 2]
    assert turns["gaps"] == []
    assert turns["turns"][1]["content"]["thought"] == "An off-by-one."
    kinds = [event["payload"]["type"] for event in events["events"]]
    assert kinds.count("TOOL_LIFECYCLE_COMPLETED") == 3
    assert {event["task_id"] for event in events["events"]} == {"T-1"}


def test_growing_file_is_imported_in_parts(traces: Traces, tmp_path: Path) -> None:
    lines = CODEX.read_bytes().splitlines(keepends=True)
    file = tmp_path / "rollout.jsonl"
    # The last line is incomplete; its rest is written later.
    file.write_bytes(b"".join(lines[:8]) + lines[8][:40])
    first = traces.import_(file)
    assert (first["turns"], first["lastTurnOpen"], first["unreadable"]) == (0, True, [9])
    file.write_bytes(b"".join(lines))
    second = traces.import_(file)
    assert (second["turns"], second["lastTurnOpen"], second["unreadable"]) == (4, False, [])
    assert second["new"] == second["turns"] + second["events"] - first["events"]
    assert first["events"] == 0, "a task that is not known begins with a turn"
    file.write_bytes(b"".join(lines[:12]))
    assert traces.import_(file, "--close")["new"] == 0


@proves("CAPTURE-WHOLE")
@pytest.mark.parametrize("file", [CLAUDE, CODEX], ids=lambda file: file.stem)
def test_import_in_parts_equals_import_at_once(traces: Traces, tmp_path: Path, file: Path) -> None:
    """Turns are recorded completely or not yet, and every event has its task."""
    lines = file.read_bytes().splitlines(keepends=True)
    growing = tmp_path / "session.jsonl"
    for count in range(3, len(lines) + 1):
        growing.write_bytes(b"".join(lines[:count]))
        traces.import_(growing)
    piecemeal = traces.query("saop.turns")["turns"], traces.query("saop.events")["events"]

    with serving(HubServer()) as traces.server:
        traces.import_(file)
        turns, events = (
            traces.query("saop.turns")["turns"],
            traces.query("saop.events")["events"],
        )
    assert [one["content"] for one in piecemeal[0]] == [one["content"] for one in turns]
    ids = {one["event_id"] for one in events}
    assert {one["event_id"] for one in piecemeal[1]} == ids
    assert {one["task_id"] for one in piecemeal[1]} == {"T-1"}


@proves("CAPTURE-WHOLE")
def test_events_are_deferred_until_the_first_turn(traces: Traces, tmp_path: Path) -> None:
    file = tmp_path / "session.jsonl"
    file.write_bytes(b"".join(CLAUDE.read_bytes().splitlines(keepends=True)[:6]))
    reply = traces.import_(file)
    assert (reply["new"], reply["lastTurnOpen"], reply["deferredEvents"]) == (0, True, 2)
    assert traces.import_(file, "--close")["new"] == 3


@proves("CAPTURE-WHOLE")
def test_events_are_deferred_until_an_accepted_turn(traces: Traces, tmp_path: Path) -> None:
    """The first turn is too long; the task begins with the second and has the events of both."""
    file = tmp_path / "session.jsonl"
    content = CLAUDE.read_bytes()
    file.write_bytes(content.replace(b"Please fix it.", b"x" * 17_000_000))
    reply = traces.import_(file, code=1)
    assert [(one["what"], one["code"]) for one in reply["refused"]] == [
        ("turn 0", "message_too_large")
    ]
    assert (reply["turns"], reply["events"], reply["deferredEvents"]) == (2, 10, 0)
    assert len(traces.query("saop.events")["events"]) == 10


def test_follow_imports_the_last_turn_when_it_is_complete(traces: Traces, tmp_path: Path) -> None:
    recorded = list[int]()

    def wait() -> bool:
        recorded.append(len(traces.query("saop.turns")["turns"]))
        return False

    # Turns recorded while the command still waits for more.
    traces("import", str(CLAUDE), "--task", "T-1", "--follow", wait=wait)
    assert recorded == [3]


def test_byte_order_mark_is_skipped(traces: Traces, tmp_path: Path) -> None:
    file = tmp_path / "session.jsonl"
    file.write_bytes(BOM_UTF8 + b"\n".join(CLAUDE.read_bytes().splitlines()[2:]))
    reply = traces.import_(file)
    assert (reply["turns"], reply["unreadable"]) == (3, [])
    first = traces.query("saop.turns")["turns"][0]["content"]["observation"]
    assert first == "user: The parser test fails. Please fix it."


def test_follow_imports_each_line_as_it_arrives(traces: Traces, tmp_path: Path) -> None:
    lines = CLAUDE.read_bytes().splitlines(keepends=True)
    file = tmp_path / "session.jsonl"
    file.write_bytes(b"".join(lines[:4]) + lines[4][:20])
    rest = [lines[4][20:], *lines[5:]]
    recorded = list[int]()

    def wait() -> bool:
        events = traces.server.get("/v1/events?limit=100")["events"]
        recorded.append(sum(one["type"] in ("trace.recorded", "turn.recorded") for one in events))
        if not rest:
            return False
        with file.open("ab") as growing:
            growing.write(rest.pop(0))
        return True

    traces("import", str(file), "--task", "T-1", "--follow", wait=wait)
    assert recorded[0] == 0
    assert recorded[-1] == 13
    assert recorded == sorted(recorded)
    assert len({*recorded}) == 5, "as they come, not all at the end"
    assert traces.import_(file)["new"] == 0


def test_shrunken_file_is_refused(traces: Traces, tmp_path: Path) -> None:
    file = tmp_path / "session.jsonl"
    file.write_bytes(CLAUDE.read_bytes())

    def wait() -> bool:
        file.write_bytes(b"")
        return True

    result = traces("import", str(file), "--task", "T-1", "--follow", wait=wait)
    assert (result.code, "has become shorter" in result.err) == (2, True)


@proves("CAPTURE-OTLP")
def test_spans_survive_a_round_trip(traces: Traces, tmp_path: Path) -> None:
    assert traces.import_(OTLP)["turns"] == 2
    spans = json.loads(traces("export", "T-1").out)
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
    back = json.loads(traces("import", str(out), "--task", "T-2").out)
    assert (back["format"], back["turns"]) == ("otlp", 2)
    first, second = (traces.query("saop.turns", task)["turns"] for task in ("T-1", "T-2"))
    for one, other in zip(first, second, strict=True):
        assert one["content"] == other["content"]


@proves("CAPTURE-OTLP")
def test_spans_are_posted_to_a_collector(traces: Traces, monkeypatch: pytest.MonkeyPatch) -> None:
    traces.import_(CODEX)
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_HEADERS", "x-team=a%20b, y=1")
    with receiving() as collector:
        url = collector.url(path="/v1/traces")
        reply = json.loads(traces("export", "T-1", "--to", url).out)
        assert reply["spans"] == 9
        (request,) = collector.requests
        assert request.line == "POST /v1/traces HTTP/1.1"
        assert request.headers["content-type"] == "application/json"
        assert (request.headers["x-team"], request.headers["y"]) == ("a b", "1")
        assert json.loads(request.body) == json.loads(traces("export", "T-1").out)
        collector.answers.append(status(503))
        refused = traces("export", "T-1", "--to", url)
        assert (refused.code, "answered 503" in refused.err) == (1, True)
    gone = traces("export", "T-1", "--to", url)
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
    traces: Traces, body: bytes, expected: str
) -> None:
    traces.import_(CODEX)
    with receiving() as collector:
        head = f"HTTP/1.1 200 OK\r\nContent-Length: {len(body)}\r\n\r\n"
        collector.answers.append(text(head.encode() + body))
        result = traces("export", "T-1", "--to", collector.url(path="/v1/traces"))
    assert (result.code, expected in result.err) == (1 if expected else 0, True)
    assert ('"spans": 9' in result.out) is not bool(expected)


@proves("CAPTURE-OTLP")
@pytest.mark.parametrize("headers", ["x=a%0Ab", "x=s3cr%C3%A9t", "s3cret", "=s3cret", "s3 cret=1"])
def test_invalid_exporter_headers_are_named_by_their_index(
    traces: Traces, monkeypatch: pytest.MonkeyPatch, headers: str
) -> None:
    traces.import_(CODEX)
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_HEADERS", f"y=1,{headers}")
    result = traces("export", "T-1", "--to", "http://127.0.0.1:9/v1/traces")
    assert (result.code, "OTEL_EXPORTER_OTLP_HEADERS: part 2 is no header" in result.err) == (
        2,
        True,
    )
    assert "s3" not in result.err


def test_secrets_are_masked_on_import(traces: Traces, tmp_path: Path) -> None:
    secret = "ghp_" + "aB3dE6gH9jK2mN5pQ8sT1vW4yZ7bC0eF3hJ6"
    file = tmp_path / "session.jsonl"
    found = CLAUDE.read_bytes().replace(b"1 failed, 1 passed", secret.encode())
    file.write_bytes(found.replace(b"An off-by-one.", b"Is it " + secret.encode()))
    reply = traces.import_(file)
    assert reply["masked"] == traces.import_(file)["masked"] == 3
    assert secret not in json.dumps(traces.server.get("/v1/events?limit=500"))


@proves("REDACT-LINES")
def test_private_key_in_terminal_output_is_masked_in_all_lines(
    traces: Traces, tmp_path: Path
) -> None:
    file = tmp_path / "session.jsonl"
    shown = json.dumps(f"1 failed\n{PEM}\nbye")[1:-1].encode()
    file.write_bytes(CLAUDE.read_bytes().replace(b"1 failed, 1 passed", shown))
    reply = traces.import_(file)
    assert reply["new"] == 13 + len(PEM.splitlines()) + 1
    assert "q7Xz" not in json.dumps(traces.server.get("/v1/events?limit=500"))
    assert "q7Xz" not in traces("export", "T-1").out
    lines = [one["payload"].get("line") for one in traces.query("saop.events")["events"]]
    assert {"-----BEGIN RSA PRIVATE KEY-----", "-----END RSA PRIVATE KEY-----"} < set(lines)
    assert traces.import_(file)["new"] == 0


@proves("SAOP-ROLE")
def test_agent_has_its_registered_role(traces: Traces) -> None:
    traces.server.post("/v1/tasks", {"title": "Its task", "id": "T-1", "ready": True})
    traces.server.add_agent("rv")
    traces.server.submit(RegisterAgent("rv", "agent", saop_role="reviewer"))
    assert traces.import_(CLAUDE, "--role", "reviewer", by="rv")["refused"] == []
    assert {one["role"] for one in traces.query("saop.turns")["turns"]} == {"reviewer"}
    reply = traces.import_(CODEX, by="rv", code=1)
    assert reply["refused"][0]["detail"] == (
        "rv has the SAOP role reviewer, and cannot act as developer: use the role reviewer"
    )


@proves("SAOP-ROLE")
def test_person_imports_as_developer_by_default(traces: Traces) -> None:
    traces.import_(CLAUDE)
    traces.import_(CODEX, "--role", "architect")
    roles = [one["role"] for one in traces.query("saop.turns")["turns"]]
    assert (roles[0], roles[-1]) == ("developer", "architect")


def test_unauthorized_import_is_refused_once(traces: Traces) -> None:
    traces.server.post("/v1/tasks", {"title": "Its task", "id": "T-1", "ready": True})
    reply = traces.import_(CLAUDE, by="ada", code=1)
    assert reply["refused"][0]["code"] == "identity_mismatch"
    assert len(reply["refused"]) == 1
    assert reply["new"] == 0


@proves("CAPTURE-AGAIN")
@pytest.mark.parametrize("file", [CLAUDE, CODEX], ids=["claude-code", "codex"])
def test_new_attempt_does_not_duplicate_imported_turns(traces: Traces, file: Path) -> None:
    first = traces.import_(file, by="developer")
    before = traces.query("saop.turns")
    traces.server.post("/v1/tasks/T-1/move", {"to": "ready"})
    traces.server.post("/v1/tasks/T-1/claim", {"agent": "developer", "session": "another-stay"})
    again = traces.import_(file, by="developer")
    assert (again["new"], again["turns"], again["refused"]) == (0, first["turns"], [])
    assert traces.query("saop.turns") == before
    assert len(traces.query("saop.events")["events"]) == first["events"] + 3  # + moves


@proves("CAPTURE-AGAIN")
def test_new_turns_belong_to_the_new_attempt(traces: Traces, tmp_path: Path) -> None:
    lines = CLAUDE.read_bytes().splitlines(keepends=True)
    file = tmp_path / "session.jsonl"
    file.write_bytes(b"".join(lines[:-1]))
    first = traces.import_(file, by="developer")
    traces.server.post("/v1/tasks/T-1/move", {"to": "ready"})
    traces.server.post("/v1/tasks/T-1/claim", {"agent": "developer"})
    file.write_bytes(b"".join(lines))
    again = traces.import_(file, by="developer")
    assert (again["turns"], again["refused"]) == (3, [])
    turns = traces.query("saop.turns")["turns"]
    assert [turn["turn_index"] for turn in turns] == [0, 1, 2]
    assert [turn["attempt"] for turn in turns] == [1] * first["turns"] + [2] * (3 - first["turns"])


def test_second_session_of_an_attempt_is_numbered_after_the_first(traces: Traces) -> None:
    traces.import_(CLAUDE)
    assert traces.import_(CODEX)["turns"] == 4
    assert traces.import_(CODEX)["new"] == traces.import_(CLAUDE)["new"] == 0
    turns = traces.query("saop.turns")["turns"]
    assert [turn["turn_index"] for turn in turns] == [*range(7)]
    assert turns[3]["content"]["thought"] == "**Listing files**"


@proves("CAPTURE-AGAIN")
def test_sessions_and_sub_agents_of_one_claim_are_all_imported(
    traces: Traces, tmp_path: Path
) -> None:
    """Their lines have the same numbers, and the claim has one session for all of them."""
    traces.server.post("/v1/tasks", {"title": "Fix", "id": "T-1", "ready": True})
    traces.server.post("/v1/tasks/T-1/claim", {"agent": "developer", "session": "stay"})
    later, helper = tmp_path / "later.jsonl", tmp_path / "agent-a9f.jsonl"
    content = CLAUDE.read_bytes().replace(b"toolu_", b"toolv_").replace(b"pytest", b"make test #")
    later.write_bytes(content.replace(b"7c1e6f0a", b"8d2f7a1b"))
    aside = content.replace(b'"isSidechain":false', b'"isSidechain":true,"agentId":"a9f"')
    helper.write_bytes(aside.replace(b"toolv_", b"toolw_"))
    for file in (CLAUDE, later, helper):
        reply = traces.import_(file, by="developer")
        assert (reply["turns"], reply["events"], reply["new"]) == (3, 10, 13)
        assert traces.import_(file, by="developer")["new"] == 0
    events = traces.query("saop.events")["events"]
    assert [event["session_id"] for event in events].count("stay") == 1, "the claim"
    assert [turn["turn_index"] for turn in traces.query("saop.turns")["turns"]] == [*range(9)]


@pytest.mark.parametrize(
    ("args", "expected"),
    [
        (("nowhere.jsonl", "--task", "T-1"), "nowhere.jsonl cannot be read"),
        ((str(CLAUDE),), "required: --task"),
        ((__file__, "--task", "T-1"), "is no session file that is known here"),
        ((os.devnull, "--task", "T-1"), "is empty"),
        ((str(CLAUDE), "--task", "bad id!"), "is not the name of a task"),
        ((str(CLAUDE), "--task", "T-1", "--format", "codex"), "holds nothing of codex"),
        ((str(CLAUDE), "--task", "T-1", "--role", "boss"), "invalid choice"),
        ((str(CLAUDE), "--task", "T-1", "--format", "word"), "invalid choice"),
    ],
)
def test_invalid_arguments_are_usage_errors(
    traces: Traces, args: tuple[str, ...], expected: str
) -> None:
    result = traces("import", *args)
    assert (result.code, expected in result.err) == (2, True), result


@pytest.mark.parametrize("url", ["localhost:4318", "ftp://host/x", "http://[", "http://u:p@host/"])
def test_invalid_collector_url_is_a_usage_error(traces: Traces, url: str) -> None:
    result = traces("export", "T-1", "--to", url)
    assert (result.code, result.out, "--to " in result.err) == (2, "", True)
