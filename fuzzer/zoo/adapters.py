"""Which adapters a server knows: by number with scales (llama), or by names that can be loaded and replaced (vllm)."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from fuzzer.zoo.bugs import Bug
from fuzzer.zoo.requests import FIRST_WEIGHTS, Environment, Identity

BASE_MODEL = "base"


class ScaledAdapters:
    """A fixed list of adapters. ``scales`` are the global ones, for requests that name none."""

    def __init__(self, paths: tuple[str, ...]) -> None:
        self.paths = paths
        self.scales = [1.0] * len(paths)

    def environment(self, scales: dict[int, float] | None) -> Environment:
        """Adapters that the request leaves out are off; a request without the field takes the global scales."""
        chosen = dict(enumerate(self.scales)) if scales is None else scales
        return Environment(adapters=tuple((self.paths[i], chosen[i]) for i in sorted(chosen) if chosen[i] != 0))

    def set_scales(self, scales: dict[int, float]) -> None:
        self.scales = [scales.get(index, 0.0) for index in range(len(self.paths))]


@dataclass(frozen=True, slots=True)
class Loaded:
    path: str
    version: int


class NamedAdapters:
    """Adapters under names that come, go and change their meaning; ``weights`` names the base model's own."""

    def __init__(self, bug: Bug | None, weights: str = FIRST_WEIGHTS) -> None:
        self._bug = bug
        self._loads: Counter[str] = Counter()
        self._buffers: dict[str, str] = {}
        self._weights_version = 0
        self.weights = weights
        self.loaded: dict[str, Loaded] = {}

    def load(self, name: str, path: str, *, in_place: bool) -> bool:
        """False when the name is taken."""
        if name in self.loaded and not in_place:
            return False
        if in_place or self._bug is not Bug.ADAPTER_WEIGHTS_KEPT_BY_NAME:
            self._buffers[name] = path
        else:
            self._buffers.setdefault(name, path)
        self.loaded[name] = Loaded(path, self._loads[name])
        self._loads[name] += 1
        return True

    def unload(self, name: str) -> bool:
        if self.loaded.pop(name, None) is None:
            return False
        if self._bug is Bug.ADAPTER_VERSION_RESTARTS:
            del self._loads[name]
        return True

    def reload_weights(self, path: str) -> None:
        self.weights = path
        self._weights_version += 1

    def resolve(self, model: str, salt: str) -> tuple[Environment, Identity] | None:
        """What the model's name means now, or None when nothing has that name."""
        if model == BASE_MODEL:
            return Environment(self.weights), Identity(salt=salt, weights_version=self._weights_version)
        adapter = self.loaded.get(model)
        if adapter is None:
            return None
        identity = Identity(model, adapter.version, salt, self._weights_version)
        return Environment(self.weights, ((self._buffers[model], 1.0),)), identity
