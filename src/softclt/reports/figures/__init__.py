"""Pictures with matplotlib: functions that take data or fitted models and return a Figure."""

from softclt.reports.figures.assignments import (
    assignment_curves,
    assignment_heatmap,
    pooled_hierarchy,
    temporal_designs,
)
from softclt.reports.figures.gallery import Picture, draw, figures, figures_for_page
from softclt.reports.figures.instances import (
    instance_maps,
    neighbourhood_maps,
    soft_and_hard_figure,
)
from softclt.reports.figures.layers import distance_matrices, layer_distances
from softclt.reports.figures.projection import embedding_scatter, project
from softclt.reports.figures.shares import label_curves, share_figure
from softclt.reports.figures.study import Study
from softclt.reports.figures.style import new_figure, save_figure, style
from softclt.reports.figures.timestamps import (
    phases,
    series_and_timestamps,
    timestamps_over_training,
)
from softclt.reports.figures.training import snapshots, training_curves

__all__ = [
    "Picture",
    "Study",
    "assignment_curves",
    "assignment_heatmap",
    "distance_matrices",
    "draw",
    "embedding_scatter",
    "figures",
    "figures_for_page",
    "instance_maps",
    "label_curves",
    "layer_distances",
    "neighbourhood_maps",
    "new_figure",
    "phases",
    "pooled_hierarchy",
    "project",
    "save_figure",
    "series_and_timestamps",
    "share_figure",
    "snapshots",
    "soft_and_hard_figure",
    "style",
    "temporal_designs",
    "timestamps_over_training",
    "training_curves",
]
