"""Figures show what they are given."""

import subprocess
import sys

import numpy as np
import pytest

from softclt.reports import figures

pytest.importorskip("matplotlib")


@pytest.fixture
def ax():
    return figures.new_figure(3, 3).subplots()


def test_the_heat_map_sorts_series_by_class_and_leaves_the_diagonal_out_of_its_scale(ax):
    weights = np.array([[1.0, 0.1, 0.4], [0.1, 1.0, 0.2], [0.4, 0.2, 1.0]])
    image = figures.assignment_heatmap(ax, weights, np.array([0, 1, 0]), ["up", "down"])
    shown = np.asarray(image.get_array())
    np.testing.assert_allclose(shown[0], [1.0, 0.4, 0.1])  # series 0, 2, 1
    assert image.get_clim() == (0.0, 0.4)
    assert [label.get_text() for label in ax.get_yticklabels()] == ["up", "down"]


def test_hard_assignments_can_be_drawn(ax):
    assert figures.assignment_heatmap(ax, np.eye(3)).get_clim() == (0.0, 1.0)


def test_a_matrix_that_is_not_square_is_refused(ax):
    with pytest.raises(ValueError, match=r"shape \(2, 3\); expected \(N, N\)"):
        figures.assignment_heatmap(ax, np.ones((2, 3)))


def test_the_scatter_has_every_series_and_names_every_class(ax, rng):
    labels = np.array([0, 1, 1, 2, 2, 2])
    figures.embedding_scatter(ax, rng.normal(size=(6, 8)), labels, ["a", "b", "c"])
    assert [len(points.get_offsets()) for points in ax.collections] == [1, 2, 3]
    assert [text.get_text() for text in ax.get_legend().get_texts()] == ["a", "b", "c"]


@pytest.mark.parametrize("projection", ["pca", "tsne"])
def test_a_projection_repeats_itself(projection, rng):
    R = rng.normal(size=(12, 5))
    first, second = (figures.project(R, projection, seed=1) for _ in range(2))
    assert first.shape == (12, 2)
    np.testing.assert_array_equal(first, second)


def test_bad_projections_are_refused(rng):
    with pytest.raises(ValueError, match="projection is 'umap'; expected one of 'pca', 'tsne'"):
        figures.project(rng.normal(size=(5, 3)), "umap")
    with pytest.raises(ValueError, match="at least 3"):
        figures.project(np.ones((2, 3)))


def test_soft_and_hard_are_panels_of_one_picture(tmp_path, rng):
    labels = np.arange(8) % 2
    embeddings = {"hard": rng.normal(size=(8, 4)), "soft": rng.normal(size=(8, 4))}
    figure = figures.soft_and_hard_figure(np.eye(8), labels, embeddings, labels, ["a", "b"])
    titles = [ax.get_title() for ax in figure.axes]
    assert titles[:3] == ["soft assignments of a batch of 8", "hard", "soft"]
    path = tmp_path / "new" / "figure.png"
    figures.save_figure(figure, path, dpi=40)
    assert path.read_bytes().startswith(b"\x89PNG")
    assert [p.name for p in path.parent.iterdir()] == ["figure.png"]


@pytest.mark.slow
def test_figures_need_no_pyplot():
    code = (
        "import sys; from softclt.reports import figures; "
        "figures.new_figure(1, 1); sys.exit('matplotlib.pyplot' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


@pytest.mark.parametrize("suffix", ["svg", "pdf", "png"])
def test_the_same_figure_is_the_same_file(tmp_path, suffix):
    for name in ("one", "other"):
        figure = figures.new_figure(2, 2)
        figure.subplots().plot([1.0, 2.0])
        figures.save_figure(figure, tmp_path / f"{name}.{suffix}")
    one, other = (tmp_path / f"{name}.{suffix}" for name in ("one", "other"))
    assert one.read_bytes() == other.read_bytes()
