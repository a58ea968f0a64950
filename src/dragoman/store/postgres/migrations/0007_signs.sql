-- Chinese and Japanese are indexed sign by sign from here on: what was indexed in whole runs of them is
-- forgotten, and the ledger is looked through anew.
TRUNCATE texts;
DELETE FROM meta WHERE key = 'indexed';
