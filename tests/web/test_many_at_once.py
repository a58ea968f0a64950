"""Numbers of the fleet, and what a person does with many tasks at once."""

import re

from playwright.sync_api import Browser, Page, expect

from tests.requirements import proves
from tests.web.browser import visit
from tests.web.fleet import OBSERVER, Fleet

pytestmark = proves("WEB-PAGES")


def finish(fleet: Fleet, task: str, **details: float) -> None:
    """Have ada finish a task, which then waits for a review."""
    fleet.create(task, f"Task {task}")
    fleet.claim(task, "ada")
    fleet.act(task, "complete", "ada", notes="Ready.", details=details)


def figure(page: Page, name: str) -> str:
    """Return the figure of this name."""
    figures = page.locator("dl div").filter(has=page.locator("dt").get_by_text(name, exact=True))
    return figures.locator("dd").inner_text()


@proves("SEE-NUMBERS")
def test_numbers_follow_the_ledger(browser: Browser, empty_fleet: Fleet) -> None:
    fleet = empty_fleet
    finish(fleet, "one", tokens=1200, cost=0.25)
    with visit(browser, fleet) as visited:
        page = visited.go("/board")
        strip = page.get_by_role("region", name="The last 24 hours")
        expect(strip).to_contain_text("tasks finished0")
        expect(strip).to_contain_text("waits for a person1")
        fleet.act("one", "approve")
        expect(strip).to_contain_text("task finished1")
        expect(strip).to_contain_text("wait for a person0")
        assert (figure(page, "tokens"), figure(page, "cost")) == ("1,200", "0.25")
        visited.go("/agents")
        weeks = page.get_by_role("region", name="The last two weeks")
        expect(weeks.get_by_role("table", name="The last 14 days")).to_contain_text("1")
        weeks.get_by_role("button", name="Cost").click()
        expect(weeks.get_by_role("figure").first).to_contain_text("at most 0.25")
        expect(page.get_by_role("row").filter(has_text="ada")).to_contain_text("100 % of 1")
        visited.check()


def test_all_reviews_of_an_agent_are_approved_at_once(browser: Browser, empty_fleet: Fleet) -> None:
    fleet = empty_fleet
    for number in range(3):
        finish(fleet, f"same-{number}")
    with visit(browser, fleet) as visited:
        page = visited.page
        page.get_by_role("button", name="Approve all 3 of ada…").click()
        dialog = page.get_by_role("dialog", name="Approve all 3 of ada")
        expect(dialog).to_contain_text("same-1")
        # Somebody else was faster with one of them.
        fleet.act("same-1", "move", to="cancelled")
        dialog.get_by_role("button", name="Approve all").click()
        expect(dialog.get_by_role("alert")).to_contain_text("2 done, 1 refused")
        expect(dialog.get_by_role("alert")).to_contain_text("cancelled")
        dialog.get_by_role("button", name="Cancel").click()
        expect(page.get_by_text("Nobody waits for you")).to_be_visible()
        visited.check()
    statuses = [fleet.call(f"/v1/tasks/same-{number}")["status"] for number in range(3)]
    assert statuses == ["done", "cancelled", "done"]


def test_action_on_all_that_match_counts_whom_it_skips(
    browser: Browser, empty_fleet: Fleet
) -> None:
    fleet = empty_fleet
    for number in range(4):
        fleet.create(f"rename-{number}", f"Rename table {number}")
    fleet.claim("rename-0", "ada")
    fleet.create("other", "Something else")
    with visit(browser, fleet) as visited:
        page = visited.go("/board")
        page.get_by_label("Only with these words").fill("rename table")
        ready = page.get_by_role("region", name="Ready")
        expect(ready).not_to_contain_text("Something else")
        page.wait_for_url("**/board?words=rename+table")
        page.reload()
        expect(page.get_by_label("Only with these words")).to_have_value("rename table")
        page.get_by_role("button", name="Act on all…").click()
        dialog = page.get_by_role("dialog", name="Act on all with “rename table”")
        dialog.get_by_label("Action").select_option("Assign")
        expect(dialog.get_by_role("status").first).to_have_text(
            re.compile("4 match: 3 eligible, 1 skipped")
        )
        dialog.get_by_label("To", exact=True).fill("ben")
        dialog.get_by_role("button", name="Assign: 3").click()
        expect(dialog).to_be_hidden()
        expect(ready).to_contain_text("ben")
        visited.check()
    owners = [fleet.call(f"/v1/tasks/rename-{number}")["assignee"] for number in range(4)]
    assert owners == ["ada", "ben", "ben", "ben"]
    assert fleet.call("/v1/tasks/other")["assignee"] is None


@proves("HTTP-TOKENS")
def test_token_is_created_shown_once_and_revoked(browser: Browser, empty_fleet: Fleet) -> None:
    fleet = empty_fleet
    with visit(browser, fleet) as visited:
        page = visited.go("/agents/ben")
        tokens = page.get_by_role("region", name="Tokens")
        before = tokens.get_by_role("row")
        expect(before).to_have_count(2)
        tokens.get_by_role("button", name="New token…").click()
        page.get_by_role("button", name="Create").click()
        shown = tokens.get_by_role("status")
        panel = page.get_by_role("complementary", name="Agent")
        page.set_viewport_size({"width": 1280, "height": 800})
        assert panel.evaluate("panel => panel.scrollWidth <= panel.clientWidth"), "cut off"
        copy = shown.get_by_role("button", name="copy").bounding_box()
        frame = panel.bounding_box()
        assert copy
        assert frame
        assert copy["x"] + copy["width"] <= frame["x"] + frame["width"]
        fleet.tokens["new"] = shown.locator("code").inner_text()
        assert fleet.call("/v1/session", by="new")["name"] == "ben"
        shown.get_by_role("button", name="I have it").click()
        expect(tokens).not_to_contain_text(fleet.tokens["new"])
        issued = fleet.call("/v1/agents/ben/tokens")["tokens"][-1]["id"]
        tokens.get_by_role("row").filter(has_text=issued).get_by_role("button").click()
        expect(tokens.get_by_role("row").filter(has_text=issued)).to_contain_text("revoked")
        visited.check()
    with visit(browser, fleet, by=OBSERVER) as visited:
        page = visited.go("/agents/ben")
        expect(page.get_by_role("complementary", name="Agent")).to_contain_text("ben")
        expect(page.get_by_role("region", name="Tokens")).to_have_count(0)


def test_score_is_shown_with_its_parts(browser: Browser, empty_fleet: Fleet) -> None:
    fleet = empty_fleet
    described = {"agent_id": "ada", "skills": ["python tests"], "constraints": []}
    fleet.call("/v1/ccos/ccos.register", described)
    with visit(browser, fleet) as visited:
        page = visited.go("/agents/ada")
        score = page.get_by_role("region", name="Score")
        score.get_by_label("Goal").fill("fix the python tests")
        score.get_by_role("button", name="Rank").click()
        expect(score).to_contain_text("place 1 of 1")
        expect(score.get_by_role("row").filter(has_text="skill")).to_be_visible()
        visited.go("/agents/ben")
        score.get_by_label("Goal").fill("fix the python tests")
        score.get_by_role("button", name="Rank").click()
        expect(score).to_contain_text("It is no candidate")
        visited.check()


def test_attempts_of_an_agent_are_listed(browser: Browser, fleet: Fleet) -> None:
    with visit(browser, fleet) as visited:
        page = visited.go("/agents/ben")
        attempts = page.get_by_role("region", name="Attempts").get_by_role("row")
        expect(attempts.filter(has_text="flaky-upload")).to_contain_text("attempt 1")
        expect(attempts.filter(has_text="fix-login")).to_have_count(0)
        visited.check()


def test_handoffs_are_drawn_from_owner_to_owner(browser: Browser, fleet: Fleet) -> None:
    (handoff,) = fleet.call("/v1/handoffs?task=hand-search")["handoffs"]
    with visit(browser, fleet) as visited:
        page = visited.go("/handoffs")
        graph = page.get_by_role("region", name="Who handed what to whom")
        chain = graph.get_by_role("listitem").filter(has_text="hand-search")
        expect(chain).to_contain_text(re.compile("ada.*Proposed.*in 4 min.*ben"))
        chain.get_by_role("link", name=re.compile("Proposed")).click()
        page.wait_for_url(f"**/handoffs/{handoff['handoff_id']}")
        expect(page.get_by_role("complementary", name="Handoff")).to_contain_text("hand-search")
        visited.check()
