"""What is free is given back to the system, also where something above it is in use."""

import os

from bythebook.server.memory import give_back
from tests.server.event_reader import memory_of


def test_what_is_free_below_something_in_use_is_given_back() -> None:
    used = [b"%1000d" % number for number in range(50_000)]
    del used[:-1]  # glibc gives back by itself what is free above all that is in use
    before = memory_of(os.getpid())
    give_back()
    assert before - memory_of(os.getpid()) > 25_000_000
    assert len(used) == 1
