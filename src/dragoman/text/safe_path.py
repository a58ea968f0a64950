"""Checks untrusted paths: relative, downwards, and the same file to every reader."""

import re
import unicodedata
from typing import Final

MAX_PART_BYTES: Final = 255
"""In bytes; no file system that we know takes a longer name."""

_PLAIN: Final = re.compile(r"[A-Za-z0-9_][\w-]*+(?:[./][A-Za-z0-9_][\w-]*+)*+", re.ASCII)
"""Form of nearly all paths, which is safe."""


def check_path(path: str) -> str | None:
    """Check that a path stays below its folder; the reason if it must not be followed, or None."""
    if len(path) <= MAX_PART_BYTES and _PLAIN.fullmatch(path):
        return None
    if path.isascii():
        return _check_form(path)
    if not unicodedata.is_normalized("NFC", path):
        return "it is not in Unicode's normal form NFC, so that two files could look the same"
    # Look-alikes of dots and slashes are refused too: some file systems fold them.
    return _check_form(path) or _check_form(unicodedata.normalize("NFKC", path))


def _check_form(path: str) -> str | None:
    if not path:
        return "it is empty"
    if path.startswith("/"):
        return "it is absolute; name a path below the folder"
    if "\\" in path or ":" in path:
        return "it has a backslash or a colon; write a relative path with /"
    if not path.isprintable():
        return "it has a control character or one that cannot be seen"
    parts = path.removesuffix("/").split("/")
    if ".." in parts:
        return "it leads out of the folder with .."
    if "" in parts:
        return "it has an empty part (//)"
    if any(len(part.encode(errors="surrogatepass")) > MAX_PART_BYTES for part in parts):
        return f"a part of it has more than {MAX_PART_BYTES} bytes"
    return None
