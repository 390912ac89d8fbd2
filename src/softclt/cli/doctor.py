"""``doctor``: what is installed here, what the machine has, and whether it all works."""

import platform
from collections.abc import Callable, Mapping
from importlib.metadata import PackageNotFoundError
from importlib.metadata import version as version_of
from typing import Any

import typer

from softclt.cli import options
from softclt.cli.output import print_json, say, working

CORE = (
    *("torch", "numpy", "scipy", "scikit-learn", "numba", "pandas", "safetensors"),
    *("typer", "rich"),
)

# Extra -> what it is for, and its packages: as in pyproject.toml, which a test compares.
EXTRAS = {
    "data": ("sample data, Parquet files, STL", ("aeon", "pyarrow", "statsmodels")),
    "anomaly": ("the matrix profile", ("stumpy",)),
    "report": ("pictures and pages", ("matplotlib", "jinja2")),
    "tune": ("search for settings", ("optuna",)),
    "ray": ("several machines", ("ray",)),
    "search": ("an index of series", ("lancedb", "pyarrow")),
    "serve": (
        "a model over HTTP",
        ("fastapi", "uvicorn", "prometheus-client", "pyarrow", "jinja2"),
    ),
    "export": ("models as ONNX files", ("onnx", "onnxscript", "onnxruntime")),
}

# Of all that a processor can do, what makes the kernels and the matrix products faster.
_FEATURES = ("avx2", "fma", "avx512f", "avx512bf16", "amx-bf16", "neon", "sve")


def doctor(as_json: options.Json = False) -> None:
    """Something does not work, or you want to report it: see what is installed, and test it.

    Prints versions, processor, GPU, extras, folders of data and the models in the package. Then
    does a few small jobs with known answers, in some seconds. The exit code is 1 if one fails.
    """
    facts = {
        "versions": versions(),
        "machine": {name: _or_error(look) for name, look in _MACHINE.items()},
        "extras": extras(),
        "data": {name: _or_error(look) for name, look in _DATA.items()},
    }
    from softclt.cli.self_test import run_checks

    with working("testing"):
        checks = run_checks()
    ok = all(check.ok for check in checks)
    if as_json:
        print_json({"ok": ok, **facts, "checks": [vars(check) for check in checks]})
    else:
        for heading, found in facts.items():
            say(f"{heading}:")
            for name, value in found.items():
                say(f"  {name:12}  {_in_words(value, name)}")
        say("self-test:")
        for check in checks:
            verdict = "ok" if check.ok else "FAILED"
            say(f"  {check.name:12}  {verdict}: {check.detail} ({check.seconds:.1f} s)")
        say("Everything works." if ok else "Something is broken: see FAILED above.")
    if not ok:
        raise typer.Exit(1)


def versions() -> dict[str, str | None]:
    """Of softclt, of Python and of what softclt always needs; None: it is missing."""
    from softclt import __version__

    found: dict[str, str | None] = {"softclt": __version__, "python": platform.python_version()}
    return found | {name: _version(name) for name in CORE}


def cpu() -> dict[str, Any]:
    """The processor, and which of its instructions the compiled loops can use."""
    from llvmlite import binding

    able = binding.get_host_cpu_features()
    return {
        "system": f"{platform.system()} {platform.machine()}",
        "name": binding.get_host_cpu_name(),
        "features": [name for name in _FEATURES if able.get(name)],
    }


def threads() -> dict[str, int]:
    """How many the process may use, and how many torch and numba take."""
    import numba
    import torch

    from softclt.parallel import worker_count

    return {
        "cores": worker_count(-1),
        "torch": torch.get_num_threads(),
        "numba": numba.get_num_threads(),
    }


def gpu() -> list[str]:
    """Those that torch can use, by name and memory."""
    import torch

    if not torch.cuda.is_available():
        return []
    found = [torch.cuda.get_device_properties(i) for i in range(torch.cuda.device_count())]
    return [f"{one.name}, {one.total_memory / 2**30:.0f} GiB" for one in found]


def extras() -> dict[str, dict[str, Any]]:
    """Each extra: whether it is installed, what it is for, and its packages' versions."""
    found = {}
    for extra, (purpose, packages) in EXTRAS.items():
        own = {package: _version(package) for package in packages}
        found[extra] = {"installed": None not in own.values(), "for": purpose, "packages": own}
    return found


def data_folders() -> dict[str, str]:
    """Folders that SOFTCLT_DATA names, in which data sets are looked for."""
    from softclt.data import data_roots

    return {str(root): "there" if root.is_dir() else "no such folder" for root in data_roots()}


def data_sets() -> int:
    """How many data sets have a name here."""
    from softclt.data import available

    return len(available())


_MACHINE: dict[str, Callable[[], Any]] = {"cpu": cpu, "threads": threads, "gpu": gpu}
_DATA: dict[str, Callable[[], Any]] = {"SOFTCLT_DATA": data_folders, "sets by name": data_sets}


def _version(package: str) -> str | None:
    try:
        return version_of(package)
    except PackageNotFoundError:
        return None


def _or_error(look: Callable[[], Any]) -> Any:
    """What was found; where a package is broken, the error instead."""
    try:
        return look()
    except Exception as error:
        return f"unknown: {type(error).__name__}: {error}"


def _in_words(value: Any, extra: str) -> str:
    """A fact on one line."""
    if isinstance(value, Mapping) and "installed" in value:
        own = [f"{name} {found or 'missing'}" for name, found in value["packages"].items()]
        hint = "" if value["installed"] else f"; pip install 'softclt[{extra}]'"
        return f"{value['for']}: {', '.join(own)}{hint}"
    if isinstance(value, Mapping):
        return ", ".join(f"{name}: {_in_words(own, '')}" for name, own in value.items()) or "none"
    if isinstance(value, list):
        return ", ".join(map(str, value)) or "none"
    return "missing" if value is None else str(value)
