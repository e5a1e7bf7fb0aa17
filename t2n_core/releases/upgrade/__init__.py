"""Effects of an upgrade of tract from one release to another on one archive or ONNX model."""
