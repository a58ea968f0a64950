"""Command target: notification on standard input, a minimal environment, and no secret."""

import sys
from functools import partial
from pathlib import Path

import msgspec
import pytest

from dragoman.core.errors import SettingsError
from dragoman.notify.command_target import CommandTarget
from dragoman.notify.notification import Notification
from dragoman.system.process import Timeouts, run_program
from tests.engine.lab import START
from tests.requirements import proves

pytestmark = proves("NOTIFY-COMMAND")

NOTIFICATION = Notification("lab:7", "TASK-2026-02-09-001", b'{"to":"done"}')
ENVIRON = {
    "PATH": "/usr/bin:/bin",
    "LC_ALL": "C",
    "DRAGOMAN_NOTIFY_WEBHOOK_SECRET": "s3cr3t",
    "AWS_SECRET_ACCESS_KEY": "s3cr3t",
    "LD_PRELOAD": "",
}
RECORDER = """
import json, os, sys
seen = {"in": sys.stdin.read(), "argv": sys.argv[1:], "env": dict(os.environ)}
open("seen", "w").write(json.dumps(seen))
"""


def command(folder: Path, *words: str, seconds: float = 20.0) -> CommandTarget:
    timeouts = Timeouts(seconds, grace_seconds=0.1)
    return CommandTarget(words, ENVIRON, partial(run_program, folder=folder, timeouts=timeouts))


@proves("NOTIFY-SECRETS")
def test_command_gets_the_notification_on_stdin_and_a_minimal_environment(tmp_path: Path) -> None:
    words = (sys.executable, "-c", RECORDER, "a;b", "$HOME")
    assert command(tmp_path, *words).deliver(NOTIFICATION, START) == ""
    seen = msgspec.json.decode((tmp_path / "seen").read_bytes())
    assert seen["in"] == '{"to":"done"}'
    assert seen["argv"] == ["a;b", "$HOME"]
    assert seen["env"] == {
        "PATH": "/usr/bin:/bin",
        "LC_ALL": "C",
        "DRAGOMAN_NOTIFICATION_ID": "lab:7",
        "DRAGOMAN_TASK_ID": "TASK-2026-02-09-001",
    }


@pytest.mark.parametrize(
    ("script", "problem"),
    [
        ("exit 3", "sh: exit code 3"),
        ("echo one; echo two >&2; exit 1", "sh: exit code 1: two"),
        ("kill -9 $$", "sh: ended by signal 9"),
        ("printf '\\033[2Jgone\\377'; exit 1", "sh: exit code 1: gone\ufffd"),
        ("printf '%0500d' 0; exit 1", "sh: exit code 1: " + "0" * 200),
    ],
)
def test_failure_gives_exit_code_and_last_line_of_stderr(
    tmp_path: Path, script: str, problem: str
) -> None:
    assert command(tmp_path, "sh", "-c", script).deliver(NOTIFICATION, START) == problem


@proves("NOTIFY-NOT-IN-THE-WAY")
@pytest.mark.parametrize("script", ["exec yes", "trap '' TERM; while :; do :; done"])
def test_command_that_does_not_end_times_out(tmp_path: Path, script: str) -> None:
    problem = command(tmp_path, "sh", "-c", script, seconds=0.3).deliver(NOTIFICATION, START)
    assert problem == "sh: it had not ended after 0.3 s"


def test_missing_command_is_a_failure(tmp_path: Path) -> None:
    problem = command(tmp_path, "no-such-program").deliver(NOTIFICATION, START)
    assert problem == "no-such-program: No such file or directory"


@pytest.mark.parametrize("words", [("",), ("echo", "a\0b")])
def test_unusable_command_is_refused_at_the_start(tmp_path: Path, words: tuple[str, ...]) -> None:
    with pytest.raises(SettingsError, match=r"notify\.command"):
        command(tmp_path, *words)
