"""Program for summaries: gets the thread, and its output is returned verbatim."""

import json
import os
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from dragoman.bootstrap.data_directory import open_directory
from dragoman.bootstrap.dialects import open_summary_model
from dragoman.config import AgentMailSettings, Settings
from dragoman.core.actor import Actor
from dragoman.engine.request import Accepted, Rejected, Reply
from dragoman.protocols.agentmail import ModelSummary
from tests.engine.lab import ALICE, HUMAN
from tests.requirements import proves

pytestmark = proves("MAIL-MODEL")

COUNTS = "import json, sys; print(len(json.load(sys.stdin)), 'letters')"
NOTE = {"subject": "hello", "body_md": "x", "to": ["bob"], "thread_id": "t-1"}


def summarize(folder: Path, *command: str, actor: Actor = HUMAN, model: bool = True) -> Reply:
    """Request the summary of a thread of one letter."""
    data = folder / "data"
    data.mkdir(mode=0o700, exist_ok=True)
    settings = f"[agentmail]\nsummarize_command = {json.dumps(command)}\n"
    (data / "dragoman.toml").write_text(settings)
    directory = open_directory(data, "", None, create=True)
    try:
        assert isinstance(directory.router.call("mail.send", dict(NOTE), ALICE), Accepted)
        request: dict[str, Any] = {"thread_id": "t-1", "model": model}
        return directory.router.call("mail.summary", request, actor)
    finally:
        directory.hub.close()


def test_program_summary_is_added_to_computed_summary(tmp_path: Path) -> None:
    answer = summarize(tmp_path, sys.executable, "-c", COUNTS)
    assert isinstance(answer, Accepted)
    assert answer.reply["model"] == {"text": "1 letters", "trouble": ""}
    assert answer.reply["messages"] == 1


def test_program_is_not_run_unless_requested(tmp_path: Path) -> None:
    answer = summarize(tmp_path, sys.executable, "-c", COUNTS, model=False)
    assert isinstance(answer, Accepted)
    assert "model" not in answer.reply


@pytest.mark.parametrize(
    "command", [("/nowhere/at-all",), (sys.executable, "-c", "exit(3)"), ("",)]
)
def test_failing_program_leaves_computed_summary(tmp_path: Path, command: tuple[str, ...]) -> None:
    answer = summarize(tmp_path, *command)
    assert isinstance(answer, Accepted)
    assert answer.reply["model"]["text"] == ""
    assert answer.reply["model"]["trouble"]
    assert answer.reply["messages"] == 1


def test_program_must_be_configured_and_requested_by_a_person(tmp_path: Path) -> None:
    off = summarize(tmp_path)
    assert isinstance(off, Rejected)
    assert (off.code, "agentmail.summarize_command" in off.detail) == ("invalid_field", True)
    agent = summarize(tmp_path, sys.executable, "-c", COUNTS, actor=ALICE)
    assert isinstance(agent, Rejected)
    assert agent.code == "not_authorized"


def test_one_thread_is_summarized_at_a_time(tmp_path: Path) -> None:
    gate = tmp_path / "gate"
    os.mkfifo(gate)
    command = (sys.executable, "-c", f"print(open({str(gate)!r}).read())")
    model = open_summary_model(
        Settings(agentmail=AgentMailSettings(summarize_command=command)), tmp_path
    )
    with ThreadPoolExecutor(1) as pool:
        first = pool.submit(model, b"[]")
        with gate.open("w") as writer:  # which blocks until the program reads
            assert "with another thread" in model(b"[]").trouble
            writer.write("at last")
        assert first.result() == ModelSummary("at last")
