"""`dragoman up`: the hub, with everything that belongs to it."""

from contextlib import AbstractContextManager, suppress
from pathlib import Path
from typing import Annotated

import typer

import dragoman
from dragoman.core.moments import duration
from dragoman.surfaces.cli.call import Answer, Call, wrong_usage
from dragoman.surfaces.cli.screen import CannotPrint, ReaderGone, Screen
from dragoman.surfaces.cli.store_url import default_url, masked
from dragoman.surfaces.cli.verb import Verb


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
    """Start the hub: HTTP, streams, duties, agents.

    It runs until Ctrl-C, SIGTERM or the end of its terminal; then agents get their grace time,
    and whatever was acknowledged is there. A second signal does not wait for them. While it runs,
    all other commands go through it.

    \b
    Examples:
      dragoman up
      dragoman up --port 8080
    """
    import uvloop

    from dragoman.system.log_lines import redact_log_lines

    if call.shared.now is not None:
        wrong_usage("a hub that runs has a clock that runs: leave --now away")
    place, hub = call.house.open_hub(call.data, call.shared.store, host, port, config)
    redactor = place.hub.redaction.redactor
    redact_log_lines(lambda text: redactor.text(text).text)
    agents = ", ".join(place.settings.agents) or "none; [agents.NAME] in dragoman.toml adds one"

    def ready(url: str) -> None:
        data = call.data.absolute()
        named = call.shared.store or place.settings.store.url
        store = masked(named or default_url(data))
        add, first = map(call.next_command, ("agent add NAME", 'task create "First" --ready'))
        lines = {
            "listens": listens(url, place.settings.http.host),
            "data": f"{data}, with the store {store}" if named else f"{data}",
            "token": f"{data / 'token'} (yours; agents get one by `{add}`)",
            "agents": agents,
            "next": f"{first}; Ctrl-C here stops the hub",
        }

        def show(screen: Screen) -> None:
            for name, text in lines.items():
                screen.line((f"{name:<8} ", "bold"), text)

        said = {**lines, "data": f"{data}", "store": store}
        with suppress(ReaderGone):
            call.tell(Answer({"url": url, "version": dragoman.__version__, **said}, show))
            call.out.flush()

    def waiting(agents: int) -> None:
        grace = duration(place.settings.hub.grace_ms)
        them = "1 agent works" if agents == 1 else f"{agents} agents work"
        with _whoever_looks():
            call.err.line(
                f"stopping: {them}, and may go on for {grace}; Ctrl-C again does not wait"
            )

    told = set[str]()

    def troubled(name: str, wrong: str) -> None:
        told.add(wrong)
        with _whoever_looks():
            if wrong:
                call.err.line(("trouble: ", "yellow"), f"{name}: {wrong}")
            else:
                call.err.line(f"{name} is well again")

    try:
        uvloop.run(hub.run(ready, waiting, troubled))
    finally:
        hub.close()
        place.warnings[:] = [words for words in place.warnings if words not in told]
        with _whoever_looks():
            call.warn(place)
    with _whoever_looks():
        call.err.line("the hub has stopped")


def _whoever_looks() -> AbstractContextManager[None]:
    """The hub goes on, and comes to its end, whoever looks at it: a terminal may be closed, and
    the program behind a pipe ends by the same Ctrl-C."""
    return suppress(CannotPrint, ReaderGone)


def listens(url: str, host: str) -> str:
    """Where a hub listens: `url` is for this machine, also where `host` stands for any address."""
    anywhere = "" if host and host in url else ", and at every address of this machine"
    return f"{url}{anywhere} (a page about the API: {url}/docs)"


VERBS = (Verb("up", up, speaks=False, sets_clock=False),)
