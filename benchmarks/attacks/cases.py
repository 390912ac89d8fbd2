"""A case, what may come of it, and how many are run so that none takes the others down."""

import math
import multiprocessing
import os
import shutil
import tempfile
import time
import traceback
from collections.abc import Callable
from dataclasses import dataclass, field
from multiprocessing.connection import Connection
from pathlib import Path

RIGHT, REFUSED, WRONG, LEFT_OUT = "right", "refused clearly", "wrong", "left out"
_OUTCOMES = (RIGHT, REFUSED, WRONG, LEFT_OUT)
PATIENCE = 300.0  # seconds after which a case hangs: other packages compile in it

#: A case by its number: gives RIGHT or REFUSED, or raises; what raises unclearly is wrong.
Run = Callable[[int, Path], str]

_FORK = multiprocessing.get_context("fork")  # nothing has computed yet: no threads to lose
_CLEAR = (ValueError, TypeError, OSError, ImportError, FloatingPointError)
_SPEAKERS = ("softclt", "sklearn")


class WrongError(Exception):
    """What must not be: another result than the right one, or no clear word."""


class LeftOutError(Exception):
    """A case that this machine cannot try, and why."""


@dataclass
class Tally:
    """What came of the cases of a part."""

    counts: dict[str, int] = field(default_factory=lambda: dict.fromkeys(_OUTCOMES, 0))
    details: list[str] = field(default_factory=list)

    def add(self, part: str, number: int, outcome: str, detail: str) -> None:
        """Count a case; what is wrong or left out is told."""
        self.counts[outcome] += 1
        if outcome in (WRONG, LEFT_OUT):
            self.details.append(f"{part} {number}: {outcome}: {detail}")


def is_clear(error: BaseException) -> bool:
    """Whether the library, or scikit-learn's checks, meant an error and gave it words."""
    frames = traceback.extract_tb(error.__traceback__)
    if not isinstance(error, _CLEAR) or not frames or not str(error):
        return False
    if isinstance(error, OSError) and error.strerror:
        return True
    frame = frames[-1]
    spoken = any(f"{os.sep}{name}{os.sep}" in frame.filename for name in _SPEAKERS)
    return spoken and (frame.line or "").startswith("raise")


def outcome_of(run: Run, number: int, folder: Path) -> tuple[str, str]:
    """What comes of a case, and a detail where it is not as it should be."""
    try:
        return run(number, folder), ""
    except WrongError as error:
        return WRONG, str(error)
    except LeftOutError as error:
        return LEFT_OUT, str(error)
    except BaseException as error:
        if is_clear(error):
            return REFUSED, ""
        place = traceback.extract_tb(error.__traceback__)[-1]
        where = f"{Path(place.filename).name}:{place.lineno}"
        return WRONG, f"{type(error).__name__} in {where}: {' '.join(str(error).split())[:200]}"


def run_cases(
    part: str,
    run: Run,
    numbers: list[int],
    tally: Tally,
    patience: float = PATIENCE,
    until: float = math.inf,
) -> None:
    """Run cases in a process; where it dies or hangs the case is wrong, and another one goes on.

    Args:
        part: Of the campaign.
        run: Runs a case.
        numbers: Of the cases.
        tally: Gets what comes of them.
        patience: Seconds after which a case hangs.
        until: When no other case is begun, by `time.monotonic`.
    """
    left = list(numbers)
    while left:
        here, there = _FORK.Pipe()
        worker = _FORK.Process(target=_work, args=(run, list(left), there, until), daemon=True)
        worker.start()
        there.close()
        while left:
            try:
                if not here.poll(patience):
                    raise TimeoutError
                if (answer := here.recv()) is None:
                    worker.join()
                    return
            except (EOFError, OSError) as error:
                worker.kill()
                worker.join()
                what = "hangs" if isinstance(error, TimeoutError) else f"exit {worker.exitcode}"
                tally.add(part, left.pop(0), WRONG, f"the process {what}")
                break
            left.remove(answer[0])
            tally.add(part, *answer)
        worker.join(patience)


def _work(run: Run, numbers: list[int], answers: Connection, until: float) -> None:
    import torch

    torch.set_num_threads(1)
    quiet = os.open(os.devnull, os.O_WRONLY)
    for stream in (1, 2):
        os.dup2(quiet, stream)
    base = Path(tempfile.mkdtemp(prefix="attack-"))
    try:
        for number in numbers:
            if time.monotonic() > until:
                answers.send(None)
                break
            folder = base / str(number)
            folder.mkdir()
            answers.send((number, *outcome_of(run, number, folder)))
            shutil.rmtree(folder, ignore_errors=True)
    finally:
        shutil.rmtree(base, ignore_errors=True)
