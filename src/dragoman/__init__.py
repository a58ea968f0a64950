"""A durable hub where software agents hand work to one another.

One task model, one tamper-evident ledger, and several protocol dialects on top of them.

The layers, from the top down; each may import only what stands below it:

    __main__   python -m dragoman
    bootstrap  the composition root: wires all parts together
    testing    a hub with a manual clock, for people who test their agents
    surfaces   command line, HTTP and MCP; beside them client, the SDK for agents
    services   background services, one per file
    protocols  the dialects; files: projection of the ledger to a data directory
    agents     runners that start agents; notify: webhooks and commands
    store      persistence: memory, SQLite, PostgreSQL
    system     adapters to the operating system: clock, ids, files, network
    config     settings, read once and passed down as values
    engine     request handling: routing, group commit, queries, verification
    ledger     entries, hash chain, Merkle tree, checkpoints
    core       decisions, pure
    text       pure text tools
"""


def __getattr__(name: str) -> str:
    # Looked up on demand: importlib.metadata takes longer than starting most commands.
    if name != "__version__":
        raise AttributeError(f"module 'dragoman' has no attribute {name!r}")
    from importlib.metadata import version

    return version("dragoman")
