"""Who is told that a task has moved, and how: a signed webhook, a command."""
