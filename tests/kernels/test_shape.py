"""Tiles are chosen so that little of them is wasted."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from qbench.kernels.levels import Level
from qbench.kernels.pack import packing
from qbench.kernels.shape import choose_chunk, choose_groups, choose_tile, widens
from qbench.kernels.tile import Tile


@pytest.mark.parametrize("level", Level)
@given(pixels=st.integers(1, 20000), channels=st.integers(1, 3000), depth=st.integers(1, 5000))
def test_every_layer_has_a_tile(level, pixels, channels, depth):
    tile = choose_tile(level, pixels, channels, depth)
    assert choose_chunk(tile, depth) >= 1
    lanes, _ = packing(level)
    least = pixels * channels
    assert -(-pixels // tile.rows) * tile.rows * -(-channels // (tile.vectors * lanes)) * tile.vectors * lanes < (
        least + 12 * max(pixels, 1) * lanes * 8 + 12 * channels
    )


@pytest.mark.parametrize(
    "pixels, channels, depth, tile",
    [
        (1, 1000, 1280, Tile(1, 8)),  # a dense layer
        (112 * 112, 16, 32, Tile(12, 1)),  # few channels
        (49, 512, 512, Tile(7, 4)),  # rows that divide the image
        (49, 160, 960, Tile(10, 2)),  # channels that two vectors divide
    ],
)
def test_typical_layers(pixels, channels, depth, tile):
    assert choose_tile(Level.AVX512VNNI, pixels, channels, depth) == tile


@pytest.mark.parametrize(
    ("pixels", "groups", "channels", "together"),
    [(3136, 32, 4, 4), (784, 32, 8, 2), (196, 32, 16, 1), (49, 32, 32, 1), (784, 32, 2, 8), (784, 13, 8, 1)],
)
def test_groups_of_few_channels_are_done_together(pixels: int, groups: int, channels: int, together: int) -> None:
    """What was fastest of all that divide the groups, measured: ResNeXt's first four stages, and others."""
    assert choose_groups(Level.AVX512VNNI, pixels, groups, channels, 9, channels) == together


@pytest.mark.parametrize("level", Level)
@pytest.mark.parametrize(("pixels", "products"), [(16, 900.0), (49, 15.9), (49, 16.0)])
def test_codes_are_widened_where_bytes_have_no_exact_product_and_enough_is_made_of_each(level, pixels, products):
    assert widens(level, pixels, products) == (level is Level.AVX2 and (pixels, products) == (49, 16.0))


def test_a_small_image_does_not_get_a_tile_that_widens_its_weights_for_one_row():
    assert choose_tile(Level.AVX2, 49, 512, 4608) == Tile(4, 2)
    assert choose_tile(Level.AVX2, 1, 1000, 1280) == Tile(1, 4)
