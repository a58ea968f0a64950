"""Pure text tools."""

from dragoman.text.safe_text import safe_text

__all__ = [
    "safe_text",
]
