"""Refusal codes of ACP.

What is wrong in a package or in arguments is `schema_invalid`, whoever finds it. A caller that may
not do something, by role or by relation, gets `not_authorized`. What does not exist is
`not_found`. Every other code is one of the protocol's own, or says what the protocol has no word
for and keeps its name.
"""

from typing import Final

REFUSAL_CODES: Final = {
    "invalid_field": "schema_invalid",
    "invalid_json": "schema_invalid",
    "unauthorized_agent": "not_authorized",
    "identity_mismatch": "not_authorized",
    "handoff_not_found": "not_found",
    "work_item_not_found": "not_found",
    "mail_not_found": "not_found",
}
"""Refusal code of the core -> the code of the dialect, where they differ."""
