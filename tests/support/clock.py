"""Time as a test may claim it: the processor's, of the calmest run, without the collector's."""

import gc
import time
from collections.abc import Callable


def seconds_of(work: Callable[[], object], *, bar: float = 0.0, runs: int = 4) -> float:
    """The least time `work` took; not run again once it is within `bar`.

    One run measures the garbage of every test before it, and a neighbour on the same core.
    """
    best = float("inf")
    for _ in range(runs):
        gc.collect()
        gc.disable()
        try:
            start = time.process_time()
            work()
            best = min(best, time.process_time() - start)
        finally:
            gc.enable()
        if best < bar:
            break
    return best
