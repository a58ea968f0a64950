"""Browser sessions: a cookie that seals a token, and one-time links that begin a session.

A browser shows its cookie instead of a token. What the caller may do is decided by the token in it,
each time: a session ends with its token, and after twelve hours. Nothing is stored for it, so it
outlives a restart of the hub. A one-time link is kept in memory until it is used, for a minute.
"""

from base64 import urlsafe_b64encode
from collections.abc import Mapping
from hmac import digest
from http.cookies import CookieError, SimpleCookie
from threading import Lock
from typing import Final

from cryptography.fernet import Fernet, InvalidToken
from msgspec import Struct

from dragoman.core.errors import Refusal
from dragoman.engine.ports import Clock
from dragoman.surfaces.http.errors import problem_error
from dragoman.system.bearer_tokens import new_secret

SESSION_S: Final = 12 * 3_600

LINK_MS: Final = 60_000
"""Time for which a one-time link is good."""

PAGE_HEADER: Final = b"dragoman-page"
"""The header that a page of the hub sends with what it asks to change. Pages of others cannot send
it, and neither can a form."""

_MAX_LINKS: Final = 1_000
"""Links that wait to be used at a time; the oldest ones are dropped."""

_KEY_PREFIX: Final = b"\x00browser session\x00"
"""Made into the key with the secret; no message and no claims begin so."""

_USED_LINK: Final = Refusal(
    "unauthenticated",
    "this link has been used, or is older than a minute: `dragoman open` makes a new one",
)

_ENDED: Final = Refusal(
    "token_expired", "the session has ended: `dragoman open` signs you in again, or your token"
)


class OneTimeLink(Struct, frozen=True):
    """A code that begins a session, once."""

    code: str
    expires_at: int

    @property
    def path(self) -> str:
        """Path of the page that signs in by it; what stands behind # is never sent to a server."""
        return f"/sign-in#{self.code}"


class OpenedSession(Struct, frozen=True):
    """The token inside a cookie, and when the session ends."""

    token: str
    expires_at: int


class Sessions:
    """Sealed sessions and one-time links of a hub. Thread-safe."""

    def __init__(self, secret: bytes, clock: Clock) -> None:
        self._fernet = Fernet(urlsafe_b64encode(digest(secret, _KEY_PREFIX, "sha256")))
        self._clock = clock
        self._lock = Lock()
        self._links: dict[str, tuple[str, int]] = {}
        """Code -> the token that it stands for, and when it expires."""

    def seal(self, token: str) -> str:
        """Return the value of the cookie of a new session."""
        return self._fernet.encrypt_at_time(token.encode(), self._now_s()).decode()

    def open(self, sealed: str) -> OpenedSession | Refusal:
        """Open a cookie: the token inside, or why it is none any more."""
        try:
            token = self._fernet.decrypt_at_time(sealed, SESSION_S, self._now_s())
            began_at = self._fernet.extract_timestamp(sealed)
        except InvalidToken:
            return _ENDED
        return OpenedSession(token.decode(), (began_at + SESSION_S) * 1_000)

    def add_link(self, token: str) -> OneTimeLink:
        """Make a one-time link for the bearer of a token."""
        link = OneTimeLink(new_secret(), self._clock.now() + LINK_MS)
        with self._lock:
            while len(self._links) >= _MAX_LINKS:
                del self._links[next(iter(self._links))]
            self._links[link.code] = (token, link.expires_at)
        return link

    def redeem(self, code: str) -> str | Refusal:
        """Return the token of a one-time link, which is used up by that."""
        with self._lock:
            token, expires_at = self._links.pop(code, ("", 0))
        return token if self._clock.now() < expires_at else _USED_LINK

    def _now_s(self) -> int:
        return self._clock.now() // 1_000


# --- cookies ----------------------------------------------------------------------------------


def cookie_name(port: int) -> str:
    """Return the name of the cookie: browsers keep those of all ports of a host together."""
    return f"dragoman_{port}"


def session_cookie(headers: Mapping[bytes, bytes], port: int) -> str:
    """Return the sealed session of a request; empty if there is none."""
    try:
        found = SimpleCookie(headers.get(b"cookie", b"").decode("latin-1")).get(cookie_name(port))
    except CookieError:
        return ""
    return found.value if found else ""


def check_is_own_page(method: str, headers: Mapping[bytes, bytes]) -> None:
    """Raise HttpProblem if a request with a cookie may come from a page that is not the hub's.

    A browser adds the cookie by itself, so pages of other servers on this host could use it, too.
    """
    if headers.get(b"sec-fetch-site", b"same-origin") not in (b"same-origin", b"none"):
        raise problem_error("foreign_origin", "web pages of other origins may not call this hub")
    if method not in ("GET", "HEAD") and PAGE_HEADER not in headers:
        raise problem_error(
            "foreign_origin",
            f"with a cookie alone nothing is changed: send the header {PAGE_HEADER.decode()}, "
            "or a token as `Authorization: Bearer TOKEN`",
        )
