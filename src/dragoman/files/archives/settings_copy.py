"""Settings that may travel: how tasks are treated, never where things are kept or who is told.

`[store]` and `[notify]` belong to one place: they hold passwords, secrets and commands, and a copy
that used them would write into the original's store.
"""

import json
import tomllib
from collections.abc import Mapping
from typing import Any, Final, cast

_LOCAL_SECTIONS: Final = ("store", "notify")


def portable_settings(settings: bytes) -> bytes | None:
    """Settings without those of the installation, as TOML; None when they cannot be parsed."""
    try:
        sections = tomllib.loads(settings.decode())
    except (tomllib.TOMLDecodeError, UnicodeDecodeError):
        return None
    written = [
        _format_section(name, cast(Mapping[str, Any], values))
        for name, values in sections.items()
        if name not in _LOCAL_SECTIONS and isinstance(values, Mapping)
    ]
    return "\n".join(written).encode()


def _format_section(name: str, values: Mapping[str, Any]) -> str:
    # Numbers, booleans, strings and lists of them are written in TOML as in JSON.
    lines = [f"{key} = {json.dumps(value)}\n" for key, value in values.items()]
    return f"[{name}]\n{''.join(lines)}"
