"""Work queue: owned items, transferred with a handoff without holding it up."""

from pathlib import Path
from typing import Any

import pytest

from dragoman.core.actor import Actor
from dragoman.core.errors import StoreUnavailable
from dragoman.core.handoff.state import work_items_of
from dragoman.engine.handoff_diagnosis import diagnose_handoff
from dragoman.engine.workq import ItemState, TransferResult
from dragoman.services.workq import HubWorkq
from tests.protocols.acp.hub import ALICE, BOB, CAROL, COORDINATOR, OBSERVER, AcpHub, offer
from tests.requirements import proves

pytestmark = proves("ACP-WORKQ")


def offer_with_items(*items: str, **more: Any) -> dict[str, Any]:
    """Build an offer whose task refers to work items."""
    package_offer = offer(**more)
    refs = [{"type": "workq_item", "value": item} for item in items]
    package_offer["task"] = {
        **package_offer["task"],
        "external_refs": [*refs, {"type": "pr", "value": "7"}],
    }
    return package_offer


def activate_offer(hub: AcpHub, arguments: dict[str, Any]) -> Any:
    """Propose, accept and activate an offer, and return the last reply."""
    id = hub.reply(arguments, ALICE)["handoff_id"]
    assert hub.act("accept", id, BOB)["success"]
    return hub.act("activate", id, BOB)


def get_item(hub: AcpHub, id: str = "wq-1", **more: Any) -> Any:
    return hub.reply({"item_id": id, **more}, ALICE, "workq.get")


def test_item_is_created_claimed_released_and_found(hub: AcpHub) -> None:
    made = hub.reply({"item_id": "workq:wq-1", "title": "Login"}, ALICE, "workq.create")
    assert (made["success"], made["item_id"], made["status"], made["owner"]) == (
        True,
        "wq-1",
        "open",
        None,
    )
    claimed = hub.reply({"item_id": "wq-1"}, ALICE, "workq.claim")
    assert (claimed["status"], claimed["owner"]) == ("claimed", "alice")
    assert hub.code({"item_id": "wq-1"}, BOB, "workq.claim") == "already_claimed"
    assert hub.code({"item_id": "wq-1"}, BOB, "workq.release") == "not_authorized"
    assert hub.reply({"item_id": "wq-1"}, ALICE, "workq.release")["status"] == "open"
    named = hub.reply({"title": "Without a name"}, ALICE, "workq.create")
    assert get_item(hub, named["item_id"])["title"] == "Without a name"
    assert hub.code({"item_id": "gone"}, ALICE, "workq.get") == "not_found"
    assert hub.code({"item_id": "a b"}, ALICE, "workq.get") == "invalid_id"
    assert hub.code({"item_id": "gone"}, ALICE, "workq.claim") == "not_found"
    assert hub.code({"id": "x"}, ALICE, "workq.claim") == "schema_invalid"
    assert hub.code({"item_id": "wq-1"}, OBSERVER, "workq.claim") == "not_authorized"


def test_activate_transfers_the_item_of_its_task(hub: AcpHub) -> None:
    hub.reply({"item_id": "wq-1"}, ALICE, "workq.create")
    hub.reply({"item_id": "wq-1"}, ALICE, "workq.claim")
    reply = activate_offer(hub, offer_with_items("workq:wq-1"))
    assert reply["metadata"]["workq_status"] == "transferred"
    assert get_item(hub)["owner"] == "bob"
    assert hub.handoff(reply["handoff_id"]).workq == "transferred"
    assert hub.act("activate", reply["handoff_id"], BOB) == reply


def test_item_named_as_artifact_is_transferred(hub: AcpHub) -> None:
    hub.reply({"item_id": "wq-1"}, ALICE, "workq.create")
    ref = {"artifact_id": "w", "ref": {"type": "workq_item", "path": "workq:wq-1"}}
    reply = activate_offer(hub, offer(artifacts=[ref]))
    assert reply["metadata"]["workq_status"] == "transferred"
    assert get_item(hub)["owner"] == "bob"


def test_status_is_not_applicable_without_a_known_item(hub: AcpHub) -> None:
    assert activate_offer(hub, offer())["metadata"]["workq_status"] == "not_applicable"
    gone = activate_offer(hub, offer_with_items("workq:gone", "workq:a b", task="t-2"))
    assert (gone["success"], gone["metadata"]["workq_status"]) == (True, "not_applicable")
    first, second = gone["metadata"]["workq_items"]
    assert first.startswith("gone: missing, the work queue has no item gone: ")
    assert second.startswith("a b: missing, ")
    assert hub.act("activate", gone["handoff_id"], BOB) == gone


def test_item_of_another_owner_stays_and_the_handoff_continues(hub: AcpHub) -> None:
    hub.reply({"item_id": "wq-1"}, CAROL, "workq.create")
    hub.reply({"item_id": "wq-1"}, CAROL, "workq.claim")
    reply = activate_offer(hub, offer_with_items("wq-1"))
    assert (reply["success"], reply["status"]) == (True, "activated")
    assert reply["metadata"]["workq_status"] == "degraded"
    assert get_item(hub)["owner"] == "carol"
    (note,) = [n for n in hub.handoff(reply["handoff_id"]).notes if n.kind == "workq_integration"]
    assert (note.text, note.data["items"]) == (
        "degraded",
        {"wq-1": {"outcome": "refused", "detail": "wq-1 is carol's"}},
    )


class ExternalQueue:
    """External work queue with a preset answer."""

    def __init__(self, moved: TransferResult) -> None:
        self.moved = moved
        self.requests: list[tuple[str, str, str]] = []

    def transfer_ownership(self, item: str, sender: str, recipient: str) -> TransferResult:
        """Record the request and return the preset answer."""
        self.requests.append((item, sender, recipient))
        return self.moved

    def item_exists(self, item: str) -> bool | None:
        """Return None: unknown."""
        del item
        return None

    def item_status(self, item: str) -> ItemState | None:
        """Return None: unknown."""
        del item
        return None


def test_unavailable_queue_leaves_a_claimable_orphan(tmp_path: Path) -> None:
    external = ExternalQueue(TransferResult("unavailable", "no answer"))
    hub = AcpHub(tmp_path, workq=external)
    reply = activate_offer(hub, offer_with_items("workq:far-1"))
    assert (reply["success"], reply["metadata"]["workq_status"]) == (True, "degraded")
    assert external.requests == [("far-1", "alice", "bob")]
    assert get_item(hub, "far-1")["status"] == "orphaned"
    claimed = hub.reply({"item_id": "far-1"}, BOB, "workq.claim")
    assert (claimed["status"], claimed["owner"]) == ("claimed", "bob")


@pytest.mark.parametrize("outcome", ["transferred", "missing", "refused"])
def test_reply_reports_the_outcome_of_an_external_queue(tmp_path: Path, outcome: Any) -> None:
    hub = AcpHub(tmp_path, workq=ExternalQueue(TransferResult(outcome)))
    reply = activate_offer(hub, offer_with_items("workq:far-1"))
    expected = {"transferred": "transferred", "missing": "not_applicable", "refused": "degraded"}
    assert reply["metadata"]["workq_status"] == expected[outcome]
    assert hub.code({"item_id": "far-1"}, ALICE, "workq.get") == "not_found"


class ExternalItems(ExternalQueue):
    """External work queue with items, which can be made unavailable."""

    def __init__(self, moved: TransferResult, *items: ItemState, answers: bool = True) -> None:
        super().__init__(moved)
        self.items = {one.item_id: one for one in items}
        self.answers = answers

    def transfer_ownership(self, item: str, sender: str, recipient: str) -> TransferResult:
        """Transfer known items as preset."""
        moved = super().transfer_ownership(item, sender, recipient)
        if moved.outcome == "transferred" and item not in self.items:
            return TransferResult("missing")
        if moved.outcome == "transferred":
            self.items[item] = ItemState(item, "claimed", recipient)
        return moved

    def item_exists(self, item: str) -> bool | None:
        """Return None while the queue is unavailable."""
        return item in self.items if self.answers else None

    def item_status(self, item: str) -> ItemState | None:
        """Return None while the queue is unavailable."""
        return self.items.get(item) if self.answers else None


def external_hub(path: Path, external: ExternalItems) -> AcpHub:
    return AcpHub(path, workq=external)


def test_items_of_the_external_queue_are_shown_as_it_has_them(tmp_path: Path) -> None:
    external = ExternalItems(TransferResult("transferred"), ItemState("far-1", "claimed", "dan"))
    hub = external_hub(tmp_path, external)
    shown = {"success": True, "item_id": "far-1", "status": "claimed", "owner": "dan"}
    assert get_item(hub, "workq:far-1") == shown
    for id, code in (("gone", "not_found"), ("a b", "invalid_id")):
        assert hub.code({"item_id": id}, ALICE, "workq.get") == code
    external.answers = False
    assert hub.code({"item_id": "far-1"}, ALICE, "workq.get") == "not_found"


def test_orphan_of_an_external_queue_is_claimed_here(tmp_path: Path) -> None:
    external = ExternalItems(TransferResult("unavailable", "no answer"), answers=False)
    hub = external_hub(tmp_path, external)
    activate_offer(hub, offer_with_items("workq:far-1"))
    assert get_item(hub, "far-1")["status"] == "orphaned"
    assert hub.reply({"item_id": "far-1"}, BOB, "workq.claim")["owner"] == "bob"
    assert hub.reply({"item_id": "far-1"}, BOB, "workq.release")["status"] == "open"


def test_status_is_not_applicable_without_a_queue(tmp_path: Path) -> None:
    hub = AcpHub(tmp_path, workq=None)
    assert (
        activate_offer(hub, offer_with_items("wq-1"))["metadata"]["workq_status"]
        == "not_applicable"
    )


def test_local_queue_implements_the_interface(hub: AcpHub) -> None:
    queue = HubWorkq(hub.lab.hub)
    assert (queue.item_exists("wq-1"), queue.item_status("wq-1")) == (False, None)
    hub.reply({"item_id": "wq-1"}, ALICE, "workq.create")
    assert queue.item_exists("wq-1")
    assert queue.transfer_ownership("wq-1", "alice", "bob") == TransferResult("transferred")
    assert queue.item_status("wq-1") == ItemState("wq-1", "claimed", "bob")
    assert queue.transfer_ownership("gone", "alice", "bob").outcome == "missing"
    hub.lab.store.faults = [StoreUnavailable("no disk")] * 3
    assert queue.transfer_ownership("wq-1", "bob", "carol").outcome == "unavailable"
    hub.lab.store.faults.clear()


def test_coordinator_may_assign_items(hub: AcpHub) -> None:
    hub.reply({"item_id": "wq-1"}, ALICE, "workq.create")
    assigned = hub.reply({"item_id": "wq-1", "owner": "carol"}, COORDINATOR, "workq.claim")
    assert assigned["owner"] == "carol"
    assert hub.code({"item_id": "wq-1", "owner": "bob"}, ALICE, "workq.claim") == "not_authorized"


def create_owned(hub: AcpHub, id: str = "wq-1", by: Actor = ALICE) -> None:
    """Create an item and claim it."""
    hub.reply({"item_id": id}, by, "workq.create")
    hub.reply({"item_id": id}, by, "workq.claim")


def test_rejection_and_reassignment_return_the_item(hub: AcpHub) -> None:
    create_owned(hub)
    id = activate_offer(hub, offer_with_items("wq-1"))["handoff_id"]
    rejection = {"reason": "other", "detail": "I cannot do it."}
    reply = hub.act("reject", id, BOB, **rejection)
    assert (reply["success"], reply["metadata"]["workq_status"]) == (True, "transferred")
    assert (get_item(hub)["owner"], hub.handoff(id).workq) == ("alice", "returned")
    assert hub.act("reject", id, BOB, **rejection)["success"]
    second_offer = offer_with_items("wq-1", to="carol")
    again = hub.reply(second_offer, ALICE)["handoff_id"]
    assert hub.act("accept", again, CAROL)["success"]
    assert hub.act("activate", again, CAROL)["metadata"]["workq_status"] == "transferred"
    moved = hub.act("reassign", again, COORDINATOR, to_agent="dan")
    assert moved["metadata"]["workq_status"] == "transferred"
    assert get_item(hub)["owner"] == "alice"


def test_item_that_was_not_transferred_is_not_returned(hub: AcpHub) -> None:
    create_owned(hub)
    id = hub.reply(offer_with_items("wq-1"), ALICE)["handoff_id"]
    assert "metadata" not in hub.act("reject", id, BOB, reason="other", detail="no")
    assert (get_item(hub)["owner"], hub.handoff(id).workq) == ("alice", "")
    without = AcpHub(hub.artifacts / "without", workq=None)
    other = activate_offer(without, offer_with_items("wq-1"))["handoff_id"]
    assert without.act("reject", other, BOB, reason="other", detail="no")["success"]


def test_item_claimed_by_another_agent_is_not_returned(hub: AcpHub) -> None:
    create_owned(hub)
    id = activate_offer(hub, offer_with_items("wq-1"))["handoff_id"]
    hub.reply({"item_id": "wq-1", "owner": "carol"}, BOB, "workq.claim")
    metadata = hub.act("reject", id, BOB, reason="other", detail="no")["metadata"]
    assert metadata["workq_status"] == "degraded"
    assert metadata["workq_items"][0].startswith("wq-1: refused")
    assert (get_item(hub)["owner"], hub.handoff(id).workq) == ("carol", "not_returned")


def test_diagnosis_names_items_that_were_not_moved(tmp_path: Path) -> None:
    hub = AcpHub(tmp_path, workq=ExternalQueue(TransferResult("unavailable", "nobody answers")))
    id = activate_offer(hub, offer_with_items("wq-1"))["handoff_id"]

    def findings() -> tuple[str, ...]:
        return diagnose_handoff(hub.lab.store, hub.handoff(id), hub.lab.clock.now()).findings

    assert findings() == (
        "an item of the work queue was not moved with the work: wq-1: unavailable, nobody answers",
    )


def test_return_ignores_items_that_were_not_transferred(hub: AcpHub) -> None:
    create_owned(hub)
    create_owned(hub, "wq-2", CAROL)
    id = activate_offer(hub, offer_with_items("wq-1", "wq-2"))["handoff_id"]
    metadata = hub.act("reject", id, BOB, reason="other", detail="no")["metadata"]
    assert metadata == {"workq_status": "transferred"}
    assert [get_item(hub, name)["owner"] for name in ("wq-1", "wq-2")] == ["alice", "carol"]


def test_return_is_not_applicable_when_nothing_was_transferred(hub: AcpHub) -> None:
    create_owned(hub, "wq-1", CAROL)
    id = activate_offer(hub, offer_with_items("wq-1"))["handoff_id"]
    metadata = hub.act("reject", id, BOB, reason="other", detail="no")["metadata"]
    assert metadata == {"workq_status": "not_applicable"}
    assert (hub.handoff(id).workq, hub.handoff(id).has_items_to_return) == ("not_applicable", False)


class CrashingQueue(ExternalQueue):
    """External work queue that crashes the hub at its first transfer."""

    def transfer_ownership(self, item: str, sender: str, recipient: str) -> TransferResult:
        """Crash at the first call."""
        super().transfer_ownership(item, sender, recipient)
        if len(self.requests) == 1:
            raise SystemExit("the power is gone")
        return self.moved


def test_repeated_activate_transfers_what_a_crash_cut_off(tmp_path: Path) -> None:
    external = CrashingQueue(TransferResult("transferred"))
    hub = AcpHub(tmp_path, workq=external)
    with pytest.raises(SystemExit):
        activate_offer(hub, offer_with_items("far-1"))
    (row,) = hub.reply({"action": "query", "task_id": "t-1"}, BOB)["handoffs"]
    id = row["handoff_id"]
    assert (hub.handoff(id).status, hub.handoff(id).workq) == ("activated", "")
    assert hub.act("activate", id, BOB)["metadata"]["workq_status"] == "transferred"
    assert (hub.handoff(id).workq, external.requests) == (
        "transferred",
        [("far-1", "alice", "bob")] * 2,
    )


def test_store_failure_after_activate_keeps_the_success(tmp_path: Path) -> None:
    hub = AcpHub(tmp_path)

    class FailingQueue(ExternalQueue):
        def transfer_ownership(self, item: str, sender: str, recipient: str) -> TransferResult:
            hub.lab.store.faults = [StoreUnavailable("no disk")] * 3
            return super().transfer_ownership(item, sender, recipient)

    failing = AcpHub(
        tmp_path / "failing", hub.lab, workq=FailingQueue(TransferResult("transferred"))
    )
    reply = activate_offer(failing, offer_with_items("far-1"))
    hub.lab.store.faults.clear()
    assert (reply["success"], reply["status"]) == (True, "activated")
    again = hub.act("activate", reply["handoff_id"], BOB)
    assert again["metadata"]["workq_status"] == "not_applicable"
    assert hub.handoff(reply["handoff_id"]).workq == "not_applicable"


def test_unavailable_queue_is_called_once_and_orphans_only_own_items(tmp_path: Path) -> None:
    external = ExternalQueue(TransferResult("unavailable", "no answer"))
    hub = AcpHub(tmp_path, workq=external)
    create_owned(hub, "c-1", CAROL)
    create_owned(hub, "a-1", ALICE)
    reply = activate_offer(hub, offer_with_items("c-1", "a-1", "far-1"))
    assert (len(external.requests), reply["metadata"]["workq_status"]) == (1, "degraded")
    states = {
        id: get_item(hub, id)["owner"] or get_item(hub, id)["status"] for id in ("c-1", "a-1")
    }
    assert states == {"c-1": "carol", "a-1": "orphaned"}
    assert get_item(hub, "far-1")["status"] == "orphaned"


def test_package_refers_to_at_most_sixteen_items(hub: AcpHub) -> None:
    many = [f"wq-{n}" for n in range(17)]
    assert hub.code(offer_with_items(*many), ALICE) == "schema_invalid"
    assert hub.code(offer_with_items(*many[:16], many[0]), ALICE) == ""


def test_items_are_found_in_malformed_packages() -> None:
    assert work_items_of({}) == ()
    odd = {"task": 1, "artifacts": [1, {"ref": 2}, {"ref": {"type": "workq_item"}}]}
    assert work_items_of(odd) == ("",)
    refs = [{"type": "workq_item", "value": f"workq:{n}"} for n in range(20)]
    assert work_items_of({"task": {"external_refs": refs}}) == tuple(map(str, range(16)))
