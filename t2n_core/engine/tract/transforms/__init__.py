"""The transforms that tract applies to a loaded model."""
