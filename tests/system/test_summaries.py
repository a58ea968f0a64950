"""The hook for a model: a real program gets the thread, and its words come back as they are."""

import json
import os
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from dragoman.bootstrap.places import open_place
from dragoman.bootstrap.summaries import open_model
from dragoman.config import AgentMailSettings, Settings
from dragoman.core.actors import Actor
from dragoman.engine.plan import Answer, Taken, Turned
from dragoman.protocols.agentmail import InWords
from tests.engine.lab import ALICE, HUMAN
from tests.requirements import proves

pytestmark = proves("MAIL-MODEL")

COUNTS = "import json, sys; print(len(json.load(sys.stdin)), 'letters')"
NOTE = {"subject": "hello", "body_md": "x", "to": ["bob"], "thread_id": "t-1"}


def asked(folder: Path, *command: str, actor: Actor = HUMAN, model: bool = True) -> Answer:
    """The answer to whoever wants a thread of one letter put into words."""
    data = folder / "data"
    data.mkdir(mode=0o700, exist_ok=True)
    named = f"[agentmail]\nsummarize_command = {json.dumps(command)}\n"
    (data / "dragoman.toml").write_text(named)
    place = open_place(data, "", None, create=True)
    try:
        assert isinstance(place.interpreter.call("mail.send", dict(NOTE), ALICE), Taken)
        wanted: dict[str, Any] = {"thread_id": "t-1", "model": model}
        return place.interpreter.call("mail.summary", wanted, actor)
    finally:
        place.hub.close()


def test_a_program_puts_a_thread_into_words_beside_what_is_certain(tmp_path: Path) -> None:
    answer = asked(tmp_path, sys.executable, "-c", COUNTS)
    assert isinstance(answer, Taken)
    assert answer.reply["model"] == {"text": "1 letters", "trouble": ""}
    assert answer.reply["messages"] == 1


def test_nobody_is_asked_who_was_not_called_for(tmp_path: Path) -> None:
    answer = asked(tmp_path, sys.executable, "-c", COUNTS, model=False)
    assert isinstance(answer, Taken)
    assert "model" not in answer.reply


@pytest.mark.parametrize(
    "command", [("/nowhere/at-all",), (sys.executable, "-c", "exit(3)"), ("",)]
)
def test_one_that_fails_leaves_the_rest_of_the_summary(
    tmp_path: Path, command: tuple[str, ...]
) -> None:
    answer = asked(tmp_path, *command)
    assert isinstance(answer, Taken)
    assert answer.reply["model"]["text"] == ""
    assert answer.reply["model"]["trouble"]
    assert answer.reply["messages"] == 1


def test_there_is_none_unless_it_is_named_and_an_agent_has_none_asked(tmp_path: Path) -> None:
    off = asked(tmp_path)
    assert isinstance(off, Turned)
    assert (off.code, "agentmail.summarize_command" in off.detail) == ("invalid_field", True)
    agent = asked(tmp_path, sys.executable, "-c", COUNTS, actor=ALICE)
    assert isinstance(agent, Turned)
    assert agent.code == "not_authorized"


def test_one_thread_at_a_time_is_put_into_words(tmp_path: Path) -> None:
    gate = tmp_path / "gate"
    os.mkfifo(gate)
    command = (sys.executable, "-c", f"print(open({str(gate)!r}).read())")
    model = open_model(Settings(agentmail=AgentMailSettings(summarize_command=command)), tmp_path)
    with ThreadPoolExecutor(1) as others:
        first = others.submit(model, b"[]")
        with gate.open("w") as opened:  # which it is as soon as the program reads
            assert "at another thread" in model(b"[]").trouble
            opened.write("at last")
        assert first.result() == InWords("at last")
