"""Our refusal codes -> those of CCOS 019, which names only the anomaly: they keep their names."""

from typing import Final

from dragoman.core.errors import REFUSALS

REFUSAL_CODES: Final = {code: code for code in REFUSALS}
