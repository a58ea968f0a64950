"""Refusals: stable codes, and the rate-limited record of refusals of each actor."""

import re
from pathlib import Path

import msgspec
import pytest
from msgspec.structs import replace

import dragoman
from dragoman.core import errors
from dragoman.core.actor import (
    HUB_ACTOR,
    RECEIVED_PER_MINUTE,
    REFUSALS_PER_MINUTE,
    REMEMBERED_REFUSALS,
    Actor,
    ActorRecord,
    CommandRefused,
    MessageReceived,
    RejectMessage,
    fold_received,
    fold_refused,
    record_received_message,
    record_refusal,
)
from dragoman.core.errors import (
    FAULTS,
    REFUSALS,
    UNRECORDED_REFUSALS,
    DragomanError,
    Refusal,
    Refused,
    StoreError,
    StoreLost,
    StoreUnavailable,
)
from tests.core.world import ALICE, HUMAN, NOW, OBSERVER, World, held, task
from tests.requirements import proves

MINUTE = 60_000
REFUSAL = Refusal("not_ready", "T is backlog")
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
    "reserved_for_other",
    "files_reserved",
    "blocked_by_dependency",
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
    "conflict_retry",
    "missing_artifact",
    "ownership_conflict",
    "policy_violation",
    "schema_invalid",
    "work_item_not_found",
    "wave_not_found",
    "reservation_not_found",
    "nothing_changed",
    "not_expressible",
    "intent_not_found",
    "anomaly",
    "overloaded",
    "question_not_found",
    "already_answered",
}
"""Repeated here, because dialects and scripts will depend on them."""

MESSAGE_CODES = {
    "not_recognized",
    "invalid_json",
    "invalid_envelope",
    "unknown_type",
    "taskId_mismatch",
    "message_too_large",
}
"""Codes that only a dialect uses, before there is a command."""
GATE_CODES = {"missing_artifact", "policy_violation", "conflict_retry"}
"""Codes of failed checks of a handoff, handed in with the command."""


class RefusalLog:
    """Stream of an actor in memory."""

    def __init__(self) -> None:
        self.record: ActorRecord | None = None
        self.entries: list[CommandRefused] = []

    def refuse(self, refusal: Refusal, now: int, *, command: str = "c", target: str = "T") -> bool:
        """Record a refusal; true if it left an entry."""
        event = record_refusal(self.record or ActorRecord(), command, target, refusal, now)
        if event is not None:
            self.entries.append(event)
            self.record = fold_refused(self.record, event, now)
        return event is not None


@proves("REFUSAL-CODES")
def test_refusal_codes_are_the_promised_ones() -> None:
    assert set(REFUSALS) == CODES
    assert set(UNRECORDED_REFUSALS) == {"nothing_ready", "overloaded"}
    assert all(meaning and not meaning.endswith(".") for meaning in REFUSALS.values())


@proves("REFUSAL-CODES")
def test_source_uses_only_promised_codes() -> None:
    package = Path(dragoman.__file__).parent
    used = {
        code
        for folder in ("core", "engine", "ledger")
        for path in (package / folder).rglob("*.py")
        for code in re.findall(r"Refusal\(\s*\"([A-Za-z_]+)\"", path.read_text("utf-8"))
    }
    assert used | MESSAGE_CODES | GATE_CODES == CODES
    assert {"parent_not_found", "nested_delegation"} <= used


@proves("REFUSAL-CODES")
def test_exceptions_have_documented_codes() -> None:
    def below(kind: type[DragomanError]) -> set[type[DragomanError]]:
        return {kind}.union(*(below(sub) for sub in kind.__subclasses__()))

    abstract = {DragomanError, StoreError, Refused}
    concrete = {kind for kind in below(DragomanError) if kind not in abstract}
    assert {kind.code for kind in concrete if not issubclass(kind, Refused)} <= set(FAULTS)
    assert issubclass(StoreLost, StoreUnavailable)
    assert errors.StoreConflict("why").detail == str(errors.StoreConflict("why")) == "why"


@proves("REFUSAL-CODES")
def test_refusal_can_be_raised() -> None:
    refused = Refused(REFUSAL)
    assert (refused.code, refused.detail, refused.refusal) == ("not_ready", "T is backlog", REFUSAL)
    assert str(refused) == "not_ready: T is backlog"


@proves("REFUSAL-CODES")
def test_equal_refusals_may_name_different_fields() -> None:
    assert {REFUSAL, REFUSAL.with_path("task"), REFUSAL.with_command(1)} == {REFUSAL}


@proves("REFUSAL-RECORDED")
def test_refusal_is_recorded_with_command_target_code_and_detail() -> None:
    event = record_refusal(ActorRecord(), "task.claim", "T", REFUSAL, NOW)
    assert event == CommandRefused("task.claim", "T", "not_ready", "T is backlog")


@proves("REFUSAL-RECORDED", "NAME-GRAMMAR")
def test_hostile_target_is_recorded_short_and_escaped() -> None:
    event = record_refusal(ActorRecord(), "task.claim", "\ud800\n" * 10_000, REFUSAL, NOW)
    assert event is not None
    assert event.target.isascii()
    assert event.target.isprintable()
    assert len(event.target) < 500


@proves("REFUSAL-RECORDED")
@pytest.mark.parametrize("code", sorted(CODES))
def test_only_unrecorded_codes_leave_no_entry(code: str) -> None:
    assert RefusalLog().refuse(Refusal(code, "why"), NOW) is (
        code not in ("nothing_ready", "overloaded")
    )


@proves("REFUSAL-RECORDED")
def test_repeated_refusal_within_a_minute_is_not_recorded() -> None:
    log = RefusalLog()
    assert log.refuse(REFUSAL, START)
    assert not log.refuse(REFUSAL, START + MINUTE - 1)
    assert log.refuse(Refusal("not_ready", "another sentence"), START + 1)
    assert log.refuse(Refusal(REFUSAL.code, REFUSAL.detail, "completion.report"), START + 1)
    assert log.refuse(REFUSAL, START + 1, command="d")
    assert log.refuse(REFUSAL, START + 1, target="U")
    assert log.refuse(Refusal("reserved_for_other", "why"), START + 1)
    assert log.refuse(REFUSAL, START + MINUTE), "a new minute"
    assert len(log.entries) == 7


@proves("REFUSAL-RECORDED")
def test_repeat_is_recognized_among_the_last_refusals() -> None:
    log = RefusalLog()
    for number in range(REMEMBERED_REFUSALS):
        assert log.refuse(REFUSAL, START, target=f"T{number}")
    assert not log.refuse(REFUSAL, START, target="T0")
    assert log.refuse(REFUSAL, START, target="one more")
    assert log.refuse(REFUSAL, START, target="T0"), "it has been forgotten by now"


@proves("REFUSAL-RECORDED")
def test_recording_limits_are_the_promised_ones() -> None:
    assert (REFUSALS_PER_MINUTE, REMEMBERED_REFUSALS) == (60, 8)


@proves("REFUSAL-RECORDED")
def test_refusals_are_recorded_up_to_the_limit_per_minute() -> None:
    log = RefusalLog()
    recorded = [log.refuse(REFUSAL, START + n, target=f"T{n}") for n in range(200)]
    assert recorded == [True] * REFUSALS_PER_MINUTE + [False] * (200 - REFUSALS_PER_MINUTE)
    assert not log.refuse(REFUSAL, START + MINUTE - 1, target="late")
    later = [log.refuse(REFUSAL, START + MINUTE, target=f"T{n}") for n in range(200)]
    assert sum(later) == REFUSALS_PER_MINUTE
    assert len(log.entries) == 2 * REFUSALS_PER_MINUTE


@proves("REFUSAL-RECORDED")
def test_refusals_are_recorded_per_actor_stream() -> None:
    assert Actor("agent", "alice").stream == "actor:agent:alice"
    assert Actor("human", "alice").stream == "actor:human:alice"
    assert replace(Actor("agent", "alice"), via="inbox").stream == "actor:agent:alice"
    assert (HUB_ACTOR.label, HUB_ACTOR.stream) == ("system:hub", "actor:system:hub")


@proves("REFUSAL-RECORDED")
def test_clock_set_back_still_records_refusals() -> None:
    log = RefusalLog()
    log.refuse(REFUSAL, START + 10 * MINUTE)
    assert log.refuse(REFUSAL, START)
    assert log.record is not None
    assert (log.record.minute, log.record.refusals) == (START // MINUTE, 1)
    assert [gist.rpartition(" ")[0] for gist in log.record.recent] == ["c T not_ready"]


@proves("REFUSAL-RECORDED")
def test_refusals_that_differ_in_a_count_are_limited_too() -> None:
    log = RefusalLog()
    recorded = [log.refuse(Refusal("not_ready", f"try {n}"), START + n) for n in range(200)]
    assert recorded == [True] * REFUSALS_PER_MINUTE + [False] * (200 - REFUSALS_PER_MINUTE)


@proves("REFUSAL-RECORDED")
def test_remembered_refusal_is_short() -> None:
    log = RefusalLog()
    log.refuse(Refusal("not_ready", "long \u2028 " * 1_000), START)
    assert log.record is not None
    assert len(log.record.recent[0]) < 100


@proves("MESSAGE-HEARD")
def test_received_messages_are_limited_per_minute_apart_from_refusals() -> None:
    received = MessageReceived("aof", "completion.report", "T")
    minute = NOW // 60_000
    refused = ActorRecord(minute, 2, ("x",))
    record = fold_received(refused, received, NOW)
    assert record == ActorRecord(minute, 2, ("x",), received=1)
    assert fold_received(None, received, NOW) == ActorRecord(minute, received=1)
    assert fold_received(refused, received, NOW + 60_000) == ActorRecord(minute + 1, received=1)

    for _ in range(RECEIVED_PER_MINUTE - 1):
        assert record_received_message(record, received, NOW) == received
        record = fold_received(record, received, NOW)
    assert record_received_message(record, received, NOW) is None
    assert record_received_message(record, received, NOW + 60_000) == received


@proves("MESSAGE-REFUSED")
@pytest.mark.parametrize("code", sorted(CODES))
def test_message_rejection_keeps_code_and_detail_of_dialect(code: str) -> None:
    answer = World().decide(
        ALICE, RejectMessage(code, "payload.tests: why", "T", "completion.report")
    )
    assert isinstance(answer, Refusal)
    assert answer == Refusal(code, "payload.tests: why", "completion.report")
    event = record_refusal(ActorRecord(), "message.reject", "T", answer, NOW)
    assert (event is None) is (code in UNRECORDED_REFUSALS)
    if event is not None:
        assert (event.code, event.kind, event.target) == (code, "completion.report", "T")


@proves("MESSAGE-REFUSED")
@pytest.mark.parametrize("code", ["", "nonsense", "x" * 10_000, "\ud800"])
def test_message_rejection_needs_a_known_code(code: str) -> None:
    answer = World().decide(HUMAN, RejectMessage(code, "why"))
    assert isinstance(answer, Refusal)
    assert answer.code == "invalid_field"
    assert answer.detail.isascii()
    assert len(answer.detail) < 500


@proves("MESSAGE-REFUSED")
@pytest.mark.parametrize("detail", ["half \ud800", "x" * 4_001, "\n\udfff" * 100_000])
def test_recorded_refusal_can_be_encoded(detail: str) -> None:
    answer = World().decide(OBSERVER, RejectMessage("invalid_json", detail, kind="\ud800\n" * 99))
    assert isinstance(answer, Refusal)
    event = record_refusal(ActorRecord(), "message.reject", "", answer, NOW)
    assert event is not None
    assert msgspec.json.decode(msgspec.json.encode(event), type=CommandRefused) == event
    assert len(event.detail) < 11_000
    assert event.kind.isascii()


@proves("MESSAGE-REFUSED", "LEASE-HEARTBEAT")
def test_refused_message_does_not_renew_lease() -> None:
    world = held()
    world.put(task("U"))
    before = dict(world.leases)
    assert world.code(ALICE, RejectMessage("invalid_envelope", "why", "T")) == "invalid_envelope"
    assert world.leases == before


@proves("NAME-GRAMMAR")
@pytest.mark.parametrize("name", ["", "a b", "../a", "a\n", "ａ", "x" * 129, "half \ud800"])
def test_actor_name_follows_the_grammar(name: str) -> None:
    with pytest.raises(ValueError, match="not a valid name"):
        Actor("agent", name)


@proves("MESSAGE-REFUSED")
def test_refusals_of_different_messages_are_recorded_separately() -> None:
    broken = Refusal("invalid_json", "this is not JSON", "aof")
    log = RefusalLog()

    def is_recorded(message: bytes) -> bool:
        record = log.record or ActorRecord()
        event = record_refusal(record, "message.reject", "", broken, NOW, message)
        if event is not None:
            log.record = fold_refused(log.record, event, NOW)
        return event is not None

    assert [is_recorded(message) for message in (b"{a", b"{b", b"{a")] == [True, True, False]
