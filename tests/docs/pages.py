"""A page of the docs as a script: the shell commands that it shows, run in their order."""

import os
import re
import shlex
import subprocess
import sys
from collections.abc import Mapping
from io import StringIO
from pathlib import Path

import pytest

from dragoman.bootstrap.cli_wiring import CLI_WIRING
from dragoman.surfaces.cli.app import main

_OF_THE_SHELL = re.compile(r" [<>|] | && | <<")
_HEREDOC = re.compile(r"<<'?(\w+)'?")


def commands_of(page: str) -> list[str]:
    """Commands of its shell blocks, each with the remark behind it."""
    script = "".join(re.findall(r"```sh\n(.*?)```", page, re.DOTALL)).replace("\\\n", " ")
    commands = [""]
    for line in script.splitlines():
        if _is_whole(commands[-1]):
            commands.append(line)
        else:
            commands[-1] += f"\n{line}"
    return [command for command in commands if command and not command.startswith("#")]


def _is_whole(command: str) -> bool:
    """True if neither a quotation nor a here-document goes on in the next line."""
    heredoc = _HEREDOC.search(command)
    if heredoc:
        return command.endswith(f"\n{heredoc[1]}")
    try:
        shlex.split(command, comments=True)
    except ValueError:
        return False
    return True


def run(command: str, stand_ins: Mapping[str, str] | None = None) -> str:
    """Run a line of a page and return its output; one marked as refused must be refused for that.

    Our own commands run here and not in a process each, which would take half a second to start.
    Nobody's settings count for them.
    A stand-in replaces what the page leaves to its reader: a folder of theirs, a token, an id.
    """
    words, _, remark = command.partition(" # refused: ")
    for shown, ours in (stand_ins or {}).items():
        words = words.replace(shown, ours)
    words = words.replace("uv run ", "").rstrip()
    if not words.startswith("dragoman ") or _OF_THE_SHELL.search(words):
        return _in_a_shell(words)
    out, err = StringIO(), StringIO()
    _, *args = shlex.split(words, comments=True)
    with pytest.MonkeyPatch.context() as patch:
        for name in _settings():
            patch.delenv(name)
        code = main(CLI_WIRING, args, out, err, lambda: False)
    assert code == (1 if remark else 0), (command, err.getvalue())
    assert err.getvalue().startswith(remark) or not remark, command
    return out.getvalue()


def _settings() -> list[str]:
    """The variables that whoever runs the tests has set for a hub of their own."""
    return [name for name in os.environ if name.startswith("DRAGOMAN_")]


def _in_a_shell(words: str) -> str:
    """Output of a shell command, with our program first in the path and no settings."""
    inherited = dict(os.environ)
    for name in _settings():
        del inherited[name]
    path = f"{Path(sys.executable).parent}{os.pathsep}{inherited['PATH']}"
    done = subprocess.run(
        ["sh", "-c", words],
        env=inherited | {"PATH": path},
        text=True,
        capture_output=True,
        check=False,
    )
    assert done.returncode == 0, (words, done.stderr)
    return done.stdout
