"""Facts that operations look up before their transaction: tasks and agents in the store, files."""

from collections.abc import Callable
from functools import cached_property

from msgspec import Struct

from dragoman.core.actor import Actor
from dragoman.core.errors import Refusal
from dragoman.engine.candidate_index import CandidateIndex
from dragoman.engine.ports import Store
from dragoman.engine.queries.agents import find_agent
from dragoman.engine.queries.tasks import all_tasks, find_task

# --- facts ------------------------------------------------------------------------------------


class StoreFacts(Struct, frozen=True, dict=True):
    """Facts from a store, and files from the projector that keeps the folders of tasks."""

    store: Store
    has_file: Callable[[str, str], bool]
    """(AOF id of a task, path below its folder) -> True if there is such a file."""
    scan_run_files: Callable[[], object] = lambda: None
    """Reads the run files of all tasks in progress, which other programs may have written."""
    now: Callable[[], int] = lambda: 0
    """The hub's clock; constant where nothing that is asked for depends on the time."""

    @property
    def registry(self) -> CandidateIndex:
        return self._candidates

    @cached_property
    def _candidates(self) -> CandidateIndex:
        return CandidateIndex(self.store)

    def task_exists(self, name: str) -> bool:
        return not isinstance(find_task(self.store, name), Refusal)

    def is_in_progress(self, name: str) -> bool:
        found = find_task(self.store, name)
        return not isinstance(found, Refusal) and found.task.status == "in-progress"

    def file_exists(self, task: str, ref: str) -> bool:
        return self.has_file(task, ref)

    def tasks_held_in_session(self, session: str, holder: str = "", task: str = "") -> list[str]:
        streams = self.store.streams_in_session(session)
        found = (find_task(self.store, stream.partition(":")[2]) for stream in streams)
        return [
            view.task.aof_id
            for view in found
            if not isinstance(view, Refusal)
            and view.lease
            and holder in ("", view.lease.holder)
            and task in ("", view.task.id)
        ]

    def reported_tasks(self) -> list[str]:
        tasks = (view.task for view in all_tasks(self.store, "in-progress"))
        return [task.aof_id for task in tasks if task.reported is not None]

    def resolve_actor(self, name: str, via: str) -> Actor:
        """The actor of this name, in its registered role; unregistered names are agents."""
        known = find_agent(self.store, name)
        return Actor("agent" if known is None else known.role, name, via)
