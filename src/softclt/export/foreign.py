"""Modules of users as parts of a graph: torch writes them down."""

import copy
import logging
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stdout
from io import StringIO
from typing import Any

import torch
from torch import nn

from softclt.encoders.foreign import TRIED
from softclt.export.graph import OPSET, ExportError, Value
from softclt.silence import without_warnings


def written_by_torch(module: nn.Module, x: Value, n_channels: int) -> Value:
    """What a module from ``(B, D, T)`` to ``(B, T, M)`` makes of x, for any B and T."""
    example = torch.zeros(TRIED[0], n_channels, TRIED[1])
    name = type(module).__name__
    try:
        with torch.no_grad(), _quietly():
            exported = torch.onnx.export(
                copy.deepcopy(module).cpu().float().eval(),
                (example,),
                dynamo=True,
                dynamic_shapes=({0: torch.export.Dim("series"), 2: torch.export.Dim("steps")},),
                opset_version=OPSET,
                verbose=False,
            )
    except Exception as error:  # whatever it is, it is about this module
        reason = str(error).strip().splitlines()
        raise ExportError(
            f"torch cannot write the encoder {name} as ONNX for any number of series and steps: "
            f"{reason[0] if reason else type(error).__name__}"
        ) from error
    model: Any = exported.model_proto  # type: ignore[union-attr]
    if model.functions:
        from onnx import inliner

        model = inliner.inline_local_functions(model)
    return x.graph.include(model.graph, x)


@contextmanager
def _quietly() -> Iterator[None]:
    """What torch says while it writes is not for the user."""
    logger = logging.getLogger("torch.onnx")
    before, logger.disabled = logger.disabled, True
    try:
        with without_warnings(), redirect_stdout(StringIO()):
            yield
    finally:
        logger.disabled = before
