"""Lets the published sglang wheel serve on a CPU: what it imports and never uses there is made up on import.

``torchvision`` stays empty, whatever part of it is imported. Pinned memory, which only a GPU has, is not asked for.
"""

from __future__ import annotations

import importlib.abc
import importlib.machinery
import sys
from types import ModuleType
from typing import Any

_MADE_UP = ("torchvision",)


class _Anything(type):
    """A class whose attributes all exist."""

    def __getattr__(cls, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return name


class _Empty(ModuleType):
    __version__ = "0.0.0"

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.__path__: list[str] = []

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return _Anything(name, (), {})


class _Pinning(importlib.abc.MetaPathFinder):
    """Makes torch ignore wishes for pinned memory as soon as SGLang has imported it."""

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> None:
        torch = sys.modules.get("torch")
        if name.startswith("sglang") and torch is not None and hasattr(torch, "zeros"):
            sys.meta_path.remove(self)
            for function in ("empty", "zeros", "ones", "full", "tensor", "arange"):
                setattr(torch, function, _unpinned(getattr(torch, function)))
            torch.Tensor.pin_memory = lambda tensor, *_: tensor


def _unpinned(function: Any) -> Any:
    def unpinned(*words: Any, **named: Any) -> Any:
        named.pop("pin_memory", None)
        return function(*words, **named)

    return unpinned


class _Finder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    def find_spec(self, name: str, path: Any = None, target: Any = None) -> importlib.machinery.ModuleSpec | None:
        if name.partition(".")[0] not in _MADE_UP:
            return None
        return importlib.machinery.ModuleSpec(name, self, is_package=True)

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> ModuleType:
        return _Empty(spec.name)

    def exec_module(self, module: ModuleType) -> None:
        pass


sys.meta_path.insert(0, _Pinning())
sys.meta_path.append(_Finder())
