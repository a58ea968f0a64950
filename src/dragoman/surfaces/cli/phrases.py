"""Pieces of sentences that several tables of words use."""


def because(reason: str) -> str:
    """A reason in brackets, if there is one."""
    return f" ({reason})" if reason else ""
