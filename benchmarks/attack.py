"""The library under attack: damaged files, wild calls, kills, full disks, threads, two at a time.

`python benchmarks/attack.py [--scale 1] [--seed 0] [--parts readers,api,...] [--minutes 10]`.
At scale 1 there are 2,000 damaged files of 19 forms, 1,000 calls of everything that is registered,
100 kills spread over the whole runs of seven commands, 40 disks that are full or closed, 24 pairs
of commands at once and 60 groups of threads. `--minutes` ends each part after so many. Cases depend
on the seed and their number alone; `--case readers 17` runs one, with its traceback. Linux.

What counts: *right*, the result that there should be, or the value that the file now says; *refused
clearly*, an error that the library raised with words, a command that ended with 1 or 2 and a line;
*wrong*, all else: another result, a bare traceback, a dead process, no answer for five minutes, of
a command for ten. The exit code is 1 if there is anything wrong.
"""

import argparse
import math
import sys
import tempfile
import time
from functools import partial
from pathlib import Path

from attacks.cases import LEFT_OUT, PATIENCE, REFUSED, RIGHT, WRONG, Run, Tally, run_cases

COMMANDS_PATIENCE = 3600.0  # seconds for some commands, each of which may take ten minutes


def parts(seed: int) -> dict[str, tuple[int, str, Run]]:
    """Cases at scale 1, what they are, and what runs one, by the name of the part."""
    from attacks.api import api_case
    from attacks.processes import COMMANDS, disk_case, kill_case, two_case
    from attacks.readers import FORMS, reader_case
    from attacks.threads import thread_case

    return {
        "readers": (2000, f"damaged files of {len(FORMS)} forms", partial(reader_case, seed)),
        "api": (1000, "calls of everything registered", partial(api_case, seed)),
        "kills": (100, f"kills of {', '.join(COMMANDS)}", partial(kill_case, seed)),
        "disks": (40, "full and closed disks", partial(disk_case, seed)),
        "two": (24, "two commands at once", partial(two_case, seed)),
        "threads": (60, "groups of threads", partial(thread_case, seed)),
    }


def main() -> int:
    """Run the campaign and print its table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--scale", type=float, default=1.0)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--minutes", type=float, default=math.inf, help="at most, of each part")
    parser.add_argument("--parts", default="")
    parser.add_argument("--case", nargs=2, metavar=("PART", "NUMBER"))
    parser.add_argument("--details", type=int, default=30, help="wrong cases that are told")
    asked = parser.parse_args()
    known = parts(asked.seed)
    if asked.case:
        name, number = asked.case
        with tempfile.TemporaryDirectory() as folder:
            print(known[name][2](int(number), Path(folder)))
        return 0
    print(f"scale {asked.scale:g}, seed {asked.seed}\n")
    print(f"| attack | tried | {RIGHT} | {REFUSED} | {WRONG} | {LEFT_OUT} | seconds |")
    print("|---|---:|---:|---:|---:|---:|---:|", flush=True)
    details, wrong = [], 0
    for name in asked.parts.split(",") if asked.parts else known:
        number, words, run = known[name]
        tally, began = Tally(), time.monotonic()
        numbers = list(range(max(1, round(asked.scale * number))))
        patience = COMMANDS_PATIENCE if name in ("kills", "disks", "two") else PATIENCE
        run_cases(name, run, numbers, tally, patience, began + 60 * asked.minutes)
        counts, seconds = tally.counts, time.monotonic() - began
        cells = [counts[RIGHT], counts[REFUSED], counts[WRONG], counts[LEFT_OUT]]
        row = " | ".join(map(str, [sum(cells), *cells]))
        print(f"| {words} | {row} | {seconds:.0f} |", flush=True)
        details += tally.details[: asked.details]
        wrong += counts[WRONG]
    print("".join(f"\n{line}" for line in details))
    return int(wrong > 0)


if __name__ == "__main__":
    sys.exit(main())
