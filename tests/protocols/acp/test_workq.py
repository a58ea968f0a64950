"""The work queue: items with an owner, handed on with a handoff and never holding it up."""

from pathlib import Path
from typing import Any

import pytest

from dragoman.core.actors import Actor
from dragoman.core.errors import StoreUnavailable
from dragoman.core.states.handoff_items import items_of
from dragoman.engine.handoff_diagnosis import look_at
from dragoman.engine.workq import ItemState, Moved
from dragoman.services.handing_on import GRACE_MS, HandingOn
from dragoman.services.workq import HubWorkq
from tests.protocols.acp.desk import ALICE, BOB, CAROL, COORDINATOR, OBSERVER, Desk, offer
from tests.requirements import proves

pytestmark = proves("ACP-WORKQ")


def with_items(*items: str, **more: Any) -> dict[str, Any]:
    """An offer whose task refers to items."""
    said = offer(**more)
    refs = [{"type": "workq_item", "value": item} for item in items]
    said["task"] = {**said["task"], "external_refs": [*refs, {"type": "pr", "value": "7"}]}
    return said


def begun(desk: Desk, said: dict[str, Any]) -> Any:
    """What activate answers, at the end of the way there."""
    id = desk.say(said, ALICE)["handoff_id"]
    assert desk.do("accept", id, BOB)["success"]
    return desk.do("activate", id, BOB)


def item(desk: Desk, id: str = "wq-1", **more: Any) -> Any:
    return desk.say({"item_id": id, **more}, ALICE, "workq.get")


def test_an_item_is_created_claimed_released_and_found(desk: Desk) -> None:
    made = desk.say({"item_id": "workq:wq-1", "title": "Login"}, ALICE, "workq.create")
    assert (made["success"], made["item_id"], made["status"], made["owner"]) == (
        True,
        "wq-1",
        "open",
        None,
    )
    taken = desk.say({"item_id": "wq-1"}, ALICE, "workq.claim")
    assert (taken["status"], taken["owner"]) == ("claimed", "alice")
    assert desk.code({"item_id": "wq-1"}, BOB, "workq.claim") == "already_claimed"
    assert desk.code({"item_id": "wq-1"}, BOB, "workq.release") == "not_authorized"
    assert desk.say({"item_id": "wq-1"}, ALICE, "workq.release")["status"] == "open"
    named = desk.say({"title": "Without a name"}, ALICE, "workq.create")
    assert item(desk, named["item_id"])["title"] == "Without a name"
    assert desk.code({"item_id": "gone"}, ALICE, "workq.get") == "not_found"
    assert desk.code({"item_id": "a b"}, ALICE, "workq.get") == "invalid_id"
    assert desk.code({"item_id": "gone"}, ALICE, "workq.claim") == "not_found"
    assert desk.code({"id": "x"}, ALICE, "workq.claim") == "schema_invalid"
    assert desk.code({"item_id": "wq-1"}, OBSERVER, "workq.claim") == "not_authorized"


def test_an_item_changes_hands_with_its_handoff(desk: Desk) -> None:
    desk.say({"item_id": "wq-1"}, ALICE, "workq.create")
    desk.say({"item_id": "wq-1"}, ALICE, "workq.claim")
    reply = begun(desk, with_items("workq:wq-1"))
    assert reply["metadata"]["workq_status"] == "transferred"
    assert item(desk)["owner"] == "bob"
    assert desk.handoff(reply["handoff_id"]).workq == "transferred"
    assert desk.do("activate", reply["handoff_id"], BOB) == reply


def test_items_may_be_artifacts_too(desk: Desk) -> None:
    desk.say({"item_id": "wq-1"}, ALICE, "workq.create")
    ref = {"artifact_id": "w", "ref": {"type": "workq_item", "path": "workq:wq-1"}}
    reply = begun(desk, offer(artifacts=[ref]))
    assert reply["metadata"]["workq_status"] == "transferred"
    assert item(desk)["owner"] == "bob"


def test_without_an_item_or_without_such_an_item_it_is_not_applicable(desk: Desk) -> None:
    assert begun(desk, offer())["metadata"]["workq_status"] == "not_applicable"
    gone = begun(desk, with_items("workq:gone", "workq:a b", task="t-2"))
    assert (gone["success"], gone["metadata"]["workq_status"]) == (True, "not_applicable")
    first, second = gone["metadata"]["workq_items"]
    assert first.startswith("gone: missing, the work queue has no item gone: ")
    assert second.startswith("a b: missing, ")
    assert desk.do("activate", gone["handoff_id"], BOB) == gone


def test_an_item_of_a_third_stays_where_it_is_and_the_handoff_goes_on(desk: Desk) -> None:
    desk.say({"item_id": "wq-1"}, CAROL, "workq.create")
    desk.say({"item_id": "wq-1"}, CAROL, "workq.claim")
    reply = begun(desk, with_items("wq-1"))
    assert (reply["success"], reply["status"]) == (True, "activated")
    assert reply["metadata"]["workq_status"] == "degraded"
    assert item(desk)["owner"] == "carol"
    (note,) = [n for n in desk.handoff(reply["handoff_id"]).notes if n.kind == "workq_integration"]
    assert (note.text, note.data["items"]) == (
        "degraded",
        {"wq-1": {"outcome": "refused", "detail": "wq-1 is carol's"}},
    )


class Outside:
    """A work queue elsewhere that answers what it is told to."""

    def __init__(self, moved: Moved) -> None:
        self.moved = moved
        self.asked: list[tuple[str, str, str]] = []

    def transfer_ownership(self, item: str, sender: str, recipient: str) -> Moved:
        """Note down what was asked for."""
        self.asked.append((item, sender, recipient))
        return self.moved

    def item_exists(self, item: str) -> bool | None:
        """Nobody can say."""
        del item
        return None

    def item_status(self, item: str) -> ItemState | None:
        """Nobody can say."""
        del item
        return None


def test_a_queue_that_does_not_answer_leaves_an_orphan_for_somebody_to_claim(
    tmp_path: Path,
) -> None:
    outside = Outside(Moved("unavailable", "no answer"))
    desk = Desk(tmp_path, workq=outside)
    reply = begun(desk, with_items("workq:far-1"))
    assert (reply["success"], reply["metadata"]["workq_status"]) == (True, "degraded")
    assert outside.asked == [("far-1", "alice", "bob")]
    assert item(desk, "far-1")["status"] == "orphaned"
    claimed = desk.say({"item_id": "far-1"}, BOB, "workq.claim")
    assert (claimed["status"], claimed["owner"]) == ("claimed", "bob")


@pytest.mark.parametrize("outcome", ["transferred", "missing", "refused"])
def test_what_a_queue_outside_says_is_what_the_caller_is_told(tmp_path: Path, outcome: Any) -> None:
    desk = Desk(tmp_path, workq=Outside(Moved(outcome)))
    reply = begun(desk, with_items("workq:far-1"))
    told = {"transferred": "transferred", "missing": "not_applicable", "refused": "degraded"}
    assert reply["metadata"]["workq_status"] == told[outcome]
    assert desk.code({"item_id": "far-1"}, ALICE, "workq.get") == "not_found"


class Far(Outside):
    """A work queue elsewhere with items of its own."""

    def __init__(self, moved: Moved, *items: ItemState, answers: bool = True) -> None:
        super().__init__(moved)
        self.items = {one.item_id: one for one in items}
        self.answers = answers

    def transfer_ownership(self, item: str, sender: str, recipient: str) -> Moved:
        """As it is told to, but only of what there is."""
        moved = super().transfer_ownership(item, sender, recipient)
        if moved.outcome == "transferred" and item not in self.items:
            return Moved("missing")
        if moved.outcome == "transferred":
            self.items[item] = ItemState(item, "claimed", recipient)
        return moved

    def item_exists(self, item: str) -> bool | None:
        """Unless it is silent."""
        return item in self.items if self.answers else None

    def item_status(self, item: str) -> ItemState | None:
        """Unless it is silent."""
        return self.items.get(item) if self.answers else None


def far_desk(path: Path, far: Far) -> Desk:
    return Desk(path, workq=far, has_own_workq=False)


def missed(desk: Desk, id: str) -> list[str]:
    """What a diagnosis finds of items that are not where the work is."""
    handoff = desk.handoff(id)
    told = look_at(
        desk.lab.store, handoff, desk.lab.clock.now(), outlook=desk.door.outlook(handoff)
    )
    return [one for one in told.findings if "work queue" in one]


def test_the_operations_are_about_the_queue_that_there_is(tmp_path: Path) -> None:
    far = Far(Moved("transferred"), ItemState("far-1", "open"))
    desk = far_desk(tmp_path, far)
    assert item(desk, "workq:far-1") == {
        "success": True,
        "item_id": "far-1",
        "status": "open",
        "owner": None,
    }
    taken = desk.say({"item_id": "workq:far-1"}, ALICE, "workq.claim")
    assert (taken["success"], taken["owner"]) == (True, "alice")
    assert far.asked == [("far-1", "alice", "alice")]
    assert item(desk, "far-1")["owner"] == "alice"
    to_bob = {"item_id": "far-1", "owner": "bob"}
    assert desk.code(to_bob, CAROL, "workq.claim") == "not_authorized"
    assert desk.code(to_bob, ALICE, "workq.claim") == ""
    assert desk.code({**to_bob, "owner": "dan"}, COORDINATOR, "workq.claim") == ""
    assert far.asked[1:] == [("far-1", "alice", "bob"), ("far-1", "bob", "dan")]
    for operation, code in (("get", "not_found"), ("claim", "not_found")):
        assert desk.code({"item_id": "gone"}, ALICE, f"workq.{operation}") == code
        assert desk.code({"item_id": "a b"}, ALICE, f"workq.{operation}") == "invalid_id"
    for operation in ("create", "release"):
        said = desk.say({"item_id": "far-1"}, ALICE, f"workq.{operation}")
        assert said["error"]["code"] == "policy_violation"
        assert "[workq] url" in said["error"]["detail"]
    assert desk.code({"item_id": "far-1"}, OBSERVER, "workq.claim") == "not_authorized"
    attempt = Actor("agent", "alice", task="t-1", fence=1)
    assert desk.code({"item_id": "far-1"}, attempt, "workq.claim") == "not_authorized"
    assert len(far.asked) == 4, "of which the last was about what there is not"


def test_a_no_of_the_queue_outside_is_told(tmp_path: Path) -> None:
    desk = far_desk(tmp_path, Far(Moved("refused", "it is dan's"), ItemState("far-1", "claimed")))
    no = desk.say({"item_id": "far-1"}, ALICE, "workq.claim")["error"]
    assert (no["code"], "it is dan's" in no["detail"]) == ("already_claimed", True)


def test_where_the_queue_outside_is_silent_the_hub_s_copy_counts(tmp_path: Path) -> None:
    far = Far(Moved("unavailable", "no answer"), answers=False)
    desk = far_desk(tmp_path, far)
    for operation in ("get", "claim"):
        assert desk.code({"item_id": "far-1"}, BOB, f"workq.{operation}") == "try_again"
    begun(desk, with_items("workq:far-1"))
    seen = item(desk, "far-1")
    assert (seen["status"], seen["metadata"]) == ("orphaned", {"workq_status": "degraded"})
    taken = desk.say({"item_id": "far-1"}, BOB, "workq.claim")
    assert (taken["owner"], taken["metadata"]) == ("bob", {"workq_status": "degraded"})
    assert desk.say({"item_id": "far-1"}, BOB, "workq.release")["status"] == "open"


def test_where_the_queue_outside_answers_again_the_hub_s_copy_does_not_count(
    tmp_path: Path,
) -> None:
    far = Far(Moved("unavailable", "no answer"), answers=False)
    desk = far_desk(tmp_path, far)
    id = begun(desk, with_items("workq:far-1"))["handoff_id"]
    assert desk.code({"item_id": "far-1"}, BOB, "workq.claim") == ""
    assert missed(desk, id) == []
    far.answers, far.moved = True, Moved("missing")
    for operation in ("get", "claim"):
        no = desk.say({"item_id": "far-1"}, BOB, f"workq.{operation}")["error"]
        assert no["code"] == "not_found"
        assert "outside that [workq] url names has no item far-1: it is made there" in no["detail"]
    (left,) = missed(desk, id)
    assert ": far-1: unavailable" in left
    assert desk.code({"item_id": "far-1"}, BOB, "workq.release") == "policy_violation"
    far.items["far-1"] = ItemState("far-1", "claimed", "dan")
    assert item(desk, "far-1")["owner"] == "dan"
    assert len(missed(desk, id)) == 1
    assert desk.code({"item_id": "far-1"}, BOB, "workq.release") == "policy_violation"


def test_what_was_brought_to_the_work_outside_is_not_missed_any_more(tmp_path: Path) -> None:
    far = Far(Moved("unavailable", "no answer"), ItemState("far-1", "open"), answers=False)
    desk = far_desk(tmp_path, far)
    id = begun(desk, with_items("far-1", "far-2"))["handoff_id"]
    assert len(missed(desk, id)) == 2
    far.answers, far.moved = True, Moved("transferred")
    assert desk.code({"item_id": "far-1"}, BOB, "workq.claim") == ""
    (left,) = missed(desk, id)
    assert ": far-2: unavailable" in left


def test_a_diagnosis_asks_only_for_what_did_not_go_along(tmp_path: Path) -> None:
    far = Far(Moved("transferred"), ItemState("far-1", "open"))
    desk = far_desk(tmp_path, far)
    id = begun(desk, with_items("far-1", "far-2"))["handoff_id"]
    del far.items["far-1"]
    (left,) = missed(desk, id)
    assert ": far-2: missing" in left


def test_without_any_queue_it_is_not_applicable(tmp_path: Path) -> None:
    desk = Desk(tmp_path, workq=None)
    assert begun(desk, with_items("wq-1"))["metadata"]["workq_status"] == "not_applicable"


def test_the_hub_s_own_queue_by_its_interface(desk: Desk) -> None:
    queue = HubWorkq(desk.lab.hub)
    assert (queue.item_exists("wq-1"), queue.item_status("wq-1")) == (False, None)
    desk.say({"item_id": "wq-1"}, ALICE, "workq.create")
    assert queue.item_exists("wq-1")
    assert queue.transfer_ownership("wq-1", "alice", "bob") == Moved("transferred")
    assert queue.item_status("wq-1") == ItemState("wq-1", "claimed", "bob")
    assert queue.transfer_ownership("gone", "alice", "bob").outcome == "missing"
    desk.lab.store.faults = [StoreUnavailable("no disk")] * 3
    assert queue.transfer_ownership("wq-1", "bob", "carol").outcome == "unavailable"
    desk.lab.store.faults.clear()


def test_whoever_runs_the_show_may_give_items(desk: Desk) -> None:
    desk.say({"item_id": "wq-1"}, ALICE, "workq.create")
    given = desk.say({"item_id": "wq-1", "owner": "carol"}, COORDINATOR, "workq.claim")
    assert given["owner"] == "carol"
    assert desk.code({"item_id": "wq-1", "owner": "bob"}, ALICE, "workq.claim") == "not_authorized"


def owned(desk: Desk, id: str = "wq-1", by: Actor = ALICE) -> None:
    """An item that somebody has."""
    desk.say({"item_id": id}, by, "workq.create")
    desk.say({"item_id": id}, by, "workq.claim")


def test_an_item_comes_back_with_work_that_is_given_back(desk: Desk) -> None:
    owned(desk)
    id = begun(desk, with_items("wq-1"))["handoff_id"]
    no = {"reason": "other", "detail": "I cannot do it."}
    told = desk.do("reject", id, BOB, **no)
    assert (told["success"], told["metadata"]["workq_status"]) == (True, "transferred")
    assert (item(desk)["owner"], desk.handoff(id).workq) == ("alice", "returned")
    assert desk.do("reject", id, BOB, **no)["success"]
    said = with_items("wq-1", to="carol")
    again = desk.say(said, ALICE)["handoff_id"]
    assert desk.do("accept", again, CAROL)["success"]
    assert desk.do("activate", again, CAROL)["metadata"]["workq_status"] == "transferred"
    moved = desk.do("reassign", again, COORDINATOR, to_agent="dan")
    assert moved["metadata"]["workq_status"] == "transferred"
    assert item(desk)["owner"] == "alice"


def test_nothing_comes_back_that_was_never_handed_on(desk: Desk) -> None:
    owned(desk)
    id = desk.say(with_items("wq-1"), ALICE)["handoff_id"]
    assert "metadata" not in desk.do("reject", id, BOB, reason="other", detail="no")
    assert (item(desk)["owner"], desk.handoff(id).workq) == ("alice", "")
    without = Desk(desk.artifacts / "without", workq=None)
    other = begun(without, with_items("wq-1"))["handoff_id"]
    assert without.do("reject", other, BOB, reason="other", detail="no")["success"]


def test_what_a_third_has_taken_meanwhile_is_not_taken_back(desk: Desk) -> None:
    owned(desk)
    id = begun(desk, with_items("wq-1"))["handoff_id"]
    desk.say({"item_id": "wq-1", "owner": "carol"}, BOB, "workq.claim")
    told = desk.do("reject", id, BOB, reason="other", detail="no")["metadata"]
    assert told["workq_status"] == "degraded"
    assert told["workq_items"][0].startswith("wq-1: refused")
    assert (item(desk)["owner"], desk.handoff(id).workq) == ("carol", "not_returned")


def test_what_was_claimed_by_hand_since_is_not_missed_any_more(tmp_path: Path) -> None:
    desk = Desk(tmp_path, workq=Outside(Moved("unavailable", "nobody answers")))
    id = begun(desk, with_items("wq-1"))["handoff_id"]

    def findings() -> tuple[str, ...]:
        return look_at(desk.lab.store, desk.handoff(id), desk.lab.clock.now()).findings

    assert findings() == (
        "an item of the work queue is not where the work is: wq-1: unavailable, nobody answers",
    )
    desk.say({"item_id": "wq-1"}, BOB, "workq.claim")
    assert findings() == ()


def test_what_never_went_along_is_not_said_to_stay_away(desk: Desk) -> None:
    owned(desk)
    owned(desk, "wq-2", CAROL)
    id = begun(desk, with_items("wq-1", "wq-2"))["handoff_id"]
    told = desk.do("reject", id, BOB, reason="other", detail="no")["metadata"]
    assert told == {"workq_status": "transferred"}
    assert [item(desk, name)["owner"] for name in ("wq-1", "wq-2")] == ["alice", "carol"]


def test_and_where_nothing_went_along_nothing_comes_back(desk: Desk) -> None:
    owned(desk, "wq-1", CAROL)
    id = begun(desk, with_items("wq-1"))["handoff_id"]
    told = desk.do("reject", id, BOB, reason="other", detail="no")["metadata"]
    assert told == {"workq_status": "not_applicable"}
    assert (desk.handoff(id).workq, desk.handoff(id).items_due) == ("not_applicable", "")


class Dying(Outside):
    """A queue at whose answer the hub dies, once."""

    def transfer_ownership(self, item: str, sender: str, recipient: str) -> Moved:
        """The power is gone."""
        super().transfer_ownership(item, sender, recipient)
        if len(self.asked) == 1:
            raise SystemExit("the power is gone")
        return self.moved


def test_a_crash_after_activate_loses_no_item(tmp_path: Path) -> None:
    outside = Dying(Moved("transferred"))
    desk = Desk(tmp_path, workq=outside)
    with pytest.raises(SystemExit):
        begun(desk, with_items("far-1"))
    (row,) = desk.say({"action": "query", "task_id": "t-1"}, BOB)["handoffs"]
    id = row["handoff_id"]
    assert (desk.handoff(id).status, desk.handoff(id).workq) == ("activated", "")
    duty = HandingOn(desk.lab.hub, outside)
    assert duty.run_once(desk.lab.clock.now()) == 0
    desk.lab.clock.advance(GRACE_MS)
    assert duty.run_once(desk.lab.clock.now()) == 1
    assert (desk.handoff(id).workq, outside.asked) == (
        "transferred",
        [("far-1", "alice", "bob")] * 2,
    )
    assert duty.run_once(desk.lab.clock.now()) == 0


def test_a_store_that_fails_after_activate_does_not_take_the_yes_back(tmp_path: Path) -> None:
    desk = Desk(tmp_path)

    class Failing(Outside):
        def transfer_ownership(self, item: str, sender: str, recipient: str) -> Moved:
            desk.lab.store.faults = [StoreUnavailable("no disk")] * 3
            return super().transfer_ownership(item, sender, recipient)

    failing = Desk(tmp_path / "failing", desk.lab, workq=Failing(Moved("transferred")))
    reply = begun(failing, with_items("far-1"))
    desk.lab.store.faults.clear()
    assert (reply["success"], reply["status"]) == (True, "activated")
    desk.lab.clock.advance(GRACE_MS)
    assert HandingOn(desk.lab.hub, Outside(Moved("refused"))).run_once(desk.lab.clock.now()) == 1
    assert desk.handoff(reply["handoff_id"]).workq == "degraded"


def test_a_queue_that_does_not_answer_is_asked_once_and_takes_nothing_from_a_third(
    tmp_path: Path,
) -> None:
    outside = Outside(Moved("unavailable", "no answer"))
    desk = Desk(tmp_path, workq=outside)
    owned(desk, "c-1", CAROL)
    owned(desk, "a-1", ALICE)
    reply = begun(desk, with_items("c-1", "a-1", "far-1"))
    assert (len(outside.asked), reply["metadata"]["workq_status"]) == (1, "degraded")
    states = {id: item(desk, id)["owner"] or item(desk, id)["status"] for id in ("c-1", "a-1")}
    assert states == {"c-1": "carol", "a-1": "orphaned"}
    assert item(desk, "far-1")["status"] == "orphaned"


def test_a_package_refers_to_a_few_items_only(desk: Desk) -> None:
    many = [f"wq-{n}" for n in range(17)]
    assert desk.code(with_items(*many), ALICE) == "schema_invalid"
    assert desk.code(with_items(*many[:16], many[0]), ALICE) == ""


def test_items_are_found_in_whatever_a_package_is() -> None:
    assert items_of({}) == ()
    odd = {"task": 1, "artifacts": [1, {"ref": 2}, {"ref": {"type": "workq_item"}}]}
    assert items_of(odd) == ("",)
    refs = [{"type": "workq_item", "value": f"workq:{n}"} for n in range(20)]
    assert items_of({"task": {"external_refs": refs}}) == tuple(map(str, range(16)))
