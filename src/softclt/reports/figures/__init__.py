"""Pictures with matplotlib: functions that take data or fitted models and return a Figure."""

from softclt.reports.figures.assignments import assignment_curves as assignment_curves
from softclt.reports.figures.assignments import assignment_heatmap as assignment_heatmap
from softclt.reports.figures.assignments import pooled_hierarchy as pooled_hierarchy
from softclt.reports.figures.assignments import temporal_designs as temporal_designs
from softclt.reports.figures.gallery import Picture as Picture
from softclt.reports.figures.gallery import draw as draw
from softclt.reports.figures.gallery import figures as figures
from softclt.reports.figures.gallery import figures_for_page as figures_for_page
from softclt.reports.figures.instances import instance_maps as instance_maps
from softclt.reports.figures.instances import neighbourhood_maps as neighbourhood_maps
from softclt.reports.figures.instances import soft_and_hard_figure as soft_and_hard_figure
from softclt.reports.figures.layers import distance_matrices as distance_matrices
from softclt.reports.figures.layers import layer_distances as layer_distances
from softclt.reports.figures.projection import embedding_scatter as embedding_scatter
from softclt.reports.figures.projection import project as project
from softclt.reports.figures.shares import label_curves as label_curves
from softclt.reports.figures.shares import share_figure as share_figure
from softclt.reports.figures.study import Study as Study
from softclt.reports.figures.style import new_figure as new_figure
from softclt.reports.figures.style import save_figure as save_figure
from softclt.reports.figures.style import style as style
from softclt.reports.figures.timestamps import phases as phases
from softclt.reports.figures.timestamps import series_and_timestamps as series_and_timestamps
from softclt.reports.figures.timestamps import timestamps_over_training as timestamps_over_training
from softclt.reports.figures.training import snapshots as snapshots
from softclt.reports.figures.training import training_curves as training_curves
