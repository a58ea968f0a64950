"""Exports over HTTP: the report of a day, and stories, as pages in which nothing acts."""

import pytest

from dragoman.core.task_state import NoteTask
from tests.requirements import proves
from tests.surfaces.http.hub_server import HERA, HubServer

pytestmark = proves("SEE-EXPORT")

HOSTILE = "<script>alert(1)</script><img src=x onerror=alert(1)>\x1b[2J\u202eend"


def add_work(server: HubServer) -> None:
    """Let ada finish a task, with hostile words everywhere."""
    server.post("/v1/tasks", {"id": "one", "title": HOSTILE, "ready": True})
    server.post("/v1/tasks/one/claim", {"agent": "ada"}, by="ada")
    report = {"notes": HOSTILE, "details": {"tokens": 1_200, "cost": 0.3}}
    server.post("/v1/tasks/one/complete", report, by="ada")
    server.post("/v1/tasks/one/approve", {})


def test_day_is_reported_as_json(server: HubServer) -> None:
    add_work(server)
    today = server.get("/v1/report")
    assert (today["day"], today["counts"]) == ("2026-02-09", {"finished": 1})
    (item,) = today["items"]
    assert (item["kind"], item["about"], item["agent"]) == ("finished", "one", "ada")
    assert item["text"] == HOSTILE
    assert today["numbers"]["total"]["tokens"] == 1_200
    assert server.get("/v1/report?day=2026-02-09") == today
    assert server.get("/v1/report?day=2026-02-08")["items"] == []


def test_only_amounts_that_agents_report_have_a_column(server: HubServer) -> None:
    server.post("/v1/tasks", {"id": "one", "title": "One", "ready": True})
    server.post("/v1/tasks/one/claim", {"agent": "ada"}, by="ada")
    server.post("/v1/tasks/one/complete", {"details": {"cost": 0.5}}, by="ada")
    html = server.request("GET", "/v1/report.html").body.decode()
    assert "<th>Questions</th><th>Cost</th></tr>" in html
    assert "<td>ada</td><td>1</td><td>0</td><td>0</td><td>0</td><td>0.5</td></tr>" in html


@pytest.mark.parametrize("day", ["today", "2026-2-9", "2026-02-30"])
def test_day_that_is_none_is_refused(server: HubServer, day: str) -> None:
    refused = server.request("GET", f"/v1/report?day={day}")
    assert (refused.status, refused.code) == (400, "invalid_request")
    assert "write it like 2026-02-09" in refused.json["detail"]


@pytest.mark.parametrize(
    ("path", "name"),
    [
        ("/v1/report.html", "report-2026-02-09.html"),
        ("/v1/tasks/one/story.html", "story-one.html"),
    ],
)
def test_page_is_for_keeping_and_nothing_in_it_acts(
    server: HubServer, path: str, name: str
) -> None:
    add_work(server)
    response = server.request("GET", path)
    assert response.status == 200
    assert response.headers["content-type"] == "text/html; charset=utf-8"
    assert response.headers["content-disposition"] == f"attachment; filename*=UTF-8''{name}"
    assert "sandbox" in response.headers["content-security-policy"]
    html = response.body.decode()
    assert "<script" not in html
    assert "<img" not in html
    assert "&lt;script&gt;alert(1)" in html
    assert not set(html) & set("\x1b\u202e")


def test_story_of_an_unknown_task_is_refused(server: HubServer) -> None:
    refused = server.request("GET", "/v1/tasks/none/story.html")
    assert (refused.status, refused.code) == (404, "task_not_found")


def test_long_story_is_one_page(server: HubServer) -> None:
    server.post("/v1/tasks", {"id": "long", "title": "Long", "ready": True})
    for number in range(1_005):
        server.hub.submit(HERA, NoteTask("long", f"note {number}."))
    html = server.request("GET", "/v1/tasks/long/story.html").body.decode()
    assert all(f"note {number}." in html for number in (0, 999, 1_004))
