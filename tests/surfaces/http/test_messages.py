"""Messages over HTTP: single messages, batches, operations, commands of the owner."""

import json

import pytest
from msgspec import Raw

from dragoman.core.errors import REFUSALS, SettingsError, StoreUnavailable
from dragoman.core.task_state import CreateTask, MoveTask
from dragoman.engine.queries.entries import all_entries
from dragoman.ledger.entry import read_line
from dragoman.protocols import aof
from dragoman.surfaces.http.errors import HTTP_CODES, STATUS_BY_CODE, problem, problem_from_error
from tests.requirements import proves
from tests.surfaces.http.aof_messages import report, update
from tests.surfaces.http.hub_server import HubServer

JSON_LINES = {"Content-Type": "application/x-ndjson"}


def _create_and_claim(server: HubServer, agent: str = "ada") -> str:
    task = server.submit(CreateTask("One", ready=True))
    server.post(f"/v1/tasks/{task}/claim", {"session": "s1"}, by=agent)
    return task


@proves("HTTP-PROBLEMS")
def test_every_code_has_status_and_title() -> None:
    assert (REFUSALS.keys() | HTTP_CODES.keys()) <= STATUS_BY_CODE.keys()
    for code in STATUS_BY_CODE:
        document = problem(code, "why")
        assert document.title
        assert 400 <= document.status < 600


@proves("HTTP-PROBLEMS")
def test_details_of_internal_errors_are_hidden() -> None:
    shown = problem_from_error(StoreUnavailable("the disk is full"))
    assert (shown.status, shown.code, shown.detail) == (
        503,
        "store_unavailable",
        "the disk is full",
    )
    hidden = problem_from_error(SettingsError("/home/ada/.dragoman/dragoman.toml: nonsense"))
    assert (hidden.status, hidden.code) == (500, "internal_error")
    assert "ada" not in hidden.detail


@proves("HTTP-PROBLEMS")
def test_code_of_a_dialect_has_status_422() -> None:
    assert problem("of_a_dialect", "why").status == 422


@proves("HTTP-MESSAGES")
def test_message_is_accepted_and_answered_in_its_dialect(server: HubServer) -> None:
    task = _create_and_claim(server)
    response = server.post("/v1/messages", report(task), by="ada")
    assert response == {
        "ok": True,
        "dialect": "aof",
        "type": "completion.report",
        "agent": "ada",
        "reply": {"taskId": task, "status": "in-progress"},
        "tasks": [{"id": task, "status": "in-progress"}],
        "warnings": [],
        "repeated": False,
    }
    line = read_line(list(all_entries(server.store))[-1].line)
    assert (line.actor, line.via) == ("agent:ada", "http")
    assert isinstance(line.original_text, Raw)
    assert json.loads(bytes(line.original_text)) == report(task)


@proves("HTTP-MESSAGES", "HTTP-KEYS")
def test_repeated_message_replays_first_response(server: HubServer) -> None:
    task = _create_and_claim(server)
    first = server.post("/v1/messages?dialect=aof", report(task), by="ada")
    head = server.store.head()
    assert server.post("/v1/messages", report(task), by="ada") == {**first, "repeated": True}
    assert server.store.head() == head


@proves("HTTP-MESSAGES", "AOF-REPEAT", "AOF-WARNINGS")
def test_message_under_attempt_token_applies_to_that_attempt(server: HubServer) -> None:
    task = server.submit(CreateTask("One", ready=True))
    message = report(task, summaryRef="outputs/none.md") | {"sentAt": "2001-01-01T00:00:00Z"}
    for _ in range(2):
        claim = server.post(f"/v1/tasks/{task}/claim", {"agent": "ada"})
        server.tokens["an attempt"] = claim["token"]
        response = server.post("/v1/messages", message, by="an attempt")
        assert (response["repeated"], response["reply"]["status"]) == (False, "review")
        server.submit(MoveTask(task, "ready"))


@proves("HTTP-MESSAGES")
def test_message_in_another_agents_name_is_refused_and_recorded(server: HubServer) -> None:
    task = _create_and_claim(server)
    response = server.request("POST", "/v1/messages", report(task, agent="ada"), by="bob")
    assert (response.status, response.code) == (403, "identity_mismatch")
    refused = read_line(list(all_entries(server.store))[-1].line)
    assert (refused.event, refused.actor) == ("command.refused", "agent:bob")


@proves("HTTP-MESSAGES", "HTTP-PROBLEMS")
def test_invalid_field_of_a_message_is_named_by_path(server: HubServer) -> None:
    response = server.request(
        "POST", "/v1/messages", report("TASK-2026-02-09-001", notes=7), by="ada"
    )
    assert (response.status, response.code) == (422, "invalid_envelope")
    assert response.json["path"] == "payload.notes"


@proves("HTTP-MESSAGES")
@pytest.mark.parametrize(
    ("body", "refused"),
    [
        *((body, (422, "not_recognized")) for body in (b"{}", b"[]", b"hello", b"", b"\xff")),
        # A text that begins an object or a list was meant as JSON.
        *((body, (400, "invalid_json")) for body in (b"{", b' {"a":1,"a":2}', b"[1,", b"{'a':1}")),
    ],
)
def test_unrecognized_message_is_not_recorded(
    server: HubServer, body: bytes, refused: tuple[int, str]
) -> None:
    head = server.store.head()
    response = server.request(
        "POST", "/v1/messages", body, by="ada", headers={"Content-Type": "application/json"}
    )
    assert (response.status, response.code) == refused
    assert server.store.head() == head


@proves("HTTP-MESSAGES")
@pytest.mark.parametrize(
    ("dialect", "hint"),
    [
        ("aof", 'an object whose protocol is "aof"'),
        ("agentmail", "an object with subject and body_md"),
        ("acp", "an object with action"),
        ("ccos", "an object with intent_id, agent_id and"),
        ("saop", "an object with turn_index"),
    ],
)
def test_unrecognized_message_gets_a_hint_for_the_named_dialect(
    server: HubServer, dialect: str, hint: str
) -> None:
    response = server.request(
        "POST", f"/v1/messages?dialect={dialect}", {"hello": "there"}, by="ada"
    )

    assert response.code == "not_recognized"
    assert f"({dialect}: {hint}" in response.json["detail"]


@proves("HTTP-MESSAGES")
def test_unknown_dialect_is_refused(server: HubServer) -> None:
    response = server.request("POST", "/v1/messages?dialect=latin", {}, by="ada")
    assert (response.status, response.code, response.json["path"]) == (
        400,
        "invalid_request",
        "dialect",
    )
    assert "aof" in response.json["detail"]


@proves("HTTP-MESSAGES")
def test_batch_answers_each_line_in_order(
    server: HubServer,
) -> None:
    tasks = [_create_and_claim(server) for _ in range(5)]
    lines = [json.dumps(update(task)).encode() for task in tasks]
    lines[2] = b'{"protocol":"aof","version":1,"type":'
    lines[3:3] = [b"no message at all", b'{"subject": "Cut off']
    response = server.request(
        "POST", "/v1/messages", b"\n".join(lines), by="ada", headers=JSON_LINES
    )
    assert response.headers["content-type"] == "application/x-ndjson"
    results = [json.loads(line) for line in response.body.splitlines()]
    assert [result["line"] for result in results] == [1, 2, 3, 4, 5, 6, 7]
    assert [result["ok"] for result in results] == [True, True, False, False, False, True, True]
    assert [result["tasks"][0]["id"] for result in results if result["ok"]] == [
        *tasks[:2],
        *tasks[3:],
    ]
    codes = [result["problem"]["code"] for result in results if not result["ok"]]
    assert codes == ["invalid_json", "not_recognized", "invalid_json"]


@proves("HTTP-MESSAGES")
def test_lines_about_one_task_are_applied_in_order(server: HubServer) -> None:
    task = _create_and_claim(server)
    session = {"sessionId": "s1"}
    lines = [json.dumps(update(task, notes=f"{n}")).encode() for n in range(700)]
    lines.append(json.dumps(report(task)).encode())
    response = server.request(
        "POST", "/v1/messages", b"\r\n".join(lines), by="ada", headers=JSON_LINES
    )
    assert all(json.loads(line)["ok"] for line in response.body.splitlines())
    assert server.post("/v1/aof/session_end", session, by="ada")["tasks"][0]["status"] == "review"
    assert server.get(f"/v1/tasks/{task}")["notes"] == 700


@proves("HTTP-MESSAGES", "HTTP-KEYS")
def test_repeated_batch_changes_nothing(server: HubServer) -> None:
    tasks = [_create_and_claim(server) for _ in range(3)]
    body = b"\n".join(json.dumps(update(task)).encode() for task in tasks)
    first = server.request("POST", "/v1/messages", body, by="ada", headers=JSON_LINES)
    head = server.store.head()
    again = server.request("POST", "/v1/messages", body, by="ada", headers=JSON_LINES)
    assert again.body == first.body.replace(b'"repeated":false', b'"repeated":true')
    assert server.store.head() == head


@proves("HTTP-MESSAGES")
def test_empty_batch_has_empty_response(server: HubServer) -> None:
    response = server.request("POST", "/v1/messages", b"\n \n", by="ada", headers=JSON_LINES)
    assert (response.status, response.body) == (200, b"")


@proves("HTTP-MESSAGES")
def test_batch_counts_empty_lines(server: HubServer) -> None:
    task = _create_and_claim(server)
    lines = [b"", b"", json.dumps(update(task)).encode(), b" ", b"no message", b""]
    response = server.request(
        "POST", "/v1/messages", b"\n".join(lines), by="ada", headers=JSON_LINES
    )
    assert [json.loads(line)["line"] for line in response.body.splitlines()] == [3, 5]


@proves("HTTP-MESSAGES", "HTTP-KEYS")
@pytest.mark.parametrize("length", [1, 255, 256])
def test_batch_under_key_of_any_length_is_applied_once(server: HubServer, length: int) -> None:
    task = _create_and_claim(server)
    body = b"\n".join(json.dumps(update(task, notes=n)).encode() for n in ("a", "b"))
    headers = {**JSON_LINES, "Idempotency-Key": "k" * length}
    for is_repeat in (False, True):
        response = server.request("POST", "/v1/messages", body, by="ada", headers=headers)
        results = [json.loads(line) for line in response.body.splitlines()]
        assert [(one["ok"], one["repeated"]) for one in results] == [(True, is_repeat)] * 2
    # A request under a key that looks like the key of a line is another request.
    one = {"Idempotency-Key": "k" * length + ":1"} if length < 250 else {}
    assert server.request("POST", "/v1/messages", update(task), by="ada", headers=one).status == 200


@proves("HTTP-MESSAGES", "HTTP-KEYS")
def test_equal_lines_of_a_keyed_batch_are_one_message(server: HubServer) -> None:
    task = _create_and_claim(server)
    line_a = json.dumps(update(task, notes="a")).encode()
    body = b"\n".join((line_a, json.dumps(update(task, notes="b")).encode(), b" " + line_a + b"\r"))
    headers = {**JSON_LINES, "Idempotency-Key": "k"}
    response = server.request("POST", "/v1/messages", body, by="ada", headers=headers)
    results = [json.loads(line) for line in response.body.splitlines()]
    assert [result["repeated"] for result in results] == [False, False, True]
    assert server.get(f"/v1/tasks/{task}")["notes"] == 2


@proves("HTTP-MESSAGES", "MAIL-REPEAT")
def test_mail_with_id_is_posted_once_in_and_after_a_batch(server: HubServer) -> None:
    message = {"from": "ada", "to": ["bob"], "subject": "s", "body_md": "x", "id": "F-1"}
    lines = [json.dumps(message), json.dumps(dict(reversed(message.items())))]
    headers = {**JSON_LINES, "Idempotency-Key": "k"}
    response = server.request(
        "POST", "/v1/messages", "\n".join(lines).encode(), by="ada", headers=headers
    )
    results = [json.loads(line) for line in response.body.splitlines()]
    assert [(result["ok"], result["repeated"]) for result in results] == [
        (True, False),
        (True, True),
    ]
    key = {"Idempotency-Key": "another"}
    again = server.request("POST", "/v1/messages?dialect=agentmail", message, by="ada", headers=key)
    assert (again.status, again.json["repeated"], again.json["reply"]["id"]) == (200, True, "F-1")


@proves("HTTP-OPERATIONS")
def test_every_operation_has_an_endpoint(server: HubServer) -> None:
    addresses = {(endpoint.method, endpoint.path) for endpoint in server.app.endpoints}
    for operation in aof.dialect().operations:
        assert ("POST", f"/v1/aof/{operation.name}") in addresses


@proves("HTTP-OPERATIONS", "HTTP-KEYS")
def test_operation_replies_in_the_form_of_its_dialect(server: HubServer) -> None:
    task = _create_and_claim(server)
    arguments = {"taskId": task, "progress": "half"}
    key = {"Idempotency-Key": "k1"}
    path = "/v1/aof/aof_task_update"
    first = server.request("POST", path, arguments, by="ada", headers=key)
    assert first.json == {"taskId": task, "status": "in-progress"}
    head = server.store.head()
    assert server.request("POST", path, arguments, by="ada", headers=key).json == first.json
    assert server.store.head() == head
    other = server.request("POST", path, {**arguments, "progress": "more"}, by="ada", headers=key)
    assert (other.status, other.code) == (422, "key_reused")
    wrong = server.request("POST", path, {"taskId": task, "progress": 7}, by="ada")
    assert (wrong.status, wrong.json["path"]) == (422, "progress")


@proves("HTTP-DO")
def test_only_owner_may_run_commands_for_others(server: HubServer) -> None:
    body = {
        "actor": {"role": "agent", "name": "zoe", "via": "cli"},
        "commands": [
            {"type": "task.create", "title": "One", "id": "one", "ready": True},
            {"type": "task.claim", "task": "one", "agent": "zoe"},
        ],
        "key": "k1",
        "original_text": {"as": "it was", "typed": 1.50},
    }
    executed = server.post("/v1/internal/commands", body)
    assert [receipt["status"] for receipt in executed["receipts"]] == ["ready", "in-progress"]
    line = read_line(list(all_entries(server.store))[-2].line)
    assert (line.actor, line.via) == ("agent:zoe", "cli")
    assert isinstance(line.original_text, Raw)
    assert json.loads(bytes(line.original_text)) == body["original_text"]
    assert server.post("/v1/internal/commands", body) == {**executed, "repeated": True}
    for refused_body in (body, {"unheard": "of"}):
        response = server.request("POST", "/v1/internal/commands", refused_body, by="ada")
        assert (response.status, response.code) == (403, "not_authorized")


@proves("HTTP-DO", "SAOP-MASKED")
def test_turn_from_the_command_line_is_redacted_by_the_hub(
    server: HubServer,
) -> None:
    secret = "ghp_" + "a1B2" * 9
    turn = {
        "turn_index": 0,
        "agent_id": "developer",
        "role": "developer",
        "content": {"thought": f"say {secret}", "action": "", "observation": ""},
        "metadata": {
            "version": "1.0.0",
            "task_id": "one",
            "timestamp": "2026-02-09T12:00:00Z",
            "confidence": 0.5,
            "estimated_complexity": "low",
        },
    }
    path = "/v1/internal/operations?operation=saop.turn&role=human&name=lea&via=cli"
    accepted = server.post(path, turn)["accepted"]
    assert accepted["reply"]["masked"]
    assert accepted["warnings"] == ["a secret was masked: content.thought (github_token)"]
    assert secret.encode() not in b"".join(entry.line for entry in all_entries(server.store))


@proves("HTTP-DO")
def test_only_owner_may_call_operations_for_others(server: HubServer) -> None:
    server.submit(CreateTask("One", ready=True, id="one"))
    path = "/v1/internal/operations?operation=saop.event&role=agent&name=zoe&via=cli"
    transition = {"type": "TASK_TRANSITION", "task_id": "one", "from_state": "ready"}
    timestamp = "2026-02-09T12:00:00Z"
    event = {
        "event_id": "01890a5d-ac96-774b-bcce-b302099a8057",
        "session_id": "s-1",
        "payload": {**transition, "to_state": "done", "timestamp": timestamp},
    }
    accepted = server.post(path, event)["accepted"]
    assert (accepted["actor"], accepted["reply"]["applied"]) == ("zoe", False)
    assert len(accepted["commands"]) == len(accepted["receipts"]) == 1
    line = read_line(list(all_entries(server.store))[-1].line)
    assert (line.actor, line.via) == ("agent:zoe", "cli")
    assert server.post(path, {})["rejected"]["code"] == "invalid_envelope"
    response = server.request("POST", path.replace("zoe", "%3F"), event)
    assert (response.status, response.code) == (422, "invalid_id")
    response = server.request("POST", path, event, by="ada")
    assert (response.status, response.code) == (403, "not_authorized")


@proves("HTTP-DO", "ENGINE-EFFECT")
def test_refused_effect_leaves_the_commands_applied(server: HubServer) -> None:
    body = {
        "actor": {"role": "agent", "name": "zoe"},
        "commands": [{"type": "mail.post", "to": ["ada"], "subject": "x", "body": "", "id": "m"}],
        "effect": [{"type": "task.heartbeat", "task": "nowhere"}],
        "key": "k2",
    }
    response = server.post("/v1/internal/commands", body)
    assert [receipt["stream"] for receipt in response["receipts"]] == ["mail:m"]
    assert response["declined"]["code"] == "task_not_found"
    assert server.post("/v1/internal/commands", body) == {**response, "repeated": True}


@proves("HTTP-DO")
@pytest.mark.parametrize(
    ("changes", "path"),
    [
        ({"commands": []}, "commands"),
        ({"commands": [{"type": "task.explode"}]}, "commands[0].type"),
        ({"actor": {"role": "king", "name": "x"}}, "actor.role"),
        ({"actor": {"role": "human", "name": "?"}}, "actor"),
        ({"more": 1}, "more"),
    ],
)
def test_invalid_command_is_named_by_path(
    server: HubServer, changes: dict[str, object], path: str
) -> None:
    body = {
        "actor": {"role": "human", "name": "hera"},
        "commands": [{"type": "task.create", "title": "One"}],
        **changes,
    }
    response = server.request("POST", "/v1/internal/commands", body)
    assert (response.status, response.code) == (422, "invalid_field")
    assert response.json.get("path", "") == path
