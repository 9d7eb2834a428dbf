"""From data to encodings: statistics of every tensor, and the calibrators that choose thresholds by them."""
