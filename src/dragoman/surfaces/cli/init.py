"""`dragoman init`: a data directory, made or found as it is."""

from collections.abc import Mapping
from typing import Annotated

import typer

from dragoman.surfaces.cli.call import Answer, Call
from dragoman.surfaces.cli.place import Place
from dragoman.surfaces.cli.screen import Screen
from dragoman.surfaces.cli.store_url import (
    check_other,
    default_url,
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
            help="Let the store go on with the keys that are here, because its own are lost.",
        ),
    ] = False,
) -> Answer:
    """Make the data directory; a second time changes nothing.

    With --store the URL is remembered in dragoman.toml, which only you can read.

    All hubs of a store need the same folder keys. With --new-keys a store whose keys nobody has
    any more takes those of this directory: what was asked before is then not known when it is
    repeated, and is refused or done again.

    \b
    Examples:
      dragoman init
      dragoman init --data /srv/hub --store postgresql://hub@localhost/hub
    """
    is_new = not call.data.exists()
    asked = made_absolute(call.shared.store)
    if asked:
        check_other(call.data, asked)
    are_made = not (call.data / "keys" / "ledger.pub").exists()
    with call.writing(new_keys=new_keys) as place:
        # Only a store that could be opened is worth remembering.
        is_remembered = bool(asked) and remember(place.data, asked)
        url = asked or place.settings.store.url or default_url(place.data)
        taken = _taken(place, are_made=are_made) if new_keys else dict[str, object]()
    data = {
        "data": str(call.data.absolute()),
        "store": masked(url),
        "created": is_new,
        "remembered": is_remembered,
        **taken,
    }

    def show(screen: Screen) -> None:
        screen.line(f"data directory  {data['data']}{'' if is_new else '  (was there)'}")
        screen.line(f"store           {data['store']}")
        if taken:
            _show_keys(taken, screen)
        screen.line('Next: dragoman task create "What to do" --ready')

    return Answer(data, show)


def _taken(place: Place, *, are_made: bool) -> Mapping[str, object]:
    """Which keys the store goes on with."""
    from dragoman.ledger.checkpoint import key_id

    return {
        "keys": str(place.data.absolute() / "keys"),
        "key": key_id(place.checkpoints.public),
        "keysMade": are_made,
    }


def _show_keys(taken: Mapping[str, object], screen: Screen) -> None:
    made = "made just now" if taken["keysMade"] else "were there"
    screen.line(f"keys            {taken['keys']}, key {taken['key']}  ({made})")
    screen.line("The store goes on with these keys in the place of those that it had:")
    screen.line("  a request of before that is repeated is refused as key_reused, or done again")
    screen.line("  other hubs of this store need a copy of this folder")
    screen.line("  what was signed before can be checked only with the old keys/ledger.pub")


VERBS = (Verb("init", init, speaks=False),)
