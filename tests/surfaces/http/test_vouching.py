"""Who gets the token of an attempt that it claims for another."""

import pytest

from dragoman.core.commands import CreateTask
from dragoman.core.events import Role
from tests.requirements import proves
from tests.surfaces.http.house import House

pytestmark = proves("ROLE-OWN-GATE")


@pytest.mark.parametrize(
    ("by", "agent", "gets"),
    [
        ("boss", "ada", True),
        ("boss", "nobody-knows", True),
        ("boss", "pat", False),
        ("boss", "cora", False),
        ("boss", "boss", False),
        ("ada", "ada", False),
        ("owner", "pat", True),
        ("owner", "ada", True),
    ],
)
def test_only_who_may_vouch_for_it_gets_one(
    house: House, by: str, agent: str, *, gets: bool
) -> None:
    others: dict[str, Role] = {"boss": "orchestrator", "pat": "human", "cora": "coordinator"}
    for name, role in others.items():
        house.welcome(name, role)
    task = house.do(CreateTask("Mend it", ready=True))
    claimed = house.ask("POST", f"/v1/tasks/{task}/claim", {"agent": agent}, by=by)
    assert (claimed.status, claimed.json["token"] is not None) == (200, gets)


def test_an_orchestrator_cannot_finish_and_approve_in_another_s_name(house: House) -> None:
    house.welcome("boss", "orchestrator")
    task = house.do(CreateTask("Mend it", ready=True))
    claimed = house.ask("POST", f"/v1/tasks/{task}/claim", {"agent": "ada"}, by="boss")
    house.tokens["as-ada"] = claimed.json["token"]
    done = house.ask("POST", f"/v1/tasks/{task}/report", {"outcome": "done"}, by="as-ada")
    assert done.json["status"] == "review"
    approved = house.ask("POST", f"/v1/tasks/{task}/move", {"to": "done"}, by="boss")
    assert approved.code == "not_authorized"
    assert house.ask("POST", f"/v1/tasks/{task}/move", {"to": "done"}).status == 200


@pytest.mark.parametrize("path", ["/v1/work", "/v1/tasks/T/claim"])
@pytest.mark.parametrize("by", ["owner", "boss"])
def test_nobody_gives_work_to_who_may_only_read(house: House, path: str, by: str) -> None:
    house.welcome("boss", "orchestrator")
    house.welcome("otto", "observer")
    house.do(CreateTask("Mend it", "T", ready=True))
    assert house.ask("POST", path, {"agent": "otto"}, by=by).code == "not_authorized"
    assert house.ask("GET", "/v1/tasks/T").json["status"] == "ready"


def test_whoever_was_made_an_observer_acts_by_no_token_of_an_attempt(house: House) -> None:
    house.do(CreateTask("Mend it", "T", ready=True))
    claimed = house.ask("POST", "/v1/work", {"agent": "ada"})
    house.tokens["as-ada"] = claimed.json["token"]
    house.welcome("ada", "observer")
    assert house.ask("GET", "/v1/tasks/T", by="as-ada").status == 200
    for path, said in (
        ("/v1/tasks/T/report", {"outcome": "done"}),
        ("/v1/tasks/T/heartbeat", {}),
        ("/v1/tasks/T/release", {}),
    ):
        assert house.ask("POST", path, said, by="as-ada").code == "not_authorized"
