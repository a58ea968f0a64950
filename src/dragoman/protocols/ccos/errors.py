"""Refusal codes of CCOS 019: it names only `anomaly`, so all codes keep their names."""

from typing import Final

from dragoman.core.errors import REFUSALS

REFUSAL_CODES: Final = {code: code for code in REFUSALS}
