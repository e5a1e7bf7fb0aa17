"""Room 1: the records of a session, what `matrix.jsonl` holds. Read `schema` first; nothing here runs anything."""
