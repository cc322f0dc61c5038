"""A plan in plain words, one line an operation."""

from __future__ import annotations

from collections.abc import Sequence

from scenarios.operations import Operation, scales_in_words
from scenarios.plans import Plan
from scenarios.prompts import Prompt

_LETTERS = "PQRSTUVWXYZABCDEFGHIJKLMNO"


def story_lines(plan: Plan) -> list[str]:
    """What each operation asks, aligned: ``complete P a=0.5  1 token``."""
    names = prompt_names([operation.prompt for operation in plan.operations])
    asked = [_asked(operation, names[operation.prompt]) for operation in plan.operations]
    width = max((len(line) for line in asked), default=0)
    counts = [_count(operation.tokens, "token") for operation in plan.operations]
    return [f"{line:<{width}}  {count}" for line, count in zip(asked, counts, strict=True)]


def prompt_names(prompts: Sequence[Prompt]) -> dict[Prompt, str]:
    """A short name for every distinct prompt; a letter a root, more only where prompts share one."""
    names: dict[Prompt, str] = {}
    for letter, root in zip(_letters(), dict.fromkeys(prompt.root for prompt in prompts), strict=False):
        names |= _names_below(letter, list(dict.fromkeys(prompt for prompt in prompts if prompt.root == root)))
    return names


def _names_below(letter: str, prompts: list[Prompt]) -> dict[Prompt, str]:
    if len(prompts) == 1:
        return {prompts[0]: letter}
    longest = max(prompts, key=lambda prompt: prompt.length)
    if all(is_prefix(prompt, longest) for prompt in prompts):
        return {prompt: letter if prompt == longest else f"{letter}[:{prompt.length}]" for prompt in prompts}
    return {prompt: letter + "".join(f".{name}{length}" for name, length in _pairs(prompt)) for prompt in prompts}


def is_prefix(prompt: Prompt, longer: Prompt) -> bool:
    """Whether the path alone tells that the tokens of ``prompt`` begin ``longer``."""
    if prompt.root != longer.root or len(prompt.segments) > len(longer.segments):
        return False
    pairs = list(zip(prompt.segments, longer.segments, strict=False))
    whole = all(mine == theirs for mine, theirs in pairs[:-1])
    return whole and all(mine.name == theirs.name and mine.length <= theirs.length for mine, theirs in pairs[-1:])


def _pairs(prompt: Prompt) -> list[tuple[str, int]]:
    return [(segment.name, segment.length) for segment in prompt.segments]


def _asked(operation: Operation, name: str) -> str:
    return f"complete {name} {scales_in_words(operation.scales)}".rstrip()


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def _letters() -> list[str]:
    return list(_LETTERS) + [f"P{number}" for number in range(1, 10_000)]
