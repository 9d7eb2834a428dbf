"""What file formats call things, for those who read them and those who write them."""
