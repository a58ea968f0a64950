"""ACP handoff: work changes hands with a package that can be verified; every step is recorded."""

from dragoman.protocols.acp.operations import dialect
from dragoman.protocols.acp.settings import Choices, Teamspace

__all__ = [
    "Choices",
    "Teamspace",
    "dialect",
]
