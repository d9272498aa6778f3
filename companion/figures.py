"""Pictures from numbers: one call draws one figure.  Nothing is computed here.

The pixels are the same in every run: no pyplot, no settings of the reader's own,
one fixed palette.  Colours are Okabe and Ito's, which colour-blind readers tell
apart, and every series has a line style of its own as well.
"""

import io
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
from typing import Any, cast

import matplotlib
import numpy as np
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from PIL import Image

Numbers = Sequence[float | int]

INK = (0.13, 0.13, 0.13)
HUES = {
    "blue": (0.0, 0.447, 0.698),
    "vermilion": (0.835, 0.369, 0.0),
    "green": (0.0, 0.620, 0.451),
    "purple": (0.8, 0.475, 0.655),
    "sky": (0.337, 0.706, 0.914),
    "orange": (0.902, 0.624, 0.0),
}
STYLES = ("-", "--", "-.", ":", (0, (5, 1, 1, 1, 1, 1)), (0, (1, 1)))
SHADES = 8  # steps from white to a hue: enough for smooth edges
DOTS_PER_INCH = 200
SETTINGS: dict[str, Any] = {
    "font.family": "DejaVu Sans",
    "mathtext.fontset": "dejavusans",
    "font.size": 11.0,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.edgecolor": INK,
    "axes.labelcolor": INK,
    "text.color": INK,
    "xtick.color": INK,
    "ytick.color": INK,
    "lines.linewidth": 2.0,
    "legend.frameon": False,
    "figure.constrained_layout.use": True,
}


@dataclass(frozen=True)
class Picture:
    """A drawn figure: a palette PNG, and its text form, which lists what was drawn."""

    png: bytes = field(repr=False)
    width: int
    height: int
    summary: str

    def __repr__(self) -> str:
        return self.summary

    def _repr_mimebundle_(
        self, include: object = None, exclude: object = None
    ) -> tuple[dict[str, object], dict[str, object]]:
        size = {"width": self.width, "height": self.height}
        return {"image/png": self.png, "text/plain": repr(self)}, {"image/png": size}


def lines(
    series: Mapping[str, Numbers],
    x: Numbers,
    *,
    x_label: str,
    y_label: str,
    log: bool = False,
) -> Picture:
    """Curves over a common x, one for each name; `log` for a logarithmic y axis.

    ValueError for more than six series.
    """
    _check_count(series)
    with _settings():
        figure, (axes,) = _panels(1, 1, width=4.8, height=3.1)
        for (name, y), colour, style in zip(
            series.items(), HUES.values(), STYLES, strict=False
        ):
            axes.plot(x, y, label=name, color=colour, linestyle=style)
        axes.set(xlabel=x_label, ylabel=y_label, yscale="log" if log else "linear")
        if len(series) > 1:
            axes.legend()
        return _picture(figure, f"{y_label} against {x_label}: {', '.join(series)}")


def outlines(shapes: Mapping[str, Sequence[Numbers]]) -> Picture:
    """Curves in the plane, one x and one y list for each name, both axes on one scale.

    ValueError for more than six shapes.
    """
    _check_count(shapes)
    with _settings():
        figure, (axes,) = _panels(1, 1, width=4.8, height=3.6)
        for (name, (x, y)), colour, style in zip(
            shapes.items(), [INK, *HUES.values()], STYLES, strict=False
        ):
            axes.plot(x, y, label=name, color=colour, linestyle=style)
        axes.axhline(0, color=INK, linewidth=0.5)
        axes.axvline(0, color=INK, linewidth=0.5)
        axes.set_aspect("equal", adjustable="datalim")
        axes.legend()
        return _picture(figure, f"Outlines: {', '.join(shapes)}")


def matrices(grids: Mapping[str, Sequence[Numbers]], *, columns: int = 3) -> Picture:
    """Matrices, `columns` to a row, every entry written and shaded by sign and size."""
    largest = max(abs(v) for grid in grids.values() for row in grid for v in row) or 1.0
    rows = -(-len(grids) // columns)
    with _settings():
        figure, panels = _panels(rows, columns, width=1.6 * columns, height=1.95 * rows)
        for axes, (name, grid) in zip(panels, grids.items(), strict=False):
            axes.imshow([[_shade(v / largest) for v in row] for row in grid])
            axes.set_title(name, fontsize="medium")
            for i, row in enumerate(grid):
                for j, value in enumerate(row):
                    written = f"{value:.2f}".replace("-", "\N{MINUS SIGN}")
                    axes.text(j, i, written, ha="center", va="center")
        for axes in panels:
            axes.set(xticks=[], yticks=[], frame_on=False)
        return _picture(figure, f"Matrices: {', '.join(grids)}")


def _check_count(series: Mapping[str, object]) -> None:
    if not 1 <= len(series) <= len(STYLES):
        raise ValueError(
            f"{len(series)} series; a figure takes 1 to {len(STYLES)}, each with a colour and "
            "a line style of its own: draw fewer, or two figures"
        )


@contextmanager
def _settings() -> Iterator[None]:
    with matplotlib.rc_context():
        matplotlib.rcdefaults()
        matplotlib.rcParams.update(cast(Any, SETTINGS))
        yield


def _panels(
    rows: int, columns: int, *, width: float, height: float
) -> tuple[Figure, list[Axes]]:
    figure = Figure(figsize=(width, height), dpi=DOTS_PER_INCH)
    return figure, list(figure.subplots(rows, columns, squeeze=False).flat)


def _shade(value: float) -> tuple[float, ...]:
    """A colour for -1 .. 1: vermilion, white, blue, in the palette's own steps."""
    hue = HUES["blue"] if value > 0 else HUES["vermilion"]
    depth = round(abs(value) * SHADES * 0.6) / SHADES  # light enough to write on
    return tuple(1 - depth * (1 - channel) for channel in hue)


@cache
def _palette() -> Image.Image:
    """White, and every hue in SHADES steps: fixed, so that no pixel depends on others."""
    steps = [k / SHADES for k in range(1, SHADES + 1)]
    mixed = [1 - s * (1 - np.array(h)) for h in (INK, *HUES.values()) for s in steps]
    colours = [np.ones(3), *mixed]
    image = Image.new("P", (1, 1))
    image.putpalette([round(255 * c) for colour in colours for c in colour])
    return image


def _picture(figure: Figure, summary: str) -> Picture:
    canvas = FigureCanvasAgg(figure)
    canvas.draw()
    pixels = np.asarray(canvas.buffer_rgba())[..., :3]
    image = Image.fromarray(np.ascontiguousarray(pixels))
    image = image.quantize(palette=_palette(), dither=Image.Dither.NONE)
    file = io.BytesIO()
    image.save(file, format="PNG", optimize=True)
    return Picture(file.getvalue(), image.width // 2, image.height // 2, summary)
