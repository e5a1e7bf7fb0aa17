"""What is known of tract's releases: how sizes are written, what they get wrong, and how to avoid it."""
