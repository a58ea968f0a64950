"""`dragoman lint`: is this a message of that dialect? For agents' developers and their CI."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated

import typer

from dragoman.surfaces.cli.call import Call, WrongUsage, wrong_usage
from dragoman.surfaces.cli.reading import STANDARD_INPUT, open_source, read_source
from dragoman.surfaces.cli.verb import Verb

if TYPE_CHECKING:
    from dragoman.engine.operation import Dialect, Linted

_MOST_BYTES = 16 * 1024 * 1024
"""Size limit for lenient dialects, which accept messages that are too long."""


def lint(
    call: Call,
    sources: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="FILE|-",
            show_default=False,
            help="The files; `-` or nothing: standard input.",
        ),
    ] = None,
    dialect: Annotated[
        str,
        typer.Option(
            "--dialect",
            metavar="D",
            show_default=False,
            help="Which dialect, e.g. aof; must be given.",
        ),
    ] = "",
    kind: Annotated[
        str,
        typer.Option(
            "--kind", metavar="K", show_default=False, help="The type that it must have, if one."
        ),
    ] = "",
    strict: Annotated[
        bool, typer.Option("--strict", help="Report also what the hub would let pass.")
    ] = False,
    jsonl: Annotated[
        bool,
        typer.Option("--jsonl", help="One JSON value a line; one answer a line, in their order."),
    ] = False,
) -> None:
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
    spoken = _spoken(call, dialect, kind)
    is_ok, unread = True, list[str]()
    files = sources or [STANDARD_INPUT]
    for file in files:
        name = file if len(files) > 1 else ""
        try:
            for linted in _each(spoken, file, kind, strict=strict, jsonl=jsonl):
                is_ok = is_ok and linted.ok
                if jsonl or call.shared.json:
                    call.out.json(_as_object(linted, name))
                else:
                    _show(call, linted, name)
        except WrongUsage as error:
            unread.append(f"{error}")
    if unread:
        wrong_usage("; ".join(unread))
    if not is_ok:
        raise typer.Exit(1)


def _spoken(call: Call, name: str, kind: str) -> "Dialect":
    spoken = {dialect.name: dialect for dialect in call.house.dialects()}
    if name not in spoken:
        what = f"{name!a} is not a dialect" if name else "name a dialect with --dialect"
        wrong_usage(f"{what}; known: {', '.join(spoken)}")
    kinds = spoken[name].kinds
    if kind and kind not in kinds:
        wrong_usage(f"{kind!a} is no --kind of {name}; known: {', '.join(kinds)}")
    return spoken[name]


def _each(
    dialect: "Dialect", source: str, kind: str, *, strict: bool, jsonl: bool
) -> "Iterator[Linted]":
    from dragoman.engine.operation import lint_text

    most = _MOST_BYTES if dialect.is_lenient else dialect.bounds.most_bytes
    for text in _texts(source, most, jsonl=jsonl):
        yield lint_text(dialect, text, kind, strict=strict)


def _texts(source: str, most_bytes: int, *, jsonl: bool) -> Iterator[bytes]:
    if not jsonl:
        yield read_source(source, most_bytes)
        return
    with open_source(source) as lines:
        # A blank line is answered too, so that answers and lines have the same numbers.
        yield from (line.removesuffix(b"\n") for line in lines)


def _as_object(linted: "Linted", file: str) -> dict[str, object]:
    return {
        **({"file": file} if file else {}),
        "ok": linted.ok,
        "type": linted.type,
        "message": linted.message,
        "issues": linted.issues,
    }


def _show(call: Call, linted: "Linted", file: str) -> None:
    verdict = ("ok", "green") if linted.ok else ("not ok", "bold red")
    call.out.line(f"{file}: " if file else "", verdict, f": {linted.type or 'unknown'}")
    for issue in linted.issues:
        where = f"{issue['path']}: " if issue["path"] else ""
        call.out.line(f"  {where}{issue['reason']}")


VERBS = (Verb("lint", lint, speaks=False),)
