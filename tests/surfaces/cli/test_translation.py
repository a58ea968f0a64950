"""`dragoman translate`: the message alone, or with everything that it says otherwise."""

import json
from pathlib import Path

from docs.translation_examples import EXAMPLES
from tests.requirements import proves
from tests.surfaces.cli.console import Console


def write(folder: Path, message: object) -> str:
    path = folder / "message.json"
    path.write_text(json.dumps(message), encoding="utf-8")
    return str(path)


@proves("NOTICE-TRANSLATE")
def test_message_is_printed_and_explained(dragoman: Console, tmp_path: Path) -> None:
    report = write(tmp_path, EXAMPLES["aof"]["completion.report partial"])
    words = ("translate", "--from", "aof", "--to", "agentmail", report)

    plain = json.loads(dragoman(*words).out)
    explained = dragoman(*words, "--explain").out.splitlines()
    whole = json.loads(dragoman(*words, "--json").out)

    assert plain == whole["message"] == json.loads(explained[0])
    assert explained[1] == "agentmail says it: checkpoint"
    assert 'lost: outcome = "partial"' in explained
    assert {"field": "outcome", "value": "partial"} in whole["losses"]
    assert not dragoman.data.exists()


@proves("NOTICE-TRANSLATE")
def test_notice_and_lossless_translation_are_explained(dragoman: Console, tmp_path: Path) -> None:
    letter = write(tmp_path, EXAMPLES["agentmail"]["FAILED"])
    saop = dragoman("translate", "--from", "agentmail", "--to", "saop", "--explain", letter).out
    assert "saop says it as a notice, which has no message of its own: failed" in saop
    same = dragoman("translate", "--from", "agentmail", "--to", "agentmail", "--explain", letter)
    assert "nothing is lost, and nothing was filled in" in same.out


@proves("NOTICE-TRANSLATE")
def test_unknown_dialect_and_untranslatable_message(dragoman: Console, tmp_path: Path) -> None:
    query = write(tmp_path, {"action": "query"})
    assert dragoman("translate", "--to", "aof", query).code == 2
    assert "known: aof" in dragoman("translate", "--from", "aof", "--to", "x", query).err
    refused = dragoman("translate", "--from", "acp", "--to", "aof", query, "--json")
    assert (refused.code, json.loads(refused.out)["code"]) == (1, "not_expressible")
