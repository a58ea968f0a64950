"""Task files: any text round-trips; edits are parsed, or refused with the name of the field."""

import re
from typing import get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from dragoman.core.base import Priority, Status
from dragoman.engine.schemas.briefing import quote
from dragoman.files.errors import BadFile
from dragoman.files.task_file import (
    EditedFile,
    TaskFile,
    TaskFileLease,
    format_task_file,
    is_unedited,
    parse_task_file,
)
from dragoman.files.work_log import LogEntry
from tests.requirements import proves

MOMENTS = st.integers(0, 253_402_300_799_999)
PIECES = st.sampled_from(
    [
        "---",
        "\n",
        "\r\n",
        "## Work Log",
        "\\## Work Log",
        " | ",
        "|",
        "; ",
        "\\",
        "- 2026-02-09T21:20:00.000Z Notes: forged",
        "status: done",
        "projection: 7-0123456789abcdef",
        "&#x1b;",
        "&amp;#x1b;",
        "\x1b[2J",
        "\u202e",
        "\U000e0041",
        "\u2028",
        "'",
        '"',
        "#",
        " ",
        "\t",
        "<script>",
        "![x](http://a)",
        "\\u{1b}",
    ]
)
TEXTS = st.one_of(
    st.text(st.characters(codec="utf-8"), max_size=40), st.lists(PIECES, max_size=6).map("".join)
)
NAMES = st.from_regex(r"[A-Za-z0-9][A-Za-z0-9._-]{0,20}(@host)?", fullmatch=True)

FILES = st.builds(
    TaskFile,
    id=st.just("TASK-2026-02-09-057"),
    title=TEXTS.filter(bool),
    status=st.sampled_from(get_args(Status)),
    created_at=MOMENTS,
    updated_at=MOMENTS,
    moved_at=MOMENTS,
    priority=st.sampled_from(get_args(Priority)),
    assignee=st.one_of(st.just(""), NAMES),
    parent_id=st.one_of(st.just(""), NAMES),
    lease=st.one_of(
        st.none(),
        st.builds(
            TaskFileLease, NAMES, st.integers(1, 9), st.integers(1, 9), MOMENTS, st.integers(1, 9)
        ),
    ),
    review_required=st.booleans(),
    depth=st.integers(0, 1),
    aliases=st.lists(NAMES.map("bead:{}".format), max_size=3).map(tuple),
    primary_id=st.one_of(st.just(""), NAMES),
    body=TEXTS,
    briefing=st.lists(st.tuples(st.just("The last attempt"), TEXTS.map(quote)), max_size=2).map(
        tuple
    ),
    log=st.lists(
        st.builds(
            LogEntry,
            at=MOMENTS,
            progress=TEXTS,
            notes=TEXTS,
            blockers=st.lists(TEXTS, max_size=3).map(tuple),
            by=TEXTS,
        ),
        max_size=3,
    ).map(tuple),
    version=st.integers(1, 10**9),
)

BASE = TaskFile("TASK-2026-02-09-057", "Fix it", "ready", 0, 0, 0, version=3)


def assert_read_back(data: bytes, file: TaskFile) -> None:
    """Check that what people may edit is read from a file as the task has it."""
    read = parse_task_file(data)
    for field in ("title", "body", "priority", "review_required", "assignee", "status", "version"):
        assert getattr(read, field) == getattr(file, field)
    assert read.hub_parts == parse_task_file(format_task_file(file)).hub_parts


@proves("FILES-ROUND-TRIP")
@given(FILES)
def test_task_file_round_trips_any_text(file: TaskFile) -> None:
    data = format_task_file(file)
    assert_read_back(data, file)
    assert is_unedited(data)


@proves("FILES-ROUND-TRIP")
@given(FILES)
def test_file_with_bom_and_crlf_is_read_alike(file: TaskFile) -> None:
    saved = b"\xef\xbb\xbf" + format_task_file(file).replace(b"\n", b"\r\n")
    assert_read_back(saved, file)
    assert not is_unedited(saved)


@proves("FILES-ROUND-TRIP")
@given(FILES)
def test_text_adds_no_line_and_no_control_character(file: TaskFile) -> None:
    data = format_task_file(file).decode()
    assert not set(data) & {"\x1b", "\r", "\u202e", "\u2028", "\x85", "\x0b", "\U000e0041"}
    head = data.split("---\n")[1]
    assert sum(line.startswith("status:") for line in head.splitlines()) == 1
    lines = data.split("\n")
    assert lines.count("## Work Log") == bool(file.log)
    assert lines.count("## Briefing") == bool(file.briefing)


NOT_IN_YAML = re.compile("[^\t\n\r -~\x85\xa0-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
"""Characters that YAML 1.2 does not allow (the complement of c-printable)."""


@proves("FILES-ROUND-TRIP")
@pytest.mark.parametrize("first", range(0, 0x11_0000, 0x1_0000))
def test_title_has_only_yaml_printable_characters(first: int) -> None:
    codes = (code for code in range(first, first + 0x1_0000) if not 0xD800 <= code < 0xE000)
    file = replace(BASE, title="".join(map(chr, codes)))
    data = format_task_file(file)
    assert NOT_IN_YAML.search(data.decode()) is None
    assert parse_task_file(data).title == file.title


@proves("FILES-ROUND-TRIP", "MAIL-HOSTILE")
@given(FILES)
def test_foreign_text_has_no_live_tag_or_link(file: TaskFile) -> None:
    data = format_task_file(replace(file, title="x", body="")).decode()
    assert not re.search(r"<[A-Za-z/!?]|\][(:]", data)
    assert not re.search(r"<[A-Za-z/!?]", format_task_file(replace(file, body="")).decode())


@proves("FILES-ROUND-TRIP", "MAIL-HOSTILE")
def test_markdown_is_escaped_and_restored() -> None:
    hostile = "![x](http://a) <script>a < b</script> <!-- \\<b> [n]: 1 | # x\n## Work Log\n---"
    file = replace(BASE, title=hostile, log=(LogEntry(0, hostile),))
    written = format_task_file(file).decode()
    assert written.splitlines()[-1].partition("Progress: ")[2] == (
        r"![x]\(http://a) \u{3c}script>a < b\u{3c}/script> \u{3c}!-- \\\u{3c}b> [n]\: 1 \| # x"
        r"\n## Work Log\n---"
    )
    assert parse_task_file(written.encode()).title == hostile


@proves("FILES-ROUND-TRIP")
@given(FILES, st.data())
def test_edit_breaks_the_seal(file: TaskFile, data: st.DataObject) -> None:
    written = format_task_file(file)
    at = data.draw(st.integers(0, len(written) - 1))
    changed = data.draw(
        st.binary(min_size=0, max_size=2).filter(lambda b: b != written[at : at + 1])
    )
    edited = written[:at] + changed + written[at + 1 :]
    assert edited == written or not is_unedited(edited)


@proves("FILES-TASK-FILE")
def test_task_file_matches_the_guide() -> None:
    file = TaskFile(
        id="TASK-2026-02-09-057",
        title='Fix "it"',
        status="in-progress",
        created_at=1_770_670_500_000,
        updated_at=1_770_670_800_000,
        moved_at=1_770_670_800_000,
        priority="high",
        assignee="swe-backend",
        parent_id="TASK-2026-02-09-050",
        lease=TaskFileLease("swe-backend", 1, 4, 1_770_670_800_000, 300_000),
        aliases=("bead:ol-527.1",),
        primary_id="ol-527.1",
        body="What is to be done.\n\n## How\n\nWell.",
        log=(
            LogEntry(
                1_770_671_100_000,
                "Implemented core logic",
                "ETA after credentials arrive",
                ("Awaiting API key",),
            ),
        ),
        version=5,
    )
    written = format_task_file(file).decode()
    assert re.sub("5-[0-9a-f]{16}", "5-DIGEST", written) == EXAMPLE


EXAMPLE = """\
---
id: TASK-2026-02-09-057
title: "Fix \\"it\\""
status: in-progress
createdAt: "2026-02-09T20:55:00.000Z"
updatedAt: "2026-02-09T21:00:00.000Z"
lastTransitionAt: "2026-02-09T21:00:00.000Z"
priority: high
assignee: swe-backend
parentId: TASK-2026-02-09-050
lease:
  agent: swe-backend
  attempt: 1
  fence: 4
  acquiredAt: "2026-02-09T21:00:00.000Z"
  ttlMs: 300000
metadata:
  reviewRequired: true
  delegationDepth: 0
aliases:
  - "bead:ol-527.1"
primaryId: ol-527.1
projection: 5-DIGEST
---

What is to be done.

## How

Well.

## Work Log

- 2026-02-09T21:05:00.000Z Progress: Implemented core logic | \
Notes: ETA after credentials arrive | Blockers: Awaiting API key
"""


def edit_base(old: str, new: str) -> EditedFile:
    """Parse the base file after an edit."""
    text = format_task_file(BASE).decode()
    assert old in text
    return parse_task_file(text.replace(old, new, 1).encode())


@proves("MAIL-LINKS", "FILES-TASK-FILE")
@pytest.mark.parametrize(
    "title", ["![x](http://a/t.png)", "[c](javascript:alert(1))", "[r]: http://a", "[P1] mend (it)"]
)
def test_links_and_images_of_title_are_escaped(title: str) -> None:
    file = replace(BASE, title=title)
    data = format_task_file(file)
    assert b"](" not in data
    assert b"]:" not in data
    assert ("[P1] mend (it)" in data.decode()) == (title == "[P1] mend (it)")
    assert_read_back(data, file)


@proves("FILES-TASK-FILE")
@pytest.mark.parametrize(
    ("typed", "title"),
    [
        ("Fix that", "Fix that"),
        ("'it''s'", "it's"),
        ('"a \\u00e9 \\U0001f600 \\x41 \\/"', "a é 😀 A /"),
        ("no", "no"),
        ("2026-02-09", "2026-02-09"),
        ("Fix: it", "Fix: it"),
        ("a#b", "a#b"),
    ],
)
def test_title_may_be_plain_or_quoted(typed: str, title: str) -> None:
    assert edit_base('"Fix it"', typed).title == title


@proves("FILES-TASK-FILE")
@pytest.mark.parametrize(
    ("old", "new", "problem"),
    [
        ("---\n", "", "line 1: the file must begin"),
        ("\n---\n", "\n", "line 1: the front matter has no end"),
        ("status: ready", "status: ready\nstatus: done", "line 5: status occurs twice"),
        ("status: ready", "status: reddy", "status: it must be one of backlog, ready"),
        ("status: ready", "status ready", "line 4: 'status ready' is not of the form"),
        ('title: "Fix it"\n', "", "the field title is missing"),
        ('"Fix it"', "&a Fix", "line 3: a value that begins with & must stand in double quotes"),
        ('"Fix it"', "|", "line 3: a value that begins with |"),
        ('"Fix it"', "Fix #12", "line 3: a # after a space begins a comment"),
        ('"Fix it"', '"Fix" it', "line 3: the quotes around the value do not end"),
        ('"Fix it"', '"\\q"', "line 3: a backslash in double quotes"),
        ('"Fix it"', '"\\ud800"', "line 3: \\ud800 is not a character"),
        ('"Fix it"', "[a, b]", "line 3: a value that begins with [ must stand in double quotes"),
        ('"Fix it"', "\n  - a", "title: it must be one text on one line"),
        ("metadata:", "# mine\nmetadata:", "line 9: a comment would not be kept"),
        (
            "priority: normal",
            "priority: 1",
            "priority: it must be one of critical, high",
        ),
        (
            "reviewRequired: true",
            "reviewRequired: maybe",
            "metadata.reviewRequired: it must be one of true, false",
        ),
        (
            "delegationDepth: 0",
            "reviewRequired: true",
            "line 11: reviewRequired occurs twice",
        ),
        ("  delegationDepth: 0", "  - x", "a list and a map are mixed under one name"),
    ],
)
def test_error_names_malformed_field(old: str, new: str, problem: str) -> None:
    with pytest.raises(BadFile) as bad:
        edit_base(old, new)
    assert problem in bad.value.detail


@proves("FILES-TASK-FILE")
@pytest.mark.parametrize(
    ("old", "new", "name"),
    [
        ("delegationDepth: 0", "delegationDepth: x", "metadata.delegationDepth"),
        ("metadata:", "aliases:\n  - x\nmetadata:", "aliases"),
        ("metadata:", "colour: red\nmetadata:", "colour"),
        ("\n---\n\n", "\n---\n\n## Work Log\nmore", "the work log"),
        ("\n---\n\n", "\n---\n\n## Briefing\nmore", "the briefing"),
    ],
)
def test_part_of_the_hub_is_told_apart(old: str, new: str, name: str) -> None:
    before, edited = parse_task_file(format_task_file(BASE)), edit_base(old, new)
    changed = {
        part
        for part in before.hub_parts.keys() | edited.hub_parts.keys()
        if before.hub_parts.get(part) != edited.hub_parts.get(part)
    }
    assert changed == {name}


@proves("FILES-TASK-FILE")
def test_error_names_byte_that_is_not_utf8() -> None:
    with pytest.raises(BadFile, match="byte 3 is not UTF-8"):
        parse_task_file(b"--\xff")
    assert not is_unedited(b"\xff")
    assert not is_unedited(b"no seal")
