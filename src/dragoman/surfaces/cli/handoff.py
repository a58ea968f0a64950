"""The group `dragoman handoff`: work on its way from one owner to the next."""

import typer

from dragoman.surfaces.cli import (
    handoff_act,
    handoff_check,
    handoff_draft,
    handoff_offer,
    handoff_read,
)
from dragoman.surfaces.cli.values import QuickGroup
from dragoman.surfaces.cli.verb import add_verb, help_when_alone

VERBS = (
    *handoff_read.VERBS,
    *handoff_check.VERBS,
    *handoff_draft.VERBS,
    *handoff_offer.VERBS,
    *handoff_act.VERBS,
)


def group() -> typer.Typer:
    """The group with its commands."""
    handoffs = typer.Typer(help="Hand work over, and see where it is stuck.", cls=QuickGroup)
    handoffs.callback(invoke_without_command=True)(help_when_alone)
    for verb in VERBS:
        add_verb(handoffs, verb)
    return handoffs
