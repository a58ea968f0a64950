"""Messages in files, as somebody who types a command has them."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any


class MessageFiles:
    """A folder of messages, beside the data directory."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        folder.mkdir()

    def __call__(self, message: Mapping[str, Any] | str | bytes) -> str:
        """The path of a new file with this message."""
        if not isinstance(message, str | bytes):
            message = json.dumps(message)
        path = self._folder / f"{len(list(self._folder.iterdir()))}.json"
        path.write_bytes(message if isinstance(message, bytes) else message.encode())
        return str(path)
