"""Refusals for names that nothing has: one sentence for each code, the same at every surface.

Each says where to look. A name that follows the grammar stands as it is; any other text is
quoted and escaped.
"""

from msgspec.structs import replace

from dragoman.core.errors import Refusal
from dragoman.core.ids import check_agent, quote_name, safe_name

_RESERVE_LIST_HINT = "see `dragoman reserve list` (as a tool: reserve_list)"


def task(name: str, addition: str = "") -> Refusal:
    """No task has this name; `addition`: a further clause."""
    sentence = f"no task has the name {safe_name(name)}{addition}"
    return Refusal("task_not_found", f"{sentence}: see `dragoman task list`")


def task_at_position(name: str, position: int) -> Refusal:
    """The task exists, but did not at this position."""
    return Refusal(
        "task_not_found",
        f"{name} did not exist at position {position}: see `dragoman task log {name}`",
    )


def parent(name: str) -> Refusal:
    """No task has the name that was given as the parent of another."""
    sentence = f"no task has the name {safe_name(name)}, the parent's"
    return Refusal("parent_not_found", f"{sentence}: see `dragoman task list`", path="parent")


def agent(name: str) -> Refusal:
    """No agent or person has this name."""
    is_name = check_agent(name) is None
    add = f"`dragoman agent add {name}` makes it known, " if is_name else ""
    return Refusal(
        "agent_not_found",
        f"no agent or person is known as {name if is_name else quote_name(name)}: {add}"
        "`dragoman agent list` shows who is",
    )


def token(name: str, id: str) -> Refusal:
    """This agent has no such token."""
    return Refusal("token_not_found", f"{name} has no token {id}: see `dragoman agent show {name}`")


def letter(id: str) -> Refusal:
    """No letter has this id."""
    sentence = f"there is no letter {safe_name(id)}"
    return Refusal("mail_not_found", f"{sentence}: see `dragoman mail inbox`")


def thread(id: str) -> Refusal:
    """No letter is in a thread of this name."""
    return Refusal(
        "mail_not_found",
        f"there are no letters in the thread {safe_name(id)}: see `dragoman mail inbox`",
    )


def question(task: str, id: str = "") -> Refusal:
    """The task has no such open question; `id`: empty if none was named."""
    which = f"no open question {safe_name(id)}" if id else "no open question"
    return Refusal(
        "question_not_found",
        f"{task} has {which}: see `dragoman task show {task}`",
        path="question",
    )


def handoff(id: str) -> Refusal:
    """No handoff has this id, or none that the caller may know of."""
    return Refusal(
        "handoff_not_found", f"there is no handoff {safe_name(id)}: see `dragoman handoff list`"
    )


def work_item(id: str) -> Refusal:
    """The work queue has no such item."""
    return Refusal(
        "work_item_not_found",
        f"the work queue has no item {safe_name(id)}: `dragoman call workq.create` makes one",
    )


def wave(id: str) -> Refusal:
    return Refusal("wave_not_found", f"there is no wave {safe_name(id)}: see `dragoman wave list`")


def reservation(name: str) -> Refusal:
    """Nothing is reserved under this id or pattern."""
    return Refusal(
        "reservation_not_found",
        f"nothing is reserved as {quote_name(name)}: it may be over, {_RESERVE_LIST_HINT}",
    )


def intent(id: str, path: str = "") -> Refusal:
    """No intent has this id, which stands in this field."""
    return Refusal(
        "intent_not_found",
        f"there is no intent {safe_name(id)}: see `dragoman intent list`",
        path=path,
    )


def intent_of(task: str) -> Refusal:
    """The task exists, but belongs to no intent."""
    return Refusal("intent_not_found", f"{task} is no intent's task: see `dragoman intent list`")


def linked_task(refusal: Refusal, name: str, field: str) -> Refusal:
    """Refusal for a link to a missing task; says which field names it."""
    if refusal.code == "task_not_found":
        is_parent = field == "parent"
        refusal = parent(name) if is_parent else task(name, f", which `{field}` names")
    return replace(refusal, path=field)
