"""Both engines, the compiled loops and the tensor operations, against brute force, and on any number of threads."""

import importlib
import logging
import math
import os
import random
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
import torch

from recbole_leaprec import ItemCategories, miscalibration, rerank, sequential_preference
from recbole_leaprec.common import slow_step
from recbole_leaprec.reranking import RERANKERS, compiled, greedy, rerank_sweep
from tests import reference
from tests.pretend import DEVICE, PretendDevice, put, take
from tests.reranking.test_lists import WEIGHTS, random_case

METHODS = sorted(RERANKERS)
FAST = [method for method in METHODS if RERANKERS[method].compiled]


@pytest.fixture(params=["compiled", "tensors"])
def sweep(request):
    """`rerank_sweep` on the one engine or the other."""
    if request.param == "compiled":
        return rerank_sweep

    def on_device(scores, p, categories, *more):
        with PretendDevice():
            return take(rerank_sweep(put(scores), put(p), categories.to(DEVICE), *more))

    return on_device


@pytest.fixture
def threads():
    """Set the number of torch's threads; it is what it was afterwards."""
    before = torch.get_num_threads()
    yield torch.set_num_threads
    torch.set_num_threads(before)


def small_case(seed: int):
    """A few users of a small catalogue: ties, masks, scores of all sizes, users without a preference or without items."""
    draw = random.Random(seed)
    names = [f"c{c}" for c in range(draw.randint(1, 6))]
    lists = [
        [],
        *(draw.sample(names, draw.choice([0, 1, 1, 2, len(names)]) % (len(names) + 1)) for _ in range(draw.randint(1, 12))),
    ]
    if not any(lists):
        lists[1] = names[:1]
    categories = ItemCategories.from_lists(lists)
    rows = reference.rows(categories)
    values = draw.choice([[0.0, 1.0], [-1.0, 0.0, 0.5, 2.0, -math.inf], [-1e30, -3e38, 0.0, 5.0], None])
    users = draw.randint(1, 8)
    scores = [[0.0, *(draw.gauss(0, 2) if values is None else draw.choice(values) for _ in lists[1:])] for _ in range(users)]
    p = []
    for _ in range(users):
        history = [rows[draw.randrange(1, len(lists))].tolist() for _ in range(draw.choice([0, 1, 3, 15]))]
        p.append(reference.preference(history, draw.choice([0.1, 0.9, 1.0])) if history else [0.0] * categories.n_categories)
    dtype = torch.float64 if draw.random() < 0.3 else torch.float32
    return torch.tensor(scores, dtype=dtype), torch.tensor(p, dtype=torch.float64), categories, rows.tolist(), draw


@pytest.mark.slow
def test_lists_equal_brute_force_in_ten_thousand_cases(sweep):
    cases = 0
    for seed in range(2300):
        scores, p, categories, rows, draw = small_case(seed)
        method, k = draw.choice(sorted(WEIGHTS)), draw.randint(1, categories.n_items - 1)
        lam = draw.choice([0.0, 0.05, 0.3, 0.7, 0.95, 1.0])
        got = sweep(scores, p, categories, k, method, [lam])[0].tolist()
        for row, own, found in zip(scores.tolist(), p.tolist(), got, strict=True):
            assert found == reference.greedy(row, own, rows, k, WEIGHTS[method](lam), 0.01), (seed, method, lam)
            cases += 1
    assert cases > 10_000


@pytest.mark.parametrize("count", [1, 2, 4])
@pytest.mark.parametrize("users", [0, 1, 2, 1000])
@pytest.mark.parametrize("method", FAST)
def test_lists_do_not_depend_on_threads_and_batches(threads, method, count, users):
    scores, p, categories = random_case(120, 9, users, seed=5, decimals=1)
    threads(count)
    whole = rerank_sweep(scores, p, categories, 6, method, [0.0, 0.3, 1.0])
    assert whole.shape == (3, users, 6)
    threads(1)
    for user in range(0, users, 97):
        one = rerank_sweep(scores[user : user + 1], p[user : user + 1], categories, 6, method, [0.0, 0.3, 1.0])
        assert torch.equal(one[:, 0], whole[:, user])


def test_an_error_in_one_thread_ends_the_call_and_names_the_first_bad_row(threads):
    scores, p, categories = random_case(30, 4, 500, seed=2)
    threads(4)
    scores[311, 7], scores[499, 2] = torch.nan, torch.inf
    for method in METHODS:
        with pytest.raises(ValueError, match=r"2 rows of scores hold nan or \+inf; the first is row 311, with 1"):
            rerank(scores, p, categories, 3, method)


def test_eight_python_threads_may_rerank_at_once(threads):
    threads(2)
    cases = [random_case(100 + n, 7, 200, seed=n) for n in range(8)]
    expected = [[rerank(*case, 8, method) for method in FAST] for case in cases]
    start = threading.Barrier(8)

    def work(number):
        start.wait()
        return [rerank(*cases[number], 8, method) for _ in range(3) for method in FAST]

    with ThreadPoolExecutor(8) as pool:
        for own, found in zip(expected, pool.map(work, range(8)), strict=True):
            assert all(torch.equal(a, b) for a, b in zip(own * 3, found, strict=True))


@pytest.mark.filterwarnings(
    "ignore:This process .* is multi-threaded, use of fork:DeprecationWarning"
)  # as it should be here
def test_a_fork_reranks_as_its_parent(threads):
    threads(4)
    scores, p, categories = random_case(100, 7, 200, seed=3)
    expected = [rerank(scores, p, categories, 8, method) for method in FAST]
    child = os.fork()
    if child == 0:
        same = all(torch.equal(rerank(scores, p, categories, 8, m), e) for m, e in zip(FAST, expected, strict=True))
        os._exit(0 if same else 1)
    assert os.waitpid(child, 0)[1] == 0


@pytest.mark.parametrize("method", METHODS)
def test_autocast_and_default_types_change_nothing(method):
    scores, p, categories = random_case(300, 12, 20, seed=4, decimals=1)
    expected = rerank(scores, p, categories, 8, method)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        assert torch.equal(rerank(scores, p, categories, 8, method), expected)
    before = torch.get_default_dtype()
    torch.set_default_dtype(torch.float64)
    try:
        assert torch.equal(rerank(scores, p, categories, 8, method), expected)
    finally:
        torch.set_default_dtype(before)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_half_precision_is_taken_as_it_is(sweep, dtype):
    scores, p, categories = random_case(60, 6, 30, seed=6)
    for method in FAST:
        assert torch.equal(
            sweep(scores.to(dtype), p, categories, 5, method, [0.3]),
            rerank_sweep(scores.to(dtype).float(), p, categories, 5, method, [0.3]),
        )


def test_a_user_without_a_preference_gets_the_most_relevant_items(sweep):
    scores, p, categories = random_case(40, 5, 6, seed=7)
    p[::2] = sequential_preference([[], [], []], categories)
    for method in FAST:
        for lists in sweep(scores, p, categories, 8, method, [0.0, 0.4, 1.0]):
            assert torch.equal(lists[::2], rerank(scores, None, categories, 8, "none")[::2])


@pytest.mark.parametrize("method", METHODS)
def test_every_reranker_gives_the_same_lists_on_a_device(method):
    scores, p, categories = random_case(80, 6, 12, seed=8, decimals=1)
    with PretendDevice() as device:
        own = categories.to(DEVICE)
        lists = rerank(put(scores), put(p), own, 7, method, 0.4, order="relevance", temperature=0.7, candidates=50)
        skl = miscalibration(put(p), lists, own)
    expected = rerank(scores, p, categories, 7, method, 0.4, order="relevance", temperature=0.7, candidates=50)
    assert torch.equal(take(lists), expected)
    assert torch.allclose(take(skl), miscalibration(p, expected, categories))
    assert device.launches > 0


def test_the_pretended_device_tells_devices_apart():
    one, other = torch.ones(3), torch.zeros(3)
    with PretendDevice():
        assert put(one).device == DEVICE
        assert (put(one) + put(other) + 1).sum().item() == 6
        with pytest.raises(RuntimeError, match="tensors of two devices"):
            put(one) + other
        with pytest.raises(RuntimeError):
            put(one).numpy()


SHAPES = ["ML-1M", "Goodreads", "Grocery", "Steam", "Yelp"]


@pytest.fixture
def benchmark_task(monkeypatch):
    monkeypatch.syspath_prepend(str(Path(__file__).parents[2] / "benchmarks"))
    return importlib.import_module("rerank").task


@pytest.mark.slow
@pytest.mark.parametrize("shape", SHAPES)
def test_a_device_gets_few_operations_and_is_never_waited_for(benchmark_task, monkeypatch, shape):
    monkeypatch.setattr(greedy, "LEAST_MEMORY", 0)  # as many parts as 1,024 users would take
    _, _, scores, p, categories = benchmark_task(shape, users=200)
    weights = torch.tensor([[0.3 ** (1 / position) for position in range(1, 11)]], dtype=torch.float64)
    with PretendDevice() as device:
        own, on_device = categories.to(DEVICE), (put(scores), put(p))
        device.start()
        lists = greedy.greedy_on_device(*on_device, own, 10, weights, 0.01)
    assert torch.equal(take(lists), compiled.greedy(scores, p, categories, 10, weights, 0.01))
    assert device.launches <= 800
    assert device.waits == 0
    assert device.peak <= 3 * scores.numel() * scores.element_size() + categories.n_profiles * categories.n_categories


@pytest.mark.parametrize("shape", ["ML-1M", "Grocery"])
def test_setwise_takes_its_scores_from_a_device_in_a_few_copies(benchmark_task, shape):
    _, _, scores, p, categories = benchmark_task(shape, users=100)
    with PretendDevice() as device:
        own, on_device = categories.to(DEVICE), (put(scores), put(p))
        device.start()
        lists = rerank_sweep(*on_device, own, 10, "setwise", [0.1, 0.3])
    assert torch.equal(take(lists), rerank_sweep(scores, p, categories, 10, "setwise", [0.1, 0.3]))
    assert device.launches <= 50
    assert 0 < device.waits <= 20
    assert device.peak <= 0.1 * scores.numel() * scores.element_size()


def test_the_first_call_says_that_it_compiles(monkeypatch, caplog):
    arrays = compiled._arrays
    monkeypatch.setattr(slow_step, "PATIENCE", 0.01)
    monkeypatch.setattr(compiled, "_compiled", set())
    monkeypatch.setattr(compiled, "_arrays", lambda categories: time.sleep(0.3) or arrays(categories))  # as compiling would
    scores, p, categories = random_case(20, 4, 2, seed=1)
    with caplog.at_level(logging.INFO):
        rerank(scores, p, categories, 3)
        rerank(scores, p, categories, 3)
    assert [record.getMessage().partition(" for")[0] for record in caplog.records] == ["compiling the rerankers"]


def test_where_nobody_logs_it_is_said_on_the_terminal(monkeypatch, capsys):
    monkeypatch.setattr(slow_step, "PATIENCE", 0.01)
    logger = logging.Logger("of nobody")
    with slow_step.slow_step("compiling", slow_step.in_log(logger)):
        time.sleep(0.3)
    assert capsys.readouterr().err.endswith("  compiling\n")


@pytest.mark.slow
def test_rerankers_work_where_nothing_can_be_kept_on_disk(tmp_path):
    program = (
        "import torch\nfrom recbole_leaprec import ItemCategories, rerank\n"
        "categories = ItemCategories.from_lists([[], ['a'], ['a'], ['b']])\n"
        "print(rerank(torch.tensor([[0.0, 3.0, 2.0, 1.0]]), torch.tensor([[0.5, 0.5]]), categories, k=2, lam=0.5).tolist())"
    )
    nowhere = {**os.environ, "NUMBA_CACHE_DIR": "/dev/null/nowhere", "HOME": "/dev/null", "XDG_CACHE_HOME": "/dev/null"}
    done = subprocess.run(
        [sys.executable, "-c", program], env=nowhere, cwd=tmp_path, capture_output=True, text=True, timeout=300
    )
    assert done.stdout.strip() == "[[1, 3]]", done.stderr
