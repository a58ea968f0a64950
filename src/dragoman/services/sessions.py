"""Sessions of agents that a hub starts: their names say which hub it was, and where they began."""


def session_name(hub: str, id: str, place: str) -> str:
    """Name of a session; it includes the location if the agent does not run at the hub."""
    return ".".join(filter(None, (hub, id, place)))


def place_in(session: str, hub: str) -> str:
    """Location of a session of this hub."""
    return session.removeprefix(f"{hub}.").partition(".")[2]
