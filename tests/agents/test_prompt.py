"""What an agent is told: its task, what is expected, and a report that would be taken."""

import re

from msgspec.structs import replace

from dragoman.agents.prompt import prompt
from dragoman.bootstrap import dialects
from dragoman.core.task import Delegation
from dragoman.engine.operation import lint_text
from tests.core.world import NOW, task
from tests.requirements import proves

ASKED = Delegation(
    parent="P",
    from_agent="ben",
    to_agent="ada",
    due_by=NOW,
    acceptance_criteria=("All tests pass",),
    constraints=("No new dependencies",),
)


@proves("RUN-PROMPT")
def test_it_has_the_task_and_what_was_agreed_on() -> None:
    told = prompt(replace(task(), title="Add users", body="With tests.", delegation=ASKED), "ada")
    assert told.startswith("# Add users\n")
    assert "With tests." in told
    assert "## Acceptance criteria\n\n- All tests pass\n" in told
    assert "## Constraints\n\n- No new dependencies\n" in told
    assert "Expected outputs" not in told
    assert "## Acceptance" not in prompt(task(), "ada")


@proves("RUN-PROMPT", "RUN-MESSAGES")
def test_its_example_is_a_valid_report_that_is_not_sent_by_being_shown() -> None:
    told = prompt(task(), "ada")
    assert not re.search(r"^AOF/1 ", told, re.MULTILINE)
    (example,) = re.findall(r"^    AOF/1 (.*)$", told, re.MULTILINE)
    (aof,) = dialects()
    linted = lint_text(aof.lint, example.encode(), "", strict=True)
    assert (linted.ok, linted.type) == (True, "completion.report"), linted.issues
    assert f'"taskId":"{task().aof_id}","fromAgent":"ada"' in example
