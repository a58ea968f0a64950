"""The import contracts hold, and each of them can fail: tried on a skeleton of the package."""

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
FOLDERS = ("testing", "surfaces", "store", "system", "engine", "ledger", "core", "text")

ALLOWED = {
    "drivers in the store": ("store/sqlite.py", "import apsw"),
    "the store reads config": ("store/memory.py", "import dragoman.config"),
    "a dialect": ("protocols/aof/wire.py", "import dragoman.core"),
    "date arithmetic in the core": ("core/timestamps.py", "import datetime"),
    "a clock in the system": ("system/clock.py", "import time"),
}
FORBIDDEN = {
    "an unknown module": ("utils.py", "", "dragoman.utils"),
    "an import of a higher layer": (
        "core/task_state.py",
        "import dragoman.engine",
        "dragoman.engine",
    ),
    "an import of a sibling layer": ("store/a.py", "import dragoman.system", "dragoman.system"),
    "the engine reads config": ("engine/a.py", "import dragoman.config", "dragoman.config"),
    "a clock in the core": ("core/task_state.py", "import time", "time"),
    "files in the ledger": ("ledger/entry.py", "from pathlib import Path", "pathlib"),
    "a lazy import in text": ("text/a.py", "def f():\n    import os", "os"),
    "a clock in a dialect": ("protocols/aof/wire.py", "import time", "time"),
    "a driver outside the store": ("engine/a.py", "import apsw", "apsw"),
    "the bundled SQLite": ("store/a.py", "import sqlite3", "sqlite3"),
    "an import cycle": ("core/a.py", "import dragoman.core.b", "acyclic"),
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


def build_skeleton(root: Path) -> Path:
    """Create an empty package with every required folder, under the project's own contracts."""
    shutil.copy(PROJECT / "pyproject.toml", root)
    package = root / "dragoman"
    for folder in FOLDERS:
        add_module(package, f"{folder}/__init__.py", "")
    for module in MODULES:
        add_module(package, f"{module}.py", "")
    add_module(package, "core/b.py", "import dragoman.core.a")
    add_module(package, "core/a.py", "")
    return package


def add_module(package: Path, name: str, source: str) -> None:
    """Write a module into the package, and make packages of the folders on its path."""
    path = package / name
    path.parent.mkdir(parents=True, exist_ok=True)
    for folder in path.relative_to(package).parents:
        (package / folder / "__init__.py").touch()
    path.write_text(source)


def test_project_keeps_its_contracts() -> None:
    result = lint_imports(PROJECT, PROJECT / "src")

    assert result.returncode == 0, result.stdout + result.stderr


@pytest.mark.parametrize(("name", "source"), ALLOWED.values(), ids=ALLOWED)
def test_allowed_import_keeps_the_contracts(tmp_path: Path, name: str, source: str) -> None:
    package = build_skeleton(tmp_path)
    add_module(package, name, source)

    result = lint_imports(tmp_path, tmp_path)

    assert result.returncode == 0, result.stdout + result.stderr


@pytest.mark.parametrize(("name", "source", "culprit"), FORBIDDEN.values(), ids=FORBIDDEN)
def test_forbidden_import_breaks_a_contract(
    tmp_path: Path, name: str, source: str, culprit: str
) -> None:
    package = build_skeleton(tmp_path)
    add_module(package, name, source)

    result = lint_imports(tmp_path, tmp_path)

    assert result.returncode == 1, result.stdout + result.stderr
    assert culprit in result.stdout.partition("Broken contracts")[2]
