"""Actions of the live view: each key does what it says, and a refusal is told in words."""

from typing import Any

import pytest

from tests.requirements import proves
from tests.surfaces.cli.live_view.viewer import View, in_thread, run, viewing
from tests.surfaces.http.hub_server import HubServer


async def select(view: View, text: str) -> None:
    """Move the cursor down until the selected need has this text."""
    for _ in range(12):
        if text in view.app.query_one("#detail").render().__str__():
            return
        await view.press("down")
    raise AssertionError(f"{text} is not listed: {view.text}")


async def task_of(server: HubServer, name: str) -> Any:
    """A task as the hub has it."""
    return await in_thread(server.get, f"/v1/tasks/{name}")


@proves("TOP-ACTIONS")
@pytest.mark.parametrize(
    ("selected", "key", "text", "task", "status"),
    [
        pytest.param("Which key?", "r", "The old one", "blocked", "ready", id="answer"),
        pytest.param("All is done.", "a", "", "reviewed", "done", id="approve"),
        pytest.param("All is done.", "s", "Not yet", "reviewed", "ready", id="send back"),
        pytest.param("given up", "t", "", "failed", "ready", id="try again"),
    ],
)
def test_need_is_dealt_with(
    server: HubServer, selected: str, key: str, text: str, task: str, status: str
) -> None:
    async def scene() -> None:
        async with viewing(server) as view:
            await view.see("NEEDS YOU  7")
            await select(view, selected)
            await view.press(key)
            await view.see("Enter: yes")
            await (view.enter(text) if text else view.press("enter"))
            await view.see("NEEDS YOU  6")
        assert (await task_of(server, task))["status"] == status

    run(scene)


@proves("TOP-ACTIONS")
def test_question_beside_the_work_is_answered(server: HubServer) -> None:
    async def scene() -> None:
        async with viewing(server) as view:
            await select(view, "Round up?")
            await view.press("r")
            await view.enter("Yes, up")
            await view.see("NEEDS YOU  6")
        assert (await task_of(server, "asked"))["answers"][0]["answer"] == "Yes, up"

    run(scene)


@proves("TOP-ACTIONS")
@pytest.mark.parametrize(("key", "approved"), [("a", True), ("d", False)])
def test_gate_is_decided_for_the_hash_that_is_shown(
    server: HubServer, key: str, approved: bool
) -> None:
    async def scene() -> None:
        (handoff,) = server.get("/v1/handoffs")["handoffs"]
        async with viewing(server) as view:
            await select(view, "handoff from ada to bob")
            await view.press(key)
            await view.see(handoff["package_hash"])
            await view.enter("seen")
            await view.until(lambda: "NEEDS YOU  6" in view.text)
        decided = await in_thread(server.get, f"/v1/handoffs/{handoff['handoff_id']}")
        approval = decided["approval"]
        assert (approval["approved"], approval["note"]) == (approved, "seen")

    run(scene)


@proves("TOP-ACTIONS")
def test_agents_and_their_tasks_are_steered(server: HubServer) -> None:
    async def scene() -> None:
        async with viewing(server) as view:
            await select(view, "bob is paused")
            await view.press("u", "enter")
            await view.see("NEEDS YOU  6")
            await select(view, "nobody called nobody")
            await view.press("g")
            await view.enter("bob")
            await view.see("NEEDS YOU  5")
            await view.press("tab")
            await view.see("Take back")
            await view.press("b", "enter")
            await view.see("● 1 in progress")
            await view.press("2", "slash")
            await view.enter("free")
            await view.see("Esc  Back", "Move")
            await view.press("m")
            await view.enter("cancelled")
            await view.see("× cancelled for", "Reopen")
        lost = await task_of(server, "lost")
        assert (lost["status"], lost["reservedFor"]) == ("ready", "bob")
        assert not (await in_thread(server.get, "/v1/agents/bob"))["paused"]

    run(scene)


@proves("TOP-ACTIONS")
def test_call_for_help_is_answered_by_letter(server: HubServer) -> None:
    async def scene() -> None:
        letter = {"to": ["owner"], "subject": "HELP_REQUEST", "body_md": "## Question\nHow?\n"}
        server.post("/v1/agentmail/mail.send", letter, by="bob")
        async with viewing(server) as view:
            await view.see("NEEDS YOU  8")
            await select(view, "bob asks")
            await view.press("r")
            await view.enter("Like this")
            await view.see("NEEDS YOU  7")
        box = await in_thread(server.post, "/v1/agentmail/mail.inbox", {"agent": "bob"})
        assert box["messages"][-1]["body_md"] == "Like this"

    run(scene)


@proves("TOP-ACTIONS")
def test_refusal_is_told_and_changes_nothing(server: HubServer) -> None:
    async def scene() -> None:
        async with viewing(server, "ada") as view:
            await select(view, "All is done.")
            await view.press("a", "enter")
            await view.see("not_authorized: ", "Esc: close")
        assert (await task_of(server, "reviewed"))["status"] == "review"

    run(scene)


@proves("TOP-ACTIONS")
def test_dialog_can_be_left(server: HubServer) -> None:
    async def scene() -> None:
        async with viewing(server) as view:
            await select(view, "All is done.")
            await view.press("a")
            await view.see("Enter: yes")
            await view.press("escape")
            await view.until(lambda: "Enter: yes" not in view.text)
            await view.press("s")
            await view.see("What is wrong")
            await view.press("enter", "escape")
            await view.until(lambda: "What is wrong" not in view.text)
        assert (await task_of(server, "reviewed"))["status"] == "review"

    run(scene)


@proves("TOP-ACTIONS")
def test_observer_is_offered_nothing(server: HubServer) -> None:
    async def scene() -> None:
        async with viewing(server, "olga") as view:
            await select(view, "All is done.")
            assert "Approve" not in view.text
            await view.press("a")
            await view.press("enter")
            await view.see("Esc  Back")
            assert "Note" not in view.text

    run(scene)
