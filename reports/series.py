"""A time series of bounded length: every second sample goes when it is full, so it stays even over the whole run."""

from __future__ import annotations

from reports.record import Sample

MOST = 240


def thinned(series: list[Sample], latest: Sample) -> None:
    """Append ``latest`` unless it comes sooner after the last sample than the series' own spacing."""
    if len(series) >= 2 and latest.at - series[-1].at < _spacing(series):
        return
    series.append(latest)
    if len(series) >= MOST:
        del series[1::2]


def _spacing(series: list[Sample]) -> float:
    return 0.9 * (series[-1].at - series[0].at) / (len(series) - 1) if len(series) > MOST // 4 else 0.0
