"""Figures: the same pixels every time, a small palette, nothing of the reader's settings."""

import io

import matplotlib
import numpy as np
import pytest
from PIL import Image

from companion import figures

PICTURES = {
    "lines": lambda: figures.lines(
        {"a": [1.0, 10.0, 100.0], "b": [3.0, 2.0, 1.0]},
        [0, 1, 2],
        x_label="$t$",
        y_label="size",
        log=True,
    ),
    "outlines": lambda: figures.outlines(
        {"in": ([0, 1, 1], [0, 0, 1]), "out": ([0, 2], [1, 3])}
    ),
    "matrices": lambda: figures.matrices(
        {"A": [[0.5, -1.0]], "B": [[0.0, 2.0]], "C": [[1.0, 1.0]]}
    ),
}


@pytest.fixture(params=PICTURES)
def draw(request: pytest.FixtureRequest):  # type: ignore[no-untyped-def]
    return PICTURES[request.param]


def pixels(picture: figures.Picture) -> np.ndarray:
    return np.asarray(Image.open(io.BytesIO(picture.png)).convert("RGB"), int)


def test_two_drawings_have_the_same_bytes(draw) -> None:  # type: ignore[no-untyped-def]
    assert draw().png == draw().png


def test_the_readers_settings_change_nothing(draw) -> None:  # type: ignore[no-untyped-def]
    before = draw().png
    changed = {
        "font.size": 30,
        "axes.facecolor": "black",
        "lines.linewidth": 9,
        "figure.dpi": 33,
    }
    with matplotlib.rc_context(changed):
        assert draw().png == before
        assert matplotlib.rcParams["font.size"] == 30  # and ours do not leak


def test_a_figure_is_a_small_palette_png_on_white(draw) -> None:  # type: ignore[no-untyped-def]
    picture = draw()
    image = Image.open(io.BytesIO(picture.png))
    assert image.format == "PNG"
    assert image.mode == "P"
    assert len(image.getcolors()) <= 64
    assert len(picture.png) < 30_000
    assert pixels(picture)[0, 0].tolist() == [255, 255, 255]


def test_a_notebook_shows_it_at_half_its_pixels(draw) -> None:  # type: ignore[no-untyped-def]
    picture = draw()
    data, metadata = picture._repr_mimebundle_()
    assert data == {"image/png": picture.png, "text/plain": repr(picture)}
    height, width, _ = pixels(picture).shape
    assert metadata["image/png"] == {"width": width // 2, "height": height // 2}


def test_the_text_form_lists_what_was_drawn() -> None:
    assert repr(PICTURES["lines"]()) == "size against $t$: a, b"
    assert repr(PICTURES["outlines"]()) == "Outlines: in, out"
    assert repr(PICTURES["matrices"]()) == "Matrices: A, B, C"


def test_a_log_axis_is_not_a_linear_one() -> None:
    def draw(log: bool) -> np.ndarray:
        return pixels(
            figures.lines({"a": [1.0, 100.0]}, [0, 1], x_label="", y_label="", log=log)
        )

    assert (draw(log=True) != draw(log=False)).any()


def test_entries_are_shaded_by_sign_and_size() -> None:
    image = pixels(figures.matrices({"A": [[-1.0, 0.0, 0.5, 1.0]]}, columns=1))
    row = image[image.shape[0] // 2 + 25]  # below the written numbers
    colours = [row[round((k + 0.5) * image.shape[1] / 4)] for k in range(4)]
    minus, zero, half, one = (colour.astype(float) for colour in colours)
    assert zero.tolist() == [255, 255, 255]
    assert minus[0] > minus[2]  # reddish
    assert one[2] > one[0]  # bluish
    assert one.sum() < half.sum() < zero.sum()


def test_a_matrix_of_zeros_is_white() -> None:
    row = pixels(figures.matrices({"A": [[0.0, 0.0]]}, columns=1))[240]  # below the numbers
    assert row.min() == 255


def blue_pixels(picture: figures.Picture) -> np.ndarray:
    blue = [round(255 * channel) for channel in figures.HUES["blue"]]
    return (pixels(picture) == blue).all(axis=2)


def test_x_runs_along_and_y_up() -> None:
    level = blue_pixels(figures.lines({"a": [5.0, 5.0]}, [0, 9], x_label="", y_label=""))
    assert level.any(axis=0).sum() > 20 * level.any(axis=1).sum()
    steep = blue_pixels(figures.lines({"a": [0.0, 9.0]}, [5, 5], x_label="", y_label=""))
    assert steep.any(axis=1).sum() > 20 * steep.any(axis=0).sum()


@pytest.mark.parametrize("count", [0, 7])
def test_a_figure_with_too_many_series_or_none_is_refused(count: int) -> None:
    series = {str(k): [0.0, 1.0] for k in range(count)}
    with pytest.raises(ValueError, match=f"{count} series; a figure takes 1 to 6"):
        figures.lines(series, [0, 1], x_label="", y_label="")
    with pytest.raises(ValueError, match=f"{count} series"):
        figures.outlines({name: (y, y) for name, y in series.items()})


def test_every_hue_survives_the_palette() -> None:
    series = {name: [float(k), float(k)] for k, name in enumerate(figures.HUES)}
    image = pixels(figures.lines(series, [0, 1], x_label="", y_label=""))
    found = {tuple(colour) for colour in image.reshape(-1, 3)}
    for hue in figures.HUES.values():
        assert tuple(round(255 * channel) for channel in hue) in found
