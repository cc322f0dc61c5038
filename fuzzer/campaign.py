"""Exploration: rounds of generated plans on both servers, until one diverges or enough was done."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from hypothesis import HealthCheck, Phase, given, seed, settings, target
from hypothesis import strategies as st
from hypothesis.configuration import set_hypothesis_home_dir

from fuzzer.differential import Differential, Outcome, Pending
from fuzzer.models.model_cache import cache_root
from fuzzer.opening import Known, Opening
from fuzzer.steady_draws import steady_draws
from oracles.reach import RARE, situations
from scenarios.blocking import blocked
from scenarios.capabilities import Capabilities
from scenarios.plans import Plan
from scenarios.scenario import Scenario
from scenarios.strategies import plans

_PLANS_A_ROUND = 12
_FIRST_PLANS = 8
"""Of a scenario's first round: most bugs need few plans of the right scenario, and there are a dozen of those."""
_SLOW = 0.5
"""Share of them in a round whose plans have operations of a second or more."""
_OPENED_EVERY = 16
"""Rounds, of which an opening takes the time of one or two."""

# Hypothesis keeps what it learnt of local source files; a user's working folder is no place for that.
set_hypothesis_home_dir(cache_root().parent / "hypothesis")


class _Leave(BaseException):
    """Leaves a Hypothesis test from inside; a silent pass would make Hypothesis call the test flaky.

    Its cause is what stops the run; it has none where a suspect, or the end of the time, does.
    """


class Exploration:
    """Draws and runs plans. ``seed`` decides the plans; only the clock decides how many of them run.

    ``known`` holds the necessary elements of each bug found so far; the caller adds to it. Without an ``opening`` all
    plans are drawn.
    """

    def __init__(
        self,
        differential: Differential,
        scenarios: Sequence[Scenario],
        seed: int,
        known: Sequence[Sequence[str]],
        *,
        enough: Callable[[], bool],
        ran: Callable[[Pending], None],
        opening: Opening | None = None,
    ) -> None:
        self._differential = differential
        self._scenarios = scenarios
        self._seed = seed
        self._known = known
        self._enough = enough
        self._ran = ran
        self._opening = opening
        self._round = 0
        self._ahead = self._opened()
        """What is left of the opening."""
        self._ahead = self._opened()

    def next_suspect(self, rounds: int | None = None) -> tuple[Outcome, Scenario] | None:
        """Go on until a plan diverges; None when enough was done, or after that many rounds in all."""
        while not self._enough() and (rounds is None or self._round < rounds):
            suspected = self._run_opening()
            if suspected is not None:
                return suspected
            scenario = self._scenarios[self._round % len(self._scenarios)]
            outcome = self._run_round(scenario)
            self._round += 1
            self._ahead = self._opened()
            if outcome is not None:
                return outcome, scenario
        return None

    @property
    def _round_seed(self) -> int:
        return self._seed * 1_000_003 + self._round

    @property
    def _capabilities(self) -> Capabilities:
        return self._differential.target.server.capabilities

    def _opened(self) -> list[Known]:
        """The opening that comes before the round at hand; empty before most."""
        if self._opening is None or self._round % _OPENED_EVERY:
            return []
        return self._opening.drawn(self._scenarios, self._capabilities, random.Random(self._round_seed))

    def _run_opening(self) -> tuple[Outcome, Scenario] | None:
        """What is left of the opening, up to the first plan that diverges."""
        attempt = _Round(self._differential, self._enough, self._ran)
        with attempt.left():
            for known in self._ahead:
                attempt.step(known.plan)
            attempt.settle()
        if attempt.suspect is None:
            self._ahead = []
            return None
        at = [known.plan for known in self._ahead].index(attempt.suspect.plan)
        wrong, self._ahead = self._ahead[at], self._ahead[at + 1 :]
        assert self._opening is not None
        self._opening.diverged(wrong)
        return attempt.suspect, wrong.scenario

    def _run_round(self, scenario: Scenario) -> Outcome | None:
        round_seed = self._round_seed
        rng = random.Random(round_seed)
        capabilities = self._capabilities
        profile = blocked(scenario.profile(rng, capabilities), self._known, rng)
        attempt = _Round(self._differential, self._enough, self._ran)
        most = _FIRST_PLANS if self._round < len(self._scenarios) else _PLANS_A_ROUND
        if set(profile.kinds) & set(capabilities.slow):
            most = int(most * _SLOW)
        with attempt.left():
            _drawn(plans(profile), round_seed, attempt.steered_step, most)
            attempt.settle()
        return attempt.suspect


class _Round:
    """Runs the plans of one round, each while the reference still answers the one before it.

    A plan is judged one plan later, always: with a verdict that came when it came, the same seed would not give the
    same run.
    """

    def __init__(self, differential: Differential, enough: Callable[[], bool], ran: Callable[[Pending], None]) -> None:
        self._differential = differential
        self._enough = enough
        self._ran = ran
        self._pending: Pending | None = None
        self.suspect: Outcome | None = None

    @contextmanager
    def left(self) -> Iterator[None]:
        """Within, the round may be left from inside; what stopped the run is raised."""
        try:
            yield
        except _Leave as leave:
            if leave.__cause__ is not None:
                raise leave.__cause__ from None

    def step(self, plan: Plan, begun: Callable[[Pending], None] = lambda pending: None) -> None:
        """Run a plan, then judge the one before it."""
        if self._enough():
            self.settle()
            raise _Leave
        before, self._pending = self._pending, self._differential.begin(plan)
        self._ran(self._pending)
        begun(self._pending)
        self._judge(before)

    def steered_step(self, plan: Plan) -> None:
        """The same inside of a Hypothesis test."""
        self.step(plan, _steer)

    def settle(self) -> None:
        """Judge the plan that still waits."""
        before, self._pending = self._pending, None
        self._judge(before)

    def _judge(self, pending: Pending | None) -> None:
        if pending is None:
            return
        outcome = pending.outcome()
        if outcome.suspects and self.suspect is None:
            self.suspect = outcome
            self.settle()
            raise _Leave


def _steer(pending: Pending) -> None:
    """Tell Hypothesis how often a plan met each situation that is rarely met."""
    met = [situation for _, situation in situations(pending.plan.operations, pending.ours)]
    for situation in RARE:
        target(float(met.count(situation)), label=situation)


def _drawn(strategy: st.SearchStrategy[Plan], round_seed: int, step: Callable[[Plan], None], most: int) -> None:
    """Call ``step`` with ``most`` plans. Hypothesis neither shrinks nor remembers here: see triage.reduce."""

    @settings(
        max_examples=most,
        database=None,
        deadline=None,
        phases=(Phase.generate, Phase.target),
        suppress_health_check=list(HealthCheck),
        print_blob=False,
    )
    @seed(round_seed)
    @given(strategy)
    def round_of_plans(plan: Plan) -> None:
        try:
            step(plan)
        except Exception as error:
            # Hypothesis would take it for a failing example and run that again.
            raise _Leave from error

    with steady_draws():
        round_of_plans()
