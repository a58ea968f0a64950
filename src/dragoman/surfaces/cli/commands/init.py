"""`dragoman init`: make a data directory, or leave an existing one as it is."""

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated

from dragoman.config.store_url import absolute_url, default_url
from dragoman.surfaces.cli.command import CliCommand, option
from dragoman.surfaces.cli.context import CommandContext, CommandResult
from dragoman.surfaces.cli.data_directory import (
    DataDirectory,
    check_same_store,
    is_saved,
    mask_password,
    save_if_unset,
)
from dragoman.surfaces.cli.render import Screen


def init(
    context: CommandContext,
    new_keys: Annotated[
        bool,
        option(
            "--new-keys",
            "",
            "Continue the store with the keys that are here, because its own are lost.",
        ),
    ] = False,
) -> CommandResult:
    """Make the data directory; doing it again changes nothing.

    With --store the URL is remembered in dragoman.toml, which only you can read.

    All hubs of a store need the same folder keys. With --new-keys a store whose keys are lost
    continues with those of this directory: an earlier request that is repeated is then not
    recognized, and is refused or done again.

    \b
    Examples:
      dragoman init
      dragoman init --data /srv/hub --store postgresql://hub@localhost/hub
    """
    is_new = not context.data.exists()
    store_url = absolute_url(context.shared.store)
    if store_url:
        check_same_store(context.data, store_url)
    is_remembered = bool(store_url) and not is_saved(context.data, store_url)
    keys_are_new = not (context.data / "keys" / "ledger.pub").exists()
    if new_keys:
        _check_no_running_hub(context.data)
    replaces_keys = new_keys and not _store_accepts_keys(context)
    with context.open_for_writing(founds=True, new_keys=replaces_keys) as directory:
        # Saved only after the store could be opened.
        if is_remembered:
            save_if_unset(directory.path, store_url)
        if new_keys:
            directory.accept_checkpoints(directory.hub.clock.now())
        url = store_url or directory.settings.store.url or default_url(directory.path)
        key_data = _describe_keys(directory) if new_keys else dict[str, object]()
    data: dict[str, object] = {
        "data": str(context.data.absolute()),
        "store": mask_password(url),
        "created": is_new,
        "storeUrlSaved": is_remembered,
        **key_data,
    }
    if key_data:
        data |= {"keysMade": keys_are_new, "keysReplaced": replaces_keys}

    def show(screen: Screen) -> None:
        screen.line(f"data directory  {data['data']}{'' if is_new else '  (was there)'}")
        screen.line(f"store           {data['store']}")
        if key_data:
            _print_keys(data, screen)
        next_command = context.next_command('task create "What to do" --ready')
        screen.line(f"Next: {next_command}")

    return CommandResult(data, show)


def _check_no_running_hub(data: Path) -> None:
    """Refuse while a hub runs: it would sign with its old keys and rewrite its checkpoints."""
    from dragoman.system.hub_lock import HubRunning, find_lock_holder

    running = find_lock_holder(data)
    if running is not None:
        raise HubRunning(
            f"a hub works on {data} (process {running.pid}) with the keys that it began with, "
            "and goes "
            "on to write its checkpoints.jsonl: stop it first; nothing was changed"
        )


def _store_accepts_keys(context: CommandContext) -> bool:
    """Tell whether the store has the keys of this directory, or takes them as its first."""
    from dragoman.system.safe_fs import BadKey

    try:
        with context.open_for_writing(founds=True):
            return True
    except BadKey:
        return False


def _describe_keys(directory: DataDirectory) -> Mapping[str, object]:
    """JSON fields of the keys that the store now uses."""
    from dragoman.ledger.checkpoint import key_id

    return {
        "keys": str(directory.path.absolute() / "keys"),
        "key": key_id(directory.checkpoints.public),
    }


def _print_keys(data: Mapping[str, object], screen: Screen) -> None:
    origin = "made just now" if data["keysMade"] else "were there"
    screen.line(f"keys            {data['keys']}, key {data['key']}  ({origin})")
    if not data["keysReplaced"]:
        screen.line("The store has no others: nothing was replaced")
        return
    screen.line("These keys replace those that the store had:")
    screen.line("  an earlier request that is repeated is refused as key_reused, or done again")
    screen.line("  other hubs of this store need a copy of this folder")
    screen.line("  what was signed before can be checked only with the old keys/ledger.pub")


COMMANDS = (CliCommand("init", init, takes_as=False),)
