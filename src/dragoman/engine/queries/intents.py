"""Intents: one by its id or its task, and pages of the lists that they stand on."""

from msgspec import Struct

from dragoman.core.errors import Refusal
from dragoman.core.intent.request_workflow import OPEN_STATUSES
from dragoman.core.intent.state import Intent, intent_of_task
from dragoman.core.task_state import Task
from dragoman.engine.ports import ListQuery, Store
from dragoman.engine.queries.entries import find_by_id, stream_state
from dragoman.engine.queries.tasks import TaskView, find_task


class IntentItem(Struct, frozen=True):
    """An intent, and its position on every list, which is the cursor of a page."""

    position: int
    intent: Intent


def find_intent(store: Store, id: str, version: int = 0) -> Intent | Refusal:
    """The intent with this id, as it is now or was after this entry of its stream."""
    return find_by_id(store, id, Intent, version)


def find_intent_of_task(store: Store, task: Task) -> Intent | None:
    """The intent that a task belongs to."""

    def known(id: str) -> Intent | None:
        found = find_intent(store, id)
        return found if isinstance(found, Intent) else None

    return intent_of_task(task, known)


def awaited_agent(store: Store, id: str) -> str:
    """The agent whose result its task waits for; empty: none, as during a review."""
    intent = find_intent(store, id)
    request = None if isinstance(intent, Refusal) else intent.request
    if isinstance(intent, Refusal) or request is None:
        return ""
    found = find_task(store, intent.task)
    is_under_way = isinstance(found, TaskView) and found.task.status in OPEN_STATUSES
    return request.agent if is_under_way else ""


def is_cancelled(store: Store, intent: Intent, version: int = 0) -> bool:
    """True if its task was cancelled: the intent's own state does not tell.

    `version` is that of its task, for an intent as it was.
    """
    if intent.state != "NeedsFollowUp":
        return False
    found = find_task(store, intent.task, version)
    return isinstance(found, TaskView) and found.task.status == "cancelled"


def list_intents(store: Store, query: ListQuery) -> list[IntentItem]:
    """A page of a list of intents."""
    return [
        IntentItem(place.position, intent)
        for place in store.list_page(query)
        if isinstance(intent := stream_state(store, place.row), Intent)
    ]
