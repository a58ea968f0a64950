"""Where the hub of a data directory can be called, if one runs on this machine."""

from pathlib import Path

from msgspec import Struct

from dragoman.system.hub_lock import HubRunning, Works, holder
from dragoman.system.private_file import BadKey
from dragoman.system.token_file import NAME as TOKEN
from dragoman.system.token_file import load_token


class HubAddress(Struct, frozen=True):
    """URL of a running hub, the token for it, and the configuration it runs with."""

    url: str
    token: str
    works: Works = Works()


def clock_runs(running: HubAddress) -> HubRunning:
    """Error for `--now` while a hub runs."""
    return HubRunning(
        f"a hub runs at {running.url}, and its clock decides: leave out --now, or stop it"
    )


def find_hub(data: Path) -> HubAddress | None:
    """Address of the hub that runs for this data directory; None when there is none."""
    running = holder(data)
    if running is None or not running.url:
        return None
    try:
        token = load_token(data).decode()
    except FileNotFoundError:
        raise BadKey(
            f"The file {data / TOKEN} is gone, and a hub runs at {running.url} that is called with "
            "the token in it. Put it back, or start the hub again, which makes a new one."
        ) from None
    return HubAddress(running.url, token, running.works)
