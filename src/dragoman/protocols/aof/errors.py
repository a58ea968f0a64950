"""Our refusal codes -> the reasons that AOF/1 gives, complete.

What the core finds wrong with a field was wrong in the envelope, and who may not do a thing, by
role or by relation, is an unauthorized agent (S-AOF-4). Every other code is one of its reasons
already, or says something that it has no word for, and keeps its name.
"""

from typing import Final

from dragoman.core.errors import REFUSALS

_AOF_REASONS: Final = {
    "invalid_field": "invalid_envelope",
    "invalid_id": "invalid_envelope",
    "not_authorized": "unauthorized_agent",
}

REFUSAL_CODES: Final = {code: _AOF_REASONS.get(code, code) for code in REFUSALS}
