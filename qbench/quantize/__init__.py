"""From a float graph, statistics and a config to the integer graph; imported scales as a config."""
