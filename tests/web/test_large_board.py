"""A board of 10,000 tasks: only what is seen is drawn, and every column can be read to its end."""

import re
from pathlib import Path

from playwright.sync_api import Browser, expect

from tests.e2e.program import Program
from tests.requirements import proves
from tests.web.browser import visit
from tests.web.fleet import running_fleet

FILES = 10
TASKS = 1_000
"""Tasks of a plan, which is the most that one may have."""


def write_plan(folder: Path, number: int) -> Path:
    """Write a plan of ready tasks."""
    file = folder / f"plan-{number}.toml"
    rows = (
        f'[[tasks]]\nid = "many-{number}-{row}"\ntitle = "Task {row} of {number}"\nready = true\n'
        for row in range(TASKS)
    )
    file.write_text("".join(rows))
    return file


@proves("WEB-PAGES")
def test_board_of_ten_thousand_tasks(browser: Browser, program: Program, tmp_path: Path) -> None:
    program.prepare("init")
    for number in range(FILES):
        plan = write_plan(tmp_path, number)
        program.prepare("task", "create", "--file", str(plan))
    with running_fleet(program) as fleet, visit(browser, fleet) as visited:
        page = visited.go("/board")
        ready = page.get_by_role("region", name="Ready")
        expect(ready.get_by_role("heading")).to_contain_text("10,000")
        cards = ready.get_by_role("button", name=re.compile("Task"))
        expect(cards.first).to_be_visible()
        assert cards.count() < 40
        listed = ready.get_by_role("group")
        seen = re.compile("Task 999 of 8")
        for _ in range(100):
            if ready.get_by_role("button", name=seen).count():
                break
            listed.evaluate("list => { list.scrollTop = list.scrollHeight }")
            page.wait_for_function(
                "list => list.scrollHeight - list.scrollTop > list.clientHeight + 10",
                arg=listed.element_handle(),
            )
        assert cards.count() < 40
        page.get_by_label("Only with these words").fill("many-0-7")
        expect(ready).to_contain_text("Task 799 of 0")
        visited.check()
