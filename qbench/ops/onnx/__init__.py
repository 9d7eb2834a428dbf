"""Integer ops in onnxruntime's own arithmetic."""
