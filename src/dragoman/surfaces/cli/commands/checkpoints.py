"""`dragoman checkpoints`: say that a changed file of checkpoints is right."""

from dragoman.surfaces.cli.command import CliCommand
from dragoman.surfaces.cli.context import CommandContext, CommandResult
from dragoman.surfaces.cli.render import Screen, pluralize


def accept(context: CommandContext) -> CommandResult:
    """Sign again, with checkpoints.jsonl as it is now.

    The store knows how many checkpoints were issued. When checkpoints.jsonl is shorter, another one
    or gone, nothing more is signed until you bring it back, or say by this command that it is right
    as it is: you have moved it away, or deleted a spoiled line, or this directory is a further one
    on its store.

    If you do not know why it is so, somebody may have rewritten the ledger: first compare the
    ledger with a backup.

    \b
    Example:
      dragoman checkpoints accept
    """
    with context.open_for_writing() as directory:
        store = directory.hub.store
        removal = directory.checkpoints.find_removal(store.issued_checkpoints())
        signed = directory.accept_checkpoints(directory.hub.clock.now())

    def show(screen: Screen) -> None:
        screen.line(f"accepted: {removal.partition('. ')[0]}" if removal else "nothing was missing")
        screen.line(f"signed: {pluralize(signed, 'entry', 'entries')}")

    return CommandResult({"accepted": bool(removal), "signed": signed}, show)


COMMANDS = (CliCommand("accept", accept, takes_as=False),)
