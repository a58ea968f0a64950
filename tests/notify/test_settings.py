"""The section [notify]: lists, the file of the secret, and what is never shown."""

from pathlib import Path

import pytest

from dragoman.config import NotifySettings, load_settings, parse
from dragoman.core.errors import SettingsError
from tests.requirements import proves

SECRET = "s3cr3t-of-the-test"


@proves("CONFIG-ONCE", "NOTIFY-NEWS")
def test_without_anything_nobody_is_told_and_the_three_statuses_are_news() -> None:
    notify = parse("", {}).notify
    assert (notify.webhook_url, notify.command) == ("", ())
    assert notify.statuses == ("review", "blocked", "done")


@proves("CONFIG-ONCE")
def test_lists_are_lists_in_the_file_and_have_commas_in_a_variable() -> None:
    text = '[notify]\ncommand = ["notify-send", "a, b"]\nstatuses = ["done"]\n'
    assert parse(text, {}).notify.command == ("notify-send", "a, b")
    variables = {"DRAGOMAN_NOTIFY_STATUSES": "review, deadletter", "DRAGOMAN_NOTIFY_COMMAND": ""}
    notify = parse(text, variables).notify
    assert notify.statuses == ("review", "deadletter")
    assert notify.command == ()


@proves("CONFIG-ONCE")
@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("statuses = ['finished']", "notify.statuses"),
        ("command = 'notify-send x'", "notify.command"),
        ("webhook = 'https://hooks.example'", "did you mean webhook_url"),
    ],
)
def test_what_cannot_be_understood_is_named(line: str, words: str) -> None:
    with pytest.raises(SettingsError) as caught:
        parse(f"[notify]\n{line}\n", {})
    assert words in caught.value.detail


@proves("CONFIG-ONCE")
def test_the_secret_may_lie_in_a_file_of_its_own(tmp_path: Path) -> None:
    (tmp_path / "dragoman.toml").write_text('[notify]\nwebhook_secret_file = "hook.secret"\n')
    (tmp_path / "hook.secret").write_text(SECRET + "\n")
    assert load_settings(tmp_path, {}).notify.webhook_secret == SECRET
    elsewhere = tmp_path / "elsewhere"
    elsewhere.write_text("another")
    variables = {"DRAGOMAN_NOTIFY_WEBHOOK_SECRET_FILE": str(elsewhere)}
    assert load_settings(tmp_path, variables).notify.webhook_secret == "another"


@proves("CONFIG-ONCE", "NOTIFY-SECRETS")
@pytest.mark.parametrize("content", [None, b"\xff\xfe s3cr3t"], ids=["missing", "not text"])
def test_a_secret_that_cannot_be_read_is_told(tmp_path: Path, content: bytes | None) -> None:
    if content is not None:
        (tmp_path / "hook.secret").write_bytes(content)
    with pytest.raises(SettingsError, match=r"webhook_secret_file .*hook\.secret cannot") as caught:
        load_settings(tmp_path, {"DRAGOMAN_NOTIFY_WEBHOOK_SECRET_FILE": "hook.secret"})
    assert "s3cr3t" not in caught.value.detail


@proves("CONFIG-ONCE", "NOTIFY-SECRETS")
def test_two_secrets_are_one_too_many(tmp_path: Path) -> None:
    (tmp_path / "dragoman.toml").write_text(
        f'[notify]\nwebhook_secret = "{SECRET}"\nwebhook_secret_file = "x"\n'
    )
    with pytest.raises(SettingsError, match="keep one of them") as caught:
        load_settings(tmp_path, {})
    assert "s3cr3t" not in caught.value.detail


@proves("NOTIFY-SECRETS")
def test_settings_that_are_printed_show_neither_url_nor_secret() -> None:
    url = "https://hooks.example/s3cr3t"
    settings = parse(f'[notify]\nwebhook_url = "{url}"\nwebhook_secret = "{SECRET}"\n', {})
    assert settings.notify == NotifySettings(webhook_url=url, webhook_secret=SECRET)
    assert "s3cr3t" not in f"{settings!r} {settings}"
