"""Handoff SLA: one escalation for each state that lasts too long, however often sweeps run."""

import threading
from collections.abc import Generator
from pathlib import Path

import pytest
from msgspec import Struct

from dragoman.core.agent import RegisterAgent
from dragoman.core.backoff import Backoff
from dragoman.core.handoff.state import (
    DEFAULT_SLA_MS,
    AcceptHandoff,
    ActivateHandoff,
    ExtendHandoff,
    Handoff,
)
from dragoman.core.mail import Mail
from dragoman.core.task_state import CreateTask
from dragoman.engine.group_commit import Engine
from dragoman.engine.hub import Hub
from dragoman.engine.ports import Store
from dragoman.engine.queries.entries import stream_state
from dragoman.services.timers import LeaseExpiry, SlaService
from dragoman.store.sqlite import SqliteStore
from dragoman.system.clock import ManualClock, SequentialIds, new_id
from tests.core.handoffs import offer
from tests.core.world import COORDINATOR
from tests.engine.lab import ALICE, BOB, HUMAN, START, TTL, Lab, findings
from tests.requirements import proves

PROPOSED, ACCEPTED = DEFAULT_SLA_MS["proposed"], DEFAULT_SLA_MS["accepted"]


def offer_handoff(hub: Hub) -> Hub:
    """Create task T, offered by alice to bob."""
    hub.submit(HUMAN, CreateTask("T", "T", ready=True, assignee="alice"))
    hub.submit(ALICE, offer())
    return hub


def stored_handoff(store: Store) -> Handoff:
    """The handoff as it is stored."""
    row = store.stream("handoff:H")
    assert row is not None
    state = stream_state(store, row)
    assert isinstance(state, Handoff)
    return state


def blocked_recipients(store: Store) -> list[tuple[str, ...]]:
    """Recipients of each status.blocked letter."""
    rows = store.streams_of_kind("mail", "", 1_000)
    mails = [state for row in rows if isinstance(state := stream_state(store, row), Mail)]
    return [mail.to for mail in mails if mail.kind == "status.blocked"]


@proves("ACP-SLA")
def test_repeated_sweeps_escalate_once_and_move_nothing() -> None:
    lab = Lab()
    offer_handoff(lab.hub)
    lab.clock.advance(PROPOSED - 1)
    assert SlaService(lab.hub).run_once(lab.clock.now()) == 0
    lab.clock.advance(1)
    assert [SlaService(lab.hub).run_once(lab.clock.now()) for _ in range(50)] == [1] + [0] * 49
    assert (stored_handoff(lab.store).status, len(stored_handoff(lab.store).escalations)) == (
        "proposed",
        1,
    )
    assert blocked_recipients(lab.store) == [("coordinator",)]
    assert findings(lab.store) == []


@proves("ACP-SLA")
def test_all_coordinators_are_notified_or_else_the_configured_one() -> None:
    lab = Lab()
    offer_handoff(lab.hub)
    lab.clock.advance(PROPOSED)
    SlaService(lab.hub, "boss").run_once(lab.clock.now())
    lab.do(HUMAN, RegisterAgent("cora", "coordinator"), RegisterAgent("cleo", "coordinator"))
    lab.do(BOB, AcceptHandoff("H", stored_handoff(lab.store).package_hash))
    lab.clock.advance(ACCEPTED)
    SlaService(lab.hub, "boss").run_once(lab.clock.now())
    assert blocked_recipients(lab.store) == [("boss",), ("cleo", "cora")]


@proves("ACP-SLA")
def test_sla_missed_while_the_hub_was_down_is_escalated_at_start(tmp_path: Path) -> None:
    path, clock, ids = tmp_path / "db", ManualClock(START), SequentialIds()

    def hub() -> Hub:
        return Hub(Engine(SqliteStore.open(path, new_id), clock, b"secret"), ids)

    first = offer_handoff(hub())
    first.store.close()
    clock.advance(PROPOSED * 10)
    second = hub()
    assert [SlaService(second).run_once(clock.now()) for _ in range(3)] == [1, 0, 0]
    (late,) = stored_handoff(second.store).escalations
    assert (late.sla_ms, late.elapsed_ms) == (PROPOSED, PROPOSED * 10)
    second.store.close()


@proves("ACP-SLA")
def test_clock_set_back_escalates_nothing_twice() -> None:
    lab = Lab()
    offer_handoff(lab.hub)
    lab.clock.advance(PROPOSED)
    assert SlaService(lab.hub).run_once(lab.clock.now()) == 1
    lab.clock.advance(-PROPOSED * 5)
    assert SlaService(lab.hub).run_once(lab.clock.now()) == 0
    lab.clock.advance(PROPOSED * 10)
    assert SlaService(lab.hub).run_once(lab.clock.now()) == 0
    assert len(blocked_recipients(lab.store)) == 1


@proves("ACP-SLA", "ACP-COORDINATE")
def test_extension_moves_the_deadline() -> None:
    lab = Lab()
    offer_handoff(lab.hub)
    lab.do(COORDINATOR, ExtendHandoff("H", 60_000))
    lab.clock.advance(PROPOSED)
    assert SlaService(lab.hub).run_once(lab.clock.now()) == 0
    lab.clock.advance(60_000)
    assert SlaService(lab.hub).run_once(lab.clock.now()) == 1


@pytest.fixture
def hubs(tmp_path: Path) -> Generator[tuple[Hub, Hub]]:
    """Two hubs, as of two processes, on one database and one clock."""
    clock = ManualClock(START)
    stores = [SqliteStore.open(tmp_path / "db", new_id) for _ in range(2)]
    ids = SequentialIds()
    first, second = (Hub(Engine(store, clock, b"secret"), ids) for store in stores)
    yield first, second
    for store in stores:
        store.close()


@proves("ACP-SLA")
def test_concurrent_sweeps_escalate_once(hubs: tuple[Hub, Hub]) -> None:
    offer_handoff(hubs[0])
    late = hubs[0].clock.now() + PROPOSED
    clock = hubs[0].clock
    assert isinstance(clock, ManualClock)
    clock.advance(PROPOSED)
    start = threading.Barrier(2)

    def sweep(hub: Hub) -> None:
        start.wait()
        for _ in range(5):
            SlaService(hub).run_once(late)

    threads = [threading.Thread(target=sweep, args=(hub,)) for hub in hubs]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(stored_handoff(hubs[0].store).escalations) == 1
    assert len(blocked_recipients(hubs[0].store)) == 1


@proves("ACP-FOLLOWS-TASK")
def test_lease_expiry_of_a_silent_recipient_notifies_the_coordinator() -> None:
    lab = Lab()
    offer_handoff(lab.hub)
    lab.do(HUMAN, RegisterAgent("cora", "coordinator"))
    lab.do(BOB, AcceptHandoff("H", stored_handoff(lab.store).package_hash))
    lab.do(BOB, ActivateHandoff("H", ttl_ms=TTL))
    lab.clock.advance(TTL)
    assert LeaseExpiry(lab.hub, Backoff()).run_once(lab.clock.now()) == 1
    assert blocked_recipients(lab.store) == [("cora",)]
    assert (lab.task("T").status, lab.task("T").assignee) == ("ready", "bob")
    assert stored_handoff(lab.store).status == "activated"
    assert SlaService(lab.hub).run_once(lab.clock.now()) == 0
    assert findings(lab.store) == []


class Team(Struct, frozen=True):
    """Members and coordinators of a teamspace."""

    members: tuple[str, ...] = ()
    coordinators: tuple[str, ...] = ()


@proves("ACP-SLA", "ACP-TEAMSPACE")
def test_only_coordinators_of_the_teamspace_are_notified() -> None:
    lab = Lab()
    lab.do(HUMAN, RegisterAgent("cora", "coordinator"), RegisterAgent("cleo", "coordinator"))
    teams = {"default": Team(("alice", "bob"), ("cora",))}
    offer_handoff(lab.hub)
    lab.clock.advance(PROPOSED)
    SlaService(lab.hub, teams=teams).run_once(lab.clock.now())
    assert blocked_recipients(lab.store) == [("cora",)]
    lab.do(BOB, AcceptHandoff("H", stored_handoff(lab.store).package_hash))
    lab.do(BOB, ActivateHandoff("H", ttl_ms=TTL))
    lab.clock.advance(TTL)
    LeaseExpiry(lab.hub, Backoff(), teams=teams).run_once(lab.clock.now())
    assert blocked_recipients(lab.store) == [("cora",), ("cora",)]
