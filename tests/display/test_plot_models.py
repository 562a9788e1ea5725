"""Pictures of models: the lines of `curve` and the points of `tradeoff`."""

import numpy as np
import pandas as pd
from display.plot_tables import many_models

import recdf as rd


def test_curve_draws_the_summary(result):
    data = rd.plot.curve.data(result, ["recall", "ndcg"])
    assert list(dict.fromkeys(data["metric"])) == ["recall", "ndcg"]
    summary = result.summary.set_index(["model", "metric", "k"])
    for row in data.itertuples():
        found = summary.loc[(row.model, row.metric, row.k)]
        assert (row.value, row.ci_low, row.ci_high, row.n) == tuple(found[["value", "ci_low", "ci_high", "n"]])
    axes = rd.plot.curve(result, ["recall", "ndcg"])
    assert len(axes) == 2
    for line, (_, rows) in zip(axes[1].lines, data[data["metric"] == "ndcg"].groupby("model", sort=False), strict=True):
        assert line.get_xdata().tolist() == [2, 5, 10]
        assert line.get_ydata().tolist() == rows["value"].tolist()
    looks = {(line.get_color(), line.get_marker(), line.get_linestyle()) for line in axes[0].lines}
    assert len({colour for colour, _, _ in looks}) == len({marker for _, marker, _ in looks}) == 3


def test_beyond_four_models_only_the_best_and_the_highlighted_have_bands():
    def banded(table, **options):
        data = rd.plot.curve.data(table, **options)
        return sorted(set(data.loc[data["band"], "model"]))

    assert banded(many_models(4)) == ["m0", "m1", "m2", "m3"]
    assert banded(many_models(6)) == ["m5"]
    assert banded(many_models(6), highlight="m2") == ["m2", "m5"]
    smaller = many_models(6).assign(metric="first_rank")
    assert banded(smaller) == ["m0"]
    ax = rd.plot.curve(many_models(6), highlight="m2")
    assert len(ax.collections) == 2


def test_tradeoff_marks_the_models_that_no_other_beats_on_both():
    rng = np.random.default_rng(0)
    values = rng.integers(0, 5, (12, 2)) / 10
    rows = [
        {"model": f"m{i}", "metric": name, "k": 10, "value": value, "ci_low": np.nan, "ci_high": np.nan, "n": 5,
         "n_undefined": 0}
        for i, pair in enumerate(values) for name, value in zip(("first_rank", "ndcg"), pair, strict=True)
    ]  # fmt: skip
    data = rd.plot.tradeoff.data(pd.DataFrame(rows), x="first_rank@10", y="ndcg@10")
    for i, (rank, gain) in enumerate(values):  # a smaller first_rank is better
        beaten = any((r <= rank and g >= gain) and (r < rank or g > gain) for r, g in values)
        assert data.loc[i, "pareto"] == (not beaten)
