"""Error messages without errno."""

import os
from pathlib import Path

import pytest

from dragoman.text.error_messages import describe_exception
from tests.requirements import proves

pytestmark = proves("CLI-PROMISES")


def test_file_error_names_the_file_without_errno(tmp_path: Path) -> None:
    with pytest.raises(OSError, match="Errno") as raised:
        (tmp_path / "gone").read_bytes()

    assert describe_exception(raised.value) == f"{tmp_path / 'gone'}: No such file or directory"


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (OSError(28, os.strerror(28)), "No space left on device"),
        (OSError("the address is private"), "the address is private"),
        (ValueError("no"), "no"),
    ],
)
def test_error_without_a_file_is_shown_unchanged(error: Exception, words: str) -> None:
    assert describe_exception(error) == words
