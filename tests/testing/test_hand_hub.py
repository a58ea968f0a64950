"""The manual hub for tests of agents: the same behaviour in memory and on SQLite."""

from typing import Any, Literal, cast

import pytest

from dragoman.core.task_state import CreateTask
from dragoman.core.trace import RecordTurn
from dragoman.testing import Refused, hand_hub
from tests.requirements import proves

pytestmark = proves("TESTING-HUB")

StoreKind = Literal["memory", "sqlite"]


@pytest.fixture(params=["memory", "sqlite"])
def store_kind(request: pytest.FixtureRequest) -> StoreKind:
    return request.param


def test_time_advances_only_on_request_and_services_run_only_on_tick(store_kind: StoreKind) -> None:
    with hand_hub(store_kind) as hub:
        work = hub.claim(hub.create("one"), agent="ada")
        hub.advance(minutes=5)
        assert hub.task(work.task).status == "in-progress"
        hub.tick()
        assert hub.task(work.task).status == "ready"


def test_restart_keeps_stored_state(store_kind: StoreKind) -> None:
    with hand_hub(store_kind) as hub:
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


def test_refusals_are_raised_with_their_code(store_kind: StoreKind) -> None:
    with hand_hub(store_kind) as hub:
        with pytest.raises(Refused) as caught:
            hub.claim(agent="ada")
        assert caught.value.code == "nothing_ready"
        with pytest.raises(Refused, match="task_not_found"):
            hub.task("nobody")


def test_unknown_outcome_is_refused(store_kind: StoreKind) -> None:
    with hand_hub(store_kind) as hub:
        work = hub.claim(hub.create("one"), agent="ada")
        with pytest.raises(Refused, match="outcome 'bogus' is not one of done") as caught:
            work.report(cast(Any, "bogus"))
        assert caught.value.code == "invalid_field"
        assert hub.verify() == []


def test_same_test_gives_the_same_ledger(store_kind: StoreKind) -> None:
    def record_history() -> list[object]:
        with hand_hub(store_kind) as hub:
            hub.do(CreateTask("born elsewhere", id="x", aliases=("bead:ol-1",)), key="k")
            hub.move("ol-1", "ready")
            hub.claim(agent="ada").finish("failed", notes="no luck")
            hub.advance(seconds=1)
            hub.tick()
            hub.claim(agent="ben").finish()
            return [*hub.history()]

    assert record_history() == record_history()


def test_unknown_store_is_refused() -> None:
    with pytest.raises(ValueError, match="memory or sqlite, not in 'postgres'"):
        hand_hub(cast(StoreKind, "postgres")).__enter__()


@proves("HAND-HUB-DUTIES")
def test_tick_escalates_entropy(store_kind: StoreKind) -> None:
    with hand_hub(store_kind) as hub:
        work = hub.claim(hub.create("One"), agent="developer")
        for index in range(12):
            confidence = 0.9 - index / 20
            envelope: dict[str, object] = {
                "content": {"action": f"{index}", "observation": "fine"},
                "metadata": {"confidence": confidence},
            }
            turn = RecordTurn(work.task, index, "developer", confidence, envelope, f"{index}")
            hub.do(turn, agent="developer")
        hub.tick()
        assert "entropy.escalated" in {line.event for line in hub.history()}
