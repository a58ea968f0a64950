"""`dragoman redact`, and what a person is told whose words held a secret."""

import io
import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from dragoman.bootstrap.redaction import find_redactor
from dragoman.core.errors import SettingsError
from tests.requirements import proves
from tests.surfaces.cli.console import Console

TOKEN = "ghp_" + "a1B2" * 9
PLACEHOLDER = re.compile(r"\[REDACTED:[a-z_]+:[0-9a-f]{8}\]")


@proves("REDACT-CLI")
def test_a_file_is_printed_without_its_secrets(dragoman: Console, tmp_path: Path) -> None:
    file = tmp_path / "notes.md"
    file.write_text(f"first\npush {TOKEN} now\npassword: hunter22x\nend", encoding="utf-8")
    said = dragoman("redact", str(file))
    assert said.code == 0
    assert PLACEHOLDER.sub("#", said.out) == "first\npush # now\npassword: #\nend"
    assert not dragoman.data.exists()


@proves("REDACT-CLI")
def test_with_json_it_says_what_was_found(dragoman: Console, tmp_path: Path) -> None:
    file = tmp_path / "notes.md"
    file.write_text(f"{TOKEN} {TOKEN}\nAKIAIOSFODNN7EXAMPL2\n", encoding="utf-8")
    said = dragoman.ask("redact", str(file))
    assert (said["ok"], said["masked"]) == (True, True)
    assert [(one["kind"], one["count"]) for one in said["found"]] == [
        ("aws_access_key_id", 1),
        ("github_token", 2),
    ]
    assert TOKEN not in said["text"]
    file.write_text("nothing here", encoding="utf-8")
    assert dragoman.ask("redact", str(file)) == {
        "ok": True,
        "masked": False,
        "found": [],
        "text": "nothing here",
    }
    assert dragoman("redact", str(tmp_path / "none")).code == 2


@proves("REDACT-CLI")
def test_bytes_that_are_no_text_go_through_as_they_are(tmp_path: Path) -> None:
    said = b"\xff\x00 caf\xc3\xa9 " + TOKEN.encode() + b" \xf0\x9f\r\nlast \xc3"
    done = subprocess.run(
        [sys.executable, "-m", "dragoman", "--data", str(tmp_path / "hub"), "redact"],
        input=said,
        capture_output=True,
        check=True,
    )
    before, _, after = said.partition(TOKEN.encode())
    assert done.stdout.startswith(before + b"[REDACTED:github_token:")
    assert done.stdout.endswith(b"]" + after)


@proves("REDACT-HUB", "REDACT-PLACEHOLDER")
def test_the_data_directory_gives_what_is_known_and_the_key(
    dragoman: Console, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    dragoman("init")
    (dragoman.data / "dragoman.toml").write_text(
        """
        [notify]
        webhook_url = "https://hook.example"
        webhook_secret = "a plain sentence"
        [redaction]
        variables = ["OWN_WORD"]
        [store]
        url = "postgresql://ann:open%20sesame@db/x"
        [agents.coder]
        command = ["true"]
        environment = ["SERVICE_TOKEN", "EDITOR", "LICENSE_FILE"]
        """,
        encoding="utf-8",
    )
    given = {"SERVICE_TOKEN": "swordfish", "EDITOR": "emacs-nox", "OWN_WORD": "rosebud"}
    for name, value in given.items():
        monkeypatch.setenv(name, value)
    redactor = find_redactor(dragoman.data)
    text = "a plain sentence, open sesame, open%20sesame, swordfish, emacs-nox, rosebud"
    masked = redactor.text(text)
    assert [one.kind for one in masked.found] == [
        "webhook_secret",
        "url_password",
        "url_password",
        "service_token",
        "own_word",
    ]
    assert "emacs-nox" in masked.text
    assert find_redactor(dragoman.data).text(text) == masked
    assert find_redactor(tmp_path / "none").text(text).found == ()
    monkeypatch.setenv("OWN_WORD", "abc")
    with pytest.raises(SettingsError, match="OWN_WORD has fewer than 6 characters"):
        find_redactor(dragoman.data)
    assert dragoman("task", "list").code == 1


@proves("REDACT-REQUESTS")
def test_a_person_is_told_that_a_secret_was_masked(dragoman: Console, tmp_path: Path) -> None:
    said = dragoman("task", "create", f"Use {TOKEN}")
    assert said.code == 0
    assert "warning: a secret was masked: title (github_token)" in said.err
    (task,) = dragoman.ask("task", "list")["tasks"]
    assert task["title"].startswith("Use [REDACTED:github_token:")
    for path in dragoman.data.rglob("*"):
        assert not path.is_file() or TOKEN.encode() not in path.read_bytes(), path


@proves("REDACT-REQUESTS")
def test_the_sender_of_a_message_is_told_in_the_answer(dragoman: Console, tmp_path: Path) -> None:
    row = {"to": ["bob"], "subject": "Hello", "body_md": f"Take {TOKEN} with you"}
    file = tmp_path / "letter.json"
    file.write_text(json.dumps(row), encoding="utf-8")
    said = dragoman.ask("send", "--as", "ann", str(file))
    assert said["warnings"] == ["a secret was masked: body (github_token)"]
    called = dragoman("call", "mail.send", "--as", "ann", json.dumps(row))
    assert called.err == "warning: a secret was masked: body (github_token)\n"
    assert "warnings" not in json.loads(called.out), "a reply is its dialect's own"
    for path in dragoman.data.rglob("*"):
        assert not path.is_file() or TOKEN.encode() not in path.read_bytes(), path


@proves("REDACT-CLI")
def test_standard_input_is_read_as_it_comes(
    dragoman: Console, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(f"x {TOKEN}\n".encode())))
    assert PLACEHOLDER.sub("#", dragoman("redact").out) == "x #\n"
