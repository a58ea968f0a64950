"""Regular expressions of `re` that are compiled at their first use: a command uses few of them."""

import re
from typing import Any, AnyStr, cast


class _LazyRegex:
    """Becomes its compiled expression, attribute by attribute."""

    def __init__(self, pattern: object, flags: int) -> None:
        self._arguments: Any = (pattern, flags)

    def __getattr__(self, name: str) -> Any:
        value = getattr(re.compile(*self._arguments), name)
        setattr(self, name, value)  # the next time it is found at once
        return value


def lazy_regex(pattern: AnyStr, flags: int = 0) -> re.Pattern[AnyStr]:
    """Make a regular expression that is compiled when one of its methods is first called."""
    return cast(re.Pattern[AnyStr], _LazyRegex(pattern, flags))
