-- From here on the id of a request is a name of its intent, so that no other request gets it.
INSERT OR IGNORE INTO names (name, kind, stream)
SELECT CAST(line AS TEXT) ->> '$.body.request_id', 'request id', stream
FROM entries WHERE event = 'intent.dispatched' ORDER BY position;
