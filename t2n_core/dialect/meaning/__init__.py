"""The definitions of the operators, in files by family: NNEF's own in `standard`, tract's in `tract` and `onnx`."""
