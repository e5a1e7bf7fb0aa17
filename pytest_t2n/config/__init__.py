"""Room 2: what the user asked for: options, their values in a session, the engines and the shard they select."""
