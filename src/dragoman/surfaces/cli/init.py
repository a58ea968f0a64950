"""`dragoman init`: a data directory, made or found as it is."""

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated

import typer

from dragoman.surfaces.cli.call import Answer, Call
from dragoman.surfaces.cli.place import Place
from dragoman.surfaces.cli.screen import Screen
from dragoman.surfaces.cli.store_url import (
    check_other,
    default_url,
    is_known,
    made_absolute,
    masked,
    remember,
)
from dragoman.surfaces.cli.verb import Verb


def init(
    call: Call,
    new_keys: Annotated[
        bool,
        typer.Option(
            "--new-keys",
            help="Continue the store with the keys that are here, because its own are lost.",
        ),
    ] = False,
) -> Answer:
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
    is_new = not call.data.exists()
    asked = made_absolute(call.shared.store)
    if asked:
        check_other(call.data, asked)
    is_remembered = bool(asked) and not is_known(call.data, asked)
    are_made = not (call.data / "keys" / "ledger.pub").exists()
    if new_keys:
        _check_no_hub(call.data)
    are_replaced = new_keys and not _fit(call)
    with call.writing(new_keys=are_replaced) as place:
        # Saved only after the store could be opened.
        if is_remembered:
            remember(place.data, asked)
        url = asked or place.settings.store.url or default_url(place.data)
        taken = _taken(place) if new_keys else dict[str, object]()
    data: dict[str, object] = {
        "data": str(call.data.absolute()),
        "store": masked(url),
        "created": is_new,
        "remembered": is_remembered,
        **taken,
    }
    if taken:
        data |= {"keysMade": are_made, "keysReplaced": are_replaced}

    def show(screen: Screen) -> None:
        screen.line(f"data directory  {data['data']}{'' if is_new else '  (was there)'}")
        screen.line(f"store           {data['store']}")
        if taken:
            _show_keys(data, screen)
        next_command = call.next_command('task create "What to do" --ready')
        screen.line(f"Next: {next_command}")

    return Answer(data, show)


def _check_no_hub(data: Path) -> None:
    """Refuse while a hub runs: it would sign with its old keys and rewrite its checkpoints."""
    from dragoman.system.hub_lock import HubRunning, holder

    by = holder(data)
    if by is not None:
        raise HubRunning(
            f"a hub works on {data} (process {by.pid}) with the keys that it began with, and goes "
            "on to write its checkpoints.jsonl: stop it first; nothing was changed"
        )


def _fit(call: Call) -> bool:
    """Tell whether the store has the keys of this directory, or takes them as its first."""
    from dragoman.system.private_file import BadKey

    try:
        with call.writing():
            return True
    except BadKey:
        return False


def _taken(place: Place) -> Mapping[str, object]:
    """JSON fields of the keys that the store now uses."""
    from dragoman.ledger.checkpoint import key_id

    return {"keys": str(place.data.absolute() / "keys"), "key": key_id(place.checkpoints.public)}


def _show_keys(told: Mapping[str, object], screen: Screen) -> None:
    made = "made just now" if told["keysMade"] else "were there"
    screen.line(f"keys            {told['keys']}, key {told['key']}  ({made})")
    if not told["keysReplaced"]:
        screen.line("The store has no others: nothing was replaced")
        return
    screen.line("These keys replace those that the store had:")
    screen.line("  an earlier request that is repeated is refused as key_reused, or done again")
    screen.line("  other hubs of this store need a copy of this folder")
    screen.line("  what was signed before can be checked only with the old keys/ledger.pub")


VERBS = (Verb("init", init, speaks=False),)
