"""File reservations: conflicts, renewal, release, expiry and limits."""

import pytest

from dragoman.core.actor import Actor
from dragoman.core.attempt import CheckpointTask, ClaimTask, ReportOutcome
from dragoman.core.errors import Refusal
from dragoman.core.reservation import (
    ReleaseReservations,
    RenewReservations,
    Reservation,
    ReserveFiles,
)
from dragoman.core.task_state import CreateTask
from dragoman.engine.queries.waves import active_reservations
from tests.engine.lab import ALICE, BOB, HUMAN, TTL, Lab, findings
from tests.requirements import proves

HOUR = 3_600_000
ORCHESTRATOR = Actor("orchestrator", "olga")
OBSERVER = Actor("observer", "otto")


def holders_and_patterns(lab: Lab) -> list[tuple[str, tuple[str, ...]]]:
    """List holder and patterns of each active reservation."""
    found = active_reservations(lab.store, lab.clock.now())
    return [(one.current_holder(found.find_task), one.patterns) for one in found.active]


def refusal(lab: Lab, actor: Actor, command: ReserveFiles) -> Refusal:
    """Return the refusal of a reservation."""
    answer = lab.ask(actor, command)
    assert isinstance(answer, Refusal)
    return answer


@proves("RESERVE-TAKE")
def test_conflict_names_holder_pattern_and_expiry() -> None:
    lab = Lab()
    lab.do(ALICE, ReserveFiles(("src/",), HOUR, reason="big change"))
    answer = refusal(lab, BOB, ReserveFiles(("docs/a.md", "src/core/x.py"), HOUR))
    assert answer.code == "files_reserved"
    assert answer.detail == (
        "src/core/x.py is reserved by alice as src/** until 2026-02-09T15:30:00.000Z: "
        "take other files, ask for it, or wait"
    )
    assert holders_and_patterns(lab) == [("alice", ("src/**",))]
    lab.do(ALICE, ReserveFiles(("src/core/x.py",), HOUR))
    assert findings(lab.store) == []


@proves("RESERVE-TAKE")
def test_shared_reservations_coexist_but_not_with_an_exclusive_one() -> None:
    lab = Lab()
    lab.do(ALICE, ReserveFiles(("x",), HOUR, exclusive=False))
    lab.do(BOB, ReserveFiles(("x",), HOUR, exclusive=False))
    assert refusal(lab, HUMAN, ReserveFiles(("x",), HOUR)).code == "files_reserved"


@proves("RESERVE-TAKE")
def test_repeated_reservation_is_extended_not_duplicated() -> None:
    lab = Lab()
    first = lab.do(ALICE, ReserveFiles(("x", "./x"), HOUR))
    lab.clock.advance(HOUR // 2)
    second = lab.do(ALICE, ReserveFiles(("x",), HOUR))
    assert second.stream == first.stream
    assert second.expires_at == first.expires_at + HOUR // 2
    assert holders_and_patterns(lab) == [("alice", ("x",))]


@proves("RESERVE-END")
def test_expired_reservation_is_removed_by_the_next_one() -> None:
    lab = Lab()
    lab.do(ALICE, ReserveFiles(("x",), HOUR))
    lab.clock.advance(HOUR - 1)
    assert refusal(lab, BOB, ReserveFiles(("x",), HOUR)).code == "files_reserved"
    lab.clock.advance(1)
    assert holders_and_patterns(lab) == []
    lab.do(BOB, ReserveFiles(("x",), HOUR))
    assert holders_and_patterns(lab) == [("bob", ("x",))]
    events = [event for stream, event in lab.lines() if stream == "reservations:default"]
    assert events == ["reservation.taken", "reservation.ended", "reservation.taken"]
    assert findings(lab.store) == []


@proves("RESERVE-END")
def test_reservation_for_a_task_ends_with_its_attempt() -> None:
    lab = Lab()
    lab.do(HUMAN, CreateTask("t", "T", ready=True))
    assert lab.code(ALICE, ReserveFiles(("x",), HOUR, task="T")) == "not_ready"
    lab.do(ALICE, ClaimTask("T", "alice", ttl_ms=TTL))
    assert lab.code(BOB, ReserveFiles(("x",), HOUR, task="T")) == "unauthorized_agent"
    lab.do(ALICE, ReserveFiles(("x",), HOUR, task="T"))
    assert lab.code(BOB, ReserveFiles(("x",), HOUR)) == "files_reserved"
    lab.do(ALICE, ReportOutcome("T", "done", apply=True))
    assert holders_and_patterns(lab) == []
    lab.do(BOB, ReserveFiles(("x",), HOUR))


@proves("RESERVE-END")
@pytest.mark.parametrize("successor", [ALICE, BOB])
def test_reservation_of_an_ended_attempt_does_not_return_with_the_next(
    successor: Actor,
) -> None:
    lab = Lab()
    lab.do(HUMAN, CreateTask("t", "T", ready=True))
    lab.do(ALICE, ClaimTask("T", "alice", ttl_ms=TTL))
    lab.do(ALICE, ReserveFiles(("x",), HOUR, task="T"))
    lab.do(ALICE, CheckpointTask("T", "MANUAL"))
    lab.do(successor, ClaimTask("T", successor.name, ttl_ms=TTL))
    assert holders_and_patterns(lab) == []
    lab.do(HUMAN, ReserveFiles(("x",), HOUR))
    assert findings(lab.store) == []


@proves("RESERVE-END")
def test_reservations_are_renewed_and_released_by_id_pattern_or_all() -> None:
    lab = Lab()
    reserved = lab.do(ALICE, ReserveFiles(("src/",), HOUR))
    lab.do(ALICE, ReserveFiles(("x",), HOUR))
    lab.do(BOB, ReserveFiles(("y",), HOUR))
    lab.clock.advance(HOUR - 1)
    lab.do(ALICE, RenewReservations(("src/",), HOUR))
    lab.clock.advance(1)
    assert holders_and_patterns(lab) == [("alice", ("src/**",))]
    lab.do(ALICE, ReserveFiles(("z",), HOUR))
    lab.do(ALICE, ReleaseReservations((reserved.stream.partition(":")[2],)))
    assert holders_and_patterns(lab) == [("alice", ("z",))]
    assert lab.do(ALICE, ReleaseReservations()).warning == ""
    assert holders_and_patterns(lab) == []
    assert lab.do(ALICE, ReleaseReservations()).warning == "nothing was reserved"
    assert lab.code(ALICE, RenewReservations((), HOUR)) == "reservation_not_found"
    assert lab.code(ALICE, ReleaseReservations(("z",))) == "reservation_not_found"
    assert lab.code(ALICE, RenewReservations(("z",), HOUR)) == "reservation_not_found"


@proves("RESERVE-END")
def test_renewal_never_shortens_a_reservation() -> None:
    lab = Lab()
    long = lab.do(ALICE, ReserveFiles(("src/",), 3 * HOUR))
    assert lab.do(ALICE, RenewReservations(("src/",), HOUR)).expires_at == long.expires_at
    assert lab.do(ALICE, ReserveFiles(("src/",), HOUR)).expires_at == long.expires_at
    lab.do(ALICE, ReserveFiles(("x",), HOUR))
    both = lab.do(ALICE, RenewReservations((), 2 * HOUR))
    assert both.expires_at == lab.clock.now() + 2 * HOUR
    lab.clock.advance(2 * HOUR)
    assert holders_and_patterns(lab) == [("alice", ("src/**",))]


@proves("RESERVE-END")
def test_only_coordinating_roles_release_the_reservations_of_others() -> None:
    lab = Lab()
    lab.do(ALICE, ReserveFiles(("x",), HOUR))
    assert lab.code(BOB, ReleaseReservations(("x",))) == "not_authorized"
    assert lab.code(ORCHESTRATOR, RenewReservations(("x",), HOUR)) == "not_authorized"
    lab.do(ORCHESTRATOR, ReleaseReservations(("x",)))
    assert holders_and_patterns(lab) == []


@proves("RESERVE-TAKE")
@pytest.mark.parametrize(
    "command",
    [
        ReserveFiles((), HOUR),
        ReserveFiles(("/etc/passwd",), HOUR),
        ReserveFiles(("../x",), HOUR),
        ReserveFiles(("x" * 241,), HOUR),
        ReserveFiles(tuple(f"f{number}" for number in range(33)), HOUR),
        ReserveFiles(("x",), 999),
        ReserveFiles(("x",), HOUR, reason="y" * 4_001),
    ],
)
def test_invalid_reservation_is_refused(command: ReserveFiles) -> None:
    assert Lab().code(ALICE, command) == "invalid_field"


@proves("RESERVE-TAKE")
def test_observer_cannot_reserve() -> None:
    lab = Lab()
    for command in (ReserveFiles(("x",), HOUR), RenewReservations((), HOUR), ReleaseReservations()):
        assert lab.code(OBSERVER, command) == "not_authorized"


@proves("RESERVE-TAKE")
def test_number_of_reserved_patterns_is_bounded() -> None:
    lab = Lab()
    for number in range(15):
        names = tuple(f"d{number}/f{file}" for file in range(32))
        lab.do(HUMAN, ReserveFiles(names, HOUR))
    assert lab.code(BOB, ReserveFiles(tuple(f"g{n}" for n in range(21)), HOUR)) == "invalid_field"
    lab.do(BOB, ReserveFiles(tuple(f"g{n}" for n in range(20)), HOUR))


@proves("RESERVE-SHARE")
def test_patterns_per_agent_are_bounded() -> None:
    lab = Lab()
    for number in range(5):
        lab.do(ALICE, ReserveFiles(tuple(f"d{number}/f{file}" for file in range(20)), HOUR))
    answer = refusal(lab, ALICE, ReserveFiles(("one.more",), HOUR))
    assert answer.code == "invalid_field"
    assert answer.detail.startswith("100 patterns can be reserved by alice at a time")
    lab.do(BOB, ReserveFiles(("one.more",), HOUR))
    lab.do(ALICE, ReleaseReservations(("d0/f0",)))
    lab.do(ALICE, ReserveFiles(("another.one",), HOUR))


@proves("RESERVE-SHARE")
@pytest.mark.parametrize("glob", ["**", "*", "**/*", "*/**", "?*/**/*"])
def test_only_coordinating_roles_reserve_everything(glob: str) -> None:
    lab = Lab()
    assert lab.code(ALICE, ReserveFiles((glob,), HOUR)) == "not_authorized"
    lab.do(ORCHESTRATOR, ReserveFiles((glob,), HOUR))


@proves("RESERVE-SHARE")
def test_agent_reserves_for_a_day_at_most() -> None:
    lab = Lab()
    day = 24 * HOUR
    assert lab.code(ALICE, ReserveFiles(("x",), day + 1)) == "invalid_field"
    lab.do(ALICE, ReserveFiles(("x",), day))
    assert lab.code(ALICE, RenewReservations((), day + 1)) == "invalid_field"
    lab.clock.advance(day - 1)
    lab.do(ALICE, RenewReservations((), day))
    lab.do(ORCHESTRATOR, ReserveFiles(("y",), 7 * day))


@proves("RESERVE-TAKE")
def test_reservation_for_an_unknown_task_is_refused() -> None:
    lab = Lab()
    assert refusal(lab, ALICE, ReserveFiles(("a",), HOUR, task="nobody")).code == "task_not_found"
    unknown = Reservation("r", ("a",), task="nobody")
    assert not unknown.is_active(lambda name: Refusal("task_not_found", name), 0)


@proves("RESERVE-TAKE")
def test_disjoint_patterns_in_one_folder_do_not_conflict() -> None:
    lab = Lab()
    lab.do(ALICE, ReserveFiles(("src/*.py",), HOUR))
    lab.do(BOB, ReserveFiles(("src/*.md",), HOUR))
    assert len(holders_and_patterns(lab)) == 2
