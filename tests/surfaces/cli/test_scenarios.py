"""A scenario for every dialect, with all services run: verify has no findings at its end."""

import json
from collections.abc import Callable
from typing import Any

import pytest

from tests.protocols.acp.hub import offer
from tests.protocols.aof.hub import PARENT, update
from tests.protocols.saop.hub import turn
from tests.requirements import proves
from tests.surfaces.cli.console import NOON, Console

pytestmark = proves("VERIFY-AS-REPLAYED")

AT = ("--now", NOON)
SOON = ("--now", "2026-02-09T12:00:30Z")


def call(dragoman: Console, operation: str, message: dict[str, Any], agent: str) -> Any:
    """Call an operation and return its reply."""
    return dragoman.ask("call", operation, json.dumps(message), "--as", agent, *AT)


def tasks(dragoman: Console) -> None:
    """Pass values that equal the defaults."""
    priority = ("--priority", "NORMAL".lower())  # computed: no constant of the code
    dragoman.make("One", "--id", "T-1", "--ready", *priority, *AT)
    dragoman.ask("task", "claim", "T-1", "--agent", "ada", *AT)


def aof(dragoman: Console) -> None:
    dragoman.make("One", "--id", PARENT, "--ready", *AT)
    dragoman.ask("task", "claim", PARENT, "--agent", "swe-backend", *AT)
    message = json.dumps(update(progress="Half of it", status="blocked", blockers=["the key"]))
    dragoman.ask("call", "status.update", message, "--as", "swe-backend", *AT)


def mail(dragoman: Console) -> None:
    args = ("--to", "bob", "--subject", "Lunch", "--body", "at noon", "--importance", "normal")
    dragoman.ask("mail", "send", "--as", "ada", *args, *AT)


def saop(dragoman: Console) -> None:
    """The same error three times, in a loop, with falling confidence: all three signs escalate."""
    for index in range(6):
        content = {"action": ("edit", "revert")[index % 2], "observation": "Error: no such file"}
        message = turn(index, content=content, metadata={"confidence": 0.9 - index / 10})
        call(dragoman, "saop.turn", message, "developer")
    assert dragoman.ask("tick", *SOON)["services"]["entropy"] == 3


def acp(dragoman: Console) -> None:
    id = call(dragoman, "acp_handoff", offer(), "alice")["handoff_id"]
    for action in ("accept", "activate"):
        call(dragoman, "acp_handoff", {"action": action, "handoff_id": id}, "bob")


def ccos(dragoman: Console) -> None:
    capabilities = ("--skill", "translate", "--cost", "0", "--trust", "T1", "--capacity", "1")
    dragoman.ask("agent", "add", "ada", "--no-token", *capabilities, *AT)
    dragoman.ask("delegate", "Translate it", "--id", "i-1", "--param", "pages=3", *AT)
    call(dragoman, "ccos.update", {"intent_id": "i-1", "agent_id": "ada", "progress": 1}, "ada")
    result = {"intent_id": "i-1", "agent_id": "ada", "success": True, "duration_ms": 5}
    call(dragoman, "ccos.result", result, "ada")


@pytest.mark.parametrize(
    "scenario", [tasks, aof, mail, saop, acp, ccos], ids=lambda one: one.__name__
)
def test_ledger_of_every_dialect_verifies(
    scenario: Callable[[Console], None], dragoman: Console
) -> None:
    dragoman.ask("init", *AT)
    scenario(dragoman)
    dragoman.ask("tick", *SOON)
    assert dragoman.ask("verify")["findings"] == []
