"""The guide to handoffs tells the truth: its commands run, and its package is one."""

import json
import re
from pathlib import Path
from typing import Any, get_args

import pytest

from docs.generate import DOCS
from dragoman.bootstrap.cli_wiring import CLI_WIRING
from dragoman.core.base import Event
from dragoman.core.handoff.state import (
    Handoff,
    HandoffApproved,
    HandoffEscalated,
    HandoffProposed,
    HandoffRejected,
    HandoffTransitioned,
    HandoffVerified,
    RejectReason,
)
from dragoman.engine.lint import lint_text
from dragoman.files.handoff_log import EventContext, render_event
from dragoman.protocols.acp.wire import ACTION_NAMES
from tests.docs.pages import commands_of, run
from tests.requirements import proves

pytestmark = proves("ACP-GUIDE")

PAGE = (DOCS / "dialects" / "acp.md").read_text(encoding="utf-8")
NAMED: dict[str, str] = dict(re.findall(r"`(\w+\.json)`:\n\n```json\n(.*?)```", PAGE, re.DOTALL))
LOG = "teamspaces/default/handoffs/handoffs.jsonl"


def test_its_package_is_one() -> None:
    (acp,) = (one for one in CLI_WIRING.dialects() if one.name == "acp")
    output = json.dumps({"action": "initiate", **json.loads(NAMED["package.json"])})
    linted = lint_text(acp, output.encode(), "", strict=True)
    assert linted.ok, linted.issues


def test_every_action_and_every_reason_is_explained() -> None:
    words = {*ACTION_NAMES, *get_args(RejectReason)}
    assert {word for word in words if f"`{word}`" not in PAGE} == set()


def test_every_key_of_an_audit_line_is_explained() -> None:
    """Of events in which nothing is left empty."""
    after = Handoff("h", "ada", "bob", "closed", 0, 0, {}, chain=("ada",))
    output: tuple[Event, ...] = (
        HandoffProposed("h", "t", "ada", "bob", {}, "0", "t", "r", "t", supersedes="h0"),
        HandoffTransitioned("activated", "rejected", "no", "h2", "bob"),
        HandoffTransitioned("activated", "completed", "done"),
        HandoffTransitioned("completed", "closed", "thanks"),
        HandoffVerified(("schema",), ("cycle",), {"a": "0"}, ("b",)),
        HandoffApproved("eve", "0", note="fine"),
        HandoffRejected("bob", "other", "no", "ask eve"),
        HandoffEscalated("timeout", "proposed→validating", "coordinator"),
    )
    found = dict[str, set[str]]()
    context = EventContext("agent:bob", after)
    for kind, keys in (line for event in output for line in render_event(event, context)):
        found.setdefault(kind, set()).update(keys)
    rows = dict(re.findall(r"\| `(handoff_\w+)` \|[^|]*\|([^|]*)\|\n", PAGE))
    explained = {kind: set(re.findall(r"`(\w+)`", row)) - {"system"} for kind, row in rows.items()}
    assert explained == found


def test_the_shell_commands_do_what_the_page_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for name, content in NAMED.items():
        (tmp_path / name).write_text(content, encoding="utf-8")
    output = "".join(map(run, commands_of(PAGE)))
    assert "bob can accept: dragoman handoff accept h1 --as bob" in output
    assert ": all good" in output
    assert '"$schema"' in output
    found = _lines(tmp_path / ".dragoman" / LOG)
    assert {line["event"] for line in found if f"`{line['event']}`" not in PAGE} == set()
    assert [line["to_status"] for line in found if "to_status" in line][5] == "closed"
    late = [line["event"] for line in _lines(tmp_path / "rehearsal" / LOG)]
    assert late.count("handoff_escalation") == 1


def _lines(log: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in log.read_text(encoding="utf-8").splitlines()]
