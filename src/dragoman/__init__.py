"""dragoman: a durable hub where software agents hand work to one another.

One task model, one tamper-evident ledger, and many dialects on top of them.

The map, from the doors down; each room may import only what stands below it:

    __main__   python -m dragoman
    bootstrap  the only place where all parts meet
    testing    a hub under a hand-moved clock, for people who test their agents
    surfaces   the doors: the command line
    services   what happens when time passes, one duty per file
    store      where it is kept: memory, SQLite, PostgreSQL
    system     the outside, handed in: clock, ids, files
    config     settings: read once, passed down as values
    engine     what happens to a command
    ledger     how it is written down
    core       what is decided; pure
    text       pure text tools
"""


def __getattr__(name: str) -> str:
    # Looked up on demand: importlib.metadata takes longer than starting most commands.
    if name != "__version__":
        raise AttributeError(f"module 'dragoman' has no attribute {name!r}")
    from importlib.metadata import version

    return version("dragoman")
