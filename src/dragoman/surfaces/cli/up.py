"""`dragoman up`: the hub, with everything that belongs to it."""

from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Annotated

import typer

import dragoman
from dragoman.core.moments import duration
from dragoman.surfaces.cli.call import Answer, Call, wrong_usage
from dragoman.surfaces.cli.place import Place
from dragoman.surfaces.cli.screen import CannotPrint, Part, ReaderGone, Screen
from dragoman.surfaces.cli.store_url import default_url, masked
from dragoman.surfaces.cli.verb import Verb

_AGAIN = "Ctrl-C again does not wait"


def up(
    call: Call,
    host: Annotated[
        str,
        typer.Option(
            "--host",
            metavar="ADDRESS",
            show_default=False,
            help="Where to listen; else http.host of the settings.",
        ),
    ] = "",
    port: Annotated[
        int | None,
        typer.Option(
            "--port",
            metavar="N",
            min=0,
            max=65_535,
            show_default=False,
            help="Which port; else http.port of the settings; 0: any that is free.",
        ),
    ] = None,
    config: Annotated[
        Path | None,
        typer.Option(
            "--config",
            metavar="FILE",
            show_default=False,
            help="Settings; else dragoman.toml in the data directory.",
        ),
    ] = None,
) -> None:
    """Start the hub: HTTP, streams, MCP, services, agents.

    It runs until Ctrl-C, SIGTERM or the end of its terminal. Then agents get their grace time to
    finish; whatever was acknowledged is kept. A second signal does not wait for them, nor for files
    and notices that still have to be brought up to date. While it runs, all other commands go
    through it.

    \b
    Examples:
      dragoman up
      dragoman up --port 8080
    """
    import uvloop

    from dragoman.system.log_lines import redact_log_lines

    if call.shared.now is not None:
        wrong_usage("a hub that runs has a clock that runs: leave out --now")
    place, hub = call.house.open_hub(call.data, call.shared.store, host, port, config)
    redactor = place.hub.redaction.redactor
    redact_log_lines(lambda text: redactor.text(text).text)
    said = _Said(call, place)
    try:
        uvloop.run(hub.run(said.ready, said.waiting, said.troubled))
    finally:
        hub.close(said.levelling)
        said.left()
    said.aside("the hub has stopped")


class _Said:
    """Prints what happens to a running hub.

    The hub runs and stops even if nobody reads this: a terminal may be closed, and the program
    behind a pipe ends by the same Ctrl-C.
    """

    def __init__(self, call: Call, place: Place) -> None:
        self._call = call
        self._place = place
        self._told = set[str]()

    def aside(self, *parts: Part) -> None:
        """Print a line on standard error."""
        with suppress(CannotPrint, ReaderGone):
            self._call.err.line(*parts)

    def ready(self, url: str) -> None:
        """Print the addresses: the hub runs."""
        call, settings = self._call, self._place.settings
        data = call.data.absolute()
        named = settings.store.url
        store = masked(named or default_url(data))
        add, first = map(call.next_command, ("agent add NAME", 'task create "First" --ready'))
        lines = {
            "listens": listens(url, settings.http.host),
            "data": f"{data}, with the store {store}" if named else f"{data}",
            "token": f"{data / 'token'} (yours; agents get one by `{add}`)",
            "agents": ", ".join(settings.agents) or "none; [agents.NAME] in dragoman.toml adds one",
            "next": f"{first}; Ctrl-C here stops the hub",
        }

        def show(screen: Screen) -> None:
            for name, text in lines.items():
                screen.line((f"{name:<8} ", "bold"), text)

        said = {**lines, "data": f"{data}", "store": store}
        with suppress(ReaderGone):
            call.tell(Answer({"url": url, "version": dragoman.__version__, **said}, show))
            call.out.flush()

    def waiting(self, agents: int) -> None:
        """Tell how many agents a stop waits for."""
        grace = duration(self._place.settings.hub.grace_ms)
        them = "1 agent works" if agents == 1 else f"{agents} agents work"
        self.aside(f"stopping: {them}, and may go on for {grace}; {_AGAIN}")

    def levelling(self, duties: Sequence[str], seconds: int) -> None:
        """Tell which services still have to finish."""
        self.aside(f"stopping: {', '.join(duties)} may take {seconds}s to finish; {_AGAIN}")

    def troubled(self, name: str, wrong: str) -> None:
        """Tell that a part has begun to fail, or has recovered (empty error)."""
        self._told.add(wrong)
        if wrong:
            self.aside(("trouble: ", "yellow"), f"{name}: {wrong}")
        else:
            self.aside(f"recovered: {name}")

    def left(self) -> None:
        """Print warnings that are still unprinted after the stop."""
        warnings = self._place.warnings
        warnings[:] = [words for words in warnings if words not in self._told]
        with suppress(CannotPrint, ReaderGone):
            self._call.warn(self._place)


def listens(url: str, host: str) -> str:
    """Address of a hub: `url` is for this machine, also where `host` stands for any address."""
    anywhere = "" if host and host in url else ", and at every address of this machine"
    return f"{url}{anywhere} (a page about the API: {url}/docs)"


VERBS = (Verb("up", up, speaks=False, sets_clock=False),)
