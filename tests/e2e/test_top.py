"""`dragoman top` in a terminal of 80×24, and the sentences where it cannot be shown."""

import fcntl
import os
import pty
import select
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Generator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

from tests.e2e.hub_process import run_hub
from tests.e2e.program import COMMAND, Program
from tests.requirements import proves
from tests.surfaces.cli.console import Console

SECONDS = 60

TITLE = "[red]x[/red]\x1b[31m\x1b]0;owned\x07\u202e"


@pytest.fixture
def program(tmp_path: Path, bytecode: Path) -> Generator[Program]:
    """Give the program on a data directory that does not exist yet."""
    with closing(Program(tmp_path / "hub", bytecode)) as started:
        yield started


class TerminalRun:
    """A program on a terminal of its own, and all that it has written there."""

    def __init__(self, process: subprocess.Popen[bytes], master: int) -> None:
        self.process = process
        self._master = master
        self.written = b""

    def read_until(self, text: bytes) -> None:
        """Read until a text was written; fail after a minute."""
        end = time.monotonic() + SECONDS
        while text not in self.written:
            ready, _, _ = select.select([self._master], [], [], max(0, end - time.monotonic()))
            assert ready, f"{text!r} did not come: {self.written[-3000:]!r}"
            try:
                part = os.read(self._master, 65_536)
            except OSError:  # the other end is closed
                part = b""
            assert part, f"it ended before {text!r}: {self.written[-3000:]!r}"
            self.written += part

    def type(self, keys: bytes) -> None:
        """Type keys."""
        os.write(self._master, keys)


@contextmanager
def on_terminal(program: Program, *args: str, **more: str) -> Generator[TerminalRun]:
    """Run a command on a terminal of 80 columns and 24 lines."""
    master, slave = pty.openpty()
    fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))
    environment = program.environment({"TERM": "xterm-256color", **more})
    process = subprocess.Popen(
        (*COMMAND, *args),
        stdin=slave,
        stdout=slave,
        stderr=slave,
        env=environment,
        start_new_session=True,
    )
    os.close(slave)
    try:
        yield TerminalRun(process, master)
    finally:
        if process.poll() is None:
            process.kill()
        process.wait(SECONDS)
        os.close(master)


@proves("TOP-COMMAND", "TOP-SAFE-TEXT")
@pytest.mark.parametrize("is_elsewhere", [False, True])
def test_fleet_is_shown_and_steered_on_a_terminal(program: Program, is_elsewhere: bool) -> None:
    program.prepare("task", "create", TITLE, "--id", "hostile", "--ready")
    program.prepare("task", "claim", "hostile", "--agent", "ada")
    program.prepare("task", "create", "Read it", "--id", "held", "--ready")
    with run_hub(program) as hub:
        url = ("--url", hub.url) if is_elsewhere else ()
        token = (program.data / "token").read_text().strip()
        more = {"DRAGOMAN_TOKEN": token} if is_elsewhere else {}
        with on_terminal(program, "top", *url, **more) as run:
            run.read_until(b"live")
            run.read_until(b"[red]x[/red]")
            run.type(b"/")
            run.read_until(b"Any name of it")
            run.type(b"held\r")
            run.read_until(b"Move")
            run.type(b"m")
            run.read_until(b"Move to one of")
            run.type(b"blocked\r")
            run.read_until("■".encode())
            run.type(b"\x1b")
            run.read_until(b"dragoman task answer held")
            run.type(b"q")
            run.read_until(b"\x1b[?1049l")
            assert run.process.wait(SECONDS) == 0
        for harm in (b"\x1b]0;owned", "\u202e".encode()):
            assert harm not in run.written
        assert program.ask("task", "show", "held")["status"] == "blocked"


@proves("TOP-COMMAND")
def test_hub_that_refuses_the_token_is_told_after_the_screen(program: Program) -> None:
    program.prepare("init")
    with (
        run_hub(program) as hub,
        on_terminal(program, "top", "--url", hub.url, DRAGOMAN_TOKEN="drgo_x") as run,
    ):
        run.read_until(b"unauthenticated: ")
        assert run.process.wait(SECONDS) == 1
    assert b"Traceback" not in run.written


@proves("TOP-COMMAND")
def test_without_a_hub_it_says_how_to_start_one(program: Program) -> None:
    program.prepare("init")
    with on_terminal(program, "top") as run:
        run.read_until(b"--help")
        assert run.process.wait(SECONDS) == 2
    assert b"no hub runs for" in run.written
    assert b"dragoman up" in run.written


@proves("TOP-COMMAND")
def test_without_the_extra_it_says_how_to_get_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "textual", None)
    result = Console(tmp_path / "hub").on_terminal("top")
    assert result.code == 2
    assert "pip install 'dragoman[top]'" in result.err


@proves("TOP-COMMAND")
@pytest.mark.parametrize(
    ("args", "sentence"),
    [
        ((), "top needs a terminal"),
        (("--json",), "top needs a terminal"),
        (("--as", "ada"), "leave out --as"),
    ],
)
def test_what_makes_no_sense_is_refused(
    tmp_path: Path, args: tuple[str, ...], sentence: str
) -> None:
    result = Console(tmp_path / "hub")("top", *args)
    assert (result.code, sentence in result.err) == (2, True), result
