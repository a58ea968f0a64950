"""How many files and connections this process may have open."""

import resource

_ENOUGH = 65_536
"""More would only make programs slow that close all they might have inherited."""


def raise_limit() -> int:
    """Raise the soft limit as far as this process may, if that is not enough yet; what it is."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft == resource.RLIM_INFINITY:
        return _ENOUGH
    most = _ENOUGH if hard == resource.RLIM_INFINITY else min(hard, _ENOUGH)
    if most > soft:
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, hard))
    return max(soft, most)
