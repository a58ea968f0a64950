"""huey on SQLite with `fsync=True` (WAL, synchronous=FULL): enqueued, dequeued, run, result kept.

Taking a task from the queue removes it: a worker that dies while it runs one loses it.
"""

import sys
from pathlib import Path
from time import perf_counter

from huey import SqliteHuey

folder, seconds = Path(sys.argv[1]), float(sys.argv[2])
huey = SqliteHuey(filename=str(folder / "huey.db"), fsync=True, results=True)


@huey.task()
def work(number: int) -> int:
    """Do next to nothing."""
    return number


done, begun = 0, perf_counter()
while perf_counter() < begun + seconds:
    work(done)
    huey.execute(huey.dequeue())
    done += 1
print(done / (perf_counter() - begun))
