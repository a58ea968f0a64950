"""Queues: which task is the first in each of them that somebody may be given."""

from collections.abc import Collection, Mapping, Sequence

from dragoman.engine.ports import ReadyKey, Session, Store
from dragoman.services.turns import task_of

_PROMOTED_AT_ONCE = 100


def first_of(
    store: Store, now: int, queues: Sequence[str], besides: Collection[str]
) -> Mapping[str, ReadyKey]:
    """First task of each queue, except excluded ones."""

    def work(session: Session) -> dict[str, ReadyKey]:
        session.promote(now, _PROMOTED_AT_ONCE)
        found = dict[str, ReadyKey]()
        for queue in queues:
            keys = session.ready(queue, None, len(besides) + 1)
            wanted = next((key for key in keys if task_of(key) not in besides), None)
            if wanted is not None:
                found[queue] = wanted
        return found

    return store.transact(work)
