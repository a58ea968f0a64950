"""Rendered handoff events: each line names its handoff, an escalation also its task."""

from typing import Any

import msgspec

from dragoman.protocols.aof.render import render_lines
from dragoman.store.memory import MemoryStore
from tests.ledger.released import FIRST, SCRIPTS
from tests.requirements import proves

pytestmark = proves("ACP-SLA", "ACP-STATES")


def lines(prefix: str) -> list[dict[str, Any]]:
    """Render a scripted run and return the lines whose type has this prefix."""
    store = MemoryStore("lines")
    SCRIPTS["handoffs"](store)
    entries = store.entries(0, 1_000)
    written = [
        msgspec.json.decode(raw) for e in entries for raw in render_lines(e, lambda _: FIRST)
    ]
    return [line for line in written if line["type"].startswith(prefix)]


def test_every_handoff_line_names_its_handoff() -> None:
    handoff_lines = lines("handoff.")
    assert all(line["payload"]["handoff"] for line in handoff_lines)
    assert {line["type"] for line in handoff_lines} >= {
        "handoff.proposed",
        "handoff.transitioned",
        "handoff.verified",
        "handoff.rejected",
        "handoff.approved",
        "handoff.escalated",
        "handoff.extended",
        "handoff.noted",
    }
    moved = lines("handoff.transitioned")[0]["payload"]
    assert (moved["from"], moved["to"], moved["by"]) == ("proposed", "validating", "carol")


def test_proposed_line_has_parties_and_hash_but_no_package() -> None:
    first = lines("handoff.proposed")[0]
    assert first["taskId"] == FIRST
    assert set(first["payload"]) == {"handoff", "from", "to", "packageHash"}


def test_escalation_line_names_its_task_and_trigger() -> None:
    late, lost = lines("handoff.escalated")
    assert (late["taskId"], late["payload"]["trigger"]) == (FIRST, "timeout")
    assert late["payload"]["stage"] == "accepted→activated"
    assert "task" not in late["payload"]
    assert lost["payload"]["trigger"] == "lease_lost"


def test_extension_line_has_the_new_deadline() -> None:
    (line,) = lines("handoff.extended")
    assert line["payload"]["until"].endswith("Z")
