"""What asv's series are called on the screens and in addresses: no two series of a machine alike."""

from __future__ import annotations

import os.path

import pandas as pd


def named(series: pd.DataFrame) -> pd.Series:
    """benchmark(parameters) without quotes, told apart: see ``told_apart``."""
    names = series["benchmark"] + "(" + series["parameters"].str.replace("'", "") + ")"
    return told_apart(series, names.str.removesuffix("()"))


def told_apart(series: pd.DataFrame, names: pd.Series) -> pd.Series:
    """The same names, and where several series of a machine are called so, what else they differ in.

    That is their environments (another model, another Python), then their versions: a name that stood for two series would
    leave one of them out of every list. ``series`` has machine, environment and version; both have one index.
    """
    for column, told in (("environment", _environments(series)), ("version", "version " + series["version"])):
        alike = [series["machine"], names]
        several = series[column].groupby(alike).transform("nunique").gt(1)
        names = names.where(~several, names + " · " + told)
    return names


def _environments(series: pd.DataFrame) -> pd.Series:
    """Environments without the start that all of their machine share, up to a dash; asv writes model=x as "modelx"."""
    short: dict[tuple[str, str], str] = {}
    for machine, group in series.groupby("machine"):
        listed = sorted(group["environment"].unique())
        shared = os.path.commonprefix(listed) if len(listed) > 1 else ""  # noqa: RUF071 (a character is what is meant)
        cut = shared.rfind("-") + 1
        short |= {(machine, name): name[cut:].removeprefix("model") for name in listed}
    pairs = zip(series["machine"], series["environment"], strict=True)
    return pd.Series([short[pair] for pair in pairs], index=series.index, dtype=object)
