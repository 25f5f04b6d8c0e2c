"""Free memory is returned to the system, also below memory that is in use."""

import os

from bythebook.server.memory import trim_heap
from tests.server.event_reader import memory_of


def test_free_memory_below_memory_in_use_is_returned_to_the_system() -> None:
    used = [b"%1000d" % number for number in range(50_000)]
    del used[:-1]  # by itself, glibc returns only free memory at the top of the heap
    before = memory_of(os.getpid())
    trim_heap()
    assert before - memory_of(os.getpid()) > 25_000_000
    assert len(used) == 1
