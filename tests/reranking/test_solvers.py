"""mip and mcf against every possible set."""

import os
import subprocess
import sys
from itertools import combinations, product
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from scipy.optimize import linprog

from recbole_leaprec import rerank
from recbole_leaprec.reranking import mcf, mip, solvers
from recbole_leaprec.reranking.solvers import Program, Solution
from tests import reference
from tests.reranking.test_lists import random_case
from tests.strategies import rerank_cases


def mip_objective(program, chosen):
    q = program.shares[chosen].mean(0)
    return (1 - program.lam) * program.scores[chosen].sum() - program.lam * np.abs(program.p - q).sum()


def mcf_penalty(p, counts, k):
    """KL(q || p) of counts of categories, as defined."""
    p = np.maximum(p, mcf.FLOOR)
    return sum(n / k * np.log(n / k) - n / k * np.log(p[c]) for c, n in enumerate(counts) if n)


def mcf_objective(program, chosen):
    """The best over all ways to count each chosen item for one of its categories."""
    choices = [np.flatnonzero(program.shares[i]) for i in chosen]
    penalty = min(
        mcf_penalty(program.p, np.bincount(assigned, minlength=len(program.p)), program.k) for assigned in product(*choices)
    )
    return (1 - program.lam) * program.scores[chosen].sum() - program.lam * penalty


def programs_of(case, k):
    for scores, p in zip(case.scores, case.p, strict=True):
        order = sorted((i for i in range(1, len(scores)) if scores[i] > float("-inf")), key=lambda i: (-scores[i], i))[:7]
        if order:
            shares = np.array([case.distributions[i] for i in order])
            yield Program(np.array([scores[i] for i in order]), shares, np.array(p), min(k, len(order)), case.lam)


@pytest.mark.parametrize(("module", "objective", "slack"), [(mip, mip_objective, 1e-3), (mcf, mcf_objective, 1e-6)])
def test_the_solution_is_as_good_as_the_best_of_all_sets(module, objective, slack):
    @settings(max_examples=60)
    @given(rerank_cases(max_users=3))
    def check(case):
        for program in programs_of(case, 3):
            solution = module.solve(program)
            assert len(set(solution.chosen.tolist())) == program.k
            assert solution.finished
            best = max(objective(program, list(chosen)) for chosen in combinations(range(len(program.scores)), program.k))
            assert objective(program, solution.chosen) >= best - slack * max(1, abs(best))

    check()


def test_mcf_equals_the_linear_program_of_its_flow():
    generator = np.random.default_rng(0)
    for _ in range(20):
        n, c, k, lam = 30, 6, 8, generator.choice([0.2, 0.6, 0.95])
        shares = (generator.random((n, c)) < 0.4) + np.eye(c)[generator.integers(c, size=n)]
        shares = (shares > 0) / (shares > 0).sum(1, keepdims=True)
        program = Program(np.sort(generator.normal(size=n))[::-1], shares, generator.dirichlet(np.ones(c) * 0.5), k, lam)
        slots = lam * mcf.slot_costs(program.p, k)
        # Variables: item i in category c, then slot j of category c.
        links = np.argwhere(shares > 0)
        cost = np.concatenate([-(1 - lam) * program.scores[links[:, 0]], slots.ravel()])
        flow = np.zeros((c + 1, len(cost)))
        flow[links[:, 1], np.arange(len(links))] = 1
        for category in range(c):
            flow[category, len(links) + category * k : len(links) + (category + 1) * k] = -1
        flow[c, : len(links)] = 1
        once = np.zeros((n, len(cost)))
        once[links[:, 0], np.arange(len(links))] = 1
        lp = linprog(cost, once, np.ones(n), flow, [*[0] * c, k], bounds=(0, 1))
        chosen = mcf.solve(program).chosen
        assignment = linprog(cost, once, np.isin(np.arange(n), chosen).astype(float), flow, [*[0] * c, k], bounds=(0, 1))
        assert assignment.fun == pytest.approx(lp.fun, abs=1e-7)


def test_both_are_at_least_as_good_as_the_greedy_on_their_own_objective():
    scores, p, categories = random_case(200, 6, 12, seed=5)
    shares = reference.rows(categories).numpy()
    for module, objective in ((mip, mip_objective), (mcf, mcf_objective)):
        name = module.__name__.rpartition(".")[2]
        for lam in (0.3, 0.9):
            solved, greedy = (rerank(scores, p, categories, 5, method, lam, candidates=50) for method in (name, "calirec"))
            for row in range(len(scores)):
                values = [
                    objective(Program(scores[row, lists].double().numpy(), shares[lists], p[row].double().numpy(), 5, lam), np.arange(5))
                    for lists in (solved[row].numpy(), greedy[row].numpy())
                ]  # fmt: skip
                assert values[0] >= values[1] - 1e-3


@pytest.mark.parametrize("method", ["mip", "mcf"])
def test_lists_come_in_order_of_score_and_from_the_candidates_alone(method):
    scores, p, categories = random_case(300, 6, 8, seed=6)
    lists = rerank(scores, p, categories, 10, method, lam=0.8, candidates=20)
    top = rerank(scores, p, categories, 20, "none")
    for row in range(8):
        values = scores[row, lists[row]]
        assert (values[:-1] >= values[1:]).all()
        assert set(lists[row].tolist()) <= set(top[row].tolist())


@pytest.mark.parametrize("method", ["mip", "mcf"])
def test_users_with_too_few_items_get_what_there_is(method):
    scores, p, categories = random_case(20, 4, 3, seed=9)
    scores[0] = -torch.inf
    scores[1, 3:] = -torch.inf
    scores[1, 1:3] = torch.tensor([1.0, 2.0])
    lists = rerank(scores, p, categories, 4, method, lam=0.5)
    assert lists[:2].tolist() == [[0, 0, 0, 0], [2, 1, 0, 0]]
    assert (lists[2] > 0).all()


@pytest.mark.slow
@pytest.mark.parametrize("method", ["mip", "mcf"])
def test_users_are_spread_over_worker_processes(method, monkeypatch):
    scores, p, categories = random_case(60, 4, 40, seed=7)
    here = rerank(scores, p, categories, 3, method, lam=0.7)
    monkeypatch.setattr(solvers, "IN_PROCESS", 20)
    monkeypatch.setattr(solvers.os, "cpu_count", lambda: 2)
    assert torch.equal(rerank(scores, p, categories, 3, method, lam=0.7), here)
    assert os.getpid() not in {*solvers._spread(process_of, range(40), 40)}


def process_of(_):
    return os.getpid()


SCRIPT = """
import torch
from recbole_leaprec import ItemCategories, rerank
categories = ItemCategories.from_lists([[], *(["abc"[n % 3]] for n in range(30))])
print("begun")
scores, p = torch.rand(200, 31, generator=torch.Generator().manual_seed(0)), torch.full((200, 3), 1 / 3)
print(rerank(scores, p, categories, method="mcf").shape)
"""


@pytest.mark.slow
@pytest.mark.parametrize("workers", ["1", "0"])  # 0: joblib does without
def test_a_script_without_a_main_guard_may_use_the_workers(tmp_path, workers):
    (tmp_path / "script.py").write_text(SCRIPT)
    root = str(Path(__file__).resolve().parents[2])
    environment = {**os.environ, "PYTHONPATH": root, "JOBLIB_MULTIPROCESSING": workers}
    done = subprocess.run(
        [sys.executable, tmp_path / "script.py"], capture_output=True, text=True, env=environment, check=False
    )
    assert done.stdout.splitlines() == ["begun", "torch.Size([200, 10])"], done.stderr


def test_lists_that_hit_the_time_limit_are_counted(caplog):
    scores, p, categories = random_case(30, 4, 3, seed=8)
    lists = solvers.solve_all(unfinished, scores, p, categories, 2, [0.5, 0.7])
    assert lists.shape == (2, 3, 2)
    assert "6 of 6 lists hit the limit of 600 s; the best list found so far is used" in caplog.text


def test_a_solver_that_runs_out_of_time_leaves_the_best_list_found(monkeypatch, caplog):
    monkeypatch.setattr(mip, "TIME_LIMIT", 0.0)  # HiGHS really stops: no solution, or one it cannot prove
    scores, p, categories = random_case(400, 18, 2, seed=10)
    lists = rerank(scores, p, categories, 10, "mip", lam=0.9)
    assert all(len(set(row)) == 10 and 0 not in row for row in lists.tolist())
    assert "2 of 2 lists hit the limit" in caplog.text


def unfinished(program):
    return Solution(np.arange(program.k), finished=False)
