"""Layer 2: options, their values in a session, and the engines and the shard that they select."""
