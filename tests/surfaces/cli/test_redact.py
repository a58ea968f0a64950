"""`redact`, and warnings about masked secrets."""

import io
import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from dragoman.bootstrap.known_secrets import find_redactor
from dragoman.core.errors import SettingsError
from tests.requirements import proves
from tests.surfaces.cli.console import Console

TOKEN = "ghp_" + "a1B2" * 9
PLACEHOLDER = re.compile(r"\[REDACTED:[a-z_]+:[0-9a-f]{8}\]")


@proves("REDACT-CLI")
def test_file_is_printed_without_its_secrets(dragoman: Console, tmp_path: Path) -> None:
    file = tmp_path / "notes.md"
    file.write_text(f"first\npush {TOKEN} now\npassword: hunter22x\nend", encoding="utf-8")
    result = dragoman("redact", str(file))
    assert result.code == 0
    assert PLACEHOLDER.sub("#", result.out) == "first\npush # now\npassword: #\nend"
    assert not dragoman.data.exists()


@proves("REDACT-CLI")
def test_json_lists_found_secrets(dragoman: Console, tmp_path: Path) -> None:
    file = tmp_path / "notes.md"
    file.write_text(f"{TOKEN} {TOKEN}\nAKIAIOSFODNN7EXAMPL2\n", encoding="utf-8")
    reply = dragoman.ask("redact", str(file))
    assert (reply["ok"], reply["masked"]) == (True, True)
    assert [(one["kind"], one["count"]) for one in reply["found"]] == [
        ("aws_access_key_id", 1),
        ("github_token", 2),
    ]
    assert TOKEN not in reply["text"]
    file.write_text("nothing here", encoding="utf-8")
    assert dragoman.ask("redact", str(file)) == {
        "ok": True,
        "masked": False,
        "found": [],
        "text": "nothing here",
    }
    assert dragoman("redact", str(tmp_path / "none")).code == 2


@proves("REDACT-CLI")
def test_undecodable_bytes_pass_unchanged(tmp_path: Path) -> None:
    content = b"\xff\x00 caf\xc3\xa9 " + TOKEN.encode() + b" \xf0\x9f\r\nlast \xc3"
    done = subprocess.run(
        [sys.executable, "-m", "dragoman", "--data", str(tmp_path / "hub"), "redact"],
        input=content,
        capture_output=True,
        check=True,
    )
    before, _, after = content.partition(TOKEN.encode())
    assert done.stdout.startswith(before + b"[REDACTED:github_token:")
    assert done.stdout.endswith(b"]" + after)


@proves("REDACT-HUB", "REDACT-PLACEHOLDER")
def test_settings_and_variables_define_known_secrets(
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
    variables = {"SERVICE_TOKEN": "swordfish", "EDITOR": "emacs-nox", "OWN_WORD": "rosebud"}
    for name, value in variables.items():
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
def test_masked_secret_is_a_warning(dragoman: Console, tmp_path: Path) -> None:
    result = dragoman("task", "create", f"Use {TOKEN}")
    assert result.code == 0
    assert "warning: a secret was masked: title (github_token)" in result.err
    (task,) = dragoman.ask("task", "list")["tasks"]
    assert task["title"].startswith("Use [REDACTED:github_token:")
    for path in dragoman.data.rglob("*"):
        assert not path.is_file() or TOKEN.encode() not in path.read_bytes(), path


@proves("REDACT-REQUESTS")
def test_masked_secret_of_a_message_is_a_warning_of_the_reply(
    dragoman: Console, tmp_path: Path
) -> None:
    row = {"to": ["bob"], "subject": "Hello", "body_md": f"Take {TOKEN} with you"}
    file = tmp_path / "letter.json"
    file.write_text(json.dumps(row), encoding="utf-8")
    dragoman.ask("agent", "add", "bob")
    reply = dragoman.ask("send", "--as", "ann", str(file))
    assert reply["warnings"] == ["a secret was masked: body (github_token)"]
    called = dragoman("call", "mail.send", "--as", "ann", json.dumps(row))
    assert called.err == "warning: a secret was masked: body (github_token)\n"
    assert "warnings" not in json.loads(called.out), "a reply is its dialect's own"
    for path in dragoman.data.rglob("*"):
        assert not path.is_file() or TOKEN.encode() not in path.read_bytes(), path


@proves("REDACT-CLI")
def test_standard_input_is_the_default(dragoman: Console, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(f"x {TOKEN}\n".encode())))
    assert PLACEHOLDER.sub("#", dragoman("redact").out) == "x #\n"
