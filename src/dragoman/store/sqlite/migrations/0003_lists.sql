-- Lists on which streams stand, such as boxes and threads; and words that can be searched for.

-- A list, and the streams that stand on it, each at the position of its first entry.
CREATE TABLE lists (
  list     TEXT    NOT NULL,
  position INTEGER NOT NULL,
  stream   INTEGER NOT NULL,
  PRIMARY KEY (list, position)
) STRICT, WITHOUT ROWID;

-- What was there before: everyone in its role, and offers that nobody has answered yet.
INSERT INTO lists (list, position, stream)
SELECT 'role:' || json_extract(CAST(s.state AS TEXT), '$.role'), e.position, s.number
FROM streams s JOIN entries e ON e.stream = s.number AND e.version = 1
WHERE s.name >= 'agent:' AND s.name < 'agent;';

INSERT INTO lists (list, position, stream)
SELECT 'offered:' || json_extract(CAST(s.state AS TEXT), '$.delegation.to_agent'),
       e.position, s.number
FROM streams s JOIN entries e ON e.stream = s.number AND e.version = 1
WHERE s.status NOT IN ('done', 'cancelled')
  AND json_extract(CAST(s.state AS TEXT), '$.delegation.to_agent') IS NOT NULL
  AND coalesce(json_extract(CAST(s.state AS TEXT), '$.delegation.state'), 'requested')
      = 'requested';

-- Words by the positions of the entries that hold them, and nothing else: the entry has the text.
-- They come split and folded, and this tokenizer takes them as they are. How far the ledger was
-- looked through stands in meta, under indexed.
CREATE VIRTUAL TABLE texts USING fts5 (words, content = '', columnsize = 0, tokenize = 'ascii');
