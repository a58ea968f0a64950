"""Address of the hub and its credentials: as passed, from the environment or the data directory."""

import ssl
from collections.abc import Mapping
from pathlib import Path
from typing import Literal
from urllib.parse import urlsplit

import httpx2
from msgspec import Struct
from msgspec.structs import replace

from dragoman.client.errors import HubUnreachable
from dragoman.core.errors import SettingsError
from dragoman.system.bearer_tokens import CREDENTIAL_FILE
from dragoman.system.data_search import FOLDER, find_data
from dragoman.system.hub_lock import HubAddress, find_hub
from dragoman.system.tls import pinned_context, unverified_context


class Address(Struct, frozen=True):
    """The address of a hub, and the credentials for it."""

    url: str
    token: str
    data: Path | None = None
    """The data directory through whose lock it was found: it runs on this machine."""
    certificate: str = ""
    """The file of the certificate that it must show; empty: one that is trusted here."""
    credential_source: Literal["argument", "variable", "file"] = "argument"
    """Place of the token: passed, DRAGOMAN_TOKEN, or `file`: the owner's, in the data directory."""

    def __repr__(self) -> str:
        return f"Address({self.url})"  # a token must not reach a log

    def describe_token(self) -> str:
        """Describe the token by where it was found, for an error."""
        if self.credential_source == "file":
            return f"the token of {self.data}/{CREDENTIAL_FILE}"
        return "the token of " + (
            "DRAGOMAN_TOKEN" if self.credential_source == "variable" else "connect(token=…)"
        )

    def tls_verification(self) -> ssl.SSLContext | bool:
        """Return how its certificate is verified."""
        if self.data is not None:
            return unverified_context()
        try:
            return pinned_context(self.certificate) if self.certificate else True
        except OSError as error:
            raise SettingsError(
                f"DRAGOMAN_CERT: {self.certificate} is no certificate that can be read: {error}"
            ) from None

    def refresh(self) -> "Address":
        """Find it again: a hub that was restarted may listen elsewhere."""
        running = find_hub(self.data) if self.data is not None else None
        if running is None:
            return self
        token = running.token if self.credential_source == "file" else self.token
        return replace(self, url=running.url.rstrip("/"), token=token)


def find_address(
    url: str, token: str, data: Path | str | None, environ: Mapping[str, str]
) -> Address:
    """Find the hub to call. The token of a data directory is shown to its own hub only."""
    url = url or environ.get("DRAGOMAN_URL", "")
    source: Literal["argument", "variable"] = "argument" if token else "variable"
    token = token or environ.get("DRAGOMAN_TOKEN", "")
    if not token.isascii() or not token.isprintable():
        raise SettingsError(
            "the token (DRAGOMAN_TOKEN, or token=…) has characters that no token has: copy it anew"
        )
    if url:
        url = _check_url(url)
        if token:
            is_environment_url = url == environ.get("DRAGOMAN_URL", "").rstrip("/")
            certificate = environ.get("DRAGOMAN_CERT", "") if is_environment_url else ""
            return Address(url, token, certificate=certificate, credential_source=source)
    folder = Path(data or environ.get("DRAGOMAN_DATA") or find_data()[0] or FOLDER)
    running = _find_running(folder)
    if not url:
        return _address_from_directory(running, token, folder, source)
    if running is not None and running.url.rstrip("/") == url:
        return _address_from_directory(running, token, folder, source)
    raise SettingsError(
        f"there is no token for the hub at {url}: set DRAGOMAN_TOKEN, or pass token=…; "
        "`dragoman agent add NAME` prints one"
    )


def _address_from_directory(
    running: HubAddress | None, token: str, folder: Path, source: Literal["argument", "variable"]
) -> Address:
    if running is None:
        raise HubUnreachable(
            f"no hub runs for the data directory {folder}: start one with `dragoman up`, or say "
            "where it is with DRAGOMAN_URL and DRAGOMAN_TOKEN"
        )
    url = running.url.rstrip("/")
    if token:
        return Address(url, token, folder, credential_source=source)
    return Address(url, running.token, folder, credential_source="file")


def _find_running(folder: Path) -> HubAddress | None:
    try:
        return find_hub(folder) if folder.is_dir() else None
    except OSError as error:
        raise SettingsError(f"the data directory {folder} cannot be read: {error}") from None


def _check_url(url: str) -> str:
    if not _is_hub_url(url):
        raise SettingsError(f"{url!a} is not the url of a hub: write it like http://127.0.0.1:4747")
    return url.rstrip("/")


def _is_hub_url(url: str) -> bool:
    try:
        parts = urlsplit(url)
        httpx2.URL(url)  # the HTTP client parses it more strictly
        return (
            url.isprintable()
            and parts.scheme in ("http", "https")
            and bool(parts.hostname)
            and parts.port != 0
        )
    except (ValueError, httpx2.InvalidURL):  # an open bracket, or an invalid port or name
        return False
