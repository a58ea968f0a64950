"""Redaction of requests: no entry holds a secret, and no signed message is changed."""

import json
from typing import Any, cast

import msgspec
import pytest
from msgspec import UNSET, Raw, inspect

from dragoman.core.actor import HUB_ACTOR, Actor, MessageReceived, RejectMessage
from dragoman.core.attempt import ExpireLease, ReportOutcome
from dragoman.core.base import OTHER_TEXT_FIELDS, Command
from dragoman.core.deciders import DECIDERS
from dragoman.core.delegation import RequestDelegation
from dragoman.core.errors import Refusal, Refused
from dragoman.core.ids import check_session
from dragoman.core.mail import PostMail
from dragoman.core.reservation import ReserveFiles
from dragoman.core.task_state import AdoptTask, CreateTask, NoteTask
from dragoman.core.wave import StartWave, WaveBead
from dragoman.engine.redaction import RequestRedactor, SecretName, SecretNameFinder
from dragoman.engine.request import Request
from dragoman.text.redact import Redactor, Secret
from tests.core.world import HUMAN
from tests.engine.lab import ALICE, Lab
from tests.requirements import proves
from tests.text import secrets_corpus as corpus

TOKEN = "ghp_" + "a1B2" * 9
REDACTION = RequestRedactor(Redactor([Secret("pin", "tiger-tiger-42")], b"key"))


def entries(lab: Lab) -> bytes:
    """Join all lines of the ledger."""
    return b"\n".join(entry.line for entry in lab.store.entries(0, 1_000))


@proves("REDACT-REQUESTS")
def test_secrets_in_commands_are_masked_and_reported() -> None:
    lab = Lab()
    warnings = list[str]()
    lab.hub.redaction.on_masked = warnings.append
    commands = (
        CreateTask(f"use {TOKEN}", id="t", body=f"password: hunter22x and {TOKEN}"),
        NoteTask("t", f"it was {TOKEN}"),
        PostMail(
            ("bob",), f"about {TOKEN}", f"take {TOKEN}", attachments=(f"https://u:{TOKEN}@h",)
        ),
    )
    done = lab.hub.submit(HUMAN, *commands)
    assert TOKEN.encode() not in entries(lab)
    assert b"hunter22x" not in entries(lab)
    assert b"[REDACTED:github_token:" in entries(lab)
    assert "a secret was masked: title (github_token)" in done.redaction_warnings
    assert warnings == list(done.redaction_warnings)
    assert lab.hub.submit(HUMAN, NoteTask("t", "plain")).redaction_warnings == ()


@proves("REDACT-REQUESTS")
def test_original_text_is_redacted_in_any_spelling() -> None:
    for original_text in (
        json.dumps({"notes": f"see {TOKEN}", "n": 1}),
        json.dumps({"notes": f"see {TOKEN}"}).replace("ghp_", "\\u0067hp_"),
        json.dumps(f"see {TOKEN}"),
    ):
        lab = Lab()
        request = lab.hub.make_request(
            HUMAN, CreateTask("T", id="t"), original_text=Raw(original_text.encode())
        )
        assert request.original_text is not UNSET
        kept = msgspec.json.decode(bytes(request.original_text))
        assert TOKEN not in json.dumps(kept)
        assert request.redaction_warnings
        assert lab.hub.redaction.redact(request).original_text == request.original_text


@proves("REDACT-REQUESTS")
def test_request_without_a_secret_is_unchanged() -> None:
    lab = Lab()
    original_text = b'{"a": "b\\u00e9c", "id": "0197f5d2-8c1a-7b3e-9f42-1234567890ab"}'
    plain = Raw(b'{"notes": "all is well"}')
    for text in (Raw(original_text), plain, UNSET):
        request = lab.hub.make_request(HUMAN, NoteTask("t", "all is well"), original_text=text)
        assert REDACTION.redact(request) is request


@proves("REDACT-REQUESTS")
def test_secret_among_many_commands_is_found_as_alone() -> None:
    neighbours = ("", "pass", "it -p", "a word", "==", "0")
    cases = [*corpus.prefixed(each=1), *corpus.generic(each=5)]
    assert len(cases) > 100
    for number, case in enumerate(cases):
        alone = REDACTION.redact(Request(HUMAN, (NoteTask("t", case.text),), "k"))
        before, after = (neighbours[(number // by) % len(neighbours)] for by in (1, 6))
        notes = tuple(NoteTask("t", text) for text in (before, case.text, after))
        masked = REDACTION.redact(Request(HUMAN, notes, "k"))
        assert masked.commands[1] == alone.commands[0]


@proves("REDACT-REQUESTS")
def test_lists_and_objects_keep_their_types() -> None:
    lab = Lab()
    report = ReportOutcome(
        "t", "blocked", f"tried {TOKEN}", ("ok", TOKEN), {"log": {"token": "k3Jx9aQw1"}, "n": 3}
    )
    delegation = RequestDelegation("t", "p", "bob", 1, constraints=("tiger-tiger-42",))
    request = REDACTION.redact(lab.hub.make_request(HUMAN, report, effect=(delegation,)))
    (masked,), (delegated,) = request.commands, request.effect
    assert isinstance(masked, ReportOutcome)
    assert isinstance(delegated, RequestDelegation)
    assert masked.blockers[0] == "ok"
    assert masked.blockers[1].startswith("[REDACTED:github_token:")
    log: Any = masked.details["log"]
    assert log["token"].startswith("[REDACTED:token:")
    assert masked.details["n"] == 3
    assert delegated.constraints[0].startswith("[REDACTED:pin:")


@proves("REDACT-SIGNED")
def test_secret_in_a_signed_message_is_refused_with_its_path() -> None:
    refusal = REDACTION.check_document({"payload": {"notes": [f"see {TOKEN}"]}})
    assert isinstance(refusal, Refusal)
    assert refusal.code == "policy_violation"
    assert refusal.detail.startswith("payload.notes[0] holds a secret (github_token)")
    assert TOKEN not in refusal.detail
    in_key = REDACTION.check_document({TOKEN: 1})
    assert in_key is not None
    assert in_key.detail.startswith("a key holds a secret")
    assert REDACTION.check_document({"payload": {"hash": "9f" * 32}}) is None


@proves("REDACT-REQUESTS")
def test_free_text_fields_exist_in_their_commands() -> None:
    commands = set(DECIDERS)
    for command in commands:
        assert set(command.free_text) <= set(command.__struct_fields__)
    written = {"body", "notes", "reason", "text", "title", "subject", "detail", "description"}
    for command in commands:
        assert command.free_text or not written & set(command.__struct_fields__), command
    for command in commands:
        shape = cast(inspect.StructType, inspect.type_info(command))
        anything = {field.name for field in shape.fields if accepts_any_json(field.type)}
        assert anything <= {*command.free_text, *OTHER_TEXT_FIELDS}, command


def accepts_any_json(shape: inspect.Type) -> bool:
    """Return True if a value of this type can be, or contain, any JSON."""
    match shape:
        case inspect.AnyType():
            return True
        case inspect.DictType():
            return accepts_any_json(shape.value_type)
        case inspect.VarTupleType():
            return accepts_any_json(shape.item_type)
        case inspect.UnionType():
            return any(map(accepts_any_json, shape.types))
        case inspect.StructType():
            return any(accepts_any_json(field.type) for field in shape.fields)
        case _:
            return False


COMMANDS_NAMED_BY_SECRETS: tuple[Command, ...] = (
    CreateTask("T", id=TOKEN),
    CreateTask("T", blocked_by=("a", TOKEN)),
    NoteTask(TOKEN, "x"),
    PostMail(("bob", f"x y {TOKEN}"), "s", "b"),
    PostMail(("bob",), "s", "b", thread=TOKEN),
    PostMail(("bob",), "s", "b", bead="tiger-tiger-42"),
    ReserveFiles((f"../{TOKEN}",), 1_000),
    ReserveFiles(("/x/password=z9Q2vT7k1Lp",), 1_000),
    StartWave((WaveBead("k-2", (f"../{TOKEN}",)),), 1),
    StartWave((WaveBead("k-2"),), 1, retries={TOKEN: 1}),
    AdoptTask("bead", TOKEN),
)


@pytest.mark.parametrize(
    "command", COMMANDS_NAMED_BY_SECRETS, ids=range(len(COMMANDS_NAMED_BY_SECRETS))
)
@pytest.mark.parametrize("has_text", [True, False])
@proves("REDACT-NAMES")
def test_secret_in_a_name_is_refused_and_not_recorded(command: Command, *, has_text: bool) -> None:
    lab = Lab()
    lab.hub.redaction = REDACTION
    text = msgspec.json.encode({"words": msgspec.json.encode(command).decode()})
    original_text = Raw(text) if has_text else UNSET
    with pytest.raises(Refused) as refused:
        lab.hub.submit(HUMAN, command, original_text=original_text)
    assert refused.value.code == "policy_violation"
    assert "holds a secret (" in refused.value.detail
    kept = entries(lab)
    assert b'"code":"policy_violation"' in kept
    for secret in (TOKEN, "z9Q2vT7k1Lp", "tiger-tiger-42"):
        assert secret[:12] not in refused.value.detail
        assert secret[:12].encode() not in kept


@proves("REDACT-NAMES")
def test_secret_in_actor_or_key_is_refused() -> None:
    lab = Lab()
    for actor, key in ((Actor("agent", TOKEN), ""), (ALICE, TOKEN)):
        with pytest.raises(Refused, match="policy_violation"):
            lab.hub.submit(actor, CreateTask("T"), key=key)
    assert [stream for stream, _ in lab.lines()] == ["actor:agent:unknown", "actor:agent:alice"]
    assert TOKEN.encode() not in entries(lab)


@proves("REDACT-NAMES")
def test_system_commands_may_name_a_secret() -> None:
    lab = Lab()
    request = lab.hub.make_request(HUB_ACTOR, ExpireLease(TOKEN))
    assert request.commands == (ExpireLease(TOKEN),)


@proves("REDACT-NAMES")
def test_refused_message_keeps_its_kind_without_the_secret() -> None:
    receipt = MessageReceived("aof", "status.update", TOKEN)
    original_text = Raw(msgspec.json.encode({"taskId": TOKEN}))
    request = Lab().hub.make_request(
        ALICE, NoteTask(TOKEN, "x"), original_text=original_text, receipt_event=receipt, key="k"
    )
    (rejection,) = request.commands
    assert isinstance(rejection, RejectMessage)
    assert rejection.kind == "status.update"
    assert rejection.target.startswith("[REDACTED:github_token:")
    assert request.receipt_event is None


@proves("REDACT-NAMES")
def test_quoted_message_text_contains_no_part_of_a_secret() -> None:
    original_text = Raw(
        msgspec.json.encode({"session_id": f"x y {TOKEN}", "kind": "somewhere-else"})
    )
    malformed = check_session(f"x y {TOKEN}")
    assert malformed is not None
    assert TOKEN[:30] in malformed.detail
    rejection = RejectMessage(malformed.code, malformed.detail + " somewhere-else", TOKEN[:20], "k")
    (kept,) = REDACTION.redact(
        Lab().hub.make_request(ALICE, rejection, original_text=original_text)
    ).commands
    assert isinstance(kept, RejectMessage)
    assert kept.detail.startswith("'x y [REDACTED]")
    assert kept.detail.endswith("ASCII only somewhere-else")
    assert kept.target == "[REDACTED]"


@proves("NAMES-ORDINARY")
@pytest.mark.parametrize(
    "name",
    [
        "sk-learn-pipeline-migration-to-the-new-model-api",
        "sbp_payment_reconciliation",
        "build-0cc175b9c0f1b6a831c399e269772661-us2",
        "token:01ARZ3NDEKTSV4RRFFQ69G5FAV",
        "token:bd-a1b2.3",
        "secret:JIRA-12345",
        "password:reset-895c29eb",
        "key-0cc175b9c0f1b6a831c399e269772661",
    ],
)
def test_ordinary_names_are_not_secrets(name: str) -> None:
    names = SecretNameFinder(Redactor())
    request = Request(HUMAN, (CreateTask("One", aliases=(name,)),), "r", key=name)
    assert names.find(request, in_commands=True) is None


@proves("NAMES-ORDINARY")
@pytest.mark.parametrize("key", [f"ghp_{'Zz9Yy8Xx7' * 4}", f"sk-{'Zz9Yy8Xx7' * 5}"])
def test_credential_inside_a_name_is_a_secret(key: str) -> None:
    for request in (
        Request(HUMAN, (CreateTask("One", aliases=(f"branch:{key}",)),), "r"),
        Request(HUMAN, (CreateTask("One"),), "r", key=key),
    ):
        assert SecretNameFinder(Redactor()).find(request, in_commands=True) is not None


@proves("NAMES-ORDINARY")
def test_numbers_among_names_are_not_secrets() -> None:
    wave = StartWave((WaveBead("k-2", ("src/x.py",)),), 1, retries={"TESTS_FAIL": 1})
    assert SecretNameFinder(Redactor()).find(Request(HUMAN, (wave,), "r"), in_commands=True) is None


@proves("NAMES-ORDINARY")
@pytest.mark.parametrize("number", ["007", "00001234", "99999999"])
def test_task_number_is_a_secret_only_if_known(number: str) -> None:
    name = f"TASK-2026-02-09-{number}"
    request = Request(HUMAN, (NoteTask(name, "x"),), "r")
    assert Redactor().text(name).found == ()
    assert SecretNameFinder(Redactor()).find(request, in_commands=True) is None
    known = Redactor([Secret("pin", f"09-{number}")])
    assert SecretNameFinder(known).find(request, in_commands=True) == SecretName("task", "pin")


@proves("REDACT-REQUESTS", "REDACT-DOORS")
@pytest.mark.parametrize(
    "said",
    ['["curl", "-u", "bob:txQdpkzALEkcGV8x", "https://h/x"]', "x\ncurl -u bob:txQdpkzALEkcGV8x"],
)
def test_escapes_of_json_hide_no_secret(said: str) -> None:
    request = Request(
        ALICE, (NoteTask("T", said),), "r", original_text=Raw(msgspec.json.encode({"a": said}))
    )
    redacted = REDACTION.redact(request)
    assert b"txQdpkzALEkcGV8x" not in msgspec.json.encode(redacted.commands)
    assert b"txQdpkzALEkcGV8x" not in bytes(cast(Raw, redacted.original_text))


@proves("REDACT-REQUESTS", "REDACT-DOORS")
@pytest.mark.parametrize(
    ("body", "is_kept"),
    [
        ('{"a":"[\\"curl\\", \\"-u\\", \\"bob:txQdpkzALEkcGV8x\\"]"}', False),
        ('{"a":"the pin is tiger-tiger-42"}', False),
        ('{"a":"nothing of that kind"}', True),
        ("[not JSON]", True),
    ],
)
def test_secrets_in_a_text_that_is_json_are_masked(body: str, *, is_kept: bool) -> None:
    mail = PostMail(("bob",), "password=tiger-tiger-42", body, id="m")
    (redacted,) = REDACTION.redact(Request(ALICE, (mail,), "r")).commands
    masked = cast(PostMail, redacted)
    assert "tiger-tiger-42" not in masked.subject
    assert (masked.body == body) is is_kept
    assert "txQdpkzALEkcGV8x" not in masked.body
