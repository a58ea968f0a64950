"""Sessions of agents that a hub starts: their names say which hub it was, and where they began."""


def session_name(hub_name: str, id: str, location: str) -> str:
    """Name of a session; it includes the location if the agent does not run at the hub."""
    return ".".join(filter(None, (hub_name, id, location)))


def session_location(session: str, hub_name: str) -> str:
    """Location of a session of this hub."""
    return session.removeprefix(f"{hub_name}.").partition(".")[2]
