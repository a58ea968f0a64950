"""Our refusal codes -> those of Agent Mail, which has none of its own: they keep their names."""

from typing import Final

from dragoman.core.errors import REFUSALS

REFUSAL_CODES: Final = {code: code for code in REFUSALS}
