"""Bar of keys at the bottom of the live view."""

from collections.abc import Iterable

from rich.text import Text
from textual.widgets import Static

from dragoman.surfaces.cli.live_view.choices import Choice


class KeyBar(Static):
    """Keys and what they do now, on one line."""

    def show(self, keys: Iterable[tuple[str, str]], choices: Iterable[Choice]) -> None:
        """Show the choices, then other keys."""
        named = [(choice.key, choice.label, "bold") for choice in choices]
        named += [(key, label, "") for key, label in keys]
        text = Text(no_wrap=True, overflow="ellipsis", end="")
        for key, label, style in named:
            text.append(f" {key} ", f"reverse {style}")
            text.append(f" {label}  ", style or "dim")
        self.update(text)
