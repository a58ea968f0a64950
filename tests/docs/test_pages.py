"""The commands of README and the pages do what stands there, run in order from an empty folder.

Two guides have tests of their own: AOF in test_aof_guide.py, handoffs in test_acp_guide.py.
"""

import os
import re
import shlex
import shutil
import subprocess
from argparse import ArgumentParser
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from msgspec import Struct

from docs.generate import DOCS
from tests.docs.pages import commands_of, run
from tests.requirements import proves
from tests.surfaces.http.hub_server import HubServer, serving

pytestmark = proves("PROJECT-DOCS")

ROOT = DOCS.parent
TESTS = ROOT / "tests"
TESTED_APART = {
    "docs/dialects/aof.md",
    "docs/dialects/acp.md",
    "docs/http.md",
    "docs/stores.md",
    "docs/faults.md",
    "CONTRIBUTING.md",
}
"""Pages with commands that have a test of their own, here or in the guides' files."""

RUN_ELSEWHERE = {
    "pip install uv && uv run dragoman up": "tests/e2e/test_up.py",
    "pip install uv && uv run pytest": ".ci/run",
    "dragoman up": "tests/e2e/test_up.py",
    "dragoman top": "tests/e2e/test_top.py",
    "claude mcp add": "tests/surfaces/mcp/test_stdio.py",
    "uv tool install ./extras": "tests/extras/test_traces.py",
    "dragoman-traces": "tests/extras/test_traces.py",
}
"""Of lines that end with Ctrl-C or need the world outside -> what runs the like of them."""


class Page(Struct, frozen=True):
    """A page, and what it leaves to its reader."""

    path: str
    files: Mapping[str, str] = {}
    """Name in the folder -> the file of the tests that stands for it."""
    stand_ins: Mapping[str, str] = {}
    """Text on the page -> its replacement in the test."""
    found: Mapping[str, str] = {}
    """Text on the page -> the pattern that finds it in the earlier output."""
    before: Mapping[str, tuple[str, ...]] = {}
    """Of a line -> what its reader has done by then."""
    says: tuple[str, ...] = ()
    """Texts that the output must contain."""


REPORT = "protocols/aof/examples/1.json"
REPORTED_TASK = (
    "dragoman task create Users --id TASK-2026-02-09-057 --ready",
    "dragoman task claim TASK-2026-02-09-057 --agent swe-backend --session s-1",
)
A_TASK = "dragoman task create Parser --id T-1 --ready"

PAGES = [
    Page(
        "README.md",
        says=(
            "done is on record",
            "password=[REDACTED:",
            "fix-login is done",
            ": all good",
            "TaskDispatched",
            "Nothing was changed",
        ),
    ),
    Page(
        "docs/first-ten-minutes.md",
        says=("attempt 2, fence 2", "fix-login is done", "all good"),
    ),
    Page(
        "docs/write-an-agent.md",
        says=("written into the work log", "h1", "Satisfied", "all good"),
    ),
    Page(
        "docs/tasks.md",
        before={"dragoman task complete": ("dragoman task show fix-login",)},
        says=("q1 of fix-login waits", "q1 is answered", "fix-login is done", "part build  ready"),
    ),
    Page("docs/operate.md", says=("all good",)),
    Page(
        "docs/backup.md",
        stand_ins={"/mnt/backups": "backups", "/srv/hub": "hub"},
        before={
            "dragoman backup": (A_TASK, "mkdir backups"),
            "tar -xf": ("rm -r hub/keys",),
        },
        says=("all good",),
    ),
    Page(
        "docs/files.md",
        stand_ins={"$MESSAGE": "$(cat report.json)"},
        files={"report.json": REPORT},
        before={
            "mkdir": REPORTED_TASK,
            "dragoman export": (
                "dragoman tick",
                "test -e .dragoman/inbox/swe-backend/processed/report.json",
            ),
        },
    ),
    Page(
        "docs/identity.md",
        found={" 3f9a0c55d21e": r"drg_swe-backend_(\w{12})_"},
        says=("good until", "all tokens are revoked"),
    ),
    Page(
        "docs/redaction.md",
        says=('"ok": true',),
    ),
    Page(
        "docs/mcp.md", says=("nothing was written: add --write", "next: start `claude`", "removed")
    ),
    Page(
        "docs/running-agents.md",
        before={"dragoman agent show": ("dragoman agent add ada", "dragoman agent pause ada")},
        says=("paused",),
    ),
    Page("docs/translation.md", says=("FAILED", "no mail server")),
    Page(
        "docs/traces.md",
        found={" 12 ": r"(\d+)  .*  T-1  created"},
        before={
            "dragoman watch T-1  ": (A_TASK,),
            "dragoman rewind": ("dragoman task claim T-1 --agent ada",),
        },
        says=("Nothing was changed",),
    ),
    Page(
        "docs/dialects/agent-mail.md",
        found={" ID ": r"\n([-0-9a-f]{36})  .* Lunch "},
        says=("under way", "reserved until", "acknowledged", "last type    PROGRESS"),
    ),
    Page(
        "docs/dialects/ccos.md",
        before={
            "dragoman verify": ("cp .dragoman/keys/ledger.pub .",),
        },
        says=("i-7 is Satisfied",),
    ),
]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.path)
def test_the_commands_of_a_page_do_what_it_says(
    page: Page, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    subprocess.run(["git", "init", "-q"], check=True)
    for name, stands_for in page.files.items():
        shutil.copyfile(TESTS / stands_for, tmp_path / name)
    output, before = "", dict(page.before)
    commands = _commands_here(ROOT / page.path)
    if "dragoman init" not in "".join(commands):  # it is for readers who have a data directory
        run("dragoman init")
    for command in commands:
        for words in [words for words in before if words in command]:
            for done_by_then in before.pop(words):
                run(done_by_then)
        found = {
            shown: f" {re.findall(pattern, output)[-1]} "
            for shown, pattern in page.found.items()
            if shown in command
        }
        output += run(command, {**page.stand_ins, **found})
    assert not before, "the page has no such lines"
    assert [words for words in page.says if words not in output] == []


def test_a_hub_answers_the_requests_of_its_page() -> None:
    with serving(HubServer()) as server:
        server.add_agent("swe-backend")
        sent, received = (_as_curl(server, command) for command in _commands_here(DOCS / "http.md"))
    assert sent["ok"]
    assert received["messages"] == []


def _as_curl(server: HubServer, command: str) -> Any:
    """The answer to what the words ask curl for; the machine need not have one."""
    parser = ArgumentParser()
    parser.add_argument("-s", action="store_true")
    parser.add_argument("-H", action="append")
    parser.add_argument("-d")
    parser.add_argument("url", type=urlsplit)
    program, *words = shlex.split(command.replace("wait=60000", "wait=1"))
    arguments = parser.parse_args(words)
    assert program == "curl"
    assert arguments.url.netloc == "127.0.0.1:4747"
    headers = dict(header.split(": ", 1) for header in arguments.H)
    assert headers.pop("Authorization") == "Bearer $TOKEN"
    path = arguments.url._replace(scheme="", netloc="").geturl()
    answer = server.request("POST", path, arguments.d.encode(), by="swe-backend", headers=headers)
    assert answer.status == 200, answer
    return answer.json


def test_a_store_is_made_by_the_command_of_its_page(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, postgres_url: str
) -> None:
    monkeypatch.chdir(tmp_path)
    (command,) = _commands_here(DOCS / "stores.md")
    run(command, {"postgresql://user@host/database": postgres_url})
    assert run(f"dragoman --store '{postgres_url}' task list --json")


@pytest.mark.parametrize("name", ["CONTRIBUTING.md", "docs/faults.md"])
def test_what_commands_for_developers_name_is_there(name: str) -> None:
    commands = commands_of((ROOT / name).read_text(encoding="utf-8"))
    words = [word for command in commands for word in shlex.split(command, comments=True)]
    paths = [word for word in words if "/" in word]
    modules = [words[at + 1].replace(".", "/") for at, word in enumerate(words) if word == "-m"]
    assert paths
    assert modules
    named = [ROOT / path for path in paths] + [ROOT / f"{module}.py" for module in modules]
    assert [path for path in named if not (path.exists() or path.with_suffix("").is_dir())] == []


@pytest.mark.parametrize("line", ["dragoman init", "dragoman init | cat"])
def test_a_command_of_a_page_leaves_the_reader_s_own_hub_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, line: str
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("DRAGOMAN_DATA", str(tmp_path / "of-the-reader"))
    run(line)
    assert [path.name for path in tmp_path.iterdir()] == [".dragoman"]
    assert os.environ["DRAGOMAN_DATA"] == str(tmp_path / "of-the-reader")


def test_every_page_with_commands_is_run() -> None:
    showing = {
        str(page.relative_to(ROOT))
        for page in [*DOCS.rglob("*.md"), *ROOT.glob("*.md")]
        if _commands_here(page)
    }
    assert showing == {page.path for page in PAGES} | TESTED_APART


def test_what_is_not_run_here_stands_on_a_page_and_is_run_elsewhere() -> None:
    shown = [
        command
        for page in [*DOCS.rglob("*.md"), *ROOT.glob("*.md")]
        for command in commands_of(page.read_text(encoding="utf-8"))
    ]
    for words, runs_it in RUN_ELSEWHERE.items():
        assert any(words in command for command in shown), words
        assert (ROOT / runs_it).exists()


def _commands_here(page: Path) -> list[str]:
    """The commands of a page that the tests of the docs run."""
    commands = commands_of(page.read_text(encoding="utf-8"))
    return [one for one in commands if not any(words in one for words in RUN_ELSEWHERE)]
