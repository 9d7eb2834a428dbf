"""What a quantized model costs, as frozen data that a user reads."""
