"""What to do about a model that lost too much: where it loses, what repairs it, and what that costs."""
