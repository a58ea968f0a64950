"""Adapters to the operating system: clock, ids, keys, files, locks, processes, git, HTTP."""
