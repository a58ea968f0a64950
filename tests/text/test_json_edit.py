"""Edits of JSON files of other programs: every other byte stays."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman.text.json_edit import (
    JsonEditError,
    add_item,
    find_value,
    remove_items,
    remove_member,
    set_member,
)
from tests.requirements import proves

pytestmark = proves("CONNECT-UNTOUCHED")

SERVER = {"command": "dragoman", "args": ["mcp"]}
PATH = ("mcpServers", "dragoman")

FILES = (
    '{\n  "mcpServers": {\n    "other": {"command": "x"}\n  }\n}\n',
    '{"mcpServers": {"other": 1}}',
    '{\n\t"theme": "dark",\n\t"mcpServers": {\n\t\t"a": {},\n\t\t"b": 1.50\n\t}\n}',
    '// of the team\n{\n    "mcpServers": {\n        "a": 1, // ours\n    },\n}\n',
    '{\r\n  "x": [1, 2,],\r\n  "y": "\\u00e9 /* no comment */"\r\n}\r\n',
    '{"a": 1e5}',
)


@pytest.mark.parametrize("text", FILES)
def test_member_is_set_and_removed_again(text: str) -> None:
    edited = set_member(text, PATH, SERVER)
    assert find_value(edited, PATH) == SERVER
    assert find_value(edited, PATH[:1]) == {
        **(find_value(text, PATH[:1]) or {}),
        "dragoman": SERVER,
    }
    assert remove_member(edited, PATH) == text
    assert set_member(edited, PATH, SERVER) == edited
    assert find_value(set_member(edited, PATH, 1), PATH) == 1


@pytest.mark.parametrize("text", FILES)
def test_item_is_added_and_removed_again(text: str) -> None:
    path = ("hooks", "Stop")
    once = add_item(text, path, {"command": "dragoman"})
    twice = add_item(once, path, {"command": "other"})
    assert find_value(twice, path) == [{"command": "dragoman"}, {"command": "other"}]
    left = remove_items(twice, path, lambda item: item["command"] == "dragoman")
    assert find_value(left, path) == [{"command": "other"}]
    assert remove_items(once, path, lambda _: True) == text
    assert remove_items(text, path, lambda _: True) == text


def test_new_members_are_indented_as_the_others() -> None:
    assert set_member("{}", PATH, SERVER) == json.dumps(
        {"mcpServers": {"dragoman": SERVER}}, indent=2
    )
    assert set_member('{\n\t"a": 1\n}', ("b",), {"c": 2}) == (
        '{\n\t"a": 1,\n\t"b": {\n\t\t"c": 2\n\t}\n}'
    )


def test_first_and_only_members_are_removed() -> None:
    assert remove_member('{"a": 1, "b": 2}', ("a",)) == '{"b": 2}'
    assert remove_member('{ "a": 1 }', ("a",)) == "{}"
    assert remove_member('{"a": {"b": 1}, "c": 2}', ("a", "b")) == '{"c": 2}'
    assert remove_member('{"a": {"b": 1}}', ("a", "x")) == '{"a": {"b": 1}}'
    assert remove_member('{"a": 1}', ("x", "y")) == '{"a": 1}'
    assert remove_items('{"a": 1}', ("a",), lambda _: True) == '{"a": 1}'


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "line 1, column 1"),
        ("[]", "the whole file is no object"),
        ('{"a": 1,\n "b" 2}', "line 2, column 6"),
        ('{"a": 1 "b": 2}', "line 1, column 9"),
        ('{"a": }', "line 1, column 7"),
        ("{a: 1}", "line 1, column 2"),
        ('{"a": 1', "line 1, column 8"),
        ('{"a": [1', "line 1, column 9"),
        ('{"a": 1} x', "line 1, column 10"),
        ('{"a": 1.2.3}', "line 1, column 7"),
        ('{"a": "\\q"}', "line 1, column 7"),
        ('{"a": "b', "line 1, column 7"),
        ('{"a": 1, "a": 2}', "the key 'a' stands twice"),
        ('{"a": ' + "[" * 100 + "]" * 100 + "}", "nested in more than 64 levels"),
    ],
)
def test_broken_text_is_refused(text: str, reason: str) -> None:
    with pytest.raises(JsonEditError, match=reason):
        set_member(text, PATH, SERVER)


def test_member_of_another_kind_is_refused() -> None:
    with pytest.raises(JsonEditError, match="mcpServers is no object"):
        set_member('{"mcpServers": []}', PATH, SERVER)
    with pytest.raises(JsonEditError, match="hooks is no array"):
        add_item('{"hooks": {}}', ("hooks",), 1)


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner),
    max_leaves=10,
)


@given(
    st.dictionaries(st.text(max_size=3), VALUES, max_size=4),
    st.sampled_from([None, 1, 2, 4]),
    VALUES,
)
def test_any_file_is_edited_as_its_value(
    before: dict[str, object], indent: int | None, value: object
) -> None:
    text = json.dumps(before, indent=indent, ensure_ascii=False)
    edited = set_member(text, ("our key",), value)
    assert json.loads(edited) == {**before, "our key": value}
    assert find_value(edited, ()) == json.loads(edited)
    assert json.loads(remove_member(edited, ("our key",))) == before
