"""All mutants by name."""

from __future__ import annotations

from fuzzer.zoo.bugs import Bug
from fuzzer.zoo.llama_mutants import LLAMA_MUTANTS
from fuzzer.zoo.mutants import Mutant
from fuzzer.zoo.vllm_mutants import VLLM_MUTANTS

MUTANTS: dict[Bug, Mutant] = {mutant.bug: mutant for mutant in (*LLAMA_MUTANTS, *VLLM_MUTANTS)}
