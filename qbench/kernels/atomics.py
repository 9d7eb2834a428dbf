"""Words that several threads read and write: ordered loads, stores and updates of int64 at an address."""

from llvmlite import ir

from qbench.kernels.jit import intrinsic, types

_WORD = ir.IntType(64)


def _pointer(builder, address):
    return builder.inttoptr(address, _WORD.as_pointer())


@intrinsic
def load(context, address):
    """The word at an address; what its writer wrote before it is seen as well."""

    def generate(context, builder, signature, arguments):
        return builder.load_atomic(_pointer(builder, arguments[0]), "acquire", 8)

    return types.int64(types.int64), generate


@intrinsic
def store(context, address, value):
    """Write a word after everything that was written before it."""

    def generate(context, builder, signature, arguments):
        builder.store_atomic(arguments[1], _pointer(builder, arguments[0]), "release", 8)
        return context.get_dummy_value()

    return types.void(types.int64, types.int64), generate


@intrinsic
def add(context, address, value):
    """Add to a word; returns what it was before."""

    def generate(context, builder, signature, arguments):
        return builder.atomic_rmw("add", _pointer(builder, arguments[0]), arguments[1], "acq_rel")

    return types.int64(types.int64, types.int64), generate


@intrinsic
def exchange(context, address, value):
    """Write a word; returns what it was before."""

    def generate(context, builder, signature, arguments):
        return builder.atomic_rmw("xchg", _pointer(builder, arguments[0]), arguments[1], "acq_rel")

    return types.int64(types.int64, types.int64), generate


@intrinsic
def compare_exchange(context, address, expected, value):
    """Write a word if it is as expected; returns what it was before."""

    def generate(context, builder, signature, arguments):
        address, expected, value = arguments
        pair = builder.cmpxchg(_pointer(builder, address), expected, value, "acq_rel", "acquire")
        return builder.extract_value(pair, 0)

    return types.int64(types.int64, types.int64, types.int64), generate
