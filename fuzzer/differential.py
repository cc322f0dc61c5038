"""One plan on both servers: the target's leg in this thread, the reference's leg beside it, then the verdict."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait

from fuzzer.execution import Asked, Roots, asked_by, asked_in, asked_still, run_plan
from fuzzer.reference import Reference, ReferenceMode
from fuzzer.target import Target
from oracles.accounting import hits_from_outside
from oracles.comparison import compare
from oracles.evidence import Arm
from oracles.judgement import Oracle, Suspect, explained_by, judge
from oracles.noise import Noise
from oracles.observations import Observation, Trace, with_outcome
from scenarios.plans import Plan

_HISTORY = 2000
"""Plans remembered of one life of the target; with the tiny vocabulary no life has more."""
_MEETINGS = 2
"""With others' prompts, in a row, before they are taken for the server's own doing."""


class Outcome:
    """What a plan's run gave on both servers, and what of it is suspect."""

    __slots__ = ("ours", "plan", "suspects", "theirs")

    def __init__(self, plan: Plan, ours: Trace, theirs: Trace, suspects: list[Suspect]) -> None:
        self.plan = plan
        self.ours = ours
        self.theirs = theirs
        self.suspects = suspects

    @property
    def first(self) -> Suspect | None:
        """The first suspect step; later ones may be its consequences."""
        return self.suspects[0] if self.suspects else None

    def arm(self, step: int) -> Arm:
        """How step ``step`` fared; badly, where the server was lost before it."""
        if step >= len(self.ours.steps):
            return Arm(False)
        ours, theirs = self.ours.steps[step].outcome, self.theirs.steps[step].outcome
        clean = all(suspect.step != step for suspect in self.suspects)
        if not isinstance(ours, Observation) or not isinstance(theirs, Observation):
            return Arm(clean)
        moved = explained_by(self.ours.steps[step].sampling, compare(ours, theirs))
        return Arm(clean, ours.reused, ours.computed, moved)


class Counts:
    """Requests sent, over all targets of a command."""

    __slots__ = ("target",)

    def __init__(self) -> None:
        self.target = 0


class Pending:
    """A plan whose target leg is done and whose reference leg may still run."""

    __slots__ = ("_differential", "_disturbed", "_reference_leg", "ours", "plan")

    def __init__(
        self, differential: Differential, plan: Plan, ours: Trace, leg: Future[Trace], *, disturbed: bool
    ) -> None:
        self._differential = differential
        self._reference_leg = leg
        self._disturbed = disturbed
        self.plan = plan
        self.ours = ours

    def outcome(self) -> Outcome:
        """Wait for the reference and judge."""
        outcome = self._differential.judged(self.plan, self.ours, self._reference_leg.result())
        if self._disturbed:
            # Somebody else set what these answers were to follow; only that there were answers can be held to it.
            outcome.suspects = [suspect for suspect in outcome.suspects if suspect.oracle is Oracle.HEALTH]
        return outcome


class Differential:
    """Runs plans on a target and on a reference; ``noise`` may be replaced once it is measured."""

    def __init__(
        self,
        target: Target,
        reference: Reference,
        noise: Noise,
        *,
        pool: ThreadPoolExecutor,
        counts: Counts | None = None,
    ) -> None:
        self.target = target
        self.reference = reference
        self.noise = noise
        self.counts = counts or Counts()
        self._history: deque[Plan] = deque(maxlen=_HISTORY)
        self._earlier_life = self._history
        self._life = target.lives
        self._pool = pool

    def begin(self, plan: Plan, *, reuse: bool = True) -> Pending:
        """Run the target's leg of ``plan`` on fresh roots, the reference's beside it in its own thread.

        Where a prompt goes on after an answer, and where the target is its own reference, the reference's leg can only
        begin when the target's is done: in the latter case while it still has the versions that the plan loaded last.
        """
        self.target.prepare(plan.roots + plan.fillers)
        self._remember(plan)
        roots = Roots(self.target.roots.take(plan.roots), self.target.roots.take(plan.fillers))
        if self.reference.mode is ReferenceMode.BYPASS:
            ours, leg = self._in_turn(plan, roots, reuse=reuse)
        else:
            ours, leg = self._side_by_side(plan, roots, reuse=reuse)
        ours = self._without_lost(ours)
        if ours.unrestored is not None:
            self.target.unrestored(ours.unrestored)
        self.counts.target += sum(1 for step in ours.steps if step.prompt)
        return Pending(self, plan, ours, leg, disturbed=self.target.company.look())

    def _side_by_side(self, plan: Plan, roots: Roots, *, reuse: bool) -> tuple[Trace, Future[Trace]]:
        target = self.target
        asked = asked_by(plan, roots, target.server)
        leg = self.ask_reference(asked) if asked is not None else None
        ours = run_plan(target.server, plan, roots, reuse=reuse, restart=target.restarted_in_place)
        return ours, leg or self.ask_reference(asked_in(ours))

    def _in_turn(self, plan: Plan, roots: Roots, *, reuse: bool) -> tuple[Trace, Future[Trace]]:
        target, legs = self.target, list[Future[Trace]]()

        def ask(trace: Trace) -> None:
            legs.append(self.ask_reference(asked_still(plan, trace)))

        ours = run_plan(target.server, plan, roots, reuse=reuse, restart=target.restarted_in_place, ended=ask)
        return ours, legs[0] if legs else self.ask_reference(asked_in(ours))

    def _without_lost(self, ours: Trace) -> Trace:
        """The trace, with what became of the server where it was lost on the way."""
        failure = ours.failure
        if ours.lost is None or failure is None:
            return ours
        return with_outcome(ours, ours.lost, self.target.lost(failure))

    @property
    def accounts(self) -> bool:
        """Whether the server's count of reused tokens can be held to an exact model."""
        capabilities = self.target.server.capabilities
        return capabilities.cached_counts and not capabilities.approximate_reuse

    def before(self, plan: Plan) -> list[Plan]:
        """The plans that ran in the same life of the target before ``plan`` did, oldest first.

        A plan that ended the target's life is looked for in that life.
        """
        for life in (self._history, self._earlier_life):
            plans = list(life)
            if plan in plans:
                return plans[: len(plans) - 1 - plans[::-1].index(plan)]
        return []

    def _remember(self, plan: Plan) -> None:
        if self.target.lives != self._life:
            self._life = self.target.lives
            self._earlier_life, self._history = self._history, deque(maxlen=_HISTORY)
        self._history.append(plan)

    def run(self, plan: Plan, *, reuse: bool = True) -> Outcome:
        """Run ``plan`` on both servers and judge it.

        On a server of the user's, a prompt may meet what somebody else, or an earlier run, had left of it: what reuses
        more than its plan ever asked is run again on other roots, and is the server's own only where that comes back.
        """
        for met in range(_MEETINGS + 1):
            outcome = self.begin(plan, reuse=reuse).outcome()
            if not self.may_have_met_others(outcome):
                if met:
                    self.target.company.met_earlier()
                break
        return outcome

    def may_have_met_others(self, outcome: Outcome) -> bool:
        """Whether what was wrong may come from a hit on what is none of ours, on a server that others ask too.

        Each run goes through the vocabulary in an order of its own, and may come to where another one was. What hit
        that may be wrong for others' settings, and so may all that reuses it in turn.
        """
        if self.target.ours or not self.accounts or outcome.first is None:
            return False
        return min(hits_from_outside(outcome.ours), default=len(outcome.ours.steps)) <= outcome.first.step

    def judged(self, plan: Plan, ours: Trace, theirs: Trace) -> Outcome:
        """What is suspect of a plan's run on both servers."""
        theirs = self.settle(ours, theirs)
        return Outcome(plan, ours, theirs, judge(ours, theirs, self.noise, accounting=self.accounts))

    def settle(self, ours: Trace, theirs: Trace) -> Trace:
        """The reference's trace with near-ties taken the target's way."""
        if not _part(ours, theirs):
            # Not for nothing into the queue: the reference is busy with the next plan by now.
            return theirs
        return self._pool.submit(self.reference.along, ours, theirs, self.noise).result()

    def ask_reference(self, asked: Sequence[Asked | None]) -> Future[Trace]:
        """Answers of the reference, to be waited for; those of a target that is its own reference are there at once."""
        leg = self._pool.submit(self.reference.run, asked)
        if self.reference.mode is ReferenceMode.BYPASS:
            # On one and the same server, the next plan must not meet the reference's requests half-way.
            wait((leg,))
        return leg

    def on(self, target: Target) -> Differential:
        """The same comparison against another target, such as a freshly started one."""
        return Differential(target, self.reference, self.noise, pool=self._pool, counts=self.counts)


def _part(ours: Trace, theirs: Trace) -> bool:
    """Whether the tokens of any answer differ."""
    pairs = ((one.outcome, other.outcome) for one, other in zip(ours.steps, theirs.steps, strict=False))
    return any(
        one.tokens != other.tokens
        for one, other in pairs
        if isinstance(one, Observation) and isinstance(other, Observation)
    )
