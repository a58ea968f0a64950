"""The outside, handed in: clock, ids, keys, files, the hub's lock."""
