"""Edits of JSON files of other programs: one member or item is set or removed, every other byte
stays. Comments and trailing commas are read, as in settings of editors."""

import json
import re
from collections.abc import Callable, Iterator
from typing import Any, Final, NoReturn

from msgspec import Struct

_SPACE: Final = re.compile(r"(?:\s|//[^\n]*|/\*.*?\*/)*", re.DOTALL)
_STRING: Final = re.compile(r'"(?:[^"\\\x00-\x1f]|\\.)*"')
_WORD: Final = re.compile(r"-?[0-9][0-9.eE+-]*|true|false|null")
_INDENT: Final = re.compile(r"^([ \t]+)\S", re.MULTILINE)
_MAX_DEPTH: Final = 64


class JsonEditError(ValueError):
    """The text cannot be edited; the message says why and where."""


class _Node(Struct, frozen=True):
    """A value of the text, with its children where it is an object or an array."""

    start: int
    end: int
    value: Any
    names: tuple[str, ...] = ()
    children: tuple["_Node", ...] = ()
    """Values of the members, or items."""
    starts: tuple[int, ...] = ()
    """Beginning of each child, with the name of a member."""


# --- edits ------------------------------------------------------------------------------------


def find_value(text: str, path: tuple[str, ...]) -> Any:
    """Value at this path of members; None if there is none."""
    node = _find(_parse(text), path)
    return None if node is None else node.value


def set_member(text: str, path: tuple[str, ...], value: Any) -> str:
    """Set the member at this path; objects on the way are made where they are missing."""
    root = _parse(text)
    known = _find(root, path)
    if known is not None:
        rendered = _render(value, text, _margin(text, known.start))
        return text[: known.start] + rendered + text[known.end :]
    *above, name = path
    while (holder := _find(root, tuple(above))) is None:
        name, value = above.pop(), {name: value}
    _check_kind(text, holder, "{", tuple(above))
    return _add_child(text, holder, json.dumps(name) + ": ", value)


def add_item(text: str, path: tuple[str, ...], value: Any) -> str:
    """Add an item to the array at this path, which is made where it is missing."""
    holder = _find(_parse(text), path)
    if holder is None:
        return set_member(text, path, [value])
    _check_kind(text, holder, "[", path)
    return _add_child(text, holder, "", value)


def remove_member(text: str, path: tuple[str, ...], *, empties: bool = True) -> str:
    """Remove the member at this path and, with `empties`, objects on the way that hold nothing
    else."""
    *above, name = path
    holder = _find(_parse(text), tuple(above))
    if holder is None or name not in holder.names:
        return text
    if empties and len(holder.children) == 1 and above:
        return remove_member(text, tuple(above))
    return _remove_child(text, holder, holder.names.index(name))


def remove_items(text: str, path: tuple[str, ...], matches: Callable[[Any], bool]) -> str:
    """Remove the items that match from the array at this path, and the array if none is left."""
    while (holder := _find(_parse(text), path)) is not None and isinstance(holder.value, list):
        found = [at for at, child in enumerate(holder.children) if matches(child.value)]
        if not found:
            return text
        if len(holder.children) == 1:
            return remove_member(text, path)
        text = _remove_child(text, holder, found[-1])
    return text


def _check_kind(text: str, node: _Node, opening: str, path: tuple[str, ...]) -> None:
    if text[node.start] != opening:
        kind = "object" if opening == "{" else "array"
        raise JsonEditError(f"{'.'.join(path) or 'the whole file'} is no {kind}")


def _find(node: _Node, path: tuple[str, ...]) -> _Node | None:
    for name in path:
        if name not in node.names:
            return None
        node = node.children[node.names.index(name)]
    return node


def _add_child(text: str, holder: _Node, prefix: str, value: Any) -> str:
    unit = _indent_unit(text)
    margin = _margin(text, holder.start)
    newline = _newline(text)
    child = f"{newline}{margin}{unit}{prefix}{_render(value, text, margin + unit)}"
    if holder.children:
        end = holder.children[-1].end
        return f"{text[:end]},{child}{text[end:]}"
    brackets = text[holder.start], text[holder.end - 1]
    filled = f"{brackets[0]}{child}{newline}{margin}{brackets[1]}"
    return text[: holder.start] + filled + text[holder.end :]


def _remove_child(text: str, holder: _Node, at: int) -> str:
    if len(holder.children) == 1:
        return text[: holder.start + 1] + text[holder.end - 1 :]
    if at > 0:
        return text[: holder.children[at - 1].end] + text[holder.children[at].end :]
    return text[: holder.starts[0]] + text[holder.starts[1] :]


def _render(value: Any, text: str, margin: str) -> str:
    lines = json.dumps(value, indent=_indent_unit(text), ensure_ascii=False).split("\n")
    return (_newline(text) + margin).join(lines)


def _newline(text: str) -> str:
    return "\r\n" if "\r\n" in text else "\n"


def _indent_unit(text: str) -> str:
    found = _INDENT.search(text)
    return found[1] if found else "  "


def _margin(text: str, at: int) -> str:
    """Indentation of the line of a position."""
    line = text[text.rfind("\n", 0, at) + 1 : at]
    return line[: len(line) - len(line.lstrip(" \t"))]


# --- parser -----------------------------------------------------------------------------------


def _parse(text: str) -> _Node:
    """Parse a text: an object, with nothing but space and comments around it."""
    root = _parse_value(text, _skip(text, 0), 0)
    if text[root.start] != "{":
        raise JsonEditError("the whole file is no object")
    end = _skip(text, root.end)
    if end != len(text):
        _fail(text, end)
    return root


def _parse_value(text: str, at: int, depth: int) -> _Node:
    if depth > _MAX_DEPTH:
        raise JsonEditError(f"it is nested in more than {_MAX_DEPTH} levels")
    opening = text[at : at + 1]
    if opening == "{":
        return _parse_object(text, at, depth)
    if opening == "[":
        children = list(_parse_children(text, at, "]", depth, has_names=False))
        nodes = tuple(node for _, _, node in children)
        end = _closing(text, nodes[-1].end if nodes else at + 1)
        return _Node(
            at,
            end,
            [node.value for node in nodes],
            children=nodes,
            starts=tuple(start for start, _, _ in children),
        )
    found = _STRING.match(text, at) or _WORD.match(text, at)
    if found is None:
        _fail(text, at)
    return _Node(at, found.end(), _decode(text, found))


def _parse_object(text: str, at: int, depth: int) -> _Node:
    children = list(_parse_children(text, at, "}", depth, has_names=True))
    names = tuple(name for _, name, _ in children)
    if len(set(names)) != len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise JsonEditError(f"the key {twice!a} stands twice in one object")
    nodes = tuple(node for _, _, node in children)
    return _Node(
        at,
        _closing(text, nodes[-1].end if nodes else at + 1),
        dict(zip(names, (node.value for node in nodes), strict=True)),
        names,
        nodes,
        tuple(start for start, _, _ in children),
    )


def _parse_children(
    text: str, at: int, closing: str, depth: int, *, has_names: bool
) -> Iterator[tuple[int, str, _Node]]:
    """Yield the children of the object or array that begins here: start, name, value."""
    at = _skip(text, at + 1)
    while text[at : at + 1] != closing:
        start, name = at, ""
        if has_names:
            found = _STRING.match(text, at)
            if found is None:
                _fail(text, at)
            name = _decode(text, found)
            at = _skip(text, found.end())
            if text[at : at + 1] != ":":
                _fail(text, at)
            at = _skip(text, at + 1)
        node = _parse_value(text, at, depth + 1)
        yield start, name, node
        at = _skip(text, node.end)
        if text[at : at + 1] == ",":
            at = _skip(text, at + 1)
        elif text[at : at + 1] != closing:
            _fail(text, at)


def _closing(text: str, at: int) -> int:
    """End of the object or array whose last child ends here."""
    at = _skip(text, at)
    return _skip(text, at + 1) + 1 if text[at] == "," else at + 1


def _decode(text: str, found: re.Match[str]) -> Any:
    try:
        return json.loads(found[0])
    except ValueError:
        _fail(text, found.start())


def _skip(text: str, at: int) -> int:
    found = _SPACE.match(text, at)
    assert found is not None, "it matches nothing, too"
    return found.end()


def _fail(text: str, at: int) -> NoReturn:
    line = text.count("\n", 0, at) + 1
    column = at - text.rfind("\n", 0, at)
    raise JsonEditError(f"this is not JSON: line {line}, column {column}")
