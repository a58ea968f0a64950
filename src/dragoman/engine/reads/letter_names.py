"""What a task is called in letters: whatever name one uses, bead and thread are the same."""

from dragoman.core.errors import Refusal
from dragoman.core.ids import check_id, is_task_name
from dragoman.core.states.task import BEAD_KIND
from dragoman.engine.ports import ListQuery, Store
from dragoman.engine.reads.ask import find_task


def task_name_in_mail(name: str, store: Store) -> str:
    """The name of a task in letters; an unknown one is returned as it is."""
    if not is_task_name(name):
        return name
    own = name.removeprefix(f"{BEAD_KIND}:")
    found = find_task(store, f"{BEAD_KIND}:{own}") if ":" not in own else find_task(store, own)
    if isinstance(found, Refusal):
        found = find_task(store, own)
    return own if isinstance(found, Refusal) else found.task.mail_name


def find_thread(name: str, store: Store) -> str | Refusal:
    """The thread of this name, or else of the task with this name."""
    is_one = check_id(name, "thread") is None
    if is_one and store.list_page(ListQuery(f"thread:{name}", limit=1)):
        return name
    thread = task_name_in_mail(name, store)
    return check_id(thread, "thread") or thread
