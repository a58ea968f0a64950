"""The section [notify]: lists, the file of the secret, and values that are never shown."""

from pathlib import Path

import pytest

from dragoman.config import NotifySettings, load_settings, parse_settings
from dragoman.core.errors import SettingsError
from tests.requirements import proves

SECRET = "s3cr3t-of-the-test"


@proves("CONFIG-ONCE", "NOTIFY-NEWS")
def test_default_settings_have_no_target_and_three_statuses() -> None:
    notify = parse_settings("", {}).notify
    assert (notify.webhook_url, notify.command) == ("", ())
    assert notify.statuses == ("review", "blocked", "done")


@proves("CONFIG-ONCE")
def test_lists_are_toml_lists_in_the_file_and_comma_separated_in_variables() -> None:
    text = '[notify]\ncommand = ["notify-send", "a, b"]\nstatuses = ["done"]\n'
    assert parse_settings(text, {}).notify.command == ("notify-send", "a, b")
    variables = {"DRAGOMAN_NOTIFY_STATUSES": "review, deadletter", "DRAGOMAN_NOTIFY_COMMAND": ""}
    notify = parse_settings(text, variables).notify
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
def test_invalid_setting_is_named(line: str, words: str) -> None:
    with pytest.raises(SettingsError) as caught:
        parse_settings(f"[notify]\n{line}\n", {})
    assert words in caught.value.detail


@proves("CONFIG-ONCE")
def test_secret_may_be_in_its_own_file(tmp_path: Path) -> None:
    (tmp_path / "dragoman.toml").write_text('[notify]\nwebhook_secret_file = "hook.secret"\n')
    (tmp_path / "hook.secret").write_text(SECRET + "\n")
    assert load_settings(tmp_path, {}).notify.webhook_secret == SECRET
    elsewhere = tmp_path / "elsewhere"
    elsewhere.write_text("another")
    variables = {"DRAGOMAN_NOTIFY_WEBHOOK_SECRET_FILE": str(elsewhere)}
    assert load_settings(tmp_path, variables).notify.webhook_secret == "another"


@proves("CONFIG-ONCE", "NOTIFY-SECRETS")
@pytest.mark.parametrize("content", [None, b"\xff\xfe s3cr3t"], ids=["missing", "not text"])
def test_unreadable_secret_file_is_refused(tmp_path: Path, content: bytes | None) -> None:
    if content is not None:
        (tmp_path / "hook.secret").write_bytes(content)
    with pytest.raises(SettingsError, match=r"webhook_secret_file .*hook\.secret cannot") as caught:
        load_settings(tmp_path, {"DRAGOMAN_NOTIFY_WEBHOOK_SECRET_FILE": "hook.secret"})
    assert "s3cr3t" not in caught.value.detail


@proves("CONFIG-ONCE", "NOTIFY-SECRETS")
def test_secret_and_secret_file_exclude_each_other(tmp_path: Path) -> None:
    (tmp_path / "dragoman.toml").write_text(
        f'[notify]\nwebhook_secret = "{SECRET}"\nwebhook_secret_file = "x"\n'
    )
    with pytest.raises(SettingsError, match="keep one of them") as caught:
        load_settings(tmp_path, {})
    assert "s3cr3t" not in caught.value.detail


@proves("NOTIFY-SECRETS")
def test_printed_settings_show_neither_url_nor_secret() -> None:
    url = "https://hooks.example/s3cr3t"
    settings = parse_settings(f'[notify]\nwebhook_url = "{url}"\nwebhook_secret = "{SECRET}"\n', {})
    assert settings.notify == NotifySettings(webhook_url=url, webhook_secret=SECRET)
    assert "s3cr3t" not in f"{settings!r} {settings}"
