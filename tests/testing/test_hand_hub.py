"""The hub for people who test their agents: the same story in memory and on SQLite."""

from typing import Any, Literal, cast

import pytest

from dragoman.core.commands import CreateTask, RecordTurn
from dragoman.testing import Refused, hand_hub
from tests.requirements import proves

pytestmark = proves("TESTING-HUB")

Kind = Literal["memory", "sqlite"]


@pytest.fixture(params=["memory", "sqlite"])
def kind(request: pytest.FixtureRequest) -> Kind:
    return request.param


def test_time_passes_only_by_hand_and_duties_run_only_on_tick(kind: Kind) -> None:
    with hand_hub(kind) as hub:
        work = hub.claim(hub.create("one"), agent="ada")
        hub.advance(minutes=5)
        assert hub.task(work.task).status == "in-progress"
        hub.tick()
        assert hub.task(work.task).status == "ready"


def test_a_restart_keeps_what_was_stored(kind: Kind) -> None:
    with hand_hub(kind) as hub:
        work = hub.claim(hub.create("one"), agent="ada")
        work.note("half way")
        hub.restart()
        work.heartbeat()
        work.release("changed my mind")
        assert hub.task(work.task).status == "ready"
        assert [line.event for line in hub.history()] == [
            "task.created",
            "task.claimed",
            "task.noted",
            "task.transitioned",
        ]
        assert hub.verify() == []


def test_refusals_are_raised_with_their_code(kind: Kind) -> None:
    with hand_hub(kind) as hub:
        with pytest.raises(Refused) as caught:
            hub.claim(agent="ada")
        assert caught.value.code == "nothing_ready"
        with pytest.raises(Refused, match="task_not_found"):
            hub.task("nobody")


def test_an_outcome_that_is_none_is_refused(kind: Kind) -> None:
    with hand_hub(kind) as hub:
        work = hub.claim(hub.create("one"), agent="ada")
        with pytest.raises(Refused, match="outcome 'bogus' is not one of done") as caught:
            work.report(cast(Any, "bogus"))
        assert caught.value.code == "invalid_field"
        assert hub.verify() == []


def test_the_same_test_gives_the_same_ledger_twice(kind: Kind) -> None:
    def story() -> list[object]:
        with hand_hub(kind) as hub:
            hub.do(CreateTask("born elsewhere", id="x", aliases=("bead:ol-1",)), key="k")
            hub.move("ol-1", "ready")
            hub.claim(agent="ada").finish("failed", notes="no luck")
            hub.advance(seconds=1)
            hub.tick()
            hub.claim(agent="ben").finish()
            return [*hub.history()]

    assert story() == story()


def test_a_store_that_it_does_not_have_is_named() -> None:
    with pytest.raises(ValueError, match="memory or sqlite, not in 'postgres'"):
        hand_hub(cast(Kind, "postgres")).__enter__()


@proves("HAND-HUB-DUTIES")
def test_a_tick_tells_that_an_agent_is_losing_its_way(kind: Kind) -> None:
    with hand_hub(kind) as hub:
        work = hub.claim(hub.create("One"), agent="developer")
        for index in range(12):
            confidence = 0.9 - index / 20
            envelope: dict[str, object] = {
                "content": {"action": f"{index}", "observation": "fine"},
                "metadata": {"confidence": confidence},
            }
            shown = RecordTurn(work.task, index, "developer", confidence, envelope, f"{index}")
            hub.do(shown, agent="developer")
        hub.tick()
        assert "entropy.escalated" in {line.event for line in hub.history()}
