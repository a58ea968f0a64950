"""The items of a work queue that a package refers to: they go where the work goes."""

from collections.abc import Iterator, Mapping
from typing import Any, Final, cast

ITEM_REF_TYPE: Final = "workq_item"
MAX_ITEMS: Final = 16
"""Largest number of items for one handoff: each may need a call to an external queue."""
_ITEM_PREFIX: Final = "workq:"


def strip_item_prefix(item: str) -> str:
    """Id of an item without its `workq:` prefix."""
    return item.removeprefix(_ITEM_PREFIX)


def work_items_of(package: Mapping[str, object]) -> tuple[str, ...]:
    """Work items that a package refers to, each once, up to the limit."""
    return all_work_items_of(package)[:MAX_ITEMS]


def all_work_items_of(package: Mapping[str, object]) -> tuple[str, ...]:
    """All work items that a package refers to, each once."""
    return tuple(dict.fromkeys(strip_item_prefix(name) for name in _item_refs(package)))


def _item_refs(package: Mapping[str, object]) -> Iterator[str]:
    task = package.get("task")
    for ref in _iter_objects(_as_object(task).get("external_refs")):
        if ref.get("type") == ITEM_REF_TYPE:
            yield str(ref.get("value", ""))
    for artifact in _iter_objects(package.get("artifacts")):
        ref = _as_object(artifact.get("ref"))
        if ref.get("type") == ITEM_REF_TYPE:
            yield str(ref.get("path", ""))


def _iter_objects(value: object) -> Iterator[dict[str, Any]]:
    if isinstance(value, list | tuple):
        for one in cast(list[object], value):
            yield _as_object(one)


def _as_object(value: object) -> dict[str, Any]:
    return cast(dict[str, Any], value) if isinstance(value, dict) else {}
