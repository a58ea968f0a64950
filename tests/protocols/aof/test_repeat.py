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
    BACKEND,
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

DAY = 86_400_000

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
    "with other numbers": lambda message: json.dumps(message).replace('n": 1,', 'n": 1.0,'),
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


def in_a_second_attempt(scene: Scene, *messages: Any) -> None:
    """All of this was said in the first attempt of swe-backend, which now makes another one."""
    for message in messages:
        assert not scene.taken(message).repeated
    scene.end()
    scene.do(PERSON, MoveTask(PARENT, "ready"))
    scene.lab.clock.advance(DAY)
    scene.claim(PARENT, BACKEND, session="s-2")


COUNTED = "it was said before attempt 2 began and has counted for attempt 1: it changes nothing now"


@pytest.mark.parametrize(
    "said",
    [
        [update(progress="Half of it"), update(status="blocked", blockers=["no key"])],
        [update(progress="Half of it"), report("done"), report("partial")],
    ],
)
def test_what_has_counted_in_an_attempt_does_not_count_again_in_a_later_one(
    said: list[Any],
) -> None:
    scene = Scene()
    in_a_second_attempt(scene, *said)
    before, size = scene.task(), scene.size()

    for message in said:
        answer = scene.taken(message)
        assert (answer.repeated, answer.warnings) == (True, (COUNTED,))
    assert (scene.task(), scene.size()) == (before, size)
    assert not scene.taken(
        update(progress="Half of it") | {"sentAt": "2026-02-10T21:00:00Z"}
    ).repeated
    assert not scene.taken(update(progress="Never said before")).repeated
    assert scene.task().notes == before.notes + 2


def test_a_repeat_of_before_the_first_attempt_changes_nothing_in_it() -> None:
    scene = Scene()
    scene.taken(request())
    scene.lab.clock.advance(DAY)
    scene.claim(CHILD, QA)
    answer = scene.taken(request())
    told = "it was said before attempt 1 began and has counted then: it changes nothing now"
    assert (answer.repeated, answer.warnings) == (True, (told,))


def test_what_was_odd_the_first_time_is_told_again_in_a_later_attempt() -> None:
    scene = Scene()
    scene.files.clear()
    in_a_second_attempt(scene, report("partial"))
    warnings = scene.taken(report("partial")).warnings
    assert warnings == (COUNTED, f"there is no file outputs/summary.md in the folder of {PARENT}")


def test_words_that_are_dated_after_the_claim_are_of_the_new_attempt() -> None:
    scene = Scene()
    said = update(progress="Half of it") | {"sentAt": "2026-02-11T21:00:00Z"}
    in_a_second_attempt(scene, said)
    assert not scene.taken(said).repeated
    assert scene.taken(said).repeated
    assert scene.task().notes == 2


def test_words_under_the_credential_of_an_attempt_are_of_that_attempt() -> None:
    scene = Scene()
    said = [update(progress="Half of it"), report("done")]
    in_a_second_attempt(scene, *said)
    speaker = scene.of_the_attempt()
    for message in said:
        assert not scene.taken(message, speaker).repeated
        assert scene.taken(message, speaker).repeated
    scene.end("s-2", speaker)
    assert scene.task().status == "review"


def test_who_has_lost_the_task_is_told_so_whatever_has_counted_before() -> None:
    scene = Scene()
    said = update(progress="Half of it")
    scene.taken(said)
    scene.do(PERSON, MoveTask(PARENT, "ready"))
    scene.lab.clock.advance(DAY)
    scene.claim(PARENT, QA)
    assert scene.code(said) == "lease_lost"


def test_a_number_in_a_field_of_its_own_is_the_same_however_it_is_written() -> None:
    scene = Scene()
    for number in ("7", "7.0", "70e-1"):
        said = json.dumps(update(progress="x") | {"mine": 9}).replace("9}", f"{number}}}")
        assert scene.taken(said).repeated == (number != "7")
    for beyond in ("1e300", "7.5"):
        said = json.dumps(update(progress="x") | {"mine": 9}).replace("9}", f"{beyond}}}")
        assert not scene.taken(said).repeated


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
