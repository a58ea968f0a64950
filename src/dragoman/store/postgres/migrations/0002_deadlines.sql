-- When somebody has to be told that a delegated task is late.

ALTER TABLE streams ADD COLUMN deadline bigint;

CREATE INDEX streams_deadline ON streams (deadline, number) WHERE deadline IS NOT NULL;

DROP VIEW stream_rows;

CREATE VIEW stream_rows AS
SELECT s.number, s.name, s.version, s.hash, s.fold, s.state,
       s.status, s.queue, s.rank, s.since, s.due, s.owner, s.deadline,
       l.holder, l.fence, l.ttl_ms, l.beat_at, l.expires_at, l.session, l.beats
FROM streams s LEFT JOIN leases l ON l.stream = s.number;
