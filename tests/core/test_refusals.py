"""Refusals: stable codes, and which of them leave an entry with their actor."""

import re
from pathlib import Path

import msgspec
import pytest
from msgspec.structs import replace

import dragoman
from dragoman.core import errors
from dragoman.core.actors import (
    RECEIVED_PER_MINUTE,
    REFUSALS_PER_MINUTE,
    REMEMBERED_REFUSALS,
    SYSTEM,
    Actor,
    ActorRecord,
    evolve_received,
    evolve_refused,
    record_received,
    record_refusal,
)
from dragoman.core.commands import RejectMessage
from dragoman.core.errors import (
    FAULTS,
    REFUSALS,
    UNRECORDED,
    DragomanError,
    Refusal,
    Refused,
    StoreError,
    StoreLost,
    StoreUnavailable,
)
from dragoman.core.events import CommandRefused, MessageReceived
from tests.core.world import ALICE, HUMAN, NOW, OBSERVER, World, held, task
from tests.requirements import proves

MINUTE = 60_000
NO = Refusal("not_ready", "T is backlog")
START = NOW - NOW % MINUTE

CODES = {
    "invalid_id",
    "invalid_field",
    "task_not_found",
    "ambiguous_name",
    "already_exists",
    "invalid_transition",
    "claim_required",
    "not_authorized",
    "unauthorized_agent",
    "unassigned_task",
    "identity_mismatch",
    "lease_lost",
    "already_claimed",
    "not_ready",
    "reserved",
    "waits_for",
    "nothing_ready",
    "link_cycle",
    "already_linked",
    "key_reused",
    "not_recognized",
    "invalid_json",
    "invalid_envelope",
    "unknown_type",
    "taskId_mismatch",
    "message_too_large",
    "parent_not_found",
    "nested_delegation",
    "agent_not_found",
    "token_not_found",
    "unauthenticated",
    "token_expired",
    "token_revoked",
    "replayed",
    "mail_not_found",
    "handoff_not_found",
    "hash_mismatch",
    "try_again",
    "missing_artifact",
    "ownership_conflict",
    "policy_violation",
    "schema_invalid",
    "work_item_not_found",
    "wave_not_found",
    "reservation_not_found",
    "nothing_changed",
    "intent_not_found",
    "anomaly",
    "overloaded",
}
"""Written here once more, because dialects and scripts will depend on them."""

OF_MESSAGES = {
    "not_recognized",
    "invalid_json",
    "invalid_envelope",
    "unknown_type",
    "taskId_mismatch",
    "message_too_large",
}
"""What only a dialect can find wrong, before there is a command."""
OF_A_GATE = {"missing_artifact", "policy_violation", "try_again"}
"""What was found wrong with the artifacts of a handoff, and is handed in with the command."""


class Diary:
    """An actor's stream in memory."""

    def __init__(self) -> None:
        self.record: ActorRecord | None = None
        self.entries: list[CommandRefused] = []

    def refuse(self, refusal: Refusal, now: int, *, command: str = "c", target: str = "T") -> bool:
        """Whether this refusal left an entry."""
        event = record_refusal(self.record or ActorRecord(), command, target, refusal, now)
        if event is not None:
            self.entries.append(event)
            self.record = evolve_refused(self.record, event, now)
        return event is not None


@proves("REFUSAL-CODES")
def test_the_codes_are_those_that_were_promised() -> None:
    assert set(REFUSALS) == CODES
    assert set(UNRECORDED) == {"nothing_ready", "overloaded"}
    assert all(meaning and not meaning.endswith(".") for meaning in REFUSALS.values())


@proves("REFUSAL-CODES")
def test_the_code_refuses_with_no_other_code() -> None:
    package = Path(dragoman.__file__).parent
    used = {
        code
        for room in ("core", "engine", "ledger")
        for path in (package / room).rglob("*.py")
        for code in re.findall(r"Refusal\(\s*\"([A-Za-z_]+)\"", path.read_text("utf-8"))
    }
    assert used | OF_MESSAGES | OF_A_GATE == CODES
    assert {"parent_not_found", "nested_delegation"} <= used


@proves("REFUSAL-CODES")
def test_every_exception_of_ours_has_a_code_of_its_own() -> None:
    def below(kind: type[DragomanError]) -> set[type[DragomanError]]:
        return {kind}.union(*(below(sub) for sub in kind.__subclasses__()))

    abstract = {DragomanError, StoreError, Refused}
    concrete = {kind for kind in below(DragomanError) if kind not in abstract}
    assert {kind.code for kind in concrete if not issubclass(kind, Refused)} <= set(FAULTS)
    assert issubclass(StoreLost, StoreUnavailable)
    assert errors.StoreConflict("why").detail == str(errors.StoreConflict("why")) == "why"


@proves("REFUSAL-CODES")
def test_a_refusal_can_be_raised() -> None:
    refused = Refused(NO)
    assert (refused.code, refused.detail, refused.refusal) == ("not_ready", "T is backlog", NO)
    assert str(refused) == "not_ready: T is backlog"


@proves("REFUSAL-RECORDED")
def test_a_refusal_leaves_an_entry_with_command_target_code_and_sentence() -> None:
    event = record_refusal(ActorRecord(), "task.claim", "T", NO, NOW)
    assert event == CommandRefused("task.claim", "T", "not_ready", "T is backlog")


@proves("REFUSAL-RECORDED", "NAME-GRAMMAR")
def test_a_hostile_target_is_recorded_short_and_harmless() -> None:
    event = record_refusal(ActorRecord(), "task.claim", "\ud800\n" * 10_000, NO, NOW)
    assert event is not None
    assert event.target.isascii()
    assert event.target.isprintable()
    assert len(event.target) < 500


@proves("REFUSAL-RECORDED")
@pytest.mark.parametrize("code", sorted(CODES))
def test_only_ordinary_answers_leave_none(code: str) -> None:
    assert Diary().refuse(Refusal(code, "why"), NOW) is (
        code not in ("nothing_ready", "overloaded")
    )


@proves("REFUSAL-RECORDED")
def test_a_repeat_within_its_minute_adds_none() -> None:
    diary = Diary()
    assert diary.refuse(NO, START)
    assert not diary.refuse(NO, START + MINUTE - 1)
    assert diary.refuse(Refusal("not_ready", "another sentence"), START + 1)
    assert diary.refuse(Refusal(NO.code, NO.detail, "completion.report"), START + 1)
    assert diary.refuse(NO, START + 1, command="d")
    assert diary.refuse(NO, START + 1, target="U")
    assert diary.refuse(Refusal("reserved", "why"), START + 1)
    assert diary.refuse(NO, START + MINUTE), "a new minute"
    assert len(diary.entries) == 7


@proves("REFUSAL-RECORDED")
def test_a_repeat_is_known_among_the_last_few() -> None:
    diary = Diary()
    for number in range(REMEMBERED_REFUSALS):
        assert diary.refuse(NO, START, target=f"T{number}")
    assert not diary.refuse(NO, START, target="T0")
    assert diary.refuse(NO, START, target="one more")
    assert diary.refuse(NO, START, target="T0"), "it has been forgotten by now"


@proves("REFUSAL-RECORDED")
def test_the_measures_of_what_is_recorded() -> None:
    assert (REFUSALS_PER_MINUTE, REMEMBERED_REFUSALS) == (60, 8)


@proves("REFUSAL-RECORDED")
def test_a_flood_adds_no_more_than_its_measure_each_minute() -> None:
    diary = Diary()
    recorded = [diary.refuse(NO, START + n, target=f"T{n}") for n in range(200)]
    assert recorded == [True] * REFUSALS_PER_MINUTE + [False] * (200 - REFUSALS_PER_MINUTE)
    assert not diary.refuse(NO, START + MINUTE - 1, target="late")
    later = [diary.refuse(NO, START + MINUTE, target=f"T{n}") for n in range(200)]
    assert sum(later) == REFUSALS_PER_MINUTE
    assert len(diary.entries) == 2 * REFUSALS_PER_MINUTE


@proves("REFUSAL-RECORDED")
def test_the_measure_is_each_actors_own_and_its_stream_is_too() -> None:
    assert Actor("agent", "alice").stream == "actor:agent:alice"
    assert Actor("human", "alice").stream == "actor:human:alice"
    assert replace(Actor("agent", "alice"), via="inbox").stream == "actor:agent:alice"
    assert (SYSTEM.label, SYSTEM.stream) == ("system:hub", "actor:system:hub")


@proves("REFUSAL-RECORDED")
def test_a_clock_that_goes_back_does_not_silence_an_actor() -> None:
    diary = Diary()
    diary.refuse(NO, START + 10 * MINUTE)
    assert diary.refuse(NO, START)
    assert diary.record is not None
    assert (diary.record.minute, diary.record.refusals) == (START // MINUTE, 1)
    assert [gist.rpartition(" ")[0] for gist in diary.record.recent] == ["c T not_ready"]


@proves("REFUSAL-RECORDED")
def test_sentences_that_differ_in_a_count_are_bounded_like_every_flood() -> None:
    diary = Diary()
    told = [diary.refuse(Refusal("not_ready", f"try {n}"), START + n) for n in range(200)]
    assert told == [True] * REFUSALS_PER_MINUTE + [False] * (200 - REFUSALS_PER_MINUTE)


@proves("REFUSAL-RECORDED")
def test_what_is_remembered_of_a_refusal_is_short() -> None:
    diary = Diary()
    diary.refuse(Refusal("not_ready", "long \u2028 " * 1_000), START)
    assert diary.record is not None
    assert len(diary.record.recent[0]) < 100


@proves("MESSAGE-HEARD")
def test_messages_that_changed_nothing_are_limited_by_the_minute_and_count_for_no_refusal() -> None:
    heard = MessageReceived("aof", "completion.report", "T")
    minute = NOW // 60_000
    refused = ActorRecord(minute, 2, ("x",))
    record = evolve_received(refused, heard, NOW)
    assert record == ActorRecord(minute, 2, ("x",), received=1)
    assert evolve_received(None, heard, NOW) == ActorRecord(minute, received=1)
    assert evolve_received(refused, heard, NOW + 60_000) == ActorRecord(minute + 1, received=1)

    for _ in range(RECEIVED_PER_MINUTE - 1):
        assert record_received(record, heard, NOW) == heard
        record = evolve_received(record, heard, NOW)
    assert record_received(record, heard, NOW) is None
    assert record_received(record, heard, NOW + 60_000) == heard


@proves("MESSAGE-REFUSED")
@pytest.mark.parametrize("code", sorted(CODES))
def test_what_a_dialect_finds_wrong_is_refused_in_its_words(code: str) -> None:
    answer = World().ask(ALICE, RejectMessage(code, "payload.tests: why", "T", "completion.report"))
    assert isinstance(answer, Refusal)
    assert answer == Refusal(code, "payload.tests: why", "completion.report")
    event = record_refusal(ActorRecord(), "message.reject", "T", answer, NOW)
    assert (event is None) is (code in UNRECORDED)
    if event is not None:
        assert (event.code, event.kind, event.target) == (code, "completion.report", "T")


@proves("MESSAGE-REFUSED")
@pytest.mark.parametrize("code", ["", "nonsense", "x" * 10_000, "\ud800"])
def test_a_message_is_refused_with_a_known_code_only(code: str) -> None:
    answer = World().ask(HUMAN, RejectMessage(code, "why"))
    assert isinstance(answer, Refusal)
    assert answer.code == "invalid_field"
    assert answer.detail.isascii()
    assert len(answer.detail) < 500


@proves("MESSAGE-REFUSED")
@pytest.mark.parametrize("detail", ["half \ud800", "x" * 4_001, "\n\udfff" * 100_000])
def test_what_a_refusal_quotes_can_be_written_down(detail: str) -> None:
    answer = World().ask(OBSERVER, RejectMessage("invalid_json", detail, kind="\ud800\n" * 99))
    assert isinstance(answer, Refusal)
    event = record_refusal(ActorRecord(), "message.reject", "", answer, NOW)
    assert event is not None
    assert msgspec.json.decode(msgspec.json.encode(event), type=CommandRefused) == event
    assert len(event.detail) < 11_000
    assert event.kind.isascii()


@proves("MESSAGE-REFUSED", "LEASE-HEARTBEAT")
def test_a_refused_message_is_no_sign_of_life() -> None:
    world = held()
    world.put(task("U"))
    before = dict(world.leases)
    assert world.code(ALICE, RejectMessage("invalid_envelope", "why", "T")) == "invalid_envelope"
    assert world.leases == before


@proves("NAME-GRAMMAR")
@pytest.mark.parametrize("name", ["", "a b", "../a", "a\n", "ａ", "x" * 129, "half \ud800"])
def test_nobody_speaks_under_a_name_that_cannot_be_written_down(name: str) -> None:
    with pytest.raises(ValueError, match="not a valid name"):
        Actor("agent", name)


@proves("MESSAGE-REFUSED")
def test_other_words_are_another_refusal_though_the_sentence_is_the_same() -> None:
    broken = Refusal("invalid_json", "this is not JSON", "aof")
    diary = Diary()

    def refused(said: bytes) -> bool:
        record = diary.record or ActorRecord()
        event = record_refusal(record, "message.reject", "", broken, NOW, said)
        if event is not None:
            diary.record = evolve_refused(diary.record, event, NOW)
        return event is not None

    assert [refused(said) for said in (b"{a", b"{b", b"{a")] == [True, True, False]
