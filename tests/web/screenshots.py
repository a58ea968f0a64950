"""Pictures of every page: `uv run python -m tests.web.screenshots DIR`.

Light and dark, on a desktop and on a phone, of a hub without work, with trouble in it, and of one
that has stopped to answer.
"""

import sys
from collections.abc import Iterator
from contextlib import closing
from itertools import product
from pathlib import Path
from tempfile import TemporaryDirectory

from playwright.sync_api import Browser, Page, Route

from tests.e2e.program import Program
from tests.web.browser import DESKTOP, PHONE, chromium, visit
from tests.web.fleet import Fleet, add_trouble, running_fleet

SIZES = {"desktop": DESKTOP, "phone": PHONE}
THEMES = ("light", "dark")


def pages_of(fleet: Fleet) -> Iterator[tuple[str, str]]:
    """Name and path of each page."""
    yield from (("needs-you", "/"), ("board", "/board"), ("inbox", "/inbox?agent=ben"))
    yield from (("handoffs", "/handoffs"), ("agents", "/agents"), ("ledger", "/ledger"))
    if not fleet.call("/v1/tasks")["tasks"]:
        return
    (letter, *_) = fleet.call("/v1/agentmail/mail.inbox", {"agent": "ada"})["messages"]
    (handoff, *_) = fleet.call("/v1/handoffs?task=hand-invoices")["handoffs"]
    yield "task", "/tasks/fix-login"
    yield "task-question", "/tasks/import-rates"
    yield "board-task", "/board?task=quote-pdf"
    yield "handoff", f"/handoffs/{handoff['handoff_id']}"
    yield "agent", "/agents/cyd"
    yield "letter", f"/inbox?agent=ada&letter={letter['id']}"
    yield "entry", "/ledger?at=20"


def take(browser: Browser, fleet: Fleet, folder: Path, state: str) -> None:
    """Take a picture of each page in each theme and size."""
    for theme, (size_name, size) in product(THEMES, SIZES.items()):
        with visit(browser, fleet, theme=theme, size=size) as visited:
            for name, path in pages_of(fleet):
                _picture(visited.go(path), folder / f"{state}-{name}-{theme}-{size_name}.png")
            visited.check()


def take_failures(browser: Browser, fleet: Fleet, folder: Path) -> None:
    """Take pictures of pages that cannot be read, and of the sign-in."""
    for theme, (size_name, size) in product(THEMES, SIZES.items()):
        with visit(browser, fleet, theme=theme, size=size) as visited:
            for name, path in pages_of(fleet):
                visited.page.unroute_all()
                visited.go(path)
                visited.page.route("**/v1/*", _fail)
                visited.page.route("**/v1/**", _fail)
                visited.page.reload()
                _picture(visited.page, folder / f"error-{name}-{theme}-{size_name}.png")
        with visit(browser, fleet, None, theme=theme, size=size) as visited:
            _picture(visited.go("/board"), folder / f"sign-in-{theme}-{size_name}.png")


def _fail(route: Route) -> None:
    """Answer as a hub whose store is away; who is signed in is still known."""
    if route.request.url.endswith("/v1/session"):
        route.continue_()
        return
    problem = '{"code": "store_unavailable", "detail": "the store cannot be reached"}'
    route.fulfill(status=503, content_type="application/problem+json", body=problem)


def _picture(page: Page, file: Path) -> None:
    page.get_by_role("heading").or_(page.get_by_role("alert")).first.wait_for()
    page.wait_for_timeout(700)  # what is read a moment later is in the picture, too
    page.screenshot(path=file)


def main(folder: Path) -> None:
    """Take all pictures into a folder."""
    folder.mkdir(parents=True, exist_ok=True)
    with TemporaryDirectory() as scratch, chromium() as browser:
        data = Path(scratch) / "hub"
        with (
            closing(Program(data, Path(scratch) / "bytecode")) as program,
            running_fleet(program) as fleet,
        ):
            take(browser, fleet, folder, "empty")
            add_trouble(fleet)
            take(browser, fleet, folder, "full")
            take_failures(browser, fleet, folder)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
