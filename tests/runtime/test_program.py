from __future__ import annotations

import contextlib
import gc
import re
import threading
import time
import weakref

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from qbench.errors import Cancelled, DataError, GraphError
from qbench.ir.build import build
from qbench.ir.frozen import FrozenMap
from qbench.ir.graph import Node
from qbench.ir.types import TensorType
from qbench.kernels.levels import numba_is_off
from qbench.runtime import instruction_table, interpreter
from qbench.runtime.programs import plan
from qbench.runtime.tallies import Tally
from qbench.runtime.team import default_threads
from tests.runtime.handmade import graph_of, larger, planned


@st.composite
def cases(draw, dtypes=("float32", "int8", "uint8", "int16"), least=0, least_rank=1):
    rank = draw(st.integers(least_rank, 4))
    batched = rank > 0 and draw(st.booleans())
    first = draw(st.sampled_from(["N", "2*N"])) if batched else draw(st.integers(1, 3))
    shape = (first, *draw(st.lists(st.integers(least, 5), min_size=3, max_size=3)))[:rank]
    count = draw(st.integers(1, 6))
    sources = [draw(st.tuples(st.integers(0, i), st.integers(0, i))) for i in range(count)]
    outputs = draw(st.lists(st.integers(1, count), min_size=1, max_size=2, unique=True))
    graph = graph_of(shape, draw(st.sampled_from(dtypes)), sources, outputs)
    names = [node.name for node in graph.nodes]
    interpreted = frozenset(draw(st.lists(st.sampled_from(names), max_size=2)))
    samples = draw(st.integers(1, 5)) if batched else 1
    size = samples * (2 if first == "2*N" else 1) if batched else first
    return planned(graph, draw(st.integers(0, 99)), interpreted), (size, *shape[1:])[:rank]


def feed(program, shape, seed=0):
    dtype = program.graph.types["v0"].dtype
    random = np.random.default_rng(seed)
    return random.integers(0 if dtype[0] == "u" else -100, 100, shape).astype(dtype)


@settings(deadline=None, max_examples=150)
@given(case=cases(least_rank=0), threads=st.integers(1, 3), data=st.data())
def test_any_run_equals_the_interpreter(case, threads, data):
    program, shape = case
    x = feed(program, shape)
    values = [name for name in program.graph.types if name in program.places]
    expected = interpreter.run(program.graph, {"v0": x}, values)
    keep = data.draw(st.lists(st.sampled_from(values)))
    start = {name: expected[name] for name in data.draw(st.lists(st.sampled_from(values)))}
    results = program.run(x, keep=keep, start=start, threads=threads)
    assert list(results) == list(dict.fromkeys((*program.graph.outputs, *keep)))
    for name, array in results.items():
        assert array.dtype == expected[name].dtype
        np.testing.assert_array_equal(array, expected[name])


@settings(deadline=None)
@given(case=cases(), every=st.integers(1, 9), threads=st.integers(1, 2), data=st.data())
def test_samples_are_every_so_many_elements_in_the_order_of_the_axes(case, every, threads, data):
    program, shape = case
    x = feed(program, shape)
    values = [name for name in program.places if name not in program.graph.outputs]
    expected = interpreter.run(program.graph, {"v0": x}, values)
    results = program.run(x, keep=values, sample=every, threads=threads)
    samples = shape[0] // 2 if program.graph.types["v0"].shape[0] == "2*N" else shape[0]
    samples = samples if isinstance(program.graph.types["v0"].shape[0], str) else 1
    for name in values:
        np.testing.assert_array_equal(results[name], expected[name].reshape(samples, -1)[:, ::every])
    for name in program.graph.outputs:
        np.testing.assert_array_equal(results[name], expected[name])
    some = data.draw(st.dictionaries(st.sampled_from(values), st.integers(1, 9))) if values else {}
    results = program.run(x, keep=values, sample=some, threads=threads)
    for name in values:
        part = expected[name].reshape(samples, -1)[:, :: some[name]] if name in some else expected[name]
        np.testing.assert_array_equal(results[name], part)


@settings(deadline=None)
@given(case=cases(["float32"], least=1), axis=st.booleans(), data=st.data())
def test_what_is_observed_is_counted_sample_by_sample(case, axis, data):
    program, shape = case
    x = feed(program, shape)
    values = [name for name in program.graph.types if name in program.places]
    expected = interpreter.run(program.graph, {"v0": x}, values)
    names = data.draw(st.lists(st.sampled_from(values), unique=True))
    place = (len(shape) - 1, shape[-1]) if axis else (None, 0)
    tallies, same = ({name: Tally(*place) for name in names} for _ in range(2))
    results = program.run(x, observe=tallies)
    samples = shape[0] // 2 if program.graph.types["v0"].shape[0] == "2*N" else shape[0]
    samples = samples if isinstance(program.graph.types["v0"].shape[0], str) else 1
    for name in names:
        for part in np.split(expected[name], samples):
            same[name].add(part)
        assert tallies[name].found == same[name].found
        assert tallies[name].samples == same[name].samples == samples
        np.testing.assert_allclose(tallies[name].totals.astype(float), same[name].totals.astype(float), rtol=1e-3)
    assert list(results) == list(program.graph.outputs)
    for name, array in results.items():
        np.testing.assert_array_equal(array, expected[name])


def chain(shape=("N", 3, 4, 5), dtype="float32", steps=5, **options):
    graph = graph_of(shape, dtype, [(i, i) for i in range(steps)], [steps])
    return planned(graph, 1, **options)


def test_a_given_value_is_where_the_run_starts():
    program = chain()
    known = np.full((2, 3, 4, 5), 3, np.float32)
    np.testing.assert_array_equal(program.run(start={"v3": known})["v5"], known)


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("fed", [True, False])
def test_a_given_view_of_an_input_leaves_the_callers_array_alone(threads, fed):
    nodes = [
        Node("r", "reshape", ("x",), ("r",), FrozenMap({"newshape": ("N", 6)})),
        Node("y", "nn.relu", ("r",), ("y",)),
    ]
    program = plan(build("view", {"x": TensorType(("N", 2, 3), "float32")}, ["y"], nodes))
    x = np.arange(24, dtype=np.float32).reshape(4, 2, 3)
    other = -1 - x.reshape(4, 6)
    other[2] = 7
    found = program.run({"x": x} if fed else {}, start={"r": other}, threads=threads)
    np.testing.assert_array_equal(found["y"], np.maximum(other, 0))
    np.testing.assert_array_equal(x, np.arange(24).reshape(4, 2, 3))


def test_inputs_that_no_step_needs_may_be_missing_others_not():
    with pytest.raises(DataError, match="input 'v0' is missing"):
        chain().run(start={"v3": np.ones((1, 3, 4, 5), np.float32)}, keep=["v2"])


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("interpreted", [frozenset(), frozenset({"n2"})])
def test_no_samples_give_empty_arrays(threads, interpreted):
    program = chain(interpreted=interpreted)
    results = program.run(np.empty((0, 3, 4, 5), np.float32), keep=["v2"], threads=threads)
    assert {name: array.shape for name, array in results.items()} == dict.fromkeys(["v5", "v2"], (0, 3, 4, 5))
    assert chain().run(np.empty((0, 3, 4, 5), np.float32), keep=["v2"], sample=7)["v2"].shape == (0, 9)


def test_feeds_and_given_values_are_checked():
    program = chain()
    x = np.ones((2, 3, 4, 5), np.float32)
    with pytest.raises(DataError, match="input 'v0' wants"):
        program.run(x[:, :2])
    with pytest.raises(DataError, match=r"value 'v2' wants .* float64"):
        program.run(x, start={"v2": x.astype(np.float64)})
    with pytest.raises(DataError, match=r"value 'v2' wants .* N is 2 elsewhere, but 3"):
        program.run(x, start={"v2": np.ones((3, 3, 4, 5), np.float32)}, keep=["v1"])
    with pytest.raises(DataError, match="sample=0"):
        program.run(x, sample=0)
    with pytest.raises(DataError, match="sample=0"):
        program.run(x, sample={"v9": 0})
    most = max(64, 8 * default_threads())
    for threads in (-1, 2000, 1.5, "2"):
        with pytest.raises(
            DataError, match=f"threads={threads!r}: it must be a whole number, at least 1 and at most {most}"
        ):
            program.run(x, threads=threads)
    program.run(x, threads=np.int64(2))
    with pytest.raises(DataError, match="repeat=0"):
        program.profile(x, repeat=0)


def test_an_unknown_or_fused_value_is_named():
    from dataclasses import replace

    program = chain()
    first, second, *rest = program.steps
    fused = replace(second, name="n1+n2", nodes=("n1", "n2"), inputs=first.inputs)
    program = replace(program, steps=(fused, *rest))
    x = np.ones((2, 3, 4, 5), np.float32)
    with pytest.raises(GraphError, match=r"'v1' was fused into step 'n1\+n2'.*keep=\['v1'\]"):
        program.run(x, keep=["v1"])
    with pytest.raises(GraphError, match="no value 'v9'"):
        program.run(x, keep=["v9"])


class After:
    """Set after so many looks."""

    def __init__(self, looks: int) -> None:
        self.looks = looks

    def is_set(self) -> bool:
        self.looks -= 1
        return self.looks < 0


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("samples", [1, 2, 40])
def test_a_run_can_be_cancelled_and_the_next_is_right(threads, samples):
    size = 4 if numba_is_off() else 64
    program = chain(("N", 16, size, size), steps=8)
    x = feed(program, (samples, 16, size, size))
    expected = program.run(x, threads=1)["v8"]
    for looks in range(3):
        with pytest.raises(Cancelled):
            program.run(x, threads=threads, cancel=After(looks))
    np.testing.assert_array_equal(program.run(x, threads=threads, cancel=After(10**9))["v8"], expected)


class Broken:
    """Fails at the second look."""

    looks = 0

    def is_set(self) -> bool:
        self.looks += 1
        if self.looks == 2:
            raise KeyboardInterrupt
        return False


@pytest.mark.parametrize("threads", [1, 2])
def test_an_interrupted_run_leaves_nothing_behind(threads):
    size = 4 if numba_is_off() else 64
    program = chain(("N", 16, size, size), steps=8)
    x = feed(program, (20, 16, size, size))
    with pytest.raises(KeyboardInterrupt):
        program.run(x, threads=threads, cancel=Broken())
    expected = interpreter.run(program.graph, {"v0": x})["v8"]
    np.testing.assert_array_equal(program.run(x, threads=threads)["v8"], expected)


def test_a_program_goes_with_the_last_who_holds_it():
    program = chain()
    program.run(feed(program, (2, 3, 4, 5)))
    gone = weakref.ref(program)
    gc.disable()  # programs in circles would keep their constants until garbage is collected
    try:
        del program
        assert gone() is None
    finally:
        gc.enable()


def test_arrays_may_lie_in_any_way():
    program = chain()
    x = feed(program, (2, 3, 4, 5))
    expected = program.run(x)["v5"]
    odd = np.frombuffer(b"?" + x.tobytes(), np.uint8)[1:].view(np.float32).reshape(x.shape)
    for same in (np.asfortranarray(x), np.repeat(x, 2, axis=1)[:, ::2], odd):
        np.testing.assert_array_equal(program.run(same)["v5"], expected)


@pytest.mark.skipif(numba_is_off(), reason="nothing is compiled")
def test_compiling_tells_how_far_it_is(monkeypatch):
    told = []
    monkeypatch.setattr(
        instruction_table, "showing", lambda: contextlib.nullcontext(lambda *progress: told.append(progress))
    )
    larger.cache_clear()
    program = chain()
    program.run(feed(program, (1, 3, 4, 5)))
    program.run(feed(program, (1, 3, 4, 5)))
    assert told[0] == ("compiling kernels for this processor, once", 0, told[-1][2])
    assert told[-1] == ("compiling kernels for this processor, once", told[-1][2], told[-1][2])


def test_several_python_threads_may_run_one_program():
    size = 2 if numba_is_off() else 16
    program = chain(("N", 8, size, size))
    failures = []

    def work(seed):
        x = feed(program, (3, 8, size, size), seed)
        expected = interpreter.run(program.graph, {"v0": x}, ["v2"])
        for threads in (1, 2, 3) * 10:
            results = program.run(x, keep=["v2"], threads=threads)
            if any((results[name] != expected[name]).any() for name in expected):
                failures.append(seed)

    workers = [threading.Thread(target=work, args=(seed,)) for seed in range(4)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert not failures


@pytest.mark.parametrize("threads", [1, 2])
def test_a_profile_has_a_time_for_each_instruction(threads):
    program = chain(interpreted=frozenset({"n2"}))
    rows = program.profile(feed(program, (3, 3, 4, 5)), repeat=3, threads=threads)
    kernels = {row.kernel for row in rows}
    assert {"interpreter", "test.larger.float32"} <= kernels
    assert all(row.seconds > 0 for row in rows)
    assert {row.step: row.macs for row in rows if row.macs} == {f"n{i}": 180 for i in (1, 3, 4, 5)}


@pytest.mark.skipif(numba_is_off(), reason="kernels launched from Python run in no slices")
@pytest.mark.parametrize("threads", [1, 2, 3])
@pytest.mark.parametrize("samples", [1, 3])
def test_times_are_right_where_a_run_is_interrupted_after_each_instruction(monkeypatch, threads, samples):
    monkeypatch.setattr("qbench.runtime.run._SLICE_NS", 0)
    program = chain(interpreted=frozenset({"n3"}))
    x = feed(program, (samples, 3, 4, 5))
    begin = time.perf_counter()
    rows = program.profile(x, repeat=1, threads=threads)
    whole = time.perf_counter() - begin
    assert len(rows) >= 5
    assert all(row.seconds > 0 for row in rows)
    assert sum(row.seconds for row in rows) <= whole


def test_a_program_prints_every_step_with_its_layout_and_the_arena():
    program = chain(dtype="int8", interpreted=frozenset({"n3"}))
    text = str(program)
    assert "codes: layout\n  reads v0: uint8 codes" in text
    assert "  by    interpreter\n  since a test" in text
    assert re.search(r"n5: clip\n  reads v4: .*channels last.*\n  makes v5: .* 1x.*, at 0\n  by    test.larger", text)
    assert re.search(r"arena: [0-9]+ bytes for values of 360 bytes", text)


def test_a_programs_table_has_a_row_for_each_step():
    program = chain(interpreted=frozenset({"n3"}))
    table = program.table()
    assert list(table["step"]) == [f"n{i}" for i in range(1, 6)]
    assert table["reason"][2] == "a test"
    assert program.fallbacks == {"n3": "a test"}
    assert table["macs"].sum() == 240


def test_values_whose_samples_lie_along_another_axis():
    """They are kept, sampled and started from whole, as those along axis 0."""
    nodes = [
        Node("turn", "transpose", ("x",), ("turned",), FrozenMap({"axes": (1, 0, 2)})),
        Node("join", "concatenate", ("turned", "turned"), ("joined",), FrozenMap({"axis": 2})),
        Node("back", "transpose", ("joined",), ("y",), FrozenMap({"axes": (1, 0, 2)})),
    ]
    graph = build("g", {"x": TensorType(("N", 3, 4), "float32")}, ["y"], nodes)
    x = np.random.default_rng(0).standard_normal((5, 3, 4)).astype(np.float32)
    program, expected = plan(graph, keep=["turned", "joined"]), interpreter.run(graph, {"x": x}, ["turned", "joined"])
    made = program.run(x, keep=["turned", "joined"])
    for name, array in made.items():
        np.testing.assert_array_equal(array, expected[name])
    some = program.run(x, keep=["joined"], sample=5)["joined"]
    np.testing.assert_array_equal(some, np.moveaxis(expected["joined"], 1, 0).reshape(5, -1)[:, ::5])
    np.testing.assert_array_equal(program.run(start={"joined": made["joined"]})["y"], expected["y"])


def test_an_interpreted_step_reads_a_number_when_it_is_there():
    program = chain(shape=(), steps=3, interpreted=frozenset({"n2"}))
    x = np.full((), 3, np.float32)
    wanted = interpreter.run(program.graph, {"v0": x})
    for name, array in program.run(x).items():
        np.testing.assert_array_equal(array, wanted[name])
