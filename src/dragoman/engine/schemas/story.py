"""Resource schema of the story of a task."""

from msgspec import UNSET, Raw, Struct, UnsetType

from dragoman.core.base import Status
from dragoman.core.timestamps import to_rfc3339
from dragoman.engine.queries.story import Story, StoryItem, StoryKind
from dragoman.engine.schemas.tasks import TaskDetail, task_detail


class StoryItemResource(Struct, frozen=True, kw_only=True):
    """One thing that happened to a task: an entry of the ledger."""

    position: int
    at: str
    kind: StoryKind
    type: str
    """The name of its event."""
    dialect: str | None
    """The dialect in which it was said; null: in none, or by the hub."""
    actor: str
    via: str | None
    title: str
    """It as the rest of a sentence that the actor begins; on one line, without control characters.
    """
    text: str
    """The words of its author, unchanged: show them as text, never as markup."""
    status: Status | None
    """The status of the task from then on, if this changed it."""
    attempt: int | None
    """The attempt that the task was in; null before the first one."""
    cause: str
    """The id of the request: all items of one request share it."""
    duration_ms: int | None
    """Duration of what ended with it: a stay in a status, an attempt, a question, a tool call."""
    stream: str
    original: Raw | UnsetType = UNSET
    """The message as it was received, on the first item of its request."""


class StoryPage(Struct, frozen=True):
    """The story of a task in the order of the ledger; `next` is the `after` of the next page."""

    task: TaskDetail
    items: tuple[StoryItemResource, ...]
    next: int | None


def story_page(story: Story, now: int) -> StoryPage:
    """The resource of a page of a story."""
    task = task_detail(story.task.task, story.task.lease, now)
    return StoryPage(task, tuple(map(_item_resource, story.items)), story.next)


def _item_resource(item: StoryItem) -> StoryItemResource:
    return StoryItemResource(
        position=item.position,
        at=to_rfc3339(item.at),
        kind=item.kind,
        type=item.type,
        dialect=item.dialect or None,
        actor=item.actor,
        via=item.via or None,
        title=item.title,
        text=item.text,
        status=item.status,
        attempt=item.attempt or None,
        cause=item.cause,
        duration_ms=item.duration_ms,
        stream=item.stream,
        original=item.original,
    )
