"""SQL from files of a package: queries by their names, migrations by their numbers.

A query stands under a line `-- name: what_it_is_called`. Lines that are only a comment are for the
reader of the file and are not sent to the database.
"""

import re
from collections.abc import Mapping
from importlib.resources import files

_NAME = re.compile(r"-- name: ([a-z][a-z0-9_]*)", re.ASCII)
_MIGRATION = re.compile(r"([0-9]{4})_[a-z0-9_]+\.sql", re.ASCII)


def load_queries(package: str, file: str = "queries.sql") -> Mapping[str, str]:
    """The queries of a file, by name."""
    queries: dict[str, list[str]] = {}
    lines: list[str] = []
    for line in files(package).joinpath(file).read_text("utf-8").splitlines():
        if name := _NAME.fullmatch(line):
            if name[1] in queries:
                raise ValueError(f"{package}/{file}: two queries are called {name[1]}")
            lines = queries.setdefault(name[1], [])
        elif not line.lstrip().startswith("--"):
            lines.append(line.strip())
    return {name: "\n".join(lines).strip() for name, lines in queries.items()}


def load_migrations(package: str) -> list[str]:
    """The scripts `migrations/NNNN_name.sql` in order; number n is at n - 1."""
    found = {
        int(name[1]): file.read_text("utf-8")
        for file in files(package).joinpath("migrations").iterdir()
        if (name := _MIGRATION.fullmatch(file.name))
    }
    if sorted(found) != list(range(1, len(found) + 1)):
        raise ValueError(f"{package}: migrations must be numbered 0001, 0002, … without a gap")
    return [found[number] for number in sorted(found)]
