"""Tuning that keeps everything: the config's history, what each edit makes stale, and the folder it is saved to."""
