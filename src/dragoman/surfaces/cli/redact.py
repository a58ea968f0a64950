"""`dragoman redact`: text in, the same text without secrets out."""

import codecs
from collections.abc import Iterator
from typing import TYPE_CHECKING, BinaryIO, cast

from dragoman.surfaces.cli.call import Call
from dragoman.surfaces.cli.reading import STANDARD_INPUT, SourceArgument, open_source
from dragoman.surfaces.cli.verb import Verb

if TYPE_CHECKING:
    from io import BufferedReader

    from dragoman.text.redact import Stream

_BLOCK = 65_536


def redact(call: Call, source: SourceArgument = STANDARD_INPUT) -> None:
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
    stream = call.house.redactor(call.data).stream()
    with open_source(source) as file:
        pieces = _redacted(file, stream)
        if call.shared.json:
            call.out.json(_report("".join(pieces), stream))
            return
        for piece in pieces:
            call.out.text(piece)  # each line is printed when it comes, for a person who watches


def _redacted(file: BinaryIO, stream: "Stream") -> Iterator[str]:
    # Bytes that are not UTF-8 pass unchanged.
    decode = codecs.getincrementaldecoder("utf-8")("surrogateescape").decode
    reader = cast("BufferedReader", file)
    while block := reader.read1(_BLOCK):
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


VERBS = (Verb("redact", redact, speaks=False),)
