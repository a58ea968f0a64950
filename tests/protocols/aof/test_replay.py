"""Replay of a session: twice, shuffled, wrapped differently, after a restart. Nothing changes."""

import json
import random
from collections.abc import Callable
from typing import Any

import pytest

from dragoman.core.task_state import MoveTask
from dragoman.engine.group_commit import Engine
from dragoman.engine.hub import Hub
from dragoman.engine.request import Accepted
from dragoman.engine.router import Router
from dragoman.engine.store_facts import StoreFacts
from dragoman.protocols.aof import dialect
from dragoman.system.clock import SequentialIds
from tests.protocols.aof.hub import (
    BACKEND,
    CHILD,
    PARENT,
    PERSON,
    QA,
    AofHub,
    accepted,
    report,
    request,
    update,
)
from tests.requirements import proves

pytestmark = proves("AOF-REPEAT")

DAY = 86_400_000

SESSION = [
    update(progress="Half of it"),
    request(),
    accepted(),
    update(progress="More of it"),
    report("partial"),
    report("done"),
]


def play_session() -> AofHub:
    """Send the whole session and end it."""
    hub = AofHub()
    for message in SESSION:
        assert not hub.accept(message).repeated
    hub.end_session()
    return hub


WRAPPINGS: dict[str, Callable[[dict[str, Any]], Any]] = {
    "as it was": lambda message: message,
    "in another order": lambda message: dict(reversed(list(message.items()))),
    "with space": lambda message: json.dumps(message, indent=4),
    "behind the prefix": lambda message: "AOF/1 " + json.dumps(message),
    "in an event": lambda message: {"content": json.dumps(message)},
    "with other numbers": lambda message: json.dumps(message).replace('n": 1,', 'n": 1.0,'),
    "with escapes": lambda message: json.dumps(message).replace("swe", "\\u0073we"),
}


@pytest.mark.parametrize("wrap", WRAPPINGS.values(), ids=WRAPPINGS)
def test_differently_wrapped_message_is_a_repeat(wrap: Any) -> None:
    hub = play_session()
    before = hub.lab.store.picture_of_tasks()

    for message in SESSION:
        assert hub.accept(wrap(message)).repeated
    assert hub.lab.store.picture_of_tasks() == before


@pytest.mark.parametrize("seed", range(5))
def test_replay_in_any_order_changes_nothing(seed: int) -> None:
    hub = play_session()
    before, size = hub.lab.store.picture_of_tasks(), hub.head()
    again = SESSION * 2
    random.Random(seed).shuffle(again)

    for message in again:
        hub.accept(message)

    assert hub.lab.store.picture_of_tasks() == before
    assert hub.head() == size


def test_replay_to_a_restarted_hub_changes_nothing() -> None:
    first = play_session()
    before = first.lab.store.picture_of_tasks()
    store = first.lab.store
    restarted = Hub(Engine(store, first.lab.clock, b"secret"), SequentialIds())
    router = Router(restarted, [dialect()], StoreFacts(store, lambda _task, _ref: True))

    for message in SESSION:
        answer = router.send(message)
        assert isinstance(answer, Accepted)
        assert answer.repeated
    assert store.picture_of_tasks() == before


def test_same_message_of_another_agent_in_a_new_attempt_counts() -> None:
    hub = AofHub()
    hub.accept(update(progress="Half of it"))
    hub.do(PERSON, MoveTask(PARENT, "ready"))
    hub.claim(PARENT, QA)
    message = update(progress="Half of it", agentId="swe-qa") | {"fromAgent": "swe-qa"}

    assert not hub.accept(message).repeated
    assert hub.task().notes == 2


def start_second_attempt(hub: AofHub, *messages: Any) -> None:
    """Send the messages in a first attempt of swe-backend and start its second one."""
    for message in messages:
        assert not hub.accept(message).repeated
    hub.end_session()
    hub.do(PERSON, MoveTask(PARENT, "ready"))
    hub.lab.clock.advance(DAY)
    hub.claim(PARENT, BACKEND, session="s-2")


COUNTED = "duplicate: already applied to attempt 1, ignored"


@pytest.mark.parametrize(
    "messages",
    [
        [update(progress="Half of it"), update(status="blocked", blockers=["no key"])],
        [update(progress="Half of it"), report("done"), report("partial")],
    ],
)
def test_message_applied_to_an_attempt_is_ignored_in_later_attempts(messages: list[Any]) -> None:
    hub = AofHub()
    start_second_attempt(hub, *messages)
    before, size = hub.task(), hub.head()

    for message in messages:
        answer = hub.accept(message)
        assert (answer.repeated, answer.warnings) == (True, (COUNTED,))
    assert (hub.task(), hub.head()) == (before, size)
    assert not hub.accept(
        update(progress="Half of it") | {"sentAt": "2026-02-10T21:00:00Z"}
    ).repeated
    assert not hub.accept(update(progress="Never said before")).repeated
    assert hub.task().notes == before.notes + 2


def test_request_repeated_after_the_first_claim_is_ignored() -> None:
    hub = AofHub()
    hub.accept(request())
    hub.lab.clock.advance(DAY)
    hub.claim(CHILD, QA)
    answer = hub.accept(request())
    warning = "duplicate: already applied before attempt 1, ignored"
    assert (answer.repeated, answer.warnings) == (True, (warning,))


def test_ignored_repeat_has_its_first_warnings() -> None:
    hub = AofHub()
    hub.files.clear()
    start_second_attempt(hub, report("partial"))
    warnings = hub.accept(report("partial")).warnings
    assert warnings == (COUNTED, f"there is no file outputs/summary.md in the folder of {PARENT}")


def test_message_dated_after_the_claim_belongs_to_the_new_attempt() -> None:
    hub = AofHub()
    message = update(progress="Half of it") | {"sentAt": "2026-02-11T21:00:00Z"}
    start_second_attempt(hub, message)
    assert not hub.accept(message).repeated
    assert hub.accept(message).repeated
    assert hub.task().notes == 2


def test_message_under_an_attempt_credential_belongs_to_that_attempt() -> None:
    hub = AofHub()
    messages = [update(progress="Half of it"), report("done")]
    start_second_attempt(hub, *messages)
    speaker = hub.attempt_actor()
    for message in messages:
        assert not hub.accept(message, speaker).repeated
        assert hub.accept(message, speaker).repeated
    hub.end_session("s-2", speaker)
    assert hub.task().status == "review"


def test_repeat_after_losing_the_task_gets_lease_lost() -> None:
    hub = AofHub()
    message = update(progress="Half of it")
    hub.accept(message)
    hub.do(PERSON, MoveTask(PARENT, "ready"))
    hub.lab.clock.advance(DAY)
    hub.claim(PARENT, QA)
    assert hub.code(message) == "lease_lost"


def test_equal_numbers_are_recognized_in_any_notation() -> None:
    hub = AofHub()
    for number in ("7", "7.0", "70e-1"):
        message = json.dumps(update(progress="x") | {"mine": 9}).replace("9}", f"{number}}}")
        assert hub.accept(message).repeated == (number != "7")
    for beyond in ("1e300", "7.5"):
        message = json.dumps(update(progress="x") | {"mine": 9}).replace("9}", f"{beyond}}}")
        assert not hub.accept(message).repeated


def test_different_sent_at_makes_a_new_message() -> None:
    hub = AofHub()
    for second in range(3):
        hub.accept(update(progress="x") | {"sentAt": f"2026-02-09T21:00:0{second}Z"})

    assert hub.task().notes == 3


def test_repeat_renews_the_lease() -> None:
    hub = AofHub()
    hub.accept(update(progress="x"))
    lease = hub.lab.lease(PARENT)
    hub.lab.clock.advance(10_000)
    hub.accept(update(progress="x"))
    renewed = hub.lab.lease(PARENT)

    assert lease is not None
    assert renewed is not None
    assert renewed.expires_at == lease.expires_at + 10_000


def test_refused_message_can_be_retried() -> None:
    hub = AofHub()
    assert hub.code(accepted()) == "invalid_transition"
    hub.accept(request())
    assert hub.code(accepted()) == ""
    assert hub.task(CHILD).delegation is not None
