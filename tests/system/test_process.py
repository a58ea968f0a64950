"""Long-running process: streams both outputs, and ends as a whole."""

import asyncio
import os
import signal
import sys
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from dragoman.system.process import Process, start_identity
from tests.requirements import proves
from tests.traces import Trace

pytestmark = proves("SYSTEM-PROCESS")

SHELL = {"PATH": os.defpath}


@asynccontextmanager
async def running(
    words: tuple[str, ...],
    folder: Path,
    variables: Mapping[str, str] = SHELL,
    stdin: Path | None = None,
) -> AsyncGenerator[Process]:
    """Start a program, and close its streams at the end."""
    process = await Process.start(words, variables, folder, stdin)
    try:
        yield process
    finally:
        process.close()


def test_process_streams_output_and_returns_exit_code(tmp_path: Path) -> None:
    async def run() -> tuple[int, bytes, bytes]:
        (tmp_path / "in").write_text("fed")
        script = "cat; echo why >&2; exit 3"
        async with running(("sh", "-c", script), tmp_path, stdin=tmp_path / "in") as process:
            out, err = await asyncio.gather(process.stdout.read(), process.stderr.read())
            return await process.wait(), out, err

    assert asyncio.run(run()) == (3, b"fed", b"why\n")


def test_process_has_only_its_variables_and_no_input(tmp_path: Path) -> None:
    async def run() -> bytes:
        program = "import os, sys; print(sorted(os.environ), sys.stdin.read(), os.getcwd())"
        variables = {"ONE": "1", "LC_ALL": "C"}
        async with running((sys.executable, "-c", program), tmp_path, variables) as process:
            output = await process.stdout.read()
            assert await process.wait() == 0
            return output

    assert asyncio.run(run()).decode().strip() == f"['LC_ALL', 'ONE']  {tmp_path.resolve()}"


def test_program_that_cannot_start_raises_os_error(tmp_path: Path) -> None:
    async def run() -> None:
        with pytest.raises(FileNotFoundError):
            await Process.start(("no-such-program",), SHELL, tmp_path, None)
        with pytest.raises(FileNotFoundError):
            await Process.start(("true",), SHELL, tmp_path / "nowhere", None)

    asyncio.run(run())


def test_stop_kills_group_that_ignores_sigterm(tmp_path: Path, trace: Trace) -> None:
    deaf = "trap '' TERM;"
    script = f"{deaf} exec 3>trace; ({deaf} while :; do sleep 100; done) & echo up >&3; wait"

    async def run() -> int:
        async with running(("sh", "-c", script), tmp_path) as process:
            assert await asyncio.to_thread(trace.read) == b"up\n"
            await process.stop(0.1)
            await process.stop(0.1)
            return await process.wait()

    assert asyncio.run(run()) == -signal.SIGKILL
    assert trace.read_to_end() == b""


def test_stop_lets_process_clean_up(tmp_path: Path, trace: Trace) -> None:
    script = "trap 'echo bye >&3; exit 0' TERM; exec 3>trace; echo up >&3"
    script += "; while :; do sleep 100 & wait; done"

    async def run() -> int:
        async with running(("sh", "-c", script), tmp_path) as process:
            assert await asyncio.to_thread(trace.read) == b"up\n"
            await process.stop(20)
            return await process.wait()

    assert asyncio.run(run()) == 0
    assert trace.read_to_end() == b"bye\n"


STRAY = "timeout 100 sh -c 'trap \"\" TERM; echo up >&3; while :; do sleep 100; done'"
"""Program that has left the group, as `timeout` does, and ignores SIGTERM."""


@pytest.mark.parametrize("script", [f"{STRAY}; :", f"{STRAY} & read line <go"])
def test_process_outside_group_ends_with_session(script: str, tmp_path: Path, trace: Trace) -> None:
    os.mkfifo(tmp_path / "go")

    async def run() -> int:
        async with running(("sh", "-c", f"exec 3>trace; {script}"), tmp_path) as process:
            assert await asyncio.to_thread(trace.read) == b"up\n"
            if "go" in script:
                await asyncio.to_thread((tmp_path / "go").write_text, "\n")
            else:
                await process.stop(20)
            return await process.wait()

    assert asyncio.run(run()) == (0 if "go" in script else -signal.SIGTERM)
    assert trace.read_to_end() == b""


def test_process_outside_session_does_not_keep_streams_open(tmp_path: Path, trace: Trace) -> None:
    script = "exec 3>trace; setsid sh -c 'echo up >&3; read line <go' & read line <started"
    os.mkfifo(tmp_path / "go")
    os.mkfifo(tmp_path / "started")

    async def run() -> bytes:
        async with running(("sh", "-c", script), tmp_path) as process:
            assert await asyncio.to_thread(trace.read) == b"up\n"
            await asyncio.to_thread((tmp_path / "started").write_text, "\n")
            assert await process.wait() == 0
            assert not process.stdout.at_eof()
        return await process.stdout.read()

    assert asyncio.run(run()) == b""
    (tmp_path / "go").write_text("\n")
    assert trace.read_to_end() == b""


def test_start_identity_is_unique_to_process(tmp_path: Path) -> None:
    async def run() -> tuple[str, str]:
        script = ("sh", "-c", "read line")
        async with running(script, tmp_path) as first, running(script, tmp_path) as second:
            for process in (first, second):
                await process.wait()
                assert start_identity(process.pid) in ("", process.started)
            return first.started, start_identity(os.getpid())

    started, mine = asyncio.run(run())
    boot = mine.partition(" ")[0]
    assert started.startswith(f"{boot} ")
    assert started != mine
