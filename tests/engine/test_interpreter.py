"""The doors of every dialect, tried with one that is made up: nothing here knows a real one."""

import asyncio
import json
from collections.abc import Mapping
from typing import Any, cast

import msgspec
import pytest
from msgspec import Raw, Struct
from msgspec.structs import replace

from dragoman.core.actors import Actor
from dragoman.core.commands import ClaimTask, CreateTask, NoteTask, RegisterAgent, WarnTask
from dragoman.core.errors import REFUSALS
from dragoman.core.events import Role
from dragoman.engine.errand import Say
from dragoman.engine.facts import StoreFacts
from dragoman.engine.faults import Fault, in_shape
from dragoman.engine.incoming import Incoming
from dragoman.engine.interpreter import Interpreter
from dragoman.engine.operation import (
    Bounds,
    Commands,
    Dialect,
    Facts,
    Heard,
    Linted,
    Operation,
    lint_text,
)
from dragoman.engine.plan import Answer, Taken, Turned
from dragoman.engine.request import Accepted
from dragoman.ledger.entry import read_line
from dragoman.text.strict_json import MOST_BYTES, StrictJsonError
from tests.engine.lab import ALICE, BOB, HUMAN, Lab
from tests.requirements import proves

pytestmark = proves("DIALECT-DOORS")

WRITERS: frozenset[Role] = frozenset({"agent", "human"})


class Shout(Struct, frozen=True):
    """What the made-up dialect can say: a note in capitals about a task."""

    task: str
    words: str
    by: str = ""


def read_shout(value: Any) -> Shout | Fault:
    """A shout, or what is wrong with it."""
    shout = in_shape(value, Shout)
    if isinstance(shout, Fault) or shout.words.isupper():
        return shout
    return Fault("invalid_field", "too quiet", "words")


def shout_commands(shout: Shout) -> Commands:
    return (NoteTask(shout.task, shout.words),)


def shout_reply(shout: Shout, commands: Commands, accepted: Accepted) -> Any:
    return {"heard": shout.words, "commands": len(commands), "status": accepted.receipts[0].status}


def shout_identity(shout: Shout, speaker: str) -> Fault | None:
    if shout.by in ("", speaker):
        return None
    return Fault("identity_mismatch", f"{speaker} is not {shout.by}", "by")


def shout_facts(shout: Shout, actor: Actor, facts: Facts) -> Commands | Fault:
    if shout.words == "FORBIDDEN":
        return Fault("not_authorized", f"{actor.name} may not say so", "words")
    if facts.file_exists(shout.task, "megaphone") or not facts.is_in_progress(shout.task):
        return ()
    return (WarnTask(shout.task, "no_megaphone", "there is no megaphone"),)


SHOUT = Operation(
    name="shout",
    shape=Shout,
    read=read_shout,
    commands=shout_commands,
    reply=shout_reply,
    roles=WRITERS,
    about=lambda shout: shout.task,
    identity=shout_identity,
    gather=shout_facts,
)


class Nothing(Struct, frozen=True):
    """Arguments of an operation that finds nothing to do."""


def rest_reply(_arguments: Nothing, _commands: Commands, _accepted: Accepted) -> str:
    return "rested"


REST = Operation("rest", Nothing, lambda _: Nothing(), lambda _: (), rest_reply, WRITERS)


def hear(incoming: Incoming) -> Heard | None:
    """A shout is an object with `shout`; the sender stands in `by`."""
    value = incoming.value
    if isinstance(value, StrictJsonError) or not isinstance(value, dict):
        return None
    message = cast(Mapping[str, Any], value)
    if "shout" not in message:
        return None
    said, task = Raw(incoming.text), str(message.get("task", ""))
    read = read_shout({"task": task, "words": message["shout"], "by": message.get("by", "")})
    if isinstance(read, Fault):
        return Heard("shout", said, target=task, fault=read)
    return Heard("shout", said, read.by, task, SHOUT, read, content=msgspec.json.encode(read))


def lint(value: Any, kind: str, strict: bool) -> Linted:
    return Linted(value == kind, kind, strict)


def takes_all(value: Any, kind: str, _strict: bool) -> Linted:
    return Linted(True, "", value, (), kind)


def mute(_: Incoming) -> Heard | None:
    return None


WORDS = {code: code.upper() for code in REFUSALS}
SHOUTING = Dialect("shouting", (SHOUT, REST), hear, lint, WORDS, {})
MUTE = Dialect("mute", (), mute, lint, WORDS, {})


class Stage:
    """A task T in the hands of alice, and a door that speaks the made-up dialect."""

    def __init__(self) -> None:
        self.lab = Lab()
        self.has_megaphone = True
        facts = StoreFacts(self.lab.store, lambda _task, _ref: self.has_megaphone)
        self.door = Interpreter(self.lab.hub, (MUTE, SHOUTING), facts)
        self.lab.do(HUMAN, CreateTask("t", "T", ready=True))
        self.lab.do(ALICE, ClaimTask("T", "alice"))

    def send(self, said: Any, speaker: Actor | None = None, *, soon: bool = False) -> Answer | None:
        """Send a message, alone or together with others."""
        if soon:
            return asyncio.run(self.door.send_soon(said, speaker=speaker, via="test"))
        return self.door.send(said, speaker=speaker, via="test")

    def call(
        self, name: str, arguments: Any, actor: Actor = ALICE, *, key: str = "", soon: bool = False
    ) -> Answer:
        """Call an operation, alone or together with others."""
        if soon:
            return asyncio.run(self.door.call_soon(name, arguments, actor, key=key))
        return self.door.call(name, arguments, actor, key=key)

    def events(self) -> list[tuple[str, str]]:
        """Who caused which event."""
        lines = (read_line(entry.line) for entry in self.lab.store.entries(0, 99))
        return [(line.actor, line.event) for line in lines]


@pytest.fixture
def stage() -> Stage:
    """Give a stage."""
    return Stage()


TAKEN_THERE = Taken("shouting", "whisper", "alice", (), "heard elsewhere")
SHOUTED = {"shout": "WELL DONE", "task": "T", "by": "alice"}
ARGUMENTS = {"task": "T", "words": "WELL DONE"}

alone_and_together = pytest.mark.parametrize("soon", [False, True], ids=["alone", "together"])


@alone_and_together
def test_a_message_becomes_its_commands(stage: Stage, soon: bool) -> None:
    answer = stage.send(SHOUTED, soon=soon)

    assert isinstance(answer, Taken)
    assert (answer.dialect, answer.kind, answer.actor) == ("shouting", "shout", "alice")
    assert answer.reply == {"heard": "WELL DONE", "commands": 1, "status": "in-progress"}
    assert [receipt.task for receipt in answer.receipts] == ["T"]
    assert (answer.warnings, answer.repeated) == ((), False)
    assert stage.events()[-1] == ("agent:alice", "task.noted")
    line = read_line(stage.lab.store.entries(0, 99)[-1].line)
    assert line.via == "test"
    assert json.loads(stage.lab.store.entries(0, 99)[-1].line)["said"] == SHOUTED


@alone_and_together
def test_an_operation_is_called_by_its_name(stage: Stage, soon: bool) -> None:
    answer = stage.call("shout", ARGUMENTS, soon=soon)

    assert isinstance(answer, Taken)
    assert answer.reply["heard"] == "WELL DONE"
    assert stage.events()[-1] == ("agent:alice", "task.noted")


@alone_and_together
def test_a_message_may_be_called_by_its_kind_and_is_the_same_message(
    stage: Stage, soon: bool
) -> None:
    stage.send(SHOUTED)
    again = stage.call("shout", SHOUTED, soon=soon)

    assert isinstance(again, Taken)
    assert again.repeated


@alone_and_together
def test_what_nobody_claims_leaves_no_trace(stage: Stage, soon: bool) -> None:
    before = stage.lab.store.picture()
    for said in (b"", b"hello", "{", '{"whisper": 1}', {"whisper": 1}, b"\xff"):
        assert stage.send(said, soon=soon) is None
    assert stage.lab.store.picture() == before


@alone_and_together
@proves("DIALECT-RECORD")
def test_a_fault_is_refused_on_record_in_the_words_of_the_dialect(stage: Stage, soon: bool) -> None:
    answer = stage.send({"shout": "hush", "task": "T"}, ALICE, soon=soon)

    assert answer == Turned(
        dialect="shouting",
        kind="shout",
        code="INVALID_FIELD",
        detail="words: too quiet",
        path="words",
        actor="alice",
        ours="invalid_field",
    )
    assert stage.events()[-1] == ("agent:alice", "command.refused")
    line = json.loads(stage.lab.store.entries(0, 99)[-1].line)
    assert line["said"] == {"shout": "hush", "task": "T"}


@alone_and_together
@proves("DIALECT-RECORD")
def test_a_refusal_of_the_core_is_told_in_the_words_of_the_dialect(
    stage: Stage, soon: bool
) -> None:
    answer = stage.send(SHOUTED | {"task": "nope"}, soon=soon)

    assert isinstance(answer, Turned)
    assert (answer.code, answer.path, answer.actor) == ("TASK_NOT_FOUND", "", "alice")


@alone_and_together
def test_an_operation_may_find_nothing_to_do(stage: Stage, soon: bool) -> None:
    before = stage.lab.store.head()
    answer = stage.call("rest", {}, soon=soon)

    assert isinstance(answer, Taken)
    assert (answer.reply, answer.receipts) == ("rested", ())
    assert stage.lab.store.head() == before


@alone_and_together
def test_an_operation_that_nobody_has_is_told_with_those_that_there_are(
    stage: Stage, soon: bool
) -> None:
    answer = stage.call("sing" + "!" * 100, {}, soon=soon)

    assert isinstance(answer, Turned)
    assert answer.code == "unknown_type"
    assert "known: shout, rest" in answer.detail


def test_the_speaker_is_the_credential_else_whom_the_message_names(stage: Stage) -> None:
    bob = {"shout": "HELLO", "task": "T", "by": "bob"}
    assert isinstance(stage.send(bob), Taken)
    assert stage.events()[-1] == ("agent:bob", "task.noted")
    answer = stage.send(bob, ALICE)
    assert isinstance(answer, Turned)
    assert (answer.code, answer.path) == ("IDENTITY_MISMATCH", "by")


@proves("DIALECT-RECORD")
def test_what_names_nobody_is_whom_the_door_knows_or_nobodys(stage: Stage) -> None:
    of_nobody = {"shout": "HELLO YOU", "task": "T"}

    answer = stage.send(of_nobody)

    assert isinstance(answer, Turned)
    assert (answer.code, answer.actor) == ("UNAUTHENTICATED", "unknown")
    assert "inbox/NAME/" in answer.detail
    assert stage.events()[-1] == ("agent:unknown", "command.refused")
    assert isinstance(stage.door.send(of_nobody, unnamed=HUMAN), Taken)
    assert stage.events()[-1] == (HUMAN.label, "task.noted")


def test_a_name_speaks_in_the_role_that_it_is_registered_with(stage: Stage) -> None:
    stage.lab.do(HUMAN, RegisterAgent("boss", "orchestrator"))
    answer = stage.send(SHOUTED | {"by": "boss"})

    assert isinstance(answer, Turned)
    assert answer.code == "NOT_AUTHORIZED"
    assert stage.events()[-1] == ("orchestrator:boss", "command.refused")


def test_whether_there_is_such_a_task_comes_before_who_speaks(stage: Stage) -> None:
    answer = stage.send(SHOUTED | {"task": "nope"}, BOB)
    assert isinstance(answer, Turned)
    assert answer.code == "TASK_NOT_FOUND"


def test_facts_add_commands_or_a_fault(stage: Stage) -> None:
    stage.has_megaphone = False
    warned = stage.send(SHOUTED)
    assert isinstance(warned, Taken)
    assert warned.warnings == ("there is no megaphone",)
    assert len(warned.receipts) == 2

    refused = stage.call("shout", ARGUMENTS | {"words": "FORBIDDEN"})
    assert isinstance(refused, Turned)
    assert (refused.code, refused.path) == ("NOT_AUTHORIZED", "words")

    stage.lab.do(HUMAN, CreateTask("u", "U", ready=True))
    idle = stage.send({"shout": "HELLO", "task": "U", "by": "alice"})
    assert isinstance(idle, Taken)
    assert idle.warnings == ()


@alone_and_together
def test_a_message_with_content_of_its_own_is_taken_once(stage: Stage, soon: bool) -> None:
    stage.send(SHOUTED)
    before = stage.lab.store.head()
    stage.has_megaphone = False
    again = stage.send(json.dumps(SHOUTED, indent=2), soon=soon)

    assert isinstance(again, Taken)
    assert again.repeated
    assert stage.lab.store.head() == before


@alone_and_together
def test_calls_are_repeated_by_their_key(stage: Stage, soon: bool) -> None:
    for _ in range(2):
        stage.call("shout", ARGUMENTS, soon=soon)
    assert stage.lab.task("T").notes == 2
    answers = [stage.call("shout", ARGUMENTS, key="k", soon=soon) for _ in range(2)]

    assert [isinstance(answer, Taken) and answer.repeated for answer in answers] == [False, True]
    assert stage.lab.task("T").notes == 3


@alone_and_together
def test_a_callers_own_key_counts_for_a_message_too(stage: Stage, soon: bool) -> None:
    for shout in (SHOUTED, SHOUTED):
        answer = stage.call("shout", shout, key="one", soon=soon)
        assert isinstance(answer, Taken)
    assert stage.lab.task("T").notes == 1
    stage.call("shout", SHOUTED, key="two", soon=soon)
    assert stage.lab.task("T").notes == 2, "the same words under another key are said anew"
    other = stage.call("shout", SHOUTED | {"shout": "HO"}, key="one", soon=soon)
    assert isinstance(other, Turned)
    assert other.code == "KEY_REUSED"


@alone_and_together
def test_under_a_key_the_same_words_are_a_repeat_whatever_is_found_beside(
    stage: Stage, soon: bool
) -> None:
    stage.has_megaphone = False
    assert isinstance(stage.call("shout", ARGUMENTS, key="k", soon=soon), Taken)
    stage.has_megaphone = True
    again = stage.call("shout", ARGUMENTS, key="k", soon=soon)
    assert isinstance(again, Taken)
    assert again.repeated


def test_a_door_admits_the_roles_that_it_is_for_and_records_the_others(stage: Stage) -> None:
    facts = StoreFacts(stage.lab.store, lambda _task, _ref: True)
    door = Interpreter(
        stage.lab.hub, (SHOUTING,), facts, admits=frozenset[Role]({"agent", "observer"})
    )
    stage.lab.do(HUMAN, RegisterAgent("hera", "human"))

    for speaker in (None, Actor("human", "hera", "slot")):
        answer = door.send(SHOUTED | {"by": "hera"}, speaker=speaker, via="slot")
        assert isinstance(answer, Turned)
        assert answer.code == "NOT_AUTHORIZED"
        assert "human:hera cannot speak through the slot" in answer.detail
    assert stage.events()[-1] == ("human:hera", "command.refused")
    assert stage.lab.task("T").notes == 0
    assert isinstance(door.send(SHOUTED, via="slot"), Taken)


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
def test_bad_arguments_are_refused_on_record(
    stage: Stage, arguments: Any, code: str, path: str
) -> None:
    before = stage.lab.store.head()
    answer = stage.call("shout", arguments)

    assert isinstance(answer, Turned)
    assert (answer.code, answer.path) == (code, path)
    assert stage.lab.store.head() == before + 1


@proves("HUB-CLI")
@pytest.mark.parametrize("soon", [False, True])
def test_what_only_the_hub_may_look_through_is_carried_there_while_one_runs(
    stage: Stage, *, soon: bool
) -> None:
    answers: list[Answer | None] = [TAKEN_THERE, TAKEN_THERE, None]
    carried: list[Say] = []

    def carry(say: Say) -> Answer | None:
        carried.append(say)
        return answers.pop(0)

    facts = StoreFacts(stage.lab.store, lambda _task, _ref: True)
    secret = replace(SHOUT, name="whisper", is_for_hub=True)
    stage.door = Interpreter(
        stage.lab.hub, (replace(SHOUTING, operations=(secret, REST)),), facts, carry=carry
    )
    assert stage.call("whisper", ARGUMENTS, key="k", soon=soon) is TAKEN_THERE
    assert stage.call("whisper", json.dumps(ARGUMENTS), soon=soon) is TAKEN_THERE
    words = msgspec.json.encode(ARGUMENTS)
    assert [(one.actor, one.operation, one.key) for one in carried] == [
        (ALICE, "whisper", "k"),
        (ALICE, "whisper", ""),
    ]
    assert all(json.loads(one.words) == json.loads(words) for one in carried)
    before = stage.lab.store.head()
    # The hub has gone: it is done here.
    assert isinstance(stage.call("whisper", ARGUMENTS, soon=soon), Taken)
    assert stage.lab.store.head() > before
    # What is wrong, and what anybody may look through, never goes there.
    assert isinstance(stage.call("whisper", {"words": "quiet", "task": "T"}, soon=soon), Turned)
    assert isinstance(stage.call("rest", {}, soon=soon), Taken)
    assert isinstance(stage.send(SHOUTED, soon=soon), Taken)
    assert len(carried) == 3


def test_a_door_may_take_less(stage: Stage) -> None:
    facts = StoreFacts(stage.lab.store, lambda _task, _ref: True)
    narrow = Interpreter(stage.lab.hub, (SHOUTING,), facts, most_bytes=100)

    assert isinstance(narrow.send(SHOUTED), Taken)
    assert narrow.send(SHOUTED | {"more": "x" * 100}) is None
    assert Incoming(b"x" * 101, 100).is_too_large


def test_many_callers_share_commits(stage: Stage) -> None:
    async def crowd() -> list[Answer | None]:
        shouts = [SHOUTED | {"shout": "N" * n} for n in range(1, 40)]
        return await asyncio.gather(*(stage.door.send_soon(shout) for shout in shouts))

    before = stage.lab.store.transactions
    answers = asyncio.run(crowd())

    assert all(isinstance(answer, Taken) for answer in answers)
    assert stage.lab.task("T").notes == 39
    assert stage.lab.store.transactions - before < 39


def test_a_message_is_heard_first_and_answered_later(stage: Stage) -> None:
    assert stage.door.hear(SHOUTED, dialect="mute") is None
    spoken = stage.door.hear(SHOUTED, dialect="shouting")
    assert spoken is not None
    assert (spoken.dialect.name, spoken.line_up) == ("shouting", "T")
    assert stage.door.looks(spoken, ALICE), "whether there is a megaphone"
    quiet = stage.door.hear(SHOUTED | {"shout": "hello"}, dialect="shouting")
    assert quiet is not None
    assert not stage.door.looks(quiet, ALICE), "what is refused as it is"
    before = stage.events()
    answer = asyncio.run(stage.door.answer_soon(spoken, ALICE, key="k"))
    assert isinstance(answer, Taken)
    assert stage.events() == [*before, ("agent:alice", "task.noted")]


def test_lint_sees_what_is_json_and_is_told_of_the_rest() -> None:
    assert lint_text(MUTE, b'"k"', "k", strict=True) == Linted(True, "k", True)
    linted = lint_text(MUTE, b'{"a":1,"a":1}', "k", strict=False)
    assert (linted.ok, linted.issues) == (False, (TWICE,))


TWICE = {"path": "a", "reason": "this key stands twice in its object"}


def test_a_lenient_dialect_lints_what_can_be_read_of_any_text() -> None:
    lenient = replace(MUTE, is_lenient=True, lint=takes_all)
    read = lint_text(lenient, b'{"a":1,"a":2}', "k", strict=False)
    assert read == Linted(True, "", {"a": 2}, (TWICE,), "k")
    assert lint_text(lenient, b"{", "k", strict=False).message == {}
    assert lint_text(lenient, b'{"a":1,"a":2}', "k", strict=True) == Linted(
        False, "", None, (TWICE,)
    )


def test_lint_minds_how_long_a_message_of_its_kind_may_be() -> None:
    wide = replace(MUTE, bounds=Bounds(2 * MOST_BYTES), carriers={"short": SHOUT}, lint=takes_all)
    for kind, size, ok in (
        ("short", MOST_BYTES, True),
        ("short", MOST_BYTES + 1, False),
        ("long", MOST_BYTES + 1, True),
        ("long", 2 * MOST_BYTES + 1, False),
    ):
        linted = lint_text(wide, b'"' + b"x" * (size - 2) + b'"', kind, strict=False)
        assert (linted.ok, bool(linted.issues)) == (ok, not ok)


def test_facts_are_those_of_the_store(stage: Stage) -> None:
    facts = StoreFacts(stage.lab.store, lambda task, ref: (task, ref) == ("T", "x"))
    lab = stage.lab
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
    assert sorted(facts.held_in("s-1")) == sorted([own["S0"], own["S1"]])
    assert facts.held_in("s-1", "bob") == [own["S1"]]
    assert facts.held_in("s-1", task="S0") == [own["S0"]]
    assert facts.held_in("s-2") == []
    assert facts.reported() == []
    assert facts.speaker("eve", "inbox") == Actor("agent", "eve", "inbox")
