"""How long does the choice of C take the SVM probe, and what does scikit-learn's search take?

    OMP_NUM_THREADS=1 python benchmarks/svm.py [--n 200 1000 5000] [--classes 7]

Random embeddings of 320 dimensions around a centre for each class. Both search the
same nine values by the same five folds; the run stops if they choose another C.
"""

import argparse
import json
import time

import numpy as np
from sklearn.model_selection import GridSearchCV
from sklearn.svm import SVC

from softclt.probes.classifiers import C_GRID, fit_svm


def main() -> None:
    """Print a line for each number of series."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--n", type=int, nargs="*", default=[200, 1000, 5000])
    parser.add_argument("--classes", type=int, default=7)
    options = parser.parse_args()
    rng = np.random.default_rng(0)
    for n in options.n:
        y = np.arange(n) % options.classes
        R = rng.normal(size=(n, 320)) + rng.normal(0, 0.1, (options.classes, 320))[y]
        start = time.perf_counter()
        own = fit_svm(R, y)
        ours = time.perf_counter() - start
        peer = GridSearchCV(SVC(tol=1e-3, max_iter=10_000_000), {"C": C_GRID}, cv=5).fit(R, y)
        theirs = time.perf_counter() - start - ours
        if peer.best_params_["C"] != own.C:
            raise SystemExit(f"C is {own.C}, scikit-learn's {peer.best_params_['C']}")
        line = {"benchmark": "SVM probe", "n": n, "classes": options.classes, "C": own.C}
        seconds = {"seconds": round(ours, 2), "scikit_learn_seconds": round(theirs, 2)}
        print(json.dumps(line | seconds | {"ratio": round(ours / theirs, 3)}), flush=True)


if __name__ == "__main__":
    main()
