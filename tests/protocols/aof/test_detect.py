"""Detection of AOF/1 messages in every form, and of text that only resembles one (S-AOF-1)."""

import json
from typing import Any

import pytest

from dragoman.engine.request import Rejected
from tests.protocols.aof.hub import PARENT, AofHub, report, update
from tests.requirements import proves

pytestmark = proves("AOF-DETECT")

MESSAGE = update(progress="Half of it")
TEXT = json.dumps(MESSAGE)

FORMS: dict[str, Any] = {
    "an object": MESSAGE,
    "JSON text": TEXT,
    "JSON bytes": TEXT.encode(),
    "JSON on many lines": json.dumps(MESSAGE, indent=2),
    "space around": f"\n  {TEXT}\n",
    "the prefix": f"AOF/1 {TEXT}",
    "the prefix in bytes": f"AOF/1 {TEXT}".encode(),
    "under payload": {"event": "message_received", "payload": MESSAGE},
    "under message": {"message": MESSAGE},
    "under content": {"content": MESSAGE, "payload": "something else"},
    "text under content": {"content": TEXT},
    "prefixed text under message": {"message": f"AOF/1 {TEXT}"},
    "an event as text": json.dumps({"payload": MESSAGE}),
    "escapes that nobody needs": TEXT.replace("progress", "pro\\u0067ress"),
    "unknown fields": {**MESSAGE, "traceId": 7, "payload": {**MESSAGE["payload"], "mood": "fine"}},
}


@pytest.mark.parametrize("message", FORMS.values(), ids=FORMS)
def test_message_is_recognized_in_every_form(hub: AofHub, message: Any) -> None:
    answer = hub.accept(message)

    assert (answer.dialect, answer.kind, answer.actor) == ("aof", "status.update", "swe-backend")
    assert hub.task().notes == 1
    assert hub.types(hub.head() - 1) == ["protocol.message.received", "task.updated"]


UNRECOGNIZED: dict[str, Any] = {
    "nothing": "",
    "words": "please finish TASK-2026-02-09-057",
    "bytes": b"\x00\xff\xfe",
    "a number": "42",
    "a list": f"[{TEXT}]",
    "another object": {"protocol": "acp", "version": 1},
    "another case": {**MESSAGE, "protocol": "AOF"},
    "no protocol": {name: MESSAGE[name] for name in MESSAGE if name != "protocol"},
    "too deep in": {"payload": {"payload": MESSAGE}},
    "elsewhere in": {"body": MESSAGE},
    "words under content": {"content": "hello", "message": None, "payload": 3},
    "another text under content": {"content": '{"protocol":"acp","of":"aof"}'},
    "broken JSON of somebody": '{"protocol":"acp",',
    "the prefix without its space": f"AOF/1{TEXT}",
    "the prefix later on": f"hello AOF/1 {TEXT}",
    "another version's prefix": f"AOF/2 {TEXT}",
    "a quotation": json.dumps({"text": f"he said {TEXT}"}),
}


@pytest.mark.parametrize("message", UNRECOGNIZED.values(), ids=UNRECOGNIZED)
@proves("DIALECT-RECORD")
def test_unrecognized_message_is_ignored_and_not_recorded(hub: AofHub, message: Any) -> None:
    before = hub.lab.store.picture()

    assert hub.send(message) is None
    assert hub.lab.store.picture() == before


BROKEN: dict[str, tuple[Any, str]] = {
    "nothing after the prefix": ("AOF/1 ", "invalid_json"),
    "a byte order mark": (f"\ufeff{TEXT}", "invalid_json"),
    "a byte order mark and a prefix": (f"\ufeffAOF/1 {TEXT}", "invalid_json"),
    "words after the prefix": ("AOF/1 done!", "invalid_json"),
    "half a message": (TEXT[:-20], "invalid_json"),
    "half a message after the prefix": (f"AOF/1 {TEXT[:90]}", "invalid_json"),
    "half a message in an event": ({"content": TEXT[:-1]}, "invalid_json"),
    "half a message behind a prefix in an event": ({"content": "AOF/1 {"}, "invalid_json"),
    "a key twice": (TEXT.replace('"version": 1', '"version": 1, "version": 1'), "invalid_json"),
    "NaN": (TEXT.replace('"version": 1', '"version": NaN'), "invalid_json"),
    "half a pair": (TEXT.replace("Half", "\\ud800"), "invalid_json"),
    "half a pair in an object": ({**MESSAGE, "x": "\ud800"}, "invalid_json"),
    "not UTF-8": (TEXT.replace("Half", "@").encode().replace(b"@", b"\xff"), "invalid_json"),
    "too deep": (TEXT[:-1] + ', "x": ' + "[" * 40 + "]" * 40 + "}", "invalid_json"),
    "far too deep": (TEXT[:-1] + ', "x": ' + "[" * 9_000 + "]" * 9_000 + "}", "invalid_json"),
    "too many values": ({**MESSAGE, "x": [0] * 10_000}, "invalid_json"),
    "a long key": ({**MESSAGE, "k" * 65: 0}, "invalid_json"),
    "a huge number": ({**MESSAGE, "x": 2**53}, "invalid_json"),
    "too large": ({**MESSAGE, "x": "x" * 262_144}, "message_too_large"),
    "too large after the prefix": (f"AOF/1 {' ' * 262_144}{TEXT}", "message_too_large"),
    "another protocol after the prefix": ('AOF/1 {"protocol":"acp"}', "invalid_envelope"),
    "a list after the prefix": ("AOF/1 [1]", "invalid_envelope"),
    "null after the prefix": ("AOF/1 null", "invalid_envelope"),
    "a list behind a prefix in an event": ({"content": "AOF/1 []"}, "invalid_envelope"),
}


@pytest.mark.parametrize(("message", "code"), BROKEN.values(), ids=BROKEN)
@proves("AOF-REASONS", "DIALECT-RECORD", "JSON-STRICT")
def test_broken_aof_message_is_refused_and_logged(hub: AofHub, message: Any, code: str) -> None:
    before = hub.head()

    rejection = hub.reject(message)

    assert rejection.code == code
    assert rejection.detail
    (line,) = hub.lines(before)
    assert (line["type"], line["payload"]["reason"]) == ("protocol.message.rejected", code)
    assert line["payload"]["detail"] == rejection.detail
    assert hub.task().notes == 0


@proves("DIALECT-RECORD")
def test_invalid_sender_is_recorded_as_unknown(hub: AofHub) -> None:
    answers = [hub.reject({**report(), "fromAgent": name}) for name in ("", "a b", "x" * 500, 7)]
    answers.append(hub.reject("AOF/1 {"))

    assert {answer.actor for answer in answers} == {"unknown"}
    assert hub.lines()[-1]["actor"] == "unknown"


@proves("DIALECT-RECORD")
def test_refusal_records_the_original_text(hub: AofHub) -> None:
    message = {**report(), "version": 2, "traceId": "t-1"}
    hub.reject(message)
    hub.reject("AOF/1 {" + "x" * 5_000)

    first, second = (json.loads(e.line)["original_text"] for e in hub.lab.store.entries(0, 99)[-2:])
    assert first == message
    assert second == ("AOF/1 {" + "x" * 5_000)[:1_000]


@pytest.mark.parametrize("form", ["the prefix", "under payload", "prefixed text under message"])
def test_message_is_recorded_without_its_wrapping(hub: AofHub, form: str) -> None:
    hub.accept(FORMS[form])

    assert json.loads(hub.lab.store.entries(0, 99)[-1].line)["original_text"] == MESSAGE


def test_broken_message_without_a_sender_is_recorded_under_unknown(hub: AofHub) -> None:
    rejection = hub.router.send("AOF/1 {", via="inbox")
    assert isinstance(rejection, Rejected)
    assert rejection.kind == "aof"
    assert hub.lab.store.entries(0, 99)[-1].stream == "actor:agent:unknown"
    assert hub.task(PARENT).notes == 0
