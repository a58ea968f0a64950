"""Tasks, runs, events and agents over HTTP: reading in pages, by filters, with ETags; and doing."""

from typing import Any

import pytest
from msgspec import convert

from dragoman.core.actors import SYSTEM
from dragoman.core.commands import CreateTask, NoteTask, PauseAgent, RegisterAgent, ReportOutcome
from dragoman.core.limits import PAGE, PAGE_BYTES, TEXT
from dragoman.services.budgets import Used
from dragoman.services.desk import AgentState
from dragoman.surfaces.http.agents import ShownAgent
from tests.requirements import proves
from tests.surfaces.http.house import House, serving

pytestmark = proves("HTTP-RESOURCES")


def test_a_task_s_life_from_its_making_to_its_end(house: House) -> None:
    made = house.ask("POST", "/v1/tasks", {"title": "One", "ready": True, "body": "All of it."})
    assert made.status == 201
    task = made.json["id"]
    assert made.headers["location"] == f"/v1/tasks/{task}"
    claim = house.post(f"/v1/tasks/{task}/claim", {"session": "s1", "ttl_ms": 60_000}, by="ada")
    assert (claim["agent"], claim["attempt"], claim["fence"]) == ("ada", 1, 1)
    assert claim["expiresAt"] == "2026-02-09T20:56:00.000Z"
    assert claim["task"]["body"] == "All of it."
    house.clock.advance(30_000)
    held = house.post(f"/v1/tasks/{task}/heartbeat", {"fence": 1}, by="ada")
    assert held["expiresAt"] == "2026-02-09T20:56:30.000Z"
    assert house.post(f"/v1/tasks/{task}/note", {"text": "So far."}, by="ada")["notes"] == 1
    house.post(f"/v1/tasks/{task}/update", {"progress": "half"}, by="ada")
    done = house.post(f"/v1/tasks/{task}/report", {"outcome": "done", "notes": "ok"}, by="ada")
    assert (done["status"], done["report"]["outcome"]) == ("review", "done")
    approved = house.post(f"/v1/tasks/{task}/move", {"to": "done", "reason": "seen"})
    assert approved["status"] == "done"
    runs = house.get(f"/v1/runs/{task}")
    assert runs["task"] == task
    assert [(run["agent"], run["status"]) for run in runs["runs"]] == [("ada", "completed")]
    assert runs["runs"][0]["report"]["notes"] == "ok"


def test_attempts_are_told_in_pages_and_by_filters(house: House) -> None:
    task = house.do(CreateTask("One", ready=True))
    for agent in ("ada", "bob", "ada", "ada"):
        house.post(f"/v1/tasks/{task}/claim", {}, by=agent)
        house.post(f"/v1/tasks/{task}/release", {}, by=agent)
    house.post(f"/v1/tasks/{task}/claim", {}, by="bob")
    at = f"/v1/runs/{task}"
    seen: list[list[int]] = []
    after: int | None = 0
    while after is not None:
        page = house.get(f"{at}?limit=2&after={after}")
        seen.append([run["attempt"] for run in page["runs"]])
        after = page["next"]
    assert seen == [[1, 2], [3, 4], [5]]

    def attempts(query: str) -> tuple[list[int], int | None]:
        page = house.get(f"{at}?{query}")
        return [run["attempt"] for run in page["runs"]], page["next"]

    assert attempts("limit=5") == ([1, 2, 3, 4, 5], None)
    assert attempts("agent=ada&limit=2") == ([1, 3], 3)
    assert attempts("agent=ada&limit=2&after=3") == ([4], None)
    assert attempts("status=running") == ([5], None)
    assert attempts("status=running&agent=ada") == ([], None)
    assert attempts("after=5") == ([], None)
    assert house.ask("GET", f"{at}?status=done").json["path"] == "status"


@proves("RUN-UNREPORTED")
def test_an_attempt_that_failed_in_silence_says_what_the_hub_said_of_it(house: House) -> None:
    task = house.do(CreateTask("One", ready=True))
    house.post(f"/v1/tasks/{task}/claim", {}, by="ada")
    failed = ReportOutcome(task, "failed", "exit code 3, without a report", fence=1, apply=True)
    house.do(failed, actor=SYSTEM)
    (run,) = house.get(f"/v1/runs/{task}")["runs"]
    assert (run["status"], run["reason"]) == ("released", "unreported_failed")
    assert (run["report"]["by"], run["report"]["notes"]) == ("hub", failed.notes)


def test_a_task_is_given_back_and_linked(house: House) -> None:
    first, second = (house.do(CreateTask(title, ready=True)) for title in ("First", "Second"))
    house.post(f"/v1/tasks/{second}/claim", {}, by="ada")
    released = house.post(f"/v1/tasks/{second}/release", {"reason": "no compiler"}, by="ada")
    assert released["status"] == "ready"
    linked = house.post(
        f"/v1/tasks/{second}/link", {"blocked_by": [first], "aliases": ["bead:b-1"]}
    )
    assert (linked["waitsFor"], linked["aliases"]) == ([first], ["bead:b-1"])
    assert house.get("/v1/tasks/bead:b-1")["id"] == second
    nothing = house.ask("POST", f"/v1/tasks/{second}/link", {})
    assert (nothing.status, nothing.code) == (422, "invalid_field")


def test_what_is_wrong_with_one_field_says_which(house: House) -> None:
    task = house.do(CreateTask("One", ready=True))
    house.post(f"/v1/tasks/{task}/claim", {}, by="ada")
    long = {"outcome": "blocked", "blockers": ["x", "y" * 4_001]}
    for address, said, path in (
        (f"/v1/tasks/{task}/report", {"outcome": "blocked"}, "blockers"),
        (f"/v1/tasks/{task}/report", long, "blockers[1]"),
        ("/v1/tasks", {"title": "  "}, "title"),
        ("/v1/tasks", {"title": "x", "id": "a b"}, "id"),
    ):
        answer = house.ask("POST", address, said, by="ada")
        assert (answer.status, answer.json["path"]) == (422, path)
    nothing = house.ask("POST", f"/v1/tasks/{task}/update", {}, by="ada")
    assert (nothing.status, nothing.code) == (422, "invalid_field")
    assert "at least one of to, progress, notes and blockers" in nothing.json["detail"]


@proves("NAME-GRAMMAR")
def test_a_new_task_has_no_empty_id_and_its_unknown_relatives_are_named(house: House) -> None:
    def refused(**fields: Any) -> tuple[str, str, str]:
        answer = house.ask("POST", "/v1/tasks", {"title": "One", **fields})
        return answer.code, answer.json["path"], answer.json["detail"]

    assert refused(id="")[:2] == ("invalid_id", "id")
    assert house.post("/v1/tasks", {"title": "One", "id": None})["id"].startswith("TASK-")
    for field, given in (("discovered_from", "no"), ("blocked_by", ["no"])):
        told = f"no task has the name no, which `{field}` names: see `dragoman task list`"
        assert refused(**{field: given}) == ("task_not_found", field, told)
    told = "no task has the name no, the parent's: see `dragoman task list`"
    assert refused(parent="no") == ("parent_not_found", "parent", told)


def test_a_refusal_is_told_with_its_status(house: House) -> None:
    task = house.do(CreateTask("One", ready=True))
    house.post(f"/v1/tasks/{task}/claim", {}, by="ada")
    cases: list[tuple[str, str, dict[str, str] | None, int, str]] = [
        ("GET", "/v1/tasks/nothing", None, 404, "task_not_found"),
        ("GET", "/v1/tasks/%3F", None, 422, "invalid_id"),
        ("GET", "/v1/runs/nothing", None, 404, "task_not_found"),
        ("GET", "/v1/agents/nobody", None, 404, "agent_not_found"),
        ("POST", f"/v1/tasks/{task}/claim", {}, 409, "already_claimed"),
        ("POST", f"/v1/tasks/{task}/move", {"to": "done"}, 409, "invalid_transition"),
        ("POST", f"/v1/tasks/{task}/note", {"text": ""}, 422, "invalid_field"),
        ("POST", f"/v1/tasks/{task}/note", {"txt": "x"}, 422, "invalid_field"),
        ("POST", "/v1/tasks", {"title": "Two", "id": task}, 409, "already_exists"),
    ]
    for method, path, body, status, code in cases:
        answer = house.ask(method, path, body)
        assert (answer.status, answer.code) == (status, code), path


@proves("HTTP-KEYS")
def test_a_key_makes_one_task_however_often_it_is_sent(house: House) -> None:
    key = {"Idempotency-Key": "make-one"}
    first = house.ask("POST", "/v1/tasks", {"title": "One"}, headers=key)
    again = house.ask("POST", "/v1/tasks", {"title": "One"}, headers=key)
    assert first.json == again.json
    assert len(house.get("/v1/tasks")["tasks"]) == 1
    for wrong in ("", "é", "x" * 257):
        answer = house.ask(
            "POST", "/v1/tasks", {"title": "One"}, headers={"Idempotency-Key": wrong}
        )
        assert (answer.status, answer.code) == (400, "invalid_request")


def test_tasks_are_listed_in_pages_and_by_filters(house: House) -> None:
    names = [
        house.do(CreateTask(f"{n}", ready=n % 2 == 0, assignee="ada" if n == 4 else ""))
        for n in range(7)
    ]
    seen: list[str] = []
    path = "/v1/tasks?limit=3"
    while path:
        page = house.get(path)
        seen += [task["id"] for task in page["tasks"]]
        path = f"/v1/tasks?limit=3&cursor={page['next']}" if page["next"] is not None else ""
    assert seen == names[::-1]

    def listed(query: str) -> list[str]:
        return [task["id"] for task in house.get(f"/v1/tasks?{query}")["tasks"]]

    assert listed("status=backlog") == [names[5], names[3], names[1]]
    assert listed("assignee=ada") == [names[4]]
    assert listed("ready=true") == [names[6], names[4], names[2], names[0]]
    assert "body" not in house.get("/v1/tasks")["tasks"][0]


@pytest.mark.parametrize(
    ("path", "words"),
    [
        ("/v1/tasks?limit=0", "limit"),
        ("/v1/tasks?limit=many", "limit"),
        ("/v1/tasks?state=ready", "did you mean status"),
        ("/v1/tasks?status=ready&status=done", "twice"),
        ("/v1/tasks?status=soon", "status"),
        ("/v1/tasks?ready=true&status=done", "exclude"),
        ("/v1/tasks/x?y=1", "not asked for"),
        ("/v1/events?type=task.exploded", "task.claimed"),
        ("/v1/events?dialect=latin", "aof"),
        ("/v1/events?after=-1", "after"),
    ],
)
def test_a_question_that_cannot_be_understood_is_told(house: House, path: str, words: str) -> None:
    answer = house.ask("GET", path)
    assert (answer.status, answer.code) == (400, "invalid_request")
    assert words in answer.json["detail"]


@pytest.mark.parametrize(
    "query",
    ["tasks?assignee=", "tasks?status=", "tasks?cursor=", "events?type=", "events?task=&limit=1"],
)
def test_a_filter_that_says_nothing_is_told_so(house: House, query: str) -> None:
    answer = house.ask("GET", f"/v1/{query}")
    assert (answer.status, answer.code) == (400, "invalid_request")
    assert answer.json["path"] == query.partition("?")[2].partition("=")[0]


@pytest.mark.parametrize("path", ["/openapi.json", "/docs", "/healthz"])
def test_descriptions_have_a_tag_too(house: House, path: str) -> None:
    first = house.ask("GET", path)
    again = house.ask("GET", path, headers={"If-None-Match": first.headers["etag"]})
    assert (first.status, again.status, again.body) == (200, 304, b"")


def test_what_the_caller_has_already_is_not_sent_again(house: House) -> None:
    task = house.do(CreateTask("One"))
    for path in ("/v1/tasks", f"/v1/tasks/{task}"):
        first = house.ask("GET", path)
        known = {"If-None-Match": f'"other", {first.headers["etag"]}'}
        again = house.ask("GET", path, headers=known)
        assert (again.status, again.body) == (304, b"")
        assert again.headers["etag"] == first.headers["etag"]
        assert house.ask("GET", path, headers={"If-None-Match": "*"}).status == 304
        house.post(f"/v1/tasks/{task}/note", {"text": "New."})
        assert house.ask("GET", path, headers=known).status == 200


def test_a_head_request_has_the_head_only(house: House) -> None:
    answer = house.ask("HEAD", "/v1/tasks")
    assert (answer.status, answer.body) == (200, b"")


def test_a_task_s_history_is_told_in_pages(house: House) -> None:
    task = house.do(CreateTask("One"))
    for number in range(4):
        house.post(f"/v1/tasks/{task}/note", {"text": f"{number}"})
    page = house.get(f"/v1/tasks/{task}/events?limit=2")
    assert [event["type"] for event in page["events"]] == ["task.created", "task.noted"]
    rest = house.get(f"/v1/tasks/{task}/events?after={page['next']}")
    assert [event["version"] for event in rest["events"]] == [3, 4, 5]
    assert rest["next"] is None
    assert rest["events"][0]["body"] == {"text": "1", "by": "human:owner"}


def test_the_ledger_is_told_in_pages_and_by_filters(house: House) -> None:
    task, other = (house.do(CreateTask(title, ready=True)) for title in ("One", "Two"))
    house.post(f"/v1/tasks/{task}/claim", {}, by="ada")
    house.post(f"/v1/tasks/{other}/note", {"text": "Hm."}, by="bob")

    def told(query: str) -> list[str]:
        return [event["type"] for event in house.get(f"/v1/events?{query}")["events"]]

    assert told(f"task={task}") == ["task.created", "task.claimed"]
    assert told("type=task.claimed") == ["task.claimed"]
    assert set(told("type=agent")) == {"agent.registered"}
    assert told("agent=bob") == ["task.noted"]
    assert "token.issued" in told("")
    assert "token.issued" not in told("dialect=aof")
    page = house.get("/v1/events?limit=2")
    assert (len(page["events"]), page["next"]) == (2, 2)
    assert house.get("/v1/events?after=2&limit=1")["events"][0]["position"] == 3
    end = house.get(f"/v1/events?after={house.store.head()}")
    assert end == {"events": [], "next": house.store.head()}


def test_a_page_of_long_entries_ends_before_it_is_too_long(house: House) -> None:
    task = house.do(CreateTask("One"))
    count = PAGE_BYTES // TEXT + 10
    house.do(*(NoteTask(task, "x" * TEXT) for _ in range(count)))
    first = house.get(f"/v1/events?type=task.noted&limit={PAGE}")
    assert 0 < len(first["events"]) < count
    rest = house.get(f"/v1/events?type=task.noted&limit={PAGE}&after={first['next']}")
    assert len(first["events"]) + len(rest["events"]) == count
    assert first["events"][-1]["position"] == first["next"]


def test_agents_are_listed_without_their_tokens(house: House) -> None:
    page = house.get("/v1/agents?limit=2")
    assert [agent["name"] for agent in page["agents"]] == ["ada", "bob"]
    rest = house.get(f"/v1/agents?after={page['next']}")
    assert [agent["name"] for agent in rest["agents"]] == ["olga"]
    assert rest["next"] is None
    olga = house.get("/v1/agents/olga")
    assert (olga["role"], olga["tokens"]) == ("observer", 1)
    assert "digest" not in str(olga)
    assert not convert(olga, ShownAgent).has_key
    assert (olga["paused"], olga["started"]) == (None, None)


def test_agents_are_found_by_role_by_what_they_speak_and_whether_they_are_paused(
    house: House,
) -> None:
    house.do(RegisterAgent("carl", "agent", ("aof", "acp")), RegisterAgent("dora", "agent"))
    house.do(PauseAgent("dora", "rest"), PauseAgent("bob", "rest"))

    def names(query: str) -> tuple[list[str], str | None]:
        page = house.get(f"/v1/agents?{query}")
        return [agent["name"] for agent in page["agents"]], page["next"]

    assert names("role=observer") == (["olga"], None)
    assert names("role=agent&limit=3") == (["ada", "bob", "carl"], "carl")
    assert names("role=agent&limit=3&after=carl") == (["dora"], None)
    assert names("speaks=acp") == (["carl"], None)
    assert names("paused=true") == (["bob", "dora"], None)
    assert names("paused=false&role=agent") == (["ada", "carl"], None)
    assert names("paused=true&limit=1") == (["bob"], "bob")
    for query, path in (("speaks=aoff", "speaks"), ("role=boss", "role")):
        refused = house.ask("GET", f"/v1/agents?{query}")
        assert (refused.code, refused.json["path"]) == ("invalid_request", path)
    assert "did you mean aof?" in house.ask("GET", "/v1/agents?speaks=aoff").json["detail"]


@proves("AGENT-PAUSE")
def test_an_agent_is_paused_and_resumed_and_everybody_sees_how_it_stands() -> None:
    used = Used("2026-02-09", 3, 90_000, 12, 0.5)
    state = AgentState("ada", ("T-1",), used, "it is enough")
    with serving(House(fleet=lambda: [state])) as here:
        here.welcome("ada")
        here.welcome("bob")
        paused = here.post("/v1/agents/ada/pause", {"reason": "it is enough"})
        assert paused["paused"]["reason"] == "it is enough"
        assert paused["started"] == {
            "running": ["T-1"],
            "attempts": 3,
            "minutes": 1.5,
            "output": 12,
            "cost": 0.5,
            "idle": "it is enough",
        }
        [ada, bob] = here.get("/v1/agents?limit=2")["agents"]
        assert (ada["paused"]["until"], bob["started"]) == (None, None)
        refused = here.ask("POST", "/v1/agents/ada/resume", {}, by="ada")
        assert (refused.status, refused.json["code"]) == (403, "not_authorized")
        assert here.post("/v1/agents/ada/resume", {})["paused"] is None
        assert here.ask("POST", "/v1/agents/nobody/pause", {}).status == 404
