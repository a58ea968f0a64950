"""The group `dragoman mail`: letters between agents and people."""

import typer

from dragoman.surfaces.cli import mail_box, mail_mark, mail_send, mail_threads
from dragoman.surfaces.cli.values import QuickGroup
from dragoman.surfaces.cli.verb import add_verb, help_when_alone

VERBS = (*mail_send.VERBS, *mail_box.VERBS, *mail_threads.VERBS, *mail_mark.VERBS)


def group() -> typer.Typer:
    """The group with its commands."""
    mail = typer.Typer(help="Send and read letters.", cls=QuickGroup)
    mail.callback(invoke_without_command=True)(help_when_alone)
    for verb in VERBS:
        add_verb(mail, verb)
    return mail
