-- Handoffs, one row each, so that the database itself keeps a task from being handed over twice.

CREATE TABLE handoffs (
  id                 text COLLATE "C" PRIMARY KEY,
  thread_id          text NOT NULL,
  task_id            text NOT NULL,
  from_agent         text NOT NULL,
  to_agent           text NOT NULL,
  title              text NOT NULL,
  reason             text NOT NULL,
  package_json       text NOT NULL,
  status             text NOT NULL DEFAULT 'proposed',
  provenance_json    text NOT NULL,
  verification_json  text NOT NULL,
  initiated_at       text NOT NULL
    DEFAULT to_char(now() AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"'),
  resolved_at        text,
  resolution_notes   text
);

-- At most one handoff of a task is under way.
CREATE UNIQUE INDEX idx_handoffs_task_active
ON handoffs(task_id)
WHERE status IN ('proposed','validating','accepted','activated');
