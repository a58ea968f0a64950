"""Settings: defaults, file, environment, and errors that say what to do."""

import re
from pathlib import Path

import pytest

from dragoman.config import Settings, load, load_settings, parse_settings
from dragoman.config.load import RESERVED_VARIABLES, variable_name
from dragoman.config.sections import section_keys
from dragoman.core.errors import SettingsError
from dragoman.core.intent.candidate import Policy
from tests.requirements import proves

pytestmark = proves("CONFIG-ONCE")


def test_defaults_apply_without_a_file(tmp_path: Path) -> None:
    assert load_settings(tmp_path, {}) == Settings()


def test_environment_overrides_the_file(tmp_path: Path) -> None:
    (tmp_path / "dragoman.toml").write_text("[leases]\nttl_ms = 1000\n[tasks]\nmax_attempts = 2\n")
    settings = load_settings(tmp_path, {"DRAGOMAN_LEASES_TTL_MS": "2000", "OTHER": "x"})
    assert settings.leases.ttl_ms == 2000
    assert settings.tasks.max_attempts == 2


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("sqlite:///rel.db", "sqlite:///{}/rel.db"),
        ("sqlite:////abs/x.db", "sqlite:////abs/x.db"),
        ("sqlite:///", "sqlite:///"),
        ("postgresql://u@h/d", "postgresql://u@h/d"),
        ("", ""),
    ],
)
def test_relative_store_url_is_resolved_from_the_data_directory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, url: str, expected: str
) -> None:
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "dragoman.toml").write_text(f'[store]\nurl = "{url}"\n')
    monkeypatch.chdir(tmp_path)
    resolved = expected.format(tmp_path / "data")
    assert load_settings(Path("data"), {}).store.url == resolved
    assert load_settings(tmp_path / "data", {}).store.url == resolved


def test_dangling_link_is_refused_not_taken_for_missing_settings(tmp_path: Path) -> None:
    (tmp_path / "dragoman.toml").symlink_to("moved.toml")
    with pytest.raises(SettingsError, match=r"dragoman\.toml is a link to moved\.toml, where"):
        load_settings(tmp_path, {})
    (tmp_path / "moved.toml").write_text("[leases]\nttl_ms = 2000\n")
    assert load_settings(tmp_path, {}).leases.ttl_ms == 2000


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("[lease]\nttl_ms = 1", "did you mean leases"),
        ("[leases]\nttl = 1", "did you mean ttl_ms"),
        ("[leases]\ncolour = 1", "leases.colour is not a setting; known: ttl_ms"),
        ("port = 1", "port is not a setting; known: store"),
        ("leases = 1", "write [leases] on a line of its own"),
        ("[leases]\nttl_ms = 'soon'", "leases.ttl_ms"),
        ("[leases", "this is not valid TOML: Expected ']' at the end of a table declaration"),
        ("[leases]\nttl_ms\n", "this is not valid TOML: Expected '=' after a key"),
        (
            "[leases]\nttl_ms = 0",
            "leases.ttl_ms is 0; it must be from 1000 to 604800000 (1s",
        ),
        ("[tasks]\nmax_attempts = 0", "tasks.max_attempts is 0; it must be from 1 to 1000"),
        ("[retry]\nbase_ms = -1", "retry.base_ms is -1; it must be from 0 to"),
        ("[retry]\ncap_ms = 99999999999999", "retry.cap_ms is 99999999999999; it must be"),
        ("[agentmail]\nspawn_within_ms = 0", "agentmail.spawn_within_ms is 0; it must be from"),
        ("[agentmail]\nhelper = 'a b'", "agentmail.helper: 'a b' is not a valid name"),
        ("[agentmail]\nspawner = ''", "agentmail.spawner: '' is not a valid name"),
        ("[ccos]\npolicy = 1", "write [ccos.policy] on a line of its own"),
        ("[ccos]\nmax_agent = 1", "ccos.max_agent is not a setting; did you mean max_agents"),
        ("[ccos.policy]\ncost_cieling = 1", "did you mean cost_ceiling"),
        ("[ccos.policy]\ncost_ceiling = -1", "ccos.policy.cost_ceiling is -1.0; it must be from 0"),
        (
            "[ccos.policy]\ntrust_floor = 'T3'",
            "ccos.policy.trust_floor: 'T3' is not one of: T0, T1",
        ),
        ("[agents.a]\ncapabilities = ['c++']", "agents.a.capabilities: 'c++' is not a valid name"),
        ("[groups.cooks]\nmembers = ['bob', '@x']", "groups.cooks.members: '@x' is not a valid"),
    ],
)
def test_invalid_setting_is_named(text: str, words: str) -> None:
    with pytest.raises(SettingsError) as caught:
        parse_settings(text, {})
    assert words in caught.value.detail


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("http.port", "99999"),
        ("http.port", "-1"),
        ("http.rate_per_second", "-5"),
        ("http.rate_per_second", "nan"),
        ("http.rate_per_second", "inf"),
        ("http.burst", "0"),
        ("http.max_body", "-1"),
        ("hub.drain_ms", "-5"),
        ("dispatch.stop_grace_ms", "-1"),
        ("dispatch.exit_grace_ms", "99999999999"),
        ("agents.ada.attempt_ms", "-5"),
        ("agents.ada.output_bytes", "-1"),
        ("agents.ada.cost_per_day", "nan"),
    ],
)
def test_numbers_have_bounds(key: str, value: str) -> None:
    section, _, name = key.rpartition(".")
    with pytest.raises(SettingsError, match=rf"{key} is .*; it must be from|>= 0"):
        parse_settings(f"[{section}]\n{name} = {value}", {})


@pytest.mark.parametrize(
    ("name", "value", "words"),
    [
        ("DRAGOMAN_HTTP_PROT", "5", "did you mean DRAGOMAN_HTTP_PORT?"),
        ("DRAGOMAN_HTTP_RATE_PER_SECOMD", "5", "did you mean DRAGOMAN_HTTP_RATE_PER_SECOND?"),
        ("DRAGOMAN_HTPP_PORT", "5", "did you mean DRAGOMAN_HTTP_PORT?"),
        ("DRAGOMAN_LEASE_TTL_MS", "5", "did you mean DRAGOMAN_LEASES_TTL_MS?"),
        ("DRAGOMAN_TASK_MAX_ATTEMPTS", "5", "did you mean DRAGOMAN_TASKS_MAX_ATTEMPTS?"),
        ("DRAGOMAN_PORT", "5", "did you mean DRAGOMAN_HTTP_PORT?"),
        ("DRAGOMAN_DTA", "5", "did you mean DRAGOMAN_DATA?"),
        ("DRAGOMAN_AGENTS_ADA_COMMAND", "x", "stand in dragoman.toml only"),
        ("DRAGOMAN_XYZZY", "5", "unset it (a setting is DRAGOMAN_SECTION_KEY"),
        ("DRAGOMAN_HTTP_PORT", "x", "the variable DRAGOMAN_HTTP_PORT: it must be a whole"),
        ("DRAGOMAN_HTTP_PORT", "99999", "the variable DRAGOMAN_HTTP_PORT is 99999; it must be"),
        ("DRAGOMAN_CCOS_MAX_AGENT", "1", "did you mean DRAGOMAN_CCOS_MAX_AGENTS?"),
        ("DRAGOMAN_CCOS_POLICY_TRUST", "T1", "did you mean DRAGOMAN_CCOS_POLICY_TRUST_FLOOR?"),
        (
            "DRAGOMAN_CCOS_POLICY_TRUST_FLOOR",
            "x",
            "the variable DRAGOMAN_CCOS_POLICY_TRUST_FLOOR: ",
        ),
        ("DRAGOMAN_CCOS_POLICY_COST_CEILING", "-2", "COST_CEILING is -2.0; it must be from 0"),
        ("DRAGOMAN_REDACTION_RULES", "al", "DRAGOMAN_REDACTION_RULES: 'al' is not one of: all"),
    ],
)
def test_error_in_a_variable_names_the_variable_and_no_file(
    tmp_path: Path, name: str, value: str, words: str
) -> None:
    with pytest.raises(SettingsError) as caught:
        load_settings(tmp_path, {name: value})
    assert words in caught.value.detail
    assert str(tmp_path) not in caught.value.detail


def test_variables_named_in_the_settings_are_accepted() -> None:
    text = "[redaction]\nvariables = ['DRAGOMAN_DEPLOY']\n"
    text += "[agents.ada]\ncommand = ['x']\nenvironment = ['DRAGOMAN_MODEL']"
    environ = {"DRAGOMAN_DEPLOY": "s3cret", "DRAGOMAN_MODEL": "large"}

    assert parse_settings(text, environ) == parse_settings(text, {})
    variables = {"DRAGOMAN_REDACTION_VARIABLES": "DRAGOMAN_DEPLOY", "DRAGOMAN_DEPLOY": "s3cret"}
    assert parse_settings("", variables).redaction.variables == ("DRAGOMAN_DEPLOY",)
    with pytest.raises(SettingsError, match="the variable DRAGOMAN_DEPLOY is not known"):
        parse_settings("", environ)


def test_reserved_variables_are_listed_in_one_table() -> None:
    assert parse_settings("", dict.fromkeys(RESERVED_VARIABLES, "x")) == parse_settings("", {})
    source = Path(load.__file__).parent.parent
    text = "".join(path.read_text() for path in source.rglob("*.py"))
    settings = {
        variable_name(section, key) for section, keys in section_keys().items() for key in keys
    }
    for name in set(re.findall(r"\bDRAGOMAN_[A-Z_]*[A-Z]\b", text)) - {"DRAGOMAN_SECTION_KEY"}:
        assert name in RESERVED_VARIABLES or name in settings, name


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("[leases]\nttl_ms = '300000'", "leases.ttl_ms: it must be a whole number, not a text"),
        (
            "[files]\ntrust_moves = 'true'",
            "files.trust_moves: it must be true or false, not a text",
        ),
        ("[files]\ntrust_moves = 1", "files.trust_moves: it must be true or false, not a whole"),
        ("[agents.ada]\nconcurrency = '2'", "agents.ada.concurrency: it must be a whole number"),
    ],
)
def test_types_in_the_file_are_strict(text: str, words: str) -> None:
    with pytest.raises(SettingsError) as caught:
        parse_settings(text, {})
    assert words in caught.value.detail
    assert parse_settings(
        "[leases]\nttl_ms = 300000", {"DRAGOMAN_FILES_TRUST_MOVES": "true"}
    ).files.trust_moves


def test_variable_does_not_hide_an_error_in_the_file() -> None:
    with pytest.raises(SettingsError, match=r"^http\.port: "):
        parse_settings("[http]\nport = 'x'", {"DRAGOMAN_HTTP_PORT": "5000"})


def test_invalid_choice_lists_the_valid_ones() -> None:
    with pytest.raises(SettingsError, match=r"redaction\.rules: .* one of: all, known"):
        parse_settings("[redaction]\nrules = 'al'", {})
    with pytest.raises(SettingsError, match=r"notify\.statuses: .* one of: .*deadletter"):
        parse_settings("[notify]\nstatuses = ['dnoe']", {})


def test_nested_section_is_set_by_file_and_variable() -> None:
    text = "[ccos]\nmax_agents = 5\n[ccos.policy]\ncost_ceiling = 2\nforbidden_goals = ['wipe']\n"
    settings = parse_settings(text, {"DRAGOMAN_CCOS_POLICY_DATA_LOCALITY": "eu, ch"})
    assert settings.ccos.max_agents == 5
    assert settings.ccos.policy == Policy(2.0, "T0", ("eu", "ch"), (), ("wipe",))
    from_variables = parse_settings(
        "", {"DRAGOMAN_CCOS_POLICY_TRUST_FLOOR": "T2", "DRAGOMAN_CCOS_MAX_AGENTS": "2"}
    )
    assert (from_variables.ccos.policy.trust_floor, from_variables.ccos.max_agents) == ("T2", 2)


def test_too_long_policy_is_refused() -> None:
    phrases = ", ".join(f"'p{number}'" for number in range(501))
    with pytest.raises(
        SettingsError, match=r"ccos\.policy\.forbidden_goals has 501 items; at most"
    ):
        parse_settings(f"[ccos.policy]\nforbidden_goals = [{phrases}]\n", {})


def test_other_variables_are_ignored() -> None:
    others = {"DRAGOMAN_URL": "x", "DRAGOMAN_TASK": "x", "DRAGOMAN_DATA": "x", "HTTP_PORT": "x"}
    assert parse_settings("", others) == Settings()


def test_error_in_the_file_names_the_file(tmp_path: Path) -> None:
    (tmp_path / "dragoman.toml").write_text("[nonsense]\n")
    with pytest.raises(SettingsError, match=r"dragoman\.toml"):
        load_settings(tmp_path, {})


def test_file_that_is_not_utf8_is_refused(tmp_path: Path) -> None:
    (tmp_path / "dragoman.toml").write_bytes(b"[tasks]\n# \xe4\n")
    with pytest.raises(
        SettingsError, match=r"dragoman\.toml, line 2 is not UTF-8: save the file as UTF-8$"
    ):
        load_settings(tmp_path, {})


def test_folder_as_settings_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "dragoman.toml").mkdir()
    with pytest.raises(SettingsError, match=r"dragoman\.toml cannot be read: Is a directory"):
        load_settings(tmp_path, {})


def test_unreadable_file_is_refused_without_errno(tmp_path: Path) -> None:
    loop = tmp_path / "own.toml"
    loop.symlink_to(loop)
    with pytest.raises(SettingsError, match=r"own\.toml cannot be read: Too many levels"):
        load_settings(tmp_path, {}, loop)


def test_invalid_line_is_not_shown() -> None:
    with pytest.raises(SettingsError) as caught:
        parse_settings('[notify]\nwebhook_secret = "hunter2hunter2\n', {})
    assert "hunter2" not in caught.value.detail


def test_each_agent_has_a_section_with_checked_keys() -> None:
    settings = parse_settings(
        '[agents.ada]\ncommand = ["a", "b c"]\n[agents."ben@host"]\nurl = "u"\n', {}
    )
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
        (
            "[agents.ada]\nconcurrency = 'many'",
            "agents.ada.concurrency: it must be a whole number, not",
        ),
        (
            "[agents.ada]\nconcurrency = 0",
            "agents.ada.concurrency is 0; it must be from 1",
        ),
        ("[agents.'a b']\ncommand = ['a']", "not a valid name"),
        ("[agents]\ncommand = ['a']", "write [agents.NAME]"),
        ("agents = 1", "write [agents.NAME]"),
        ("[agent.ada]\ncommand = ['a']", "did you mean agents"),
        ("[dispatch]\npoll_ms = 0", "dispatch.poll_ms"),
    ],
)
def test_invalid_agent_section_is_named(text: str, words: str) -> None:
    with pytest.raises(SettingsError) as caught:
        parse_settings(text, {})
    assert words in caught.value.detail
