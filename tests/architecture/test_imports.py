"""The import contracts hold, and each of them can fail: tried on a skeleton of the house."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.requirements import proves

pytestmark = proves("PROJECT-IMPORTS")

PROJECT = Path(__file__).parents[2]
LINT_IMPORTS = Path(sys.executable).with_name("lint-imports")

MODULES = ("__init__", "__main__", "bootstrap", "config")
ROOMS = ("testing", "surfaces", "store", "system", "engine", "ledger", "core", "text")

ALLOWED = {
    "drivers in the store": ("store/sqlite.py", "import apsw"),
    "the store reads config": ("store/memory.py", "import dragoman.config"),
    "a dialect": ("protocols/aof/wire.py", "import dragoman.core"),
    "date arithmetic in the core": ("core/moments.py", "import datetime"),
    "a clock in the system": ("system/clock.py", "import time"),
}
FORBIDDEN = {
    "a stray module": ("utils.py", "", "dragoman.utils"),
    "an import up the house": ("core/states/task.py", "import dragoman.engine", "dragoman.engine"),
    "a room of the same floor": ("store/a.py", "import dragoman.system", "dragoman.system"),
    "the engine reads config": ("engine/a.py", "import dragoman.config", "dragoman.config"),
    "a clock in the core": ("core/states/task.py", "import time", "time"),
    "files in the ledger": ("ledger/entry.py", "from pathlib import Path", "pathlib"),
    "a lazy import in text": ("text/a.py", "def f():\n    import os", "os"),
    "a clock in a dialect": ("protocols/aof/wire.py", "import time", "time"),
    "a driver outside the store": ("engine/a.py", "import apsw", "apsw"),
    "the bundled SQLite": ("store/a.py", "import sqlite3", "sqlite3"),
    "a circle": ("core/a.py", "import dragoman.core.b", "acyclic"),
}


def lint_imports(folder: Path, source_root: Path) -> subprocess.CompletedProcess[str]:
    """Check the contracts of a folder's pyproject.toml against the package under a source root."""
    return subprocess.run(
        [LINT_IMPORTS, "--no-cache"],
        cwd=folder,
        # The package of the source root comes before the one that is installed.
        env={**os.environ, "PYTHONPATH": str(source_root), "NO_COLOR": "1", "COLUMNS": "200"},
        capture_output=True,
        text=True,
        check=False,
    )


def build_house(folder: Path) -> Path:
    """Make an empty house with every room that must exist, under the project's own contracts."""
    shutil.copy(PROJECT / "pyproject.toml", folder)
    house = folder / "dragoman"
    for room in ROOMS:
        add(house, f"{room}/__init__.py", "")
    for module in MODULES:
        add(house, f"{module}.py", "")
    add(house, "core/b.py", "import dragoman.core.a")
    add(house, "core/a.py", "")
    return house


def add(house: Path, name: str, source: str) -> None:
    """Write a module into the house, and make packages of the folders on its way."""
    path = house / name
    path.parent.mkdir(parents=True, exist_ok=True)
    for folder in path.relative_to(house).parents:
        (house / folder / "__init__.py").touch()
    path.write_text(source)


def test_the_project_keeps_its_contracts() -> None:
    result = lint_imports(PROJECT, PROJECT / "src")

    assert result.returncode == 0, result.stdout + result.stderr


@pytest.mark.parametrize(("name", "source"), ALLOWED.values(), ids=ALLOWED)
def test_what_a_room_may_import(tmp_path: Path, name: str, source: str) -> None:
    house = build_house(tmp_path)
    add(house, name, source)

    result = lint_imports(tmp_path, tmp_path)

    assert result.returncode == 0, result.stdout + result.stderr


@pytest.mark.parametrize(("name", "source", "culprit"), FORBIDDEN.values(), ids=FORBIDDEN)
def test_what_a_room_may_not_import(tmp_path: Path, name: str, source: str, culprit: str) -> None:
    house = build_house(tmp_path)
    add(house, name, source)

    result = lint_imports(tmp_path, tmp_path)

    assert result.returncode == 1, result.stdout + result.stderr
    assert culprit in result.stdout.partition("Broken contracts")[2]
