"""A person beside a running hub is told: lines at its terminal, and letters to the owner."""

import json
import subprocess
from collections.abc import Callable
from typing import Any

from tests.e2e.program import Program, wait_for_exit
from tests.requirements import proves


def read_until(process: subprocess.Popen[str], part: str) -> str:
    """Read lines of a hub until one has this part; return it."""
    assert process.stdout is not None
    return next(line for line in iter(process.stdout.readline, "") if part in line)


def wait_for_letter(program: Program, matches: Callable[[Any], bool]) -> Any:
    """Wait for a letter in the inbox of the owner."""
    follow = program.start("mail", "inbox", "--watch", "--json")
    assert follow.stdout is not None
    try:
        found = (json.loads(line) for line in iter(follow.stdout.readline, ""))
        return next(letter for letter in found if matches(letter))
    finally:
        follow.kill()
        follow.communicate()


@proves("HUB-TERMINAL", "NOTIFY-ATTENTION", "OWNER")
def test_owner_is_told_at_the_terminal_and_by_letter(program: Program) -> None:
    program.prepare("task", "create", "Paint it", "--id", "T-1", "--ready")
    hub = program.start("up", "--port", "0")
    try:
        read_until(hub, "next ")
        program.ask("task", "claim", "T-1", "--agent", "ada")
        assert "T-1  ada began attempt 1" in read_until(hub, "began")
        program.ask("task", "ask", "T-1", "red or\x1b[2J blue?", "--agent", "ada")
        asked = read_until(hub, "asks")
        assert 'blue?: dragoman task answer T-1 "…"' in asked
        assert "\x1b" not in asked
        letter = wait_for_letter(program, lambda one: one["subject"] == "A question: T-1")
        assert letter["from"] == "hub"
    finally:
        hub.terminate()
        wait_for_exit(hub)


@proves("HUB-TERMINAL")
def test_quiet_hub_prints_nothing_about_tasks(program: Program) -> None:
    program.prepare("task", "create", "Paint it", "--id", "T-1", "--ready")
    (program.data / "dragoman.toml").write_text("[hub]\nquiet = true\n")
    hub = program.start("up", "--port", "0")
    read_until(hub, "next ")
    program.ask("task", "claim", "T-1", "--agent", "ada")
    hub.terminate()
    assert "began" not in wait_for_exit(hub).out
