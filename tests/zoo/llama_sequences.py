"""The shortest sequences that show the llama flavour's mistakes."""

from __future__ import annotations

from collections.abc import Sequence

from zoo_sequences import Abort, Ask, Operation, Post, Start, words

from fuzzer.zoo.bugs import Bug
from fuzzer.zoo.llama_server import ADAPTERS
from fuzzer.zoo.requests import Sampling

FIRST, SECOND = ADAPTERS
P, Q, R = words("P", 480), words("Q", 480), words("R", 480)
NONE_SCALED = [{"id": 0, "scale": 0.0}, {"id": 1, "scale": 0.0}]
FILE = {"filename": "saved"}

PROLOGUE = (Post("/lora-adapters", NONE_SCALED),)


def scaled(scale: float, path: str = FIRST) -> tuple[tuple[str, float], ...]:
    return ((path, scale),)


LLAMA_SEQUENCES: dict[Bug, Sequence[Operation]] = {
    Bug.SLOT_IGNORES_SCALES: (Ask(P[:20], adapters=scaled(1.0)), Ask(P[:20], adapters=scaled(0.5))),
    Bug.SLOT_IGNORES_ADAPTER_ID: (Ask(P[:20], adapters=scaled(1.0)), Ask(P[:20], adapters=scaled(1.0, SECOND))),
    Bug.SCALE_TRUNCATED: (Ask(P[:20], adapters=scaled(0.25)), Ask(P[:20], adapters=scaled(0.75))),
    Bug.GUARD_COMPARES_SLOT_HISTORY: (
        Ask(P[:20], adapters=scaled(1.0)),
        Ask(Q[:20], adapters=scaled(0.5)),
        Ask(P[:20], adapters=scaled(0.5)),
    ),
    Bug.GUARD_COMPARES_FIRST_SLOT: (
        Ask(Q[:20], adapters=scaled(0.5), slot=0),
        Ask(P[:20], adapters=scaled(1.0), slot=1),
        Ask(P[:20], adapters=scaled(0.5), slot=1),
    ),
    Bug.GLOBAL_SCALE_UNGUARDED: (
        Ask(P[:20], named=False),
        Post("/lora-adapters", [{"id": 0, "scale": 0.5}]),
        Ask(P[:20], named=False, adapters=scaled(0.5)),
    ),
    Bug.PINNED_SLOT_UNGUARDED: (Ask(P[:20], adapters=scaled(1.0)), Ask(P[:20], adapters=scaled(0.5), slot=0)),
    Bug.CHECKPOINT_PAST_PREFIX: (Ask(P[:100]), Ask(P[:1] + Q[:60])),
    Bug.CHECKPOINTS_KEPT_PAST_REWIND: (
        Ask(P[:34] + Q[:10]),
        Ask(P[:34] + R[:20]),
        Ask(P[:34] + R[:16] + Q[:5]),
    ),
    Bug.WINDOW_REUSED_TOO_DEEP: (Ask(P[:60]), Ask(P[:30] + Q[:10])),
    Bug.WINDOW_TRIMMED_TOO_LITTLE: (Ask(P[:60]), Ask(P[:10] + Q[:3])),
    Bug.RECURRENT_TRIM_IGNORED: (Ask(P[:20] + Q[:5]), Ask(P[:20] + R[:5])),
    Bug.CHECKPOINT_ONE_TOKEN_AHEAD: (Ask(P[:20]), Ask(P[:20])),
    Bug.CLEARED_SLOT_KEEPS_STATE: (Ask(P[:20] + Q[:5]), Ask(P[:20] + R[:5])),
    Bug.CHECKPOINTS_SURVIVE_CLEAR: (Ask(P[:37]), Ask(Q[:40]), Ask(Q[:38] + R[:2])),
    Bug.ABORTED_ROW_WRITES_AGAIN: (Start(Ask(P[:20], 400)), Abort(0), Ask(Q[:20])),
    Bug.POSITION_NOT_REWOUND: (Ask(P[:20] + Q[:5]), Ask(P[:20] + R[:5])),
    Bug.RAM_ENTRY_AT_VICTIM_POSITION: (Ask(P[:20]), Ask(Q[:30]), Ask(P[:20])),
    Bug.RESTORED_AT_SLOT_POSITION: (
        Ask(P[:20]),
        Post("/slots/0?action=save", FILE),
        Ask(Q[:30]),
        Post("/slots/0?action=restore", FILE),
        Ask(P[:20]),
    ),
    Bug.RECORD_NOT_CUT: (Ask(P[:10] + Q[:20]), Ask(P[:10], 4), Ask(P[:10] + Q[:20])),
    Bug.RAM_ENTRY_ALIASED: (Ask(P[:8] + Q[:12]), Ask(R[:20]), Ask(P[:8] + R[:20]), Ask(P[:8] + Q[:12])),
    Bug.ERASE_KEEPS_RECORD: (Ask(P[:20]), Post("/slots/0?action=erase"), Ask(P[:20])),
    Bug.ABORT_PUBLISHES_PROMPT: (Start(Ask(P)), Abort(0), Ask(P)),
    Bug.SAMPLED_TOKEN_PUBLISHED: (Ask(P[:20], 4), Ask(Q[:2], continues=0)),
    Bug.RAM_IGNORES_ENVIRONMENT: (
        Ask(P[:20], adapters=scaled(1.0)),
        Ask(Q[:20], adapters=scaled(1.0)),
        Ask(P[:20], adapters=scaled(0.5)),
    ),
    Bug.FILE_IGNORES_ENVIRONMENT: (
        Ask(P[:20], adapters=scaled(1.0)),
        Post("/slots/0?action=save", FILE),
        Post("/slots/0?action=restore", FILE),
        Ask(P[:20], adapters=scaled(0.5)),
    ),
    Bug.PENALTIES_LEFT_IN_ROW: (
        Ask(P[:20], sampling=Sampling(presence_penalty=50.0, penalise_prompt=True)),
        Ask(P[:20]),
    ),
    Bug.LOGITS_OF_LONGER_PROMPT: (Ask(P[:25]), Ask(P[:20])),
}
