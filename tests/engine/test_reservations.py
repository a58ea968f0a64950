"""File reservations: conflicts, release, expiry and limits."""

import pytest

from dragoman.core.actor import Actor
from dragoman.core.errors import Refusal
from dragoman.core.reservation import ReleaseReservations, ReserveFiles
from dragoman.engine.queries.waves import find_reservations
from tests.engine.lab import ALICE, BOB, HUMAN, Lab, findings
from tests.requirements import proves

HOUR = 3_600_000
ORCHESTRATOR = Actor("orchestrator", "olga")
OBSERVER = Actor("observer", "otto")


def holders_and_patterns(lab: Lab) -> list[tuple[str, tuple[str, ...]]]:
    """List holder and patterns of each active reservation."""
    found = find_reservations(lab.store, lab.clock.now())
    return [(one.holder, one.patterns) for one in found]


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
        "src/core/x.py is reserved by alice until 2026-02-09T15:30:00.000Z as src/**: "
        "take other files, ask for it, or wait"
    )
    assert holders_and_patterns(lab) == [("alice", ("src/**",))]
    lab.do(ALICE, ReserveFiles(("src/core/x.py",), HOUR))
    assert findings(lab.store) == []


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
def test_reservations_are_extended_and_released_by_id_pattern_or_all() -> None:
    lab = Lab()
    reserved = lab.do(ALICE, ReserveFiles(("src/",), HOUR))
    lab.do(ALICE, ReserveFiles(("x",), HOUR))
    lab.do(BOB, ReserveFiles(("y",), HOUR))
    lab.clock.advance(HOUR - 1)
    longer = lab.do(ALICE, ReserveFiles(("src/",), HOUR))
    lab.clock.advance(1)
    assert holders_and_patterns(lab) == [("alice", ("src/**",))]
    assert lab.do(ALICE, ReserveFiles(("src/",), 1_000)).expires_at == longer.expires_at
    lab.do(ALICE, ReserveFiles(("z",), HOUR))
    id = reserved.stream.partition(":")[2]
    assert lab.do(ALICE, ReleaseReservations((id, "src/"))).ended_reservations == (id,)
    assert holders_and_patterns(lab) == [("alice", ("z",))]
    assert len(lab.do(ALICE, ReleaseReservations()).ended_reservations) == 1
    assert holders_and_patterns(lab) == []
    assert lab.do(ALICE, ReleaseReservations()).ended_reservations == ()
    assert lab.code(ALICE, ReleaseReservations(("z",))) == "reservation_not_found"


@proves("RESERVE-END")
def test_only_coordinating_roles_release_the_reservations_of_others() -> None:
    lab = Lab()
    lab.do(ALICE, ReserveFiles(("x",), HOUR))
    assert lab.code(BOB, ReleaseReservations(("x",))) == "not_authorized"
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
        ReserveFiles(("x",), 24 * HOUR + 1),
        ReserveFiles(("x",), HOUR, reason="y" * 4_001),
    ],
)
def test_invalid_reservation_is_refused(command: ReserveFiles) -> None:
    assert Lab().code(ALICE, command) == "invalid_field"


@proves("RESERVE-TAKE")
def test_observer_cannot_reserve() -> None:
    lab = Lab()
    for command in (ReserveFiles(("x",), HOUR), ReleaseReservations()):
        assert lab.code(OBSERVER, command) == "not_authorized"


@proves("RESERVE-TAKE")
def test_number_of_reserved_patterns_is_bounded() -> None:
    lab = Lab()
    for number in range(15):
        names = tuple(f"d{number}/f{file}" for file in range(32))
        lab.do(HUMAN, ReserveFiles(names, HOUR))
    assert lab.code(BOB, ReserveFiles(tuple(f"g{n}" for n in range(21)), HOUR)) == "invalid_field"
    lab.do(BOB, ReserveFiles(tuple(f"g{n}" for n in range(20)), HOUR))


@proves("RESERVE-TAKE")
def test_disjoint_patterns_in_one_folder_do_not_conflict() -> None:
    lab = Lab()
    lab.do(ALICE, ReserveFiles(("src/*.py",), HOUR))
    lab.do(BOB, ReserveFiles(("src/*.md",), HOUR))
    assert len(holders_and_patterns(lab)) == 2
