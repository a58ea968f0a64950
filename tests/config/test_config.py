"""Settings: defaults, file, environment, and errors that say what to do."""

from pathlib import Path

import pytest

from dragoman.config import Settings, load_settings, parse
from dragoman.core.errors import SettingsError
from tests.requirements import proves

pytestmark = proves("CONFIG-ONCE")


def test_without_anything_the_defaults_hold(tmp_path: Path) -> None:
    assert load_settings(tmp_path, {}) == Settings()


def test_the_file_sets_and_the_environment_wins(tmp_path: Path) -> None:
    (tmp_path / "dragoman.toml").write_text("[leases]\nttl_ms = 1000\n[tasks]\nmax_attempts = 2\n")
    settings = load_settings(tmp_path, {"DRAGOMAN_LEASES_TTL_MS": "2000", "OTHER": "x"})
    assert settings.leases.ttl_ms == 2000
    assert settings.tasks.max_attempts == 2


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("[lease]\nttl_ms = 1", "did you mean leases"),
        ("[leases]\nttl = 1", "did you mean ttl_ms"),
        ("leases = 1", "write [leases] on a line of its own"),
        ("[leases]\nttl_ms = 'soon'", "leases.ttl_ms"),
        ("[leases", "not valid TOML"),
        (
            "[leases]\nttl_ms = 0",
            "leases.ttl_ms is 0; it must be from 1000 to 604800000 (1s",
        ),
        ("[tasks]\nmax_attempts = 0", "tasks.max_attempts is 0; it must be from 1 to 1000"),
        ("[retry]\nbase_ms = -1", "retry.base_ms is -1; it must be from 0 to"),
        ("[retry]\ncap_ms = 99999999999999", "retry.cap_ms is 99999999999999; it must be"),
    ],
)
def test_what_cannot_be_understood_is_named(text: str, words: str) -> None:
    with pytest.raises(SettingsError) as caught:
        parse(text, {})
    assert words in caught.value.detail


def test_an_error_in_the_file_names_the_file(tmp_path: Path) -> None:
    (tmp_path / "dragoman.toml").write_text("[nonsense]\n")
    with pytest.raises(SettingsError, match=r"dragoman\.toml"):
        load_settings(tmp_path, {})


def test_a_file_that_is_not_text_is_an_error_and_no_crash(tmp_path: Path) -> None:
    (tmp_path / "dragoman.toml").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(SettingsError, match=r"dragoman\.toml"):
        load_settings(tmp_path, {})


def test_agents_have_a_section_each_and_their_keys_are_checked() -> None:
    settings = parse('[agents.ada]\ncommand = ["a", "b c"]\n[agents."ben@host"]\nurl = "u"\n', {})
    assert settings.agents["ada"].command == ("a", "b c")
    assert settings.agents["ben@host"].url == "u"
    assert "b c" not in f"{settings}"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (
            "[agents.ada]\ncomand = ['a']",
            "agents.ada.comand is not a setting; did you mean command",
        ),
        ("[agents.ada]\nconcurrency = 'many'", "[agents.ada]: Expected `int`"),
        ("[agents.ada]\nconcurrency = 0", "[agents.ada]: Expected `int` >= 1"),
        ("[agents.'a b']\ncommand = ['a']", "not a valid name"),
        ("[agents]\ncommand = ['a']", "write [agents.NAME]"),
        ("agents = 1", "write [agents.NAME]"),
        ("[agent.ada]\ncommand = ['a']", "did you mean agents"),
        ("[dispatch]\npoll_ms = 0", "dispatch.poll_ms"),
    ],
)
def test_what_is_wrong_with_an_agent_is_named(text: str, words: str) -> None:
    with pytest.raises(SettingsError) as caught:
        parse(text, {})
    assert words in caught.value.detail
