"""Each dialect's offers, taken in each other one, between agents in processes of their own."""

import json
import os
import subprocess
import sys
from itertools import count
from pathlib import Path
from typing import Any

from tests.e2e.hub_process import run_hub
from tests.e2e.program import Program, wait_for_exit
from tests.requirements import proves

AGENT = str(Path(__file__).with_name("dialect_agent.py"))

DIALECTS = ("aof", "agentmail", "acp", "ccos", "saop")

ENDS = {"done": {"done"}, "failed": {"failed", "help"}, "help": {"help"}}
"""Last word of the hand -> kinds that its boss may be told: SAOP and ACP have one word for two."""


@proves("DELIVERY-DIALECT", "OFFER-ANSWER")
def test_offer_progress_help_result_and_failure_between_all_pairs_of_dialects(
    program: Program,
) -> None:
    numbers = count(100)
    plan: dict[str, tuple[str, str, str]] = {
        f"TASK-2026-01-01-{next(numbers)}": (boss, hand, end)
        for boss in DIALECTS
        for hand in DIALECTS
        for end in ENDS
        if boss != hand
    }
    program.prepare("init")
    tokens = {
        f"{role}-{dialect}": _register(program, role, dialect)
        for role in ("boss", "hand")
        for dialect in DIALECTS
    }
    with run_hub(program) as hub:
        agents = {
            name: _start(hub.url, name, token, _share(plan, name)) for name, token in tokens.items()
        }
        ended = {name: wait_for_exit(process) for name, process in agents.items()}
        hub.stop()
    assert {name: done.code for name, done in ended.items()} == dict.fromkeys(tokens, 0), ended
    told = {name: json.loads(done.out) for name, done in ended.items()}
    facts = 0
    for task, (boss, hand, end) in plan.items():
        assert told[f"hand-{hand}"][task] == ["offer"], (task, boss, hand)
        heard = set(told[f"boss-{boss}"][task])
        assert heard & ENDS[end], (task, boss, hand, end, heard)
        facts += 1
        if end == "done":
            assert "progress" in heard, (task, boss, hand, heard)
            facts += 2
    assert facts == 100
    assert program.run("verify").code == 0


def _register(program: Program, role: str, dialect: str) -> str:
    """Register an agent with its dialect; its token."""
    more = ("--role", "orchestrator") if (role, dialect) in _LEADERS else ()
    part = ("--saop-role", "architect" if role == "boss" else "developer", "--skill", "python")
    name = f"{role}-{dialect}"
    added = program.ask_here("agent", "add", name, "--speaks", dialect, *part, *more)
    return added["token"]


_LEADERS = (("boss", "agentmail"), ("boss", "ccos"))
"""Only orchestrators ask for workers by letter, and name the agent of a TaskRequest."""


def _share(plan: dict[str, tuple[str, str, str]], name: str) -> dict[str, dict[str, str]]:
    """The part of the plan in which an agent plays a part."""
    role, _, dialect = name.partition("-")
    is_boss = role == "boss"
    return {
        task: {"with": f"hand-{hand}" if is_boss else f"boss-{boss}", "in": boss, "end": end}
        for task, (boss, hand, end) in plan.items()
        if dialect == (boss if is_boss else hand)
    }


def _start(url: str, name: str, token: str, share: Any) -> "subprocess.Popen[str]":
    role, _, dialect = name.partition("-")
    return subprocess.Popen(
        (sys.executable, AGENT, role, dialect, json.dumps(share)),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "DRAGOMAN_URL": url, "DRAGOMAN_TOKEN": token},
    )
