"""A session replayed: whole, twice, shuffled, wrapped, after a restart. Nothing changes."""

import json
import random
from collections.abc import Callable
from typing import Any

import pytest

from dragoman.core.commands import MoveTask
from dragoman.engine.facts import StoreFacts
from dragoman.engine.handle import Engine
from dragoman.engine.hub import Hub
from dragoman.engine.interpreter import Interpreter
from dragoman.engine.plan import Taken
from dragoman.protocols.aof import dialect
from dragoman.system.ids import CountingIds
from tests.protocols.aof.scene import (
    CHILD,
    PARENT,
    PERSON,
    QA,
    Scene,
    accepted,
    report,
    request,
    update,
)
from tests.requirements import proves

pytestmark = proves("AOF-REPEAT")

SESSION = [
    update(progress="Half of it"),
    request(),
    accepted(),
    update(progress="More of it"),
    report("partial"),
    report("done"),
]


def played() -> Scene:
    """A scene in which all of it has been said and taken effect."""
    scene = Scene()
    for message in SESSION:
        assert not scene.taken(message).repeated
    scene.end()
    return scene


WRAPPINGS: dict[str, Callable[[dict[str, Any]], Any]] = {
    "as it was": lambda message: message,
    "in another order": lambda message: dict(reversed(list(message.items()))),
    "with space": lambda message: json.dumps(message, indent=4),
    "behind the prefix": lambda message: "AOF/1 " + json.dumps(message),
    "in an event": lambda message: {"content": json.dumps(message)},
    "with escapes": lambda message: json.dumps(message).replace("swe", "\\u0073we"),
}


@pytest.mark.parametrize("wrap", WRAPPINGS.values(), ids=WRAPPINGS)
def test_a_message_wrapped_otherwise_is_the_same_message(wrap: Any) -> None:
    scene = played()
    before = scene.lab.store.picture_of_tasks()

    for message in SESSION:
        assert scene.taken(wrap(message)).repeated
    assert scene.lab.store.picture_of_tasks() == before


@pytest.mark.parametrize("seed", range(5))
def test_a_replay_in_any_order_changes_nothing(seed: int) -> None:
    scene = played()
    before, size = scene.lab.store.picture_of_tasks(), scene.size()
    again = SESSION * 2
    random.Random(seed).shuffle(again)

    for message in again:
        scene.taken(message)

    assert scene.lab.store.picture_of_tasks() == before
    assert scene.size() == size


def test_a_replay_to_a_hub_that_was_started_again_changes_nothing() -> None:
    scene = played()
    before = scene.lab.store.picture_of_tasks()
    store = scene.lab.store
    hub = Hub(Engine(store, scene.lab.clock, b"secret"), CountingIds())
    door = Interpreter(hub, [dialect()], StoreFacts(store, lambda _task, _ref: True))

    for message in SESSION:
        answer = door.send(message)
        assert isinstance(answer, Taken)
        assert answer.repeated
    assert store.picture_of_tasks() == before


def test_the_same_words_in_a_new_attempt_are_new_words() -> None:
    scene = Scene()
    scene.taken(update(progress="Half of it"))
    scene.do(PERSON, MoveTask(PARENT, "ready"))
    scene.claim(PARENT, QA)
    said = update(progress="Half of it", agentId="swe-qa") | {"fromAgent": "swe-qa"}

    assert not scene.taken(said).repeated
    assert scene.task().notes == 2


def test_another_time_makes_another_message() -> None:
    scene = Scene()
    for second in range(3):
        scene.taken(update(progress="x") | {"sentAt": f"2026-02-09T21:00:0{second}Z"})

    assert scene.task().notes == 3


def test_a_repeat_is_a_sign_of_life() -> None:
    scene = Scene()
    scene.taken(update(progress="x"))
    lease = scene.lab.lease(PARENT)
    scene.lab.clock.advance(10_000)
    scene.taken(update(progress="x"))
    renewed = scene.lab.lease(PARENT)

    assert lease is not None
    assert renewed is not None
    assert renewed.expires_at == lease.expires_at + 10_000


def test_a_refusal_is_not_remembered() -> None:
    scene = Scene()
    assert scene.code(accepted()) == "invalid_transition"
    scene.taken(request())
    assert scene.code(accepted()) == ""
    assert scene.task(CHILD).delegation is not None
