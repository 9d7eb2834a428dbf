from __future__ import annotations

import pytest

from qbench.errors import SessionError
from qbench.views import exactness_view
from qbench.widgets import BitExactness
from tests.parity.comparisons import comparison, hostile


def test_it_looks_at_the_first_divergent_op_or_at_the_one_asked_for():
    widget = BitExactness(comparison())
    assert (widget.layer, widget.view()) == ("conv_2.out", exactness_view(comparison()))
    assert widget.comparison == widget.view().to_dict()
    assert BitExactness(comparison(), "softmax").layer == "softmax.out"
    assert BitExactness(comparison(), "conv_1.out").layer == "conv_1.out"
    with pytest.raises(SessionError, match="'conv_1'"):
        BitExactness(comparison(), "conv1")
    assert repr(widget) == "BitExactness(qbench and LiteRT builtin, 3 layers)"


def test_a_choice_in_the_browser_is_seen_here_and_anything_else_ignored():
    widget, seen = BitExactness(comparison()), []
    widget.observe(lambda change: seen.append(change["new"]), "layer")
    widget._receive(None, {"do": "opened"}, None)
    widget._receive(None, {"do": "select", "layer": "softmax.out"}, None)
    widget._receive(None, {"do": "select", "layer": 3}, None)
    assert (seen, widget.layer) == (["softmax.out"], "softmax.out")


def test_places_without_a_kernel_have_a_picture_and_a_page(tmp_path):
    widget = BitExactness(hostile())
    data, _ = widget._repr_mimebundle_()
    assert data["image/png"].startswith("iVBOR")
    text = widget.export_html(tmp_path / "exact.html").read_text()
    assert "<script>window" not in text and "<img src=x" not in text
