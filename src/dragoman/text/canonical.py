"""Canonical JSON (RFC 8785), where a hash must be recomputed from parsed JSON."""

from collections.abc import Mapping
from hashlib import sha256
from typing import Any, cast

import rfc8785


def canonical_sha256(value: Mapping[str, Any]) -> str:
    """The SHA-256 of a JSON object, in lower-case hexadecimal; ValueError if it has none."""
    try:
        return sha256(rfc8785.dumps(cast(Any, value))).hexdigest()
    except (rfc8785.CanonicalizationError, RecursionError) as error:
        raise ValueError(str(error)) from error
