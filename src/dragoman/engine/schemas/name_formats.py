"""Formats of names in requests: tasks, aliases, agents, sessions.

They are only published, in OpenAPI and in the schemas of tools; the core checks names, and its
refusals say what would be valid.
"""

from typing import Annotated

from msgspec import Meta

from dragoman.core.ids import (
    AGENT_PATTERN,
    ALIAS_PATTERN,
    ID_PATTERN,
    SESSION_PATTERN,
    TASK_NAME_PATTERN,
)


def pattern_meta(pattern: str, max_length: int, description: str = "") -> Meta:
    """Describe a text that has to match a pattern as a whole."""
    return Meta(
        max_length=max_length,
        description=description or None,
        extra_json_schema={"pattern": f"^{pattern}$"},
    )


TaskName = Annotated[str, pattern_meta(TASK_NAME_PATTERN, 300)]

OptionalTaskName = Annotated[str, pattern_meta(f"(?:{TASK_NAME_PATTERN})?", 300)]
"""A name, or none."""

NewId = Annotated[str, pattern_meta(ID_PATTERN, 128)]

Alias = Annotated[str, pattern_meta(ALIAS_PATTERN, 300)]

AgentName = Annotated[str, pattern_meta(f"(?:{AGENT_PATTERN})?", 257)]
"""A name, or none."""

NewAssignee = Annotated[str, pattern_meta(AGENT_PATTERN, 257)]

Session = Annotated[
    str, pattern_meta(f"(?:{SESSION_PATTERN})?", 256, "Name of the agent's session.")
]
