"""One question of a task over HTTP, and the long poll for its answer."""

from dragoman.core.attempt import ClaimTask
from dragoman.core.question_state import AnswerQuestion
from dragoman.core.task_state import CreateTask
from tests.requirements import proves
from tests.surfaces.http.background_requests import request_in_background, wait_for_waiters
from tests.surfaces.http.hub_server import HubServer

pytestmark = proves("QUESTION-WAIT")


def ask(server: HubServer) -> str:
    """Let ada work on T and ask; return the path of the question."""
    server.submit(CreateTask("t", "T", ready=True))
    server.submit(ClaimTask("T", "ada"))
    asked = server.post("/v1/tasks/T/ask", {"text": "red or blue?"}, by="ada")
    return f"/v1/tasks/T/questions/{asked['questions'][0]['id']}"


def test_waiting_agent_gets_the_answer_at_once(server: HubServer) -> None:
    path = ask(server)
    assert server.get(path, by="ada")["state"] == "open"
    thread, received = request_in_background(server, "GET", f"{path}?wait=60000", by="ada")
    wait_for_waiters(server, 1)
    server.submit(CreateTask("another one"))
    server.post("/v1/tasks/T/note", {"text": "something else"})
    server.submit(AnswerQuestion("T", "blue"))
    thread.join()
    shown = received[0].json
    assert (shown["state"], shown["answer"], shown["answeredBy"]) == ("answered", "blue", "hera")
    assert server.get(f"{path}?wait=60000", by="ada") == shown


def test_waiting_agent_is_told_that_its_question_was_withdrawn(server: HubServer) -> None:
    path = ask(server)
    thread, received = request_in_background(server, "GET", f"{path}?wait=60000", by="ada")
    wait_for_waiters(server, 1)
    server.post("/v1/tasks/T/withdraw", {"question": "q1"})
    thread.join()
    shown = received[0].json
    assert (shown["state"], shown["answer"], shown["closedBy"]) == ("withdrawn", None, "owner")


def test_wait_without_an_answer_ends_with_the_open_question(server: HubServer) -> None:
    path = ask(server)
    assert server.get(f"{path}?wait=20", by="ada")["state"] == "open"


def test_unknown_question_and_task_are_not_found(server: HubServer) -> None:
    path = ask(server)
    missing = server.request("GET", f"{path.removesuffix('1')}9?wait=60000", by="ada")
    assert (missing.status, missing.code) == (404, "question_not_found")
    unknown = server.request("GET", "/v1/tasks/U/questions/q1", by="ada")
    assert (unknown.status, unknown.code) == (404, "task_not_found")


@proves("BRIEFING")
def test_claim_and_work_return_the_briefing(server: HubServer) -> None:
    ask(server)
    assert server.get("/v1/tasks/T/briefing", by="bob")["answers"] == []
    server.post("/v1/tasks/T/answer", {"text": "blue"})
    server.post("/v1/tasks/T/release", {"reason": "no brush here"}, by="ada")
    claimed = server.post("/v1/work", {}, by="bob")
    briefing = claimed["briefing"]
    assert [one["answer"] for one in briefing["answers"]] == ["blue"]
    assert briefing["lastAttempt"]["reason"] == "no brush here"
    assert server.get("/v1/tasks/T/briefing", by="bob") == briefing
    server.post("/v1/tasks/T/release", {}, by="bob")
    again = server.post("/v1/tasks/T/claim", {}, by="bob")
    assert again["briefing"]["lastAttempt"]["agent"] == "bob"


@proves("BRIEFING")
def test_first_claim_has_no_briefing(server: HubServer) -> None:
    server.submit(CreateTask("t", "T", ready=True))
    assert server.post("/v1/tasks/T/claim", {}, by="ada")["briefing"] is None
    assert server.request("GET", "/v1/tasks/T/briefing", by="ada").status == 204
    assert server.request("GET", "/v1/tasks/U/briefing", by="ada").status == 404
