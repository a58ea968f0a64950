"""The text of a settings file: read and taken apart, or told in which line it is wrong and why."""

import re
import tomllib
from pathlib import Path
from typing import Any, Final

from dragoman.core.errors import SettingsError

_ERROR_POSITION: Final = re.compile(r"(.*) \(at line ([0-9]+), column ([0-9]+)\)")
"""Position in a message of the parser; at the end of the text it names no line."""
_ERROR_MESSAGES: Final = {
    "Invalid statement": "a line is KEY = VALUE, or [SECTION]",
    "Expected '='": "a line is KEY = VALUE, or [SECTION]",
    "Invalid value": "this is no value: text stands in quotation marks, and true in small letters",
    "Illegal character": "the quotation mark that ends a text is missing",
    "Unterminated string": "the quotation mark that ends a text is missing",
    "Expected ']'": "the ] that ends the name of a section is missing",
    "Unclosed array": "a comma in a list is missing, or the ] that ends it",
    "Cannot declare": "this section stands in the file already: keep one of them",
    "Cannot overwrite": "this key stands in its section already: keep one of them",
    "Cannot mutate": "this is set in another way already: keep one of them",
    "Expected newline": "there is more in this line than one value",
}
"""Start of a parser message -> explanation for people."""


def read_settings_text(path: Path) -> str:
    """Read the file; FileNotFoundError where there is none."""
    try:
        return path.read_bytes().decode()
    except FileNotFoundError:
        raise
    except IsADirectoryError:
        raise SettingsError(
            f"{path} is a folder, and the settings are a file: move it out of the way"
        ) from None
    except OSError as error:
        raise SettingsError(
            f"{path} cannot be read: {error.strerror}; look at its rights and at the disk"
        ) from None
    except UnicodeDecodeError as error:
        data, at = error.object, error.start
        line = data.count(b"\n", 0, at) + 1
        raise SettingsError(
            f"{path}, line {line}: a byte there is not UTF-8 (0x{data[at]:02x}): "
            "save the file as UTF-8"
        ) from None


def parse_toml(text: str) -> dict[str, Any]:
    """Parse TOML; SettingsError with the line if it is invalid."""
    try:
        # An error in a last line without a line feed would be reported without its number.
        return tomllib.loads(f"{text}\n")
    except tomllib.TOMLDecodeError as error:
        raise SettingsError(_explain_error(text, str(error))) from None


def _explain_error(text: str, error: str) -> str:
    """Line and explanation, without the line itself, which may hold a secret."""
    found = _ERROR_POSITION.fullmatch(error)
    if found is None:
        last = text.rstrip().count("\n") + 1
        return f"line {last} is not valid TOML: the file ends before it is complete"
    what, line, column = found.groups()
    explanation = next(
        (message for begin, message in _ERROR_MESSAGES.items() if what.startswith(begin)), what
    )
    return f"line {line} is not valid TOML from column {column} on: {explanation}"


def find_line(text: str, setting: str) -> int | None:
    """Line of a setting (`http.port`) or a section (`[http]`) that has a line of its own, if
    any."""
    section = ""
    for number, line in enumerate(text.split("\n"), 1):
        header = re.fullmatch(r"\s*\[([^][]+)\]\s*(?:#.*)?", line)
        if header is not None:
            section = _unquote_name(header[1])
            name = f"[{section}]"
        else:
            key = _unquote_name(line.partition("=")[0])
            name = f"{section}.{key}" if section else key
        if name == setting:
            return number
    return None


def _unquote_name(name: str) -> str:
    """Dotted name without quotation marks and blanks."""
    return re.sub(r"[\s\"']", "", name)
