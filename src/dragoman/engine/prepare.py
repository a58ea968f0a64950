"""What a batch is about to need, read in a few strokes instead of one by one."""

from collections.abc import Sequence

from dragoman.core.commands import CreateTask
from dragoman.core.ids import aof_id, check_key, is_aof_id, is_task_name
from dragoman.core.moments import to_rfc3339
from dragoman.engine.request import Request
from dragoman.engine.unit import Unit


def prepare(unit: Unit, requests: Sequence[Request], now: int, *, rerun: bool) -> None:
    """Load what the requests name outright, the ids that new tasks will get, and known keys.

    Only a help: whatever is missing is read when it is asked for.
    """
    commands = [command for request in requests for command in request.commands]
    new_ids = _new_ids(unit, [c for c in commands if type(c) is CreateTask], now)
    scopes = [_scope(request) for request in requests]
    unit.load_streams(
        [
            *scopes,
            *("task:" + command.about for command in commands if is_task_name(command.about)),
            *("task:" + name for name in new_ids),
        ]
    )
    unit.load_names(new_ids)
    unit.load_answers(
        (scope, request.answer_key)
        for scope, request in zip(scopes, requests, strict=True)
        if (check_key(request.key) is None if request.key else rerun)
    )


def _scope(request: Request) -> str:
    """Where the request's key is unique, taking the name of its target for an id."""
    about = request.commands[0].about
    return "task:" + about if is_task_name(about) else request.actor.stream


def _new_ids(unit: Unit, creations: Sequence[CreateTask], now: int) -> list[str]:
    new_ids: list[str] = []
    if creations:
        day = to_rfc3339(now)[:10]
        number = unit.last_number(day)
        for command in creations:
            if is_task_name(command.id):
                new_ids.append(command.id)
            if not is_aof_id(command.id):
                number += 1
                new_ids.append(aof_id(day, number))
    return new_ids
