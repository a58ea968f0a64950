"""`dragoman schema`: the JSON Schema of what a dialect hands over."""

from typing import Annotated

import typer

from dragoman.surfaces.cli.call import CommandContext, raise_usage_error
from dragoman.surfaces.cli.verb import CliCommand


def schema(
    context: CommandContext,
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
    schemas = {one.name: one.schema for one in context.wiring.dialects() if one.schema}
    build_schema = schemas.get(dialect)
    if build_schema is None:
        one = "a dialect that has a schema"
        problem = f"{dialect!a} is not {one}" if dialect else f"name {one}"
        raise_usage_error(f"{problem}; known: {', '.join(schemas)}")
    context.out.json(dict(build_schema()))


SCHEMA_COMMANDS = (CliCommand("schema", schema, takes_as=False),)
