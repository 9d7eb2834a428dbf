"""What windows see of an image, as whole numbers of 15 bits."""

from typing import Any

import numpy as np

from qbench.kernels.kernel import Kernel, makes_kernels, record
from qbench.kernels.memory import view

LARGEST = 2**15 - 1


@makes_kernels
def patches_kernel() -> Kernel:
    """Rounds what windows see, times a factor, to whole numbers; zeros beyond the data.

    At x lies float32[samples, channels, height, width], `x_stride` elements apart, and at `corners` int64[places, 2]:
    row and column of each window's first element, perhaps beyond the data. A window has `window` elements, `dilation`
    apart, in rows and columns, and sees the `depth` channels of one of the `groups`, the first of which is number
    `first`. The factor is a power of two. At `rows` float64[groups, samples * places, elements of a window in all
    channels of a group] is set; at `sums` float64[groups, elements] grows by the sums of the rows. `pitch` elements lie
    between one row and the next, of both.
    """

    def run(args: Any, bases: Any, thread: int, threads: int) -> None:
        samples, height, width, strides = args.samples, args.height, args.width, args.x_stride
        groups, depth, places, factor, dilation = args.groups, args.depth, args.places, args.factor, args.dilation
        last = (samples - 1) * strides[0] + (args.channels - 1) * strides[1]
        last += (height - 1) * strides[2] + (width - 1) * strides[3]
        data = view(bases, args.x, last + 1, np.float32)
        corners, elements = view(bases, args.corners, places * 2, np.int64), depth * args.window[0] * args.window[1]
        rows = view(bases, args.rows, (groups * samples * places - 1) * args.pitch + elements, np.float64)
        sums = view(bases, args.sums, (groups - 1) * args.pitch + elements, np.float64)
        for sample in range(samples):
            for group in range(groups):
                first = sample * strides[0] + (args.first + group) * depth * strides[1]
                total = sums[group * args.pitch : group * args.pitch + elements]
                for place in range(places):
                    start = ((group * samples + sample) * places + place) * args.pitch
                    row, at = rows[start : start + elements], 0
                    for c in range(depth):
                        channel = first + c * strides[1]
                        for i in range(args.window[0]):
                            y = corners[2 * place] + i * dilation[0]
                            for j in range(args.window[1]):
                                x = corners[2 * place + 1] + j * dilation[1]
                                whole = 0.0
                                if 0 <= y < height and 0 <= x < width:
                                    element = data[channel + y * strides[2] + x * strides[3]]
                                    whole = np.rint(np.float64(element) * factor)
                                    whole = min(max(whole, np.float64(-LARGEST)), np.float64(LARGEST))
                                row[at] = whole
                                total[at] += whole
                                at += 1

    data = dict.fromkeys(("x", "samples", "channels", "height", "width"), "i8") | {"x_stride": "4i8"}
    windows = {"corners": "i8", "places": "i8", "window": "2i8", "dilation": "2i8", "factor": "f8"}
    made = dict.fromkeys(("first", "groups", "depth", "rows", "sums", "pitch"), "i8")
    return Kernel("patches", record(**data, **windows, **made), run)
