-- Letters about a bead that stand in another thread are on the list of the bead.
INSERT INTO lists (list, position, stream)
SELECT 'bead:' || bead, position, stream
FROM (
  SELECT substr(bead, instr(bead, ':') + 1) AS bead, thread, position, stream
  FROM (
    SELECT CAST(s.state AS TEXT) ->> '$.bead' AS bead, CAST(s.state AS TEXT) ->> '$.thread' AS thread,
           e.position, s.number AS stream
    FROM streams s JOIN entries e ON e.stream = s.number AND e.version = 1
    WHERE s.name >= 'mail:' AND s.name < 'mail;'
  )
)
WHERE bead <> thread;
