"""wave and reserve: started, followed, listed and refused, for people and as JSON."""

import json
from pathlib import Path

import pytest

from tests.requirements import proves
from tests.surfaces.cli.console import NOON, Console

pytestmark = proves("CLI-WAVE")

LATER = "2026-02-09T12:01:00Z"


@pytest.fixture
def wave(dragoman: Console) -> Console:
    """Give a directory with a wave of three beads, two of which want one file."""
    dragoman.ask(
        *("wave", "start", "a=src/x.py", "b=src/,docs/y.md", "c", "--parallel", "3"),
        *("--id", "w1", "--orchestrator", "olga", "--retry", "TESTS_FAIL=1", "--now", NOON),
    )
    return dragoman


def finish(dragoman: Console, bead: str) -> None:
    """Let ada do a bead."""
    dragoman.ask("task", "claim", bead, "--agent", "ada", "--now", NOON)
    dragoman.ask("task", "move", bead, "review", "--as", "ada", "--now", NOON)


@proves("WAVE-STATUS", "WAVE-START")
def test_start_answers_with_the_wave_as_it_stands(dragoman: Console) -> None:
    said = dragoman("wave", "start", "a=x", "b=x", "--parallel", "2", "--id", "w1", "--now", NOON)
    assert said.code == 0
    assert said.out.splitlines() == [
        "w1  under way since 2026-02-09T12:00:00.000Z, at most 2 at a time: 1 ready, 1 backlog",
        "BEAD  STATUS   ATTEMPTS  WHO  WAITS FOR, OR WHY IT IS STUCK",
        "a     ready    0              an agent that claims it",
        "b     backlog  0              x, reserved by bead a as x",
    ]


@proves("WAVE-STATUS")
def test_status_as_json_names_what_interfaces_promise(wave: Console) -> None:
    told = wave.ask("wave", "show", "w1", "--now", NOON)
    assert (told["wave_id"], told["complete"], told["parallel"]) == ("w1", False, 3)
    assert told["counts"] == {"ready": 2, "backlog": 1}
    assert told["retries"] == {"TESTS_FAIL": 1}
    assert [(bead["id"], bead["status"]) for bead in told["beads"]] == [
        ("a", "ready"),
        ("b", "backlog"),
        ("c", "ready"),
    ]


def test_beads_come_from_a_file_too(dragoman: Console, tmp_path: Path) -> None:
    listed = tmp_path / "beads.json"
    listed.write_text(json.dumps({"beads": ["a", {"id": "b", "title": "Bee", "files": ["x"]}]}))
    told = dragoman.ask("wave", "start", "z", "--file", str(listed), "--parallel", "1")
    assert [(bead["id"], bead["title"]) for bead in told["beads"]] == [
        ("z", "z"),
        ("a", "a"),
        ("b", "Bee"),
    ]


@pytest.mark.parametrize("text", ["{", '{"beads": 1}', '"a"'])
def test_a_file_without_beads_is_not_understood(
    dragoman: Console, tmp_path: Path, text: str
) -> None:
    listed = tmp_path / "beads.json"
    listed.write_text(text)
    assert dragoman("wave", "start", "--file", str(listed), "--parallel", "1").code == 2


@pytest.mark.parametrize(
    "words", [("a",), ("a", "--parallel", "0"), ("a", "--parallel", "1", "--retry", "TESTS_FAIL")]
)
def test_a_start_that_says_too_little_is_not_understood(
    dragoman: Console, words: tuple[str, ...]
) -> None:
    assert dragoman("wave", "start", *words).code == 2


@proves("WAVE-COMPLETE", "WAVE-FILES")
def test_watch_follows_the_wave_to_its_closing_report(wave: Console) -> None:
    steps = [lambda: finish(wave, "a"), lambda: finish(wave, "c"), lambda: finish(wave, "b")]

    def wait() -> bool:
        steps.pop(0)()
        wave.ask("tick", "--now", LATER)
        return True

    said = wave("wave", "watch", "w1", "--now", LATER, wait=wait)
    assert said.code == 0
    lines = said.out.splitlines()
    assert "b: backlog, waits for src/**, reserved by bead a as src/x.py" in lines
    assert "a: review, ada" in lines
    assert lines[-5:-3] == [
        "w1  complete since 2026-02-09T12:01:00.000Z: 3 review",
        "BEAD  STATUS  ATTEMPTS  WHO  WAITS FOR, OR WHY IT IS STUCK",
    ]
    wave.ask("task", "move", "a", "ready", "--now", LATER)
    told = wave("wave", "status", "w1", "--now", LATER).out.splitlines()
    assert told[0] == "w1  complete since 2026-02-09T12:01:00.000Z: 1 ready, 2 review"
    letters = wave.ask("call", "mail.inbox", "--as", "olga")["messages"]
    assert [letter["subject"] for letter in letters] == ["Wave w1 is complete: 3 review"]


def test_watch_shows_a_bar_on_a_terminal_and_lines_of_json_to_programs(wave: Console) -> None:
    for bead in ("a", "c"):
        finish(wave, bead)
    wave.ask("tick", "--now", LATER)
    finish(wave, "b")
    wave.ask("tick", "--now", LATER)
    assert "complete" in wave.on_terminal("wave", "watch", "w1").out
    objects = wave("wave", "watch", "w1", "--json").objects
    assert [told["bead"]["id"] for told in objects[:-1]] == ["a", "b", "c"]
    assert objects[-1]["complete"] is True


def test_watch_says_of_a_bead_that_is_stuck_why_and_not_that_it_waits(wave: Console) -> None:
    wave.ask("task", "move", "a", "blocked", "--reason", "no key", "--now", NOON)
    lines = wave("wave", "watch", "w1", "--now", NOON).out.splitlines()
    assert lines[0] == "a: blocked: no key"


def test_a_bead_that_only_waits_for_somebody_to_look_says_so(wave: Console) -> None:
    finish(wave, "a")
    shown = wave.ask("wave", "show", "w1", "--now", NOON)
    assert shown["beads"][1]["waits_for"] == {"what": "tick"}
    words = "the next look at the wave, by a hub or by `dragoman tick`"
    assert words in wave("wave", "show", "w1", "--now", NOON).out


def test_watch_says_when_nobody_takes_the_wave_on(wave: Console) -> None:
    assert "no hub runs here" in wave("wave", "watch", "w1", "--now", NOON).err


def test_list_names_the_newest_first(wave: Console) -> None:
    wave.ask("wave", "start", "z", "--parallel", "1", "--id", "w2", "--now", LATER)
    told = wave.ask("wave", "list")["waves"]
    assert [one["wave_id"] for one in told] == ["w2", "w1"]
    assert "under way since 2026-02-09T12:01" in wave("wave", "list").out


@proves("WAVE-START")
def test_what_is_refused_says_why_and_ends_with_1(wave: Console) -> None:
    assert wave.ask("wave", "show", "w9", code=1)["code"] == "wave_not_found"
    again = wave.ask("wave", "start", "z", "--parallel", "1", "--id", "w1", code=1)
    assert again["code"] == "already_exists"
    agent = wave.ask("wave", "start", "z", "--parallel", "1", "--as", "ada", code=1)
    assert agent["code"] == "not_authorized"


@proves("REDACT-REQUESTS")
def test_who_reserves_with_a_secret_is_told_that_it_was_masked(dragoman: Console) -> None:
    secret = f"ghp_{'a1B2' * 9}"
    taken = dragoman("reserve", "take", "src/", "--as", "ada", "--reason", secret, "--now", NOON)
    assert "warning: a secret was masked: reason (github_token)\n" in taken.err


@proves("RESERVE-TAKE", "RESERVE-END")
def test_files_are_reserved_listed_renewed_and_given_back(dragoman: Console) -> None:
    taken = dragoman.ask("reserve", "take", "src/", "--as", "ada", "--ttl", "5m", "--now", NOON)
    assert (taken["patterns"], taken["mode"], taken["until"]) == (
        ["src/**"],
        "exclusive",
        "2026-02-09T12:05:00.000Z",
    )
    refused = dragoman.ask("reserve", "take", "src/x", "--as", "bob", "--now", NOON, code=1)
    assert refused["code"] == "reserved"
    assert "reserved by ada as src/** until 2026-02-09T12:05:00.000Z" in refused["detail"]
    listed = dragoman("reserve", "list", "--now", NOON).out.splitlines()
    assert listed[1].split()[1:] == ["ada", "exclusive", "2026-02-09T12:05:00.000Z", "src/**"]
    assert dragoman.ask("reserve", "list", "docs/", "--now", NOON)["reservations"] == []
    renewed = dragoman("reserve", "renew", "--as", "ada", "--ttl", "1h", "--now", NOON)
    assert renewed.out == "reserved until 2026-02-09T13:00:00.000Z\n"
    assert dragoman("reserve", "release", "src/", "--now", NOON).out == "given back\n"
    assert dragoman("reserve", "list", "--now", NOON).out == "nothing is reserved\n"
    shared = dragoman("reserve", "take", "a", "b", "--shared", "--now", NOON).out
    assert shared == "reserved until 2026-02-09T13:00:00.000Z: a b\n"
    wrong = dragoman.ask("reserve", "list", "/etc", "--now", NOON, code=1)
    assert wrong["code"] == "invalid_field"
    assert dragoman.ask("reserve", "release", "zz", "--now", NOON, code=1)["code"] == (
        "reservation_not_found"
    )


@proves("RESERVE-NOTHING")
def test_who_has_reserved_nothing_gives_nothing_back_and_renews_nothing(dragoman: Console) -> None:
    assert dragoman("reserve", "take", "src/", "--as", "ada").code == 0
    assert dragoman("reserve", "release", "--as", "ben").out == "nothing was reserved\n"
    told = dragoman.ask("reserve", "release", "--as", "ben")
    assert told == {"ok": True, "released": [], "remark": "nothing was reserved"}
    refused = dragoman.ask("reserve", "renew", "--as", "ben", code=1)
    assert refused["code"] == "reservation_not_found"
    assert "ben has nothing reserved" in refused["detail"]
    assert dragoman("reserve", "release", "--as", "ada").out == "given back\n"
    assert dragoman("reserve", "list").out == "nothing is reserved\n"
