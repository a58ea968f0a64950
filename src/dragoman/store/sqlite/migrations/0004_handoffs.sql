-- Handoffs, one row each, so that the database itself keeps a task from being handed over twice.

CREATE TABLE handoffs (
  id                 TEXT PRIMARY KEY NOT NULL,
  thread_id          TEXT NOT NULL,
  task_id            TEXT NOT NULL,
  from_agent         TEXT NOT NULL,
  to_agent           TEXT NOT NULL,
  title              TEXT NOT NULL,
  reason             TEXT NOT NULL,
  package_json       TEXT NOT NULL,
  status             TEXT NOT NULL DEFAULT 'proposed',
  provenance_json    TEXT NOT NULL,
  verification_json  TEXT NOT NULL,
  initiated_at       TEXT NOT NULL DEFAULT (strftime('%Y-%m-%dT%H:%M:%fZ', 'now')),
  resolved_at        TEXT,
  resolution_notes   TEXT
) STRICT;

-- At most one handoff of a task is under way.
CREATE UNIQUE INDEX idx_handoffs_task_active
ON handoffs(task_id)
WHERE status IN ('proposed','validating','accepted','activated');
