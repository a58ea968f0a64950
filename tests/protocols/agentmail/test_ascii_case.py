"""ASCII case: only the letters A to Z change."""

import pytest

from dragoman.protocols.agentmail.grammar import ascii_lower, ascii_upper
from tests.requirements import proves

pytestmark = proves("MAIL-FIELDS")


@pytest.mark.parametrize(
    ("text", "upper_case", "lower_case"),
    [
        ("Stuck_1", "STUCK_1", "stuck_1"),
        ("Gro\u00df", "GRO\u00df", "gro\u00df"),
        ("\u017ftuc\u212a", "\u017fTUC\u212a", "\u017ftuc\u212a"),
        ("t\u0131m\u0130", "T\u0131M\u0130", "t\u0131m\u0130"),
        ("\ufb06 \ud800", "\ufb06 \ud800", "\ufb06 \ud800"),
    ],
)
def test_only_ascii_letters_change_case(text: str, upper_case: str, lower_case: str) -> None:
    assert (ascii_upper(text), ascii_lower(text)) == (upper_case, lower_case)
