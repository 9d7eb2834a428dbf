"""Ops that ONNX has as well, with the same operands."""

PLAIN = {
    "abs": "Abs",
    "acos": "Acos",
    "acosh": "Acosh",
    "asin": "Asin",
    "asinh": "Asinh",
    "atan": "Atan",
    "atanh": "Atanh",
    "ceil": "Ceil",
    "cos": "Cos",
    "cosh": "Cosh",
    "divide": "Div",
    "equal": "Equal",
    "erf": "Erf",
    "exp": "Exp",
    "floor": "Floor",
    "greater": "Greater",
    "greater_equal": "GreaterOrEqual",
    "is_nan": "IsNaN",
    "less": "Less",
    "less_equal": "LessOrEqual",
    "log": "Log",
    "logical_and": "And",
    "logical_not": "Not",
    "logical_or": "Or",
    "multiply": "Mul",
    "negative": "Neg",
    "nn.hard_swish": "HardSwish",
    "nn.softplus": "Softplus",
    "reciprocal": "Reciprocal",
    "round": "Round",
    "sigmoid": "Sigmoid",
    "sign": "Sign",
    "sin": "Sin",
    "sinh": "Sinh",
    "sqrt": "Sqrt",
    "subtract": "Sub",
    "tan": "Tan",
    "tanh": "Tanh",
    "where": "Where",
}
"""Their names in ONNX, of ops that have no attributes there."""

WITH_ATTRIBUTES = {
    "gather_nd": ("GatherND", "data indices", "batch_dims"),
    "mod": ("Mod", "A B", "fmod"),
    "nn.depth_to_space": ("DepthToSpace", "input", "blocksize=block_size mode"),
    "nn.elu": ("Elu", "X", "alpha"),
    "nn.gelu": ("Gelu", "X", "approximate"),
    "nn.hard_sigmoid": ("HardSigmoid", "X", "alpha beta"),
    "nn.instance_norm": ("InstanceNormalization", "input scale B", "epsilon"),
    "nn.leaky_relu": ("LeakyRelu", "X", "alpha"),
    "nn.lrn": ("LRN", "X", "size alpha beta bias"),
    "nn.space_to_depth": ("SpaceToDepth", "input", "blocksize=block_size"),
    "scatter_nd": ("ScatterND", "data indices updates", "reduction"),
}
"""Their names and operands in ONNX, and their attributes there, as `attribute_names` reads them; defaults are alike."""


def attribute_names(listed: str) -> list[tuple[str, str]]:
    """Names of attributes in ONNX and here, from a list of the former, each with ours where that is another one."""
    return [(theirs, ours or theirs) for theirs, _, ours in (each.partition("=") for each in listed.split())]
