"""Where the hub of a data directory can be called, if one runs on this machine."""

from pathlib import Path

from msgspec import Struct

from dragoman.system.hub_lock import HubConfig, HubRunning, find_lock_holder
from dragoman.system.private_file import BadKey
from dragoman.system.token_file import CREDENTIAL_FILE as TOKEN
from dragoman.system.token_file import load_token


class HubAddress(Struct, frozen=True):
    """URL of a running hub, the token for it, and the configuration it runs with."""

    url: str
    token: str
    config: HubConfig = HubConfig()


def clock_override_error(address: HubAddress) -> HubRunning:
    """Error for `--now` while a hub runs."""
    return HubRunning(
        f"a hub runs at {address.url}, and its clock decides: leave out --now, or stop it"
    )


def find_hub(data: Path) -> HubAddress | None:
    """Address of the hub that runs for this data directory; None when there is none."""
    lock_holder = find_lock_holder(data)
    if lock_holder is None or not lock_holder.url:
        return None
    try:
        token = load_token(data).decode()
    except FileNotFoundError:
        raise BadKey(
            f"The file {data / TOKEN} is gone, and a hub runs at {lock_holder.url} that is "
            "called with "
            "the token in it. Put it back, or start the hub again, which makes a new one."
        ) from None
    return HubAddress(lock_holder.url, token, lock_holder.works)
