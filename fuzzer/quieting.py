"""Quieting: settings of a launched server that keep a known bug away which no choice of operations does.

A bug whose only necessary element is a shared prefix is met in every plan that reuses anything. What can be left out
for it is not part of a plan, but the feature that has the bug: one of the switches that made it go away.
"""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence

from reports.record import FindingRecord
from scenarios.blocking import can_block

Flags = tuple[str, ...]


class Quieting:
    """``switches`` are the settings that were tried against each finding: their words, and flags for the server."""

    def __init__(self, switches: Mapping[str, Flags]) -> None:
        self._switches = switches
        self._useless: set[Flags] = set()

    def loud(self, findings: Sequence[FindingRecord]) -> list[FindingRecord]:
        """The findings that only a setting can keep away, and that some setting does."""
        unblocked = [one for one in findings if not any(can_block(element) for element in one.necessary)]
        return [finding for finding in unblocked if self._quiet(finding)]

    def flags(self, findings: Sequence[FindingRecord], rng: random.Random) -> Flags:
        """One setting at random for each loud finding."""
        chosen = dict.fromkeys(rng.choice(self._quiet(finding)) for finding in self.loud(findings))
        return tuple(word for flags in chosen for word in flags)

    def useless(self, flags: Flags) -> None:
        """Nothing was reused with these flags, so that a leg with them would test nothing."""
        self._useless |= {switch for switch in self._switches.values() if set(switch) <= set(flags)}

    def _quiet(self, finding: FindingRecord) -> list[Flags]:
        clean = {mitigation.setting for mitigation in finding.mitigations if mitigation.clean}
        known = [flags for words, flags in self._switches.items() if words in clean]
        return [flags for flags in known if flags not in self._useless]
