"""Processes that run foreign code: their start, their jobs, the frames between, and the reason of their death."""
