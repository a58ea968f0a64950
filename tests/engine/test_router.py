"""Router, tested with an invented dialect; nothing here knows a real one."""

import asyncio
import json
from collections.abc import Mapping
from typing import Any, cast

import msgspec
import pytest
from msgspec import Raw, Struct
from msgspec.structs import replace

from dragoman.core.actor import Actor
from dragoman.core.agent import RegisterAgent
from dragoman.core.attempt import ClaimTask
from dragoman.core.base import Role
from dragoman.core.errors import REFUSALS
from dragoman.core.task_state import CreateTask, NoteTask, WarnTask
from dragoman.engine.forwarding import ForwardedOperation
from dragoman.engine.lint import lint_text
from dragoman.engine.operation import (
    Dialect,
    Errors,
    Facts,
    Fault,
    Linter,
    LintResult,
    MessageLimits,
    Operation,
    ParsedMessage,
    Plan,
    QueryOperation,
    RawMessage,
    always,
    validate_shape,
)
from dragoman.engine.request import Accepted, Commands, Committed, Rejected, Reply
from dragoman.engine.router import Router, needs_io
from dragoman.engine.store_facts import StoreFacts
from dragoman.ledger.entry import read_line
from dragoman.text.strict_json import MAX_BYTES, StrictJsonError
from tests.engine.lab import ALICE, BOB, HUMAN, Lab
from tests.requirements import proves

pytestmark = proves("DIALECT-DOORS")

WRITERS: frozenset[Role] = frozenset({"agent", "human"})


class Shout(Struct, frozen=True):
    """Message of the invented dialect: a note in capitals about a task."""

    task: str
    words: str
    by: str = ""


def read_shout(value: Any) -> Shout | Fault:
    """Parse a shout, or return its fault."""
    shout = validate_shape(value, Shout)
    if isinstance(shout, Fault) or shout.words.isupper():
        return shout
    return Fault("invalid_field", "too quiet", "words")


def shout_reply(shout: Shout, commands: Commands, accepted: Committed) -> Any:
    return {"heard": shout.words, "commands": len(commands), "status": accepted.receipts[0].status}


def plan_shout(shout: Shout, actor: Actor, facts: Facts) -> Plan | Fault:
    if shout.by not in ("", actor.name):
        return Fault("identity_mismatch", f"{actor.name} is not {shout.by}", "by")
    if shout.words == "FORBIDDEN":
        return Fault("not_authorized", f"{actor.name} may not say so", "words")
    note = NoteTask(shout.task, shout.words)
    if facts.file_exists(shout.task, "megaphone") or not facts.is_in_progress(shout.task):
        return Plan((note,))
    return Plan((note, WarnTask(shout.task, "no_megaphone", "there is no megaphone")))


SHOUT = Operation(
    name="shout",
    input=Shout,
    parse=read_shout,
    roles=WRITERS,
    plan=plan_shout,
    needs_io=always,
    reply=shout_reply,
    target=lambda shout: shout.task,
)


class NoArguments(Struct, frozen=True):
    """Arguments of an operation that needs no command."""


NO_OP = Operation(
    name="rest",
    input=NoArguments,
    roles=WRITERS,
    plan=lambda _, __, ___: Plan(),
    reply=lambda _, __, ___: "rested",
)


def parse_message(incoming: RawMessage) -> ParsedMessage | None:
    """Recognise an object with `shout`; the sender is in `by`."""
    value = incoming.value
    if isinstance(value, StrictJsonError) or not isinstance(value, dict):
        return None
    message = cast(Mapping[str, Any], value)
    if "shout" not in message:
        return None
    text, task = Raw(incoming.text), str(message.get("task", ""))
    read = read_shout({"task": task, "words": message["shout"], "by": message.get("by", "")})
    if isinstance(read, Fault):
        return ParsedMessage("shout", text, target=task, fault=read)
    return ParsedMessage(
        "shout", text, read.by, task, SHOUT, read, dedup_content=msgspec.json.encode(read)
    )


def lint(value: Any, kind: str, strict: bool) -> LintResult:
    return LintResult(value == kind, kind, strict)


def lint_anything(value: Any, kind: str, _strict: bool) -> LintResult:
    return LintResult(True, "", value, (), kind)


def parse_nothing(_: RawMessage) -> ParsedMessage | None:
    return None


CODES = {code: code.upper() for code in REFUSALS}
SHOUT_DIALECT = Dialect("shouting", (SHOUT, NO_OP), parse_message, errors=Errors(CODES))
SILENT_DIALECT = Dialect("mute", (), parse_nothing, lint=Linter(lint))


class RouterWorld:
    """Task T held by alice, and a router for the invented dialect."""

    def __init__(self) -> None:
        self.lab = Lab()
        self.has_megaphone = True
        facts = StoreFacts(self.lab.store, lambda _task, _ref: self.has_megaphone)
        self.router = Router(self.lab.hub, (SILENT_DIALECT, SHOUT_DIALECT), facts)
        self.lab.do(HUMAN, CreateTask("t", "T", ready=True))
        self.lab.do(ALICE, ClaimTask("T", "alice"))

    def send(
        self, message: Any, speaker: Actor | None = None, *, soon: bool = False
    ) -> Reply | None:
        """Send a message, by the sync or the async method."""
        if soon:
            return asyncio.run(self.router.send_async(message, speaker=speaker, via="test"))
        return self.router.send(message, speaker=speaker, via="test")

    def call(
        self, name: str, arguments: Any, actor: Actor = ALICE, *, key: str = "", soon: bool = False
    ) -> Reply:
        """Call an operation, by the sync or the async method."""
        if soon:
            return asyncio.run(self.router.call_async(name, arguments, actor, key=key))
        return self.router.call(name, arguments, actor, key=key)

    def events(self) -> list[tuple[str, str]]:
        """List actor and event name of every entry."""
        lines = (read_line(entry.line) for entry in self.lab.store.entries(0, 99))
        return [(line.actor, line.event) for line in lines]


@pytest.fixture
def world() -> RouterWorld:
    return RouterWorld()


FORWARDED_REPLY = Accepted("shouting", "whisper", "alice", (), "heard elsewhere")
SHOUT_MESSAGE = {"shout": "WELL DONE", "task": "T", "by": "alice"}
ARGUMENTS = {"task": "T", "words": "WELL DONE"}

alone_and_together = pytest.mark.parametrize("soon", [False, True], ids=["alone", "together"])


@alone_and_together
def test_message_runs_its_commands(world: RouterWorld, soon: bool) -> None:
    answer = world.send(SHOUT_MESSAGE, soon=soon)

    assert isinstance(answer, Accepted)
    assert (answer.dialect, answer.kind, answer.actor) == ("shouting", "shout", "alice")
    assert answer.reply == {"heard": "WELL DONE", "commands": 1, "status": "in-progress"}
    assert [receipt.task for receipt in answer.receipts] == ["T"]
    assert (answer.warnings, answer.repeated) == ((), False)
    assert world.events()[-1] == ("agent:alice", "task.noted")
    line = read_line(world.lab.store.entries(0, 99)[-1].line)
    assert line.via == "test"
    assert json.loads(world.lab.store.entries(0, 99)[-1].line)["original_text"] == SHOUT_MESSAGE


@alone_and_together
def test_operation_is_called_by_name(world: RouterWorld, soon: bool) -> None:
    answer = world.call("shout", ARGUMENTS, soon=soon)

    assert isinstance(answer, Accepted)
    assert answer.reply["heard"] == "WELL DONE"
    assert world.events()[-1] == ("agent:alice", "task.noted")


@alone_and_together
def test_message_may_be_called_by_its_kind(world: RouterWorld, soon: bool) -> None:
    world.send(SHOUT_MESSAGE)
    again = world.call("shout", SHOUT_MESSAGE, soon=soon)

    assert isinstance(again, Accepted)
    assert again.repeated


@alone_and_together
def test_unrecognized_message_leaves_no_trace(world: RouterWorld, soon: bool) -> None:
    before = world.lab.store.picture()
    for message in (b"", b"hello", "{", '{"whisper": 1}', {"whisper": 1}, b"\xff"):
        assert world.send(message, soon=soon) is None
    assert world.lab.store.picture() == before


@alone_and_together
@proves("DIALECT-RECORD")
def test_faulty_message_is_refused_and_recorded_with_dialect_codes(
    world: RouterWorld, soon: bool
) -> None:
    answer = world.send({"shout": "hush", "task": "T"}, ALICE, soon=soon)

    assert answer == Rejected(
        dialect="shouting",
        kind="shout",
        code="INVALID_FIELD",
        detail="words: too quiet",
        path="words",
        actor="alice",
        ours="invalid_field",
    )
    assert world.events()[-1] == ("agent:alice", "command.refused")
    line = json.loads(world.lab.store.entries(0, 99)[-1].line)
    assert line["original_text"] == {"shout": "hush", "task": "T"}


@alone_and_together
@proves("DIALECT-RECORD")
def test_core_refusal_is_translated_to_dialect_codes(world: RouterWorld, soon: bool) -> None:
    answer = world.send(SHOUT_MESSAGE | {"task": "nope"}, soon=soon)

    assert isinstance(answer, Rejected)
    assert (answer.code, answer.path, answer.actor) == ("TASK_NOT_FOUND", "", "alice")


@alone_and_together
def test_operation_may_need_no_command(world: RouterWorld, soon: bool) -> None:
    before = world.lab.store.head()
    answer = world.call("rest", {}, soon=soon)

    assert isinstance(answer, Accepted)
    assert (answer.reply, answer.receipts) == ("rested", ())
    assert world.lab.store.head() == before


@alone_and_together
def test_unknown_operation_is_refused_with_the_known_ones(world: RouterWorld, soon: bool) -> None:
    answer = world.call("sing" + "!" * 100, {}, soon=soon)

    assert isinstance(answer, Rejected)
    assert answer.code == "unknown_type"
    assert "known: shout, rest" in answer.detail


def test_credential_takes_precedence_over_the_named_sender(world: RouterWorld) -> None:
    bob = {"shout": "HELLO", "task": "T", "by": "bob"}
    assert isinstance(world.send(bob), Accepted)
    assert world.events()[-1] == ("agent:bob", "task.noted")
    answer = world.send(bob, ALICE)
    assert isinstance(answer, Rejected)
    assert (answer.code, answer.path) == ("IDENTITY_MISMATCH", "by")


@proves("DIALECT-RECORD")
def test_message_without_a_sender_uses_the_default_or_is_refused(world: RouterWorld) -> None:
    anonymous = {"shout": "HELLO YOU", "task": "T"}

    answer = world.send(anonymous)

    assert isinstance(answer, Rejected)
    assert (answer.code, answer.actor) == ("UNAUTHENTICATED", "unknown")
    assert "inbox/NAME/" in answer.detail
    assert world.events()[-1] == ("agent:unknown", "command.refused")
    assert isinstance(world.router.send(anonymous, default_actor=HUMAN), Accepted)
    assert world.events()[-1] == (HUMAN.label, "task.noted")


def test_named_sender_acts_in_its_registered_role(world: RouterWorld) -> None:
    world.lab.do(HUMAN, RegisterAgent("boss", "orchestrator"))
    answer = world.send(SHOUT_MESSAGE | {"by": "boss"})

    assert isinstance(answer, Rejected)
    assert answer.code == "NOT_AUTHORIZED"
    assert world.events()[-1] == ("orchestrator:boss", "command.refused")


def test_missing_task_is_reported_before_missing_rights(world: RouterWorld) -> None:
    observer = Actor("observer", "olga")
    answer = world.send(SHOUT_MESSAGE | {"task": "nope"}, observer)
    assert isinstance(answer, Rejected)
    assert answer.code == "TASK_NOT_FOUND"


def test_facts_add_commands_or_a_fault(world: RouterWorld) -> None:
    world.has_megaphone = False
    warned = world.send(SHOUT_MESSAGE)
    assert isinstance(warned, Accepted)
    assert warned.warnings == ("there is no megaphone",)
    assert len(warned.receipts) == 2

    refused = world.call("shout", ARGUMENTS | {"words": "FORBIDDEN"})
    assert isinstance(refused, Rejected)
    assert (refused.code, refused.path) == ("NOT_AUTHORIZED", "words")

    world.lab.do(HUMAN, CreateTask("u", "U", ready=True))
    idle = world.send({"shout": "HELLO", "task": "U", "by": "alice"})
    assert isinstance(idle, Accepted)
    assert idle.warnings == ()


@alone_and_together
def test_message_with_the_same_content_is_a_repeat(world: RouterWorld, soon: bool) -> None:
    world.send(SHOUT_MESSAGE)
    before = world.lab.store.head()
    world.has_megaphone = False
    again = world.send(json.dumps(SHOUT_MESSAGE, indent=2), soon=soon)

    assert isinstance(again, Accepted)
    assert again.repeated
    assert world.lab.store.head() == before


@alone_and_together
def test_calls_are_repeated_by_their_key(world: RouterWorld, soon: bool) -> None:
    for _ in range(2):
        world.call("shout", ARGUMENTS, soon=soon)
    assert world.lab.task("T").notes == 2
    answers = [world.call("shout", ARGUMENTS, key="k", soon=soon) for _ in range(2)]

    assert [isinstance(answer, Accepted) and answer.repeated for answer in answers] == [False, True]
    assert world.lab.task("T").notes == 3


@alone_and_together
def test_caller_key_takes_precedence_over_the_content_key(world: RouterWorld, soon: bool) -> None:
    for shout in (SHOUT_MESSAGE, SHOUT_MESSAGE):
        answer = world.call("shout", shout, key="one", soon=soon)
        assert isinstance(answer, Accepted)
    assert world.lab.task("T").notes == 1
    world.call("shout", SHOUT_MESSAGE, key="two", soon=soon)
    assert world.lab.task("T").notes == 2, "the same words under another key are said anew"
    other = world.call("shout", SHOUT_MESSAGE | {"shout": "HO"}, key="one", soon=soon)
    assert isinstance(other, Rejected)
    assert other.code == "KEY_REUSED"


@alone_and_together
def test_keyed_repeat_ignores_changed_facts(world: RouterWorld, soon: bool) -> None:
    world.has_megaphone = False
    assert isinstance(world.call("shout", ARGUMENTS, key="k", soon=soon), Accepted)
    world.has_megaphone = True
    again = world.call("shout", ARGUMENTS, key="k", soon=soon)
    assert isinstance(again, Accepted)
    assert again.repeated


def test_router_refuses_and_records_roles_it_does_not_admit(world: RouterWorld) -> None:
    facts = StoreFacts(world.lab.store, lambda _task, _ref: True)
    router = Router(
        world.lab.hub,
        (SHOUT_DIALECT,),
        facts,
        admitted_roles=frozenset[Role]({"agent", "observer"}),
    )
    world.lab.do(HUMAN, RegisterAgent("hera", "human"))

    for speaker in (None, Actor("human", "hera", "slot")):
        answer = router.send(SHOUT_MESSAGE | {"by": "hera"}, speaker=speaker, via="slot")
        assert isinstance(answer, Rejected)
        assert answer.code == "NOT_AUTHORIZED"
        assert "human:hera cannot send through the slot" in answer.detail
    assert world.events()[-1] == ("human:hera", "command.refused")
    assert world.lab.task("T").notes == 0
    assert isinstance(router.send(SHOUT_MESSAGE, via="slot"), Accepted)


@pytest.mark.parametrize(
    ("arguments", "code", "path"),
    [
        ("{", "INVALID_JSON", ""),
        ('{"a":1,"a":1}', "INVALID_JSON", "a"),
        ({"words": {1, 2}}, "INVALID_JSON", ""),
        ({"words": "\ud800"}, "INVALID_JSON", ""),
        (b" " * 262_145, "MESSAGE_TOO_LARGE", ""),
        ({"words": 1}, "INVALID_FIELD", "words"),
        (ARGUMENTS | {"by": "bob"}, "IDENTITY_MISMATCH", "by"),
    ],
)
@proves("DIALECT-RECORD")
def test_bad_arguments_are_refused_and_recorded(
    world: RouterWorld, arguments: Any, code: str, path: str
) -> None:
    before = world.lab.store.head()
    answer = world.call("shout", arguments)

    assert isinstance(answer, Rejected)
    assert (answer.code, answer.path) == (code, path)
    assert world.lab.store.head() == before + 1


@proves("HUB-CLI")
@pytest.mark.parametrize("soon", [False, True])
def test_operation_is_forwarded_while_a_hub_runs(world: RouterWorld, *, soon: bool) -> None:
    answers: list[Reply | None] = [FORWARDED_REPLY, FORWARDED_REPLY, None]
    forwarded: list[ForwardedOperation] = []

    def forward(operation: ForwardedOperation) -> Reply | None:
        forwarded.append(operation)
        return answers.pop(0)

    facts = StoreFacts(world.lab.store, lambda _task, _ref: True)
    status = QueryOperation(
        name="status", input=NoArguments, roles=WRITERS, plan=lambda _, __, ___: "loud"
    )
    world.router = Router(
        world.lab.hub,
        (replace(SHOUT_DIALECT, operations=(SHOUT, status)),),
        facts,
        forward=forward,
    )
    assert world.call("shout", ARGUMENTS, key="k", soon=soon) is FORWARDED_REPLY
    assert world.send(SHOUT_MESSAGE, soon=soon) is FORWARDED_REPLY
    assert [(one.actor.name, one.operation, one.key) for one in forwarded] == [
        ("alice", "shout", "k"),
        ("alice", "shout", ""),
    ]
    assert [json.loads(one.words) for one in forwarded] == [ARGUMENTS, SHOUT_MESSAGE]
    before = world.lab.store.head()
    # The hub has stopped: the operation runs here.
    assert isinstance(world.call("shout", ARGUMENTS, soon=soon), Accepted)
    assert world.lab.store.head() > before
    # Faulty arguments and queries are never forwarded.
    assert isinstance(world.call("shout", {"words": "quiet", "task": "T"}, soon=soon), Rejected)
    assert isinstance(world.call("status", {}, soon=soon), Accepted)
    assert len(forwarded) == 3


def test_many_callers_share_commits(world: RouterWorld) -> None:
    async def send_all() -> list[Reply | None]:
        shouts = [SHOUT_MESSAGE | {"shout": "N" * n} for n in range(1, 40)]
        return await asyncio.gather(*(world.router.send_async(shout) for shout in shouts))

    before = world.lab.store.transactions
    answers = asyncio.run(send_all())

    assert all(isinstance(answer, Accepted) for answer in answers)
    assert world.lab.task("T").notes == 39
    assert world.lab.store.transactions - before < 39


def test_message_is_parsed_first_and_answered_later(world: RouterWorld) -> None:
    assert world.router.parse(SHOUT_MESSAGE, dialect="mute") is None
    routed = world.router.parse(SHOUT_MESSAGE, dialect="shouting")
    assert routed is not None
    assert (routed.dialect.name, routed.ordering_key) == ("shouting", "T")
    assert needs_io(routed.parsed, ALICE), "whether there is a megaphone"
    quiet = world.router.parse(SHOUT_MESSAGE | {"shout": "hello"}, dialect="shouting")
    assert quiet is not None
    assert not needs_io(quiet.parsed, ALICE), "what is refused as it is"
    before = world.events()
    answer = asyncio.run(world.router.route_async(routed, ALICE, key="k"))
    assert isinstance(answer, Accepted)
    assert world.events() == [*before, ("agent:alice", "task.noted")]


def test_lint_reports_invalid_json() -> None:
    assert lint_text(SILENT_DIALECT, b'"k"', "k", strict=True) == LintResult(True, "k", True)
    linted = lint_text(SILENT_DIALECT, b'{"a":1,"a":1}', "k", strict=False)
    assert (linted.ok, linted.issues) == (False, (DUPLICATE_KEY,))


DUPLICATE_KEY = {"path": "a", "reason": "this key stands twice in its object"}


def test_lenient_dialect_lints_any_readable_text() -> None:
    lenient = replace(SILENT_DIALECT, lint=Linter(lint_anything, accepts_any_text=True))
    read = lint_text(lenient, b'{"a":1,"a":2}', "k", strict=False)
    assert read == LintResult(True, "", {"a": 2}, (DUPLICATE_KEY,), "k")
    assert lint_text(lenient, b"{", "k", strict=False).message == {}
    assert lint_text(lenient, b'{"a":1,"a":2}', "k", strict=True) == LintResult(
        False, "", None, (DUPLICATE_KEY,)
    )


def test_lint_checks_the_size_limit_of_each_kind() -> None:
    long = replace(NO_OP, limits=MessageLimits(2 * MAX_BYTES))
    wide = replace(
        SILENT_DIALECT,
        operations=(SHOUT, long),
        lint=Linter(lint_anything, operation_of_type={"short": SHOUT}),
    )
    for kind, size, ok in (
        ("short", MAX_BYTES, True),
        ("short", MAX_BYTES + 1, False),
        ("long", MAX_BYTES + 1, True),
        ("long", 2 * MAX_BYTES + 1, False),
    ):
        linted = lint_text(wide, b'"' + b"x" * (size - 2) + b'"', kind, strict=False)
        assert (linted.ok, bool(linted.issues)) == (ok, not ok)


def test_store_facts_reflect_the_store(world: RouterWorld) -> None:
    facts = StoreFacts(world.lab.store, lambda task, ref: (task, ref) == ("T", "x"))
    lab = world.lab
    for number in range(3):
        lab.do(HUMAN, CreateTask("t", f"S{number}", ready=True))
    lab.do(ALICE, ClaimTask("S0", "alice", "s-1"))
    lab.do(BOB, ClaimTask("S1", "bob", "s-1"))
    own = {name: lab.task(name).aof_id for name in ("T", "S0", "S1")}

    assert facts.task_exists("T")
    assert not facts.task_exists("nope")
    assert (facts.is_in_progress("T"), facts.is_in_progress("S2")) == (True, False)
    assert not facts.is_in_progress("nope")
    assert (facts.file_exists("T", "x"), facts.file_exists("T", "y")) == (True, False)
    assert sorted(facts.tasks_held_in_session("s-1")) == sorted([own["S0"], own["S1"]])
    assert facts.tasks_held_in_session("s-1", "bob") == [own["S1"]]
    assert facts.tasks_held_in_session("s-1", task="S0") == [own["S0"]]
    assert facts.tasks_held_in_session("s-2") == []
    assert facts.reported_tasks() == []
    assert facts.resolve_actor("eve", "inbox") == Actor("agent", "eve", "inbox")


def test_dialect_without_a_linter_is_linted_by_its_parser() -> None:
    good = b'{"shout": "HELLO", "task": "T"}'
    assert lint_text(SHOUT_DIALECT, good, "shout", strict=True).ok
    for message, kind, reason in (
        (good, "whisper", "this is no whisper"),
        (b'{"shout": "hello", "task": "T"}', "", "too quiet"),
        (b'{"sing": "HELLO"}', "", "it is no message of shouting"),
        (b'"HELLO"', "", "it is no message of shouting"),
    ):
        linted = lint_text(SHOUT_DIALECT, message, kind, strict=True)
        assert not linted.ok
        assert reason in linted.issues[0]["reason"]


def test_text_is_linted_by_the_parser_of_a_dialect_that_recognises_it() -> None:
    def parse(raw: RawMessage) -> ParsedMessage | None:
        return ParsedMessage("call", Raw(b'""')) if raw.text.startswith(b"call ") else None

    spoken = replace(SHOUT_DIALECT, parse=parse)
    assert lint_text(spoken, b"call HELLO", "", strict=True) == LintResult(
        True, "call", "call HELLO"
    )
    issue = {"path": "", "reason": "this is no shout"}
    assert lint_text(spoken, b"call HELLO", "shout", strict=True).issues == (issue,)
    assert not lint_text(spoken, b"cry HELLO", "", strict=True).ok


def test_task_of_a_sender_that_is_not_admitted_is_looked_up_in_a_thread() -> None:
    parsed = parse_message(RawMessage({"shout": "HELLO", "task": "T"}))
    assert parsed is not None
    assert needs_io(parsed, Actor("observer", "olga"))
    assert not needs_io(replace(parsed, target=""), Actor("observer", "olga"))
