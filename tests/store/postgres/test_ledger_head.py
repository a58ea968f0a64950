"""Wrong ledger head: writes are refused, and the damage is reported with its remedy."""

from pathlib import Path

import pytest

from dragoman.core.errors import StoreCorrupt
from dragoman.core.task_state import CreateTask
from dragoman.store.postgres import PostgresStore
from dragoman.system.clock import ManualClock
from tests.conformance.store.hubs import ANN, NOW, Hub
from tests.requirements import proves
from tests.store.postgres.conftest import Admin
from tests.surfaces.cli.console import Console

pytestmark = proves("PG-COUNTER")


@pytest.mark.parametrize("position", [-9, -1, 0, 1, 2, 4, 9, None])
def test_write_with_a_wrong_head_is_refused(
    store: PostgresStore, admin: Admin, position: int | None
) -> None:
    hub = Hub(store, ManualClock(NOW))
    for title in ("One", "Two", "Three"):
        hub.do(ANN, CreateTask(title))
    admin.execute("DELETE FROM head")
    if position is not None:
        admin.execute("INSERT INTO head (position) VALUES (%s)", (position,))

    with pytest.raises(
        StoreCorrupt, match=r"table head .* does not say where the ledger ends"
    ) as refused:
        hub.do(ANN, CreateTask("Four"))

    inspected = store.inspect()
    (damage,) = inspected.damage
    assert not inspected.is_complete
    expected = "is empty" if position is None else f"says that the ledger ends at {position}"
    assert damage.startswith(f"the table head {expected}, its last entry is at 3: ")
    assert store.head() == 3
    remedies = {text.partition("in that schema: ")[2] for text in (damage, refused.value.detail)}
    (statement,) = remedies
    admin.execute(statement.encode())
    hub.do(ANN, CreateTask("Four"))
    assert [entry.position for entry in store.entries(0, 9)] == [1, 2, 3, 4]
    assert store.inspect().damage == ()


def test_verify_and_doctor_report_a_wrong_head(
    tmp_path: Path, postgres_url: str, admin: Admin
) -> None:
    dragoman = Console(tmp_path / "hub")
    dragoman.ask("init", "--store", postgres_url)
    dragoman.make("One", "--id", "T-1")
    admin.execute("UPDATE head SET position = 6")

    verified, examined = dragoman("verify"), dragoman("doctor")

    for result in (verified, examined):
        assert result.code == 1
        assert "the table head says that the ledger ends at 6, its last entry is at 1" in result.out
