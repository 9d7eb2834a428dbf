"""How fast: qbench's programs against the runtimes that are installed, each in a process of its own."""
