"""No SQL statement is built from input: every value is bound."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.requirements import proves

pytestmark = proves("INCIDENTS-OF-OTHERS")

SOURCE = Path(__file__).parents[2] / "src" / "dragoman"
_STATEMENT = re.compile(
    r"\s*(SELECT|INSERT|UPDATE|DELETE|WITH|CREATE|DROP|ALTER|PRAGMA|ATTACH|SET|COPY)\b"
)
_CONSTANT = re.compile(r"_?[A-Z][A-Z0-9_]*")

ALLOWED = {
    "store/postgres/connect.py": "', '.join([*calls, _DURABLE_COMMITS])",
}
"""File -> interpolated expression: calls of functions by the names that stand in the file."""


def interpolated_parts(code: str) -> Iterator[str]:
    """Expressions that an f-string, a `%`, a `+` or a `format` interpolates into statements."""
    for node in ast.walk(ast.parse(code)):
        match node:
            case ast.JoinedStr(values=[ast.Constant(value=str(start)), *rest]) if _is_sql(start):
                for part in rest:
                    if isinstance(part, ast.FormattedValue):
                        yield ast.unparse(part.value)
            case ast.BinOp(left=ast.Constant(value=str(start)), right=part) if _is_sql(start):
                yield ast.unparse(part)
            case ast.Call(
                func=ast.Attribute(value=ast.Constant(value=str(start)), attr="format"), args=args
            ) if _is_sql(start):
                yield from map(ast.unparse, args)
            case _:
                pass


def _is_sql(start: str) -> bool:
    return _STATEMENT.match(start) is not None


def test_source_has_no_interpolated_statement() -> None:
    """langgraph CVE-2025-8709: the key of a filter became a part of a statement."""
    files = {path.relative_to(SOURCE).as_posix(): path for path in SOURCE.rglob("*.py")}
    found = {
        name: part
        for name, path in files.items()
        for part in interpolated_parts(path.read_text())
        if not _CONSTANT.fullmatch(part)
    }
    assert found == ALLOWED


@pytest.mark.parametrize(
    ("code", "part"),
    [
        ("db.execute(f'SELECT * FROM t WHERE {key} = ?', (1,))", "key"),
        ("sql = 'DELETE FROM ' + table", "table"),
        ("sql = 'UPDATE t SET a = %s' % value", "value"),
        ("sql = 'PRAGMA x({})'.format(value)", "value"),
    ],
)
def test_interpolated_statement_is_found(code: str, part: str) -> None:
    assert list(interpolated_parts(code)) == [part]


def test_prose_is_not_taken_for_a_statement() -> None:
    assert list(interpolated_parts("f'the store {name} is gone'; f'PRAGMAS {x}'")) == []
