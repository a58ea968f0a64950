"""The page on running agents: its settings load, its script runs, its command lines work."""

import json
import os
import re
import subprocess
import sys
from itertools import pairwise
from pathlib import Path

import pytest

from docs.generate import DOCS
from dragoman.agents.program_runner import INHERITED_VARIABLES
from dragoman.config import parse_settings
from dragoman.engine.ports import SESSION_VARIABLE
from tests.agents.running_hub import FAST, run, running_hub
from tests.requirements import proves

PAGE = (DOCS / "running-agents.md").read_text(encoding="utf-8")
EXAMPLES = {
    example.split("]", 1)[0].removeprefix("[agents."): example
    for example in re.findall(r"```toml\n(.*?)```", PAGE, re.DOTALL)
}

FAKE_AGENT = """
import json, os, sys
given = {"words": sys.argv[1:], "prompt": sys.stdin.read(), "folder": os.environ["DRAGOMAN_FOLDER"]}
with open(os.path.dirname(sys.argv[0]) + "/given", "w") as kept:
    json.dump(given, kept)
"""
"""Replaces the program of an agent and records its arguments and prompt."""


@proves("RUN-RECIPES", "PROJECT-DOCS")
def test_script_recipe_runs_unchanged(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with running_hub(tmp_path / "data", FAST + EXAMPLES["counter"]) as hub:
            task = hub.make("Count my words")
            done = await hub.until_status(task, "review")
            assert done.reported is not None
            assert done.reported.notes == "counted"
            assert done.warnings == 0

    run(scenario())


@proves("RUN-RECIPES", "PROJECT-DOCS")
@pytest.mark.parametrize(
    ("name", "words", "last"),
    [
        ("claude", ("-p", "--permission-mode", "acceptEdits", "--allowedTools"), []),
        ("codex", ("exec", "--sandbox", "workspace-write", "--skip-git-repo-check"), ["-"]),
    ],
)
def test_recipes_of_claude_and_codex_read_their_prompt_on_stdin(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    name: str,
    words: tuple[str, ...],
    last: list[str],
) -> None:
    repository, program = tmp_path / "app", tmp_path / "bin" / name
    for git in (
        ["init", "-q", str(repository)],
        ["-C", str(repository), "config", "user.email", "a@example.org"],
        ["-C", str(repository), "config", "user.name", "A"],
        ["-C", str(repository), "commit", "-q", "--allow-empty", "-m", "first"],
    ):
        subprocess.run(["git", *git], check=True)
    program.parent.mkdir()
    program.write_text(f"#!{sys.executable}\n{FAKE_AGENT}")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{program.parent}:{os.environ['PATH']}")
    settings = FAST + EXAMPLES[name].replace("/srv/app", str(repository))

    async def scenario() -> None:
        async with running_hub(tmp_path / "data", settings) as hub:
            task = hub.make("Mend it")
            await hub.until_status(task, "review")
            received = json.loads((tmp_path / "bin" / "given").read_text())
            assert tuple(received["words"][: len(words)]) == words
            assert received["prompt"].startswith("# Mend it\n")
            # Summary and commits are written outside of the working folder.
            folders = [after for word, after in pairwise(received["words"]) if word == "--add-dir"]
            git = repository / ".git"
            worktree = git / "worktrees" / hub.task(task).aof_id
            assert folders == [received["folder"], str(worktree), str(git)]
            assert received["words"][received["words"].index(str(git)) + 1 :] == last

    run(scenario())


@proves("RUN-RECIPES", "PROJECT-DOCS")
def test_every_settings_example_loads() -> None:
    assert set(EXAMPLES) == {
        *("swe-backend", "swe-frontend", "reviewer", "counter", "claude", "codex"),
    }
    for name, example in EXAMPLES.items():
        assert name in parse_settings(example, {}).agents


@proves("RUN-ENVIRONMENT", "PROJECT-DOCS")
def test_page_names_every_variable_of_a_program() -> None:
    for variable in (*INHERITED_VARIABLES, SESSION_VARIABLE):
        assert f"`{variable}`" in PAGE
