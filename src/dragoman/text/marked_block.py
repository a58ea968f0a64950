"""A block between two marker lines in a text file of others, which is written and removed whole."""

import re

from msgspec import Struct


class MarkedBlockError(ValueError):
    """The markers do not stand once each, in their order."""


class MarkedBlock(Struct, frozen=True):
    """The two marker lines of a block."""

    begin: str
    end: str

    def find(self, text: str) -> str | None:
        """Content of the block; None if there is none."""
        span = self._span(text)
        return None if span is None else text[span[0] : span[1]]

    def put(self, text: str, content: str) -> str:
        """Write the block with this content: in its place, else at the end."""
        newline = "\r\n" if "\r\n" in text else "\n"
        block = newline.join([self.begin, *content.splitlines(), self.end]) + newline
        span = self._span(text)
        if span is not None:
            return text[: span[0]] + block + text[span[1] :]
        if not text:
            return block
        return text + newline + block

    def remove(self, text: str) -> str:
        """Remove the block, and the line feed that `put` has written before it: an empty line, or
        the end of a last line that had none."""
        span = self._span(text)
        if span is None:
            return text
        before, after = text[: span[0]], text[span[1] :]
        return re.sub(r"\r?\n\Z" if not after else r"(?<=\n)\r?\n\Z", "", before) + after

    def _span(self, text: str) -> tuple[int, int] | None:
        """Beginning of the first marker's line, and end of the last one's."""
        lines = [self._lines_of(marker, text) for marker in (self.begin, self.end)]
        begins, ends = lines
        if not begins and not ends:
            return None
        if len(begins) != 1 or len(ends) != 1 or begins[0].start() > ends[0].start():
            raise MarkedBlockError(
                f"the lines {self.begin!a} and {self.end!a} have to stand once each, in this order"
            )
        return begins[0].start(), ends[0].end()

    def _lines_of(self, marker: str, text: str) -> list[re.Match[str]]:
        return [*re.finditer(rf"^{re.escape(marker)}[ \t]*(?:\r?\n|\Z)", text, re.MULTILINE)]
