"""Models as ONNX files: written with torch, run without."""

from typing import TYPE_CHECKING, Any

from softclt.export.running import OnnxModel as OnnxModel

if TYPE_CHECKING:
    from softclt.export.graph import ExportError as ExportError
    from softclt.export.writing import export_onnx as export_onnx

_LATER = {"ExportError": "softclt.export.graph", "export_onnx": "softclt.export.writing"}


def __getattr__(name: str) -> Any:
    if name in _LATER:
        from importlib import import_module

        return getattr(import_module(_LATER[name]), name)
    raise AttributeError(f"module 'softclt.export' has no attribute {name!r}")
