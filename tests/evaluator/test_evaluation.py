"""Trainer, collector and metrics: RecBole's figures on our lists."""

import threading

import pytest
import torch
from recbole.evaluator import Collector, Evaluator
from recbole.utils import init_seed

from recbole_leaprec import evaluate, rerank, run_leaprec, sequential_preference
from recbole_leaprec.evaluator import RerankingCollector
from recbole_leaprec.evaluator.resources import HITS, LISTS, PREFERENCES, RANKS, SEQUENTIAL_PREFERENCE, USER_METRICS
from recbole_leaprec.reranking import Reranking
from recbole_leaprec.trainer import LeapRecTrainer
from tests import reference
from tests.toy import SMALL

RECBOLE_METRICS = ["Hit", "NDCG", "MRR", "Recall", "Precision", "MAP"]


@pytest.fixture
def make_trainer(prepare, tmp_path):
    def make(**changes):
        init_seed(5, True)
        config, dataset, loaders = prepare(output_dir=str(tmp_path / "run"), **changes)
        model = config.model_class(config, dataset)
        for parameter in model.parameters():
            torch.nn.init.normal_(parameter, std=0.5)
        return LeapRecTrainer(config, model, dataset), *loaders

    return make


def histories(dataset, held_out):
    """What each user (by id) had before the target, straight from the sequences."""
    offsets, items = dataset.sequences.offsets.tolist(), dataset.sequences.items.tolist()
    return {user: items[offsets[user] : offsets[user + 1] - held_out] for user in range(1, dataset.user_num)}


@pytest.mark.parametrize("mask_history", [True, False])
def test_without_reranking_the_figures_are_recboles_own_on_the_same_scores(make_trainer, mask_history):
    trainer, _, _, test = make_trainer(metrics=RECBOLE_METRICS, reranker="none", mask_history=mask_history)
    ours = trainer.evaluate(test, load_best_model=False)

    seen = histories(trainer.dataset, held_out=1)
    collector = Collector(trainer.config)
    with torch.no_grad():
        for interaction, _, positive_u, positive_i in test:
            scores = trainer.model.full_sort_predict(interaction)
            scores[:, 0] = -torch.inf
            if mask_history:
                for row, user in enumerate(interaction["user_id"].tolist()):
                    scores[row, seen[user]] = -torch.inf
            collector.eval_batch_collect(scores, interaction, positive_u, positive_i)
    assert ours == Evaluator(trainer.config).evaluate(collector.get_data_struct())


def test_every_recbole_metric_sees_the_reranked_list_and_skl_is_that_of_the_definition(make_trainer):
    alpha, beta = 0.6, 0.1
    trainer, _, _, test = make_trainer(
        metrics=[*RECBOLE_METRICS, "SKL", "CKL"], metric_decimal_place=6, alpha=alpha, beta=beta
    )
    asked = [Reranking(), Reranking("leaprec", 0.3), Reranking("leaprec", 0.9, 15)]
    results = trainer.evaluate_rerankings(test, asked)

    dataset, seen = trainer.dataset, histories(trainer.dataset, held_out=1)
    distributions = reference.rows(dataset.categories).tolist()
    for reranking, result in zip(asked, results, strict=True):
        hits, divergences, static = [], [], []
        for interaction, _, _, targets in test:
            scores = trainer.model.full_sort_predict(interaction).detach()
            users = interaction["user_id"].tolist()
            for row, user in enumerate(users):
                scores[row, seen[user]] = -torch.inf
            p = sequential_preference([seen[user] for user in users], dataset.categories, alpha)
            lists = rerank(scores, p, dataset.categories, 10, reranking.method, reranking.lam, beta, reranking.candidates)
            for row, user in enumerate(users):
                hits.append(int(targets[row]) in lists[row, :5].tolist())
                mix = reference.mean([distributions[i] for i in lists[row, :5].tolist()], len(distributions[0]))
                history = [distributions[i] for i in seen[user]]
                divergences.append(reference.kl(reference.preference(history, alpha), mix, beta))
                static.append(reference.kl(reference.preference(history, 1.0), mix, beta))
        assert result.metrics["hit@5"] == pytest.approx(sum(hits) / len(hits), abs=1e-6)
        assert result.metrics["skl@5"] == pytest.approx(sum(divergences) / len(hits), abs=1e-5)
        assert result.metrics["ckl@5"] == pytest.approx(sum(static) / len(hits), abs=1e-5)
    assert results[1].metrics["skl@10"] < results[0].metrics["skl@10"]


@pytest.mark.parametrize("positions", ["all", "last"])
def test_training_batches_carry_the_preference_before_each_target(make_trainer, positions):
    trainer, train, _, _ = make_trainer(alpha=0.5, train_positions=positions, MAX_ITEM_LIST_LENGTH=4)
    dataset, batches = trainer.dataset, []

    def spy(batch):
        batches.append(batch)
        return trainer.model.calculate_loss(batch)

    trainer._train_epoch(train, 0, loss_func=spy)
    distributions, items = reference.rows(dataset.categories).tolist(), dataset.sequences.items.tolist()
    seen = 0
    for batch in batches:
        for at in map(tuple, (batch["item_id"] != 0).nonzero().tolist()):
            begin = int(dataset.sequences.offsets[batch["user_id"][at[0]]])
            target = int(batch["history_end"][at]) + 1
            assert items[target] == batch["item_id"][at]
            expected = reference.preference([distributions[i] for i in items[begin:target]], 0.5)
            assert batch["preference"][at].tolist() == pytest.approx(expected, abs=1e-6)
            seen += 1
    assert seen == len(train._dataset)


def test_evaluating_rerankings_leaves_validation_as_it_was(make_trainer):
    trainer, _, valid, test = make_trainer()
    before = trainer.evaluate(valid, load_best_model=False)
    trainer.evaluate_rerankings(test, [Reranking("leaprec", 1.0)])
    assert trainer.evaluate(valid, load_best_model=False) == before


def test_figures_do_not_depend_on_the_batch_size(make_trainer):
    results = []
    for size in (1, 7, 512):
        trainer, _, _, test = make_trainer(eval_batch_size=size)
        results.append([r.metrics for r in trainer.evaluate_rerankings(test, [Reranking(), Reranking("leaprec", 0.5)])])
    assert results[0] == results[1] == results[2]


def test_metrics_that_need_counts_or_scores_work_too(make_trainer):
    names = ["Hit", "GiniIndex", "ItemCoverage", "AveragePopularity", "TailPercentage", "ShannonEntropy", "GAUC"]
    trainer, train, _, test = make_trainer(metrics=names, valid_metric="Hit@10")
    trainer.eval_collector.data_collect(train)
    plain, reranked = (r.metrics for r in trainer.evaluate_rerankings(test, [Reranking(), Reranking("leaprec", 0.9)]))
    assert plain["gauc"] == reranked["gauc"]
    assert plain["averagepopularity@5"] != reranked["averagepopularity@5"]


@pytest.mark.parametrize("mask_history", [True, False])
def test_metrics_of_all_users_together_are_recboles_own_on_the_same_lists(make_trainer, mask_history):
    names = ["NDCG", "GiniIndex", "ItemCoverage", "AveragePopularity", "TailPercentage", "ShannonEntropy", "MRR"]
    trainer, train, _, test = make_trainer(metrics=names, mask_history=mask_history, metric_decimal_place=8)
    trainer.eval_collector.data_collect(train)
    for kept in trainer.evaluate_rerankings(test, [Reranking(), Reranking("leaprec", 0.9)], per_user=True):
        targets = torch.cat([positive_i for *_, positive_i in test])
        lists = kept.struct.get(LISTS)
        hits = torch.cat([lists == targets[:, None], torch.ones(len(lists), 1, dtype=torch.bool)], 1).int()
        for name, value in ((LISTS, lists), (HITS, hits)):
            trainer.eval_collector.data_struct.set(name, value)
        assert kept.metrics == pytest.approx(
            Evaluator(trainer.config).evaluate(trainer.eval_collector.data_struct), abs=1e-8
        )


@pytest.mark.parametrize(("metrics", "kept"), [(["Hit", "SKL", "CKL"], set()), (["Hit", "ItemCoverage"], {LISTS})])
def test_nothing_is_kept_of_the_users_but_what_a_metric_of_all_together_needs(make_trainer, metrics, kept):
    trainer, train, _, test = make_trainer(metrics=metrics, valid_metric="Hit@10")
    trainer.eval_collector.data_collect(train)
    for one in trainer.evaluate_rerankings(test, [Reranking(), Reranking("leaprec", 0.9)]):
        assert {name for name in (LISTS, HITS, *PREFERENCES.values(), RANKS, USER_METRICS) if name in one.struct} == kept


def test_a_trained_run_is_evaluated_with_metrics_that_need_counts_and_without_hits(toy, tmp_path):
    settings = {**SMALL, "data_path": str(toy), "output_dir": str(tmp_path / "run"), "epochs": 1}
    run_leaprec("SASRecCD", "toy", config_dict=settings)
    checkpoint, threads = tmp_path / "run" / "model.pth", threading.active_count()
    for number, metrics in enumerate((["ItemCoverage", "GiniIndex"], ["SKL"])):
        changes = {"metrics": metrics, "output_dir": str(tmp_path / f"again-{number}")}
        test = evaluate(checkpoint, {**changes, **({"target_skl": 0.5} if metrics == ["SKL"] else {})})["rerank"][0]["test"]
        assert set(test) == {f"{metric.lower()}@{k}" for metric in metrics for k in (5, 10)}
    assert threading.active_count() == threads
    assert not (tmp_path / "again-0" / "tensorboard").exists()
    with pytest.raises(ValueError, match="unknown split 'validation'"):
        evaluate(checkpoint, {"output_dir": str(tmp_path / "no")}, split="validation")
    assert not (tmp_path / "no").exists()


def test_validation_ranks_by_score_alone(make_trainer):
    trainer, _, valid, _ = make_trainer(reranker="leaprec", rerank_lambda=1.0)
    score, result = trainer._valid_epoch(valid)
    assert result == trainer.evaluate_rerankings(valid, [Reranking("none")])[0].metrics
    assert score == result["ndcg@10"]


@pytest.mark.parametrize("metric", ["SKL@10", "skl@5", "CKL@10"])
def test_skl_can_choose_the_epoch_and_smaller_is_better(make_trainer, metric):
    trainer, train, valid, _ = make_trainer(valid_metric=metric, epochs=3)
    scores = []
    best, _ = trainer.fit(train, valid, verbose=False, callback_fn=lambda epoch, score: scores.append(score))
    assert best == min(scores)


def test_users_with_too_few_items_are_counted_once_an_evaluation(make_trainer, caplog):
    trainer, _, _, test = make_trainer(topk=[10, 30], eval_batch_size=4)
    trainer.evaluate(test, load_best_model=False)
    short = sum(len(set(items)) > 10 for items in histories(trainer.dataset, held_out=1).values())
    messages = [r.getMessage() for r in caplog.records if "fewer than 30 items" in r.getMessage()]
    assert messages == [
        f"{short} of 30 users have fewer than 30 items to recommend; their lists are shorter, with 0 at the end"
    ]


def test_the_preference_can_be_that_of_training_items_alone(make_trainer):
    trainer, _, valid, test = make_trainer(preference_history="training", alpha=0.5, metrics=["NDCG", "SKL"])
    distributions = reference.rows(trainer.dataset.categories).tolist()
    trainer.tot_item_num = trainer.dataset.item_num  # as `evaluate` does
    trained = histories(trainer.dataset, held_out=2)
    collector = RerankingCollector(trainer.config, trainer.evaluator, trainer.categories, [Reranking()])
    for loader in (valid, test):
        for batch in loader:
            interaction = trainer._full_sort_batch_eval(batch)[0]
            trainer.add_preferences(interaction, collector)
            for user, p in zip(interaction["user_id"].tolist(), interaction[SEQUENTIAL_PREFERENCE].tolist(), strict=True):
                assert p == pytest.approx(reference.preference([distributions[i] for i in trained[user]], 0.5), abs=1e-6)


def test_the_precision_of_matrix_products_is_set_in_training_alone(make_trainer, monkeypatch):
    trainer, train, valid, _ = make_trainer(matmul_precision="medium", epochs=2)
    calculate_loss, seen = trainer.model.calculate_loss, set()
    monkeypatch.setattr(
        trainer.model,
        "calculate_loss",
        lambda batch: seen.add(torch.get_float32_matmul_precision()) or calculate_loss(batch),
    )
    predict = trainer.model.full_sort_predict
    scored = set()
    monkeypatch.setattr(
        trainer.model, "full_sort_predict", lambda batch: scored.add(torch.get_float32_matmul_precision()) or predict(batch)
    )
    trainer.fit(train, valid)
    assert (seen, scored) == ({"medium"}, {"highest"})


def test_a_loss_that_is_no_number_is_told_with_what_to_try(make_trainer):
    trainer, train, valid, _ = make_trainer(learning_rate=1e18, epochs=3)
    with pytest.raises(ValueError, match=r"the training loss is not a number: try a smaller learning_rate \(it is 1e\+18\)"):
        trainer.fit(train, valid)


def test_the_mean_of_the_weights_is_validated_and_saved(make_trainer):
    """The validation metrics of the best epoch are those of the saved weights, and not of those that are trained on."""
    trainer, train, valid, _ = make_trainer(weight_average=0.9, epochs=3, learning_rate=0.05)
    trainer.fit(train, valid)
    trained_on = [one.detach().clone() for one in trainer.model.parameters()]
    trainer.load(trainer.saved_model_file)
    assert trainer.evaluate(valid, load_best_model=False) == trainer.best_valid_result
    assert any(not torch.equal(one, own) for one, own in zip(trained_on, trainer.model.parameters(), strict=True))


@pytest.mark.parametrize(
    ("schedule", "expected"), [("constant", [0.01] * 4), ("cosine", [0.01, 0.00853553, 0.005, 0.00146447])]
)
def test_the_learning_rate_follows_its_schedule(make_trainer, schedule, expected):
    trainer, train, _, _ = make_trainer(lr_schedule=schedule, learning_rate=0.01, epochs=4)
    rates = []
    for epoch in range(4):
        trainer._train_epoch(train, epoch)
        rates.append(trainer.optimizer.param_groups[0]["lr"])
    assert rates == pytest.approx(expected, rel=1e-5)
