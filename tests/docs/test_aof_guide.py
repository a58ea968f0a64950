"""The AOF guide tells the truth: its messages are AOF/1, its shell commands do what it says."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

from docs.generate import DOCS
from dragoman.bootstrap.dialects import build_dialects
from dragoman.core.errors import REFUSALS
from dragoman.engine.lint import lint_text
from dragoman.protocols.aof.errors import REFUSAL_CODES
from dragoman.protocols.aof.wire import MESSAGES
from tests.docs.pages import commands_of, run
from tests.requirements import proves

pytestmark = proves("AOF-GUIDE")

PAGE = (DOCS / "dialects" / "aof.md").read_text(encoding="utf-8")
EXAMPLES: list[str] = re.findall(r"```json\n(.*?)```", PAGE, re.DOTALL)
NAMED: dict[str, str] = dict(re.findall(r"`(\w+\.json)`:\n\n```json\n(.*?)```", PAGE, re.DOTALL))

OF_OTHER_COMMANDS = {
    "already_exists",
    "already_linked",
    "ambiguous_name",
    "claim_required",
    "key_reused",
    "agent_not_found",
    "mail_not_found",
    "wave_not_found",
    "reservation_not_found",
    "files_reserved",
    "handoff_not_found",
    "work_item_not_found",
    "hash_mismatch",
    "conflict_retry",
    "missing_artifact",
    "schema_invalid",
    "policy_violation",
    "intent_not_found",
    "anomaly",
    "token_not_found",
    "nothing_changed",
    "not_expressible",
    "question_not_found",
    "already_answered",
}
"""Refusals that no message of AOF/1 and no claim can meet."""


@pytest.mark.parametrize("example", EXAMPLES)
def test_every_example_is_aof(example: str) -> None:
    aof, *_ = build_dialects()

    linted = lint_text(aof, example.encode(), "", strict=True)

    assert linted.ok, linted.issues


def test_every_type_has_an_example() -> None:
    assert {json.loads(example)["type"] for example in EXAMPLES} == set(MESSAGES)


def test_every_code_is_explained() -> None:
    codes = {REFUSAL_CODES.get(code, code) for code in REFUSALS}
    assert {code for code in codes if f"`{code}`" not in PAGE} == OF_OTHER_COMMANDS


def test_the_shell_commands_do_what_the_page_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for name, message in NAMED.items():
        (tmp_path / name).write_text(message, encoding="utf-8")

    output = "".join(map(run, commands_of(PAGE)))

    hub, rehearsal = tmp_path / ".dragoman", tmp_path / "rehearsal"
    assert _where(hub) == {
        "TASK-2026-02-09-057": "done",
        "TASK-2026-02-09-060": "in-progress",
        "TASK-2026-02-09-061": "in-progress",
    }
    assert _where(rehearsal) == {"TASK-2026-02-09-070": "ready"}
    assert "all good" in output
    assert '"status": "expired"' in output
    log = (hub / "tasks/in-progress/TASK-2026-02-09-061.md").read_text(encoding="utf-8")
    assert "Progress: 50 of 100 cases" in log
    assert "- 2026-02-09T21:45:00.000Z Notes: sent by a file" in log
    found = {line["type"] for line in _event_lines(hub)}
    assert "delegation.accepted" in found
    assert {kind for kind in found if f"`{kind}`" not in PAGE} == set()


def _where(data: Path) -> dict[str, str]:
    """Task -> the folder that its file stands in."""
    return {path.stem: path.parent.name for path in data.glob("tasks/*/*.md")}


def _event_lines(data: Path) -> list[dict[str, Any]]:
    return [
        json.loads(line)
        for log in data.glob("events/*.jsonl")
        for line in log.read_text(encoding="utf-8").splitlines()
    ]
