"""Eight concurrent clients: one sequential order explains all their answers.

Reads go to the store past the writer; two hubs share one PostgreSQL.
"""

import asyncio
import os
from collections.abc import Callable, Generator
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path
from typing import Any, cast

import pytest
from msgspec.structs import replace

from dragoman.core.actor import Actor
from dragoman.core.attempt import ClaimTask
from dragoman.core.base import Command
from dragoman.core.errors import Refusal
from dragoman.engine.group_commit import Engine
from dragoman.engine.hub import Hub
from dragoman.engine.ports import Store, StreamRow
from dragoman.engine.request import Outcome
from dragoman.store.memory import MemoryStore
from dragoman.store.postgres import PostgresStore
from dragoman.store.sqlite import SqliteStore
from dragoman.system.clock import ManualClock, new_id
from tests.conftest import LONG_RUN
from tests.linearizability.checker import MAX_OPERATIONS, Model, Operation, explains
from tests.linearizability.clients import CLIENTS, TASKS, Submit, Window
from tests.linearizability.task_model import TASK_MODEL, Request
from tests.requirements import proves

NOW = 1_770_609_600_000
IS_LONG = bool(os.environ.get(LONG_RUN))
WINDOWS = 500 if IS_LONG else 6
STEPS = MAX_OPERATIONS * TASKS // CLIENTS // 3


def submit_from_thread(hub: Hub) -> Submit:
    """Submit from a thread."""
    return lambda actor, command: hub.engine.handle_now(hub.make_request(actor, command))


def submit_from_loop(hub: Hub) -> Submit:
    """Submit from an event loop, one for each client."""

    def submit(actor: Actor, command: Command) -> Outcome:
        async def handle() -> Outcome:
            return await hub.engine.handle(hub.make_request(actor, command))

        return asyncio.run(handle())

    return submit


SUBMIT_BY_NAME = {"handle_now": submit_from_thread, "handle": submit_from_loop}


@contextmanager
def hub_on(store: Store) -> Generator[Hub]:
    """Open a hub on a store; both are closed afterwards."""
    with closing(Hub(Engine(store, ManualClock(NOW), b"secret"), new_id)) as hub:
        yield hub


def unexplained_histories(windows: int, hubs: list[tuple[Submit, Store]]) -> list[str]:
    """Histories that no order explains, with their tasks."""
    found = list[str]()
    for number in range(windows):
        window = Window(f"w{number}", hubs)
        window.run(STEPS)
        histories = window.histories.items()
        found += [
            f"{task}: {history}" for task, history in histories if not explains(TASK_MODEL, history)
        ]
    return found


@proves("LINEAR-TASKS")
@pytest.mark.parametrize("submit_name", SUBMIT_BY_NAME)
def test_histories_on_sqlite_are_linearizable(tmp_path: Path, submit_name: str) -> None:
    with hub_on(SqliteStore.open(tmp_path / "dragoman.db", new_id)) as hub:
        assert unexplained_histories(WINDOWS, [(SUBMIT_BY_NAME[submit_name](hub), hub.store)]) == []


@proves("LINEAR-TASKS")
def test_histories_of_two_postgresql_hubs_are_linearizable(postgres_url: str) -> None:
    with ExitStack() as stack:
        hubs = [
            stack.enter_context(hub_on(PostgresStore.open(postgres_url, new_id))) for _ in range(2)
        ]
        pairs = [
            (submit_to(hub), hub.store) for hub in hubs for submit_to in SUBMIT_BY_NAME.values()
        ]
        assert unexplained_histories(WINDOWS, pairs) == []


class StaleStore(MemoryStore):
    """Store whose readers see a task as it was at their last read but one."""

    def __init__(self) -> None:
        super().__init__("stale")
        self._before: dict[str, StreamRow] = {}

    def stream(self, name: str) -> StreamRow | None:
        """Return the row before the newest."""
        row = super().stream(name)
        if row is None:
            return None
        old, self._before[name] = self._before.get(name, row), row
        return old


def drop_fence(submit: Submit) -> Submit:
    """Submit without the fence."""

    def submit_without_fence(actor: Actor, command: Command) -> Outcome:
        has_token = command.named_fence is not None and not isinstance(command, ClaimTask)
        return submit(actor, replace(command, fence=None) if has_token else command)

    return submit_without_fence


def accept_second_claim(submit: Submit) -> Submit:
    """Accept a second claim of a task that is held."""

    def submit_or_renew(actor: Actor, command: Command) -> Outcome:
        outcome = submit(actor, command)
        if isinstance(outcome, Refusal) and outcome.code == "already_claimed":
            return submit(actor, replace(cast(ClaimTask, command), renew_if_held=True))
        return outcome

    return submit_or_renew


@proves("LINEAR-TEETH")
@pytest.mark.parametrize("broken", [drop_fence, accept_second_claim])
def test_broken_hub_is_found(broken: Callable[[Submit], Submit]) -> None:
    with hub_on(MemoryStore("broken")) as hub:
        assert unexplained_histories(WINDOWS, [(broken(submit_from_thread(hub)), hub.store)]) != []


@proves("LINEAR-TEETH")
def test_stale_store_is_found() -> None:
    with hub_on(StaleStore()) as hub:
        assert unexplained_histories(WINDOWS, [(submit_from_thread(hub), hub.store)]) != []


def operation(
    client: int, call: int, end: int, kind: str, answer: Any, fence: int = 0
) -> Operation:
    return Operation(client, call, end, Request(kind, fence), answer)


CLAIM_1 = ("", "in-progress", 1)
HELD = ("already_claimed", "", 0)


@proves("LINEAR-TEETH")
@pytest.mark.parametrize(
    ("history", "is_possible"),
    [
        ([operation(1, 0, 1, "claim", CLAIM_1), operation(2, 2, 3, "claim", HELD)], True),
        ([operation(1, 0, 3, "claim", HELD), operation(2, 1, 2, "claim", CLAIM_1)], True),
        ([operation(1, 0, 1, "claim", HELD), operation(2, 2, 3, "claim", CLAIM_1)], False),
        ([operation(1, 0, 3, "claim", CLAIM_1), operation(2, 1, 2, "claim", CLAIM_1)], False),
        (
            [operation(1, 0, 1, "claim", CLAIM_1), operation(2, 2, 3, "read", ("", "ready", 0))],
            False,
        ),
        (
            [operation(1, 0, 3, "claim", CLAIM_1), operation(2, 1, 2, "read", ("", "ready", 0))],
            True,
        ),
        # A request without an answer may have been carried out, or not.
        ([operation(1, 0, 1, "claim", None), operation(2, 2, 3, "claim", HELD)], True),
        ([operation(1, 0, 1, "claim", None), operation(2, 2, 3, "claim", CLAIM_1)], True),
        (
            [
                operation(1, 0, 1, "claim", CLAIM_1),
                operation(2, 2, 3, "release", ("", "ready", 1), 1),
                operation(3, 4, 5, "claim", ("", "in-progress", 2)),
                operation(1, 6, 7, "done", ("", "review", 2), 1),
            ],
            False,
        ),
    ],
)
def test_checker_accepts_exactly_the_possible_histories(
    history: list[Operation], is_possible: bool
) -> None:
    assert explains(TASK_MODEL, history) is is_possible


@proves("LINEAR-TEETH")
def test_checker_rejects_two_orders_of_one_register() -> None:
    """The classic: both values were written at once, and no order fits both readers."""

    def write_or_read(state: int, operation: Operation) -> int | None:
        kind, value = cast(tuple[str, int], operation.request)
        if kind == "write":
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
