"""A target's calibration: kept from an earlier command where that still holds, measured and kept otherwise."""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from fuzzer.calibration import CEILING, Calibration, calibrate, check
from fuzzer.calibration_store import CalibrationStore
from fuzzer.differential import Differential
from fuzzer.rig import Rig


def calibrated(
    differential: Differential,
    rig: Rig,
    checkpoint: Callable[[], None] = lambda: None,
    setting: tuple[str, ...] = (),
) -> Calibration:
    """The calibration of a target that ``rig`` started with the flags of ``setting``; its comparison goes by it then.

    Raises CannotJudge where target and reference are not alike.
    """
    # One seed gives one run, whether rounding is measured for it or known.
    with differential.target.roots.last_first():
        calibration = _measured_or_kept(differential, rig, checkpoint, setting)
    differential.noise = calibration.noise
    return calibration


def _measured_or_kept(
    differential: Differential, rig: Rig, checkpoint: Callable[[], None], setting: tuple[str, ...]
) -> Calibration:
    identity, store = rig.identity(setting), CalibrationStore()
    kept = None if identity is None or rig.measures_anew else store.read(identity, CEILING[rig.numerics])
    known = None if kept is None else check(differential, rig.numerics, kept.noise, checkpoint)
    if kept is not None and known is not None:
        return msgspec.structs.replace(known, measured=kept.measured.isoformat())
    calibration = calibrate(differential, rig.numerics, checkpoint)
    if identity is not None:
        store.keep(identity, calibration.noise)
    return calibration
