"""The files of findings/<id>/."""

from __future__ import annotations

import msgspec


class Scripts(msgspec.Struct, frozen=True):
    """Texts; empty where the plan has no plain HTTP form."""

    shell: str = ""
    pytest: str = ""
    issue: str = ""
