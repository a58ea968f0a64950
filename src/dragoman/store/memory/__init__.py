"""The store in memory: the oracle that the others are compared with, and a hub for tests."""

from dragoman.store.memory.store import MemoryStore

__all__ = [
    "MemoryStore",
]
