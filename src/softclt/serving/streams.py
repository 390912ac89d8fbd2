"""Series that are followed step by step, each by the id that its requests name."""

import math
import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from softclt.serving.limits import Limits, Refusal
from softclt.validation import Floats

Step = tuple[int, float, bool]  # number, score, whether it is an alarm


@dataclass
class _Followed:
    stream: Any
    steps: int = 0
    last: float = 0.0


class Streams:
    """The streams of a server: at most so many, each with memory that does not grow.

    Args:
        new: Makes a stream, whose ``push`` gives score and alarm of a step.
        limits: Of the server.
        clock: Seconds.
    """

    def __init__(
        self, new: Callable[[], Any], limits: Limits, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._new, self._limits, self._clock = new, limits, clock
        self._followed: OrderedDict[str, _Followed] = OrderedDict()  # the longest idle first

    def __len__(self) -> int:
        return len(self._followed)

    def push(self, name: str, series: Floats) -> list[Step]:
        """Number, score (NaN: none) and alarm of the steps that can be judged now.

        These are the steps of ``(D, T)``, which come next; or, where scores come some steps behind,
        as many steps from so far before.
        """
        followed = self._followed.get(name) or self._begin(name)
        followed.last = self._clock()
        self._followed.move_to_end(name)
        delay = getattr(followed.stream, "delay", 0)
        found = []
        for x in series.T:
            score, alarm = followed.stream.push(x)
            if followed.steps >= delay:
                found.append((followed.steps - delay, float(score), alarm))
            followed.steps += 1
        return found

    def end(self, name: str) -> bool:
        """Forget a stream; whether there was one."""
        return self._followed.pop(name, None) is not None

    def _begin(self, name: str) -> _Followed:
        if len(self._followed) >= self._limits.streams:
            oldest, followed = next(iter(self._followed.items()))
            left = self._limits.idle - (self._clock() - followed.last)
            if left > 0:
                raise Refusal(
                    503,
                    f"all {self._limits.streams} streams are in use; end one by DELETE "
                    f"/detect?stream=ID, or wait until one is idle for {self._limits.idle:g} s",
                    {"retry-after": str(math.ceil(left))},
                )
            self.end(oldest)
        followed = self._followed[name] = _Followed(self._new())
        return followed
