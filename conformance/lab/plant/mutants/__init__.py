"""Archives that were tampered with, to measure what the check catches."""
