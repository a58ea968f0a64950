"""A dialect of another package: found by its entry point, and served like the five of the hub."""

import tomllib
from pathlib import Path

import pytest

from tests.e2e.program import Program
from tests.requirements import proves

pytestmark = proves("DIALECT-INSTALLED")

EXAMPLE = Path(__file__).parents[2] / "examples" / "todo-dialect"


def install(name: str, entry_points: dict[str, str], *folders: Path) -> str:
    """Install a package's entry points as pip does, in the first folder; its PYTHONPATH."""
    info = folders[0] / f"{name}-1.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1\n")
    lines = "\n".join(f"{key} = {value}" for key, value in entry_points.items())
    (info / "entry_points.txt").write_text(f"[dragoman.dialects]\n{lines}\n")
    return ":".join(map(str, folders))


@pytest.fixture
def with_todo(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Install the example with the entry point of its own pyproject.toml."""
    project = tomllib.loads((EXAMPLE / "pyproject.toml").read_text())["project"]
    points = project["entry-points"]["dragoman.dialects"]
    path = install(project["name"], points, tmp_path / "site", EXAMPLE)
    monkeypatch.setenv("PYTHONPATH", path)


@pytest.mark.usefixtures("with_todo")
def test_message_of_an_installed_dialect_reaches_the_hub(program: Program) -> None:
    program.ask("init")
    task = program.ask("task", "create", "Mend the roof", "--ready")["id"]

    sent = program.run("send", stdin=f"todo: ada take {task}\n")
    assert (sent.code, sent.err) == (0, "")
    assert program.ask("task", "show", task)["assignee"] == "ada"

    arguments = f'{{"task": "{task}", "note": "It is dry."}}'
    done = program.run("call", "todo.done", arguments, "--as", "ada")
    assert (done.code, done.out) == (0, f'"{task} is review"\n')
    ways = ("translate", "--from", "todo", "--to", "ccos")
    translated = program.run(*ways, stdin=f"todo: ada done {task} It is dry.\n")
    assert '"output": "It is dry."' in translated.out
    known = program.ask("agent", "add", "ada", "--speaks", "todo", "--no-token")
    assert known["speaks"] == ["todo"]


@pytest.mark.parametrize(
    ("entry_points", "said"),
    [
        ({"lost": "no_such_module:dialect"}, "the dialect lost (no_such_module:dialect) cannot"),
        ({"other": "todo_dialect:dialect"}, "does not build the dialect other"),
        ({"todo": "todo_dialect:dialect", "aof": "dragoman.protocols.aof:dialect"}, "two dialects"),
    ],
)
def test_unusable_dialect_is_named_at_start(
    program: Program,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    entry_points: dict[str, str],
    said: str,
) -> None:
    monkeypatch.setenv("PYTHONPATH", install("broken", entry_points, tmp_path / "site", EXAMPLE))

    ended = program.run("send", stdin="todo: ada take roof\n")

    assert ended.code != 0
    assert said in ended.err
