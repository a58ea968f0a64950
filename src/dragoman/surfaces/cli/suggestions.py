"""Suggestions for mistyped names: of tasks that are not found, and of agents that nobody knows."""

from collections.abc import Generator
from contextlib import contextmanager
from typing import Final

from msgspec.structs import replace

from dragoman.core.errors import Refused
from dragoman.core.ids import is_aof_id, is_task_name
from dragoman.engine.ports import Store
from dragoman.engine.queries.agents import all_agents, list_actors
from dragoman.surfaces.cli.data_directory import DataDirectory
from dragoman.text.error_messages import is_one_edit, suggest_given_name

_MAX_COMPARED: Final = 10_000
"""Ids, and other names, of tasks that are compared with one that is not found."""


@contextmanager
def suggesting_task(store: Store, name: str) -> Generator[None]:
    """Add the task with the nearest name to a refusal because none has this one."""
    try:
        yield
    except Refused as refused:
        if refused.code != "task_not_found":
            raise
        detail = f"{refused.detail}{_suggest_task(store, name)}"
        raise Refused(replace(refused.refusal, detail=detail)) from None


def _suggest_task(store: Store, name: str) -> str:
    """Suggest a task whose name begins like this one, else any."""
    beginning = name[: len(name) * 2 // 3] if is_task_name(name) else ""
    for start in dict.fromkeys((beginning, "")):
        rows = store.streams_of_kind("task", start, _MAX_COMPARED)
        ids = (row.name.partition(":")[2] for row in rows)
        others = (alias for alias, _, _ in store.aliases((start, ""), _MAX_COMPARED))
        # AOF ids differ in numbers alone.
        near = (one for one in (*ids, *others) if not is_aof_id(one) or is_one_edit(name, one))
        if found := suggest_given_name(name, near):
            return found
    return ""


@contextmanager
def suggesting_agent(store: Store, name: str) -> Generator[None]:
    """Add the agent or person with the nearest name to a refusal because none has this one."""
    try:
        yield
    except Refused as refused:
        if refused.code != "agent_not_found":
            raise
        near = suggest_given_name(name, {*all_agents(store), *list_actors(store)})
        raise Refused(replace(refused.refusal, detail=f"{refused.detail}{near}")) from None


def warn_of_unknown_agent(directory: DataDirectory, name: str) -> None:
    """Warn where a task is assigned to a name that nobody has."""
    store = directory.hub.store
    known = {*all_agents(store), *list_actors(store), *directory.settings.served_names}
    if name and name not in known:
        near = suggest_given_name(name, known) or ": the task waits until somebody is"
        directory.warnings.append(f"nobody is known as {name}{near}")
