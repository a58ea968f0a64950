"""How many files and connections this process may have open."""

import resource

_ENOUGH = 65_536
"""A higher limit would only slow down programs that close all inherited descriptors."""


def raise_limit() -> int:
    """Raise the soft limit as far as this process may, up to what is wanted; return the limit."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft == resource.RLIM_INFINITY:
        return _ENOUGH
    most = _ENOUGH if hard == resource.RLIM_INFINITY else min(hard, _ENOUGH)
    if most > soft:
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, hard))
    return max(soft, most)
