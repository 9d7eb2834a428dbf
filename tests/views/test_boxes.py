from __future__ import annotations

import pytest

from qbench.errors import SessionError
from qbench.session.session import Session
from qbench.views import State, boxes_view
from tests.networks import mlp, samples


@pytest.fixture(scope="module")
def state() -> State:
    session = Session(mlp(), samples(20))
    session.run(progress=False)
    return State.of(session)


def test_every_node_is_a_box_that_reads_those_before_it(state: State):
    view = boxes_view(state)
    (pane,) = view.panes
    graph = state.quantized.prepared
    assert (pane.step, view.steps[0]) == (view.prepared, "source")
    assert [box.name for box in pane.boxes] == [*graph.inputs, *(node.name for node in graph.nodes)]
    assert [box.layer for box in pane.boxes if box.op != "input"] == [node.name for node in graph.nodes]
    for place, box in enumerate(pane.boxes):
        assert all(read < place for read in box.reads)
    reads = {box.name: [pane.boxes[read].name for read in box.reads] for box in pane.boxes}
    for node in graph.nodes:
        makers = [graph.producers[name].name if name in graph.producers else name for name in node.inputs]
        assert reads[node.name] == [name for name in makers if name in reads]


def test_steps_stand_beside_each_other_and_know_the_layers_that_their_nodes_came_from(state: State):
    last = len(boxes_view(state).steps) - 1
    before, after = boxes_view(state, (0, last)).panes
    assert (before.step, after.step) == (0, last)
    assert any(box.dtype == "uint8" or box.dtype == "int8" for box in after.boxes)
    layers = {node.name for node in state.quantized.prepared.nodes}
    assert {box.layer for box in after.boxes} & layers
    with pytest.raises(SessionError, match="no step 99"):
        boxes_view(state, (99,))
