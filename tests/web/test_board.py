"""The start page and the board in a browser: live data, actions, refusals."""

import re

from playwright.sync_api import Browser, expect

from tests.e2e.program import Program
from tests.requirements import proves
from tests.web.browser import visit
from tests.web.fleet import OBSERVER, Fleet

pytestmark = proves("WEB-PAGES")


@proves("HTTP-SESSION")
def test_one_time_link_signs_in_and_leaves_the_address(browser: Browser, fleet: Fleet) -> None:
    path = fleet.sign_in_path()
    with visit(browser, fleet, by=None) as visited:
        page = visited.go(path)
        expect(page.get_by_role("heading", name="Needs you")).to_be_visible()
        assert page.url == f"{fleet.url}/"
        assert page.evaluate("localStorage.length + sessionStorage.length") == 0
        (cookie,) = visited.context.cookies()
        assert (cookie.get("httpOnly"), cookie.get("sameSite")) == (True, "Strict")
        visited.check()
    with visit(browser, fleet, by=None) as visited:
        page = visited.go(path)
        expect(page.get_by_role("alert")).to_contain_text("this link has been used")


@proves("HTTP-SESSION")
def test_command_prints_a_link_that_signs_in(browser: Browser, fleet: Fleet) -> None:
    link = fleet.program.ask("open", "--print")
    assert link["url"].startswith(f"{fleet.url}/sign-in#")
    assert link["opened"] is False
    with visit(browser, fleet, by=None) as visited:
        page = visited.go(link["url"].removeprefix(fleet.url))
        expect(page.get_by_role("heading", name="Needs you")).to_be_visible()


@proves("HTTP-SESSION")
def test_command_says_where_no_hub_runs(program: Program) -> None:
    program.prepare("init")
    refused = program.run("open", "--print")
    assert refused.code == 2
    assert "no hub runs for" in refused.err


@proves("HTTP-SESSION")
def test_others_sign_in_by_their_token(browser: Browser, fleet: Fleet) -> None:
    with visit(browser, fleet, by=None) as visited:
        page = visited.go("/board")
        page.get_by_label("Or sign in with your token").fill(fleet.tokens[OBSERVER])
        page.get_by_role("button", name="Sign in").click()
        expect(page.get_by_role("heading", name="Board")).to_be_visible()
        expect(page.get_by_text(OBSERVER, exact=True)).to_be_visible()
        page.get_by_role("button", name="Sign out").click()
        expect(page.get_by_role("heading", name=re.compile("Sign in|ended"))).to_be_visible()
        visited.check()


def test_what_needs_a_person_is_listed_and_dealt_with_there(
    browser: Browser, empty_fleet: Fleet
) -> None:
    fleet = empty_fleet
    with visit(browser, fleet) as visited:
        page = visited.page
        expect(page.get_by_text("Nobody waits for you. There are no tasks yet:")).to_be_visible()
        fleet.create("rounding", "Round the rates")
        fleet.claim("rounding", "ada")
        fleet.act("rounding", "ask", "ada", text="Half to even, or up?")
        question = page.get_by_role("listitem").filter(has_text="Half to even, or up?")
        expect(question).to_contain_text("Question")
        expect(page).to_have_title("(1) dragoman")
        question.get_by_label("Your answer").fill("Half to even.")
        question.get_by_role("button", name="Answer", exact=True).click()
        expect(page.get_by_text("Nobody waits for you. 1 agent is at work")).to_be_visible()
        expect(page).to_have_title("dragoman")
        (answered,) = fleet.call("/v1/tasks/rounding")["answers"]
        assert answered["answer"] == "Half to even."
        visited.check()


def test_call_for_help_of_who_does_not_hold_the_task_is_answered_by_a_letter(
    browser: Browser, empty_fleet: Fleet
) -> None:
    fleet = empty_fleet
    fleet.create("rates", "Round the rates")
    body = "Issue Type: STUCK\n\n## Question\nHalf to even, or up?\n"
    letter = {"to": ["owner"], "subject": "[rates] HELP_REQUEST", "body_md": body}
    fleet.call("/v1/agentmail/mail.send", letter, "ben")
    with visit(browser, fleet) as visited:
        page = visited.page
        asked = page.get_by_role("listitem").filter(has_text="Half to even, or up?")
        asked.get_by_label("Your reply").fill("Half to even.")
        asked.get_by_role("button", name="Reply").click()
        expect(asked).to_have_count(0)
        visited.check()
    letters = fleet.call("/v1/agentmail/mail.inbox", {"agent": "ben"}, "ben")["messages"]
    assert "Half to even." in [one["body_md"] for one in letters if one["from"] == "owner"]


def test_task_of_nobody_that_exists_is_assigned_where_it_is_listed(
    browser: Browser, empty_fleet: Fleet
) -> None:
    fleet = empty_fleet
    fleet.create("lost", "Nobody has it", assignee="nobdy")
    with visit(browser, fleet) as visited:
        page = visited.page
        row = page.get_by_role("listitem").filter(has_text="nobdy")
        row.get_by_role("button", name="Assign…").click()
        dialog = page.get_by_role("dialog")
        to = dialog.get_by_label("To", exact=True)
        expect(to).to_have_value("")
        to.fill("bne")
        expect(dialog).to_contain_text("No agent of this name is known")
        to.fill("ben")
        expect(dialog).not_to_contain_text("No agent of this name is known")
        dialog.get_by_role("button", name="Assign").click()
        expect(row).to_have_count(0)
        visited.check()
    assert fleet.call("/v1/tasks/lost")["assignee"] == "ben"


def test_board_follows_the_ledger(browser: Browser, empty_fleet: Fleet) -> None:
    fleet = empty_fleet
    with visit(browser, fleet) as visited:
        page = visited.go("/board")
        expect(page.get_by_text("There are no tasks yet.")).to_be_visible()
        fleet.create("moving", "It moves")
        card = page.get_by_role("button", name=re.compile("It moves"))
        expect(page.get_by_role("region", name="Ready").locator(card)).to_be_visible()
        fleet.claim("moving", "ada")
        claimed = page.get_by_role("region", name="In progress").locator(card)
        expect(claimed).to_contain_text("ada")
        expect(claimed).to_contain_text("lease 4 min")
        visited.check()


def test_refused_action_is_explained_where_it_was_pressed(
    browser: Browser, empty_fleet: Fleet
) -> None:
    fleet = empty_fleet
    fleet.create("gone", "It is claimed meanwhile")
    with visit(browser, fleet) as visited:
        page = visited.go("/board?task=gone")
        page.get_by_role("button", name="Move…").click()
        page.get_by_label("To", exact=True).select_option("backlog")
        fleet.act("gone", "move", to="cancelled")
        dialog = page.get_by_role("dialog")
        dialog.get_by_role("button", name="Move").click()
        expect(dialog.get_by_role("alert")).to_contain_text("cancelled")
        page.keyboard.press("Escape")
        expect(dialog).to_be_hidden()
        visited.check()


@proves("WEB-ACCESS")
def test_observer_sees_everything_and_has_no_buttons(browser: Browser, fleet: Fleet) -> None:
    with visit(browser, fleet, by=OBSERVER) as visited:
        page = visited.page
        expect(page.get_by_text("blocked: Which template")).to_be_visible()
        expect(page.get_by_role("button", name="Answer", exact=True)).to_have_count(0)
        expect(page.get_by_role("button", name="Approve")).to_have_count(0)
        visited.go("/board?task=fix-login")
        expect(page.get_by_text("As observer you may look, and not change tasks.")).to_be_visible()
        expect(page.get_by_role("button", name="Move…")).to_have_count(0)
        expect(page.get_by_role("button", name="Act on all…")).to_have_count(0)
        visited.check()


@proves("WEB-ACCESS")
def test_question_is_found_and_answered_by_the_keyboard_alone(
    browser: Browser, empty_fleet: Fleet
) -> None:
    fleet = empty_fleet
    fleet.create("asked", "It asks")
    fleet.claim("asked", "ada")
    fleet.act("asked", "ask", "ada", text="Half to even?")
    with visit(browser, fleet) as visited:
        page = visited.page
        expect(page.get_by_text("Half to even?")).to_be_visible()
        page.keyboard.press("g")
        page.keyboard.press("n")
        expect(page.get_by_role("main")).to_be_focused()
        page.keyboard.press("j")
        expect(page.get_by_role("listitem").filter(has_text="Half to even?")).to_be_focused()
        page.keyboard.press("Enter")
        page.wait_for_url("**/tasks/asked")
        answer = page.get_by_label("Your answer")
        expect(answer).to_be_visible()
        for _ in range(40):
            if answer.evaluate("field => field === document.activeElement"):
                break
            page.keyboard.press("Tab")
        page.keyboard.type("Yes.")
        page.keyboard.press("Tab")
        page.keyboard.press("Enter")
        expect(page.get_by_role("list", name="Story")).to_contain_text("Yes.")
        visited.check()
    (answered,) = fleet.call("/v1/tasks/asked")["answers"]
    assert answered["answer"] == "Yes."


@proves("WEB-ACCESS")
def test_board_is_used_by_the_keyboard(browser: Browser, fleet: Fleet) -> None:
    with visit(browser, fleet) as visited:
        page = visited.page
        page.keyboard.press("g")
        page.keyboard.press("b")
        expect(page.get_by_role("heading", name="Board")).to_be_visible()
        expect(page.get_by_role("button", name=re.compile("Dark mode"))).to_be_visible()
        page.keyboard.press("j")
        panel = page.get_by_role("complementary", name="Task")
        expect(panel.get_by_role("heading", name="Dark mode")).to_be_visible()
        page.keyboard.press("m")
        expect(page.get_by_role("dialog", name="Move the task")).to_be_visible()
        page.keyboard.press("Escape")
        page.keyboard.press("Escape")
        expect(panel).to_be_hidden()
        page.keyboard.press("?")
        expect(page.get_by_role("dialog", name="Keys")).to_be_visible()
        visited.check()


def test_board_is_grouped_by_agent_and_chosen_tasks_are_dealt_with_at_once(
    browser: Browser, empty_fleet: Fleet
) -> None:
    fleet = empty_fleet
    for number, agent in enumerate(("ben", "ada", "ben", "ada")):
        fleet.create(f"t-{number}", f"Piece {number}", assignee=agent)
    fleet.create("t-4", "Piece 4")
    with visit(browser, fleet) as visited:
        page = visited.go("/board")
        page.get_by_label("Group by").select_option("agent")
        page.wait_for_url("**/board?group=agent")
        page.reload()
        ready = page.get_by_role("region", name="Ready")
        expect(ready.get_by_role("heading", level=3)).to_have_text(["nobody yet", "ada", "ben"])
        cards = ready.get_by_role("button", name=re.compile("Piece"))
        texts = [re.compile("Piece 4"), *[re.compile("ada")] * 2, *[re.compile("ben")] * 2]
        expect(cards).to_have_text(texts)
        for key in ("j", "x", "j", "j", "x", "k", "x", "x"):
            page.keyboard.press(key)
        expect(cards.filter(has_text="chosen")).to_have_count(2)
        chosen = [cards.nth(at).locator("code").inner_text() for at in (0, 2)]
        page.get_by_role("button", name="Act on 2 chosen…").click()
        dialog = page.get_by_role("dialog", name="Act on 2 chosen")
        dialog.get_by_label("Action").select_option("Cancel")
        expect(dialog.get_by_role("status").first).to_contain_text("2 match: 2 eligible")
        dialog.get_by_role("button", name="Cancel: 2").click()
        expect(cards).to_have_count(3)
        cancelled = fleet.call("/v1/tasks?status=cancelled")["tasks"]
        assert sorted(one["id"] for one in cancelled) == sorted(chosen)
        expect(page.get_by_role("button", name="Act on all…")).to_be_visible()
        visited.check()
