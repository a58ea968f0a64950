"""Doors read entries of the ledger through the policy that withholds some of them."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.requirements import proves

pytestmark = proves("ACP-CLOSED-ENTRIES")

SOURCE = Path(__file__).parents[2] / "src" / "dragoman"

DOORS = ("surfaces", "protocols", "notify")
"""Packages whose answers leave the hub."""

RAW_READS = frozenset(
    {"entries", "history", "entry_columns", "all_entries", "stream_entries", "entry_resource"}
)
"""Functions that give entries, whoever asks."""

POLICY = frozenset({"source", "entries"})
"""Names of what gives entries by the policy: an `EntrySource`."""

ALLOWED = {
    "surfaces/cli/commands/events.py": "the owner of the data directory",
    "surfaces/cli/commands/task_read.py": "the owner of the data directory",
    "surfaces/cli/commands/doctor.py": "the time of the last entry",
    "surfaces/cli/commands/watch.py": "the owner of the data directory",
    "surfaces/cli/event_text.py": "the owner of the data directory",
    "surfaces/http/fanout.py": "frames: one for the audience, and one for all others",
    "surfaces/http/readiness.py": "the time of the last entry",
    "surfaces/http/routes/tasks.py": "attempts, of the stream of a task",
    "notify/owner_inbox.py": "the letters of one request, for the owner",
    "surfaces/cli/activity_log.py": "the terminal of the owner",
    "protocols/agentmail/queries.py": "the first entry of a letter that the caller was shown",
    "protocols/ccos/queries.py": "the stream of an intent",
}
"""Module that reads entries by itself -> what they are."""


def _raw_reads(module: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(module.read_text())):
        if not isinstance(node, ast.Call):
            continue
        called = node.func
        if isinstance(called, ast.Name) and called.id in RAW_READS:
            yield called.id
        elif isinstance(called, ast.Attribute) and called.attr in RAW_READS:
            of = called.value
            name = of.attr if isinstance(of, ast.Attribute) else getattr(of, "id", "")
            if name not in POLICY:
                yield f"{name}.{called.attr}"


@pytest.mark.parametrize("door", DOORS)
def test_doors_read_entries_through_the_policy(door: str) -> None:
    found = {
        str(module.relative_to(SOURCE)): reads
        for module in (SOURCE / door).rglob("*.py")
        if (reads := list(_raw_reads(module)))
    }
    around = {module: reads for module, reads in found.items() if module not in ALLOWED}
    assert not around, f"read by an EntrySource, or say in ALLOWED what is read: {around}"
    stale = {name for name in ALLOWED if name.startswith(f"{door}/")} - found.keys()
    assert not stale, f"these read no entries any more: {stale}"


def test_a_door_that_reads_around_the_policy_is_found(tmp_path: Path) -> None:
    module = tmp_path / "door.py"
    module.write_text(
        "def show(store, call, source):\n"
        "    store.entries(0, 10)\n"
        "    call.context.store.history('x', 0, 1)\n"
        "    list(all_entries(store))\n"
        "    source.history('x', 0, 1)\n"
        "    call.context.entries.page(0, 10)\n"
    )
    assert sorted(_raw_reads(module)) == ["all_entries", "store.entries", "store.history"]
