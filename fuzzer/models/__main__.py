"""``python -P -m fuzzer.models NAME FOLDER``: writes the files of a tiny model into a folder, for reproducers."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

from fuzzer.errors import UsageError
from fuzzer.models.tiny import other_weights, tiny_model


def main(words: list[str]) -> int:
    """Write the files and print their paths."""
    if len(words) != 2:
        print("usage: python -P -m fuzzer.models NAME FOLDER", file=sys.stderr)
        return 2
    try:
        export(words[0], Path(words[1]))
    except (UsageError, OSError) as error:
        print(error, file=sys.stderr)
        return 2
    return 0


def export(name: str, folder: Path) -> None:
    """Copy a tiny model, other weights of it and its adapters into ``folder``, unless they are there."""
    model = tiny_model(name)
    folder.mkdir(parents=True, exist_ok=True)
    for path in (model.path, other_weights(name), *model.adapters):
        if not (folder / path.name).is_file():
            shutil.copyfile(path, folder / path.name)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
