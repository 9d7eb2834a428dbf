"""The graph and its parts as frozen values: types, qparams, ops, text, checks, differences, archives."""
