"""Layer 1: the records of a session, and cells and engines as plain values. Read `schema` first."""
