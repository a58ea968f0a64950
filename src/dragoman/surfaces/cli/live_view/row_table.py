"""Table whose rows are replaced as a whole, while the cursor stays with its row."""

from collections.abc import Sequence
from typing import ClassVar

from msgspec import Struct
from rich.text import Text
from textual.binding import Binding, BindingType
from textual.coordinate import Coordinate
from textual.events import Resize
from textual.widgets import DataTable


class Row(Struct, frozen=True):
    """A row: what it stands for, and its cells."""

    key: str
    cells: tuple[Text, ...]


class RowTable(DataTable[Text]):
    """A table of rows, the last column as wide as there is space."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("j", "cursor_down", show=False),
        Binding("k", "cursor_up", show=False),
        Binding("home", "scroll_top", show=False),
        Binding("end", "scroll_bottom", show=False),
        # There is nothing beside the columns that are shown.
        Binding("left", "app.filter(-1)", show=False),
        Binding("right", "app.filter(1)", show=False),
    ]

    def __init__(self, id: str, columns: Sequence[tuple[str, int]]) -> None:
        """`columns`: names and widths, of which the last is the least one."""
        super().__init__(id=id, cursor_type="row", cell_padding=0)
        self._widths = [width for _, width in columns]
        self._names = [name for name, _ in columns]
        self._shown: tuple[Row, ...] = ()

    def on_mount(self) -> None:
        """Add the columns."""
        for name, width in zip(self._names, self._widths, strict=True):
            self.add_column(Text(name, "dim"), width=width)

    def on_resize(self, _: Resize) -> None:
        """Give the last column the space that is left."""
        left = self.scrollable_content_region.width - sum(self._widths[:-1])
        self.ordered_columns[-1].width = max(left, self._widths[-1])
        rows, self._shown = self._shown, ()
        self.show(rows)

    @property
    def selected(self) -> str | None:
        """Key of the row under the cursor."""
        return self._shown[self.cursor_row].key if self._shown else None

    def show(self, rows: Sequence[Row]) -> None:
        """Show these rows instead."""
        old, self._shown = self._shown, tuple(rows)
        if [row.key for row in old] == [row.key for row in rows]:
            for number, (before, after) in enumerate(zip(old, rows, strict=True)):
                for column, cell in enumerate(after.cells):
                    if before.cells[column] != cell:
                        self.update_cell_at(Coordinate(number, column), self._fit(column, cell))
            return
        selected = old[min(self.cursor_row, len(old) - 1)].key if old else None
        line = self.cursor_row
        self.clear()
        for row in rows:
            self.add_row(*(self._fit(column, cell) for column, cell in enumerate(row.cells)))
        keys = [row.key for row in rows]
        if keys:
            at = keys.index(selected) if selected in keys else min(line, len(keys) - 1)
            self.move_cursor(row=at, animate=False)

    def _fit(self, column: int, cell: Text) -> Text:
        """The cell with a blank at its end, cut off where it is too long."""
        width = self.ordered_columns[column].width
        fitted = cell.copy()
        fitted.truncate(max(width - 1, 1), overflow="ellipsis")
        return fitted
