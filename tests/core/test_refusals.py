"""Refusals: stable codes, and which of them leave an entry with their actor."""

import re
from pathlib import Path

import pytest
from msgspec.structs import replace

import dragoman
from dragoman.core import errors
from dragoman.core.actors import (
    REFUSALS_PER_MINUTE,
    REMEMBERED_REFUSALS,
    SYSTEM,
    Actor,
    ActorRecord,
    evolve_actor,
    record_refusal,
)
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
from dragoman.core.events import CommandRefused
from tests.core.world import NOW
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
    "overloaded",
}
"""Written here once more, because dialects and scripts will depend on them."""


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
            self.record = evolve_actor(self.record, event, now)
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
        for path in (package / room).glob("*.py")
        for code in re.findall(r"Refusal\(\s*\"([a-z_]+)\"", path.read_text("utf-8"))
    }
    assert used == CODES


@proves("REFUSAL-CODES")
def test_every_exception_of_ours_has_a_code_of_its_own() -> None:
    def below(kind: type[DragomanError]) -> set[type[DragomanError]]:
        return {kind}.union(*(below(sub) for sub in kind.__subclasses__()))

    abstract = {DragomanError, StoreError, Refused}
    concrete = {kind for kind in below(DragomanError) if kind not in abstract}
    assert {kind.code for kind in concrete} <= set(FAULTS)
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
    assert not diary.refuse(Refusal("not_ready", "another sentence"), START + 1)
    assert diary.refuse(NO, START + 1, command="d")
    assert diary.refuse(NO, START + 1, target="U")
    assert diary.refuse(Refusal("reserved", "why"), START + 1)
    assert diary.refuse(NO, START + MINUTE), "a new minute"
    assert len(diary.entries) == 5


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
    assert diary.record == ActorRecord(START // MINUTE, 1, ("c T not_ready",))


@proves("NAME-GRAMMAR")
@pytest.mark.parametrize("name", ["", "a b", "../a", "a\n", "ａ", "x" * 129, "half \ud800"])
def test_nobody_speaks_under_a_name_that_cannot_be_written_down(name: str) -> None:
    with pytest.raises(ValueError, match="not a valid name"):
        Actor("agent", name)
