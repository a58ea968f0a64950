"""Shutdown of `dragoman up`: signals, closed output, pending services, and early interrupts."""

import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from dragoman.system.hub_lock import find_lock_holder
from tests.e2e.hub_process import get_readiness, run_hub, wait_until_claimed
from tests.e2e.program import Program
from tests.requirements import proves

INTERRUPTED_PROGRAM = """
import os, signal, sys
signal.signal(signal.SIGINT, signal.default_int_handler)  # a build machine may have it ignored
module = sys.argv.pop(1)
class Impatient:
    def find_spec(self, name, path=None, target=None):
        if name == module:
            os.kill(os.getpid(), signal.SIGINT)
sys.meta_path.insert(0, Impatient())
from dragoman.__main__ import main
main()
"""
"""The program with an interrupt when it begins to import a module."""


@proves("HUB-UP")
@pytest.mark.parametrize("signum", [signal.SIGINT, signal.SIGTERM])
def test_agents_get_their_grace_time_though_output_is_closed(
    program: Program, tmp_path: Path, signum: signal.Signals
) -> None:
    release_file = tmp_path / "go"
    program.data.mkdir()
    # It ends after the hub received the signal.
    worker = f'["sh", "-c", "until [ -e {release_file} ]; do sleep 0.05; done"]'
    (program.data / "dragoman.toml").write_text(
        f"[agents.ada]\ncommand = {worker}\n[hub]\ndrain_ms = 3600000\n"
    )
    with run_hub(program) as running:
        made = program.ask("task", "create", "One", "--ready")["id"]
        wait_until_claimed(program, made)
        # As with a closed terminal, or `| tee hub.log`, which ends by the same Ctrl-C.
        for stream in (running.process.stdout, running.process.stderr):
            assert stream is not None
            stream.close()
        running.process.send_signal(signum)
        release_file.touch()
        assert running.process.wait() == 0
    assert program.ask("task", "show", made)["status"] == "review"


@proves("HUB-UP")
def test_hub_keeps_running_though_its_output_is_closed(program: Program) -> None:
    process = program.start("up", "--port", "0")
    assert process.stdout is not None
    assert process.stderr is not None
    process.stdout.close()
    while (lock_holder := find_lock_holder(program.data)) is None or not lock_holder.url:
        continue
    assert get_readiness(lock_holder.url)["ready"] is True
    process.send_signal(signal.SIGTERM)
    assert process.stderr.read() == "the hub has stopped\n"
    assert process.wait() == 0


@proves("HUB-UP")
@pytest.mark.parametrize("signum", [signal.SIGINT, signal.SIGTERM])
def test_stop_names_the_pending_service_and_a_second_signal_does_not_wait(
    program: Program, signum: signal.Signals
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as hanging_server:
        program.data.mkdir(mode=0o700)
        (program.data / "dragoman.toml").write_text(
            f'[notify]\nwebhook_url = "http://127.0.0.1:{hanging_server.getsockname()[1]}/"\n'
            'webhook_secret = "0123456789abcdef"\nallow_hosts = ["127.0.0.1"]\n'
        )
        with run_hub(program) as running:
            made = program.ask("task", "create", "One", "--ready")["id"]
            program.ask("task", "move", made, "blocked")
            connection, _ = hanging_server.accept()
            with connection:
                running.process.send_signal(signum)
                assert running.process.stderr is not None
                output = running.process.stderr.readline()
                ended = running.stop(signum)
    assert output == ("stopping: notifier may take 20s to finish; Ctrl-C again does not wait\n")
    assert (ended.code, ended.err) == (0, "the hub has stopped\n")


@proves("HUB-UP")
@pytest.mark.parametrize(
    "module",
    [
        "dragoman.bootstrap.cli_wiring",
        "dragoman.surfaces.cli.commands.up",
        "msgspec",
        "uvloop",
        "dragoman.bootstrap.open_hub",
        "apsw",
    ],
)
def test_ctrl_c_during_startup_ends_silently(program: Program, module: str) -> None:
    ended = subprocess.run(
        (sys.executable, "-c", INTERRUPTED_PROGRAM, module, "up", "--port", "0"),
        env=program.environment(),
        capture_output=True,
        text=True,
        check=False,
    )
    assert ended.returncode in {-signal.SIGINT, 130}
    assert (ended.stdout, ended.stderr) == ("", "")
    with run_hub(program) as running:
        assert running.stop().code == 0
