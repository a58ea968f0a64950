"""The forms of names as the description of the API publishes them; the core is who checks them.

Only published: what does not fit is refused by the core, in words that say what would.
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

AGENT_PATH_PATTERN = f"^{AGENT_PATTERN}$"
TASK_PATH_PATTERN = f"^{TASK_NAME_PATTERN}$"
HANDOFF_PATH_PATTERN = f"^{ID_PATTERN}$"


def _pattern_meta(pattern: str, max_length: int, description: str = "") -> Meta:
    return Meta(
        max_length=max_length,
        description=description or None,
        extra_json_schema={"pattern": f"^{pattern}$"},
    )


TaskName = Annotated[str, _pattern_meta(TASK_NAME_PATTERN, 300)]
OptionalTaskName = Annotated[str, _pattern_meta(f"(?:{TASK_NAME_PATTERN})?", 300)]
"""A name, or none."""
NewId = Annotated[str, _pattern_meta(ID_PATTERN, 128)]
Alias = Annotated[str, _pattern_meta(ALIAS_PATTERN, 300)]
AgentName = Annotated[str, _pattern_meta(f"(?:{AGENT_PATTERN})?", 257)]
Session = Annotated[
    str, _pattern_meta(f"(?:{SESSION_PATTERN})?", 256, "Name of the agent's session.")
]
TaskFilter = Annotated[
    str, _pattern_meta(TASK_NAME_PATTERN, 300, "Only of this task, by any of its names.")
]
AgentFilter = Annotated[str, _pattern_meta(AGENT_PATTERN, 257)]
WordFilter = Annotated[str, _pattern_meta(ID_PATTERN, 128)]
"""A filter is a name, or is left out."""
TaskHistoryFilter = Annotated[
    str,
    _pattern_meta(
        TASK_NAME_PATTERN,
        300,
        "Only the history of this task itself, by any of its names. Refusals are in the stream of "
        "their caller; mail, handoffs and intents about the task have streams of their own.",
    ),
]
