"""What the load bench counts, without a server."""

from __future__ import annotations

from itertools import islice

import pytest
from bench.load import Answers, unheard, weigh


def test_what_queueing_explains_is_not_held_against_the_server() -> None:
    perfect = weigh(100, Answers([1.0] * 100, 0, 1.0, 2.0, 0.5), service_ms=20, cores=2)
    assert perfect.over_queueing == 1.0
    assert perfect.per_second == 100
    assert (perfect.cpu_ms, perfect.busy_cores, perfect.others_cores) == (20, 2, 0.5)
    slower = Answers([1.5] * 100, 0, 1.5, 3.0, 0.0)
    assert weigh(100, slower, service_ms=20, cores=2).over_queueing == 1.5


@pytest.mark.parametrize("clients", [1, 2])
def test_fewer_clients_than_cores_do_not_queue(clients: int) -> None:
    found = Answers([0.02] * 9, 0, 1.0, 0.2, 0.0)
    assert weigh(clients, found, service_ms=20, cores=2).over_queueing == 1.0


def test_every_question_is_asked_in_letters_of_its_own() -> None:
    asked = list(islice(unheard(["What is a kite?", "And a kettle?"]), 50))
    assert len(set(asked)) == 50
    assert {" ".join(question.split()) for question in asked} == {
        "What is a kite?",
        "And a kettle?",
    }
