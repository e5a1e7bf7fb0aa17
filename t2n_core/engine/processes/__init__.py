"""Processes that run engines: their start, their jobs, the frames of the protocol, and the reason of their death."""
