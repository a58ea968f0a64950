"""Refused logins: one exception, which names the token by where it was found."""

from collections.abc import Callable
from pathlib import Path

import pytest

from dragoman.client import Hub, Refused, Unauthenticated, connect, connect_sync
from dragoman.core.agent import RevokeToken
from dragoman.system.bearer_tokens import load_or_create_token
from dragoman.system.hub_lock import HubLock
from tests.client.backend import Backend, run
from tests.requirements import proves

pytestmark = proves("SDK-LOGIN")

UNKNOWN = "drg_nobody_000000000000_" + "s" * 43


async def _open(hub: Hub) -> None:
    async with hub:
        pass


def _open_async(url: str, token: str) -> None:
    run(_open(connect(url, token)))


def _open_sync(url: str, token: str) -> None:
    with connect_sync(url, token):
        pass


@pytest.mark.parametrize("open_hub", [_open_async, _open_sync], ids=["async", "sync"])
def test_unknown_token_of_the_caller(
    backend: Backend, open_hub: Callable[[str, str], None]
) -> None:
    with pytest.raises(Unauthenticated) as caught:
        open_hub(backend.url, UNKNOWN)
    error = caught.value
    assert isinstance(error, Refused)
    assert error.code == "unauthenticated"
    assert error.detail.startswith(
        f"the hub at {backend.url} does not accept the token of connect(token=…): unknown"
    )
    assert "`dragoman agent token NAME`" in error.detail
    assert UNKNOWN not in f"{error}{error!r}"


@pytest.mark.parametrize("open_hub", [_open_async, _open_sync], ids=["async", "sync"])
def test_revoked_token_of_the_environment(
    backend: Backend, open_hub: Callable[[str, str], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    backend.server.submit(RevokeToken("ada"))
    monkeypatch.setenv("DRAGOMAN_TOKEN", backend.tokens["ada"])
    with pytest.raises(
        Unauthenticated, match=r"^token_revoked: .* the token of DRAGOMAN_TOKEN: .*ada was revoked"
    ) as caught:
        open_hub(backend.url, "")
    assert backend.tokens["ada"] not in str(caught.value)


def test_token_of_another_data_directory(backend: Backend, tmp_path: Path) -> None:
    folder = tmp_path / "other"
    folder.mkdir()
    load_or_create_token(folder)
    with HubLock.acquire(folder, "a hub") as lock:
        lock.announce_url(backend.url)
        with pytest.raises(Unauthenticated, match=f"the token of {folder}/token: unknown"):
            run(_open(connect(data=folder)))


def test_caller_that_may_not_connect(backend: Backend) -> None:
    body = b'{"type": "about:blank", "status": 403, "code": "not_by_proxy", "detail": "not so"}'
    head = b"HTTP/1.1 403 Forbidden\r\ncontent-type: application/problem+json\r\n"
    backend.relay.canned_responses[b"GET /v1/tasks"] = (
        head + b"content-length: %d\r\n\r\n" % len(body) + body
    )
    with pytest.raises(Unauthenticated, match=r"^not_by_proxy: .*connect\(token=…\): not so\. "):
        run(_open(backend.connect()))


def test_token_that_is_revoked_while_connected(backend: Backend) -> None:
    async def agent() -> None:
        async with backend.connect() as hub:
            backend.server.submit(RevokeToken("ada"))
            await hub.create("Too late")

    with pytest.raises(Unauthenticated, match="token_revoked"):
        run(agent())
    assert backend.streams_with("task.created") == []


def test_refusal_of_a_right_is_no_refused_login(backend: Backend) -> None:
    task = backend.create_task("Not mine", assignee="bob")

    async def agent() -> None:
        async with backend.connect() as hub:
            await hub.move(task, "cancelled")

    with pytest.raises(Refused, match="unauthorized_agent") as caught:
        run(agent())
    assert not isinstance(caught.value, Unauthenticated)


def test_refused_token_of_an_attempt_is_named_as_such(backend: Backend) -> None:
    backend.create_task("Mine")

    async def agent() -> None:
        async with (
            backend.connect("owner") as hub,
            await anext(hub.work(agent="ada")) as work,
        ):
            backend.server.submit(RevokeToken("ada"))
            await work.progress("on and on")

    with pytest.raises(Unauthenticated, match="does not accept the token of the attempt: ") as got:
        run(agent())
    assert "drga_" not in str(got.value)
    assert "agent token" not in str(got.value)
