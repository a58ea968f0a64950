"""persist-queue's SQLiteAckQueue (WAL, synchronous=FULL): put, taken, acknowledged.

Each is a row that changes its status; nothing is kept of who did what.
"""

import sys
from time import perf_counter

from persistqueue import SQLiteAckQueue

folder, seconds = sys.argv[1], float(sys.argv[2])
queue = SQLiteAckQueue(folder, auto_commit=True)
done, begun = 0, perf_counter()
while perf_counter() < begun + seconds:
    queue.put({"number": done})
    queue.ack(queue.get())
    done += 1
print(done / (perf_counter() - begun))
