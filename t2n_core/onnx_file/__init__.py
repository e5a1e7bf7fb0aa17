"""ONNX files: their inputs, samples of them, and the references that compute their outputs."""
