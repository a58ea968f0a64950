"""Eight clients at once: there is one order of what they did that explains all that they were told.

Reads go to the store past the writer, beside it; two hubs share one PostgreSQL.
"""

import asyncio
import os
from collections.abc import Callable, Generator
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path
from typing import Any, cast

import pytest
from msgspec.structs import replace

from dragoman.core.actors import Actor
from dragoman.core.commands import AnyCommand, ClaimTask
from dragoman.core.errors import Refusal
from dragoman.engine.handle import Engine
from dragoman.engine.hub import Hub
from dragoman.engine.ports import Row, Store
from dragoman.engine.request import Outcome
from dragoman.store.memory import MemoryStore
from dragoman.store.postgres import PostgresStore
from dragoman.store.sqlite import SqliteStore
from dragoman.system.clock import HandClock
from dragoman.system.ids import new_id
from tests.conftest import LONG_RUN
from tests.linearizability.checker import MOST, Model, Operation, explains
from tests.linearizability.clients import CLIENTS, TASKS, Ask, Window
from tests.linearizability.tasks import TASK, Asked
from tests.requirements import proves

NOW = 1_770_609_600_000
IS_LONG = bool(os.environ.get(LONG_RUN))
WINDOWS = 500 if IS_LONG else 6
STEPS = MOST * TASKS // CLIENTS // 3


def now_of(hub: Hub) -> Ask:
    """The door for threads."""
    return lambda actor, command: hub.engine.handle_now(hub.request(actor, command))


def soon_of(hub: Hub) -> Ask:
    """The door for event loops: each client has one of its own."""

    def ask(actor: Actor, command: AnyCommand) -> Outcome:
        async def asked() -> Outcome:
            return await hub.engine.handle(hub.request(actor, command))

        return asyncio.run(asked())

    return ask


DOORS = {"handle_now": now_of, "handle": soon_of}


@contextmanager
def hub_on(store: Store) -> Generator[Hub]:
    """A hub on a store; both are closed afterwards."""
    with closing(Hub(Engine(store, HandClock(NOW), b"secret"), new_id)) as hub:
        yield hub


def unexplained(windows: int, doors: list[tuple[Ask, Store]]) -> list[str]:
    """The histories that have no such order, with their tasks."""
    found = list[str]()
    for number in range(windows):
        window = Window(f"w{number}", doors)
        window.run(STEPS)
        histories = window.histories.items()
        found += [f"{task}: {told}" for task, told in histories if not explains(TASK, told)]
    return found


@proves("LINEAR-TASKS")
@pytest.mark.parametrize("door", DOORS)
def test_sqlite(tmp_path: Path, door: str) -> None:
    with hub_on(SqliteStore.open(tmp_path / "dragoman.db", new_id)) as hub:
        assert unexplained(WINDOWS, [(DOORS[door](hub), hub.store)]) == []


@proves("LINEAR-TASKS")
def test_two_hubs_on_postgresql(postgres_url: str) -> None:
    with ExitStack() as stack:
        hubs = [
            stack.enter_context(hub_on(PostgresStore.open(postgres_url, new_id))) for _ in range(2)
        ]
        doors = [(door(hub), hub.store) for hub in hubs for door in DOORS.values()]
        assert unexplained(WINDOWS, doors) == []


class StaleStore(MemoryStore):
    """A store whose readers see a task as it was at their last look but one."""

    def __init__(self) -> None:
        super().__init__("stale")
        self._before: dict[str, Row] = {}

    def stream(self, name: str) -> Row | None:
        """The row, but not the newest."""
        row = super().stream(name)
        if row is None:
            return None
        old, self._before[name] = self._before.get(name, row), row
        return old


def forgets_the_fence(ask: Ask) -> Ask:
    """A door that does not pass the token on."""

    def forgetful(actor: Actor, command: AnyCommand) -> Outcome:
        has_token = command.token is not None and not isinstance(command, ClaimTask)
        return ask(actor, replace(command, fence=None) if has_token else command)

    return forgetful


def claims_twice(ask: Ask) -> Ask:
    """A door that says yes to whoever claims what is held."""

    def generous(actor: Actor, command: AnyCommand) -> Outcome:
        outcome = ask(actor, command)
        if isinstance(outcome, Refusal) and outcome.code == "already_claimed":
            return ask(actor, replace(cast(ClaimTask, command), or_renew=True))
        return outcome

    return generous


@proves("LINEAR-TEETH")
@pytest.mark.parametrize("broken", [forgets_the_fence, claims_twice])
def test_a_door_that_is_broken_on_purpose_is_found(broken: Callable[[Ask], Ask]) -> None:
    with hub_on(MemoryStore("broken")) as hub:
        assert unexplained(WINDOWS, [(broken(now_of(hub)), hub.store)]) != []


@proves("LINEAR-TEETH")
def test_a_store_that_reads_old_states_is_found() -> None:
    with hub_on(StaleStore()) as hub:
        assert unexplained(WINDOWS, [(now_of(hub), hub.store)]) != []


def op(client: int, call: int, end: int, what: str, told: Any, fence: int = 0) -> Operation:
    """An operation in short."""
    return Operation(client, call, end, Asked(what, fence), told)


CLAIM_1 = ("", "in-progress", 1)
HELD = ("already_claimed", "", 0)


@proves("LINEAR-TEETH")
@pytest.mark.parametrize(
    ("history", "is_fine"),
    [
        ([op(1, 0, 1, "claim", CLAIM_1), op(2, 2, 3, "claim", HELD)], True),
        ([op(1, 0, 3, "claim", HELD), op(2, 1, 2, "claim", CLAIM_1)], True),
        ([op(1, 0, 1, "claim", HELD), op(2, 2, 3, "claim", CLAIM_1)], False),
        ([op(1, 0, 3, "claim", CLAIM_1), op(2, 1, 2, "claim", CLAIM_1)], False),
        ([op(1, 0, 1, "claim", CLAIM_1), op(2, 2, 3, "read", ("", "ready", 0))], False),
        ([op(1, 0, 3, "claim", CLAIM_1), op(2, 1, 2, "read", ("", "ready", 0))], True),
        # Whoever got no answer may have been heard, or not.
        ([op(1, 0, 1, "claim", None), op(2, 2, 3, "claim", HELD)], True),
        ([op(1, 0, 1, "claim", None), op(2, 2, 3, "claim", CLAIM_1)], True),
        (
            [
                op(1, 0, 1, "claim", CLAIM_1),
                op(2, 2, 3, "release", ("", "ready", 1), 1),
                op(3, 4, 5, "claim", ("", "in-progress", 2)),
                op(1, 6, 7, "done", ("", "review", 2), 1),
            ],
            False,
        ),
    ],
)
def test_the_checker_knows_what_can_be(history: list[Operation], is_fine: bool) -> None:
    assert explains(TASK, history) is is_fine


@proves("LINEAR-TEETH")
def test_a_register_that_two_readers_see_in_two_orders_is_no_register() -> None:
    """The classic: both values were written at once, and no order fits both readers."""

    def write_or_read(state: int, operation: Operation) -> int | None:
        what, value = cast(tuple[str, int], operation.asked)
        if what == "write":
            return value
        return state if operation.answer == state else None

    register = Model(0, write_or_read)
    writes = [
        Operation(1, 0, 9, ("write", 1), "ok"),
        Operation(2, 0, 9, ("write", 2), "ok"),
    ]
    one_order = [Operation(3, 1, 2, ("read", 0), 1), Operation(3, 3, 4, ("read", 0), 2)]
    other_order = [Operation(4, 1, 2, ("read", 0), 2), Operation(4, 5, 6, ("read", 0), 1)]
    assert explains(register, [*writes, *one_order])
    assert not explains(register, [*writes, *one_order, *other_order])
