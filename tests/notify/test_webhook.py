"""Webhook target: a signature that its receiver can verify, and failures with a reason."""

import hmac
from base64 import b64decode, b64encode
from collections.abc import Generator, Mapping
from hashlib import sha256

import pytest

from dragoman.core.errors import SettingsError
from dragoman.notify.notification import Notification
from dragoman.notify.webhook import WebhookTarget, sign_notification
from dragoman.system.http_client import SafeHttpClient
from tests.engine.lab import START
from tests.notify.receiver import Receiver, hang, receiving, status
from tests.requirements import proves

pytestmark = proves("NOTIFY-WEBHOOK")

SECRET = "s3cr3t-of-the-test"
NOTIFICATION = Notification("lab:7", "TASK-2026-02-09-001", b'{"to":"done"}')


@pytest.fixture
def receiver() -> Generator[Receiver]:
    """Give a server on this machine."""
    with receiving() as server:
        yield server


def webhook(receiver: Receiver, *allowed: str) -> WebhookTarget:
    url = receiver.url(path="/hook/s3cr3t-path")
    return WebhookTarget(
        SECRET, SafeHttpClient(url, "notify.webhook_url", allowed, seconds=0.3).post
    )


def test_signature_headers_can_be_verified_by_the_receiver(receiver: Receiver) -> None:
    assert webhook(receiver, "127.0.0.1").deliver(NOTIFICATION, START) == ""
    (request,) = receiver.requests
    assert request.body == NOTIFICATION.body
    assert request.headers["content-type"] == "application/json"
    assert request.headers["webhook-id"] == "lab:7"
    assert request.headers["webhook-timestamp"] == "1770647400"
    signed = b"lab:7.1770647400." + request.body
    version, _, value = request.headers["webhook-signature"].partition(",")
    assert version == "v1"
    assert b64decode(value) == hmac.new(SECRET.encode(), signed, sha256).digest()


def test_signature_matches_the_example_of_the_standard() -> None:
    # The example that the libraries of Standard Webhooks are tested with.
    key = b64decode("MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw")
    body = b'{"test": 2432232314}'
    assert (
        sign_notification(key, "msg_p5jXN8AQM9LWM0D4loKWxJek", "1614265330", body)
        == "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="
    )


@pytest.mark.parametrize(
    "changed",
    [
        sign_notification(b"l" * 16, "lab:7", "1", b"{}"),
        sign_notification(b"k" * 16, "lab:8", "1", b"{}"),
        sign_notification(b"k" * 16, "lab:7", "2", b"{}"),
        sign_notification(b"k" * 16, "lab:7", "1", b"[]"),
    ],
    ids=["key", "id", "time", "body"],
)
def test_signature_covers_key_id_time_and_body(changed: str) -> None:
    assert changed != sign_notification(b"k" * 16, "lab:7", "1", b"{}")


@pytest.mark.parametrize("code", [200, 201, 202, 204])
def test_any_2xx_counts_as_delivered(receiver: Receiver, code: int) -> None:
    receiver.answers = [status(code)]
    assert webhook(receiver, "127.0.0.1").deliver(NOTIFICATION, START) == ""


@pytest.mark.parametrize(
    ("code", "words"), [(301, "redirects are not followed"), (404, "404"), (500, "500")]
)
def test_any_other_status_is_a_failure(receiver: Receiver, code: int, words: str) -> None:
    receiver.answers = [status(code, "Location: http://127.0.0.1/")]
    assert words in webhook(receiver, "127.0.0.1").deliver(NOTIFICATION, START)


@proves("NOTIFY-NOT-IN-THE-WAY")
def test_hanging_server_times_out(receiver: Receiver) -> None:
    receiver.answers = [hang]
    assert "no answer within" in webhook(receiver, "127.0.0.1").deliver(NOTIFICATION, START)


def test_disallowed_address_is_a_failure(receiver: Receiver) -> None:
    problem = webhook(receiver).deliver(NOTIFICATION, START)
    assert "allow_hosts" in problem
    assert receiver.connections == 0


@proves("NOTIFY-SECRETS")
def test_failures_show_neither_secret_nor_url(receiver: Receiver) -> None:
    receiver.answers = [status(500), status(302), hang]
    problems = [webhook(receiver, "127.0.0.1").deliver(NOTIFICATION, START) for _ in range(3)]
    disallowed, unreachable = webhook(receiver), webhook(receiver, "127.0.0.1")
    receiver.close()
    problems += [target.deliver(NOTIFICATION, START) for target in (disallowed, unreachable)]
    assert all(problems)
    assert "s3cr3t" not in " ".join(problems)


def fail_if_called(_: Mapping[str, str], __: bytes) -> int:
    raise AssertionError("nothing is posted here")


@proves("NOTIFY-SECRETS")
@pytest.mark.parametrize("secret", ["", "s3cr3t", "whsec_s3cr3t!", "whsec_c2hvcnQ="])
def test_unusable_secret_is_refused_without_being_shown(secret: str) -> None:
    with pytest.raises(SettingsError, match=r"notify\.webhook_") as caught:
        WebhookTarget(secret, fail_if_called)
    assert "s3cr3t" not in caught.value.detail


def test_base64_secret_is_decoded() -> None:
    signatures: list[str] = []

    def post(headers: Mapping[str, str], _: bytes) -> int:
        signatures.append(headers["webhook-signature"])
        return 204

    key = bytes(range(24))
    WebhookTarget("whsec_" + b64encode(key).decode(), post).deliver(NOTIFICATION, START)
    assert signatures == [sign_notification(key, "lab:7", "1770647400", NOTIFICATION.body)]
