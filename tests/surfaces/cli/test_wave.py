"""`wave` and `reserve`: start, status, lists and refusals, as text and JSON."""

import pytest

from tests.requirements import proves
from tests.surfaces.cli.console import NOON, Console

pytestmark = proves("CLI-WAVE")

LATER = "2026-02-09T12:01:00Z"


@pytest.fixture
def wave(dragoman: Console) -> Console:
    """Give a directory with a wave of three beads, two of which need the same file."""
    dragoman.ask(
        *("wave", "start", "a=src/x.py", "b=src/,docs/y.md", "c", "--parallel", "3"),
        *("--id", "w1", "--orchestrator", "olga", "--retry", "TESTS_FAIL=1", "--now", NOON),
    )
    return dragoman


def complete_bead(dragoman: Console, bead: str) -> None:
    """Complete a bead as ada."""
    dragoman.ask("task", "claim", bead, "--agent", "ada", "--now", NOON)
    dragoman.ask("task", "move", bead, "review", "--as", "ada", "--now", NOON)


@proves("WAVE-STATUS", "WAVE-START")
def test_start_prints_the_wave(dragoman: Console) -> None:
    result = dragoman("wave", "start", "a=x", "b=x", "--parallel", "2", "--id", "w1", "--now", NOON)
    assert result.code == 0
    assert result.out.splitlines() == [
        "w1  under way since 2026-02-09T12:00:00.000Z, at most 2 at a time: 1 ready, 1 backlog",
        "BEAD  STATUS   ATTEMPTS  WHO  WAITS FOR, OR WHY IT IS STUCK",
        "a     ready    0              an agent that claims it",
        "b     backlog  0              x, reserved for a as x",
    ]


@proves("WAVE-STATUS")
def test_status_json_has_the_documented_fields(wave: Console) -> None:
    reply = wave.ask("wave", "status", "w1", "--now", NOON)
    assert (reply["wave_id"], reply["complete"], reply["parallel"]) == ("w1", False, 3)
    assert reply["counts"] == {"ready": 2, "backlog": 1}
    assert reply["retries"] == {"TESTS_FAIL": 1}
    assert [(bead["id"], bead["status"]) for bead in reply["beads"]] == [
        ("a", "ready"),
        ("b", "backlog"),
        ("c", "ready"),
    ]


@pytest.mark.parametrize(
    "args", [("a",), ("a", "--parallel", "0"), ("a", "--parallel", "1", "--retry", "TESTS_FAIL")]
)
def test_incomplete_start_is_a_usage_error(dragoman: Console, args: tuple[str, ...]) -> None:
    assert dragoman("wave", "start", *args).code == 2


@proves("WAVE-COMPLETE", "WAVE-FILES")
def test_status_follows_the_wave_to_its_closing_report(wave: Console) -> None:
    shown = wave("wave", "status", "w1", "--now", LATER).out
    assert "src/**, reserved for a as src/x.py" in shown
    for bead in ("a", "c", "b"):
        complete_bead(wave, bead)
        wave.ask("tick", "--now", LATER)
    lines = wave("wave", "status", "w1", "--now", LATER).out.splitlines()
    assert lines[0] == "w1  complete since 2026-02-09T12:01:00.000Z: 3 review"
    assert lines[1] == "BEAD  STATUS  ATTEMPTS  WHO  WAITS FOR, OR WHY IT IS STUCK"
    wave.ask("task", "move", "a", "ready", "--now", LATER)
    output = wave("wave", "status", "w1", "--now", LATER).out.splitlines()
    assert output[0] == "w1  complete since 2026-02-09T12:01:00.000Z: 1 ready, 2 review"
    letters = wave.ask("call", "mail.inbox", "--as", "olga")["messages"]
    assert [letter["subject"] for letter in letters] == ["Wave w1 is complete: 3 review"]


def test_status_names_the_reason_of_a_stuck_bead(wave: Console) -> None:
    wave.ask("task", "move", "a", "blocked", "--reason", "no key", "--now", NOON)
    assert "no key" in wave("wave", "status", "w1", "--now", NOON).out


def test_bead_that_waits_for_a_tick_is_described_as_such(wave: Console) -> None:
    complete_bead(wave, "a")
    shown = wave.ask("wave", "status", "w1", "--now", NOON)
    assert shown["beads"][1]["waits_for"] == {"what": "tick"}
    expected = "the next check of the wave, by a hub or by `dragoman tick`"
    assert expected in wave("wave", "status", "w1", "--now", NOON).out


def test_list_names_the_newest_first(wave: Console) -> None:
    wave.ask("wave", "start", "z", "--parallel", "1", "--id", "w2", "--now", LATER)
    reply = wave.ask("wave", "list")["waves"]
    assert [one["wave_id"] for one in reply] == ["w2", "w1"]
    assert "under way since 2026-02-09T12:01" in wave("wave", "list").out


@proves("WAVE-START")
def test_refusals_exit_1_with_their_code(wave: Console) -> None:
    assert wave.ask("wave", "status", "w9", code=1)["code"] == "wave_not_found"
    again = wave.ask("wave", "start", "z", "--parallel", "1", "--id", "w1", code=1)
    assert again["code"] == "already_exists"
    agent = wave.ask("wave", "start", "z", "--parallel", "1", "--as", "ada", code=1)
    assert agent["code"] == "not_authorized"


@proves("REDACT-REQUESTS")
def test_masked_secret_of_a_reservation_is_a_warning(dragoman: Console) -> None:
    secret = f"ghp_{'a1B2' * 9}"
    taken = dragoman("reserve", "take", "src/", "--as", "ada", "--reason", secret, "--now", NOON)
    assert "warning: a secret was masked: reason (github_token)\n" in taken.err


@proves("RESERVE-TAKE", "RESERVE-END")
def test_files_are_reserved_listed_and_released(dragoman: Console) -> None:
    taken = dragoman.ask("reserve", "take", "src/", "--as", "ada", "--ttl", "5m", "--now", NOON)
    assert (taken["patterns"], taken["until"]) == (["src/**"], "2026-02-09T12:05:00.000Z")
    refused = dragoman.ask("reserve", "take", "src/x", "--as", "bob", "--now", NOON, code=1)
    assert refused["code"] == "files_reserved"
    assert "reserved by ada until 2026-02-09T12:05:00.000Z as src/**" in refused["detail"]
    listed = dragoman("reserve", "list", "--now", NOON).out.splitlines()
    assert listed[1].split()[1:] == ["ada", "2026-02-09T12:05:00.000Z", "src/**"]
    assert dragoman.ask("reserve", "list", "docs/", "--now", NOON)["reservations"] == []
    assert dragoman("reserve", "release", "src/", "--now", NOON).out == "released\n"
    assert dragoman("reserve", "list", "--now", NOON).out == "none\n"
    two = dragoman("reserve", "take", "a", "b", "--now", NOON).out
    assert two == "reserved until 2026-02-09T13:00:00.000Z: a b\n"
    wrong = dragoman.ask("reserve", "list", "/etc", "--now", NOON, code=1)
    assert wrong["code"] == "invalid_field"
    assert dragoman.ask("reserve", "release", "zz", "--now", NOON, code=1)["code"] == (
        "reservation_not_found"
    )


@proves("RESERVE-NOTHING")
def test_release_without_reservation_changes_nothing(dragoman: Console) -> None:
    assert dragoman("reserve", "take", "src/", "--as", "ada").code == 0
    assert dragoman("reserve", "release", "--as", "ben").out == "nothing was reserved\n"
    reply = dragoman.ask("reserve", "release", "--as", "ben")
    assert reply == {"ok": True, "released": []}
    assert dragoman("reserve", "release", "--as", "ada").out == "released\n"
    assert dragoman("reserve", "list").out == "none\n"
