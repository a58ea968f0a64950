"""`dragoman up`: the hub with HTTP, streams, MCP, background services and agents."""

from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Annotated

import dragoman
from dragoman.config import describe_separation
from dragoman.config.store_url import default_url
from dragoman.core.errors import DragomanError
from dragoman.core.timestamps import format_duration
from dragoman.engine.schemas.settings import ReloadedSettings
from dragoman.surfaces.cli.command import CliCommand, option
from dragoman.surfaces.cli.commands.reload import describe_reload
from dragoman.surfaces.cli.context import CommandContext, CommandResult, raise_usage_error
from dragoman.surfaces.cli.data_directory import DataDirectory, mask_password
from dragoman.surfaces.cli.render import OutputClosed, OutputError, Screen, StyledText

_SECOND_SIGNAL_HINT = "Ctrl-C again does not wait"


def up(
    context: CommandContext,
    host: Annotated[
        str, option("--host", "ADDRESS", "Where to listen; else http.host of the settings.")
    ] = "",
    port: Annotated[
        int | None,
        option(
            "--port",
            "N",
            "Which port; else http.port of the settings; 0: any that is free.",
            min=0,
            max=65_535,
        ),
    ] = None,
    config: Annotated[
        Path | None,
        option("--config", "FILE", "Settings; else dragoman.toml in the data directory."),
    ] = None,
) -> None:
    """Start the hub: HTTP, streams, MCP, services, agents.

    It runs until Ctrl-C, SIGTERM or the end of its terminal; any other SIGHUP reloads the agents of
    its settings, as `dragoman reload` does. Then agents get their grace time to
    finish; whatever was acknowledged is kept. A second signal does not wait for them, nor for files
    and notifications that still have to be brought up to date. While it runs, all other commands go
    through it.

    It prints a line when an attempt begins or ends, an agent asks or is paused, and whenever
    somebody is needed, with the command that helps; `quiet = true` in [hub] of the settings, or
    --json, leaves these lines out.

    \b
    Examples:
      dragoman up
      dragoman up --port 8080
    """
    import uvloop

    from dragoman.surfaces.cli.activity_log import INTERVAL_S, ActivityLog
    from dragoman.system.log_redaction import redact_log

    if context.shared.now is not None:
        raise_usage_error("a hub that runs has a clock that runs: leave out --now")
    directory, hub = context.wiring.build_hub(
        context.data, context.shared.store, host, port, config
    )
    redactor = directory.hub.redaction.redactor
    redact_log(lambda text: redactor.text(text).text)
    status = _StatusPrinter(context, directory)
    # With --json, standard output is for programs.
    if not (directory.settings.hub.quiet or context.shared.json):
        hub.add_service(ActivityLog(directory.hub.store, status.print_activity), INTERVAL_S)
    try:
        uvloop.run(
            hub.run(
                status.on_ready,
                status.on_waiting_for_agents,
                status.on_trouble,
                status.on_reload,
            )
        )
    finally:
        hub.close(status.on_slow_services)
        status.print_remaining_warnings()
    status.print_note("the hub has stopped")


class _StatusPrinter:
    """Prints what happens to a running hub.

    The hub runs and stops even if nobody reads this: a terminal may be closed, and the program
    behind a pipe ends by the same Ctrl-C.
    """

    def __init__(self, context: CommandContext, directory: DataDirectory) -> None:
        self._context = context
        self._directory = directory
        self._reported = set[str]()

    def print_note(self, *parts: StyledText) -> None:
        """Print a line on standard error."""
        with suppress(OutputError, OutputClosed):
            self._context.err.line(*parts)

    def print_activity(self, line: str) -> None:
        """Print a line about a task or an agent."""
        with suppress(OutputError, OutputClosed):
            self._context.out.line(line)
            self._context.out.flush()

    def on_ready(self, url: str, sign_in_url: str) -> None:
        """Print the addresses: the hub runs."""
        context, settings = self._context, self._directory.settings
        data = context.data.absolute()
        named = settings.store.url
        store = mask_password(named or default_url(data))
        add, first = map(context.next_command, ("agent add NAME", 'task create "First" --ready'))
        lines = {
            "listens": describe_address(url, settings.http.host),
            "open": f"{sign_in_url} (once, for a minute; then `{context.next_command('open')}`)",
            "data": f"{data}, with the store {store}" if named else f"{data}",
            "token": f"{data / 'token'} (yours; agents get one by `{add}`)",
            "agents": ", ".join(settings.agents) or "none; [agents.NAME] in dragoman.toml adds one",
            "apart": describe_separation(settings.agents),
            "next": f"{first}; Ctrl-C here stops the hub",
        }

        def show(screen: Screen) -> None:
            for name, text in lines.items():
                screen.line((f"{name:<8} ", "bold"), text)

        data_fields = {**lines, "data": f"{data}", "store": store}
        with suppress(OutputClosed):
            context.print_result(
                CommandResult({"url": url, "version": dragoman.__version__, **data_fields}, show)
            )
            context.out.flush()
        for text in tuple(self._directory.warnings):
            self._reported.add(text)
            self.print_note(("warning: ", "yellow"), text)

    def on_waiting_for_agents(self, agents: int) -> None:
        """Tell how many agents a stop waits for."""
        grace = format_duration(self._directory.settings.hub.drain_ms)
        agents_text = "1 agent works" if agents == 1 else f"{agents} agents work"
        self.print_note(
            f"stopping: {agents_text}, and may go on for {grace}; {_SECOND_SIGNAL_HINT}"
        )

    def on_slow_services(self, services: Sequence[str], seconds: int) -> None:
        """Tell which services still have to finish."""
        self.print_note(
            f"stopping: {', '.join(services)} may take {seconds}s to finish; {_SECOND_SIGNAL_HINT}"
        )

    def on_trouble(self, name: str, trouble: str) -> None:
        """Tell that a part has begun to fail, or has recovered (empty error)."""
        self._reported.add(trouble)
        if trouble:
            self.print_note(("trouble: ", "yellow"), f"{name}: {trouble}")
        else:
            self.print_note(f"recovered: {name}")

    def on_reload(self, outcome: ReloadedSettings | DragomanError) -> None:
        """Tell what a signal to reload the settings has changed, or why it has not."""
        if isinstance(outcome, DragomanError):
            self.print_note(
                ("warning: ", "yellow"),
                f"the settings were not reloaded, the hub goes on as it was: {outcome.detail}",
            )
        else:
            for line in describe_reload(outcome):
                self.print_note(line)

    def print_remaining_warnings(self) -> None:
        """Print warnings that are still unprinted after the stop."""
        warnings = self._directory.warnings
        warnings[:] = [words for words in warnings if words not in self._reported]
        with suppress(OutputError, OutputClosed):
            self._context.print_warnings(self._directory)


def describe_address(url: str, host: str) -> str:
    """Address of a hub: `url` is for this machine, also where `host` stands for any address."""
    anywhere = "" if host and host in url else ", and at every address of this machine"
    return f"{url}{anywhere} (a page about the API: {url}/docs)"


COMMANDS = (CliCommand("up", up, takes_as=False, takes_now=False),)
