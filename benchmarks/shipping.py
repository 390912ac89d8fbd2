"""Put a pre-trained model into the package, with what it is, its licence and its scores.

    softclt pretrain base --out model/
    python benchmarks/shipping.py model/ base-1
    softclt bench pretrained --data archives/
    python benchmarks/shipping.py base-1 base-1 --results results/pretrained.jsonl

The state of its training and the losses of its steps stay behind. Called again with results, it
writes the scores of the weights that are there already into their manifest.
"""

import argparse
from pathlib import Path
from typing import Any

import numpy as np

import softclt.pretrained
from softclt.persistence import read_model, write_model
from softclt.pretrained.shelf import folder_of, manifest_of, write_manifest
from softclt.tasks import read_results

_LICENCE = {
    "weights": "Apache-2.0",
    "UCR and UEA sets": "of their donors; most state none",
    "WTH": "public, as published with Informer",
    "KPI": "MIT",
    "NAB": "MIT",
    "synthetic series": "made by softclt, Apache-2.0",
}
_READ = {"{} · svm": "compact with an SVM", "{}, rich": "rich with a ridge"}


def main() -> None:
    """Copy, and write the manifest."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("model", help="Folder that softclt pretrain wrote, or a name.")
    parser.add_argument("name", help="With its version, as base-1.")
    parser.add_argument("--results", type=Path, help="Lines of the suite pretrained.")
    options = parser.parse_args()
    seen = manifest_of(options.model)["corpus"]
    target = Path(softclt.pretrained.__file__).parent / options.name
    if folder_of(options.model) != target:
        config, tensors = read_model(folder_of(options.model))
        ship(target, config, tensors)
    sources = _LICENCE if seen["sets"] else ("weights", "synthetic series")
    licence = {source: _LICENCE[source] for source in sources}
    facts: dict[str, Any] = {"about": about(seen), "licence": licence}
    if options.results is not None:
        facts["scores"] = scores(options.results, options.name.rsplit("-", 1)[0])
    write_manifest(target, seen, **facts)
    print(softclt.pretrained.about(options.name))


def ship(target: Path, config: dict[str, Any], tensors: dict[str, Any]) -> None:
    """Write a model without the state of its training."""
    kept = ("method", "params", "fitted", "training", "fingerprint", "versions")
    config = {key: config[key] for key in kept} | {"training": False}
    seconds = config["fitted"]["history"]["seconds"]
    config["fitted"] = config["fitted"] | {"history": {"seconds": seconds}}
    write_model(target, config, tensors, [])


def about(seen: dict[str, Any]) -> str:
    """What it was trained on."""
    real = sum(one["series"] for one in seen["sets"])
    made = f"{seen['asked'].get('synthetic', {}).get('count', 0):,} synthetic series"
    if not real:
        return f"Trained on {made} alone."
    return f"Trained on {real:,} series of {len(seen['sets'])} sets and {made}."


def scores(path: Path, name: str) -> dict[str, float]:
    """Mean accuracies in per cent, of either read-out on either archive."""
    found = {}
    results = [result for result in read_results(path) if not result.error]
    for configuration, read in _READ.items():
        for archive in ("ucr", "uea"):
            accuracy = {
                result.dataset: 100 * result.metrics["accuracy"]
                for result in results
                if result.configuration == configuration.format(name)
                and result.dataset.startswith(f"{archive}/")
            }
            if not accuracy:
                raise SystemExit(
                    f"no line of {configuration.format(name)!r} on {archive} in {path}"
                )
            what = f"{read} on {len(accuracy)} {archive.upper()} sets"
            found[what] = round(float(np.mean(list(accuracy.values()))), 1)
    return found


if __name__ == "__main__":
    main()
