"""The field that is wrong is named, also where only the core knows what is wrong with it."""

from typing import Any

import pytest

from dragoman.core.commands import CreateTask
from tests.requirements import proves
from tests.surfaces.http.house import House

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
def test_a_malformed_name_is_told_with_its_field(
    house: House, address: str, body: dict[str, Any], path: str
) -> None:
    house.do(CreateTask("One", "T", ready=True))

    answer = house.ask("POST", address, body)

    assert (answer.status, answer.code) == (422, "invalid_id")
    assert answer.json["path"].startswith(path)


def test_a_link_that_leads_back_is_told_with_its_field(house: House) -> None:
    for name in ("T", "U"):
        house.do(CreateTask("One", name))
    ways: list[tuple[str, Any, Any]] = [("parent", "U", "T"), ("blocked_by", ["U"], ["T"])]
    for field, there, back in ways:
        house.post("/v1/tasks/T/link", {field: there})
        answer = house.ask("POST", "/v1/tasks/U/link", {field: back})
        assert (answer.code, answer.json["path"]) == ("link_cycle", field)
