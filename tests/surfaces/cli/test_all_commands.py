"""Rules for every command: shared options, exit codes, help and errors."""

import json
import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

import dragoman as package
from dragoman.bootstrap.cli_wiring import CLI_WIRING
from dragoman.core.errors import StoreConflict
from dragoman.surfaces.cli import commands
from dragoman.surfaces.cli.app import main
from dragoman.surfaces.cli.commands import GROUPS, TOP_LEVEL, load_commands
from dragoman.surfaces.cli.data_directory import DataDirectory, login_name
from tests.requirements import proves
from tests.surfaces.cli.console import NOON, CommandResult, Console

COMMANDS = [
    *((name,) for names in TOP_LEVEL.values() for name in names),
    *(
        (group, name)
        for group in ("task", "agent")
        for names in GROUPS[group].modules.values()
        for name in names
    ),
]
"""Every command as a tuple of its words."""

NEED_HUB = (("open",), ("reload",), ("top",))
"""Commands that speak to a running hub, which has its own clock."""

TESTED_APART = (("up",), ("mcp",), *NEED_HUB, ("task", "diff"), ("task", "merge"))
"""Commands that do not end by themselves, or need a hub or a git repository."""

FINITE_COMMANDS = [words for words in COMMANDS if words not in TESTED_APART]
"""The others, which are called here."""


ARGUMENTS: dict[str, tuple[str, ...]] = {
    "create": ("Another",),
    "move": ("T-1", "blocked"),
    "link": ("T-1", "--alias", "bead:b-1"),
    "show": ("T-1",),
    "search": ("T-1",),
    "tree": ("T-1",),
    "path": ("T-1",),
    "logs": ("T-1",),
    "log": ("T-1",),
    "claim": ("T-2", "--agent", "ben"),
    "heartbeat": ("T-1", "--agent", "ada"),
    "release": ("T-1", "--agent", "ada"),
    "limit": ("T-1", "--agent", "ada"),
    "complete": ("T-1", "--agent", "ada"),
    "fail": ("T-1", "--agent", "ada"),
    "block": ("T-2", "--blocker", "no access"),
    "update": ("T-1", "--agent", "ada", "--progress", "half"),
    "ask": ("T-1", "Now?", "--agent", "ada"),
    "answer": ("T-3", "Now."),
    "withdraw": ("T-1", "q1"),
    "approve": ("T-4",),
    "send-back": ("T-4", "--reason", "no tests"),
    "retry": ("T-3",),
    "reopen": ("T-5",),
    "assign": ("T-2", "ben"),
    "edit": ("T-2", "--title", "Zwei"),
    "add": ("ada",),
    "token": ("ada",),
    "revoke": ("ada",),
    "agent show": ("ada",),
    "pause": ("ada",),
    "resume": ("ada",),
    "send": ("{beside}/message.json",),
    "call": ("session_end", "{}"),
    "lint": ("--dialect", "aof", "{beside}/message.json"),
    "schema": ("acp",),
    "translate": ("--from", "aof", "--to", "agentmail", "{beside}/message.json"),
    "rank": ("Write the tests",),
    "delegate": ("Write the tests",),
    "why": ("i-1",),
    "redact": ("{beside}/message.json",),
    "export": ("{beside}/hub.tar",),
    "import": ("{beside}/before.tar",),
    "backup": ("{beside}/hub.backup",),
    "restore": ("{beside}/before.backup",),
    "connect": ("codex",),
    "hook": ("codex",),
    "watch": ("T-1",),
    "story": ("T-1",),
    "rewind": ("T-1", "--to", "1"),
}
"""Arguments with which a command succeeds in the directory of `populated`."""

UPDATE = {
    "protocol": "aof",
    "version": 1,
    "type": "status.update",
    "taskId": "TASK-2026-02-09-001",
    "fromAgent": "ada",
    "toAgent": "dispatcher",
    "sentAt": "2026-02-09T11:59:30Z",
    "payload": {"taskId": "TASK-2026-02-09-001", "agentId": "ada", "progress": "half"},
}
"""Message that ada may send in that directory."""

BEFORE_NOON = "2026-02-09T11:59:00Z"


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Give the template of `populated`: creating it takes longer than any of its tests."""
    dragoman = Console(tmp_path_factory.mktemp("story") / "hub")
    dragoman.make("One", "--id", "T-1", "--ready", "--now", BEFORE_NOON)
    dragoman.make("Two", "--id", "T-2", "--ready", "--now", BEFORE_NOON)
    dragoman.ask("task", "claim", "T-1", "--agent", "ada", "--now", BEFORE_NOON)
    dragoman.ask("task", "ask", "T-1", "When?", "--agent", "ada", "--now", BEFORE_NOON)
    for name, way in (("T-3", ("blocked",)), ("T-4", ("review",)), ("T-5", ("review", "done"))):
        dragoman.make(name, "--id", name, "--ready", "--now", BEFORE_NOON)
        dragoman.ask("task", "claim", name, "--agent", "ben", "--now", BEFORE_NOON)
        for to in way:
            dragoman.ask("task", "move", name, to, "--now", BEFORE_NOON)
    dragoman.ask("agent", "add", "ada", "--skill", "tests", "--now", BEFORE_NOON)
    dragoman.ask("delegate", "Run the tests", "--id", "i-1", "--now", BEFORE_NOON)
    beside = dragoman.data.parent
    runs = Path(dragoman.ask("task", "path", "T-1")["runs"])
    (runs / "output.log").write_text("hello\n")
    message = beside / "message.json"
    message.write_text(json.dumps(UPDATE))
    shutil.copy(message, dragoman.data / "inbox" / "message.json")
    dragoman.ask("export", str(beside / "before.tar"), "--now", BEFORE_NOON)
    dragoman.ask("backup", str(beside / "before.backup"), "--now", BEFORE_NOON)
    return beside


@pytest.fixture
def populated(dragoman: Console, template: Path) -> Console:
    """Give a directory in which ada holds T-1, and T-2 is ready."""
    shutil.copytree(template, dragoman.data.parent, dirs_exist_ok=True)
    return dragoman


@proves("CLI-PROMISES", "CLI-START")
def test_index_lists_every_command_of_every_file() -> None:
    folder = Path(commands.__file__).parent
    files = {
        ".".join(file.relative_to(folder).with_suffix("").parts)
        for file in folder.rglob("*.py")
        if "\nCOMMANDS = " in file.read_text()
    }
    index: dict[str, set[str]] = {}
    for modules in (TOP_LEVEL, *(group.modules for group in GROUPS.values())):
        for file, names in modules.items():
            index.setdefault(file, set()).update(names)

    assert index == {file: set(load_commands(file)) for file in files}


def command_line(args: tuple[str, ...], populated: Console) -> list[str]:
    """The words of a command with the arguments that it needs."""
    if args in (("import",), ("restore",)):
        # These commands create the directory, so it must not exist.
        shutil.rmtree(populated.data)
    beside = str(populated.data.parent)
    needed = ARGUMENTS.get(" ".join(args)) or ARGUMENTS.get(args[-1], ())
    return [*args, *(word.replace("{beside}", beside) for word in needed)]


@proves("CLI-PROMISES", "CLI-EXIT", "CLI-NOW")
@pytest.mark.parametrize("args", FINITE_COMMANDS, ids=" ".join)
def test_every_command_takes_json_and_now_after_its_arguments(
    populated: Console, args: tuple[str, ...]
) -> None:
    result = populated(*command_line(args, populated), "--json", "--now", NOON)

    assert result.code == 0, result
    assert result.objects
    assert all(answer.get("ok", True) is True for answer in result.objects)


@proves("CLI-PROMISES", "CLI-NOW")
@pytest.mark.parametrize("side", ["before", "after"])
@pytest.mark.parametrize("args", FINITE_COMMANDS, ids=" ".join)
def test_every_command_takes_shared_options_on_either_side(
    populated: Console, args: tuple[str, ...], side: str, tmp_path: Path
) -> None:
    store = populated.data / "named.db"
    shared = [
        "--json",
        "--now",
        NOON,
        "--data",
        str(populated.data),
        "--store",
        f"sqlite:///{store}",
    ]
    elsewhere = Console(tmp_path / "elsewhere")

    own = command_line(args, populated)
    if populated.data.exists():
        (populated.data / "dragoman.db").rename(store)
    result = elsewhere(*shared, *own) if side == "before" else elsewhere(*own, *shared)

    assert result.code == 0, result
    assert result.objects
    assert not elsewhere.data.exists()


@proves("CLI-EXIT", "CLI-NOW")
@pytest.mark.parametrize("args", COMMANDS, ids=" ".join)
def test_invalid_time_is_a_usage_error_of_every_command(
    populated: Console, args: tuple[str, ...]
) -> None:
    result = populated(*command_line(args, populated), "--now", "yesterday", "--json")

    assert result.code == 2
    assert result.out == ""
    assert "'yesterday' is not a timestamp" in result.err
    assert f"Try `dragoman {' '.join(args)} --help`." in result.err


@proves("CLI-PROMISES", "CLI-VERSION")
@pytest.mark.parametrize("args", [(), *((g,) for g in GROUPS), *COMMANDS], ids=" ".join)
def test_every_help_exits_0_and_is_complete(
    dragoman: Console, args: tuple[str, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    result = dragoman(*args, "--help")

    printed = capsys.readouterr().out
    assert result.code == 0
    assert printed.startswith("Usage: dragoman")
    usage, _, text = printed.partition("\n")
    usage = usage.replace("]...", "").replace("}...", "")
    assert "..." not in f"{usage}{text}", "a sentence was cut"
    assert "[[" not in printed
    if args in COMMANDS:
        assert f"    dragoman {' '.join(args)}" in printed, "an example"
        assert all(option in printed for option in ("--json", "--data", "--store"))
        has_own_clock = args in (("up",), ("demo",)) or args in NEED_HUB
        assert ("--now" in printed) != has_own_clock, "a hub that runs has its own clock"
    assert not dragoman.data.exists()


@proves("CLI-EXIT")
@pytest.mark.parametrize("args", [(), ("task",), ("agent",)], ids=["dragoman", "task", "agent"])
def test_missing_command_is_a_usage_error_and_prints_help(
    dragoman: Console, args: tuple[str, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    assert dragoman(*args).code == 2
    assert capsys.readouterr().err.startswith("Usage: dragoman")


@proves("CLI-EXIT")
@pytest.mark.parametrize(
    ("args", "part"),
    [
        (("tsak",), "No such command 'tsak'. Did you mean 'task'?"),
        (("task", "list", "--bogus"), "No such option: --bogus"),
        (("task", "list", "extra"), "extra"),
        (("task", "list", "--limit", "0"), "0 is out of range: 1 to 1000"),
        (("task", "list", "--limit", "1001"), "1001 is out of range: 1 to 1000"),
        (("task", "list", "--limit", "many"), "'many' is not a whole number"),
        (("task", "list", "--limit", "\uff11"), "'\\uff11' is not a whole number"),
        (("task", "list", "--limit"), "--limit"),
        (("task", "list", "--status", "dnoe"), "did you mean done?"),
        (("task", "list", "--status", "done", "--ready"), "exclude each other"),
        (("task", "create"), "TITLE"),
        (("task", "create", "x", "--priority", "urgent"), "critical, high, normal, low"),
        (("task", "create", "x", "--body", "a", "--body-file", "b"), "exclude each other"),
        (("task", "create", "x", "--body-file", "/nowhere/at/all"), "No such file"),
        (("task", "create", "caf\udce9"), "is not valid UTF-8"),
        (("task", "move", "x"), "STATUS"),
        (("task", "move", "x", "dnoe"), "backlog, ready, in-progress, blocked, review, done"),
        (("task", "move", "x", "done", "--fence", "0"), "0 is out of range: 1 or more"),
        (("task", "claim"), "say which agent this is, with --agent NAME"),
        (("task", "heartbeat", "x"), "say which agent this is, with --agent NAME"),
        (("task", "release", "x"), "say which agent this is, with --agent NAME"),
        (("task", "claim", "--agent", "ada", "--as", "ben"), "name two agents"),
        (("task", "claim", "--agent", "ada", "--ttl", "soon"), "is not a length of time"),
        (("task", "link", "x"), "say to what"),
        (("events", "--type", "task.cliamed"), "known: task, attempt, delegation, command"),
    ],
)
def test_usage_error_exits_2_on_stderr_and_creates_nothing(
    dragoman: Console, args: tuple[str, ...], part: str
) -> None:
    for more in ((), ("--json",)):
        result = dragoman(*args, *more)

        assert (result.code, result.out) == (2, "")
        assert part in result.err
        assert result.err.rstrip().endswith("--help`.")
        assert not dragoman.data.exists()


@proves("CLI-ONE-LINE")
def test_missing_option_is_reported_on_one_line_with_its_choices(dragoman: Console) -> None:
    result = dragoman("handoff", "reject", "h9")

    first, second = result.err.splitlines()
    assert first.startswith("dragoman handoff reject: Missing option '--reason'. Choose from: ")
    assert "missing_artifact, hash_mismatch" in first
    assert first.isprintable()
    assert second == "Try `dragoman handoff reject --help`."


@proves("CLI-EXIT", "REFUSAL-CODES")
def test_refusal_exits_1_with_its_code_as_text_or_object(dragoman: Console) -> None:
    dragoman("init")

    plain = dragoman("task", "show", "T-1")
    assert (plain.code, plain.out) == (1, "")
    detail = "no task has the name T-1: see `dragoman task list`"
    assert plain.err == f"task_not_found: {detail}\n"
    assert dragoman.ask("task", "show", "T-1", code=1) == {
        "ok": False,
        "code": "task_not_found",
        "detail": detail,
    }


@proves("CLI-EXIT", "CLI-PROMISES")
@pytest.mark.parametrize(
    "args",
    [
        ("task", "list"),
        ("task", "show", "T-1"),
        ("task", "log", "T-1"),
        ("events",),
        ("events", "--follow"),
        ("verify",),
    ],
    ids=" ".join,
)
def test_read_command_reports_a_missing_directory_and_creates_none(
    dragoman: Console, args: tuple[str, ...]
) -> None:
    result = dragoman(*args)

    assert result.code == 1
    assert result.err.startswith("store_unavailable: there is no data directory at ")
    assert "dragoman init" in result.err
    assert dragoman.ask(*args, code=1)["code"] == "store_unavailable"
    assert not dragoman.data.exists()


@proves("CLI-PROMISES")
def test_write_command_creates_the_directory_and_reports_it_once(dragoman: Console) -> None:
    first = dragoman("task", "create", "One")
    second = dragoman("task", "create", "Two")

    assert first.err.startswith(f"made the data directory {dragoman.data}\n")
    assert "made the data directory" not in second.err
    assert dragoman.data.stat().st_mode & 0o777 == 0o700


@proves("CLI-PROMISES")
@pytest.mark.parametrize(
    "line",
    [
        "task claim --agent ada",
        "task claim T-1 --agent ada",
        "task heartbeat T-1 --agent ada",
        "task complete T-1 --agent ada",
        "task approve T-1",
        "task assign T-1 ada",
        "task ask T-1 Now? --agent ada",
        "task log T-1 half",
        "agent pause ada",
        "agent token ada",
        "session-end --session s-1",
    ],
)
def test_command_about_what_exists_makes_no_directory(dragoman: Console, line: str) -> None:
    assert dragoman.ask(*line.split(), code=1)["code"] == "store_unavailable"
    assert not dragoman.data.exists()


@proves("CLI-PROMISES")
def test_named_directory_wins_over_the_environment_and_that_over_a_found_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:

    def create(*options: str) -> None:
        with Path(os.devnull).open("w", encoding="utf-8") as nowhere:
            args = [*options, "task", "create", "x"]
            assert main(CLI_WIRING, args, nowhere, nowhere, lambda: False) == 0

    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("DRAGOMAN_DATA", raising=False)
    create("--data", ".dragoman")
    monkeypatch.setenv("DRAGOMAN_DATA", str(tmp_path / "named"))
    create()
    assert (tmp_path / "named" / "dragoman.db").exists()
    create("--data", "given")
    assert (tmp_path / "given" / "dragoman.db").exists()
    for data in (".dragoman", "named", "given"):
        assert len(Console(tmp_path / data).ask("task", "list")["tasks"]) == 1


@proves("CLI-PROMISES", "STORE-URL")
def test_store_option_is_used_and_an_unknown_kind_is_refused(
    dragoman: Console, tmp_path: Path
) -> None:
    file = tmp_path / "other.db"

    assert dragoman("--store", f"sqlite:///{file}", "task", "create", "x").code == 0
    assert file.exists()
    assert not (dragoman.data / "dragoman.db").exists()
    wrong = dragoman("task", "list", "--store", "mysql://localhost")
    assert (wrong.code, wrong.out) == (2, "")
    assert "sqlite:///" in wrong.err
    assert "postgresql://" in wrong.err


@proves("STORE-URL")
@pytest.mark.parametrize(
    ("url", "code", "expected"),
    [
        ("mysql://x", 2, "Invalid value for '--store': mysql: is not a kind of store"),
        ("sqlite://rel.db", 2, "sqlite://rel.db has no path: a SQLite store is a file"),
        ("mysql://host/x", 2, "mysql: is not a kind of store"),
        ("sqlite:///", 2, "names no file"),
        ("sqlite:///{}/a.db?mode=ro", 2, "a file takes no options"),
        ("sqlite:///{}/\udcff.db", 2, "is not UTF-8, and SQLite can name no such file"),
        ("postgresql://127.0.0.1:1/x", 1, "store_unavailable"),
    ],
)
def test_unusable_store_leaves_no_keys_and_no_file(
    dragoman: Console, tmp_path: Path, url: str, code: int, expected: str
) -> None:
    result = dragoman("task", "create", "x", "--store", url.format(tmp_path))

    assert (result.code, result.out) == (code, "")
    assert expected in result.err
    assert [path for path in tmp_path.rglob("*") if path != dragoman.data] == []


@proves("CLI-VERSION")
def test_version_is_printed(dragoman: Console) -> None:
    result = dragoman("--version")

    assert (result.code, result.out) == (0, f"dragoman {package.__version__}\n")


@proves("CLI-EXIT")
def test_internal_error_and_failing_disk_are_reported_as_refusals(tmp_path: Path) -> None:
    def conflict(
        data: Path, store: str, now: int | None, *, create: bool, **_: bool
    ) -> DataDirectory:
        raise StoreConflict("another writer was faster")

    def broken(
        data: Path, store: str, now: int | None, *, create: bool, **_: bool
    ) -> DataDirectory:
        raise PermissionError(13, "Permission denied", str(data))

    assert Console(tmp_path, conflict).ask("tick", code=1) == {
        "ok": False,
        "code": "store_conflict",
        "detail": "another writer was faster",
    }
    result = Console(tmp_path, broken)("tick")
    assert result.code == 1
    assert result.err.startswith(f"store_unavailable: {tmp_path}: Permission denied; ")


@proves("CLI-EXIT")
def test_interrupted_command_exits_130(dragoman: Console) -> None:
    dragoman("init")

    def interrupted() -> bool:
        raise KeyboardInterrupt

    result = dragoman("events", "--follow", wait=interrupted)
    assert result == CommandResult(130, "", "")


@proves("ROLE-ACTS-AS", "CLI-PROMISES")
def test_entry_records_actor_delegate_and_set_clock(dragoman: Console) -> None:
    def origins() -> Iterator[tuple[str, str]]:
        for entry in dragoman("events", "--json").objects:
            yield entry["actor"], entry["via"]

    dragoman("task", "create", "One")
    dragoman("task", "create", "Two", "--now", NOON)
    dragoman("task", "create", "Three", "--as", "ada")
    dragoman("--as", "ada", "task", "create", "Four", "--now", NOON)

    assert list(origins()) == [
        ("human:owner", "cli"),
        ("human:owner", "cli --now"),
        ("agent:ada", f"cli human:{login_name()}"),
        ("agent:ada", f"cli human:{login_name()} --now"),
    ]


@proves("NAME-GRAMMAR", "CLI-EXIT")
@pytest.mark.parametrize("name", ["../ada", "ad\nа", "ada\n", "a" * 129, "\uff11"])
def test_agent_name_outside_the_grammar_is_refused(dragoman: Console, name: str) -> None:
    result = dragoman("task", "create", "x", "--as", name, "--json")

    assert (result.code, result.json["code"]) == (1, "invalid_id")


@proves("CLI-EXIT", "ROLE-ACTS-AS")
@pytest.mark.parametrize(
    "args",
    [
        ("task", "move", "T-1", "ready", "--as", ""),
        ("task", "claim", "", "--agent", "ada"),
        ("task", "create", "x", "--id", ""),
        ("events", "--task", ""),
        ("--store", "", "task", "move", "T-1", "ready"),
        ("task", "move", "T-1", "ready", "--store", ""),
        ("task", "move", "T-1", "ready", "--as="),
        ("--as=", "task", "move", "T-1", "ready"),
        ("task", "create", "x", "--assignee="),
        ("task", "list", "--data="),
    ],
)
def test_empty_name_is_a_usage_error(dragoman: Console, args: tuple[str, ...]) -> None:
    dragoman.make("One", "--id", "T-1")
    result = dragoman(*args)
    assert result.code == 2
    assert "is a variable not set?" in result.err
    assert dragoman.ask("task", "show", "T-1")["status"] == "backlog"


@proves("CLI-EXIT")
def test_text_may_be_empty_and_may_look_like_an_option(dragoman: Console) -> None:
    task = dragoman.make("One", "--body=")
    assert dragoman("task", "move", task, "ready", "--reason=").code == 0
    assert dragoman("task", "log", "--as", "ada", "--", task, "--as=").code == 0
    assert "--as=" in dragoman("task", "log", task).out


@proves("CLI-INIT", "STORE-CORRUPT")
def test_read_command_creates_no_database(dragoman: Console) -> None:
    dragoman.make("One")
    for file in dragoman.data.glob("dragoman.db*"):
        file.unlink()
    result = dragoman("task", "list")
    assert result.code == 1
    assert "dragoman.db is gone" in result.err
    assert not (dragoman.data / "dragoman.db").exists()


@proves("CLI-PROMISES", "LEDGER-CHECKPOINT")
def test_command_that_cannot_sign_does_not_begin(dragoman: Console) -> None:
    dragoman.make("One")
    log = dragoman.data / "checkpoints.jsonl"
    log.rename(dragoman.data / "kept.jsonl")
    log.mkdir()
    assert dragoman("task", "create", "Two").code == 1
    log.rmdir()
    (dragoman.data / "kept.jsonl").rename(log)
    assert len(dragoman.ask("task", "list")["tasks"]) == 1
