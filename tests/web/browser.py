"""A real Chromium at a hub, with what every test of the dashboard looks for."""

from collections.abc import Generator
from contextlib import contextmanager

from playwright.sync_api import Browser, BrowserContext, ConsoleMessage, Page, sync_playwright

from tests.web.fleet import Fleet

CHROMIUM = "/usr/bin/chromium"

FLAGS = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)

DESKTOP = (1440, 900)
PHONE = (390, 844)


@contextmanager
def chromium() -> Generator[Browser]:
    """Start a browser."""
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=[*FLAGS])
        try:
            yield browser
        finally:
            browser.close()


class Visit:
    """A page of the dashboard, and what went wrong in it."""

    def __init__(self, context: BrowserContext, url: str) -> None:
        self.context = context
        self.page = context.new_page()
        self.url = url
        self.foreign: list[str] = []
        """Requests to anybody but the hub."""
        self.faults: list[str] = []
        """Exceptions, and what the content security policy has stopped."""
        self.page.on("request", lambda request: self._note_request(request.url))
        self.page.on("pageerror", lambda error: self.faults.append(str(error)))
        self.page.on("console", self._note_console)

    def _note_request(self, url: str) -> None:
        if not url.startswith((self.url, "data:", "blob:")):
            self.foreign.append(url)

    def _note_console(self, message: ConsoleMessage) -> None:
        if "Content Security Policy" in message.text:
            self.faults.append(message.text)

    def go(self, path: str) -> Page:
        """Open a path of the hub."""
        self.page.goto(self.url + path)
        return self.page

    def check(self) -> None:
        """Assert that nothing went wrong, and that nothing left the machine."""
        assert self.faults == []
        assert self.foreign == []


@contextmanager
def visit(
    browser: Browser,
    fleet: Fleet,
    by: str | None = "owner",
    *,
    size: tuple[int, int] = DESKTOP,
    theme: str = "light",
) -> Generator[Visit]:
    """Open a window of its own, signed in; `by` None: not."""
    width, height = size
    context = browser.new_context(
        viewport={"width": width, "height": height},
        color_scheme="dark" if theme == "dark" else "light",
        device_scale_factor=1,
        locale="en-GB",
        timezone_id="Europe/Vienna",
        reduced_motion="reduce",
    )
    context.set_default_timeout(15_000)
    try:
        visited = Visit(context, fleet.url)
        if by is not None:
            visited.go(fleet.sign_in_path(by))
            visited.page.get_by_role("heading", level=1).first.wait_for()
            visited.page.get_by_role("navigation", name="Pages").wait_for()
        yield visited
    finally:
        context.close()
