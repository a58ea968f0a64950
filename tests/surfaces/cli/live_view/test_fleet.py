"""Pages of the live view: what they show, how they grow, and how they are moved through."""

import pytest

from tests.requirements import proves
from tests.surfaces.cli.live_view.viewer import in_thread, run, viewing
from tests.surfaces.http.hub_server import HubServer

HOSTILE = "[red]x[/red]\x1b[31m\x1b]0;t\x07 \u202egnp.exe\u200b \x9b2J [link=http://evil/]y[/link]"


@proves("TOP-PAGES")
def test_first_page_has_what_needs_a_person_and_who_works(server: HubServer) -> None:
    async def scene() -> None:
        async with viewing(server) as view:
            await view.see("NEEDS YOU  7", "ada asks: Round up?", "dragoman task answer asked")
            await view.see("blocked: Which key?", "ada reports done: All is done.", "The held task")
            await view.see("bob is paused", "handoff from ada to bob", "nobody called nobody")
            await view.see("● 2 in progress", "▲ 1 given up", "● ada")

    run(scene)


@proves("TOP-PAGES")
def test_view_follows_the_ledger(server: HubServer) -> None:
    async def scene() -> None:
        async with viewing(server, size=(120, 40)) as view:
            await view.see("LAST EVENTS", "bob paused: a holiday")
            await in_thread(server.post, "/v1/tasks/free/block", {"blockers": ["A new question"]})
            await view.see("blocked: A new question", "ready → blocked (A new question)")

    run(scene)


@proves("TOP-PAGES")
def test_board_shows_tasks_by_status(server: HubServer) -> None:
    async def scene() -> None:
        for number in range(101):
            body = {"id": f"many-{number}", "title": "One of many", "ready": True}
            server.post("/v1/tasks", body)
        async with viewing(server) as view:
            await view.press("2")
            await view.see("BOARD", "● in progress", "The held task", "◆ review", "○ ready")
            await view.press("end")
            await view.see("… 4 more")
            await view.press("right", "right")
            await view.see("The reviewed task")
            await view.until(lambda: "The held task" not in view.text)
            await view.press("left", "left", "left")
            await view.until(lambda: "The reviewed task" not in view.text)

    run(scene)


@proves("TOP-PAGES")
def test_events_show_what_has_happened(server: HubServer) -> None:
    async def scene() -> None:
        async with viewing(server) as view:
            await view.press("3")
            await view.see("ada held claimed by ada", "bob paused: a holiday")

    run(scene)


@proves("TOP-PAGES")
def test_task_has_its_story_and_grows(server: HubServer) -> None:
    async def scene() -> None:
        async with viewing(server) as view:
            await view.press("slash")
            await view.enter("held")
            await view.see("The held task", "attempt 1 of 1", "claimed by ada", "lease 4m")
            note = {"text": "first line\nsecond line"}
            await in_thread(server.post, "/v1/tasks/held/note", note)
            await view.see("noted: first line", "second line")
            await view.press("escape")
            await view.see("NEEDS YOU")
            await view.press("tab", "enter")
            await view.see("Esc  Back")

    run(scene)


@proves("TOP-PAGES")
def test_unknown_task_is_told(server: HubServer) -> None:
    async def scene() -> None:
        async with viewing(server) as view:
            await view.press("slash")
            await view.enter("hel")
            await view.see("task_not_found", "NEEDS YOU")

    run(scene)


@proves("TOP-PAGES")
def test_keys_are_explained(server: HubServer) -> None:
    async def scene() -> None:
        async with viewing(server) as view:
            await view.press("question_mark")
            await view.see("go to a task")
            await view.press("escape")
            await view.until(lambda: "go to a task" not in view.text)
            await view.press("q")

    run(scene)


@proves("TOP-SAFE-TEXT")
@pytest.mark.parametrize("size", [(80, 24), (140, 50)])
def test_words_of_agents_are_shown_as_they_are(server: HubServer, size: tuple[int, int]) -> None:
    async def scene() -> None:
        server.post("/v1/tasks", {"id": "bad", "title": HOSTILE, "ready": True, "body": HOSTILE})
        server.post("/v1/tasks/bad/claim", {"agent": "ada"}, by="ada")
        server.post("/v1/tasks/bad/note", {"text": HOSTILE}, by="ada")
        server.post("/v1/tasks/bad/ask", {"text": HOSTILE}, by="ada")
        async with viewing(server, size=size) as view:
            shown = list[str]()
            await view.see("[red]x[/red]")
            shown.append(view.text)
            await view.press("2")
            await view.see("BOARD", "bad")
            shown.append(view.text)
            await view.press("3")
            await view.see("[red]x[/red]")
            shown.append(view.text)
            await view.press("slash")
            await view.enter("bad")
            await view.see("noted: [red]x[/red]")
            await view.press("r")
            await view.see("Your answer", "[red]x[/red]")
            shown.append(view.text)
            assert not set("".join(shown)) & set("\x1b\x07\x9b\u202e\u200b")

    run(scene)
