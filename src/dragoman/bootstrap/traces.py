"""What traces need from outside: the redactor, what is held back, and what is checked out."""

from collections.abc import Callable
from pathlib import Path

from dragoman.config import Settings
from dragoman.engine.hub import Hub
from dragoman.engine.ports import Clock
from dragoman.protocols import saop
from dragoman.system.chunk_tails import CarryOverFile
from dragoman.system.git_head import GitHead
from dragoman.text.redact import Redactor

_CARRY_OVER_FOLDER = "held"


def open_git_head(settings: Settings, data: Path) -> Callable[[], str]:
    """Reader of the commit that is checked out in the repository of the settings; empty without
    one.
    """
    repository = settings.git.repository
    return GitHead(data / repository) if repository else lambda: ""


def open_carry_over(data: Path, secret: bytes, clock: Clock) -> CarryOverFile:
    """Carry-over of thoughts between chunks, shared by all processes."""
    return CarryOverFile(data / _CARRY_OVER_FOLDER, secret, lambda: clock.now() / 1_000)


def trace_choices(
    settings: Settings, redactor: Redactor, hub: Hub, head: Callable[[], str]
) -> saop.Choices:
    """SAOP settings."""
    section = settings.saop
    return saop.Choices(
        adopt=section.adopt,
        review_required=settings.tasks.review_required,
        max_attempts=settings.tasks.max_attempts,
        ttl_ms=section.ttl_ms,
        max_turn_bytes=section.turn_bytes,
        redactor=redactor,
        digest=hub.content_key,
        head=head,
    )
