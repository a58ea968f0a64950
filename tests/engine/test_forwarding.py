"""Wire types of commands that the hub runs for a caller."""

import pytest

from dragoman.engine.forwarding import ForwardedOutput, WantedInput
from tests.requirements import proves

pytestmark = proves("CLI-START")


@pytest.mark.parametrize(
    ("part", "is_last"),
    [
        (ForwardedOutput(output=((1, "one line"),)), False),
        (ForwardedOutput(code=0), True),
        (ForwardedOutput(wanted=WantedInput("-", 10)), True),
        (ForwardedOutput(runs_here=False), True),
    ],
)
def test_output_ends_with_its_exit_code_or_with_what_else_is_needed(
    part: ForwardedOutput, is_last: bool
) -> None:
    assert part.is_last is is_last
