"""Where the hub is: said by the caller, by the environment, or by the data directory."""

import socket
import ssl
from collections.abc import Mapping
from pathlib import Path

import pytest

from dragoman.client import HubUnreachable, connect
from dragoman.client.address import Address, find_address
from dragoman.core.errors import SettingsError
from dragoman.system.hub_lock import HubLock
from dragoman.system.token_file import load_or_create_token
from tests.certificate import make_certificate
from tests.client.stage import Stage, run
from tests.requirements import proves

pytestmark = proves("SDK-ADDRESS")

ELSEWHERE = {"DRAGOMAN_URL": "https://hub.example/", "DRAGOMAN_TOKEN": "drg_env"}
HERE = "http://127.0.0.1:4747"


@pytest.mark.parametrize(
    ("url", "token", "environ", "found"),
    [
        (HERE, "drg_said", ELSEWHERE, Address(HERE, "drg_said")),
        (HERE + "/", "", ELSEWHERE, Address(HERE, "drg_env")),
        ("", "", ELSEWHERE, Address("https://hub.example", "drg_env")),
        ("", "drg_said", ELSEWHERE, Address("https://hub.example", "drg_said")),
    ],
)
def test_what_is_said_counts_before_the_environment(
    url: str, token: str, environ: Mapping[str, str], found: Address
) -> None:
    assert find_address(url, token, None, environ) == found


def test_else_the_hub_of_the_data_directory_is_called_with_its_own_token(tmp_path: Path) -> None:
    token = load_or_create_token(tmp_path).decode()
    with HubLock.acquire(tmp_path, "a hub") as lock:
        lock.announce(HERE)
        ours = Address(HERE, token, tmp_path, shows_own_token=True)
        assert find_address("", "", tmp_path, {}) == ours
        assert find_address("", "", None, {"DRAGOMAN_DATA": str(tmp_path)}) == ours
        assert find_address(HERE, "", tmp_path, {}) == ours
        assert find_address("", "drg_ada", tmp_path, {}) == Address(HERE, "drg_ada", tmp_path)


def test_a_hub_that_has_come_back_is_found_where_it_listens_now(tmp_path: Path) -> None:
    load_or_create_token(tmp_path)
    with HubLock.acquire(tmp_path, "a hub") as lock:
        lock.announce(HERE)
        known = find_address("", "drg_ada", tmp_path, {})
    assert known.again() == known
    with HubLock.acquire(tmp_path, "a hub") as lock:
        lock.announce("http://127.0.0.1:4848")
        assert known.again() == Address("http://127.0.0.1:4848", "drg_ada", tmp_path)
        assert Address(HERE, "drg_env").again() == Address(HERE, "drg_env")


def test_a_connection_goes_on_when_its_hub_comes_back_elsewhere(
    stage: Stage, tmp_path: Path
) -> None:
    load_or_create_token(tmp_path)
    with HubLock.acquire(tmp_path, "a hub") as lock:
        lock.announce(stage.relay.url)

        async def agent() -> list[str]:
            async with connect(token=stage.tokens["ada"], data=tmp_path) as hub:
                before = hub.url
                stage.relay.swallows.append(b"POST /v1/tasks")
                stage.relay.target = 0  # whoever is there from now on is no hub
                lock.announce(stage.url)
                await hub.create("Another")
                return [before, hub.url]

        assert run(agent()) == [stage.relay.url, stage.url]
    assert len(stage.happened("task.created")) == 1


def test_a_started_agent_knows_its_hub_by_its_certificate_alone(tmp_path: Path) -> None:
    given = {**ELSEWHERE, "DRAGOMAN_CERT": f"{make_certificate(tmp_path)}"}
    pinned = find_address("", "", None, given)
    context = pinned.tls()
    assert isinstance(context, ssl.SSLContext)
    assert context.verify_mode is ssl.CERT_REQUIRED
    assert not context.check_hostname
    assert find_address(HERE, "drg_said", None, given).tls() is True
    broken = find_address("", "", None, {**given, "DRAGOMAN_CERT": f"{tmp_path / 'none'}"})
    with pytest.raises(SettingsError, match="DRAGOMAN_CERT"):
        broken.tls()


def test_the_token_of_a_data_directory_is_not_shown_to_another_hub(tmp_path: Path) -> None:
    load_or_create_token(tmp_path)
    with HubLock.acquire(tmp_path, "a hub") as lock:
        lock.announce(HERE)
        with pytest.raises(SettingsError, match=r"no token for the hub at https://hub\.example"):
            find_address("https://hub.example", "", tmp_path, {})


@pytest.mark.parametrize("folder", ["", "nothing-here"])
def test_without_a_hub_it_is_said_how_to_start_one(tmp_path: Path, folder: str) -> None:
    with pytest.raises(HubUnreachable, match="dragoman up"):
        find_address("", "", tmp_path / folder, {})


@pytest.mark.parametrize(
    "url",
    [
        "127.0.0.1:4747",
        "ftp://hub.example",
        "http://",
        "http://[::1",
        "http://hub.example:door",
        "http://hub.example:99999",
        "http://hub.example\n",
        "http://“localhost”:4802",
        "http://hüb-.example:4802",
        "http://256.1.1.1:4747",
    ],
)
def test_a_url_that_is_none_is_told(url: str) -> None:
    with pytest.raises(SettingsError, match="is not the url of a hub"):
        find_address(url, "drg_said", None, {})


@pytest.mark.parametrize("token", ["drg_sa\nid", "drg_säid"])
def test_a_token_that_can_be_none_is_told_and_not_shown(token: str) -> None:
    with pytest.raises(SettingsError, match="characters that no token has") as told:
        find_address(HERE, token, None, {})
    assert token not in str(told.value)


def test_a_data_directory_that_cannot_be_read_is_told(tmp_path: Path) -> None:
    (tmp_path / "hub.lock").mkdir()
    with pytest.raises(SettingsError, match="cannot be read"):
        find_address("", "", tmp_path, {})


def test_a_proxy_of_the_environment_is_not_used(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    with socket.socket() as proxy:
        proxy.bind(("127.0.0.1", 0))
        # Nobody listens there: what goes that way does not arrive.
        for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY"):
            monkeypatch.setenv(name, f"http://127.0.0.1:{proxy.getsockname()[1]}")
        monkeypatch.setenv("NO_PROXY", "")

        async def agent() -> str:
            async with connect(stage.url, stage.tokens["owner"]) as hub:
                return (await hub.create("Straight there")).title

        assert run(agent()) == "Straight there"


def test_no_token_reaches_a_log_and_only_our_own_hub_may_sign_for_itself() -> None:
    assert "drg_said" not in repr(Address(HERE, "drg_said"))
    assert Address("https://hub.example", "drg_said").tls() is True
    context = Address("https://127.0.0.1:4747", "drg_said", Path("here")).tls()
    assert not isinstance(context, bool)
    assert not context.check_hostname
