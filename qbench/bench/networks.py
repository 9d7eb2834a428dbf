"""The networks that everybody times, with random weights: ResNet-18 and 50, MobileNetV2, Inception V3.

He et al. 2016 (stride in the 3x3 convolution, as torchvision has it), Sandler et al. 2018, Szegedy et al. 2016 (without
the auxiliary head). How fast a network runs does not depend on what its weights are.
"""

from collections.abc import Callable
from functools import partial

import onnx

from qbench.bench.layers import Layers


def _resnet(name: str, depths: tuple[int, ...], bottleneck: bool) -> onnx.ModelProto:
    net = Layers(name, 224)
    x = net.max_pool(net.conv("x", 64, 7, 2), pad=True)
    for stage, depth in enumerate(depths):
        width = 64 << stage
        outputs = 4 * width if bottleneck else width
        for block in range(depth):
            stride = 2 if stage and not block else 1
            shortcut = x
            if stride != 1 or net.channels(x) != outputs:
                shortcut = net.conv(x, outputs, 1, stride, activation=None)
            if bottleneck:
                y = net.conv(net.conv(x, width, 1), width, 3, stride)
                y = net.conv(y, outputs, 1, activation=None, gain=0.5)
            else:
                y = net.conv(net.conv(x, width, 3, stride), outputs, 3, activation=None, gain=0.5)
            x = net.add(y, shortcut, relu=True)
    return net.classifier(x)


def _mobilenet_v2() -> onnx.ModelProto:
    net = Layers("mobilenetv2", 224)
    x = net.conv("x", 32, 3, 2, activation="Clip")
    stages = ((1, 16, 1, 1), (6, 24, 2, 2), (6, 32, 3, 2), (6, 64, 4, 2), (6, 96, 3, 1), (6, 160, 3, 2), (6, 320, 1, 1))
    for expansion, outputs, depth, first_stride in stages:
        for block in range(depth):
            inputs, stride = net.channels(x), 1 if block else first_stride
            wide = inputs * expansion
            y = x if expansion == 1 else net.conv(x, wide, 1, activation="Clip")
            y = net.conv(y, wide, 3, stride, groups=wide, activation="Clip")
            y = net.conv(y, outputs, 1, activation=None)
            x = net.add(y, x, relu=False) if (stride, inputs) == (1, outputs) else y
    return net.classifier(net.conv(x, 1280, 1, activation="Clip"))


def _inception_v3() -> onnx.ModelProto:
    net = Layers("inception_v3", 299)
    x = net.conv(net.conv("x", 32, 3, 2, pad=False), 32, 3, pad=False)
    x = net.max_pool(net.conv(x, 64, 3))
    x = net.max_pool(net.conv(net.conv(x, 80, 1), 192, 3, pad=False))
    for pooled in (32, 64, 64):
        x = _inception_a(net, x, pooled)
    double = net.conv(net.conv(net.conv(x, 64, 1), 96, 3), 96, 3, 2, pad=False)
    x = net.concat(net.conv(x, 384, 3, 2, pad=False), double, net.max_pool(x))
    for width in (128, 160, 160, 192):
        x = _inception_c(net, x, width)
    reduced = net.conv(net.conv(x, 192, 1), 320, 3, 2, pad=False)
    double = _chain(net, net.conv(x, 192, 1), ((1, 7), (7, 1)), 192, 192)
    x = net.concat(reduced, net.conv(double, 192, 3, 2, pad=False), net.max_pool(x))
    for _ in range(2):
        x = _inception_e(net, x)
    return net.classifier(x)


def _inception_a(net: Layers, x: str, pooled: int) -> str:
    five = net.conv(net.conv(x, 48, 1), 64, 5)
    double = net.conv(net.conv(net.conv(x, 64, 1), 96, 3), 96, 3)
    return net.concat(net.conv(x, 64, 1), five, double, net.conv(net.avg_pool(x), pooled, 1))


def _inception_c(net: Layers, x: str, width: int) -> str:
    once = _chain(net, net.conv(x, width, 1), ((1, 7), (7, 1)), width, 192)
    twice = _chain(net, net.conv(x, width, 1), ((7, 1), (1, 7), (7, 1), (1, 7)), width, 192)
    return net.concat(net.conv(x, 192, 1), once, twice, net.conv(net.avg_pool(x), 192, 1))


def _inception_e(net: Layers, x: str) -> str:
    once, twice = net.conv(x, 384, 1), net.conv(net.conv(x, 448, 1), 384, 3)
    split = [net.conv(y, 384, kernel) for y in (once, twice) for kernel in ((1, 3), (3, 1))]
    return net.concat(net.conv(x, 320, 1), *split, net.conv(net.avg_pool(x), 192, 1))


def _chain(net: Layers, x: str, kernels: tuple[tuple[int, int], ...], width: int, last: int) -> str:
    for kernel in kernels[:-1]:
        x = net.conv(x, width, kernel)
    return net.conv(x, last, kernels[-1])


NETWORKS: dict[str, Callable[[], onnx.ModelProto]] = {
    "resnet18": partial(_resnet, "resnet18", (2, 2, 2, 2), bottleneck=False),
    "resnet50": partial(_resnet, "resnet50", (3, 4, 6, 3), bottleneck=True),
    "mobilenetv2": _mobilenet_v2,
    "inception_v3": _inception_v3,
}
"""What makes each network, by the name that the command line knows it by."""
