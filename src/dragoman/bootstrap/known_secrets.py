"""Opens the redactor of a data directory, which knows the secrets of its settings and keys."""

from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from urllib.parse import unquote, urlsplit

from dragoman.config import Settings, environment, load_settings
from dragoman.core.errors import SettingsError
from dragoman.system.bearer_tokens import load_token, new_secret
from dragoman.system.keys import LedgerKey, load_keys
from dragoman.system.safe_fs import BadKey
from dragoman.text.base64url import encode_base64url
from dragoman.text.keyed_digest import keyed_digest
from dragoman.text.redact import MIN_SECRET_LENGTH, Redactor, Secret, is_secret_variable

_DOMAIN = b"redaction"
_WEBHOOK_KEY_PREFIX = "whsec_"


def open_redactor(settings: Settings, data: Path, key: LedgerKey) -> Redactor:
    """Open the redactor, with a key that only this data directory has."""
    section = settings.redaction
    known = (*_hub_secrets(data, key), *settings_secrets(settings))
    return Redactor(known, keyed_digest(key.secret, _DOMAIN), known_only=section.rules == "known")


def find_redactor(data: Path) -> Redactor:
    """Redactor of a data directory; without one, its digests mean nothing elsewhere."""
    if not (data / "keys").is_dir():
        return Redactor(key=new_secret().encode())
    return open_redactor(load_settings(data, environment()), data, load_keys(data))


def _hub_secrets(data: Path, key: LedgerKey) -> Iterator[Secret]:
    """Secrets that the hub has made itself."""
    yield Secret("hub_secret", encode_base64url(key.secret))
    yield Secret("hub_secret", key.secret.hex())
    with suppress(FileNotFoundError, BadKey):  # the user of the token reports what is wrong with it
        yield Secret("hub_token", load_token(data).decode())


def settings_secrets(settings: Settings) -> Iterator[Secret]:
    """Secrets that the settings have, or name."""
    yield from variable_secrets(settings)
    webhook = settings.notify.webhook_secret
    yield Secret("webhook_secret", webhook)
    yield Secret("webhook_secret", webhook.removeprefix(_WEBHOOK_KEY_PREFIX))
    for url in (
        settings.store.url,
        settings.notify.webhook_url,
        *(agent.url for agent in settings.agents.values()),
    ):
        password = _password(url)
        yield Secret("url_password", password)
        yield Secret("url_password", unquote(password))


def _password(url: str) -> str:
    try:
        return urlsplit(url).password or ""
    except ValueError:  # the user of the URL reports what is wrong with it
        return ""


def variable_secrets(settings: Settings) -> Iterator[Secret]:
    """Secrets in environment variables: those of the settings, and those passed to agents that look
    like secrets.
    """
    environ = environment()
    for name in settings.redaction.variables:
        value = environ.get(name, "")
        if 0 < len(value) < MIN_SECRET_LENGTH:
            raise SettingsError(
                f"redaction.variables: {name} has fewer than {MIN_SECRET_LENGTH} characters, "
                "which stand "
                "in ordinary words as well: give it a longer value, or take it off the list"
            )
        yield Secret(_variable_kind(name), value)
    for agent in settings.agents.values():
        for name in agent.environment:
            value = environ.get(name, "")
            if is_secret_variable(name, value):
                yield Secret(_variable_kind(name), value)


def needs_variables_of_callers(settings: Settings) -> bool:
    """True if a command may have to mask the value of a variable that only its caller has."""
    environ = environment()
    passed = (name for agent in settings.agents.values() for name in agent.environment)
    return bool(settings.redaction.variables) or any(name not in environ for name in passed)


def _variable_kind(name: str) -> str:
    return "".join(
        character if character.isascii() and character.isalnum() else "_" for character in name
    ).lower()[:64]
