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

_RENAME_NOREPLACE: Final = 1
_RENAME_EXCHANGE: Final = 2
_UNSUPPORTED: Final = (errno.ENOSYS, errno.EINVAL, errno.EOPNOTSUPP)

_RenameCall = Callable[[int, bytes, int, bytes, int], int]


def try_rename_noreplace(old: str, new: str, source: int, target: int) -> bool:
    """Rename within open folders; FileExistsError when the new name is taken.

    False: this system cannot do it in one step, and nothing was done.
    """
    return _try_rename(old, new, source, target, _RENAME_NOREPLACE)


def try_rename_exchange(old: str, new: str, source: int, target: int) -> bool:
    """Exchange two existing names; False as above."""
    return _try_rename(old, new, source, target, _RENAME_EXCHANGE)


def _try_rename(old: str, new: str, source: int, target: int, flags: int) -> bool:
    call = _renameat2()
    if call is None:
        return False
    error_number = call(source, os.fsencode(old), target, os.fsencode(new), flags)
    if error_number in _UNSUPPORTED:
        return False
    if error_number:
        raise OSError(error_number, os.strerror(error_number), old, None, new)
    return True


@cache
def _renameat2() -> _RenameCall | None:
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
