"""axe on every page, in light and dark, on a desktop and on a phone."""

from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Page

from tests.requirements import proves
from tests.web.browser import DESKTOP, PHONE, visit
from tests.web.fleet import Fleet

AXE = Path(__file__).parents[2] / "ui" / "node_modules" / "axe-core" / "axe.min.js"

PATHS = (
    "/",
    "/board?task=import-rates",
    "/board?at=20",
    "/tasks/import-rates",
    "/tasks/fix-login?at=40",
    "/tasks/fix-login?tab=terminal",
    "/tasks/fix-login?tab=log",
    "/tasks/hand-search?tab=artifacts",
    "/board?group=agent",
    "/handoffs?at=40",
    "/handoffs",
    "/agents/cyd",
    "/inbox?agent=ben",
    "/ledger?at=3",
)


def find_faults(page: Page) -> list[str]:
    """Serious and critical findings of axe, each with the elements that it is about."""
    results: Any = page.evaluate("axe.run(document, {resultTypes: ['violations']})")
    return [
        f"{one['id']}: {[node['html'][:120] for node in one['nodes'][:3]]}"
        for one in results["violations"]
        if one["impact"] in ("serious", "critical")
    ]


@proves("WEB-ACCESS")
@pytest.mark.parametrize(("theme", "size"), [("light", DESKTOP), ("dark", PHONE)])
def test_axe_finds_nothing_serious(
    browser: Browser, fleet: Fleet, theme: str, size: tuple[int, int]
) -> None:
    script = AXE.read_text()
    with visit(browser, fleet, theme=theme, size=size) as visited:
        faults: dict[str, list[str]] = {}
        for path in PATHS:
            page = visited.go(path)
            page.get_by_role("main").get_by_role("heading").first.wait_for()
            # What a debugger evaluates is not held to the policy of the page.
            page.evaluate(script)
            if found := find_faults(page):
                faults[path] = found
        for opener in ("Search and commands", "Act on all…"):
            page = visited.go("/board?words=login")
            page.get_by_role("button", name=opener).click()
            page.get_by_role("dialog").wait_for()
            page.evaluate(script)
            if found := find_faults(page):
                faults[opener] = found
        assert faults == {}
