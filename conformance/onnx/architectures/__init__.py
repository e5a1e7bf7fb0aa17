"""The files that torch.onnx writes of the architectures of the suite `models`, judged in the engine."""
