"""Runs a table of instructions: one call for a whole network, on one thread or several, without Python in between.

Python writes a :data:`JOB` and a :data:`SHARE` for each thread. Thread 0 is the caller's, in ``lead``; the others sit
in ``serve`` and look at a word of memory each, where the address of a share means work.
"""

import ctypes
from functools import cache
from typing import Any

import numpy as np
from llvmlite import ir

from qbench.kernels.atomics import add, compare_exchange, exchange, load, store
from qbench.kernels.code import Code, Recipe
from qbench.kernels.jit import intrinsic, register_jitable, types
from qbench.kernels.memory import array_at
from qbench.kernels.system import clock, give_way, pause, read_byte, write_byte

LINE = 128
"""Bytes between words that different threads write: two cache lines, since processors fetch them in pairs."""

IDLE, ASLEEP, CLOSE = 0, -1, -2
"""What a worker's word holds when it is no address of a share."""

JOB = np.dtype(
    [
        (
            "rows",
            "i8",
        ),  # int64[last, 2]: addresses of kernel and record
        ("first", "i8"),
        ("last", "i8"),
        ("offsets", "i8"),  # int64[width]: of the buffers in the arena
        ("width", "i8"),
        ("externals", "i8"),  # int64[n, 3]: buffer, address at image 0, bytes from one image to the next
        ("external_count", "i8"),
        ("images", "i8"),  # where the last image ends
        ("threads", "i8"),
        ("apart", "i8"),  # whether each thread takes images of its own, instead of a share of each
        ("deadline", "i8"),  # the time to stop at
        ("times", "i8"),  # 0, or int64[last]: what each row took is added there, in nanoseconds
        ("next_image", "i8"),  # where threads that work apart draw their images
        ("stop", "i8"),  # the row that threads that work together stop at
    ]
)
"""What to run; one for all threads."""

SHARE = np.dtype(
    {
        "names": ["job", "thread", "arena", "bases", "image", "row", "meetings"],
        "formats": ["i8"] * 7,
        "offsets": [0, 8, 16, 24, 32, 40, LINE],
        "itemsize": 2 * LINE,
    }
)
"""One thread's part: its number, memory, the addresses of its buffers, how far it is, how often it met the others."""

_NEXT_IMAGE, _STOP = JOB.fields["next_image"][1], JOB.fields["stop"][1]  # type: ignore[index]
_PATIENCE = 2_000  # rounds of spinning before a thread gives way to others: some 30 us
_IDLE_NS = 1_000_000  # how long a worker without work stays awake


def _call_kernel(context, kernel, record, bases, thread, threads):
    def generate(context, builder, signature, arguments):
        byte, word = ir.IntType(8).as_pointer(), ir.IntType(64)
        function = ir.FunctionType(ir.VoidType(), [byte, byte, word, word])
        kernel, record, bases, thread, threads = arguments
        builder.call(
            builder.inttoptr(kernel, function.as_pointer()),
            [builder.inttoptr(record, byte), builder.inttoptr(bases, byte), thread, threads],
        )
        return context.get_dummy_value()

    word = types.int64
    return types.void(word, word, word, word, word), generate


_call: Any = intrinsic(_call_kernel)


@register_jitable
def _job(address):
    return array_at(address, 1, JOB)[0]


@register_jitable
def _share(address):
    return array_at(address, 1, SHARE)[0]


@register_jitable
def _wait(address, least):
    """Until the word is at least so large."""
    spins = 0
    while load(address) < least:
        spins += 1
        if spins < _PATIENCE:
            pause()
        else:
            give_way()


@register_jitable
def _meet(shares, thread, threads):
    """A barrier: each thread writes a word of its own and reads the others'."""
    own = shares + 2 * LINE * thread + LINE
    meetings = load(own) + 1
    store(own, meetings)
    for other in range(threads):
        _wait(shares + 2 * LINE * other + LINE, meetings)


@register_jitable
def _place(job, share):
    """The address of each buffer, for the thread's image."""
    offsets, bases = (
        array_at(job.offsets, job.width, np.int64),
        array_at(share.bases, job.width, np.int64),
    )
    for buffer in range(1, job.width):
        bases[buffer] = share.arena + offsets[buffer]
    externals = array_at(job.externals, (job.external_count, 3), np.int64)
    for i in range(job.external_count):
        bases[externals[i, 0]] = externals[i, 1] + share.image * externals[i, 2]


@register_jitable
def _image(job_address, shares, share, row):
    """One image from a row on; the row that was reached in time."""
    job = _job(job_address)
    rows = array_at(job.rows, (job.last, 2), np.int64)
    threads, thread = (1, 0) if job.apart else (job.threads, share.thread)
    waits = share.image + 1 < job.images or job.times != 0  # nobody waits after the very last row, but a clock
    end = job.last if waits else job.last - 1
    times = array_at(job.times, job.last, np.int64)
    began = clock()
    while row < job.last:
        _call(rows[row, 0], rows[row, 1], share.bases, thread, threads)
        row += 1
        late = thread == 0 and clock() > job.deadline
        meets = threads > 1 and row <= end
        if meets:
            if late:
                store(job_address + _STOP, row)
            _meet(shares, thread, threads)
        if job.times and thread == 0:
            ended = clock()
            times[row - 1] += ended - began
            began = ended
        if (late and threads == 1) or (meets and load(job_address + _STOP) == row):
            break
    return row


@register_jitable
def _work(address):
    """A share of a job, from where it stopped."""
    share = _share(address)
    job = _job(share.job)
    shares = address - 2 * LINE * share.thread
    row, image = share.row, share.image
    while True:
        if row == job.last:
            image = add(share.job + _NEXT_IMAGE, 1) if job.apart else image + 1
            share.image = image
            if image >= job.images:
                break
            _place(job, share)
            row = job.first
        row = _image(share.job, shares, share, row)
        if row < job.last:
            break
    share.row = row


def _lead(shares, workers, count):
    """Start `count` workers (int64[count, 2]: address of the word, file that wakes it), work, and wait for them.

    Whether the job is done, or else the deadline has passed.
    """
    table = array_at(workers, (count, 2), np.int64)
    for i in range(count):
        word = table[i, 0]
        if exchange(word, shares + 2 * LINE * (i + 1)) == ASLEEP:
            while write_byte(table[i, 1], word) != 1:
                pass
    _work(shares)
    images = _job(_share(shares).job).images
    done = _share(shares).image >= images
    for i in range(count):
        spins = 0
        while load(table[i, 0]) > 0:
            spins += 1
            if spins < _PATIENCE:
                pause()
            else:
                give_way()
        done &= _share(shares + 2 * LINE * (i + 1)).image >= images
    return done


def _serve(word, file):
    """Work whenever the word says so, until it says CLOSE; without work, sleep after a while."""
    quiet = clock()
    spins = 0
    while True:
        state = load(word)
        if state > 0:
            _work(state)
            store(word, IDLE)
            quiet = clock()
            spins = 0
        elif state == CLOSE:
            return
        elif spins < _PATIENCE:
            spins += 1
            pause()
        elif clock() - quiet < _IDLE_NS:
            give_way()
        elif compare_exchange(word, IDLE, ASLEEP) == IDLE:
            while read_byte(file, word + LINE) != 1:
                pass
            quiet = clock()
            spins = 0


@cache
def lead_code() -> Code:
    """The machine code of ``lead(shares, workers, count)``."""
    return Code(lambda: _lead, ("int64",) * 3, "boolean", "run_table.lead", Recipe(__name__, "lead_code", ()))


@cache
def serve_code() -> Code:
    """The machine code of ``serve(word, file)``."""
    return Code(lambda: _serve, ("int64",) * 2, "void", "run_table.serve", Recipe(__name__, "serve_code", ()))


@cache
def entries() -> tuple[Any, Any]:
    """``lead(shares, workers, count)`` and ``serve(word, file)``, as C functions that run without Python's lock."""
    number = ctypes.c_int64
    return (
        ctypes.CFUNCTYPE(ctypes.c_bool, number, ctypes.c_void_p, number)(lead_code().address),
        ctypes.CFUNCTYPE(None, number, number)(serve_code().address),
    )
