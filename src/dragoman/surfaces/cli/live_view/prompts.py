"""Dialogs of the live view: a text or a confirmation is asked for, a longer text is shown."""

from collections.abc import Sequence
from typing import ClassVar

from rich.text import Text
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.screen import ModalScreen
from textual.widgets import Input, Static


class Prompt(ModalScreen[str | None]):
    """Ask for a text, or only for a confirmation; None: the person changed its mind."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "cancel"),
        Binding("enter", "confirm"),
    ]

    def __init__(
        self, title: str, lines: Sequence[Text], prompt: str = "", *, may_be_empty: bool = False
    ) -> None:
        """`prompt`: what the text is; empty: no text is asked for."""
        super().__init__()
        self._title = title
        self._lines = lines
        self._prompt = prompt
        self._may_be_empty = may_be_empty

    def compose(self) -> ComposeResult:
        """Build the dialog."""
        with Vertical(id="prompt"):
            yield Static(Text(self._title, "bold"), id="prompt-title")
            for line in self._lines:
                yield Static(line)
            if self._prompt:
                yield Static(Text(self._prompt), id="prompt-text")
                yield Input(compact=True)
            yield Static(Text("Enter: yes · Esc: no", "dim"))

    def on_input_submitted(self, event: Input.Submitted) -> None:
        """Take the text."""
        text = event.value.strip()
        if text or self._may_be_empty:
            self.dismiss(text)

    def action_confirm(self) -> None:
        """Confirm, where no text is asked for."""
        if not self._prompt:
            self.dismiss("")

    def action_cancel(self) -> None:
        """Change one's mind."""
        self.dismiss(None)


class TextPage(ModalScreen[None]):
    """Show a text."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,enter,q,question_mark", "dismiss"),
    ]

    def __init__(self, text: Text) -> None:
        super().__init__()
        self._text = text

    def compose(self) -> ComposeResult:
        """Build the page."""
        with Vertical(id="prompt"):
            yield Static(self._text)
            yield Static(Text("\nEsc: close", "dim"))
