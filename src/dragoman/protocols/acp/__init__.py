"""ACP handoff: work changes hands with a package that can be verified, each step on record."""

from dragoman.protocols.acp.operations import dialect
from dragoman.protocols.acp.settings import Choices, Teamspace

__all__ = ["Choices", "Teamspace", "dialect"]
