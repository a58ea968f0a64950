"""Several processes on one file: they wait for each other, and see each other's commits."""

from collections import Counter
from pathlib import Path

from dragoman.core.task_state import CreateTask
from dragoman.engine.queries import tasks as tasks_module
from dragoman.engine.queries.entries import all_entries
from dragoman.ledger.entry import GENESIS, link_hash
from dragoman.store.sqlite import SqliteStore
from dragoman.system.clock import new_id
from tests.conformance.store.hubs import ANN, Hubs
from tests.requirements import proves
from tests.store.sqlite.files import open_store
from tests.system.child_processes import Child, child, next_line, resume

CREATOR = """
import sys
from pathlib import Path
from dragoman.core.task_state import CreateTask
from dragoman.store.sqlite import SqliteStore
from dragoman.system.clock import new_id
from tests.conformance.store.hubs import ANN, Hubs
store = SqliteStore.open(Path(sys.argv[1]), new_id)
hubs = Hubs(lambda: store)
hub = hubs.new()
print("there", flush=True)
sys.stdin.readline()
for number in range(100):
    hub.do(ANN, CreateTask(f"{sys.argv[2]} {number}", ready=True))
hubs.close()
store.close()
print("done", flush=True)
"""

CLAIMER = """
import sys
from pathlib import Path
from dragoman.core.actor import Actor
from dragoman.core.attempt import ClaimTask
from dragoman.core.errors import Refusal
from dragoman.store.sqlite import SqliteStore
from dragoman.system.clock import new_id
from tests.conformance.store.hubs import Hubs
store = SqliteStore.open(Path(sys.argv[1]), new_id)
hubs = Hubs(lambda: store)
hub = hubs.new()
print("there", flush=True)
sys.stdin.readline()
agent, claimed = Actor("agent", sys.argv[2]), []
claim = ClaimTask("", agent=agent.name)
while not isinstance(answer := hub.ask(agent, claim), Refusal):
    claimed.append(answer.receipts[0].task)
hubs.close()
store.close()
print(answer.code, *claimed, flush=True)
"""


def run_together(*children: Child) -> list[str]:
    """Start the children at the same time, and return the last line of each."""
    assert [next_line(each) for each in children] == ["there"] * len(children)
    for each in children:
        resume(each)
    return [next_line(each) for each in children]


def check_chains(store: SqliteStore) -> None:
    """Check that positions have no gap, and that every stream is one hash chain."""
    entries = list(all_entries(store))
    assert [entry.position for entry in entries] == list(range(1, len(entries) + 1))
    heads: dict[str, bytes] = {}
    for entry in entries:
        assert entry.previous == heads.get(entry.stream, GENESIS)
        heads[entry.stream] = link_hash(entry.previous, entry.line)
        assert entry.hash == heads[entry.stream]


@proves("STORE-CACHE", "STORE-SECOND-HUB", "LEDGER-POSITION")
def test_concurrent_writers_wait_and_lose_nothing(tmp_path: Path) -> None:
    path = tmp_path / "hub.db"
    open_store(path).close()
    with child(CREATOR, path, "one") as one, child(CREATOR, path, "two") as two:
        assert run_together(one, two) == ["done", "done"]

    store = open_store(path)
    check_chains(store)
    titles = Counter(
        task.title.partition(" ")[0] for task in tasks_module.tasks_as_of(store, store.head())
    )
    assert titles == {"one": 100, "two": 100}
    store.close()


@proves("STORE-CLAIM-RACE")
def test_concurrent_claimers_never_get_the_same_task(tmp_path: Path) -> None:
    path = tmp_path / "hub.db"
    store = SqliteStore.open(path, new_id)
    hubs = Hubs(lambda: store)
    tasks = {hubs.new().do(ANN, CreateTask("a task", ready=True)).task for _ in range(60)}

    with child(CLAIMER, path, "alice") as alice, child(CLAIMER, path, "bob") as bob:
        answers = [line.split() for line in run_together(alice, bob)]

    assert [answer[0] for answer in answers] == ["nothing_ready"] * 2
    claimed = [task for answer in answers for task in answer[1:]]
    assert len(claimed) == len(tasks)
    assert set(claimed) == tasks
    check_chains(store)
    hubs.close()
    store.close()
