"""The page on notifications: its example verifies signatures, its numbers are the real ones."""

import re
from collections.abc import Mapping
from typing import Any

from docs.generate import DOCS
from dragoman.core.backoff import backoff_delay
from dragoman.notify.notification import Notification
from dragoman.notify.webhook import WebhookTarget
from dragoman.services.notifier import MAX_TRIES, RETRY_BACKOFF
from tests.engine.lab import START
from tests.requirements import proves

PAGE = (DOCS / "notifications.md").read_text(encoding="utf-8")
SECRET = "s3cr3t-of-the-test"


@proves("NOTIFY-WEBHOOK", "PROJECT-DOCS")
def test_verification_example_accepts_only_valid_signatures() -> None:
    (example,) = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
    namespace: dict[str, Any] = {}
    exec(compile(example, "notifications.md", "exec"), namespace)  # noqa: S102  our own page
    sent: list[tuple[dict[str, str], bytes]] = []

    def post(headers: Mapping[str, str], body: bytes) -> int:
        sent.append((dict(headers), body))
        return 204

    WebhookTarget(SECRET, post).deliver(Notification("lab:7", "TASK-2026-02-09-001", b"{}"), START)
    ((headers, body),) = sent
    assert namespace["is_ours"](SECRET.encode(), headers, body)
    assert not namespace["is_ours"](SECRET.encode(), headers, body + b" ")
    assert not namespace["is_ours"](b"another", headers, body)


@proves("NOTIFY-AT-LEAST-ONCE", "PROJECT-DOCS")
def test_page_states_tries_and_duration() -> None:
    minutes = round(
        sum(backoff_delay(failed, RETRY_BACKOFF) for failed in range(1, MAX_TRIES)) / 60_000
    )
    assert f"After {MAX_TRIES} tries, about {minutes} minutes" in PAGE
