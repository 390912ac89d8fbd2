"""How all pictures look: one style, colours that survive grey print, figures without pyplot."""

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

import numpy as np

from softclt.files import whole_file
from softclt.optional import needed
from softclt.plaintext import visible

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.colors import Colormap
    from matplotlib.figure import Figure

# Okabe and Ito's, for any kind of colour vision; without their yellow, too light on white paper.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#56B4E9", "#E69F00", "#000000")
MARKERS = ("o", "s", "^", "D", "v", "P")  # six beside seven colours: 42 pairs before one repeats
DASHES: tuple[Any, ...] = ("-", (0, (6, 2)), (0, (1, 1.2)), (0, (6, 1.5, 1, 1.5)), (0, (3, 1)))
SEQUENTIAL = "viridis"  # grows in lightness, so it has the same order in grey
CLOSENESS = "viridis_r"  # bright is close, as in the paper

_STYLE = {
    "font.size": 8.5,
    "axes.titlesize": 8.5,
    "axes.labelsize": 8.5,
    "xtick.labelsize": 7.5,
    "ytick.labelsize": 7.5,
    "legend.fontsize": 7.5,
    "legend.title_fontsize": 7.5,
    "legend.frameon": False,
    "figure.titlesize": 9.5,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.linewidth": 0.7,
    "xtick.major.width": 0.7,
    "ytick.major.width": 0.7,
    "lines.linewidth": 1.4,
    "image.interpolation": "nearest",
    "pdf.fonttype": 42,  # letters stay letters
    "savefig.dpi": 150,
    "svg.hashsalt": "softclt",  # the same figure is the same file
    "text.parse_math": False,  # a dollar in a name of the user is a dollar
}
_WITHOUT_DATE = {".svg": {"Date": None}, ".pdf": {"CreationDate": None}}


@contextmanager
def style() -> Iterator[None]:
    """The look of all pictures while it lasts; the caller's rcParams are as before afterwards.

    Functions that draw wear it as a decorator.
    """
    with _matplotlib().rc_context(_STYLE):
        yield


def new_figure(width: float, height: float) -> "Figure":
    """A figure that needs no display and leaves pyplot's state alone; sizes in inches."""
    _matplotlib()
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, height), layout="constrained")
    FigureCanvasAgg(figure)
    return figure


@style()
def save_figure(figure: "Figure", path: str | os.PathLike[str], dpi: int = 150) -> None:
    """Write a figure whole or not at all; the suffix decides the format."""
    with whole_file(path) as temporary:
        figure.savefig(temporary, dpi=dpi, metadata=_WITHOUT_DATE.get(Path(path).suffix))
        if Path(path).suffix == ".svg":  # XML has no room for control characters
            text = temporary.read_text(encoding="utf-8")
            temporary.write_text(visible(text), encoding="utf-8")


def colours_of_points() -> "Colormap":
    """The sequential colours without their lightest tenth, which white paper swallows."""
    from matplotlib import colormaps
    from matplotlib.colors import ListedColormap

    return ListedColormap(colormaps[SEQUENTIAL](np.linspace(0, 0.9, 256)))


def without_scales(ax: "Axes") -> None:
    """Leave a faint frame only, where coordinates mean nothing."""
    ax.set_xticks([])
    ax.set_yticks([])
    ax.spines[:].set(visible=True, color="0.85", linewidth=0.6)


def legend_name(name: str) -> str:
    """A name as a legend shows it: matplotlib leaves out those that begin with an underscore."""
    return f" {name}" if name.startswith("_") else name


def class_name(label: Any, classes: Sequence[str] | None) -> str:
    """The name of a label; the label itself where classes have no names."""
    return str(label) if classes is None else str(classes[int(label)])


def _matplotlib() -> ModuleType:
    with needed("figures need matplotlib: pip install 'softclt[report]'"):
        import matplotlib
    return matplotlib
