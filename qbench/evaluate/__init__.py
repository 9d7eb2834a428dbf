"""Float and integer graphs run on the same data, only as far as is not known: what each layer loses, and the whole."""
