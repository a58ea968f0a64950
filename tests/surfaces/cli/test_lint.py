"""lint: messages are checked, every finding is named, and nothing is sent or made."""

import json
from pathlib import Path

import pytest

from tests.protocols.aof.hub import MESSAGES, report, update
from tests.requirements import proves
from tests.surfaces.cli.console import Console
from tests.surfaces.cli.letters import Letters

pytestmark = proves("CLI-LINT", "AOF-LINT")


def test_a_good_message_of_every_type_is_ok(dragoman: Console, letter: Letters) -> None:
    for kind, make in MESSAGES.items():
        said = dragoman("lint", "--dialect", "aof", "--kind", kind, letter(make()))
        assert (said.code, said.out) == (0, f"ok: {kind}\n")
    assert not dragoman.data.exists()


@proves("CLI-EXIT")
def test_every_finding_is_named_with_its_place(dragoman: Console, letter: Letters) -> None:
    message = report(blockers=[], summaryRef="../x", outcome="blocked") | {"sentAt": "yesterday"}

    said = dragoman("lint", "--dialect", "aof", letter(message), "--json")

    assert (said.code, said.json["ok"], said.json["type"]) == (1, False, "completion.report")
    assert said.json["message"] == message
    assert {issue["path"] for issue in said.json["issues"]} == {
        "sentAt",
        "payload.summaryRef",
        "payload.blockers",
    }
    in_words = dragoman("lint", "--dialect", "aof", letter(message))
    assert in_words.code == 1
    assert in_words.out.startswith("not ok: completion.report\n  ")


def test_everything_that_is_missing_or_of_the_wrong_kind_is_listed(
    dragoman: Console, letter: Letters
) -> None:
    message = report("great", tests={"total": "1", "passed": 1}, deliverables=["a", 2], notes=None)
    del message["sentAt"]

    said = dragoman("lint", "--dialect", "aof", letter(message | {"version": 2}), "--json")

    assert {issue["path"] for issue in said.json["issues"]} == {
        "version",
        "sentAt",
        "payload.outcome",
        "payload.tests.total",
        "payload.tests.failed",
        "payload.deliverables[1]",
        "payload.notes",
    }
    outcome = next(i for i in said.json["issues"] if i["path"] == "payload.outcome")
    assert outcome["reason"].endswith("is not one of: done, blocked, needs_review, partial")
    listed = dragoman("lint", "--dialect", "aof", letter(report() | {"payload": []}), "--json")
    assert [issue["path"] for issue in listed.json["issues"]] == ["payload"]


def test_lines_are_answered_in_their_order(dragoman: Console, letter: Letters) -> None:
    lines = [
        json.dumps(report()),
        json.dumps(update()),
        "{oops",
        "7",
        json.dumps(update(notes="x")),
    ]

    said = dragoman("lint", "--dialect", "aof", "--jsonl", letter("\n".join(lines) + "\n"))

    assert said.code == 1
    assert [answer["ok"] for answer in said.objects] == [True, False, False, False, True]
    assert all(set(answer) == {"ok", "type", "message", "issues"} for answer in said.objects)
    assert all(answer["issues"] for answer in said.objects if not answer["ok"])
    good = dragoman("lint", "--dialect", "aof", "--jsonl", letter(lines[0] + "\n"))
    assert (good.code, len(good.objects)) == (0, 1)
    assert dragoman("lint", "--dialect", "aof", "--jsonl", letter("")).code == 0


def test_strict_minds_what_the_hub_lets_pass(dragoman: Console, letter: Letters) -> None:
    odd = letter(report() | {"mood": "good"})

    assert dragoman("lint", "--dialect", "aof", odd).code == 0
    strict = dragoman("lint", "--dialect", "aof", "--strict", odd, "--json")
    assert (strict.code, strict.json["issues"][0]["path"]) == (1, "mood")


@proves("CLI-EXIT")
def test_a_wrong_kind_is_told(dragoman: Console, letter: Letters) -> None:
    said = dragoman("lint", "--dialect", "aof", "--kind", "status.update", letter(report()))

    assert said.code == 1
    assert "type: this is no status.update" in said.out


@proves("CLI-EXIT")
@pytest.mark.parametrize(
    ("words", "why"),
    [
        (("lint",), "name a dialect with --dialect; known: aof"),
        (("lint", "--dialect", "latin"), "'latin' is not a dialect; known: aof"),
        (("schema",), "name a dialect that has a schema; known: "),
        (("schema", "latin"), "'latin' is not a dialect that has a schema; known: "),
    ],
)
def test_a_dialect_must_be_named(dragoman: Console, words: tuple[str, ...], why: str) -> None:
    said = dragoman(*words)

    assert (said.code, said.out) == (2, "")
    assert why in said.err


@proves("CLI-EXIT")
@pytest.mark.parametrize("more", [(), ("--jsonl",)])
def test_a_file_that_is_not_there_is_wrong_usage(dragoman: Console, more: tuple[str, ...]) -> None:
    said = dragoman("lint", "--dialect", "aof", "/nowhere.json", *more)

    assert (said.code, said.out) == (2, "")
    assert "/nowhere.json cannot be read" in said.err


@proves("CLI-EXIT")
def test_a_kind_that_there_is_not_is_wrong_usage(dragoman: Console, letter: Letters) -> None:
    said = dragoman("lint", "--dialect", "aof", "--kind", "completion.raport", letter(report()))

    assert (said.code, said.out) == (2, "")
    assert "'completion.raport' is no --kind of aof; known: completion.report, " in said.err


def test_a_blank_line_is_answered_in_its_place(dragoman: Console, letter: Letters) -> None:
    line = json.dumps(report())
    said = dragoman("lint", "--dialect", "aof", "--jsonl", letter(f"\n{line}\n  \r\n{line}"))

    assert said.code == 1
    assert [answer["ok"] for answer in said.objects] == [False, True, False, True]
    assert said.objects[0]["issues"] == [{"path": "", "reason": "there is nothing in it"}]


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
def test_a_letter_is_always_ok_unless_strict_and_says_what_cannot_be_read(
    dragoman: Console, letter: Letters
) -> None:
    rows = letter(b"\n".join(ODD_ROWS) + b"\n")
    said = dragoman("lint", "--dialect", "agentmail", "--jsonl", rows)
    assert [answer["type"] for answer in said.objects] == list(ODD_ROWS.values())
    assert all(answer["ok"] and answer["issues"] for answer in said.objects)
    assert all(answer["message"]["type"] == answer["type"] for answer in said.objects)
    assert said.code == 0
    strict = dragoman("lint", "--dialect", "agentmail", "--strict", "--jsonl", rows)
    assert (strict.code, len(strict.objects)) == (1, len(ODD_ROWS))
    assert not any(answer["ok"] for answer in strict.objects)
    for row, kind in ODD_ROWS.items():
        assert dragoman("lint", "--dialect", "agentmail", letter(row)).out.startswith(f"ok: {kind}")


@proves("AOF-PREFIX-LINT")
def test_a_message_may_stand_behind_the_prefix_as_the_hub_takes_it(
    dragoman: Console, tmp_path: Path
) -> None:
    file = tmp_path / "sent.txt"
    sent = [f"AOF/1 {json.dumps(message)}" for message in (report(), update(notes="x"))]
    file.write_text("\n".join([*sent, "AOF/1 {", f"AOF/2 {json.dumps(report())}"]) + "\n")
    said = dragoman("lint", "--dialect", "aof", "--strict", "--jsonl", str(file))
    assert [json.loads(line)["ok"] for line in said.out.splitlines()] == [True, True, False, False]
    file.write_text(sent[0])
    assert dragoman("lint", "--dialect", "aof", str(file)).out == "ok: completion.report\n"
    assert dragoman("lint", "--dialect", "ccos", str(file)).code == 1


@proves("LINT-FILES", "CLI-EXIT")
def test_several_files_are_named_and_the_worst_decides(dragoman: Console, tmp_path: Path) -> None:
    good, bad, gone = (tmp_path / name for name in ("good.json", "bad.json", "gone.json"))
    good.write_text(json.dumps(report()))
    bad.write_text(json.dumps(report("great")))
    lint = ("lint", "--dialect", "aof")
    assert dragoman(*lint, str(good), str(good)).code == 0
    said = dragoman(*lint, str(bad), str(good))
    assert said.code == 1
    assert said.out.startswith(f"{bad}: not ok: completion.report\n  payload.outcome: ")
    assert said.out.endswith(f"{good}: ok: completion.report\n")
    for more in ("--json", "--jsonl"):
        answers = dragoman(*lint, more, str(good), str(bad)).objects
        assert [(one["file"], one["ok"]) for one in answers] == [
            (str(good), True),
            (str(bad), False),
        ]
    worst = dragoman(*lint, str(gone), str(bad), str(tmp_path), str(good))
    assert worst.code == 2
    assert [line.partition(":")[0] for line in worst.out.splitlines() if line[0] != " "] == [
        str(bad),
        str(good),
    ]
    assert "gone.json cannot be read: No such file" in worst.err
    assert "cannot be read: Is a directory" in worst.err
