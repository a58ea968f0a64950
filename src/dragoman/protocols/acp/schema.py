"""The JSON Schema (2020-12) of a handoff package, made from the shapes that check it."""

from typing import Any, Final, cast

import msgspec

from dragoman.protocols.acp.wire import SCHEMA_VERSION, Package

JSON_SCHEMA_DRAFT: Final = "https://json-schema.org/draft/2020-12/schema"
PACKAGE_SCHEMA_ID: Final = f"urn:dragoman:acp:package:{SCHEMA_VERSION}"


def package_schema() -> dict[str, Any]:
    """JSON Schema (2020-12) of a handoff package, made from the shapes that validate it."""
    (root,), parts = msgspec.json.schema_components([Package])
    defined = cast(dict[str, dict[str, Any]], parts)
    own = defined.pop(str(root["$ref"]).rpartition("/")[2])
    return {
        "$schema": JSON_SCHEMA_DRAFT,
        "$id": PACKAGE_SCHEMA_ID,
        **own,
        "title": "ACPHandoffPackage",
        "$defs": defined,
    }
