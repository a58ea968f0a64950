"""Verification of the table of handoffs: missing, changed and unexpected rows."""

from collections.abc import Callable

import pytest
from msgspec.structs import replace

from dragoman.core.errors import ActiveHandoffConflict, Refusal, StoreConflict, StoreLost
from dragoman.core.handoff.state import RejectHandoff
from dragoman.core.task_state import CreateTask
from dragoman.engine import verify
from dragoman.engine.verify import Finding
from dragoman.ledger.stream_state import HandoffRow
from tests.core.handoffs import offer
from tests.engine.lab import ALICE, BOB, HUMAN, Lab, OpenStore, findings
from tests.requirements import proves

pytestmark = proves("VERIFY-VIEWS", "ACP-TABLE")

Records = dict[str, HandoffRow]


def store_with_handoffs() -> OpenStore:
    """Make a store with a rejected handoff and an active one."""
    lab = Lab()
    lab.do(HUMAN, CreateTask("T", "T", ready=True))
    lab.do(ALICE, offer())
    lab.do(BOB, RejectHandoff("H", "other", "no"))
    lab.do(ALICE, offer("carol", "H2"))
    return lab.store


def test_honest_table_has_no_findings(monkeypatch: pytest.MonkeyPatch) -> None:
    assert findings(store_with_handoffs()) == []
    monkeypatch.setattr(verify, "_PAGE", 1)
    assert findings(store_with_handoffs()) == []


def tampered(id: str, **fields: str) -> Callable[[Records], None]:
    """Make a change of one row."""

    def change(records: Records) -> None:
        records[id] = replace(records[id], **fields)

    return change


DIFFERS = "its row in the table handoffs is missing or differs from the replay"
UNEXPECTED = "nothing in the ledger gave it a row in the table handoffs"


TAMPERED: dict[str, tuple[Callable[[Records], object], list[Finding]]] = {
    "removed": (lambda records: records.pop("H"), [Finding(DIFFERS, stream="handoff:H")]),
    "moved": (tampered("H", status="closed"), [Finding(DIFFERS, stream="handoff:H")]),
    "another package": (
        tampered("H2", package_json="{}"),
        [Finding(DIFFERS, stream="handoff:H2")],
    ),
    "of an unknown handoff": (
        lambda records: records.update(X=replace(records["H"], id="X")),
        [Finding(UNEXPECTED, stream="handoff:X")],
    ),
}


@pytest.mark.parametrize("case", TAMPERED)
def test_tampered_row_is_found(case: str) -> None:
    change, found = TAMPERED[case]
    store = store_with_handoffs().copy()
    change(store.tables.handoffs)
    assert findings(store) == found


@proves("ACP-ONE-ACTIVE")
def test_lasting_table_conflict_refuses_the_offer() -> None:
    lab = Lab()
    lab.do(HUMAN, CreateTask("T", "T", ready=True))
    lab.store.faults = [ActiveHandoffConflict("another handoff of T is under way")] * 99
    answer = lab.hub.engine.handle_now(lab.hub.make_request(ALICE, offer()))
    assert isinstance(answer, Refusal)
    assert (answer.code, answer.kind) == ("ownership_conflict", "active_handoff")
    lab.store.faults = [ActiveHandoffConflict("another handoff of T is under way")]
    lab.do(ALICE, offer())
    assert findings(lab.store) == []


@proves("ACP-ONE-ACTIVE")
@pytest.mark.parametrize("lost", [StoreLost("the line broke"), StoreConflict("another was faster")])
def test_outcome_of_a_lost_try_stays_unknown(lost: Exception) -> None:
    lab = Lab()
    lab.do(HUMAN, CreateTask("T", "T", ready=True))
    taken: list[Exception | None] = [
        ActiveHandoffConflict("another handoff of T is under way")
    ] * 99
    lab.store.faults = [lost, *taken]
    request = lab.hub.make_request(ALICE, offer())
    if isinstance(lost, StoreLost):
        with pytest.raises(StoreLost):
            lab.hub.engine.handle_now(request)
    else:
        assert isinstance(lab.hub.engine.handle_now(request), Refusal)
