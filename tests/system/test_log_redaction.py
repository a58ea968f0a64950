"""Redaction of the hub's log, including what an exception quotes."""

import logging

import pytest

from dragoman.system.log_redaction import redact_log
from tests.requirements import proves


@proves("REDACT-HUB")
def test_log_line_and_exception_are_redacted(capsys: pytest.CaptureFixture[str]) -> None:
    last = logging.lastResort
    assert last is not None
    before = last.formatter
    redact_log(lambda text: text.replace("hunter2", "[…]"))
    try:
        error = ValueError("the password was hunter2")
        record = logging.LogRecord(
            "dragoman.http",
            logging.ERROR,
            "",
            0,
            "%s failed",
            ("hunter2",),
            (ValueError, error, None),
        )
        last.handle(record)
    finally:
        last.setFormatter(before)
    assert capsys.readouterr().err == "[…] failed\nValueError: the password was […]\n"
