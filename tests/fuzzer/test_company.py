"""How others on a server are told from ourselves, with a server whose counters the test turns."""

from __future__ import annotations

import pytest

from fuzzer.company import Company, Sighting
from fuzzer.servers.protocol import Occupant, Request, Use
from oracles.observations import Observation, Position
from scenarios.environment import AdapterScale
from scenarios.operations import Operation, Other, SetScales

ASKED = Request((5, 6, 7, 8), 1)
ANSWER = Observation([Position(9, [])], reused=3, computed=1, slot=0)


class Turned(Use):
    """Tells what the test says; ``late`` counts are shown one reading later, as where counters lag."""

    told_by = "the test"

    def __init__(self, work: int | None = 0) -> None:
        self.done = work
        self.late = 0
        self.slots = (Occupant(1, 20), Occupant(2, 20))
        self.scale = "1"

    def environment(self) -> dict[str, str]:
        return {"scale": self.scale}

    def after(self, operation: Operation) -> dict[str, str]:
        return {"scale": f"{operation.scales[0].scale:g}"} if isinstance(operation, SetScales) else {}

    def work(self) -> int | None:
        shown = self.done
        if self.done is not None:
            self.done, self.late = self.done + self.late, 0
        return shown

    def occupants(self) -> tuple[Occupant, ...]:
        return self.slots


@pytest.fixture
def told() -> list[Sighting]:
    return []


def watching(use: Use, told: list[Sighting]) -> Company:
    company = Company(told.append)
    company.meet(use)
    return company


def test_our_own_requests_are_nobody_else(told: list[Sighting]) -> None:
    use = Turned()
    company = watching(use, told)
    for _ in range(3):
        use.done = 1 + (use.done or 0)
        company.asked(ASKED, ANSWER)
    assert company.count().requests == 0
    assert not told


def test_counters_that_lag_are_nobody_else(told: list[Sighting]) -> None:
    use = Turned()
    company = watching(use, told)
    use.late = 1
    company.asked(ASKED, ANSWER)
    assert company.count().requests == 0
    assert company.count().requests == 0


def test_an_abort_that_was_not_counted_hides_nobody_for_long(told: list[Sighting]) -> None:
    use = Turned()
    company = watching(use, told)
    company.asked(ASKED, None)
    assert company.count().requests == 0
    use.done = 1
    assert (company.count().requests, company.count().work) == (1, 1)


def test_more_than_we_asked_for_is_somebody_else(told: list[Sighting]) -> None:
    use = Turned()
    company = watching(use, told)
    use.done = 5
    company.asked(ASKED, ANSWER)
    assert (company.count().requests, company.count().work) == (1, 4)
    use.done = 6
    assert company.count().requests == 2
    assert len(told) == 1


def test_work_of_other_kinds_is_not_held_against_anybody(told: list[Sighting]) -> None:
    use = Turned()
    company = watching(use, told)
    company.did(Other())
    use.done = 7
    assert company.count().requests == 0


@pytest.mark.parametrize(
    ("occupant", "strange"),
    [
        (Occupant(3, 4), False),
        (Occupant(3, 0), False),
        (Occupant(3, None), False),
        (Occupant(3, 40), True),
    ],
)
def test_the_last_request_of_a_slot(told: list[Sighting], occupant: Occupant, strange: bool) -> None:
    use = Turned(work=None)
    company = watching(use, told)
    company.asked(ASKED, ANSWER)
    use.slots = (occupant, use.slots[1])
    assert bool(company.count().requests) == strange


def test_a_slot_that_we_did_not_use(told: list[Sighting]) -> None:
    use = Turned(work=None)
    company = watching(use, told)
    company.asked(ASKED, ANSWER)
    use.slots = (Occupant(3, 4), Occupant(4, 4))
    assert company.count().requests == 1


def test_what_others_set_is_seen_before_we_overwrite_it(told: list[Sighting]) -> None:
    use = Turned()
    company = watching(use, told)
    ours = SetScales((AdapterScale(0, 1.0),))
    use.scale = "0.5"
    company.about_to(ours)
    use.scale = "1"
    company.did(ours)
    assert company.look()
    assert not company.look()
    assert [sighting.why for sighting in told] == ["somebody else changed scale from 1 to 0.5"]
    assert company.changed == {"scale": 1}


def test_what_we_set_ourselves_is_nobody_else(told: list[Sighting]) -> None:
    use = Turned()
    company = watching(use, told)
    ours = SetScales((AdapterScale(0, 0.5),))
    company.about_to(ours)
    use.scale = "0.5"
    company.did(ours)
    assert not company.look()
    assert not told


@pytest.mark.parametrize("in_part", [False, True])
def test_what_the_server_refused_to_set_is_nobody_else(told: list[Sighting], in_part: bool) -> None:
    use = Turned()
    company = watching(use, told)
    operation = SetScales((AdapterScale(0, 0.5),))
    company.about_to(operation)
    use.scale = "0.5" if in_part else use.scale
    company.did(operation, done=False)
    assert not company.look()
    assert told == []
