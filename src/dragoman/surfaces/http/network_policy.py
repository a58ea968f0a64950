"""Network policy: bind address, TLS, allowed Host and Origin (DNS rebinding, CSRF), proxy peers."""

import re
from functools import lru_cache
from ipaddress import ip_address, ip_network
from ssl import PROTOCOL_TLS_SERVER, SSLContext, SSLError

from dragoman.config import HttpSettings
from dragoman.core.errors import SettingsError

_LOOPBACK_NAMES = ("localhost", "127.0.0.1", "[::1]")
_WILDCARD_HOSTS = ("0.0.0.0", "::", "")  # noqa: S104  compared with, not listened at
_HOST = re.compile(r"(?:[A-Za-z0-9._-]+|\[[0-9A-Fa-f:.]+\])(?::[0-9]+)?")
_STANDARD_PORTS = {"http": 80, "https": 443}


def check_host_settings(settings: HttpSettings) -> None:
    """Raise SettingsError if others could eavesdrop, or call the hub under any name."""
    if bool(settings.tls_cert) != bool(settings.tls_key):
        raise SettingsError("http.tls_cert and http.tls_key belong together: give both or neither")
    for proxy in settings.proxy:
        _check_proxy(proxy)
    _check_hosts(settings)
    if is_loopback_host(settings.host):
        return
    host = settings.host or "(empty, so every address of this machine)"
    if not (settings.tls_cert or settings.proxy):
        raise SettingsError(
            f"http.host {host} can be reached by others, and tokens would travel in the "
            "open: give http.tls_cert and http.tls_key, or name the proxy that ends TLS in "
            "http.proxy, or listen at 127.0.0.1"
        )
    if settings.host in _WILDCARD_HOSTS and not settings.allowed_hosts:
        raise SettingsError(
            f"http.host {host} is no name that the hub can be called by: "
            "list the names that callers use in http.allowed_hosts"
        )


def check_certificate(settings: HttpSettings) -> None:
    """Raise SettingsError if the certificate and its key cannot be used."""
    if not settings.tls_cert:
        return
    try:
        # Without a password OpenSSL would ask for one, at a terminal that may not exist.
        SSLContext(PROTOCOL_TLS_SERVER).load_cert_chain(
            settings.tls_cert, settings.tls_key, password=""
        )
    except SSLError as error:
        raise SettingsError(
            f"http.tls_cert {settings.tls_cert} and http.tls_key {settings.tls_key} are no "
            "certificate chain and the private key that belongs to it, in PEM and without a "
            f"password: {error.reason or error}"
        ) from None
    except OSError as error:
        raise SettingsError(
            f"http.tls_cert {settings.tls_cert} or http.tls_key {settings.tls_key} cannot be "
            f"read: {error.strerror}; a relative path begins where `dragoman up` is started"
        ) from None


def _check_proxy(proxy: str) -> None:
    try:
        ip_network("0.0.0.0/0" if proxy == "*" else proxy, strict=False)
    except ValueError:
        raise SettingsError(
            f"http.proxy {proxy!a} is no address: give the one that the proxy calls from, "
            "10.0.0.9 for example, or a network, 10.0.0.0/24"
        ) from None


def _check_hosts(settings: HttpSettings) -> None:
    """Check the allowed hosts: one that no header can contain would never match."""
    for host in settings.allowed_hosts:
        if not _HOST.fullmatch(host):
            raise SettingsError(
                f"http.allowed_hosts: {host!a} is no Host of a request: write hub.example or "
                "hub.example:8443, and an IPv6 address in brackets"
            )


def is_loopback_host(host: str) -> bool:
    """Return whether only this machine can reach that address."""
    if host == "localhost":
        return True
    try:
        return ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False


def scheme(settings: HttpSettings) -> str:
    """Return the scheme of the hub's URL."""
    return "https" if settings.tls_cert else "http"


def hub_url(settings: HttpSettings, port: int) -> str:
    """Return the URL by which the hub can be called from this machine."""
    host = "127.0.0.1" if settings.host in _WILDCARD_HOSTS else settings.host
    return f"{scheme(settings)}://{_format_host(host)}:{port}"


class HostPolicy:
    """Host and Origin headers that are allowed."""

    def __init__(self, settings: HttpSettings) -> None:
        self._settings = settings
        self.hosts = lru_cache(maxsize=16)(self._hosts)
        self.origins = lru_cache(maxsize=16)(self._origins)

    def _hosts(self, port: int) -> frozenset[bytes]:
        """Return every Host header that means this hub at this port."""
        names = [_format_host(self._settings.host), *map(str.lower, self._settings.allowed_hosts)]
        if is_loopback_host(self._settings.host) or self._settings.host in _WILDCARD_HOSTS:
            # The hub's own command line and agents use these (`hub_url`).
            names += _LOOPBACK_NAMES
        known = set[str]()
        for name in names:
            known.add(name)
            if not _has_port(name):
                known.add(f"{name}:{port}")
        if port != _STANDARD_PORTS[scheme(self._settings)]:
            # Without a port the Host would mean another server of this machine.
            known -= set(_LOOPBACK_NAMES) | {_format_host(self._settings.host)}
        return frozenset(host.encode("latin-1", "replace") for host in known if host)

    def _origins(self, port: int) -> frozenset[bytes]:
        """Return every Origin whose pages may call the hub: its own."""
        # A proxy is called by HTTPS, and calls the hub by HTTP.
        schemes = {scheme(self._settings), *(("https",) if self._settings.proxy else ())}
        return frozenset(
            b"%s://%s" % (one.encode(), host) for one in schemes for host in self.hosts(port)
        )


class PeerPolicy:
    """Peer addresses that may connect: any, or (behind a proxy) only the proxy."""

    def __init__(self, settings: HttpSettings) -> None:
        self._allows_any = not settings.proxy or bool(settings.tls_cert) or "*" in settings.proxy
        self._proxies = [ip_network(one, strict=False) for one in settings.proxy if one != "*"]

    def is_allowed(self, peer: str, local_address: str) -> bool:
        """Return whether a peer may connect to that address of this machine."""
        if self._allows_any or peer == local_address:
            return True
        try:
            address = ip_address(peer)
        except ValueError:
            return False
        address = getattr(address, "ipv4_mapped", None) or address
        return address.is_loopback or any(address in proxy for proxy in self._proxies)


def _format_host(host: str) -> str:
    return f"[{host}]" if ":" in host and not host.startswith("[") else host.lower()


def _has_port(name: str) -> bool:
    return name.rpartition(":")[2].isdigit() and not name.endswith("]")
