"""What agents say over HTTP: single messages, batches, operations, commands of the owner."""

import json

import pytest
from msgspec import Raw

from dragoman.core.commands import CreateTask, MoveTask
from dragoman.core.errors import REFUSALS, SettingsError, StoreUnavailable
from dragoman.engine.reads.ask import entries
from dragoman.engine.redaction import Redaction
from dragoman.ledger.entry import read_line
from dragoman.protocols import aof
from dragoman.surfaces.http.problems import OF_HTTP, STATUS, of_error, problem
from dragoman.text.redact import Redactor, Secret
from tests.requirements import proves
from tests.surfaces.http.house import House
from tests.surfaces.http.letters import report, update

LINES = {"Content-Type": "application/x-ndjson"}


def _claimed(house: House, agent: str = "ada") -> str:
    task = house.do(CreateTask("One", ready=True))
    house.post(f"/v1/tasks/{task}/claim", {"session": "s1"}, by=agent)
    return task


@proves("HTTP-PROBLEMS")
def test_every_code_has_a_status_and_a_title() -> None:
    assert (REFUSALS.keys() | OF_HTTP.keys()) <= STATUS.keys()
    for code in STATUS:
        told = problem(code, "why")
        assert told.title
        assert 400 <= told.status < 600


@proves("HTTP-PROBLEMS")
def test_a_fault_of_the_hub_is_told_as_far_as_a_caller_can_do_something_about_it() -> None:
    told = of_error(StoreUnavailable("the disk is full"))
    assert (told.status, told.code, told.detail) == (503, "store_unavailable", "the disk is full")
    hidden = of_error(SettingsError("/home/ada/.dragoman/dragoman.toml: nonsense"))
    assert (hidden.status, hidden.code) == (500, "internal_error")
    assert "ada" not in hidden.detail


@proves("HTTP-PROBLEMS")
def test_a_code_that_only_a_dialect_knows_is_a_fault_in_what_was_said() -> None:
    assert problem("of_a_dialect", "why").status == 422


@proves("HTTP-MESSAGES")
def test_a_message_is_taken_and_answered_in_its_dialect(house: House) -> None:
    task = _claimed(house)
    answer = house.post("/v1/messages", report(task), by="ada")
    assert answer == {
        "ok": True,
        "dialect": "aof",
        "type": "completion.report",
        "agent": "ada",
        "reply": {"taskId": task, "status": "in-progress"},
        "tasks": [{"id": task, "status": "in-progress"}],
        "warnings": [],
        "repeated": False,
    }
    line = read_line(list(entries(house.store))[-1].line)
    assert (line.actor, line.via) == ("agent:ada", "http")
    assert isinstance(line.said, Raw)
    assert json.loads(bytes(line.said)) == report(task)


@proves("HTTP-MESSAGES", "HTTP-KEYS")
def test_the_same_message_again_is_answered_as_before(house: House) -> None:
    task = _claimed(house)
    first = house.post("/v1/messages?dialect=aof", report(task), by="ada")
    head = house.store.head()
    assert house.post("/v1/messages", report(task), by="ada") == {**first, "repeated": True}
    assert house.store.head() == head


@proves("HTTP-MESSAGES", "AOF-REPEAT", "AOF-WARNINGS")
def test_under_the_token_of_an_attempt_it_counts_for_that_attempt(house: House) -> None:
    task = house.do(CreateTask("One", ready=True))
    said = report(task, summaryRef="outputs/none.md") | {"sentAt": "2001-01-01T00:00:00Z"}
    for _ in range(2):
        claim = house.post(f"/v1/tasks/{task}/claim", {"agent": "ada"})
        house.tokens["an attempt"] = claim["token"]
        answer = house.post("/v1/messages", said, by="an attempt")
        assert (answer["repeated"], answer["reply"]["status"]) == (False, "review")
        house.do(MoveTask(task, "ready"))


@proves("HTTP-MESSAGES")
def test_a_message_in_somebody_else_s_name_is_refused_and_recorded(house: House) -> None:
    task = _claimed(house)
    answer = house.ask("POST", "/v1/messages", report(task, agent="ada"), by="bob")
    assert (answer.status, answer.code) == (403, "identity_mismatch")
    refused = read_line(list(entries(house.store))[-1].line)
    assert (refused.event, refused.actor) == ("command.refused", "agent:bob")


@proves("HTTP-MESSAGES", "HTTP-PROBLEMS")
def test_what_is_wrong_in_a_message_is_named_by_its_path(house: House) -> None:
    answer = house.ask("POST", "/v1/messages", report("TASK-2026-02-09-001", notes=7), by="ada")
    assert (answer.status, answer.code) == (422, "invalid_envelope")
    assert answer.json["path"] == "payload.notes"


@proves("HTTP-MESSAGES")
@pytest.mark.parametrize(
    ("body", "refused"),
    [
        *((body, (422, "not_recognized")) for body in (b"{}", b"[]", b"hello", b"", b"\xff")),
        # Whoever has begun an object or a list meant JSON.
        *((body, (400, "invalid_json")) for body in (b"{", b' {"a":1,"a":2}', b"[1,", b"{'a':1}")),
    ],
)
def test_what_is_nobody_s_message_is_not_recorded(
    house: House, body: bytes, refused: tuple[int, str]
) -> None:
    head = house.store.head()
    answer = house.ask(
        "POST", "/v1/messages", body, by="ada", headers={"Content-Type": "application/json"}
    )
    assert (answer.status, answer.code) == refused
    assert house.store.head() == head


@proves("HTTP-MESSAGES")
@pytest.mark.parametrize(
    ("dialect", "words"),
    [
        ("aof", 'an object whose protocol is "aof"'),
        ("agentmail", "an object with subject and body_md"),
        ("acp", "an object with action"),
        ("ccos", "an object with intent_id, agent_id and"),
        ("saop", "an object with turn_index"),
    ],
)
def test_a_message_of_another_shape_than_was_meant_is_told_which_that_is(
    house: House, dialect: str, words: str
) -> None:
    answer = house.ask("POST", f"/v1/messages?dialect={dialect}", {"hello": "there"}, by="ada")

    assert answer.code == "not_recognized"
    assert f"({dialect}: {words}" in answer.json["detail"]


@proves("HTTP-MESSAGES")
def test_a_dialect_that_is_not_spoken_is_told(house: House) -> None:
    answer = house.ask("POST", "/v1/messages?dialect=latin", {}, by="ada")
    assert (answer.status, answer.code, answer.json["path"]) == (400, "invalid_request", "dialect")
    assert "aof" in answer.json["detail"]


@proves("HTTP-MESSAGES")
def test_a_batch_has_an_answer_for_each_line_in_order_and_a_bad_one_spoils_no_other(
    house: House,
) -> None:
    tasks = [_claimed(house) for _ in range(5)]
    lines = [json.dumps(update(task)).encode() for task in tasks]
    lines[2] = b'{"protocol":"aof","version":1,"type":'
    lines[3:3] = [b"no message at all", b'{"subject": "Cut off']
    answer = house.ask("POST", "/v1/messages", b"\n".join(lines), by="ada", headers=LINES)
    assert answer.headers["content-type"] == "application/x-ndjson"
    told = [json.loads(line) for line in answer.body.splitlines()]
    assert [one["line"] for one in told] == [1, 2, 3, 4, 5, 6, 7]
    assert [one["ok"] for one in told] == [True, True, False, False, False, True, True]
    assert [one["tasks"][0]["id"] for one in told if one["ok"]] == [*tasks[:2], *tasks[3:]]
    codes = [one["problem"]["code"] for one in told if not one["ok"]]
    assert codes == ["invalid_json", "not_recognized", "invalid_json"]


@proves("HTTP-MESSAGES")
def test_lines_about_one_task_see_what_the_lines_before_have_done(house: House) -> None:
    task = _claimed(house)
    end = {"sessionId": "s1"}
    lines = [json.dumps(update(task, notes=f"{n}")).encode() for n in range(700)]
    lines.append(json.dumps(report(task)).encode())
    answer = house.ask("POST", "/v1/messages", b"\r\n".join(lines), by="ada", headers=LINES)
    assert all(json.loads(line)["ok"] for line in answer.body.splitlines())
    assert house.post("/v1/aof/session_end", end, by="ada")["tasks"][0]["status"] == "review"
    assert house.get(f"/v1/tasks/{task}")["notes"] == 700


@proves("HTTP-MESSAGES", "HTTP-KEYS")
def test_a_batch_that_is_sent_again_adds_nothing(house: House) -> None:
    tasks = [_claimed(house) for _ in range(3)]
    body = b"\n".join(json.dumps(update(task)).encode() for task in tasks)
    first = house.ask("POST", "/v1/messages", body, by="ada", headers=LINES)
    head = house.store.head()
    again = house.ask("POST", "/v1/messages", body, by="ada", headers=LINES)
    assert again.body == first.body.replace(b'"repeated":false', b'"repeated":true')
    assert house.store.head() == head


@proves("HTTP-MESSAGES")
def test_an_empty_batch_has_no_answers(house: House) -> None:
    answer = house.ask("POST", "/v1/messages", b"\n \n", by="ada", headers=LINES)
    assert (answer.status, answer.body) == (200, b"")


@proves("HTTP-MESSAGES")
def test_a_line_of_a_batch_has_the_number_that_it_has_in_the_body(house: House) -> None:
    task = _claimed(house)
    lines = [b"", b"", json.dumps(update(task)).encode(), b" ", b"no message", b""]
    answer = house.ask("POST", "/v1/messages", b"\n".join(lines), by="ada", headers=LINES)
    assert [json.loads(line)["line"] for line in answer.body.splitlines()] == [3, 5]


@proves("HTTP-MESSAGES", "HTTP-KEYS")
@pytest.mark.parametrize("length", [1, 255, 256])
def test_a_batch_under_a_key_of_any_length_is_taken_once(house: House, length: int) -> None:
    task = _claimed(house)
    body = b"\n".join(json.dumps(update(task, notes=n)).encode() for n in ("a", "b"))
    headers = {**LINES, "Idempotency-Key": "k" * length}
    for is_repeat in (False, True):
        answer = house.ask("POST", "/v1/messages", body, by="ada", headers=headers)
        told = [json.loads(line) for line in answer.body.splitlines()]
        assert [(one["ok"], one["repeated"]) for one in told] == [(True, is_repeat)] * 2
    # What is said under the same words as a line's own key is another request.
    one = {"Idempotency-Key": "k" * length + ":1"} if length < 250 else {}
    assert house.ask("POST", "/v1/messages", update(task), by="ada", headers=one).status == 200


@proves("HTTP-MESSAGES", "HTTP-KEYS")
def test_equal_lines_of_a_batch_under_a_key_are_one_message(house: House) -> None:
    task = _claimed(house)
    said = json.dumps(update(task, notes="a")).encode()
    body = b"\n".join((said, json.dumps(update(task, notes="b")).encode(), b" " + said + b"\r"))
    headers = {**LINES, "Idempotency-Key": "k"}
    answer = house.ask("POST", "/v1/messages", body, by="ada", headers=headers)
    told = [json.loads(line) for line in answer.body.splitlines()]
    assert [one["repeated"] for one in told] == [False, False, True]
    assert house.get(f"/v1/tasks/{task}")["notes"] == 2


@proves("HTTP-MESSAGES", "MAIL-REPEAT")
def test_a_letter_with_an_id_is_one_letter_in_a_batch_and_after_it(house: House) -> None:
    letter = {"from": "ada", "to": ["bob"], "subject": "s", "body_md": "x", "id": "F-1"}
    lines = [json.dumps(letter), json.dumps(dict(reversed(letter.items())))]
    headers = {**LINES, "Idempotency-Key": "k"}
    answer = house.ask("POST", "/v1/messages", "\n".join(lines).encode(), by="ada", headers=headers)
    told = [json.loads(line) for line in answer.body.splitlines()]
    assert [(one["ok"], one["repeated"]) for one in told] == [(True, False), (True, True)]
    key = {"Idempotency-Key": "another"}
    again = house.ask("POST", "/v1/messages?dialect=agentmail", letter, by="ada", headers=key)
    assert (again.status, again.json["repeated"], again.json["reply"]["id"]) == (200, True, "F-1")


@proves("HTTP-OPERATIONS")
def test_every_operation_of_every_dialect_has_an_address(house: House) -> None:
    addresses = {(endpoint.method, endpoint.path) for endpoint in house.app.endpoints}
    for operation in aof.dialect().operations:
        assert ("POST", f"/v1/aof/{operation.name}") in addresses


@proves("HTTP-OPERATIONS", "HTTP-KEYS")
def test_an_operation_answers_in_its_dialect_s_own_form(house: House) -> None:
    task = _claimed(house)
    tool = {"taskId": task, "progress": "half"}
    key = {"Idempotency-Key": "k1"}
    path = "/v1/aof/aof_task_update"
    first = house.ask("POST", path, tool, by="ada", headers=key)
    assert first.json == {"taskId": task, "status": "in-progress"}
    head = house.store.head()
    assert house.ask("POST", path, tool, by="ada", headers=key).json == first.json
    assert house.store.head() == head
    other = house.ask("POST", path, {**tool, "progress": "more"}, by="ada", headers=key)
    assert (other.status, other.code) == (422, "key_reused")
    wrong = house.ask("POST", path, {"taskId": task, "progress": 7}, by="ada")
    assert (wrong.status, wrong.json["path"]) == (422, "progress")


@proves("HTTP-DO")
def test_the_owner_speaks_for_anybody_and_nobody_else_does(house: House) -> None:
    asked = {
        "actor": {"role": "agent", "name": "zoe", "via": "cli"},
        "commands": [
            {"type": "task.create", "title": "One", "id": "one", "ready": True},
            {"type": "task.claim", "task": "one", "agent": "zoe"},
        ],
        "key": "k1",
        "said": {"as": "it was", "typed": 1.50},
    }
    done = house.post("/v1/do", asked)
    assert [receipt["status"] for receipt in done["receipts"]] == ["ready", "in-progress"]
    line = read_line(list(entries(house.store))[-2].line)
    assert (line.actor, line.via) == ("agent:zoe", "cli")
    assert isinstance(line.said, Raw)
    assert json.loads(bytes(line.said)) == asked["said"]
    assert house.post("/v1/do", asked) == {**done, "repeated": True}
    for body in (asked, {"unheard": "of"}):
        answer = house.ask("POST", "/v1/do", body, by="ada")
        assert (answer.status, answer.code) == (403, "not_authorized")


@proves("HTTP-DO", "SAOP-MASKED")
def test_a_turn_that_the_command_line_brings_has_no_value_that_the_hub_alone_knows(
    house: House,
) -> None:
    house.hub.redaction = Redaction(Redactor([Secret("pin", "tiger-tiger-42")], b"key"))
    turn = {
        "type": "turn.record",
        "task": "one",
        "turn_index": 0,
        "agent": "developer",
        "confidence": 0.5,
        "envelope": {"content": {"thought": "say tiger-tiger-42"}},
        "digest": "d",
    }
    done = house.post("/v1/do", {"actor": {"role": "human", "name": "lea"}, "commands": [turn]})
    assert done["receipts"][0]["masked"]
    assert done["masked"] == ["a secret was masked: content.thought (pin)"]
    assert b"tiger" not in b"".join(entry.line for entry in entries(house.store))


@proves("HTTP-DO")
def test_the_owner_calls_an_operation_in_anybody_s_name(house: House) -> None:
    house.do(CreateTask("One", ready=True, id="one"))
    path = "/v1/say?operation=saop.event&role=agent&name=zoe&via=cli"
    moved = {"type": "TASK_TRANSITION", "task_id": "one", "from_state": "ready"}
    at = "2026-02-09T12:00:00Z"
    asked = {
        "event_id": "01890a5d-ac96-774b-bcce-b302099a8057",
        "session_id": "s-1",
        "payload": {**moved, "to_state": "done", "timestamp": at},
    }
    taken = house.post(path, asked)["taken"]
    assert (taken["actor"], taken["reply"]["applied"]) == ("zoe", False)
    assert len(taken["commands"]) == len(taken["receipts"]) == 1
    line = read_line(list(entries(house.store))[-1].line)
    assert (line.actor, line.via) == ("agent:zoe", "cli")
    assert house.post(path, {})["turned"]["code"] == "invalid_envelope"
    answer = house.ask("POST", path.replace("zoe", "%3F"), asked)
    assert (answer.status, answer.code) == (422, "invalid_id")
    answer = house.ask("POST", path, asked, by="ada")
    assert (answer.status, answer.code) == (403, "not_authorized")


@proves("HTTP-DO", "ENGINE-EFFECT")
def test_what_is_to_follow_may_be_refused_alone(house: House) -> None:
    asked = {
        "actor": {"role": "agent", "name": "zoe"},
        "commands": [{"type": "mail.post", "to": ["ada"], "subject": "x", "body": "", "id": "m"}],
        "effect": [{"type": "task.heartbeat", "task": "nowhere"}],
        "key": "k2",
    }
    done = house.post("/v1/do", asked)
    assert [receipt["stream"] for receipt in done["receipts"]] == ["mail:m"]
    assert done["declined"]["code"] == "task_not_found"
    assert house.post("/v1/do", asked) == {**done, "repeated": True}


@proves("HTTP-DO")
@pytest.mark.parametrize(
    ("wrong", "path"),
    [
        ({"commands": []}, "commands"),
        ({"commands": [{"type": "task.explode"}]}, "commands[0].type"),
        ({"actor": {"role": "king", "name": "x"}}, "actor.role"),
        ({"actor": {"role": "human", "name": "?"}}, "actor"),
        ({"more": 1}, "more"),
    ],
)
def test_commands_that_are_none_are_named(
    house: House, wrong: dict[str, object], path: str
) -> None:
    asked = {
        "actor": {"role": "human", "name": "hera"},
        "commands": [{"type": "task.create", "title": "One"}],
        **wrong,
    }
    answer = house.ask("POST", "/v1/do", asked)
    assert (answer.status, answer.code) == (422, "invalid_field")
    assert answer.json.get("path", "") == path
