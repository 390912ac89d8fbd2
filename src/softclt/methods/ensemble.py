"""Several embeddings side by side."""

import os
from collections.abc import Mapping, Sequence
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.utils.validation import check_is_fitted

from softclt.methods.embedder import SeriesTransformer
from softclt.methods.learner import RepresentationLearner
from softclt.methods.many import fit_many
from softclt.methods.ts2vec import TS2Vec
from softclt.training import Callback
from softclt.validation import check_random_state_seed, check_range


class EmbeddingEnsemble(SeriesTransformer):
    """The embeddings of several models one after the other, ``(N, n_members * M)``.

    All members are fitted in one go by :func:`softclt.fit_many`. They differ in their seeds, and in
    what ``param_list`` says. Compare an ensemble with an ensemble: more members help by themselves.

    Args:
        estimator: The model that the members are copies of; None is ``TS2Vec()``. Its
            ``random_state`` is the seed from which those of the members are drawn.
        n_members: How many.
        param_list: Parameters that differ, a mapping for each member; fewer are taken in turn.

    Attributes:
        members_: The fitted models.

    Example:
        >>> from softclt.data import waves
        >>> model = TS2Vec(output_dims=8, hidden_dims=4, depth=2, max_iter=2, random_state=0)
        >>> taus = [{"tau_instance": 5.0}, {"tau_instance": 20.0}]
        >>> ensemble = EmbeddingEnsemble(model, n_members=4, param_list=taus)
        >>> ensemble.fit_transform(waves(n_per_class=4, length=30, random_state=0).X_train).shape
        (12, 32)
    """

    members_: list[RepresentationLearner]

    def __init__(
        self,
        estimator: Any = None,
        n_members: int = 4,
        param_list: Sequence[Mapping[str, Any]] | None = None,
    ) -> None:
        self.estimator = estimator
        self.n_members = n_members
        self.param_list = param_list

    def fit(
        self,
        X: Any,
        y: Any = None,
        distances: Any = None,
        times: Any = None,
        checkpoint: str | os.PathLike[str] | None = None,
        callbacks: Sequence[Callback] = (),
    ) -> Self:
        """Learn from series without labels; see the members' ``fit`` for the arguments."""
        members = self.new_members()
        return self.assemble(fit_many(members, X, y, distances, times, checkpoint, callbacks))

    def new_members(self) -> list[RepresentationLearner]:
        """The models that ``fit`` would fit, unfitted: for one `softclt.fit_many` with others."""
        check_range(self.n_members, "n_members", 1)
        if self.param_list is not None and len(self.param_list) == 0:
            raise ValueError("param_list is empty; leave it out, or give parameters for a member")
        model = TS2Vec() if self.estimator is None else self.estimator
        seed = check_random_state_seed(model.random_state)
        seeds = np.random.SeedSequence(seed).generate_state(self.n_members)
        members = []
        for k, own_seed in enumerate(seeds):
            own = self.param_list[k % len(self.param_list)] if self.param_list else {}
            members.append(clone(model).set_params(**{"random_state": int(own_seed), **own}))
        return members

    def assemble(self, members: Sequence[RepresentationLearner]) -> Self:
        """Become the ensemble of fitted members."""
        self.members_ = list(members)
        self.n_features_in_ = self.members_[0].n_features_in_
        return self

    def encode(self, X: Any, level: str = "instance", **options: Any) -> NDArray[np.float32]:
        """Representations at a level, side by side; see the members' ``encode``."""
        check_is_fitted(self, "members_")
        return np.concatenate([m.encode(X, level, **options) for m in self.members_], axis=-1)

    def get_feature_names_out(self, input_features: Any = None) -> NDArray[np.object_]:
        """Names of the dimensions: member0_ts2vec0, ..."""
        check_is_fitted(self, "members_")
        names = [
            f"member{k}_{name}"
            for k, member in enumerate(self.members_)
            for name in member.get_feature_names_out()
        ]
        return np.array(names, dtype=object)
