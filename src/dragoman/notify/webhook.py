"""Webhook target: a notification as a signed POST, by the rules of Standard Webhooks."""

import hmac
from base64 import b64decode, b64encode
from collections.abc import Callable, Mapping
from http import HTTPStatus
from typing import Final

from dragoman.core.errors import SettingsError
from dragoman.notify.notification import Notification

_BASE64_PREFIX: Final = "whsec_"
_MIN_SECRET_BYTES: Final = 16

Post = Callable[[Mapping[str, str], bytes], int]
"""Posts headers and a body to a fixed URL; the status, or OSError."""


class WebhookTarget:
    """Posts notifications; any 2xx means that one has arrived."""

    name = "webhook"

    def __init__(self, secret: str, post: Post) -> None:
        self._key = _decode_secret(secret)
        self._post = post

    def deliver(self, notification: Notification, now: int) -> str:
        """Post the notification; "" when it has arrived, else what went wrong."""
        seconds = f"{now // 1000}"
        headers = {
            "Content-Type": "application/json",
            "User-Agent": "dragoman",
            "webhook-id": notification.id,
            "webhook-timestamp": seconds,
            "webhook-signature": sign_notification(
                self._key, notification.id, seconds, notification.body
            ),
        }
        try:
            status = self._post(headers, notification.body)
        except OSError as error:
            return f"{error.strerror or error}"
        if HTTPStatus.OK <= status < HTTPStatus.MULTIPLE_CHOICES:
            return ""
        if HTTPStatus.MULTIPLE_CHOICES <= status < HTTPStatus.BAD_REQUEST:
            return f"it answered {status}; redirects are not followed: set the URL it leads to"
        return f"it answered {status}"


def sign_notification(key: bytes, notification_id: str, seconds: str, body: bytes) -> str:
    """Value of the header `webhook-signature`."""
    signed = b".".join((notification_id.encode(), seconds.encode(), body))
    return "v1," + b64encode(hmac.digest(key, signed, "sha256")).decode()


def _decode_secret(secret: str) -> bytes:
    try:
        encoded = secret.startswith(_BASE64_PREFIX)
        key = (
            b64decode(secret[len(_BASE64_PREFIX) :], validate=True) if encoded else secret.encode()
        )
    except ValueError:
        raise SettingsError(
            f"notify.webhook_secret begins with {_BASE64_PREFIX}, but what follows is not Base64"
        ) from None
    if len(key) < _MIN_SECRET_BYTES:
        raise SettingsError(
            f"notify.webhook_url needs a secret of at least {_MIN_SECRET_BYTES} bytes to sign "
            "with: set "
            "notify.webhook_secret_file to a file made with `openssl rand -hex 32`"
        )
    return key
