"""The docs tell the truth: generated parts are current, examples run, links lead somewhere."""

import re
from pathlib import Path
from typing import Any

import pytest

from docs.generate import DOCS, generated
from tests.requirements import proves

ROOT = DOCS.parent
PAGES = sorted([*DOCS.rglob("*.md"), *ROOT.glob("*.md")])


@proves("TASK-TABLE-AS-DATA", "PROJECT-DOCS")
@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_generated_parts_are_what_the_tables_say(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    assert generated(text) == text, "run: uv run python docs/generate.py"


@proves("TASK-TABLE-AS-DATA", "PROJECT-DOCS")
def test_an_outdated_part_is_noticed() -> None:
    outdated = "<!-- generated: transition-table -->\n| from | to |\n<!-- end -->"
    assert generated(outdated) != outdated


@proves("TESTING-EXAMPLE")
def test_the_worked_example_runs_as_it_stands() -> None:
    page = (DOCS / "testing-your-agents.md").read_text(encoding="utf-8")
    (example,) = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
    namespace: dict[str, Any] = {}
    exec(compile(example, "testing-your-agents.md", "exec"), namespace)  # noqa: S102  our own page
    namespace["test_a_crashed_agent_loses_its_task_and_cannot_spoil_the_next_one"]()


@proves("PROJECT-DOCS")
@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_between_pages_lead_somewhere(page: Path) -> None:
    targets = re.findall(r"\]\((?!https?:)([^)#]+)", page.read_text(encoding="utf-8"))
    missing = [target for target in targets if not (page.parent / target).exists()]
    assert missing == []


@proves("PROJECT-DOCS")
@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_row_of_a_table_has_the_cells_of_its_head(page: Path) -> None:
    text = re.sub(
        r"^```.*?^```", "", page.read_text(encoding="utf-8"), flags=re.DOTALL | re.MULTILINE
    )
    tables = re.findall(r"(?:^\|.*\n)+", text, re.MULTILINE)
    cells = [[len(re.findall(r"(?<!\\)\|", row)) for row in t.splitlines()] for t in tables]
    assert [
        (t[:60], count) for t, count in zip(tables, cells, strict=True) if len({*count}) > 1
    ] == []
    assert [t for t in tables if not re.match(r".*\n\|[-:| ]+\|\n", t)] == [], "each has a head"


@proves("CONFIG-ONCE")
def test_every_setting_is_explained() -> None:
    page = (DOCS / "stores.md").read_text(encoding="utf-8")
    rows = [line for line in page.splitlines() if line.startswith("| `[")]
    assert rows
    assert [row for row in rows if row.endswith("|  |")] == []


@proves("PROJECT-DOCS")
@pytest.mark.parametrize("page", sorted(DOCS.glob("decisions/0*.md")), ids=lambda page: page.stem)
def test_every_decision_has_a_guard_that_exists(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    assert "**Guard.**" in text
    named = re.findall(r"`(tests/[^`]+)`", text)
    assert [path for path in named if not (ROOT / path).exists()] == []


@proves("PROJECT-DOCS")
def test_map_of_the_code_has_every_folder_and_no_other() -> None:
    page = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    mapped = page.partition("src/dragoman/\n")[2].partition("\nextras/")[0]
    folders = {
        path.name
        for path in (ROOT / "src" / "dragoman").iterdir()
        if (path / "__init__.py").exists()
    }
    assert set(re.findall(r"^  (\w+)/ ", mapped, re.MULTILINE)) == folders


@proves("PROJECT-DOCS")
def test_files_that_developers_are_told_of_exist() -> None:
    page = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    named = set(re.findall(r"`((?:\w+/)+\w+\.(?:py|sql|toml))`", page))
    roots = (ROOT, ROOT / "src" / "dragoman", ROOT / "tests" / "conformance")
    assert len(named) > 20
    assert [path for path in sorted(named) if not any((r / path).exists() for r in roots)] == []
