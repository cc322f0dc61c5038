"""The real SGLang scheduler on a CPU: a public bug of its cache key, and a plain model on which it is sound."""

from __future__ import annotations

from pathlib import Path

import pytest
from installed import sglang
from running import stalefuzz

pytestmark = pytest.mark.sglang
TIME = ("--time", "1800s")
PATIENCE_S = 2400.0


def test_a_tenant_key_spelled_like_an_adapter_reaches_its_entries(tmp_path: Path) -> None:
    """sglang#24638: the adapter's id and the tenant key stand in the cache key without a mark of which is which."""
    words = ("--launch", "sglang", "--scenario", "tenant-key", "--seed", "1", *TIME)
    run = stalefuzz("run", "-x", *words, folder=tmp_path, patience_s=PATIENCE_S, env=sglang())
    assert run.status == 1, run.said
    (finding,) = run.record["findings"]
    assert [operation["op"] for operation in finding["plan"]] == ["complete", "complete"]
    assert sorted(operation.get("salt", "") for operation in finding["plan"]) == ["", "a"]
    assert finding["reproduced"] == {"k": 5, "n": 5}


def test_a_plain_model_without_adapters_is_clean(tmp_path: Path) -> None:
    words = ("--launch", "sglang", "--adapter", "none", "--scenario", "plain", "--max-steps", "150", "--seed", "1")
    run = stalefuzz("run", *words, *TIME, folder=tmp_path, patience_s=PATIENCE_S, env=sglang())
    assert run.status == 0, run.said
    assert run.record["reuse"]["hits"] > 20
