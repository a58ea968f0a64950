"""A page whose hub stops, comes back, or takes the session away."""

import re
import signal
from contextlib import closing
from datetime import datetime, timedelta
from functools import partial
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Route, expect

from tests.e2e.hub_process import run_hub
from tests.e2e.program import Program
from tests.requirements import proves
from tests.web.browser import visit
from tests.web.fleet import Fleet, add_agents, running_fleet

pytestmark = proves("WEB-CONNECTION")


def test_page_outlives_a_restart_of_its_hub(
    browser: Browser, tmp_path: Path, bytecode: Path
) -> None:
    with closing(Program(tmp_path / "hub", bytecode)) as program:
        tokens = add_agents(program)
        with run_hub(program) as hub:
            fleet = Fleet(program, hub, tokens)
            fleet.create("kept", "It is kept")
            port = hub.url.rpartition(":")[2]
            with visit(browser, fleet) as visited:
                page = visited.go("/board")
                card = page.get_by_role("button", name=re.compile("It is kept"))
                expect(card).to_be_visible()
                expect(page.get_by_text("live", exact=True)).to_be_visible()
                hub.stop(signal.SIGKILL)
                expect(page.get_by_text(re.compile("reconnecting, shown as of"))).to_be_visible()
                expect(card).to_be_visible()
                with run_hub(program, "--port", port) as again:
                    fleet = Fleet(program, again, tokens)
                    expect(page.get_by_text("live", exact=True)).to_be_visible(timeout=20_000)
                    fleet.create("new", "It came after the restart")
                    late = page.get_by_role("button", name=re.compile("It came after"))
                    expect(late).to_be_visible()
                visited.check()


def test_page_says_when_its_session_has_ended(browser: Browser, empty_fleet: Fleet) -> None:
    fleet = empty_fleet
    with visit(browser, fleet, by="ben") as visited:
        page = visited.go("/board")
        expect(page.get_by_role("heading", name="Board")).to_be_visible()
        fleet.program.run("agent", "revoke", "ben")
        expect(page.get_by_role("heading", name="Your session has ended")).to_be_visible(
            timeout=20_000
        )
        page.get_by_label("Or sign in with your token").fill(fleet.tokens["ada"])
        page.get_by_role("button", name="Sign in").click()
        expect(page.get_by_role("heading", name="Board")).to_be_visible()
        visited.check()


def test_all_tabs_say_that_somebody_has_signed_out_in_one(
    browser: Browser, empty_fleet: Fleet
) -> None:
    with visit(browser, empty_fleet) as visited:
        reader = visited.go("/board")
        expect(reader.get_by_text("live", exact=True)).to_be_visible()
        other = visited.context.new_page()
        other.goto(f"{empty_fleet.url}/board")
        other.get_by_role("button", name="Sign out").click()
        for page in (other, reader):
            expect(page.get_by_role("heading", name="Your session has ended")).to_be_visible()
            expect(page.get_by_label("Or sign in with your token")).to_be_visible()
        visited.check()


def test_press_without_a_cookie_says_that_the_session_has_ended(
    browser: Browser, empty_fleet: Fleet
) -> None:
    empty_fleet.create("pressed", "It is pressed")
    with visit(browser, empty_fleet) as visited:
        page = visited.go("/board?task=pressed")
        noted = page.get_by_role("button", name="Move…")
        expect(noted).to_be_visible()
        visited.context.clear_cookies()
        noted.click()
        page.get_by_role("dialog").get_by_role("button", name="Move").click()
        expect(page.get_by_role("heading", name="Your session has ended")).to_be_visible()
        page.get_by_label("Or sign in with your token").fill(empty_fleet.tokens["owner"])
        page.get_by_role("button", name="Sign in").click()
        expect(page.get_by_role("complementary", name="Task")).to_contain_text("It is pressed")
        visited.check()


def test_updates_are_paused_and_go_on(browser: Browser, empty_fleet: Fleet) -> None:
    fleet = empty_fleet
    fleet.create("before", "It was there before")
    with visit(browser, fleet) as visited:
        page = visited.go("/board")
        expect(page.get_by_role("button", name=re.compile("It was there"))).to_be_visible()
        expect(page.get_by_text("live", exact=True)).to_be_visible()
        page.keyboard.press(".")
        fleet.create("meanwhile", "It came meanwhile")
        expect(page.get_by_text("paused, 1 new")).to_be_visible()
        card = page.get_by_role("button", name=re.compile("It came meanwhile"))
        expect(card).to_have_count(0)
        page.keyboard.press(".")
        expect(card).to_be_visible()
        visited.check()


def test_tabs_share_one_stream(browser: Browser, empty_fleet: Fleet) -> None:
    fleet = empty_fleet
    with visit(browser, fleet) as visited:
        first = visited.go("/board")
        expect(first.get_by_text("live", exact=True)).to_be_visible()
        others = [visited.context.new_page() for _ in range(7)]
        for page in others:
            page.goto(f"{fleet.url}/board")
            expect(page.get_by_text("live", exact=True)).to_be_visible()
        first.close()
        fleet.create("shared", "All tabs see it")
        for page in others:
            page.bring_to_front()
            expect(page.get_by_role("button", name=re.compile("All tabs"))).to_be_visible()


@pytest.mark.parametrize("hours", [-30, 3])
def test_clock_that_disagrees_with_that_of_the_hub_changes_no_age(
    browser: Browser, empty_fleet: Fleet, hours: int
) -> None:
    fleet = empty_fleet
    fleet.create("timed", "Its lease runs")
    fleet.claim("timed", "ada")
    fleet.act("timed", "ask", "ada", text="How late is it?")
    hub_now = datetime.fromisoformat(fleet.call("/v1/status")["at"])
    with visit(browser, fleet, by=None) as visited:
        visited.page.clock.set_fixed_time(hub_now + timedelta(hours=hours))
        page = visited.go(fleet.sign_in_path())
        item = page.get_by_role("listitem").filter(has_text="How late is it?")
        expect(item.locator("time")).to_have_text(re.compile(r"^(now|\d+ s|1 min)$"))
        visited.check()


def answer_with_events(body: str, route: Route) -> None:
    """Answer a request for the stream with these events, and end it."""
    route.fulfill(content_type="text/event-stream", body=body)


def test_gap_reads_everything_anew(browser: Browser, tmp_path: Path, bytecode: Path) -> None:
    with (
        closing(Program(tmp_path / "hub", bytecode)) as program,
        running_fleet(program) as fleet,
        visit(browser, fleet) as visited,
    ):
        fleet.create("missed", "Its entry never came")
        body = 'id: 99\nevent: gap\ndata: {"after": 3, "until": 99}\n\n'
        # The stream of a hub that has skipped ahead, and no entry of the task in it.
        visited.page.route("**/v1/stream*", partial(answer_with_events, body))
        page = visited.go("/board")
        expect(page.get_by_role("button", name=re.compile("Its entry never came"))).to_be_visible()
