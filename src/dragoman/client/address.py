"""Where the hub is, and what it is shown: said by the caller, the environment, or the disk."""

import ssl
from collections.abc import Mapping
from pathlib import Path
from urllib.parse import urlsplit

from msgspec import Struct

from dragoman.client.errors import HubUnreachable
from dragoman.config import DEFAULT_DATA
from dragoman.core.errors import SettingsError
from dragoman.system.hub_at_work import HubAddress, find_hub


class Address(Struct, frozen=True):
    """A hub that can be called."""

    url: str
    token: str
    is_ours: bool = False
    """Found through the lock of a data directory: it is this machine's own."""

    def __repr__(self) -> str:
        return f"Address({self.url})"  # a token must not reach a log

    def tls(self) -> ssl.SSLContext | bool:
        """How its certificate is checked."""
        if not self.is_ours or not self.url.startswith("https:"):
            return True
        # The address is this machine's own, by its own lock file: there is nobody in between.
        context = ssl.create_default_context()
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
        return context


def find_address(
    url: str, token: str, data: Path | str | None, environ: Mapping[str, str]
) -> Address:
    """The hub that is meant. The token of a data directory is shown to its own hub only."""
    url = url or environ.get("DRAGOMAN_URL", "")
    token = token or environ.get("DRAGOMAN_TOKEN", "")
    if url:
        url = _checked(url)
        if token:
            return Address(url, token)
    folder = Path(data or environ.get("DRAGOMAN_DATA") or DEFAULT_DATA)
    running = find_hub(folder) if folder.is_dir() else None
    if not url:
        return _ours(running, token, folder)
    if running is not None and running.url.rstrip("/") == url:
        return _ours(running, token, folder)
    raise SettingsError(
        f"there is no token for the hub at {url}: set DRAGOMAN_TOKEN, or pass token=…; "
        "`dragoman agent add NAME` prints one"
    )


def _ours(running: HubAddress | None, token: str, folder: Path) -> Address:
    if running is None:
        raise HubUnreachable(
            f"no hub runs for the data directory {folder}: start one with `dragoman up`, or say "
            "where it is with DRAGOMAN_URL and DRAGOMAN_TOKEN"
        )
    return Address(running.url.rstrip("/"), token or running.token, is_ours=True)


def _checked(url: str) -> str:
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise SettingsError(f"{url!a} is not the url of a hub: write it like http://127.0.0.1:4747")
    return url.rstrip("/")
