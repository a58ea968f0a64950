"""The files that the demo has made, each with what it is for."""

from collections.abc import Iterator
from pathlib import Path

_FILE_MEANINGS = (
    ("dragoman.db", "the ledger"),
    ("checkpoints.jsonl", "its signatures"),
    ("events/*.jsonl", "what happened, by day"),
    ("runs/*/attempts/*/*", "the attempt that died"),
    ("runs/*/run.json", "who worked on it"),
    ("runs/*/run_heartbeat.json", "the last sign of life"),
    ("runs/*/run_result.json", "the report"),
    ("tasks/*/*.md", "state, text, work log"),
    ("tasks/*/*/inputs/handoff.json", "what was asked of ben"),
    ("tasks/*/*/inputs/handoff.md", "the same, to read"),
    ("tasks/*/*/outputs/*", "an agent's own file"),
)
"""Glob pattern -> what the file is for; other files are bookkeeping."""


def describe_files(data: Path) -> Iterator[tuple[str, str]]:
    """List every file that is worth reading, and its purpose."""
    for pattern, meaning in _FILE_MEANINGS:
        for path in sorted(data.glob(pattern)):
            yield path.relative_to(data).as_posix(), meaning
