"""How little a command loads: agents call the program in loops."""

import pytest

from tests.e2e.program import Program
from tests.requirements import proves

pytestmark = proves("CLI-START")

SLOW = {
    "asyncio",
    "cryptography",
    "httpx2",
    "mcp",
    "psycopg",
    "pydantic",
    "re2",
    "rich",
    "starlette",
}
OURS = {f"dragoman.{room}" for room in ("agents", "files", "notify", "protocols", "services")}


def loaded(program: Program, *words: str) -> set[str]:
    """The packages, and the rooms of ours, that a command loads."""
    # Python tells on standard error what it imports, one module a line, after the last bar.
    said = program.run(*words, more={"PYTHONPROFILEIMPORTTIME": "1"})
    assert said.code == 0, said
    modules = [line.rpartition("|")[2].strip() for line in said.err.splitlines() if "|" in line]
    return {part for name in modules for part in (name.partition(".")[0], _room(name))}


def _room(module: str) -> str:
    return ".".join(module.split(".")[:2])


@pytest.mark.parametrize(
    "words",
    [("task", "list"), ("task", "show", "T-1"), ("events",), ("agent", "list")],
    ids=" ".join,
)
def test_to_look_at_tasks_needs_no_keys_dialects_or_duties(
    program: Program, words: tuple[str, ...]
) -> None:
    program.prepare("task", "create", "One", "--id", "T-1")
    assert loaded(program, *words) & (SLOW | OURS) == set()


def test_the_version_needs_nothing_of_the_engine(program: Program) -> None:
    assert loaded(program, "--version") & (SLOW | OURS | {"apsw", "dragoman.engine"}) == set()


def test_who_changes_something_loads_what_keeps_the_rules(program: Program) -> None:
    assert loaded(program, "task", "create", "One") > {
        "cryptography",
        "re2",
        *OURS - {"dragoman.agents"},
    }
