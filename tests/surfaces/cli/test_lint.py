"""`lint`: checks messages, names every finding, sends and creates nothing."""

import json
from pathlib import Path

import pytest

from tests.protocols.aof.hub import MESSAGES, report, update
from tests.requirements import proves
from tests.surfaces.cli.console import Console
from tests.surfaces.cli.message_files import MessageFiles

pytestmark = proves("CLI-LINT", "AOF-LINT")


def test_valid_message_of_every_type_is_ok(dragoman: Console, message_file: MessageFiles) -> None:
    for kind, make in MESSAGES.items():
        result = dragoman("lint", "--dialect", "aof", "--kind", kind, message_file(make()))
        assert (result.code, result.out) == (0, f"ok: {kind}\n")
    assert not dragoman.data.exists()


@proves("CLI-EXIT")
def test_every_finding_is_named_with_its_path(
    dragoman: Console, message_file: MessageFiles
) -> None:
    message = report(blockers=[], summaryRef="../x", outcome="blocked") | {"sentAt": "yesterday"}

    result = dragoman("lint", "--dialect", "aof", message_file(message), "--json")

    assert (result.code, result.json["ok"], result.json["type"]) == (1, False, "completion.report")
    assert result.json["message"] == message
    assert {issue["path"] for issue in result.json["issues"]} == {
        "sentAt",
        "payload.summaryRef",
        "payload.blockers",
    }
    text = dragoman("lint", "--dialect", "aof", message_file(message))
    assert text.code == 1
    assert text.out.startswith("not ok: completion.report\n  ")


def test_missing_or_mistyped_field_is_named(dragoman: Console, message_file: MessageFiles) -> None:
    for message, path in (
        (report("great"), "payload.outcome"),
        (report(tests={"total": "1", "passed": 1, "failed": 0}), "payload.tests.total"),
        (report(deliverables=["a", 2]), "payload.deliverables[1]"),
        (report() | {"version": 2}, "version"),
    ):
        result = dragoman("lint", "--dialect", "aof", message_file(message), "--json")
        assert [issue["path"] for issue in result.json["issues"]] == [path]
        assert result.json["issues"][0]["reason"]


def test_lines_are_checked_in_order(dragoman: Console, message_file: MessageFiles) -> None:
    lines = [
        json.dumps(report()),
        json.dumps(update()),
        "{oops",
        "7",
        json.dumps(update(notes="x")),
    ]

    result = dragoman("lint", "--dialect", "aof", "--jsonl", message_file("\n".join(lines) + "\n"))

    assert result.code == 1
    assert [answer["ok"] for answer in result.objects] == [True, False, False, False, True]
    assert all(set(answer) == {"ok", "type", "message", "issues"} for answer in result.objects)
    assert all(answer["issues"] for answer in result.objects if not answer["ok"])
    good = dragoman("lint", "--dialect", "aof", "--jsonl", message_file(lines[0] + "\n"))
    assert (good.code, len(good.objects)) == (0, 1)
    assert dragoman("lint", "--dialect", "aof", "--jsonl", message_file("")).code == 0


def test_strict_option_reports_tolerated_fields(
    dragoman: Console, message_file: MessageFiles
) -> None:
    path = message_file(report() | {"mood": "good"})

    assert dragoman("lint", "--dialect", "aof", path).code == 0
    strict = dragoman("lint", "--dialect", "aof", "--strict", path, "--json")
    assert (strict.code, strict.json["issues"][0]["path"]) == (1, "mood")


@proves("CLI-EXIT")
def test_wrong_kind_is_reported(dragoman: Console, message_file: MessageFiles) -> None:
    result = dragoman("lint", "--dialect", "aof", "--kind", "status.update", message_file(report()))

    assert result.code == 1
    assert "type: this is no status.update" in result.out


@proves("CLI-EXIT")
@pytest.mark.parametrize(
    ("args", "expected"),
    [
        (("lint",), "name a dialect with --dialect; known: aof"),
        (("lint", "--dialect", "latin"), "'latin' is not a dialect; known: aof"),
        (("schema",), "name a dialect that has a schema; known: "),
        (("schema", "latin"), "'latin' is not a dialect that has a schema; known: "),
    ],
)
def test_dialect_must_be_named(dragoman: Console, args: tuple[str, ...], expected: str) -> None:
    result = dragoman(*args)

    assert (result.code, result.out) == (2, "")
    assert expected in result.err


@proves("CLI-EXIT")
@pytest.mark.parametrize("more", [(), ("--jsonl",)])
def test_missing_file_is_a_usage_error(dragoman: Console, more: tuple[str, ...]) -> None:
    result = dragoman("lint", "--dialect", "aof", "/nowhere.json", *more)

    assert (result.code, result.out) == (2, "")
    assert "/nowhere.json cannot be read" in result.err


@proves("CLI-EXIT")
def test_unknown_kind_is_a_usage_error(dragoman: Console, message_file: MessageFiles) -> None:
    result = dragoman(
        "lint", "--dialect", "aof", "--kind", "completion.raport", message_file(report())
    )

    assert (result.code, result.out) == (2, "")
    assert "'completion.raport' is no --kind of aof; known: completion.report, " in result.err


def test_blank_line_is_a_finding_in_order(dragoman: Console, message_file: MessageFiles) -> None:
    line = json.dumps(report())
    result = dragoman(
        "lint", "--dialect", "aof", "--jsonl", message_file(f"\n{line}\n  \r\n{line}")
    )

    assert result.code == 1
    assert [answer["ok"] for answer in result.objects] == [False, True, False, True]
    assert result.objects[0]["issues"] == [{"path": "", "reason": "there is nothing in it"}]


ODD_ROWS = {
    b'{"subject":"DONE","subject":"FAILED","body_md":"x"}': "FAILED",
    b'{"subject":"DONE","body_md":"x","id":NaN}': "DONE",
    b'{"subject":"DONE","body_md":"x","id":1e400}': "DONE",
    b'{"subject":"DONE","body_md":"x","id":9007199254740993}': "DONE",
    rb'{"subject":"DONE \ud800","body_md":"\udfff"}': "DONE",
    b'{"subject":"DONE","body_md":"x","more":' + b"[" * 40 + b"]" * 40 + b"}": "DONE",
    b'{"subject":"DONE","body_md":"' + b"x" * 300_000 + b'"}': "DONE",
    b'\xef\xbb\xbf{"subject":"DONE","body_md":"x"}': "DONE",
    b'{"subject":"DONE \xff","body_md":"x"}': "DONE",
    b"no JSON": "UNKNOWN",
    b'{"subject":"DONE"': "UNKNOWN",
    b"": "UNKNOWN",
    b"null": "UNKNOWN",
    b"7": "UNKNOWN",
    b'"DONE"': "UNKNOWN",
    b'[{"subject":"DONE"}]': "UNKNOWN",
}


@proves("MAIL-STRICT")
def test_mail_is_always_ok_unless_strict(dragoman: Console, message_file: MessageFiles) -> None:
    rows = message_file(b"\n".join(ODD_ROWS) + b"\n")
    result = dragoman("lint", "--dialect", "agentmail", "--jsonl", rows)
    assert [answer["type"] for answer in result.objects] == list(ODD_ROWS.values())
    assert all(answer["ok"] and answer["issues"] for answer in result.objects)
    assert all(answer["message"]["type"] == answer["type"] for answer in result.objects)
    assert result.code == 0
    strict = dragoman("lint", "--dialect", "agentmail", "--strict", "--jsonl", rows)
    assert (strict.code, len(strict.objects)) == (1, len(ODD_ROWS))
    assert not any(answer["ok"] for answer in strict.objects)
    for row, kind in ODD_ROWS.items():
        assert dragoman("lint", "--dialect", "agentmail", message_file(row)).out.startswith(
            f"ok: {kind}"
        )


@proves("AOF-PREFIX-LINT")
def test_message_with_prefix_is_accepted(dragoman: Console, tmp_path: Path) -> None:
    file = tmp_path / "sent.txt"
    sent = [f"AOF/1 {json.dumps(message)}" for message in (report(), update(notes="x"))]
    file.write_text("\n".join([*sent, "AOF/1 {", f"AOF/2 {json.dumps(report())}"]) + "\n")
    result = dragoman("lint", "--dialect", "aof", "--strict", "--jsonl", str(file))
    assert [json.loads(line)["ok"] for line in result.out.splitlines()] == [
        True,
        True,
        False,
        False,
    ]
    file.write_text(sent[0])
    assert dragoman("lint", "--dialect", "aof", str(file)).out == "ok: completion.report\n"
    assert dragoman("lint", "--dialect", "ccos", str(file)).code == 1


@proves("LINT-FILES", "CLI-EXIT")
def test_worst_of_several_files_sets_the_exit_code(dragoman: Console, tmp_path: Path) -> None:
    good, bad, missing = (tmp_path / name for name in ("good.json", "bad.json", "gone.json"))
    good.write_text(json.dumps(report()))
    bad.write_text(json.dumps(report("great")))
    lint = ("lint", "--dialect", "aof")
    assert dragoman(*lint, str(good), str(good)).code == 0
    result = dragoman(*lint, str(bad), str(good))
    assert result.code == 1
    assert result.out.startswith(f"{bad}: not ok: completion.report\n  payload.outcome: ")
    assert result.out.endswith(f"{good}: ok: completion.report\n")
    for more in ("--json", "--jsonl"):
        answers = dragoman(*lint, more, str(good), str(bad)).objects
        assert [(answer["file"], answer["ok"]) for answer in answers] == [
            (str(good), True),
            (str(bad), False),
        ]
    worst = dragoman(*lint, str(missing), str(bad), str(tmp_path), str(good))
    assert worst.code == 2
    assert [line.partition(":")[0] for line in worst.out.splitlines() if line[0] != " "] == [
        str(bad),
        str(good),
    ]
    assert "gone.json cannot be read: No such file" in worst.err
    assert "cannot be read: Is a directory" in worst.err
