"""The page on running agents: its settings load, its script runs, its command lines are those."""

import re
import shlex
from itertools import pairwise
from pathlib import Path

import pytest

from docs.generate import DOCS
from dragoman.agents.program import PASSED_ON
from dragoman.config import parse
from dragoman.engine.runner import SESSION_VARIABLE
from tests.agents.floor import FAST, floor, run
from tests.requirements import proves

PAGE = (DOCS / "running-agents.md").read_text(encoding="utf-8")
EXAMPLES = {
    example.split("]", 1)[0].removeprefix("[agents."): example
    for example in re.findall(r"```toml\n(.*?)```", PAGE, re.DOTALL)
}


@proves("RUN-RECIPES", "PROJECT-DOCS")
def test_the_recipe_of_the_plain_script_runs_as_it_stands(tmp_path: Path) -> None:
    async def story() -> None:
        async with floor(tmp_path / "data", FAST + EXAMPLES["counter"]) as hub:
            task = hub.make("Count my words")
            done = await hub.until_status(task, "review")
            assert done.reported is not None
            assert done.reported.notes == "counted"
            assert done.warnings == 0

    run(story())


@proves("RUN-RECIPES", "PROJECT-DOCS")
@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("claude", ("claude", "-p", "--permission-mode", "acceptEdits", "--allowedTools")),
        ("codex", ("codex", "exec", "--sandbox", "workspace-write", "--skip-git-repo-check")),
    ],
)
def test_the_command_lines_of_the_others_read_their_prompt_on_standard_input(
    name: str, words: tuple[str, ...]
) -> None:
    agent = parse(EXAMPLES[name], {}).agents[name]
    shell, option, script = agent.command
    assert (shell, option) == ("sh", "-c")
    said = shlex.split(script)
    assert tuple(said[: len(words) + 1]) == ("exec", *words)
    # Where the summary and the commits go lies outside of the folder that they work in.
    folders = [after for word, after in pairwise(said) if word == "--add-dir"]
    assert folders == ["$DRAGOMAN_FOLDER", f"{agent.repository}/.git"]
    assert agent.prompt == "stdin"


@proves("RUN-RECIPES", "PROJECT-DOCS")
def test_every_example_loads() -> None:
    assert set(EXAMPLES) == {"swe-backend", "reviewer", "counter", "claude", "codex"}
    for name, example in EXAMPLES.items():
        assert name in parse(example, {}).agents


@proves("RUN-ENVIRONMENT", "PROJECT-DOCS")
def test_the_page_names_every_variable_that_a_program_gets() -> None:
    for variable in (*PASSED_ON, SESSION_VARIABLE):
        assert f"`{variable}`" in PAGE
