"""Paths of invalid fields in problem documents, for refusals of the core too."""

from typing import Any

import pytest

from dragoman.core.task_state import CreateTask
from tests.requirements import proves
from tests.surfaces.http.hub_server import HubServer

pytestmark = proves("HTTP-PROBLEMS")


@pytest.mark.parametrize(
    ("address", "body", "path"),
    [
        ("/v1/tasks", {"title": "x", "assignee": "a b"}, "assignee"),
        ("/v1/tasks", {"title": "x", "aliases": ["no"]}, "aliases"),
        ("/v1/tasks", {"title": "x", "parent": "a b"}, "parent"),
        ("/v1/tasks/T/claim", {"agent": "a b"}, "agent"),
        ("/v1/tasks/T/claim", {"session": "a b"}, "session"),
        ("/v1/tasks/T/link", {"blocked_by": ["a b"]}, "blocked_by"),
        ("/v1/tasks/T/link", {"parent": "a b"}, "parent"),
        ("/v1/tasks/T/link", {"aliases": ["bead:a b"]}, "aliases"),
    ],
)
def test_malformed_name_is_refused_with_its_field(
    server: HubServer, address: str, body: dict[str, Any], path: str
) -> None:
    server.submit(CreateTask("One", "T", ready=True))

    response = server.request("POST", address, body)

    assert (response.status, response.code) == (422, "invalid_id")
    assert response.json["path"].startswith(path)


MAIL: dict[str, Any] = {"to": ["ada"], "subject": "s", "body_md": "b"}
WAVE: dict[str, Any] = {"beads": ["b-1"], "parallel": 1}
FILES: dict[str, Any] = {"patterns": ["src/"]}


WRONG: list[tuple[str, dict[str, Any], str]] = [
    ("reserve.take", {"patterns": []}, "patterns"),
    ("reserve.take", {"patterns": ["ok", "../no"]}, "patterns"),
    ("reserve.take", {"patterns": [f"{number}" for number in range(5_000)]}, "patterns"),
    ("reserve.take", FILES | {"ttl_ms": 1}, "ttl_ms"),
    ("reserve.take", FILES | {"reason": "x" * 5_000}, "reason"),
    ("reserve.release", {"names": ["nope"]}, "names"),
    ("wave.start", WAVE | {"beads": []}, "beads"),
    ("wave.start", WAVE | {"beads": ["ok", "a b"]}, "beads[1]"),
    ("wave.start", WAVE | {"beads": ["ok", "ok"]}, "beads"),
    ("wave.start", WAVE | {"beads": [{"id": "ok", "files": ["../no"]}]}, "beads"),
    ("wave.start", WAVE | {"parallel": 0}, "parallel"),
    ("wave.start", WAVE | {"wave_id": "a b"}, "wave_id"),
    ("wave.start", WAVE | {"orchestrator": "a b"}, "orchestrator"),
    ("wave.start", WAVE | {"retries": {"TESTS_FAIL": 10_000}}, "retries"),
    ("mail.send", MAIL | {"to": ["a b"]}, "to"),
    ("mail.send", MAIL | {"cc": ["a b"]}, "cc"),
    ("mail.send", MAIL | {"id": "a b"}, "id"),
    ("mail.send", MAIL | {"thread_id": "a b"}, "thread_id"),
    ("mail.send", MAIL | {"subject": "x" * 5_000}, "subject"),
    ("mail.send", MAIL | {"attachments": ["ok", "x" * 5_000]}, "attachments[1]"),
]


@pytest.mark.parametrize(("operation", "body", "path"), WRONG)
def test_refusal_of_mail_wave_or_reservation_names_its_field(
    server: HubServer, operation: str, body: dict[str, Any], path: str
) -> None:
    server.submit(CreateTask("One", "T", ready=True))

    response = server.request("POST", f"/v1/agentmail/{operation}", body)

    assert response.status in (404, 409, 422)
    assert response.json["path"] == path


def test_conflicting_value_is_refused_with_its_field(server: HubServer) -> None:
    server.submit(CreateTask("One", "T", ready=True, aliases=("bead:b-1",)))
    requests = [
        ("/v1/tasks", {"title": "x", "id": "T"}, "id"),
        ("/v1/tasks", {"title": "x", "aliases": ["bead:b-1"]}, "aliases"),
        ("/v1/tasks/T/claim", {"agent": "hub"}, "agent"),
        ("/v1/agentmail/mail.send", MAIL | {"id": "m-1", "subject": "another"}, "id"),
        ("/v1/agentmail/wave.start", WAVE | {"wave_id": "w-1", "parallel": 2}, "wave_id"),
        ("/v1/agentmail/wave.start", WAVE, "beads"),
        ("/v1/agentmail/reserve.take", {"patterns": ["**"]}, "patterns"),
    ]
    server.post("/v1/agentmail/mail.send", MAIL | {"id": "m-1"})
    server.post("/v1/agentmail/wave.start", WAVE | {"wave_id": "w-1"})
    server.add_agent("ada")
    server.post("/v1/agentmail/reserve.take", FILES, by="ada")
    for address, body, path in requests:
        response = server.request("POST", address, body)
        assert (response.status, response.json["path"]) == (403 if path == "agent" else 409, path)


def test_link_cycle_is_refused_with_its_field(server: HubServer) -> None:
    for name in ("T", "U"):
        server.submit(CreateTask("One", name))
    links: list[tuple[str, Any, Any]] = [("parent", "U", "T"), ("blocked_by", ["U"], ["T"])]
    for field, forward, back in links:
        server.post("/v1/tasks/T/link", {field: forward})
        response = server.request("POST", "/v1/tasks/U/link", {field: back})
        assert (response.code, response.json["path"]) == ("link_cycle", field)
