"""ONNX's own backend tests in every release of tract."""
