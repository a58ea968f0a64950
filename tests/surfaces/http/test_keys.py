"""`Idempotency-Key`: a repeat is answered as the first time was; for what a key counts."""

from typing import Any

import pytest

from dragoman.core.moments import to_rfc3339
from tests.requirements import proves
from tests.surfaces.http.house import Answer, House


def _ask(house: House, path: str, body: Any, key: str = "k", by: str = "ada") -> Answer:
    return house.ask("POST", path, body, by=by, headers={"Idempotency-Key": key})


def _told(answer: Answer) -> Any:
    """What an answer says, without the signs of life of a lease that goes on."""
    said = answer.json
    lease = said.get("task", said)["lease"]
    return said if lease is None else lease.pop("beats") and said


@proves("IDEM-REPEAT")
def test_a_creation_that_is_repeated_is_answered_as_before_whatever_has_become_of_it(
    house: House,
) -> None:
    new = {"title": "One", "ready": True, "id": "T-1"}
    first = _ask(house, "/v1/tasks", new)
    assert (first.status, first.json["status"]) == (201, "ready")
    house.post("/v1/tasks/T-1/claim", {}, by="bob")
    house.post("/v1/tasks/T-1/report", {"outcome": "done"}, by="bob")
    again = _ask(house, "/v1/tasks", new)
    assert (again.status, again.body) == (first.status, first.body)
    assert again.headers["location"] == "/v1/tasks/T-1"
    assert house.get("/v1/tasks/T-1")["status"] != "ready"


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
def test_an_action_that_is_repeated_shows_its_task_as_it_left_it(
    house: House, action: str, body: Any
) -> None:
    house.post("/v1/tasks", {"title": "One", "ready": True, "id": "T-1"})
    house.post("/v1/tasks/T-1/claim", {}, by="ada")
    first = _ask(house, f"/v1/tasks/T-1/{action}", body)
    # What comes after it, by whomever, is not its answer; the lease goes on.
    house.post("/v1/tasks/T-1/note", {"text": "Later."})
    again = _ask(house, f"/v1/tasks/T-1/{action}", body)
    assert (again.status, _told(again)) == (200, _told(first))


@proves("IDEM-REPEAT")
@pytest.mark.parametrize("path", ["/v1/tasks/T-1/claim", "/v1/work"])
def test_a_claim_that_is_repeated_shows_what_was_taken(house: House, path: str) -> None:
    house.post("/v1/tasks", {"title": "One", "ready": True, "id": "T-1"})
    first = _ask(house, path, {})
    house.post("/v1/tasks/T-1/note", {"text": "Begun."}, by="ada")
    assert _told(_ask(house, path, {})) == _told(first)
    house.post("/v1/tasks/T-1/release", {}, by="ada")
    again = _ask(house, path, {}).json
    assert again["task"]["status"] == "in-progress"
    task = {**first.json["task"], "lease": None}
    assert again == {**first.json, "task": task, "expiresAt": None}


@proves("IDEM-OVER")
@pytest.mark.parametrize("to", ["cancelled", "review", "ready"])
def test_a_claim_that_is_repeated_gives_no_token_of_an_attempt_that_is_over(
    house: House, to: str
) -> None:
    house.post("/v1/tasks", {"title": "One", "ready": True, "id": "T-1"})
    path, asked = "/v1/tasks/T-1/claim", {"agent": "ada"}
    first = _ask(house, path, asked, by="owner").json
    house.post("/v1/tasks/T-1/heartbeat", {}, by="ada")
    alive = _ask(house, path, asked, by="owner").json
    for one in (first, alive):
        assert one["expiresAt"] == one["task"]["lease"]["expiresAt"]
        assert one["token"].startswith("drga_")
    house.post("/v1/tasks/T-1/move", {"to": to})
    if to == "ready":
        house.post(path, {}, by="bob")
    over = _ask(house, path, asked, by="owner").json
    assert (over["fence"], over["expiresAt"], over["token"]) == (first["fence"], None, None)
    assert over["task"]["lease"] is None


@proves("IDEM-REPEAT")
@pytest.mark.parametrize(
    ("operation", "more"),
    [("ccos.delegate", {}), ("ccos.request", {"agent_id": "ada", "params": {}})],
)
def test_a_delegation_that_is_repeated_is_answered_as_before(
    house: House, operation: str, more: dict[str, Any]
) -> None:
    for agent in ("ada", "bob"):
        house.post("/v1/ccos/ccos.register", {"agent_id": agent, "skills": ["translate"]})
    due = to_rfc3339(house.clock.now() + 60_000)
    asked = {"goal": "translate it", "intent_id": "i-1", "deadline": due, **more}
    first = _ask(house, f"/v1/ccos/{operation}", asked, by="owner")
    assert first.json["request"]["agent_id"] == "ada"
    # Others are ranked first by now, the request is over, and so is its time.
    failure = {"intent_id": "i-1", "agent_id": "ada", "success": False, "error": "no ink"}
    house.post("/v1/ccos/ccos.result", failure, by="ada")
    house.clock.advance(120_000)
    again = _ask(house, f"/v1/ccos/{operation}", asked, by="owner")
    assert (again.status, again.json) == (200, first.json)


@proves("IDEM-REPEAT")
def test_a_result_that_is_repeated_says_what_came_of_it_then(house: House) -> None:
    house.post("/v1/ccos/ccos.register", {"agent_id": "ada", "skills": ["translate"]})
    house.post("/v1/ccos/ccos.delegate", {"goal": "translate it", "intent_id": "i-1"})
    said = {"intent_id": "i-1", "agent_id": "ada", "success": False, "error": "no ink"}
    first = _ask(house, "/v1/ccos/ccos.result", said)
    assert first.json["state"] == "NeedsFollowUp"
    house.post("/v1/tasks/i-1/move", {"to": "ready"})
    again = _ask(house, "/v1/ccos/ccos.result", said)
    assert again.json == first.json | {"repeated": True}


@proves("IDEM-SCOPE")
def test_a_key_counts_for_a_task_or_where_there_is_none_for_its_caller(house: House) -> None:
    for name in ("T-1", "T-2"):
        house.post("/v1/tasks", {"title": "One", "id": name})
    note, later = {"text": "Hm."}, {"text": "Later."}
    for name in ("T-1", "T-2"):
        assert _ask(house, f"/v1/tasks/{name}/note", note).json["notes"] == 1
    assert _ask(house, "/v1/tasks", {"title": "Mine", "id": "T-3"}).status == 201
    assert _ask(house, "/v1/tasks", {"title": "Mine", "id": "T-4"}, by="bob").status == 201
    reused = [
        _ask(house, "/v1/tasks/T-1/note", later),
        _ask(house, "/v1/tasks/T-1/note", note, by="bob"),
        _ask(house, "/v1/tasks/T-1/update", {"progress": "Half."}),
        _ask(house, "/v1/tasks", {"title": "Another"}),
        _ask(house, "/v1/work", {}),
    ]
    assert [(one.status, one.code) for one in reused] == [(422, "key_reused")] * len(reused)
