"""Queues: which task is the first in each of them that somebody may be given."""

from collections.abc import Collection, Mapping, Sequence

from dragoman.engine.ports import ReadyKey, Store, Transaction
from dragoman.services.turns import task_id_of

_PROMOTE_BATCH = 100


def first_ready(
    store: Store, now: int, queues: Sequence[str], excluded: Collection[str]
) -> Mapping[str, ReadyKey]:
    """First task of each queue, except excluded ones."""

    def work(session: Transaction) -> dict[str, ReadyKey]:
        session.promote_due(now, _PROMOTE_BATCH)
        found = dict[str, ReadyKey]()
        for queue in queues:
            keys = session.ready_page(queue, None, len(excluded) + 1)
            wanted = next((key for key in keys if task_id_of(key) not in excluded), None)
            if wanted is not None:
                found[queue] = wanted
        return found

    return store.transact(work)
