"""AOF/1 refusal reasons for every refusal code of the core.

What the core finds wrong with a field was wrong in the envelope, and a caller that may not do
something, by role or by relation, is an unauthorized agent (S-AOF-4). Every other code is one of
AOF's reasons already, or has no AOF word, and keeps its name.
"""

from typing import Final

REFUSAL_CODES: Final = {
    "invalid_field": "invalid_envelope",
    "invalid_id": "invalid_envelope",
    "not_authorized": "unauthorized_agent",
}
"""Refusal code of the core -> the code of the dialect, where they differ."""
