"""What is not there: every command that looks for it says the same, by the same code."""

from dragoman.core import missing
from tests.requirements import proves
from tests.surfaces.cli.console import Console

HANDOFF = {
    "show": (),
    "timeline": (),
    "diagnose": (),
    "verify": (),
    "accept": (),
    "activate": (),
    "complete": (),
    "close": (),
    "withdraw": (),
    "extend": ("--by", "30m"),
    "reassign": ("--to", "dan"),
    "reject": ("--reason", "capacity_unavailable", "--detail", "not now"),
    "approve": (),
    "deny": (),
    "validate": (),
    "propose": (),
    "discard": (),
}
OTHERS = (
    (("intent", "show", "nope"), missing.intent("nope")),
    (("intent", "cancel", "nope"), missing.intent("nope")),
    (("why", "nope"), missing.intent("nope")),
    (("wave", "status", "nope"), missing.wave("nope")),
    (("wave", "watch", "nope"), missing.wave("nope")),
    (("mail", "show", "nope"), missing.letter("nope")),
    (("mail", "read", "nope", "--as", "ada"), missing.letter("nope")),
    (("mail", "ack", "nope", "--as", "ada"), missing.letter("nope")),
    (("agent", "show", "nope"), missing.agent("nope")),
    (("agent", "token", "nope"), missing.agent("nope")),
    (("agent", "revoke", "nope"), missing.agent("nope")),
    (("agent", "pause", "nope"), missing.agent("nope")),
    (("agent", "resume", "nope"), missing.agent("nope")),
    (("task", "show", "nope"), missing.task("nope")),
    (("task", "log", "nope"), missing.task("nope")),
    (("task", "move", "nope", "done"), missing.task("nope")),
    (("task", "claim", "nope", "--agent", "ada"), missing.task("nope")),
    (("reserve", "renew", "nope"), missing.reservation("nope")),
    (("reserve", "release", "nope"), missing.reservation("nope")),
)


def told(dragoman: Console, *words: str) -> tuple[str, str]:
    said = dragoman.ask(*words, code=1)
    return said["code"], said["detail"]


@proves("MISSING-WORDS", "CLI-OWN-CODES")
def test_every_command_about_handoffs_says_the_same_of_one_that_is_not_there(
    dragoman: Console,
) -> None:
    dragoman("init")
    no = missing.handoff("nope")
    for verb, more in HANDOFF.items():
        assert told(dragoman, "handoff", verb, "nope", *more) == (no.code, no.detail), verb
    said = dragoman("handoff", "accept", "nope")
    assert (said.code, said.out, said.err) == (1, "", f"{no.code}: {no.detail}\n")


@proves("MISSING-WORDS")
def test_every_command_says_the_same_of_what_is_not_there(dragoman: Console) -> None:
    dragoman("init")
    for words, no in OTHERS:
        assert told(dragoman, *words) == (no.code, no.detail), words


@proves("CLI-OWN-CODES")
def test_what_is_said_in_a_dialect_is_answered_by_its_code(dragoman: Console) -> None:
    dragoman("init")
    said = '{"action": "accept", "handoff_id": "nope"}'
    wire = dragoman.ask("call", "acp_handoff", said, "--as", "bob", code=1)
    assert (wire["code"], wire["error"]["code"]) == ("not_found", "not_found")
    own = dragoman.ask("handoff", "accept", "nope", "--as", "bob", code=1)
    assert (own["code"], own["error"]["code"]) == ("handoff_not_found", "not_found")


@proves("MISSING-WORDS")
def test_the_field_stands_beside_the_sentence_and_not_in_it(dragoman: Console) -> None:
    dragoman("init")
    no = missing.wave("nope")
    said = dragoman.ask("call", "wave.status", '{"wave_id": "nope"}', code=1)
    assert said == {"ok": False, "code": no.code, "detail": no.detail, "path": "wave_id"}
