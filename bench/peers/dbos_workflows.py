"""DBOS on SQLite: a workflow of one step, started and waited for.

Its status, its input, the step's result and its own are kept, so that it goes on after a crash.
"""

import logging
import os
import sys
from time import perf_counter

from dbos import DBOS

folder, seconds = sys.argv[1], float(sys.argv[2])
os.chdir(folder)
DBOS(config={"name": "bench", "system_database_url": f"sqlite:///{folder}/dbos.sqlite"})
logging.disable(logging.CRITICAL)


@DBOS.step()
def step(number: int) -> int:
    """Do next to nothing."""
    return number


@DBOS.workflow()
def work(number: int) -> int:
    """One step, kept."""
    return step(number)


DBOS.launch()
done, begun = 0, perf_counter()
while perf_counter() < begun + seconds:
    DBOS.start_workflow(work, done).get_result()
    done += 1
rate = done / (perf_counter() - begun)
DBOS.destroy()
print(rate)
