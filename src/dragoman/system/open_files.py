"""How many files and connections this process may have open."""

import resource

_WANTED_LIMIT = 65_536
"""A higher limit would only slow down programs that close all inherited descriptors."""


def raise_open_file_limit() -> int:
    """Raise the soft limit as far as this process may, up to what is wanted; return the limit."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft == resource.RLIM_INFINITY:
        return _WANTED_LIMIT
    limit = _WANTED_LIMIT if hard == resource.RLIM_INFINITY else min(hard, _WANTED_LIMIT)
    if limit > soft:
        resource.setrlimit(resource.RLIMIT_NOFILE, (limit, hard))
    return max(soft, limit)
