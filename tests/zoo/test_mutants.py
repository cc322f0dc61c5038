"""Every planted mistake is real: its shortest sequence goes wrong with it, and right without it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

import llama_sequences
import pytest
import vllm_sequences
from zoo_sequences import Ask, Operation, Session
from zoo_server import join_stopped, serving

from fuzzer.zoo.bugs import Bug
from fuzzer.zoo.catalogue import MUTANTS
from fuzzer.zoo.mutants import Kind, Mutant, Shows
from fuzzer.zoo.settings import Flavour

SEQUENCES = {**llama_sequences.LLAMA_SEQUENCES, **vllm_sequences.VLLM_SEQUENCES}
PROLOGUES = {Flavour.LLAMA: llama_sequences.PROLOGUE, Flavour.VLLM: vllm_sequences.PROLOGUE}


@pytest.fixture(autouse=True, scope="module")
def _stopped_servers() -> Iterator[None]:
    yield
    join_stopped()


every_mutant = pytest.mark.parametrize("mutant", MUTANTS.values(), ids=lambda mutant: mutant.name)


def wrong_steps(mutant: Mutant, *, planted: bool, operations: Sequence[Operation] | None = None) -> list[int]:
    settings = mutant.settings(planted=planted)
    with serving(settings, join=False) as client:
        Session(client, settings).run(PROLOGUES[mutant.flavour])
        return Session(client, settings).run(SEQUENCES[mutant.bug] if operations is None else operations)


@every_mutant
def test_the_shortest_sequence_goes_wrong(mutant: Mutant) -> None:
    assert wrong_steps(mutant, planted=True)


@every_mutant
def test_the_same_sequence_is_right_without_the_bug(mutant: Mutant) -> None:
    assert wrong_steps(mutant, planted=False) == []


@every_mutant
def test_the_sequence_has_the_stated_length(mutant: Mutant) -> None:
    assert len(SEQUENCES[mutant.bug]) == mutant.operations


def test_every_bug_is_in_the_catalogue() -> None:
    assert set(MUTANTS) == set(Bug)


def test_every_kind_has_three_mutants() -> None:
    counted = Counter(mutant.kind for mutant in MUTANTS.values())
    assert all(counted[kind] >= 3 for kind in Kind)
    assert len(MUTANTS) >= 48


def test_only_mistakes_that_leave_answers_right_are_left_to_the_accounting() -> None:
    for mutant in MUTANTS.values():
        limited = any(isinstance(step, Ask) and step.lawful is not None for step in SEQUENCES[mutant.bug])
        assert limited == (mutant.shows is Shows.ACCOUNTING)
