"""Folds: a list of a fold is evaluated with the truth of that fold, over the users of that fold."""

import numpy as np
import pandas as pd
import pytest

import recdf as rd

METRICS = ["ndcg@5", "recall@5", "hhi@5"]
BY = ["model", "fold"]


@pytest.fixture(scope="module")
def frames():
    rng = np.random.default_rng(0)
    true = pd.DataFrame(
        {"user_id": rng.integers(0, 40, 300), "item_id": rng.integers(0, 30, 300)}
    ).drop_duplicates()
    true["fold"] = rng.integers(0, 3, len(true))
    lists = [
        (model, fold, user)
        for model in "ab"
        for fold in range(3)
        for user in true["user_id"].unique()
    ]
    pred = pd.DataFrame(lists, columns=["model", "fold", "user_id"]).loc[
        lambda table: table.index.repeat(5)
    ]
    pred["item_id"] = np.concatenate([rng.permutation(30)[:5] for _ in lists])
    pred["rank"] = np.tile(range(1, 6), len(lists))
    return true, pred.sample(frac=0.9, random_state=1)


@pytest.mark.few(1)
@pytest.mark.parametrize("users", ["true", "pred", "both", "all"])
def test_each_fold_is_what_an_evaluation_of_its_rows_gives(frames, users):
    true, pred = frames
    result = rd.evaluate(true, pred, METRICS, by=BY, by_in_true=True, users=users)
    for key, rows in pred.groupby(BY):
        model, fold = key
        one = rd.evaluate(true[true["fold"] == fold], rows, METRICS, users=users)
        same = result.summary[(result.summary["model"] == model) & (result.summary["fold"] == fold)]
        np.testing.assert_allclose(same["value"], one.summary["value"], rtol=1e-12)
        assert same["n"].tolist() == one.summary["n"].tolist()
        per_user = result.per_user[
            (result.per_user["model"] == model) & (result.per_user["fold"] == fold)
        ]
        pd.testing.assert_frame_equal(
            per_user.drop(columns=BY).reset_index(drop=True), one.per_user
        )


@pytest.mark.few(1)
@pytest.mark.parametrize("users", ["true", "both", "all"])
@pytest.mark.parametrize("buckets", [1, 4])
def test_files_give_the_same(frames, users, buckets, tmp_path):
    for name, frame in zip(("true", "pred"), frames, strict=True):
        frame.to_parquet(tmp_path / f"{name}.parquet", index=False)
    options = {"by": BY, "by_in_true": "fold", "users": users}
    paths = tmp_path / "true.parquet", tmp_path / "pred.parquet"
    found = rd.evaluate_parquet(*paths, METRICS, buckets=buckets, **options)
    assert found == rd.evaluate(*frames, METRICS, **options)


@pytest.mark.long
def test_folds_that_are_not_matched_are_a_warning(frames, tmp_path):
    for name, frame in zip(("true", "pred"), frames, strict=True):
        frame.to_parquet(tmp_path / f"{name}.parquet", index=False)
    paths = tmp_path / "true.parquet", tmp_path / "pred.parquet"
    for call in (
        lambda **options: rd.evaluate(*frames, "ndcg@5", by=BY, **options),
        lambda **options: rd.ndcg.per_user(*frames, 5, by=BY, **options),
        lambda **options: rd.evaluate_parquet(*paths, "ndcg@5", by=BY, **options),
        lambda **options: rd.evaluate_parquet(*paths, "ndcg@5", by=BY, buckets=3, **options),
    ):
        with pytest.warns(rd.FoldByWarning, match=r"'fold' too, .*by_in_true=True") as said:
            call()
        assert len(said) == 1
        call(by_in_true=False)
        call(by_in_true=True)
    found = rd.check(*frames, 5, by=BY).set_index("finding")
    assert found.loc["true has columns of by", "examples"] == "'fold'"


def test_what_cannot_be_matched_is_named(frames):
    true, pred = frames
    plain = true.drop(columns="fold")
    for bad, options, words in (
        (
            plain,
            {"by": BY, "by_in_true": True},
            r"by_in_true=True; expected columns of by=\['model', 'fold'\]",
        ),
        (
            true,
            {"by": "model", "by_in_true": "fold"},
            r"by_in_true='fold'; expected columns of by=\['model'\]",
        ),
    ):
        with pytest.raises(rd.ColumnError, match=words):
            rd.evaluate(bad, pred, "ndcg@5", **options)
    with pytest.raises(rd.OptionError, match="by_in_true= needs true="):
        rd.evaluate(None, pred, "hhi@5", by=BY, by_in_true=True)
    with pytest.raises(
        rd.IdTypeError, match=r"true\['fold'\] holds integer ids .* they can never match"
    ):
        rd.evaluate(true, pred.astype({"fold": str}), "ndcg@5", by=BY, by_in_true=True)
    with pytest.raises(
        rd.ColumnError, match=r"users must be a frame with the columns \['user_id', 'fold'\]"
    ):
        rd.evaluate(true, pred, "ndcg@5", by=BY, by_in_true=True, users=[1, 2])


@pytest.mark.long
def test_models_are_compared_within_users_and_folds(frames):
    result = rd.evaluate(*frames, "ndcg@5", by=BY, by_in_true=True)
    (pair,) = result.compare_models(model_col="model", fold="fold", baseline="a").itertuples()
    wide = result.per_user.pivot(index=["user_id", "fold"], columns="model", values="ndcg@5")
    by_hand = (wide["b"] - wide["a"]).groupby("user_id").mean().mean()
    assert pair.diff == pytest.approx(by_hand)
    pd.testing.assert_frame_equal(
        result.compare_models(model_col="model", fold="fold"), result.compare_models(fold="fold")
    )
