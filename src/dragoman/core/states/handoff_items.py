"""The items of a work queue that a package refers to: they go where the work goes."""

from collections.abc import Iterator, Mapping
from typing import Any, Final, cast

ITEM: Final = "workq_item"
MOST_ITEMS: Final = 16
"""Largest number of items for one handoff: each may need a call to an external queue."""
_PREFIX: Final = "workq:"


def bare(item: str) -> str:
    """Id of an item without its `workq:` prefix."""
    return item.removeprefix(_PREFIX)


def items_of(package: Mapping[str, object]) -> tuple[str, ...]:
    """Work items that a package refers to, each once, up to the limit."""
    return all_items(package)[:MOST_ITEMS]


def all_items(package: Mapping[str, object]) -> tuple[str, ...]:
    """All work items that a package refers to, each once."""
    return tuple(dict.fromkeys(bare(name) for name in _named(package)))


def _named(package: Mapping[str, object]) -> Iterator[str]:
    task = package.get("task")
    for ref in _objects(_object(task).get("external_refs")):
        if ref.get("type") == ITEM:
            yield str(ref.get("value", ""))
    for artifact in _objects(package.get("artifacts")):
        ref = _object(artifact.get("ref"))
        if ref.get("type") == ITEM:
            yield str(ref.get("path", ""))


def _objects(value: object) -> Iterator[dict[str, Any]]:
    if isinstance(value, list | tuple):
        for one in cast(list[object], value):
            yield _object(one)


def _object(value: object) -> dict[str, Any]:
    return cast(dict[str, Any], value) if isinstance(value, dict) else {}
