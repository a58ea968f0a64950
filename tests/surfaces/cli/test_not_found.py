"""Missing objects: every command reports them with the same code and sentence."""

import os
from pathlib import Path

import pytest

from dragoman.core import not_found
from tests.requirements import proves
from tests.surfaces.cli.console import Console

HANDOFF_COMMANDS = {
    "show": (),
    "diagnose": (),
    "accept": (),
    "activate": (),
    "complete": (),
    "close": (),
    "withdraw": (),
    "extend": ("--by", "30m"),
    "reassign": ("--to", "dan"),
    "reject": ("--reason", "capacity_unavailable", "--detail", "not now"),
    "approve": (),
    "deny": (),
}
OTHER_COMMANDS = (
    (("intent", "show", "nope"), not_found.intent("nope")),
    (("intent", "cancel", "nope"), not_found.intent("nope")),
    (("why", "nope"), not_found.intent("nope")),
    (("wave", "status", "nope"), not_found.wave("nope")),
    (("mail", "show", "nope"), not_found.letter("nope")),
    (("mail", "read", "nope", "--as", "ada"), not_found.letter("nope")),
    (("mail", "ack", "nope", "--as", "ada"), not_found.letter("nope")),
    (("agent", "show", "nope"), not_found.agent("nope")),
    (("agent", "token", "nope"), not_found.agent("nope")),
    (("agent", "revoke", "nope"), not_found.agent("nope")),
    (("agent", "pause", "nope"), not_found.agent("nope")),
    (("agent", "resume", "nope"), not_found.agent("nope")),
    (("task", "show", "nope"), not_found.task("nope")),
    (("task", "log", "nope"), not_found.task("nope")),
    (("task", "move", "nope", "done"), not_found.task("nope")),
    (("task", "claim", "nope", "--agent", "ada"), not_found.task("nope")),
    (("reserve", "release", "nope"), not_found.reservation("nope")),
)

FILE_COMMANDS = (
    ("send", "{}"),
    ("lint", "--dialect", "aof", "{}"),
    ("redact", "{}"),
    ("handoff", "initiate", "{}"),
    ("import", "{}"),
    ("restore", "{}"),
    ("task", "create", "x", "--body-file", "{}"),
)
"""Every command that reads a file named by an argument."""


def error_of(dragoman: Console, *args: str) -> tuple[str, str]:
    reply = dragoman.ask(*args, code=1)
    return reply["code"], reply["detail"]


@proves("MISSING-WORDS", "CLI-OWN-CODES")
def test_handoff_commands_report_a_missing_handoff_alike(
    dragoman: Console,
) -> None:
    dragoman("init")
    refusal = not_found.handoff("nope")
    for command, options in HANDOFF_COMMANDS.items():
        assert error_of(dragoman, "handoff", command, "nope", *options) == (
            refusal.code,
            refusal.detail,
        ), command
    result = dragoman("handoff", "accept", "nope")
    assert (result.code, result.out, result.err) == (1, "", f"{refusal.code}: {refusal.detail}\n")


@proves("MISSING-WORDS")
def test_commands_report_a_missing_object_alike(dragoman: Console) -> None:
    dragoman("init")
    for args, refusal in OTHER_COMMANDS:
        assert error_of(dragoman, *args) == (refusal.code, refusal.detail), args


@proves("CLI-OWN-CODES")
def test_call_answers_with_the_code_of_its_dialect(dragoman: Console) -> None:
    dragoman("init")
    message = '{"action": "accept", "handoff_id": "nope"}'
    called = dragoman.ask("call", "acp_handoff", message, "--as", "bob", code=1)
    assert (called["code"], called["error"]["code"]) == ("not_found", "not_found")
    typed = dragoman.ask("handoff", "accept", "nope", "--as", "bob", code=1)
    assert (typed["code"], typed["error"]["code"]) == ("handoff_not_found", "not_found")


@proves("MISSING-WORDS")
def test_field_path_is_separate_from_the_detail(dragoman: Console) -> None:
    dragoman("init")
    refusal = not_found.wave("nope")
    reply = dragoman.ask("call", "wave.status", '{"wave_id": "nope"}', code=1)
    assert reply == {"ok": False, "code": refusal.code, "detail": refusal.detail, "path": "wave_id"}


@proves("CLI-NO-FILE")
def test_missing_file_has_the_same_error_in_every_command(
    dragoman: Console, tmp_path: Path
) -> None:
    file = tmp_path / "no such.json"
    for args in FILE_COMMANDS:
        result = dragoman(*(word.format(file) for word in args))
        assert (result.code, result.out) == (2, ""), args
        reason = f": {file} cannot be read: No such file or directory\nTry `dragoman "
        assert reason in result.err, args
    assert not dragoman.data.exists()


@proves("CLI-NO-FILE")
@pytest.mark.parametrize("command", ["import", "restore"])
def test_input_that_is_read_twice_cannot_be_a_pipe(
    dragoman: Console, tmp_path: Path, command: str
) -> None:
    os.mkfifo(tmp_path / "pipe")
    result = dragoman(command, str(tmp_path / "pipe"))
    assert (result.code, result.out) == (2, "")
    assert "pipe cannot be read: it is not a regular file" in result.err
