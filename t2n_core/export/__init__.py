"""The export pipeline: options, capture and lowering of a model, the result on disk."""
