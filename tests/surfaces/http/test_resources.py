"""Tasks, runs, events and agents over HTTP: pages, filters and actions."""

from typing import Any

import pytest
from msgspec import convert

from dragoman.core.actor import HUB_ACTOR, Actor
from dragoman.core.agent import PauseAgent, RegisterAgent
from dragoman.core.attempt import ClaimTask, ReportOutcome
from dragoman.core.limits import MAX_PAGE, MAX_PAGE_BYTES, MAX_TEXT
from dragoman.core.task_state import CreateTask, NoteTask
from dragoman.services.dispatch.agent_slots import AgentState
from dragoman.services.dispatch.budget_enforcer import Usage
from dragoman.surfaces.http.routes.agents import Agent
from tests.requirements import proves
from tests.surfaces.http.hub_server import HubServer, serving

pytestmark = proves("HTTP-RESOURCES")


def test_task_lifecycle_from_creation_to_done(server: HubServer) -> None:
    created = server.request(
        "POST", "/v1/tasks", {"title": "One", "ready": True, "body": "All of it."}
    )
    assert created.status == 201
    task = created.json["id"]
    assert created.headers["location"] == f"/v1/tasks/{task}"
    claim = server.post(f"/v1/tasks/{task}/claim", {"session": "s1", "ttl_ms": 60_000}, by="ada")
    assert (claim["agent"], claim["attempt"], claim["fence"]) == ("ada", 1, 1)
    assert claim["expiresAt"] == "2026-02-09T20:56:00.000Z"
    assert claim["task"]["body"] == "All of it."
    server.clock.advance(30_000)
    lease = server.post(f"/v1/tasks/{task}/heartbeat", {"fence": 1}, by="ada")
    assert lease["expiresAt"] == "2026-02-09T20:56:30.000Z"
    assert server.post(f"/v1/tasks/{task}/note", {"text": "So far."}, by="ada")["notes"] == 1
    server.post(f"/v1/tasks/{task}/update", {"progress": "half"}, by="ada")
    reported = server.post(f"/v1/tasks/{task}/report", {"outcome": "done", "notes": "ok"}, by="ada")
    assert (reported["status"], reported["report"]["outcome"]) == ("review", "done")
    approved = server.post(f"/v1/tasks/{task}/move", {"to": "done", "reason": "seen"})
    assert approved["status"] == "done"
    runs = server.get(f"/v1/runs/{task}")
    assert runs["task"] == task
    assert [(run["agent"], run["status"]) for run in runs["runs"]] == [("ada", "completed")]
    assert runs["runs"][0]["report"]["notes"] == "ok"


@proves("STORY-PAGES", "STORY-ORDER")
def test_story_is_read_in_pages(server: HubServer) -> None:
    task = server.submit(CreateTask("One", ready=True))
    server.post(f"/v1/tasks/{task}/claim", {}, by="ada")
    server.post(f"/v1/tasks/{task}/note", {"text": "So far."}, by="ada")
    path = f"/v1/tasks/{task}/story"
    types: list[str] = []
    page: Any = {"next": 0}
    while (after := page["next"]) is not None:
        page = server.get(f"{path}?limit=1&after={after}")
        types += [item["type"] for item in page["items"]]
    assert types == ["task.created", "task.claimed", "task.noted"]
    assert page["task"]["id"] == task
    assert page["items"][0]["text"] == "So far."
    assert server.request("GET", "/v1/tasks/none/story").status == 404


def test_runs_are_paged_and_filtered(server: HubServer) -> None:
    task = server.submit(CreateTask("One", ready=True))
    for agent in ("ada", "bob", "ada", "ada"):
        server.post(f"/v1/tasks/{task}/claim", {}, by=agent)
        server.post(f"/v1/tasks/{task}/release", {}, by=agent)
    server.post(f"/v1/tasks/{task}/claim", {}, by="bob")
    path = f"/v1/runs/{task}"
    pages: list[list[int]] = []
    after: int | None = 0
    while after is not None:
        page = server.get(f"{path}?limit=2&after={after}")
        pages.append([run["attempt"] for run in page["runs"]])
        after = page["next"]
    assert pages == [[1, 2], [3, 4], [5]]

    def attempts(query: str) -> tuple[list[int], int | None]:
        page = server.get(f"{path}?{query}")
        return [run["attempt"] for run in page["runs"]], page["next"]

    assert attempts("limit=5") == ([1, 2, 3, 4, 5], None)
    assert attempts("agent=ada&limit=2") == ([1, 3], 3)
    assert attempts("agent=ada&limit=2&after=3") == ([4], None)
    assert attempts("status=running") == ([5], None)
    assert attempts("status=running&agent=ada") == ([], None)
    assert attempts("after=5") == ([], None)
    assert server.request("GET", f"{path}?status=done").json["path"] == "status"


@proves("RUN-UNREPORTED")
def test_run_without_report_has_the_hubs_reason(server: HubServer) -> None:
    task = server.submit(CreateTask("One", ready=True))
    server.post(f"/v1/tasks/{task}/claim", {}, by="ada")
    failed = ReportOutcome(task, "failed", "exit code 3, without a report", fence=1, apply=True)
    server.submit(failed, actor=HUB_ACTOR)
    (run,) = server.get(f"/v1/runs/{task}")["runs"]
    assert (run["status"], run["reason"]) == ("released", "unreported_failed")
    assert (run["report"]["by"], run["report"]["notes"]) == ("hub", failed.notes)


def test_task_is_released_and_linked(server: HubServer) -> None:
    first, second = (server.submit(CreateTask(title, ready=True)) for title in ("First", "Second"))
    server.post(f"/v1/tasks/{second}/claim", {}, by="ada")
    released = server.post(f"/v1/tasks/{second}/release", {"reason": "no compiler"}, by="ada")
    assert released["status"] == "ready"
    linked = server.post(
        f"/v1/tasks/{second}/link", {"blocked_by": [first], "aliases": ["bead:b-1"]}
    )
    assert (linked["waitsFor"], linked["aliases"]) == ([first], ["bead:b-1"])
    assert server.get("/v1/tasks/bead:b-1")["id"] == second
    nothing = server.request("POST", f"/v1/tasks/{second}/link", {})
    assert (nothing.status, nothing.code) == (422, "invalid_field")


def test_invalid_field_is_named_by_path(server: HubServer) -> None:
    task = server.submit(CreateTask("One", ready=True))
    server.post(f"/v1/tasks/{task}/claim", {}, by="ada")
    long_blocker = {"outcome": "blocked", "blockers": ["x", "y" * 4_001]}
    for path, body, field in (
        (f"/v1/tasks/{task}/report", {"outcome": "blocked"}, "blockers"),
        (f"/v1/tasks/{task}/report", long_blocker, "blockers[1]"),
        ("/v1/tasks", {"title": "  "}, "title"),
        ("/v1/tasks", {"title": "x", "id": "a b"}, "id"),
    ):
        response = server.request("POST", path, body, by="ada")
        assert (response.status, response.json["path"]) == (422, field)
    empty_update = server.request("POST", f"/v1/tasks/{task}/update", {}, by="ada")
    assert (empty_update.status, empty_update.code) == (422, "invalid_field")
    assert "at least one of to, progress, notes and blockers" in empty_update.json["detail"]


@proves("NAME-GRAMMAR")
def test_new_task_with_empty_id_or_unknown_relative_is_refused(server: HubServer) -> None:
    def refusal_of(**fields: Any) -> tuple[str, str, str]:
        response = server.request("POST", "/v1/tasks", {"title": "One", **fields})
        return response.code, response.json["path"], response.json["detail"]

    assert refusal_of(id="")[:2] == ("invalid_id", "id")
    assert server.post("/v1/tasks", {"title": "One", "id": None})["id"].startswith("TASK-")
    for field, value in (("discovered_from", "no"), ("blocked_by", ["no"])):
        detail = f"no task has the name no, which `{field}` names: see `dragoman task list`"
        assert refusal_of(**{field: value}) == ("task_not_found", field, detail)
    detail = "no task has the name no, the parent's: see `dragoman task list`"
    assert refusal_of(parent="no") == ("parent_not_found", "parent", detail)


@proves("DELEGATION-ATOMIC")
def test_part_is_created_and_delegated_by_one_request(server: HubServer) -> None:
    whole = server.submit(CreateTask("Whole", ready=True))
    server.post(f"/v1/tasks/{whole}/claim", {}, by="ada")
    part = {
        "title": "Part",
        "assignee": "bob",
        "due_by": "2026-02-10T12:00:00+01:00",
        "acceptance_criteria": ["it is green"],
        "expected_outputs": ["outputs/part.md"],
        "context_refs": ["plan.md"],
        "constraints": ["no network"],
    }
    path = f"/v1/tasks/{whole}/delegate"

    made = server.post(path, part, by="ada")

    asked = made["delegation"]
    assert (made["status"], made["parent"], made["reservedFor"]) == ("ready", whole, "bob")
    assert (asked["from"], asked["to"], asked["dueBy"]) == (
        "ada",
        "bob",
        "2026-02-10T11:00:00.000Z",
    )
    assert asked["acceptanceCriteria"] == ["it is green"]
    for changes, code, field in (
        ({"due_by": "tomorrow"}, "invalid_field", "due_by"),
        ({"assignee": "a b"}, "invalid_id", "assignee"),
    ):
        response = server.request("POST", path, part | changes, by="ada")
        assert (response.code, response.json["path"]) == (code, field)
    assert server.request("POST", path, part, by="bob").code == "unauthorized_agent"
    assert len(server.get("/v1/tasks")["tasks"]) == 2


@proves("REVIEW-POLICY")
def test_agent_may_not_create_a_task_without_review(server: HubServer) -> None:
    body = {"title": "One", "review_required": False}
    refused = server.request("POST", "/v1/tasks", body, by="ada")
    assert (refused.status, refused.code, refused.json["path"]) == (
        403,
        "not_authorized",
        "review_required",
    )
    assert server.post("/v1/tasks", body)["reviewRequired"] is False


def test_refusal_has_matching_status(server: HubServer) -> None:
    task = server.submit(CreateTask("One", ready=True))
    server.post(f"/v1/tasks/{task}/claim", {}, by="ada")
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
        response = server.request(method, path, body)
        assert (response.status, response.code) == (status, code), path


@proves("HTTP-KEYS")
def test_idempotency_key_creates_one_task(server: HubServer) -> None:
    key = {"Idempotency-Key": "make-one"}
    first = server.request("POST", "/v1/tasks", {"title": "One"}, headers=key)
    again = server.request("POST", "/v1/tasks", {"title": "One"}, headers=key)
    assert first.json == again.json
    assert len(server.get("/v1/tasks")["tasks"]) == 1
    for wrong in ("", "é", "x" * 257):
        response = server.request(
            "POST", "/v1/tasks", {"title": "One"}, headers={"Idempotency-Key": wrong}
        )
        assert (response.status, response.code) == (400, "invalid_request")


def test_tasks_are_paged_and_filtered(server: HubServer) -> None:
    names = [
        server.submit(CreateTask(f"{n}", ready=n % 2 == 0, assignee="ada" if n == 4 else ""))
        for n in range(7)
    ]
    listed_ids: list[str] = []
    path = "/v1/tasks?limit=3"
    while path:
        page = server.get(path)
        listed_ids += [task["id"] for task in page["tasks"]]
        path = f"/v1/tasks?limit=3&cursor={page['next']}" if page["next"] is not None else ""
    assert listed_ids == names[::-1]

    def ids_for(query: str) -> list[str]:
        return [task["id"] for task in server.get(f"/v1/tasks?{query}")["tasks"]]

    assert ids_for("status=backlog") == [names[5], names[3], names[1]]
    assert ids_for("assignee=ada") == [names[4]]
    assert ids_for("words=ADA%204") == [names[4]]
    assert ids_for("ready=true") == [names[6], names[4], names[2], names[0]]
    assert "body" not in server.get("/v1/tasks")["tasks"][0]


@pytest.mark.parametrize(
    ("path", "detail"),
    [
        ("/v1/tasks?limit=0", "limit"),
        ("/v1/tasks?limit=many", "limit"),
        ("/v1/tasks?state=ready", "did you mean status"),
        ("/v1/tasks?status=ready&status=done", "twice"),
        ("/v1/tasks?status=soon", "status"),
        ("/v1/tasks?ready=true&status=done", "exclude"),
        ("/v1/tasks/x?y=1", "not a parameter"),
        ("/v1/events?type=task.exploded", "task.claimed"),
        ("/v1/events?dialect=latin", "aof"),
        ("/v1/events?after=-1", "after"),
    ],
)
def test_invalid_query_is_refused(server: HubServer, path: str, detail: str) -> None:
    response = server.request("GET", path)
    assert (response.status, response.code) == (400, "invalid_request")
    assert detail in response.json["detail"]


@pytest.mark.parametrize(
    "query",
    ["tasks?assignee=", "tasks?status=", "tasks?cursor=", "events?type=", "events?task=&limit=1"],
)
def test_empty_filter_is_refused(server: HubServer, query: str) -> None:
    response = server.request("GET", f"/v1/{query}")
    assert (response.status, response.code) == (400, "invalid_request")
    assert response.json["path"] == query.partition("?")[2].partition("=")[0]


def test_head_request_has_no_body(server: HubServer) -> None:
    response = server.request("HEAD", "/v1/tasks")
    assert (response.status, response.body) == (200, b"")


def test_history_of_a_task_is_paged(server: HubServer) -> None:
    task = server.submit(CreateTask("One"))
    for number in range(4):
        server.post(f"/v1/tasks/{task}/note", {"text": f"{number}"})
    page = server.get(f"/v1/tasks/{task}/events?limit=2")
    assert [event["type"] for event in page["events"]] == ["task.created", "task.noted"]
    rest = server.get(f"/v1/tasks/{task}/events?after={page['next']}")
    assert [event["version"] for event in rest["events"]] == [3, 4, 5]
    assert rest["next"] is None
    assert rest["events"][0]["body"] == {"text": "1", "by": "human:owner"}


def test_events_are_paged_and_filtered(server: HubServer) -> None:
    task, other_task = (server.submit(CreateTask(title, ready=True)) for title in ("One", "Two"))
    server.post(f"/v1/tasks/{task}/claim", {}, by="ada")
    server.post(f"/v1/tasks/{other_task}/note", {"text": "Hm."}, by="bob")

    def types_for(query: str) -> list[str]:
        return [event["type"] for event in server.get(f"/v1/events?{query}")["events"]]

    assert types_for(f"task={task}") == ["task.created", "task.claimed"]
    assert types_for("type=task.claimed") == ["task.claimed"]
    assert set(types_for("type=agent")) == {"agent.registered"}
    assert types_for("agent=bob") == ["task.noted"]
    assert "token.issued" in types_for("")
    assert "token.issued" not in types_for("dialect=aof")
    page = server.get("/v1/events?limit=2")
    assert (len(page["events"]), page["next"]) == (2, 2)
    assert server.get("/v1/events?after=2&limit=1")["events"][0]["position"] == 3
    end = server.get(f"/v1/events?after={server.store.head()}")
    assert end == {"events": [], "next": server.store.head()}


def test_page_of_long_entries_is_bounded_in_bytes(server: HubServer) -> None:
    task = server.submit(CreateTask("One"))
    count = MAX_PAGE_BYTES // MAX_TEXT + 10
    server.submit(*(NoteTask(task, "x" * MAX_TEXT) for _ in range(count)))
    first = server.get(f"/v1/events?type=task.noted&limit={MAX_PAGE}")
    assert 0 < len(first["events"]) < count
    rest = server.get(f"/v1/events?type=task.noted&limit={MAX_PAGE}&after={first['next']}")
    assert len(first["events"]) + len(rest["events"]) == count
    assert first["events"][-1]["position"] == first["next"]


def test_agents_are_listed_without_tokens(server: HubServer) -> None:
    page = server.get("/v1/agents?limit=2")
    assert [agent["name"] for agent in page["agents"]] == ["ada", "bob"]
    rest = server.get(f"/v1/agents?after={page['next']}")
    hera = rest["agents"][0]
    assert [agent["name"] for agent in rest["agents"]] == ["hera", "olga"]
    assert (hera["role"], hera["registered"], hera["registeredAt"]) == ("human", False, None)
    assert (hera["speaks"], hera["tokens"], hera["hasKey"]) == ([], 0, False)
    assert rest["next"] is None
    olga = server.get("/v1/agents/olga")
    assert (olga["role"], olga["tokens"]) == ("observer", 1)
    assert "digest" not in str(olga)
    assert not convert(olga, Agent).has_key
    assert (olga["paused"], olga["activity"]) == (None, None)


@proves("HTTP-TOKENS")
def test_token_is_shown_once_and_ends_when_it_is_revoked(server: HubServer) -> None:
    issued = server.request("POST", "/v1/agents/ada/tokens", {"days": 2})
    assert (issued.status, issued.json["expiresAt"]) == (201, "2026-02-11T20:55:00.000Z")
    headers = {"authorization": f"Bearer {issued.json['token']}"}
    assert server.request("GET", "/v1/session", headers=headers, by="").json["name"] == "ada"
    listed = server.request("GET", "/v1/agents/ada/tokens")
    assert listed.json["tokens"][-1] == {
        "id": issued.json["id"],
        "state": "good",
        "issuedAt": "2026-02-09T20:55:00.000Z",
        "expiresAt": "2026-02-11T20:55:00.000Z",
    }
    assert issued.json["token"] not in str(listed.json)
    left = server.request("DELETE", f"/v1/agents/ada/tokens/{issued.json['id']}")
    assert left.json["tokens"][-1]["state"] == "revoked"
    assert server.request("GET", "/v1/session", headers=headers, by="").status == 401


@proves("HTTP-TOKENS")
def test_tokens_are_for_those_who_may_manage_them(server: HubServer) -> None:
    for name, by, code in (
        ("ada", "bob", "not_authorized"),
        ("ada", "olga", "not_authorized"),
        ("nobody", "owner", "agent_not_found"),
    ):
        path = f"/v1/agents/{name}/tokens"
        assert server.request("GET", path, by=by).code == code
        assert server.request("POST", path, {}, by=by).code == code
        assert server.request("DELETE", f"{path}/000000000000", by=by).code == code
    assert server.request("DELETE", "/v1/agents/ada/tokens/000000000000").code == "token_not_found"
    assert server.request("GET", "/v1/agents/ada/tokens", by="ada").status == 200


def test_agents_are_filtered_by_role_dialect_and_pause(
    server: HubServer,
) -> None:
    server.submit(RegisterAgent("carl", "agent", ("aof", "acp")), RegisterAgent("dora", "agent"))
    server.submit(PauseAgent("dora", "rest"), PauseAgent("bob", "rest"))

    def names_for(query: str) -> tuple[list[str], str | None]:
        page = server.get(f"/v1/agents?{query}")
        return [agent["name"] for agent in page["agents"]], page["next"]

    assert names_for("role=observer") == (["olga"], None)
    assert names_for("role=agent&limit=3") == (["ada", "bob", "carl"], "carl")
    assert names_for("role=agent&limit=3&after=carl") == (["dora"], None)
    assert names_for("speaks=acp") == (["carl"], None)
    assert names_for("paused=true") == (["bob", "dora"], None)
    assert names_for("paused=false&role=agent") == (["ada", "carl"], None)
    assert names_for("paused=true&limit=1") == (["bob"], "bob")
    for query, path in (("speaks=aoff", "speaks"), ("role=boss", "role")):
        refused = server.request("GET", f"/v1/agents?{query}")
        assert (refused.code, refused.json["path"]) == ("invalid_request", path)
    assert "did you mean aof?" in server.request("GET", "/v1/agents?speaks=aoff").json["detail"]


@proves("STATUS-EVERYBODY")
def test_agent_that_has_only_spoken_is_shown_with_what_it_holds() -> None:
    with serving(HubServer()) as server:
        task = server.submit(CreateTask("Mine", ready=True))
        server.submit(CreateTask("Next", ready=True, assignee="sam"))
        server.submit(ClaimTask(task, "sam"), actor=Actor("agent", "sam"))
        sam = server.get("/v1/agents/sam")
        assert (sam["registered"], sam["role"]) == (False, "agent")
        assert (sam["holds"], sam["waiting"]) == ([task], 1)
        assert sam["lastSeen"] is not None
        assert server.get("/v1/agents?role=agent")["agents"] == [sam]
        assert server.get("/v1/agents?speaks=aof")["agents"] == []


@proves("AGENT-PAUSE")
def test_paused_and_resumed_agent_shows_its_state() -> None:
    used = Usage("2026-02-09", 3, 90_000, 12, 0.5)
    state = AgentState("ada", ("T-1",), used, "it is enough")
    with serving(HubServer(agent_states=lambda: [state])) as server:
        server.add_agent("ada")
        server.add_agent("bob")
        paused = server.post("/v1/agents/ada/pause", {"reason": "it is enough"})
        assert paused["paused"]["reason"] == "it is enough"
        assert paused["activity"] == {
            "running": ["T-1"],
            "attempts": 3,
            "minutes": 1.5,
            "output": 12,
            "cost": 0.5,
            "idle": "it is enough",
        }
        [ada, bob] = server.get("/v1/agents?limit=2")["agents"]
        assert (ada["paused"]["until"], bob["activity"]) == (None, None)
        refused = server.request("POST", "/v1/agents/ada/resume", {}, by="ada")
        assert (refused.status, refused.json["code"]) == (403, "not_authorized")
        assert server.post("/v1/agents/ada/resume", {})["paused"] is None
        assert server.request("POST", "/v1/agents/nobody/pause", {}).status == 404


@proves("ENGINE-AS-OF")
def test_tasks_are_shown_as_they_were(server: HubServer) -> None:
    server.post("/v1/tasks", {"title": "early", "id": "early", "ready": True})
    position = server.get("/v1/status")["position"]
    server.post("/v1/tasks/early/claim", {"agent": "ada"}, by="ada")
    server.post("/v1/tasks", {"title": "later", "id": "later"})
    (past,) = server.get(f"/v1/tasks?as_of={position}")["tasks"]
    assert (past["id"], past["status"], past["lease"]) == ("early", "ready", None)
    assert server.get(f"/v1/tasks/early?as_of={position}")["status"] == "ready"
    assert server.get("/v1/tasks/early")["status"] == "in-progress"
    missing = server.request("GET", f"/v1/tasks/later?as_of={position}")
    assert (missing.status, missing.code) == (404, "task_not_found")
