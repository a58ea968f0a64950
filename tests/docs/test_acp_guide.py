"""The guide to handoffs tells the truth: its commands run, and its package is one."""

import json
import re
import shlex
import subprocess
from io import StringIO
from pathlib import Path
from typing import Any, get_args

import pytest

from docs.generate import DOCS
from dragoman.bootstrap import dialects, import_archive, open_hub, open_place, open_stage
from dragoman.bootstrap.backups import restore_backup
from dragoman.bootstrap.redaction import find_redactor
from dragoman.bootstrap.watching import watch_hub
from dragoman.core.events import RejectReason
from dragoman.engine.operation import lint_text
from dragoman.protocols.acp.actions import ACTIONS
from dragoman.surfaces.cli.app import main
from dragoman.surfaces.cli.place import House
from tests.requirements import proves

pytestmark = proves("ACP-GUIDE")

PAGE = (DOCS / "dialects" / "acp.md").read_text(encoding="utf-8")
NAMED: dict[str, str] = dict(re.findall(r"`(\w+\.json)`:\n\n```json\n(.*?)```", PAGE, re.DOTALL))
SCRIPT = "".join(re.findall(r"```sh\n(.*?)```", PAGE, re.DOTALL)).replace("\\\n", " ")
COMMANDS = [line for line in SCRIPT.splitlines() if line]
HOUSE = House(
    open_place,
    dialects,
    import_archive,
    open_stage,
    open_hub,
    watch_hub,
    find_redactor,
    restore_backup,
)
LOG = "teamspaces/default/handoffs/handoffs.jsonl"


def test_its_package_is_one() -> None:
    (acp,) = (one for one in dialects() if one.name == "acp")
    said = json.dumps({"action": "initiate", **json.loads(NAMED["package.json"])})
    linted = lint_text(acp.lint, said.encode(), "", strict=True)
    assert linted.ok, linted.issues


def test_every_action_and_every_reason_is_explained() -> None:
    words = {*ACTIONS, *get_args(RejectReason)}
    assert {word for word in words if f"`{word}`" not in PAGE} == set()


def test_the_shell_commands_do_what_the_page_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for name, content in NAMED.items():
        (tmp_path / name).write_text(content, encoding="utf-8")
    said = "".join(_run(command) for command in COMMANDS)
    assert "bob can accept: dragoman handoff accept h1 --as bob" in said
    assert "h1  all good" in said
    assert '"$schema"' in said
    told = _lines(tmp_path / ".dragoman" / LOG)
    assert {line["event"] for line in told if f"`{line['event']}`" not in PAGE} == set()
    assert [line["to_status"] for line in told if "to_status" in line][5] == "closed"
    late = [line["event"] for line in _lines(tmp_path / "rehearsal" / LOG)]
    assert late.count("handoff_escalation") == 1


def _run(command: str) -> str:
    """What a line of the page prints; one that it calls refused is refused for that reason.

    Our own commands run here and not in a process each, which would take half a second to start.
    """
    words, _, remark = command.partition(" # refused: ")
    if not words.startswith("dragoman "):
        subprocess.run(["sh", "-c", words], check=True)
        return ""
    out, err = StringIO(), StringIO()
    code = main(HOUSE, shlex.split(words)[1:], out, err, lambda: False)
    assert code == (1 if remark else 0), (command, err.getvalue())
    assert err.getvalue().startswith(remark) or not remark, command
    return out.getvalue()


def _lines(log: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in log.read_text(encoding="utf-8").splitlines()]
