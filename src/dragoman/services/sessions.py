"""Sessions of agents that a hub starts: their names say which hub it was, and where they began."""


def session_name(hub: str, id: str, place: str) -> str:
    """The name of a session, which says where it was begun if that is not at the hub."""
    return ".".join(filter(None, (hub, id, place)))


def place_in(session: str, hub: str) -> str:
    """Where a session of this hub was begun."""
    return session.removeprefix(f"{hub}.").partition(".")[2]
