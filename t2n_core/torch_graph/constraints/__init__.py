"""The sizes of a captured model: declared axes, decisions of the capture, and refusals."""
