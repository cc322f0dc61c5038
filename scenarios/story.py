"""A plan in plain words, one line an operation."""

from __future__ import annotations

from collections.abc import Sequence

from scenarios.environment import adapter_letter
from scenarios.operations import (
    Abort,
    Await,
    Complete,
    Erase,
    Evict,
    Flush,
    Join,
    Operation,
    Other,
    Reload,
    ReloadWeights,
    Restart,
    Restore,
    Sampling,
    Save,
    SetScales,
    Sleep,
    Start,
    Unload,
    scales_in_words,
)
from scenarios.plans import Plan, requests
from scenarios.prompts import Prompt

_LETTERS = "PQRSTUVWXYZABCDEFGHIJKLMNO"


def story_lines(plan: Plan, *, adapters: int = 0) -> list[str]:
    """What each operation asks, aligned: ``complete P a=0.5  1 token``.

    Where the server has ``adapters``, an empty list of them is worth a word.
    """
    names = prompt_names([request.prompt for _, request in requests(plan)])
    if adapters:
        empty = [request.prompt for _, request in requests(plan) if request.scales == ()]
        names |= {prompt: f"{names[prompt]} (empty adapter list)" for prompt in empty}
    lines = [_line(operation, names) for operation in plan.operations]
    width = max((len(asked) for asked, count in lines if count), default=0)
    return [f"{asked:<{width}}  {count}" if count else asked for asked, count in lines]


def prologue_lines(plan: Plan) -> list[str]:
    """What is set before the operations, a line each."""
    return [_line(operation, {})[0] for operation in plan.prologue]


def prompt_names(prompts: Sequence[Prompt]) -> dict[Prompt, str]:
    """A short name for every distinct prompt; a letter a root, more only where prompts share one."""
    names: dict[Prompt, str] = {}
    for letter, root in zip(_letters(), dict.fromkeys(prompt.root for prompt in prompts), strict=False):
        names |= _names_below(letter, list(dict.fromkeys(prompt for prompt in prompts if prompt.root == root)))
    return names


def is_prefix(prompt: Prompt, longer: Prompt) -> bool:
    """Whether the path alone tells that the tokens of ``prompt`` begin ``longer``."""
    if prompt.root != longer.root or len(prompt.segments) > len(longer.segments):
        return False
    pairs = list(zip(prompt.segments, longer.segments, strict=False))
    whole = all(mine == theirs for mine, theirs in pairs[:-1])
    return whole and all(mine.name == theirs.name and mine.length <= theirs.length for mine, theirs in pairs[-1:])


def _names_below(letter: str, prompts: list[Prompt]) -> dict[Prompt, str]:
    plain = [prompt for prompt in prompts if prompt.after is None]
    grown = {prompt: _grown_name(letter, prompt) for prompt in prompts if prompt.after is not None}
    if len(plain) == 1:
        return grown | {plain[0]: letter}
    longest = max(plain, key=lambda prompt: prompt.length, default=None)
    if longest is not None and all(is_prefix(prompt, longest) for prompt in plain):
        return grown | {prompt: letter if prompt == longest else f"{letter}[:{prompt.length}]" for prompt in plain}
    return grown | {prompt: letter + _segments(prompt) for prompt in plain}


def _grown_name(letter: str, prompt: Prompt) -> str:
    answer = f"+{prompt.answer} of its answer" if prompt.answer else ""
    return f"{letter}(step {(prompt.after or 0) + 1}{answer}){_segments(prompt)}"


def _segments(prompt: Prompt) -> str:
    return "".join(f".{segment.name}{segment.length}" for segment in prompt.segments)


def _line(operation: Operation, names: dict[Prompt, str]) -> tuple[str, str]:
    """The line of an operation in two parts, so that counts of tokens can stand below each other."""
    match operation:
        case Complete():
            return f"complete {_asked(operation, names)}", count(operation.tokens, "token")
        case Start():
            return f"start {_asked(operation, names)}", count(operation.tokens, "token")
        case Await(of=of, tokens=tokens):
            return f"await {count(tokens, 'token')} of step {of + 1}", ""
        case Join(of=of):
            return f"await the end of step {of + 1}", ""
        case Abort(of=of):
            return f"abort step {of + 1}", ""
        case Evict(requests=number, length=length, scales=scales):
            return (
                f"evict with {count(number, 'filler')} of {count(length, 'token')} {scales_in_words(scales)}".rstrip(),
                "",
            )
        case _:
            return _administration(operation), ""


def _administration(operation: Operation) -> str:
    match operation:
        case SetScales(scales=scales):
            return f"set global scales {scales_in_words(scales)}"
        case Reload(adapter=adapter, version=version):
            return f"reload adapter {adapter_letter(adapter)} with weights {version}"
        case Unload(adapter=adapter, version=version):
            return f"unload adapter {adapter_letter(adapter)} and load it with weights {version}"
        case Flush():
            return "flush the cache"
        case Save(slot=slot, file=file):
            return f"save slot {slot} to file {file}"
        case Restore(slot=slot, file=file):
            return f"restore slot {slot} from file {file}"
        case Erase(slot=slot):
            return f"erase slot {slot}"
        case Sleep():
            return "sleep and wake"
        case Restart():
            return "restart the server"
        case ReloadWeights(version=version):
            return f"reload weights {version}"
        case Other(task=task):
            return f"{task} request"
    raise AssertionError(operation)


def _asked(request: Complete | Start, names: dict[Prompt, str]) -> str:
    words = [
        names[request.prompt],
        scales_in_words(request.scales) if request.scales is not None else "(global scales)",
    ]
    words += [f"salt={request.salt}"] if request.salt else []
    words += [f"slot={request.slot}"] if request.slot is not None else []
    words += [f"sampling={request.sampling}"] if request.sampling is not Sampling.PLAIN else []
    return " ".join(word for word in words if word)


def count(number: int, noun: str) -> str:
    """``1 token``, ``2 tokens``."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def _letters() -> list[str]:
    return list(_LETTERS) + [f"P{number}" for number in range(1, 10_000)]
