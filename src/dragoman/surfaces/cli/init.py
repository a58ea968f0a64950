"""`dragoman init`: a data directory, made or found as it is."""

from typing import Annotated

import typer

from dragoman.surfaces.cli.call import Answer, Call
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
    with call.writing(new_keys=new_keys) as place:
        # Only a store that could be opened is worth remembering.
        is_remembered = bool(asked) and remember(place.data, asked)
        url = asked or place.settings.store.url or default_url(place.data)
    data = {
        "data": str(call.data.absolute()),
        "store": masked(url),
        "created": is_new,
        "remembered": is_remembered,
    }

    def show(screen: Screen) -> None:
        screen.line(f"data directory  {data['data']}{'' if is_new else '  (was there)'}")
        screen.line(f"store           {data['store']}")
        screen.line('Next: dragoman task create "What to do" --ready')

    return Answer(data, show)


VERBS = (Verb("init", init, speaks=False),)
