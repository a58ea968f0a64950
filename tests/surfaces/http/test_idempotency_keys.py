"""`Idempotency-Key`: a repeat gets the first response; scope of a key."""

from typing import Any

import pytest

from dragoman.core.timestamps import to_rfc3339
from tests.requirements import proves
from tests.surfaces.http.hub_server import HubServer, Response


def _post(server: HubServer, path: str, body: Any, key: str = "k", by: str = "ada") -> Response:
    return server.request("POST", path, body, by=by, headers={"Idempotency-Key": key})


def _without_heartbeats(response: Response) -> Any:
    """Return the body of a response without the heartbeats of its lease, which go on."""
    body = response.json
    lease = body.get("task", body)["lease"]
    return body if lease is None else lease.pop("heartbeats") and body


@proves("IDEM-REPEAT")
def test_repeated_create_replays_first_response(
    server: HubServer,
) -> None:
    new = {"title": "One", "ready": True, "id": "T-1"}
    first = _post(server, "/v1/tasks", new)
    assert (first.status, first.json["status"]) == (201, "ready")
    server.post("/v1/tasks/T-1/claim", {}, by="bob")
    server.post("/v1/tasks/T-1/report", {"outcome": "done"}, by="bob")
    again = _post(server, "/v1/tasks", new)
    assert (again.status, again.body) == (first.status, first.body)
    assert again.headers["location"] == "/v1/tasks/T-1"
    assert server.get("/v1/tasks/T-1")["status"] != "ready"


@proves("IDEM-REPEAT")
@pytest.mark.parametrize(
    ("action", "body"),
    [
        ("note", {"text": "Hm."}),
        ("update", {"progress": "Half."}),
        ("link", {"aliases": ["bead:b-1"]}),
        ("release", {}),
        ("move", {"to": "blocked"}),
    ],
)
def test_repeated_action_replays_first_response(server: HubServer, action: str, body: Any) -> None:
    server.post("/v1/tasks", {"title": "One", "ready": True, "id": "T-1"})
    server.post("/v1/tasks/T-1/claim", {}, by="ada")
    first = _post(server, f"/v1/tasks/T-1/{action}", body)
    # Later changes are not part of the replayed response; the lease goes on.
    server.post("/v1/tasks/T-1/note", {"text": "Later."})
    again = _post(server, f"/v1/tasks/T-1/{action}", body)
    assert (again.status, _without_heartbeats(again)) == (200, _without_heartbeats(first))


@proves("IDEM-REPEAT")
@pytest.mark.parametrize("path", ["/v1/tasks/T-1/claim", "/v1/work"])
def test_repeated_claim_replays_claimed_task(server: HubServer, path: str) -> None:
    server.post("/v1/tasks", {"title": "One", "ready": True, "id": "T-1"})
    first = _post(server, path, {})
    server.post("/v1/tasks/T-1/note", {"text": "Begun."}, by="ada")
    assert _without_heartbeats(_post(server, path, {})) == _without_heartbeats(first)
    server.post("/v1/tasks/T-1/release", {}, by="ada")
    again = _post(server, path, {}).json
    assert again["task"]["status"] == "in-progress"
    task = {**first.json["task"], "lease": None}
    assert again == {**first.json, "task": task, "expiresAt": None}


@proves("IDEM-OVER")
@pytest.mark.parametrize("to", ["cancelled", "review", "ready"])
def test_repeated_claim_has_no_token_after_attempt_ended(server: HubServer, to: str) -> None:
    server.post("/v1/tasks", {"title": "One", "ready": True, "id": "T-1"})
    path, body = "/v1/tasks/T-1/claim", {"agent": "ada"}
    first = _post(server, path, body, by="owner").json
    server.post("/v1/tasks/T-1/heartbeat", {}, by="ada")
    after_heartbeat = _post(server, path, body, by="owner").json
    for claim in (first, after_heartbeat):
        assert claim["expiresAt"] == claim["task"]["lease"]["expiresAt"]
        assert claim["token"].startswith("drga_")
    server.post("/v1/tasks/T-1/move", {"to": to})
    if to == "ready":
        server.post(path, {}, by="bob")
    after_end = _post(server, path, body, by="owner").json
    assert (after_end["fence"], after_end["expiresAt"], after_end["token"]) == (
        first["fence"],
        None,
        None,
    )
    assert after_end["task"]["lease"] is None


@proves("IDEM-REPEAT")
@pytest.mark.parametrize(
    ("operation", "fields"),
    [("ccos.delegate", {}), ("ccos.request", {"agent_id": "ada", "params": {}})],
)
def test_repeated_delegation_replays_first_response(
    server: HubServer, operation: str, fields: dict[str, Any]
) -> None:
    for agent in ("ada", "bob"):
        server.post("/v1/ccos/ccos.register", {"agent_id": agent, "skills": ["translate"]})
    due = to_rfc3339(server.clock.now() + 60_000)
    body = {"goal": "translate it", "intent_id": "i-1", "deadline": due, **fields}
    first = _post(server, f"/v1/ccos/{operation}", body, by="owner")
    assert first.json["request"]["agent_id"] == "ada"
    # By now another agent ranks first, and the request has ended and expired.
    failure = {"intent_id": "i-1", "agent_id": "ada", "success": False, "error": "no ink"}
    server.post("/v1/ccos/ccos.result", failure, by="ada")
    server.clock.advance(120_000)
    again = _post(server, f"/v1/ccos/{operation}", body, by="owner")
    assert (again.status, again.json) == (200, first.json)


@proves("IDEM-REPEAT")
def test_repeated_result_replays_first_outcome(server: HubServer) -> None:
    server.post("/v1/ccos/ccos.register", {"agent_id": "ada", "skills": ["translate"]})
    server.post("/v1/ccos/ccos.delegate", {"goal": "translate it", "intent_id": "i-1"})
    result = {"intent_id": "i-1", "agent_id": "ada", "success": False, "error": "no ink"}
    first = _post(server, "/v1/ccos/ccos.result", result)
    assert first.json["state"] == "NeedsFollowUp"
    server.post("/v1/tasks/i-1/move", {"to": "ready"})
    again = _post(server, "/v1/ccos/ccos.result", result)
    assert again.json == first.json | {"repeated": True}


@proves("IDEM-SCOPE")
def test_key_is_scoped_to_task_or_else_to_caller(server: HubServer) -> None:
    for name in ("T-1", "T-2"):
        server.post("/v1/tasks", {"title": "One", "id": name})
    note, later = {"text": "Hm."}, {"text": "Later."}
    for name in ("T-1", "T-2"):
        assert _post(server, f"/v1/tasks/{name}/note", note).json["notes"] == 1
    assert _post(server, "/v1/tasks", {"title": "Mine", "id": "T-3"}).status == 201
    assert _post(server, "/v1/tasks", {"title": "Mine", "id": "T-4"}, by="bob").status == 201
    reused = [
        _post(server, "/v1/tasks/T-1/note", later),
        _post(server, "/v1/tasks/T-1/note", note, by="bob"),
        _post(server, "/v1/tasks/T-1/update", {"progress": "Half."}),
        _post(server, "/v1/tasks", {"title": "Another"}),
        _post(server, "/v1/work", {}),
    ]
    assert [(response.status, response.code) for response in reused] == [(422, "key_reused")] * len(
        reused
    )
