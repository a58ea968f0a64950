"""Id generators: time-ordered UUIDs, or counted ones where a run must repeat exactly."""

from itertools import count

import uuid_utils


def new_id() -> str:
    """A UUIDv7: ordered by time, so that indexes grow at their end."""
    return str(uuid_utils.uuid7())


class SequentialIds:
    """Ids in the form of a UUIDv7 that count 1, 2, 3 and so are the same in every run."""

    def __init__(self) -> None:
        self._numbers = count(1)

    def __call__(self) -> str:
        """The next id."""
        return f"00000000-0000-7000-8000-{next(self._numbers):012x}"
