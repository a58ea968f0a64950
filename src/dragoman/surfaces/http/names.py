"""The forms of names as the description of the API publishes them; the core is who checks them.

Only published: what does not fit is refused by the core, in words that say what would.
"""

from typing import Annotated

from msgspec import Meta

from dragoman.core.ids import (
    AGENT_FORM,
    ALIAS_FORM,
    SESSION_FORM,
    TASK_NAME_FORM,
    WORD_FORM,
)

AGENT = f"^{AGENT_FORM}$"
TASK = f"^{TASK_NAME_FORM}$"
HANDOFF = f"^{WORD_FORM}$"


def _form(pattern: str, most: int, words: str = "") -> Meta:
    return Meta(
        max_length=most, description=words or None, extra_json_schema={"pattern": f"^{pattern}$"}
    )


TaskName = Annotated[str, _form(TASK_NAME_FORM, 300)]
NoTaskName = Annotated[str, _form(f"(?:{TASK_NAME_FORM})?", 300)]
"""A name, or none."""
NewId = Annotated[str, _form(WORD_FORM, 128)]
Alias = Annotated[str, _form(ALIAS_FORM, 300)]
AgentName = Annotated[str, _form(f"(?:{AGENT_FORM})?", 257)]
Session = Annotated[str, _form(f"(?:{SESSION_FORM})?", 256, "Name of the agent's session.")]
WantedTask = Annotated[str, _form(TASK_NAME_FORM, 300, "Only of this task, by any of its names.")]
WantedAgent = Annotated[str, _form(AGENT_FORM, 257)]
WantedWord = Annotated[str, _form(WORD_FORM, 128)]
"""A filter is a name, or is left out."""
HistoryOf = Annotated[
    str,
    _form(
        TASK_NAME_FORM,
        300,
        "Only the history of this task itself, by any of its names. Refusals are in the stream of "
        "their caller; mail, handoffs and intents about the task have streams of their own.",
    ),
]
