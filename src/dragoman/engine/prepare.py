"""What a batch is about to need, read in a few strokes instead of one by one."""

from collections.abc import Sequence

from dragoman.core.commands import ClaimTask, CreateTask
from dragoman.core.ids import aof_id, is_aof_id
from dragoman.core.moments import to_rfc3339
from dragoman.engine.request import Request
from dragoman.engine.unit import Unit


def prepare(unit: Unit, requests: Sequence[Request], now: int, *, rerun: bool) -> None:
    """Load what the requests name outright and the ids that new tasks will get.

    Only a help: whatever is missing is read when it is asked for. A rerun also looks what was
    answered before: by an earlier run whose outcome is unknown, or to an earlier request.
    """
    commands = [command for request in requests for command in request.commands]
    new_ids = _new_ids(unit, [c for c in commands if type(c) is CreateTask], now)
    unit.expect_claims(sum(type(command) is ClaimTask and not command.task for command in commands))
    unit.load_streams(
        [
            *("task:" + command.about for command in commands if command.about),
            *(request.actor.stream for request in requests if not request.commands[0].about),
            *("task:" + name for name in new_ids),
        ]
    )
    unit.load_names(new_ids)
    if rerun:
        unit.load_answers(map(unit.answer_place, requests))


def _new_ids(unit: Unit, creations: Sequence[CreateTask], now: int) -> list[str]:
    new_ids: list[str] = []
    if creations:
        day = to_rfc3339(now)[:10]
        number = unit.last_number(day)
        for command in creations:
            if command.id:
                new_ids.append(command.id)
            if not is_aof_id(command.id):
                number += 1
                new_ids.append(aof_id(day, number))
    return new_ids
