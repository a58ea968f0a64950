"""Imports of single commands stay small: agents call the program in loops."""

import pytest

from tests.e2e.program import Program
from tests.requirements import proves

pytestmark = proves("CLI-START")

SLOW_IMPORTS = {
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
OUR_PACKAGES = {
    f"dragoman.{name}" for name in ("agents", "files", "notify", "protocols", "services")
}


def imported_packages(program: Program, *args: str) -> set[str]:
    """Third-party packages and own subpackages that a command imports."""
    modules = imported_modules(program, *args)
    return {part for name in modules for part in (name.partition(".")[0], _package(name))}


def imported_modules(program: Program, *args: str) -> set[str]:
    """Modules that a command imports."""
    # Python prints each imported module on standard error, one per line, after the last bar.
    result = program.run(*args, more={"PYTHONPROFILEIMPORTTIME": "1"})
    assert result.code == 0, result
    return {line.rpartition("|")[2].strip() for line in result.err.splitlines() if "|" in line}


def _package(module: str) -> str:
    return ".".join(module.split(".")[:2])


@pytest.mark.parametrize(
    "args",
    [("task", "list"), ("task", "show", "T-1"), ("events",), ("agent", "list")],
    ids=" ".join,
)
def test_read_commands_import_no_keys_dialects_or_services(
    program: Program, args: tuple[str, ...]
) -> None:
    program.prepare("task", "create", "One", "--id", "T-1")
    assert imported_packages(program, *args) & (SLOW_IMPORTS | OUR_PACKAGES) == set()


def test_version_imports_nothing_of_the_engine(program: Program) -> None:
    assert (
        imported_packages(program, "--version")
        & (SLOW_IMPORTS | OUR_PACKAGES | {"apsw", "dragoman.engine"})
        == set()
    )


def test_write_commands_import_redaction_and_dialects(program: Program) -> None:
    assert imported_packages(program, "task", "create", "One") > {
        "cryptography",
        "re2",
        *OUR_PACKAGES - {"dragoman.agents"},
    }
