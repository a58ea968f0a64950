"""Every action that a person has on the page of a task: its button does what it says."""

import re
from collections.abc import Callable

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.requirements import proves
from tests.web.browser import visit
from tests.web.fleet import Fleet

pytestmark = proves("WEB-PAGES")


def press(page: Page, name: str) -> None:
    """Press an action of the task."""
    actions = page.get_by_role("group", name="Actions")
    actions.get_by_role("button", name=name, exact=True).click()


def fill_dialog(page: Page, confirm: str, **fields: str) -> None:
    """Fill the fields of the open dialog, and confirm it."""
    dialog = page.get_by_role("dialog")
    for label, text in fields.items():
        field = dialog.get_by_label(label, exact=True)
        if field.evaluate("one => one.tagName") == "SELECT":
            field.select_option(text)
        else:
            field.fill(text)
    dialog.get_by_role("button", name=confirm, exact=True).click()
    expect(dialog).to_be_hidden()


def claimed(fleet: Fleet, task: str) -> None:
    fleet.claim(task, "ada")


def blocked(fleet: Fleet, task: str) -> None:
    fleet.claim(task, "ada")
    fleet.act(task, "block", "ada", blockers=["Which one?"])


def given_up(fleet: Fleet, task: str) -> None:
    fleet.act(task, "move", to="deadletter")


def over(fleet: Fleet, task: str) -> None:
    fleet.act(task, "move", to="cancelled")


def waiting(_fleet: Fleet, _task: str) -> None:
    """Leave the task ready."""


def backlog(fleet: Fleet, task: str) -> None:
    fleet.act(task, "move", to="backlog")


Setup = Callable[[Fleet, str], None]

ACTIONS: dict[str, tuple[Setup, str, tuple[str, dict[str, str]] | None, dict[str, object]]] = {
    "make-ready": (backlog, "Make ready", None, {"status": "ready"}),
    "take-back": (claimed, "Take back", None, {"status": "ready"}),
    "unblock": (blocked, "Unblock", None, {"status": "ready"}),
    "try-again": (given_up, "Try again", None, {"status": "ready"}),
    "reopen": (over, "Reopen", None, {"status": "ready"}),
    "assign": (waiting, "Assign…", ("Assign", {"To": "ben"}), {"reservedFor": "ben"}),
    "take-away": (claimed, "Assign…", ("Assign", {"To": "ben"}), {"assignee": "ben"}),
    "move": (waiting, "Move…", ("Move", {"To": "blocked"}), {"status": "blocked"}),
    "edit": (
        waiting,
        "Edit…",
        ("Save", {"Title": "Another title", "Priority": "high"}),
        {"title": "Another title", "priority": "high"},
    ),
    "note": (waiting, "Note…", ("Add", {"A line for the work log": "Look here."}), {"notes": 1}),
}


@pytest.mark.parametrize("action", ACTIONS)
def test_action_does_what_its_button_says(browser: Browser, fleet: Fleet, action: str) -> None:
    prepare, button, dialog, expected = ACTIONS[action]
    task = fleet.create(f"act-{action}", f"Task for {action}")
    prepare(fleet, task)
    with visit(browser, fleet) as visited:
        page = visited.go(f"/tasks/{task}")
        with page.expect_response(lambda answer: answer.request.method != "GET"):
            press(page, button)
            if dialog is not None:
                fill_dialog(page, dialog[0], **dialog[1])
        story = page.get_by_role("list", name="Story")
        expect(story.get_by_role("link", name="owner").last).to_be_visible()
        expect(page.get_by_role("alert")).to_have_count(0)
        shown = fleet.call(f"/v1/tasks/{task}")
        assert {name: shown[name] for name in expected} == expected
        visited.check()


def test_agent_is_paused_with_a_reason(browser: Browser, empty_fleet: Fleet) -> None:
    fleet = empty_fleet
    with visit(browser, fleet) as visited:
        page = visited.go("/agents/ada")
        press(page, "Pause…")
        fill_dialog(page, "Pause", Reason="It is late.")
        expect(page.get_by_role("complementary", name="Agent")).to_contain_text("It is late.")
        assert fleet.call("/v1/agents/ada")["paused"]["reason"] == "It is late."
        visited.check()


def test_package_is_denied_and_its_handoff_closed(browser: Browser, fleet: Fleet) -> None:
    (handoff,) = fleet.call("/v1/handoffs?task=hand-invoices")["handoffs"]
    with visit(browser, fleet) as visited:
        page = visited.go(f"/handoffs/{handoff['handoff_id']}")
        panel = page.get_by_role("complementary", name="Handoff")
        press(page, "Deny…")
        fill_dialog(page, "Deny", Note="The totals are missing.")
        expect(panel).to_contain_text("Denied by owner")
        expect(panel).to_contain_text("The totals are missing.")
        press(page, "Close…")
        fill_dialog(page, "Close", Note="It comes again.")
        expect(panel.get_by_role("list").last).to_contain_text("Closed")
        visited.check()


def test_letter_is_acknowledged(browser: Browser, empty_fleet: Fleet) -> None:
    fleet = empty_fleet
    letter = {"to": ["owner"], "subject": "A rule", "body_md": "Round up.", "ack_required": True}
    fleet.call("/v1/agentmail/mail.send", {**letter, "thread_id": "rule"}, "ada")
    with visit(browser, fleet) as visited:
        page = visited.go("/inbox")
        page.get_by_role("button", name="A rule").click()
        delivery = page.get_by_role("list", name="Delivery")
        expect(delivery).to_have_text(re.compile("owner: read, is to acknowledge it"))
        page.get_by_role("button", name="Acknowledge").click()
        expect(delivery).to_have_text(re.compile("owner: acknowledged"))
        visited.check()
