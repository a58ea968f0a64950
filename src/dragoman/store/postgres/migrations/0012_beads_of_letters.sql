-- Letters about a bead that stand in another thread are on the list of the bead.
INSERT INTO lists (list, position, stream)
SELECT 'bead:' || l.bead, l.position, l.stream
FROM (
  SELECT substr(j.state ->> 'bead', strpos(j.state ->> 'bead', ':') + 1) AS bead,
         j.state ->> 'thread' AS thread, e.position, s.number AS stream
  FROM streams s JOIN entries e ON e.stream = s.number AND e.version = 1 CROSS JOIN LATERAL (
    SELECT replace(convert_from(s.state, 'UTF8'), '\u0000', '\ufffd')::json AS state
  ) AS j
  WHERE s.name >= 'mail:' AND s.name < 'mail;'
) AS l
WHERE l.bead <> l.thread;
