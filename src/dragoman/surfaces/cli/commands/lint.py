"""`dragoman lint` and `schema`: check messages without a hub; the JSON Schema of a dialect."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated

from dragoman.surfaces.cli.command import CliCommand, argument, option
from dragoman.surfaces.cli.context import (
    STANDARD_INPUT,
    CommandContext,
    UsageError,
    open_source,
    raise_usage_error,
    read_source,
)

if TYPE_CHECKING:
    from dragoman.engine.operation import Dialect, LintResult

_MAX_LENIENT_BYTES = 16 * 1024 * 1024
"""Size limit for lenient dialects, which accept messages that are too long."""


def lint(
    context: CommandContext,
    sources: Annotated[
        list[str] | None, argument("FILE|-", "The files; `-` or nothing: standard input.")
    ] = None,
    dialect: Annotated[
        str, option("--dialect", "D", "Which dialect, e.g. aof; must be given.")
    ] = "",
    kind: Annotated[str, option("--kind", "K", "The type that it must have, if one.")] = "",
    strict: Annotated[
        bool, option("--strict", "", "Report also what the hub would let pass.")
    ] = False,
    jsonl: Annotated[
        bool, option("--jsonl", "", "One JSON value a line; one answer a line, in their order.")
    ] = False,
) -> int:
    """Check messages without sending them.

    Every finding is listed with its path; of several files, each is named. Ends with 1 if anything
    is wrong, with 2 if a file cannot be read; the others are checked all the same.

    Agent Mail without --strict is always ok: what cannot be read of a letter is listed.

    \b
    Examples:
      dragoman lint --dialect aof message.json
      dragoman lint --dialect aof sent/*.json
      dragoman lint --dialect aof --strict --jsonl < sent.jsonl
    """
    found_dialect = _find_dialect(context, dialect, kind)
    is_ok, unreadable = True, list[str]()
    files = sources or [STANDARD_INPUT]
    for file in files:
        name = file if len(files) > 1 else ""
        try:
            for linted in _lint_source(found_dialect, file, kind, strict=strict, jsonl=jsonl):
                is_ok = is_ok and linted.ok
                if jsonl or context.shared.json:
                    context.out.json(_linted_to_dict(linted, name))
                else:
                    _print_linted(context, linted, name)
        except UsageError as error:
            unreadable.append(f"{error}")
    if unreadable:
        raise_usage_error("; ".join(unreadable))
    return 0 if is_ok else 1


def _find_dialect(context: CommandContext, name: str, kind: str) -> "Dialect":
    from dragoman.engine.lint import linter_of

    dialects = {dialect.name: dialect for dialect in context.wiring.dialects()}
    if name not in dialects:
        problem = f"{name!a} is not a dialect" if name else "name a dialect with --dialect"
        raise_usage_error(f"{problem}; known: {', '.join(dialects)}")
    kinds = linter_of(dialects[name]).message_types
    if kind and kind not in kinds:
        raise_usage_error(f"{kind!a} is no --kind of {name}; known: {', '.join(kinds)}")
    return dialects[name]


def _lint_source(
    dialect: "Dialect", source: str, kind: str, *, strict: bool, jsonl: bool
) -> "Iterator[LintResult]":
    from dragoman.engine.lint import lint_text, linter_of

    accepts_any_text = linter_of(dialect).accepts_any_text
    max_bytes = _MAX_LENIENT_BYTES if accepts_any_text else dialect.limits.max_bytes
    for text in _read_messages(source, max_bytes, jsonl=jsonl):
        yield lint_text(dialect, text, kind, strict=strict)


def _read_messages(source: str, most_bytes: int, *, jsonl: bool) -> Iterator[bytes]:
    if not jsonl:
        yield read_source(source, most_bytes)
        return
    with open_source(source) as lines:
        # A blank line is answered too, so that answers and lines have the same numbers.
        yield from (line.removesuffix(b"\n") for line in lines)


def _linted_to_dict(linted: "LintResult", file: str) -> dict[str, object]:
    return {
        **({"file": file} if file else {}),
        "ok": linted.ok,
        "type": linted.type,
        "message": linted.message,
        "issues": linted.issues,
    }


def _print_linted(context: CommandContext, linted: "LintResult", file: str) -> None:
    verdict = ("ok", "green") if linted.ok else ("not ok", "bold red")
    context.out.line(f"{file}: " if file else "", verdict, f": {linted.type or 'unknown'}")
    for issue in linted.issues:
        where = f"{issue['path']}: " if issue["path"] else ""
        context.out.line(f"  {where}{issue['reason']}")


# --- schema -----------------------------------------------------------------------------------


def schema(
    context: CommandContext,
    dialect: Annotated[str, argument("DIALECT", "Which dialect, e.g. acp; must be given.")] = "",
) -> None:
    """Print the JSON Schema of what a dialect sends.

    Of acp that is the handoff package (draft 2020-12). `dragoman lint` checks by the same shapes.

    \b
    Example:
      dragoman schema acp > package.schema.json
    """
    dialects = [one for one in context.wiring.dialects() if one.lint and one.lint.schema]
    schemas = {one.name: one.lint.schema for one in dialects if one.lint}
    build_schema = schemas.get(dialect)
    if build_schema is None:
        one = "a dialect that has a schema"
        problem = f"{dialect!a} is not {one}" if dialect else f"name {one}"
        raise_usage_error(f"{problem}; known: {', '.join(schemas)}")
    context.out.json(dict(build_schema()))


COMMANDS = (
    CliCommand("lint", lint, takes_as=False),
    CliCommand("schema", schema, takes_as=False),
)
