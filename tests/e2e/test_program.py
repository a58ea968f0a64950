"""Lifecycle of a task through real processes; help, version and exit codes of the program."""

from pathlib import Path

import pytest

from tests.e2e.program import COMMAND, NOON, Program
from tests.requirements import proves


@proves("CLI-DOCTOR", "STORE-URL")
@proves("CLI-TASK", "CLI-NOW", "LEASE-LOST", "LEASE-FENCE", "TASK-REVIEW", "CLI-VERIFY")
def test_task_survives_a_lost_worker_and_is_finished(program_per_store: Program) -> None:
    made = program_per_store.ask("task", "create", "Do it", "--ready", "--now", NOON)
    assert (made["id"], made["status"]) == ("TASK-2026-02-09-001", "ready")
    first = program_per_store.ask("task", "claim", "--agent", "ada", "--now", NOON)
    assert (first["task"], first["attempt"], first["fence"]) == (made["id"], 1, 1)
    program_per_store.ask("tick", "--now", "2026-02-09T12:06:00Z")
    second = program_per_store.ask(
        "task", "claim", "--agent", "ben", "--now", "2026-02-09T12:06:30Z"
    )
    assert (second["attempt"], second["fence"]) == (2, 2)

    stale = ("--agent", "ada", "--fence", "1", "--now", "2026-02-09T12:07:00Z")
    assert (
        program_per_store.ask("task", "heartbeat", made["id"], *stale, code=1)["code"]
        == "lease_lost"
    )
    at = ("--now", "2026-02-09T12:08:00Z")
    program_per_store.ask("task", "move", made["id"], "review", "--as", "ben", "--fence", "2", *at)
    assert program_per_store.ask("task", "move", made["id"], "done", *at)["status"] == "done"
    assert program_per_store.ask("verify")["findings"] == []
    assert program_per_store.ask("doctor", *at)["ok"] is True


@proves("CLI-VERSION")
def test_module_prints_version_and_help(program: Program) -> None:
    version, help_ = program.run("--version"), program.run("--help")

    assert (version.code, version.out.split()[0]) == (0, "dragoman")
    assert (help_.code, help_.err) == (0, "")
    assert "Usage: dragoman [OPTIONS] COMMAND" in help_.out
    assert not program.data.exists()


@proves("CLI-VERSION")
@pytest.mark.parametrize(
    ("typed", "expected"),
    [("dragoman ", "verify"), ("dragoman task cl", "claim"), ("dragoman task move x re", "review")],
)
def test_shell_completion_offers_matches(program: Program, typed: str, expected: str) -> None:
    variables = {
        "_DRAGOMAN_COMPLETE": "complete_bash",
        "COMP_WORDS": typed,
        "COMP_CWORD": str(len(typed.split(" ")) - 1),
    }
    ended = program.run(more=variables)

    assert ended.code == 0
    assert expected in ended.out.split()


@proves("CLI-VERSION")
def test_completion_script_is_printed(program: Program) -> None:
    # Without a detected shell, typer takes its name as a value.
    named = {"_TYPER_COMPLETE_TEST_DISABLE_SHELL_DETECTION": "1"}
    ended = program.run("--show-completion", "bash", more=named)

    assert ended.code == 0
    assert "_DRAGOMAN_COMPLETE=complete_bash" in ended.out


@proves("CLI-EXIT")
def test_exit_codes_are_0_1_and_2(program: Program) -> None:
    assert program.run("init").code == 0
    assert program.run("task", "show", "T-1").code == 1
    assert program.run("task", "shwo", "T-1").code == 2
    assert program.run("task", "list", "--now", "nope", "--json").code == 2
    assert COMMAND[1:] == ("-m", "dragoman")


@proves("CLI-TASK")
def test_body_is_read_from_a_pipe(program: Program) -> None:
    ended = program.run("task", "create", "x", "--body-file", "-", "--json", stdin="ä\nb")

    assert ended.json["body"] == "ä\nb"


@proves("CLI-DEMO")
def test_demo_runs_without_a_data_directory(program: Program, tmp_path: Path) -> None:
    folder = tmp_path / "temporary"
    folder.mkdir()
    ended = program.run("demo", more={"TMPDIR": str(folder)})

    assert ended.code == 0
    assert "the goal is reached" in ended.out
    assert "all good" in ended.out
    assert list(folder.iterdir()) == []
    assert not program.data.exists()


@proves("CLI-SAFE-TEXT", "CLI-EXIT")
def test_arguments_that_are_not_utf_8_are_usage_errors(program: Program) -> None:
    assert program.run("task", "create", "caf\udce9").code == 2


@proves("CLI-PLAIN", "CLI-SAFE-TEXT")
def test_ascii_stream_gets_escapes_for_other_characters(program: Program) -> None:
    program.ask("task", "create", "Größe", "--id", "T-1")

    ended = program.run("task", "list", more={"PYTHONIOENCODING": "ascii"})
    assert ended.code == 0
    assert "Gr\\xf6\\xdfe" in ended.out
