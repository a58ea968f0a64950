"""`dragoman schema`: the JSON Schema of what a dialect hands over."""

from typing import Annotated

import typer

from dragoman.surfaces.cli.call import Call, wrong_usage
from dragoman.surfaces.cli.verb import Verb


def schema(
    call: Call,
    dialect: Annotated[
        str,
        typer.Argument(
            metavar="DIALECT", show_default=False, help="Which dialect, e.g. acp; must be given."
        ),
    ] = "",
) -> None:
    """Print the JSON Schema of what a dialect sends.

    Of acp that is the handoff package (draft 2020-12). `dragoman lint` checks by the same shapes.

    \b
    Example:
      dragoman schema acp > package.schema.json
    """
    published = {one.name: one.schema for one in call.house.dialects() if one.schema}
    made = published.get(dialect)
    if made is None:
        one = "a dialect that has a schema"
        what = f"{dialect!a} is not {one}" if dialect else f"name {one}"
        wrong_usage(f"{what}; known: {', '.join(published)}")
    call.out.json(dict(made()))


VERBS = (Verb("schema", schema, speaks=False),)
