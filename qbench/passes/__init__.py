"""Graph to graph: one pass per file, each a value that can be named, traced and drawn."""
