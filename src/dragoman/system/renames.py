"""Renames that lose nothing: to a free name only, or two names trading what they stand for.

Linux does both in one step (renameat2). Elsewhere, and on file systems that know neither, the
caller falls back on a look and a plain rename.
"""

import ctypes
import errno
import os
from collections.abc import Callable
from functools import cache
from typing import Final

_NOREPLACE: Final = 1
_EXCHANGE: Final = 2
_UNKNOWN_HERE: Final = (errno.ENOSYS, errno.EINVAL, errno.EOPNOTSUPP)

_Call = Callable[[int, bytes, int, bytes, int], int]


def rename_to_free(old: str, new: str, source: int, target: int) -> bool:
    """Rename within open folders; FileExistsError when the new name is taken.

    False: this system cannot do it in one step, and nothing was done.
    """
    return _rename(old, new, source, target, _NOREPLACE)


def exchange(old: str, new: str, source: int, target: int) -> bool:
    """Exchange two existing names; False as above."""
    return _rename(old, new, source, target, _EXCHANGE)


def _rename(old: str, new: str, source: int, target: int, how: int) -> bool:
    call = _renameat2()
    if call is None:
        return False
    failed = call(source, os.fsencode(old), target, os.fsencode(new), how)
    if failed in _UNKNOWN_HERE:
        return False
    if failed:
        raise OSError(failed, os.strerror(failed), old, None, new)
    return True


@cache
def _renameat2() -> _Call | None:
    """The system call, which returns an error number (0 for success); None without it."""
    library = ctypes.CDLL(None, use_errno=True)
    if not hasattr(library, "renameat2"):
        return None
    renameat2 = library.renameat2
    renameat2.argtypes = (
        ctypes.c_int,
        ctypes.c_char_p,
        ctypes.c_int,
        ctypes.c_char_p,
        ctypes.c_uint,
    )

    def call(source: int, old: bytes, target: int, new: bytes, how: int) -> int:
        return ctypes.get_errno() if renameat2(source, old, target, new, how) else 0

    return call
