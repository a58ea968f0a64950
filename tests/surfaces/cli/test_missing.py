"""What is not there: every command that looks for it says the same, by the same code."""

import os
from pathlib import Path

import pytest

from dragoman.core import missing
from tests.requirements import proves
from tests.surfaces.cli.console import Console

HANDOFF = {
    "show": (),
    "timeline": (),
    "diagnose": (),
    "verify": (),
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
    "validate": (),
    "propose": (),
    "discard": (),
}
OTHERS = (
    (("intent", "show", "nope"), missing.intent("nope")),
    (("intent", "cancel", "nope"), missing.intent("nope")),
    (("why", "nope"), missing.intent("nope")),
    (("wave", "show", "nope"), missing.wave("nope")),
    (("wave", "watch", "nope"), missing.wave("nope")),
    (("mail", "show", "nope"), missing.letter("nope")),
    (("mail", "read", "nope", "--as", "ada"), missing.letter("nope")),
    (("mail", "ack", "nope", "--as", "ada"), missing.letter("nope")),
    (("agent", "show", "nope"), missing.agent("nope")),
    (("agent", "token", "nope"), missing.agent("nope")),
    (("agent", "revoke", "nope"), missing.agent("nope")),
    (("agent", "pause", "nope"), missing.agent("nope")),
    (("agent", "resume", "nope"), missing.agent("nope")),
    (("task", "show", "nope"), missing.task("nope")),
    (("task", "log", "nope"), missing.task("nope")),
    (("task", "move", "nope", "done"), missing.task("nope")),
    (("task", "claim", "nope", "--agent", "ada"), missing.task("nope")),
    (("reserve", "renew", "nope"), missing.reservation("nope")),
    (("reserve", "release", "nope"), missing.reservation("nope")),
)

READING = (
    ("send", "{}"),
    ("lint", "--dialect", "aof", "{}"),
    ("redact", "{}"),
    ("trace", "{}", "--task", "T-1"),
    ("mail", "send", "{}"),
    ("wave", "start", "--file", "{}", "--parallel", "1"),
    ("handoff", "initiate", "{}"),
    ("handoff", "verify", "--replay", "{}"),
    ("agent", "discover", "{}"),
    ("verify", "--chain", "{}"),
    ("import", "{}"),
    ("restore", "{}"),
    ("task", "create", "x", "--body-file", "{}"),
)
"""Every command that reads a file which is named to it."""


def told(dragoman: Console, *words: str) -> tuple[str, str]:
    said = dragoman.ask(*words, code=1)
    return said["code"], said["detail"]


@proves("MISSING-WORDS", "CLI-OWN-CODES")
def test_every_command_about_handoffs_says_the_same_of_one_that_is_not_there(
    dragoman: Console,
) -> None:
    dragoman("init")
    no = missing.handoff("nope")
    for verb, more in HANDOFF.items():
        assert told(dragoman, "handoff", verb, "nope", *more) == (no.code, no.detail), verb
    said = dragoman("handoff", "accept", "nope")
    assert (said.code, said.out, said.err) == (1, "", f"{no.code}: {no.detail}\n")


@proves("MISSING-WORDS")
def test_every_command_says_the_same_of_what_is_not_there(dragoman: Console) -> None:
    dragoman("init")
    for words, no in OTHERS:
        assert told(dragoman, *words) == (no.code, no.detail), words


@proves("CLI-OWN-CODES")
def test_what_is_said_in_a_dialect_is_answered_by_its_code(dragoman: Console) -> None:
    dragoman("init")
    said = '{"action": "accept", "handoff_id": "nope"}'
    wire = dragoman.ask("call", "acp_handoff", said, "--as", "bob", code=1)
    assert (wire["code"], wire["error"]["code"]) == ("not_found", "not_found")
    own = dragoman.ask("handoff", "accept", "nope", "--as", "bob", code=1)
    assert (own["code"], own["error"]["code"]) == ("handoff_not_found", "not_found")


@proves("MISSING-WORDS")
def test_the_field_stands_beside_the_sentence_and_not_in_it(dragoman: Console) -> None:
    dragoman("init")
    no = missing.wave("nope")
    said = dragoman.ask("call", "wave.status", '{"wave_id": "nope"}', code=1)
    assert said == {"ok": False, "code": no.code, "detail": no.detail, "path": "wave_id"}


@proves("CLI-NO-FILE")
def test_a_file_that_is_not_there_is_told_alike_by_every_command(
    dragoman: Console, tmp_path: Path
) -> None:
    file = tmp_path / "no such.json"
    for words in READING:
        said = dragoman(*(word.format(file) for word in words))
        assert (said.code, said.out) == (2, ""), words
        why = f": {file} cannot be read: No such file or directory\nTry `dragoman "
        assert why in said.err, words
    assert not dragoman.data.exists()


@proves("CLI-NO-FILE")
@pytest.mark.parametrize("command", ["import", "restore"])
def test_what_has_to_be_read_twice_is_no_pipe(
    dragoman: Console, tmp_path: Path, command: str
) -> None:
    os.mkfifo(tmp_path / "pipe")
    said = dragoman(command, str(tmp_path / "pipe"))
    assert (said.code, said.out) == (2, "")
    assert "pipe cannot be read: it is no file that stays as it is" in said.err
