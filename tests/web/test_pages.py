"""The pages beyond the board in a browser: each with live data, and what its buttons do."""

import re
from hashlib import sha256

from playwright.sync_api import Browser, expect

from tests.protocols.acp.hub import artifact, offer
from tests.requirements import proves
from tests.web.browser import visit
from tests.web.fleet import LONG_QUESTION, Fleet

pytestmark = proves("WEB-PAGES")


def test_task_tells_one_story_as_it_grows(browser: Browser, empty_fleet: Fleet) -> None:
    fleet = empty_fleet
    fleet.create("story", "It has a story", body="Begin with the beginning.")
    with visit(browser, fleet) as visited:
        page = visited.go("/tasks/story")
        story = page.get_by_role("list", name="Story")
        expect(story).to_contain_text("Begin with the beginning.")
        fleet.claim("story", "ada")
        expect(story).to_contain_text("claimed by ada")
        expect(page.get_by_role("list", name="The way of the task")).to_contain_text("In progress")
        letter = {"to": ["ben"], "subject": "[story] Columns", "body_md": "Which ones?"}
        fleet.call("/v1/agentmail/mail.send", {**letter, "thread_id": "story"}, "ada")
        fleet.act("story", "ask", "ada", text=LONG_QUESTION)
        expect(story).to_contain_text(LONG_QUESTION)
        page.get_by_label("Your answer").fill("Half to even.")
        page.get_by_role("button", name="Answer", exact=True).click()
        expect(story).to_contain_text("Half to even.")
        expect(page.get_by_role("figure")).to_be_visible()
        page.get_by_role("tab", name="Entries").click()
        expect(page.get_by_role("list", name="Entries of the ledger")).to_contain_text(
            "question.answered"
        )
        page.get_by_role("tab", name="Terminal").click()
        expect(page.get_by_text("No terminal of an attempt was recorded")).to_be_visible()
        visited.check()


def test_task_shows_its_artifacts_with_hashes_and_its_work_log(
    browser: Browser, empty_fleet: Fleet
) -> None:
    fleet = empty_fleet
    fleet.create("packed", "It is handed over", assignee="ada")
    fleet.act("packed", "note", text="The sums are in cents.")
    file = fleet.program.data / "teamspaces" / "default" / "artifacts" / "sums.csv"
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text("1;2\n")
    given = "ab" * 32
    named = [artifact("s", "sums.csv"), artifact("u", "<b>plan</b>", type="url", sha256=given)]
    offered = fleet.call("/v1/acp/acp_handoff", offer("ben", "packed", artifacts=named), "ada")
    handoff = {"handoff_id": offered["handoff_id"]}
    with visit(browser, fleet) as visited:
        page = visited.go("/tasks/packed?tab=artifacts")
        rows = page.get_by_role("group", name="Artifacts").get_by_role("row")
        expect(rows.filter(has_text="sums.csv")).to_contain_text("not verified")
        fleet.call("/v1/acp/acp_handoff", {"action": "accept", **handoff}, "ben")
        kept = rows.filter(has_text="sums.csv")
        expect(kept).to_contain_text(sha256(file.read_bytes()).hexdigest())
        expect(kept).to_contain_text("copy kept and verified")
        expect(rows.filter(has_text="<b>plan</b>")).to_contain_text(given)
        page.get_by_role("tab", name="Work log").click()
        log = page.get_by_role("list", name="Work log")
        expect(log).to_contain_text("The sums are in cents.")
        expect(log).not_to_contain_text("It is handed over")
        position = fleet.call("/v1/status")["position"]
        visited.go(f"/tasks/packed?tab=artifacts&at={position}")
        expect(page.get_by_text("This shows the present, not the past.")).to_be_visible()
        visited.check()


def test_task_that_does_not_exist_is_told(browser: Browser, fleet: Fleet) -> None:
    with visit(browser, fleet) as visited:
        page = visited.go("/tasks/nothing")
        expect(page.get_by_role("alert")).to_contain_text("task_not_found")
        visited.check()


def test_work_in_review_is_sent_back_and_approved(browser: Browser, empty_fleet: Fleet) -> None:
    fleet = empty_fleet
    fleet.create("reviewed", "It is reviewed")
    with visit(browser, fleet) as visited:
        page = visited.page
        for _ in range(2):
            fleet.claim("reviewed", "ada")
            fleet.act("reviewed", "complete", "ada", notes="Ready to look at.")
            visited.go("/tasks/reviewed")
            expect(page.get_by_text("Report of attempt")).to_be_visible()
            if fleet.call("/v1/tasks/reviewed")["attempt"] == 1:
                page.get_by_role("button", name="Send back…").click()
                page.get_by_label("What is wrong with it?").fill("A test is missing.")
                page.get_by_role("button", name="Send back", exact=True).click()
                expect(page.get_by_role("dialog")).to_be_hidden()
                assert fleet.call("/v1/tasks/reviewed")["status"] == "ready"
        page.get_by_role("button", name="Approve").click()
        expect(page.get_by_role("button", name="Reopen")).to_be_visible()
        assert fleet.call("/v1/tasks/reviewed")["status"] == "done"
        visited.check()


def test_approval_shows_the_hash_and_is_bound_to_it(browser: Browser, fleet: Fleet) -> None:
    handoffs = fleet.call("/v1/handoffs?task=hand-invoices")["handoffs"]
    (handoff,) = (one["handoff_id"] for one in handoffs)
    package_hash = fleet.call(f"/v1/handoffs/{handoff}")["package_hash"]
    with visit(browser, fleet) as visited:
        page = visited.page
        gate = page.get_by_role("listitem").filter(has_text="hand-invoices")
        gate.get_by_role("button", name="Approve…").click()
        dialog = page.get_by_role("dialog", name="Approve this package")
        expect(dialog).to_contain_text(package_hash)
        dialog.get_by_role("button", name="Approve").click()
        expect(gate).to_have_count(0)
        approval = fleet.call(f"/v1/handoffs/{handoff}")["approval"]
        assert (approval["approved"], approval["package_hash"]) == (True, package_hash)
        visited.go(f"/handoffs/{handoff}")
        panel = page.get_by_role("complementary", name="Handoff")
        expect(panel).to_contain_text("Approved by owner")
        due_by = fleet.call(f"/v1/handoffs/{handoff}")["due_by"]
        panel.get_by_role("button", name="Extend…").click()
        page.get_by_role("button", name="Extend", exact=True).click()
        expect(page.get_by_role("dialog")).to_be_hidden()
        assert fleet.call(f"/v1/handoffs/{handoff}")["due_by"] > due_by
        panel.get_by_role("button", name="Reassign…").click()
        page.get_by_label("To", exact=True).fill("cyd")
        page.get_by_role("button", name="Reassign", exact=True).click()
        expect(page.get_by_role("dialog")).to_be_hidden()
        expect(panel).to_contain_text("has taken its place")
        visited.check()


def test_paused_agent_is_resumed_where_it_is_shown(browser: Browser, fleet: Fleet) -> None:
    with visit(browser, fleet) as visited:
        page = visited.go("/agents")
        row = page.get_by_role("row").filter(has_text="cyd")
        expect(row).to_contain_text("paused")
        row.get_by_role("link", name="cyd").click()
        panel = page.get_by_role("complementary", name="Agent")
        expect(panel).to_contain_text("its budget of the day is used up")
        panel.get_by_role("button", name="Resume").click()
        expect(panel.get_by_role("button", name="Pause…")).to_be_visible()
        expect(row).not_to_contain_text("paused")
        visited.check()


def test_letters_are_read_and_answered(browser: Browser, fleet: Fleet) -> None:
    letter = {"to": ["owner"], "subject": "The bank", "body_md": "It has changed its format."}
    fleet.call("/v1/agentmail/mail.send", {**letter, "thread_id": "bank"}, "ada")
    with visit(browser, fleet) as visited:
        page = visited.go("/inbox")
        page.get_by_role("button", name="The bank").click()
        panel = page.get_by_role("complementary", name="Letter")
        expect(panel).to_contain_text("It has changed its format.")
        expect(panel).to_contain_text("owner: read")
        panel.get_by_label("Your reply").fill("Ask them for a sample.")
        panel.get_by_role("button", name="Send").click()
        expect(panel.get_by_role("region", name="from owner")).to_contain_text("Ask them")
        visited.check()
    box = fleet.call("/v1/agentmail/mail.inbox", {}, "ada")["messages"]
    assert "Re: The bank" in [one["subject"] for one in box]


def test_board_is_shown_as_it_was(browser: Browser, empty_fleet: Fleet) -> None:
    fleet = empty_fleet
    fleet.create("early", "It was there", body="As it was.")
    before = fleet.call("/v1/status")["position"]
    fleet.claim("early", "ada")
    fleet.create("later", "It came later")
    with visit(browser, fleet) as visited:
        page = visited.go("/board")
        page.get_by_role("button", name="The past").click()
        slider = page.get_by_role("slider", name="Position in the ledger")
        expect(page.get_by_role("button", name=re.compile("It came later"))).to_be_visible()
        slider.fill(str(before))
        expect(page.get_by_role("button", name=re.compile("It came later"))).to_have_count(0)
        ready = page.get_by_role("region", name="ready")
        ready.get_by_role("button", name=re.compile("It was there")).click()
        panel = page.get_by_role("complementary", name="Task")
        expect(panel).to_contain_text("This is the past")
        expect(panel).to_contain_text("As it was.")
        page.get_by_role("button", name="Back to live").click()
        expect(page.get_by_role("region", name="In progress")).to_contain_text("It was there")
        visited.check()


def test_ledger_is_shown_and_verified(browser: Browser, fleet: Fleet) -> None:
    with visit(browser, fleet) as visited:
        page = visited.go("/ledger?at=3")
        entries = page.get_by_role("list", name="Entries, the newest first")
        here = entries.get_by_role("listitem").filter(has_text=re.compile(r"^#3\D"))
        entry = fleet.call("/v1/events?after=2&limit=1")["events"][0]
        expect(here).to_contain_text(entry["hash"])
        page.get_by_role("button", name="Newest").click()
        fleet.act("old-idea", "note", text="written while somebody looks")
        expect(entries).to_contain_text("task.noted")
        page.get_by_role("button", name="Verify").click()
        expect(page.get_by_text(re.compile("every hash of .* is right"))).to_be_visible()
        visited.check()


def test_page_without_a_past_says_that_it_shows_the_present(browser: Browser, fleet: Fleet) -> None:
    with visit(browser, fleet) as visited:
        page = visited.go("/board?at=20")
        rail = page.get_by_role("navigation", name="Pages")
        said = page.get_by_text("This shows the present, not the past.")
        for name in ("Needs you", "Inbox", "Handoffs", "Agents"):
            rail.get_by_role("link", name=name).click()
            expect(page.get_by_role("heading", level=1, name=name)).to_be_visible()
            expect(said).to_be_visible()
        rail.get_by_role("link", name="Board").click()
        slider = page.get_by_role("slider", name="Position in the ledger")
        expect(slider).to_have_value("20")
        expect(said).to_have_count(0)
        rail.get_by_role("link", name="Agents").click()
        page.get_by_role("link", name="Back to live").click()
        expect(said).to_have_count(0)
        rail.get_by_role("link", name="Board").click()
        expect(slider).to_have_count(0)
        visited.check()


def test_new_entries_wait_above_while_somebody_reads_further_down(
    browser: Browser, fleet: Fleet
) -> None:
    with visit(browser, fleet) as visited:
        page = visited.go("/ledger")
        entries = page.get_by_role("list", name="Entries, the newest first")
        entries.get_by_text("#5", exact=True).scroll_into_view_if_needed()
        newest = entries.get_by_role("listitem").first
        before = newest.inner_text()
        fleet.act("old-idea", "note", text="written while somebody reads")
        new = page.get_by_role("button", name=re.compile(r"^\d+ new ↑$"))
        expect(new).to_be_visible()
        expect(newest).to_have_text(before, use_inner_text=True)
        new.click()
        expect(newest).to_contain_text("task.noted")
        expect(new).to_have_count(0)
        visited.check()


def test_ledger_lists_checkpoints_and_proves_an_entry_on_click(
    browser: Browser, fleet: Fleet
) -> None:
    with visit(browser, fleet) as visited:
        page = visited.go("/ledger?at=3")
        entries = page.get_by_role("list", name="Entries, the newest first")
        here = entries.get_by_role("listitem").filter(has_text=re.compile(r"^#3\D"))
        here.get_by_role("button", name="Proof").click()
        proof = fleet.call("/v1/ledger/proof?position=3")
        expect(here.get_by_role("status")).to_contain_text("verified as entry 3 of the")
        expect(here.get_by_role("status")).to_contain_text(proof["checkpoint"]["root"])
        path = here.get_by_role("list", name="Path to the root").get_by_role("listitem")
        expect(path).to_have_text(proof["path"])
        page.get_by_text("Signed checkpoints").click()
        signed = page.get_by_role("table", name="Checkpoints, the newest first")
        last, *_ = fleet.call("/v1/ledger/checkpoints")["checkpoints"]
        expect(signed).to_contain_text(last["signature"])
        visited.check()


def test_task_is_shown_as_it_was(browser: Browser, empty_fleet: Fleet) -> None:
    fleet = empty_fleet
    fleet.create("grown", "It has grown")
    before = fleet.call("/v1/status")["position"]
    fleet.claim("grown", "ada")
    claimed = fleet.call("/v1/status")["position"]
    fleet.act("grown", "note", "ada", text="Written later.")
    with visit(browser, fleet) as visited:
        page = visited.go("/tasks/grown")
        story = page.get_by_role("list", name="Story")
        expect(story).to_contain_text("Written later.")
        page.get_by_role("button", name="The past").click()
        slider = page.get_by_role("slider", name="Position in the ledger")
        expect(page.get_by_role("button", name="Note…")).to_have_count(0)
        slider.fill(str(claimed + 1))
        slider.press("ArrowLeft")
        expect(story).not_to_contain_text("Written later.")
        expect(story).to_contain_text("claimed by ada")
        slider.fill(str(before))
        way = page.get_by_role("list", name="The way of the task")
        expect(way.locator("[aria-current]")).to_have_text(re.compile("Ready"))
        page.get_by_role("link", name="Board").last.click()
        expect(page.get_by_role("slider", name="Position in the ledger")).to_have_value(str(before))
        # An hour has passed for nobody: a minute before the first entry is the beginning.
        page.get_by_role("slider").press("Shift+ArrowLeft")
        expect(page.get_by_role("status").filter(has_text="as of")).to_contain_text("entry 0 of")
        visited.check()
