"""Search and commands, saved views, and what the tab says of what waits."""

import re

from playwright.sync_api import Browser, expect

from tests.requirements import proves
from tests.web.browser import visit
from tests.web.fleet import Fleet

pytestmark = proves("WEB-PAGES")


@proves("WEB-ACCESS")
def test_palette_finds_tasks_agents_and_pages_by_the_keyboard(
    browser: Browser, fleet: Fleet
) -> None:
    with visit(browser, fleet) as visited:
        page = visited.page
        page.keyboard.press("Control+k")
        palette = page.get_by_role("dialog", name="Search and commands")
        field = palette.get_by_role("combobox")
        expect(field).to_be_focused()
        field.press_sequentially("redirect loop")
        expect(palette.get_by_role("option")).to_have_text([re.compile("fix-login")])
        field.press("Enter")
        page.wait_for_url("**/tasks/fix-login")
        page.keyboard.press("/")
        field.fill("cyd")
        expect(palette.get_by_role("option", name="cyd agent")).to_be_visible()
        field.press("Enter")
        page.wait_for_url("**/agents/cyd")
        page.keyboard.press("/")
        field.fill("board")
        field.press("ArrowDown")
        field.press("ArrowUp")
        field.press("Enter")
        page.wait_for_url("**/board")
        page.keyboard.press("/")
        field.fill("nothing has this name")
        expect(palette).to_contain_text("Nothing has this name.")
        page.keyboard.press("Escape")
        expect(palette).to_be_hidden()
        visited.check()


def test_view_is_saved_opened_and_forgotten(browser: Browser, fleet: Fleet) -> None:
    with visit(browser, fleet) as visited:
        page = visited.go("/board?agent=cyd")
        rail = page.get_by_role("navigation", name="Pages")
        rail.get_by_role("button", name="Save this view…").click()
        page.get_by_label("Name", exact=True).fill("Work of cyd")
        page.get_by_role("button", name="Save", exact=True).click()
        rail.get_by_role("link", name="Ledger").click()
        page.wait_for_url("**/ledger")
        page.reload()
        rail.get_by_role("link", name="Work of cyd").click()
        page.wait_for_url("**/board?agent=cyd")
        expect(page.get_by_label("Only of this agent")).to_have_value("cyd")
        rail.get_by_role("button", name="forget the view Work of cyd").click()
        expect(rail.get_by_role("link", name="Work of cyd")).to_have_count(0)
        # What somebody else has left in its place is no view.
        for nonsense in ("{", "7", '[null, {"name": "x", "path": "javascript:1"}]'):
            page.evaluate("text => localStorage.setItem('dragoman-views', text)", nonsense)
            page.reload()
            expect(page.get_by_role("heading", name="Board")).to_be_visible()
            expect(rail.get_by_role("link", name="x", exact=True)).to_have_count(0)
        visited.check()


def test_rows_are_compact_where_the_reader_wants_it(browser: Browser, fleet: Fleet) -> None:
    with visit(browser, fleet) as visited:
        page = visited.go("/ledger")
        entries = page.get_by_role("list", name="Entries, the newest first")
        row = entries.get_by_role("listitem").first
        expect(row).to_be_visible()
        normal = row.bounding_box()
        page.get_by_role("button", name="Compact").click()
        page.reload()
        expect(page.get_by_role("button", name="Compact", pressed=True)).to_be_visible()
        expect(row).to_be_visible()
        compact = row.bounding_box()
        assert normal is not None
        assert compact is not None
        assert compact["height"] == 28 < normal["height"]
        page.get_by_role("button", name="Compact").click()
        assert page.evaluate("localStorage.length") == 0
        visited.check()


def test_tab_has_a_dot_while_somebody_waits(browser: Browser, empty_fleet: Fleet) -> None:
    fleet = empty_fleet
    fleet.create("asked", "It asks")
    fleet.claim("asked", "ada")
    with visit(browser, fleet) as visited:
        icon = visited.page.locator("link[rel=icon]")
        expect(icon).to_have_attribute("href", "/icon.svg")
        fleet.act("asked", "ask", "ada", text="Which one?")
        expect(icon).to_have_attribute("href", re.compile("^data:image/svg"))
        fleet.act("asked", "answer", text="This one.")
        expect(icon).to_have_attribute("href", "/icon.svg")
        visited.check()


RECORD_NOTICES = """
window.notices = [];
window.Notification = class {
  static permission = "granted";
  static requestPermission = async () => "granted";
  constructor(title, options) { window.notices.push(`${title}: ${options.body}`); }
};
Object.defineProperty(document, "visibilityState", {get: () => window.looks ?? "visible"});
"""
"""Notices are recorded instead of shown: a browser without a desktop has nowhere to show them."""


def test_browser_tells_what_begins_to_wait_while_nobody_looks(
    browser: Browser, empty_fleet: Fleet
) -> None:
    fleet = empty_fleet
    fleet.create("asked", "It asks")
    fleet.claim("asked", "ada")
    fleet.act("asked", "ask", "ada", text="The first?")
    with visit(browser, fleet) as visited:
        visited.context.add_init_script(RECORD_NOTICES)
        page = visited.go("/board")
        expect(page).to_have_title("(1) dragoman")
        page.keyboard.press("/")
        page.get_by_role("combobox", name="Search and commands").fill("notices")
        page.keyboard.press("Enter")
        page.evaluate("window.looks = 'hidden'")
        fleet.act("asked", "ask", "ada", text="The second?")
        page.wait_for_function("() => window.notices.length > 0")
        assert page.evaluate("window.notices") == ["Somebody waits for you: ada asks: The second?"]
        visited.check()


def test_card_tells_what_a_task_is_while_the_mouse_rests_on_it(
    browser: Browser, fleet: Fleet
) -> None:
    with visit(browser, fleet) as visited:
        page = visited.go("/handoffs")
        page.get_by_role("row").get_by_role("link", name="hand-search").hover()
        card = page.get_by_role("tooltip")
        expect(card).to_contain_text("Hand over the search")
        page.get_by_role("row").get_by_role("link", name="ada").first.hover()
        expect(card).to_contain_text("works on fix-login")
        page.get_by_role("heading", name="Handoffs").hover()
        expect(card).to_have_count(0)
        visited.check()


def test_entries_of_one_task_are_listed(browser: Browser, fleet: Fleet) -> None:
    with visit(browser, fleet) as visited:
        page = visited.go("/ledger?type=task&task=fix-login")
        entries = page.get_by_role("list", name="Entries, the newest first")
        expect(entries.get_by_role("listitem").last).to_contain_text("task.created")
        expect(entries).not_to_contain_text("quote-pdf")
        page.get_by_label("Only of this task").fill("quote-pdf")
        page.keyboard.press("Enter")
        page.wait_for_url("**/ledger?type=task&task=quote-pdf")
        expect(entries).to_contain_text("quote-pdf")
        visited.check()
