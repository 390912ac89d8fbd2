"""Which models can take their steps side by side, how many at a time, and what they learn."""

import copy
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

from torch import Tensor

from softclt.identity import settings_key
from softclt.methods.weights import stacked_temporal
from softclt.training.course import Course

if TYPE_CHECKING:
    from softclt.methods.learner import RepresentationLearner

Model = TypeVar("Model", bound="RepresentationLearner")


def stackable(models: Sequence[Model]) -> Iterator[list[Model]]:
    """Models that can be stacked, in the order in which the first of each group was given."""
    groups: dict[Any, list[Model]] = {}
    for i, model in enumerate(models):
        previous = model._previous_training() if model.warm_start else None
        step = None if previous is None else previous.step
        groups.setdefault((stack_key(model) or i, step), []).append(model)
    yield from groups.values()


def stack_key(model: Model) -> tuple[type[Model], str] | None:
    """The same for models that can be stacked; None for one that cannot be with any."""
    if not model._stacks:
        return None
    differing = may_differ(type(model))
    params = model.get_params(deep=False).items()
    shared = {name: value for name, value in params if name not in differing}
    return type(model), settings_key(shared)


def may_differ(kind: type["RepresentationLearner"]) -> frozenset[str]:
    """Parameters in which the models of a stack may differ: what its classes say together."""
    return frozenset().union(*(vars(base).get("_differing", ()) for base in kind.__mro__))


def speaker(models: Sequence[Model]) -> Model:
    """A copy to ask for the loss of a stack; it has no parameter in which the models differ."""
    one = copy.copy(models[0])
    for name in may_differ(type(one)) & set(one.get_params(deep=False)):
        if len({settings_key(getattr(model, name)) for model in models}) > 1:
            delattr(one, name)
    return one


def course_of(models: Sequence[Model], x: Tensor, seeds: Sequence[int]) -> Course:
    """What a stack learns from series x on their device, by its own loss; weights are added."""
    lead = models[0]
    shares = [model._instance_share() for model in models]
    return Course(
        objective=speaker(models)._loss,
        x=x,
        weights=None,
        temporal=stacked_temporal([model._temporal_weights(x) for model in models]),
        lam=shares[0] if len(set(shares)) == 1 else x.new_tensor(shares),
        seeds=seeds,
        batch_size=lead.batch_size,
        max_length=lead.max_train_length,
        layout=lead._layout,
        precision=lead.precision,
    )


def chunks(items: Sequence[int], size: int) -> Iterator[Sequence[int]]:
    """Parts of at most so many."""
    for start in range(0, len(items), size):
        yield items[start : start + size]
