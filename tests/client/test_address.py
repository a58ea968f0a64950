"""Address of the hub: from arguments, the environment or the data directory."""

import socket
import ssl
from collections.abc import Mapping
from pathlib import Path

import pytest

from dragoman.client import HubUnreachable, connect
from dragoman.client.address import Address, find_address
from dragoman.core.errors import SettingsError
from dragoman.system.bearer_tokens import load_or_create_token
from dragoman.system.hub_lock import HubLock
from tests.certificate import make_certificate
from tests.client.backend import Backend, run
from tests.requirements import proves

pytestmark = proves("SDK-ADDRESS")

REMOTE_VARIABLES = {"DRAGOMAN_URL": "https://hub.example/", "DRAGOMAN_TOKEN": "drg_env"}
LOCAL_URL = "http://127.0.0.1:4747"


@pytest.mark.parametrize(
    ("url", "token", "environ", "expected"),
    [
        (LOCAL_URL, "drg_said", REMOTE_VARIABLES, Address(LOCAL_URL, "drg_said")),
        (
            LOCAL_URL + "/",
            "",
            REMOTE_VARIABLES,
            Address(LOCAL_URL, "drg_env", credential_source="variable"),
        ),
        (
            "",
            "",
            REMOTE_VARIABLES,
            Address("https://hub.example", "drg_env", credential_source="variable"),
        ),
        ("", "drg_said", REMOTE_VARIABLES, Address("https://hub.example", "drg_said")),
    ],
)
def test_arguments_override_the_environment(
    url: str, token: str, environ: Mapping[str, str], expected: Address
) -> None:
    assert find_address(url, token, None, environ) == expected


def test_hub_of_data_directory_is_found_with_its_token(tmp_path: Path) -> None:
    token = load_or_create_token(tmp_path).decode()
    with HubLock.acquire(tmp_path, "a hub") as lock:
        lock.announce_url(LOCAL_URL)
        expected = Address(LOCAL_URL, token, tmp_path, credential_source="file")
        assert find_address("", "", tmp_path, {}) == expected
        assert find_address("", "", None, {"DRAGOMAN_DATA": str(tmp_path)}) == expected
        assert find_address(LOCAL_URL, "", tmp_path, {}) == expected
        assert find_address("", "drg_ada", tmp_path, {}) == Address(LOCAL_URL, "drg_ada", tmp_path)


def test_restarted_hub_is_found_at_its_new_address(tmp_path: Path) -> None:
    load_or_create_token(tmp_path)
    with HubLock.acquire(tmp_path, "a hub") as lock:
        lock.announce_url(LOCAL_URL)
        address = find_address("", "drg_ada", tmp_path, {})
    assert address.refresh() == address
    with HubLock.acquire(tmp_path, "a hub") as lock:
        lock.announce_url("http://127.0.0.1:4848")
        assert address.refresh() == Address("http://127.0.0.1:4848", "drg_ada", tmp_path)
        assert Address(LOCAL_URL, "drg_env").refresh() == Address(LOCAL_URL, "drg_env")


def test_connection_survives_a_new_address_of_its_hub(backend: Backend, tmp_path: Path) -> None:
    load_or_create_token(tmp_path)
    with HubLock.acquire(tmp_path, "a hub") as lock:
        lock.announce_url(backend.relay.url)

        async def agent() -> list[str]:
            async with connect(token=backend.tokens["ada"], data=tmp_path) as hub:
                before = hub.url
                backend.relay.responses_to_drop.append(b"POST /v1/tasks")
                backend.relay.target = 0  # there is no hub any more at this port
                lock.announce_url(backend.url)
                await hub.create("Another")
                return [before, hub.url]

        assert run(agent()) == [backend.relay.url, backend.url]
    assert len(backend.streams_with("task.created")) == 1


def test_started_agent_pins_the_certificate_of_its_hub(tmp_path: Path) -> None:
    variables = {**REMOTE_VARIABLES, "DRAGOMAN_CERT": f"{make_certificate(tmp_path)}"}
    pinned = find_address("", "", None, variables)
    context = pinned.tls_verification()
    assert isinstance(context, ssl.SSLContext)
    assert context.verify_mode is ssl.CERT_REQUIRED
    assert not context.check_hostname
    assert find_address(LOCAL_URL, "drg_said", None, variables).tls_verification() is True
    broken = find_address("", "", None, {**variables, "DRAGOMAN_CERT": f"{tmp_path / 'none'}"})
    with pytest.raises(SettingsError, match="DRAGOMAN_CERT"):
        broken.tls_verification()


def test_token_of_data_directory_is_not_sent_to_another_hub(tmp_path: Path) -> None:
    load_or_create_token(tmp_path)
    with HubLock.acquire(tmp_path, "a hub") as lock:
        lock.announce_url(LOCAL_URL)
        with pytest.raises(SettingsError, match=r"no token for the hub at https://hub\.example"):
            find_address("https://hub.example", "", tmp_path, {})


@pytest.mark.parametrize("folder", ["", "nothing-here"])
def test_missing_hub_error_names_the_start_command(tmp_path: Path, folder: str) -> None:
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
def test_invalid_url_is_refused(url: str) -> None:
    with pytest.raises(SettingsError, match="is not the url of a hub"):
        find_address(url, "drg_said", None, {})


@pytest.mark.parametrize("token", ["drg_sa\nid", "drg_säid"])
def test_invalid_token_is_refused_and_not_shown(token: str) -> None:
    with pytest.raises(SettingsError, match="characters that no token has") as raised:
        find_address(LOCAL_URL, token, None, {})
    assert token not in str(raised.value)


def test_unreadable_data_directory_is_reported(tmp_path: Path) -> None:
    (tmp_path / "hub.lock").mkdir()
    with pytest.raises(SettingsError, match="cannot be read"):
        find_address("", "", tmp_path, {})


def test_proxy_of_the_environment_is_not_used(
    backend: Backend, monkeypatch: pytest.MonkeyPatch
) -> None:
    with socket.socket() as proxy:
        proxy.bind(("127.0.0.1", 0))
        # Nothing listens there: a request to it does not arrive.
        for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY"):
            monkeypatch.setenv(name, f"http://127.0.0.1:{proxy.getsockname()[1]}")
        monkeypatch.setenv("NO_PROXY", "")

        async def agent() -> str:
            async with connect(backend.url, backend.tokens["owner"]) as hub:
                return (await hub.create("Straight there")).title

        assert run(agent()) == "Straight there"


def test_repr_hides_token_and_only_local_hub_may_be_self_signed() -> None:
    assert "drg_said" not in repr(Address(LOCAL_URL, "drg_said"))
    assert Address("https://hub.example", "drg_said").tls_verification() is True
    context = Address("https://127.0.0.1:4747", "drg_said", Path("here")).tls_verification()
    assert not isinstance(context, bool)
    assert not context.check_hostname
