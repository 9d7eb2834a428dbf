"""Integer ops in TFLite's own arithmetic."""
