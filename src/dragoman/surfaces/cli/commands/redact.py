"""`dragoman redact`: mask the secrets in a text."""

import codecs
from collections.abc import Iterator
from io import BufferedReader
from typing import TYPE_CHECKING, BinaryIO, cast

from dragoman.surfaces.cli.command import CliCommand, SourceArgument
from dragoman.surfaces.cli.context import STANDARD_INPUT, CommandContext, open_source

if TYPE_CHECKING:
    from dragoman.text.redact import Stream

_BLOCK_BYTES = 65_536


def redact(context: CommandContext, source: SourceArgument = STANDARD_INPUT) -> None:
    """Mask the secrets in a text.

    Reads a file or standard input as it comes, and prints it with [REDACTED:kind:digest] in the
    place of each secret: values that the hub of the data directory knows, credentials with a form
    of their own, values behind names like password, private keys. Equal secrets have equal digests.
    With --json the answer is one object: the text, and how often which secret was found.

    \b
    Examples:
      dragoman redact < build.log > shared.log
      some-command 2>&1 | dragoman redact
      dragoman redact --json notes.md
    """
    stream = context.wiring.redactor(context.data).stream()
    with open_source(source) as file:
        pieces = _redact_blocks(file, stream)
        if context.shared.json:
            context.out.json(_report("".join(pieces), stream))
            return
        for piece in pieces:
            context.out.write_raw(
                piece
            )  # each line is printed when it comes, for a person who watches


def _redact_blocks(file: BinaryIO, stream: "Stream") -> Iterator[str]:
    # Bytes that are not UTF-8 pass unchanged.
    decode = codecs.getincrementaldecoder("utf-8")("surrogateescape").decode
    reader = cast(BufferedReader, file)
    while block := reader.read1(_BLOCK_BYTES):
        yield stream.feed(decode(block))
    yield stream.feed(decode(b"", final=True)) + stream.close()


def _report(text: str, stream: "Stream") -> dict[str, object]:
    found = sorted(stream.found.items())
    return {
        "ok": True,
        "masked": bool(found),
        "found": [{"kind": k, "digest": digest, "count": n} for (k, digest), n in found],
        "text": text,
    }


COMMANDS = (CliCommand("redact", redact, takes_as=False),)
