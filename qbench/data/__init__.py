"""What the user has (arrays, mappings, folders of images) made into checked chunks that a graph can be fed."""
