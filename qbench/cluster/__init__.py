"""Work on the machines of a Dask cluster: an executor that sends a model once, and what a worker does with it."""
