"""The rerankers' loops over one user after another, compiled for the CPU.

Everything is in float64, and ties are decided by rule: objectives closer than `TIE` are equal, and go to the more relevant item,
then to the lower id. So a list is the one of trying every item, whatever the batch or the number of threads.

What an item saves of the divergence depends on its profile alone, so only the best unpicked item of each profile can win.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numba import njit

TIE = 1e-9
SLACK = 2 * TIE  # for bounds, whose last bits are off
SMALLEST_SHARE = 1e-20
BLOCK = 64

CAUTION = 4
"""By how much calibration weighs less, against relevance, in the set that swaps start from."""
LOOKS = 10_000
"""Profiles to look at, about, in search of two swaps that help together, before it is given up."""
TRIES, CANDIDATES = 3, 16
"""How many items to try, for each two that leave, in the place of the one: at least, and at most where there is time for more."""
TRIPLES = 512
"""Up to this many times profiles, all three items that may leave are tried."""
COPIED, LEVELS = 2048, 5
"""Up to how many profiles a change is undone from a copy; and how many changes are open at a time, at most."""


def _compiled(function=None, **options):
    """Compile at the first call, without Python's lock, and keep the result on disk where that can be written to."""
    if function is None:
        return lambda function: _compiled(function, **options)
    try:
        return njit(nogil=True, cache=True, **options)(function)
    except RuntimeError:  # numba knows no folder that can be written to
        return njit(nogil=True, **options)(function)


@_compiled
def _has_nan(row):
    found = False
    for item in range(1, len(row)):
        found |= row[item] != row[item]
    return found


@_compiled(fastmath={"nnan", "nsz"})  # the order of -0 and 0 does not matter, and nan has been looked for
def _best_scores(row, profile_of_item, best):
    """The best score of each profile, -inf where it has no allowed item. Without a branch, which would often go wrong."""
    best[:] = -np.inf
    for item in range(1, len(row)):
        best[profile_of_item[item]] = max(best[profile_of_item[item]], row[item])


@_compiled
def _best_items(row, items, depth, values, ids):
    """The best `depth` of these items, equal scores by rising id, into `values` and `ids`; how many there are."""
    count = 0
    for item in items:
        score = np.float64(row[item])
        if score == -np.inf or (count == depth and score <= values[count - 1]):
            continue
        place = min(count, depth - 1)
        while place > 0 and values[place - 1] < score:
            values[place], ids[place] = values[place - 1], ids[place - 1]
            place -= 1
        values[place], ids[place] = score, item
        count = min(count + 1, depth)
    return count


@_compiled
def _find(profile, row, depth, items_by_profile, profile_begin, found, values, ids):
    """Look up the best items of a profile, if that has not been done."""
    if found[profile] < 0:
        items = items_by_profile[profile_begin[profile] : profile_begin[profile + 1]]
        found[profile] = _best_items(row, items, depth, values[profile], ids[profile])


@_compiled
def _saved(profile, p, picked, smoothing, member_begin, members):
    """How much an item of the profile saves of S_KL on top of `picked`: `sum_c p log(1 + share / (picked + smoothing p))`."""
    begin, end = member_begin[profile], member_begin[profile + 1]
    share = 1.0 / (end - begin)
    total = 0.0
    for place in range(begin, end):
        own = p[members[place]]
        if own > 0:
            total += own * math.log(1 + share / (picked[members[place]] + smoothing * max(own, SMALLEST_SHARE)))
    return total


@_compiled
def _saved_by_all(p, smoothing, last, category_begin, pair_share, pair_begin, profile_by_pair, of_pair, saved, slope):
    """What an item of each profile saves as the only one of its list, and by how much that falls, at least, as the list grows.

    With `smoothing = k beta / (1-beta)`, a term `p log(1 + share / (smoothing p))` falls by `p x / (1 + x)` for each unit of
    log k, where `x = share / (smoothing p)`; that is smallest at the last position, whose smoothing is `last`.
    """
    saved[:] = 0.0
    slope[:] = 0.0
    for category in range(len(p)):
        own = p[category]
        if own > 0:
            floor = max(own, SMALLEST_SHARE)
            for pair in range(category_begin[category], category_begin[category + 1]):
                value = own * math.log(1 + pair_share[pair] / (smoothing * floor))
                steepness = own * pair_share[pair] / (pair_share[pair] + last * floor)
                of_pair[0, pair], of_pair[1, pair] = value, steepness
                for place in range(pair_begin[pair], pair_begin[pair + 1]):
                    saved[profile_by_pair[place]] += value
                    slope[profile_by_pair[place]] += steepness


@_compiled
def _lower(
    category, p, before, after, smoothing, category_begin, pair_share, pair_begin, profile_by_pair, of_pair, saved, slope
):
    """Lower the bounds of all profiles that have the category, of which the list has `after` now and had `before`."""
    own = p[category]
    if own == 0:
        return
    rest = after + smoothing * max(own, SMALLEST_SHARE)
    for pair in range(category_begin[category], category_begin[category + 1]):
        value = own * math.log(1 + pair_share[pair] / rest)
        if before == 0:
            change, steepness = value - of_pair[0, pair], of_pair[1, pair]
        else:
            change, steepness = value - of_pair[2, pair], 0.0
        of_pair[2, pair] = value
        for place in range(pair_begin[pair], pair_begin[pair + 1]):
            saved[profile_by_pair[place]] += change
            slope[profile_by_pair[place]] -= steepness


@_compiled
def _worth(relevance_weight, best, weight, saved):
    """`relevance_weight best + weight saved`, without 0 times -inf."""
    if weight == 0:
        return best
    if relevance_weight == 0:
        return saved
    return relevance_weight * best + weight * saved


@_compiled(fastmath={"nnan", "nsz", "contract"})
def _largest_of_blocks(relevance_weight, best, weight, saved, slope, log_position, block):
    """The largest bound of every `BLOCK` profiles."""
    for number in range(len(block)):
        begin, end = number * BLOCK, min(number * BLOCK + BLOCK, len(best))
        largest = -np.inf
        if weight == 0:
            for profile in range(begin, end):
                largest = max(largest, best[profile])
        elif relevance_weight == 0:
            for profile in range(begin, end):
                largest = max(largest, saved[profile] - slope[profile] * log_position)
        else:
            for profile in range(begin, end):
                value = relevance_weight * best[profile] + weight * (saved[profile] - slope[profile] * log_position)
                largest = max(largest, value)
        block[number] = largest


@_compiled
def greedy(
    scores, p, weights, beta, profile_of_item, items_by_profile, profile_begin, member_begin, members, category_begin,
    pair_share, pair_begin, profile_by_pair, start, stop, lists,
):  # fmt: skip
    """Fill `lists [S, B, k]` for users `start` to `stop`; the first of them whose scores hold nan or +inf, or -1.

    Args:
        weights: `[S, k]` of calibration, for each setting and position.

    What an item of a profile saves only falls from position to position, because `picked` and the number of places rise. So a
    figure of earlier is a bound, and only profiles whose bound reaches the best exact figure need logs again. Bounds
    are kept tight: those of profiles that have a category are lowered whenever the list gets more of it, and the rest falls
    with the logarithm of the position.
    """
    settings, k = weights.shape
    n_profiles = len(member_begin) - 1
    odds = beta / (1 - beta)
    best, saved_by_first, slope_of_first = np.empty(n_profiles), np.empty(n_profiles), np.empty(n_profiles)
    saved, slope, block = np.empty(n_profiles), np.empty(n_profiles), np.empty((n_profiles + BLOCK - 1) // BLOCK)
    of_pair, picked = np.empty((3, len(pair_share))), np.zeros(p.shape[1])
    looked_at, objective = np.empty(n_profiles, np.int64), np.empty(n_profiles)
    # The best items of profiles, once they are asked for, and how many of them the list has.
    values, ids = np.empty((n_profiles, k)), np.empty((n_profiles, k), np.int64)
    found, taken, won = np.empty(n_profiles, np.int64), np.zeros(n_profiles, np.int64), np.empty(k, np.int64)
    for user in range(start, stop):
        row, own = scores[user], p[user]
        if _has_nan(row):
            return user
        _best_scores(row, profile_of_item, best)
        _saved_by_all(
            own,
            odds,
            k * odds,
            category_begin,
            pair_share,
            pair_begin,
            profile_by_pair,
            of_pair,
            saved_by_first,
            slope_of_first,
        )
        for profile in range(n_profiles):
            if best[profile] == np.inf:
                return user
            if best[profile] == -np.inf:
                saved_by_first[profile], slope_of_first[profile] = -np.inf, 0.0
        found[:] = -1
        for setting in range(settings):
            saved[:], slope[:] = saved_by_first, slope_of_first
            count = 0
            for position in range(1, k + 1):
                weight = weights[setting, position - 1]
                relevance_weight, log_position = 1 - weight, math.log(position)
                _largest_of_blocks(relevance_weight, best, weight, saved, slope, log_position, block)
                number = np.argmax(block)
                if block[number] == -np.inf:
                    break
                # The profile with the largest bound comes first: what it is worth exactly rules most others out.
                first, largest = -1, -np.inf
                for profile in range(number * BLOCK, min(number * BLOCK + BLOCK, n_profiles)):
                    value = _worth(relevance_weight, best[profile], weight, saved[profile] - slope[profile] * log_position)
                    if best[profile] > -np.inf and (first < 0 or value > largest):
                        first, largest = profile, value
                exact = _saved(first, own, picked, position * odds, member_begin, members)
                most = objective[first] = _worth(relevance_weight, best[first], weight, exact)
                looked_at[0], looks = first, 1
                for number in range(len(block)):
                    if block[number] < most - SLACK:
                        continue
                    for profile in range(number * BLOCK, min(number * BLOCK + BLOCK, n_profiles)):
                        value = _worth(
                            relevance_weight, best[profile], weight, saved[profile] - slope[profile] * log_position
                        )
                        if best[profile] > -np.inf and value >= most - SLACK and profile != first:
                            exact = _saved(profile, own, picked, position * odds, member_begin, members)
                            objective[profile] = _worth(relevance_weight, best[profile], weight, exact)
                            looked_at[looks] = profile
                            looks += 1
                            most = max(most, objective[profile])
                winner = -1
                for number in range(looks):
                    profile = looked_at[number]
                    if objective[profile] < most - TIE or (winner >= 0 and best[profile] < best[winner]):
                        continue
                    tied = winner >= 0 and best[profile] == best[winner]
                    if tied:
                        _find(winner, row, k, items_by_profile, profile_begin, found, values, ids)
                        _find(profile, row, k, items_by_profile, profile_begin, found, values, ids)
                        tied = ids[profile, taken[profile]] > ids[winner, taken[winner]]
                    if not tied:
                        winner = profile
                _find(winner, row, k, items_by_profile, profile_begin, found, values, ids)
                item = ids[winner, taken[winner]]
                lists[setting, user, position - 1] = item
                won[count] = winner
                count += 1
                taken[winner] += 1
                share = 1.0 / (member_begin[winner + 1] - member_begin[winner])
                for place in range(member_begin[winner], member_begin[winner + 1]):
                    category = members[place]
                    before = picked[category]
                    picked[category] += share
                    _lower(category, own, before, picked[category], (position + 1) * odds, category_begin, pair_share, pair_begin,
                           profile_by_pair, of_pair, saved, slope)  # fmt: skip
                if taken[winner] < found[winner]:
                    best[winner] = values[winner, taken[winner]]
                else:
                    best[winner], saved[winner], slope[winner] = -np.inf, -np.inf, 0.0
            lists[setting, user, count:] = 0
            for number in range(count):  # the next list starts anew
                profile = won[number]
                taken[profile], best[profile] = 0, values[profile, 0]
                for place in range(member_begin[profile], member_begin[profile + 1]):
                    picked[members[place]] = 0.0
    return -1


# --- The best set of k items


class User(NamedTuple):
    """Whose set it is: the scores, p, `k beta / (1-beta)`, and the log of the softmax' denominator, nan where scores count themselves."""

    row: np.ndarray
    p: np.ndarray
    smoothing: float
    log_total: float


class State(NamedTuple):
    """A set in the making.

    Attributes:
        picked: `[C]` sums of p(c|i) over its items.
        of_pair, saved: what an item with each (category, share) pair, and of each profile, would save of S_KL.
        best, worth: of each profile, the score of the best unpicked item, -inf where there is none, and what it is worth.
        taken: how many items of each profile are in the set.
        found, values, ids: the best items of each profile, and how many; -1 where they have not been looked up.
    """

    picked: np.ndarray
    of_pair: np.ndarray
    saved: np.ndarray
    best: np.ndarray
    worth: np.ndarray
    taken: np.ndarray
    found: np.ndarray
    values: np.ndarray
    ids: np.ndarray


class Tables(NamedTuple):
    """Of `ItemCategories`."""

    items_by_profile: np.ndarray
    profile_begin: np.ndarray
    member_begin: np.ndarray
    members: np.ndarray
    category_begin: np.ndarray
    pair_share: np.ndarray
    pair_begin: np.ndarray
    profile_by_pair: np.ndarray


class Search(NamedTuple):
    """Scratch memory.

    Attributes:
        without, loss: `[k, P+1]`, `[k]` what each profile, and the item itself, is worth without one of the items.
        value: `[P+1]`.
        pairs, promise: two items that may leave, and what that promises.
        candidates: profiles.
        picked, of_pair, saved: copies of the state, a row for each change that is to be undone.
    """

    without: np.ndarray
    loss: np.ndarray
    value: np.ndarray
    pairs: np.ndarray
    promise: np.ndarray
    candidates: np.ndarray
    picked: np.ndarray
    of_pair: np.ndarray
    saved: np.ndarray


@njit(nogil=True, inline="always")
def _fast_exp(x):
    """exp of a number from -64 to 0, to the last bits but two.

    exp(x) is (exp(x / 256))^256, and exp(x / 256) a polynomial: multiplications alone, which a processor does side by side.
    """
    x *= 1 / 256
    e = 1 / 362880 + x * (1 / 3628800)
    e = 1 / 120 + x * (1 / 720 + x * (1 / 5040 + x * (1 / 40320 + x * e)))
    e = 1 + x * (1 + x * (1 / 2 + x * (1 / 6 + x * (1 / 24 + x * e))))
    e *= e
    e *= e
    e *= e
    e *= e
    e *= e
    e *= e
    e *= e
    return e * e


@_compiled(fastmath={"nnan", "nsz", "reassoc", "contract"})
def _log_sum_exp(row):
    """log sum exp over the items; -inf where none is allowed. Items of less than exp(-50) times the largest count as that."""
    largest = -np.inf
    for item in range(1, len(row)):
        largest = max(largest, row[item])
    if largest == -np.inf:
        return largest
    total = 0.0
    for item in range(1, len(row)):
        total += _fast_exp(max(np.float64(row[item]) - largest, -50.0))
    return largest + math.log(total)


@njit(nogil=True, inline="always")
def _head(profile, user, state):
    """The score of the profile's best unpicked item, and what it is worth."""
    taken = state.taken[profile]
    score = state.values[profile, taken] if taken < state.found[profile] else -np.inf
    state.best[profile] = score
    state.worth[profile] = score if np.isnan(user.log_total) else math.exp(score - user.log_total)


@_compiled
def _put(profile, sign, k, user, state, tables):
    """Put the best unpicked item of the profile into the set (1), or take its worst out (-1), and bring the state up to date."""
    _find(profile, user.row, k, tables.items_by_profile, tables.profile_begin, state.found, state.values, state.ids)
    state.taken[profile] += sign
    _head(profile, user, state)
    begin, end = tables.member_begin[profile], tables.member_begin[profile + 1]
    share = sign / (end - begin)
    for member in range(begin, end):
        category = tables.members[member]
        after = state.picked[category] + share
        state.picked[category] = after if after > 1e-12 else 0.0
        own = user.p[category]
        if own > 0:
            rest = state.picked[category] + user.smoothing * max(own, SMALLEST_SHARE)
            for pair in range(tables.category_begin[category], tables.category_begin[category + 1]):
                value = own * math.log(1 + tables.pair_share[pair] / rest)
                change = value - state.of_pair[pair]
                state.of_pair[pair] = value
                for place in range(tables.pair_begin[pair], tables.pair_begin[pair + 1]):
                    state.saved[tables.profile_by_pair[place]] += change


@njit(nogil=True, inline="always")
def _try(profile, sign, level, k, user, state, tables, search):
    """`_put`, to be undone; the changes of several levels are undone from the last to the first."""
    if len(state.saved) <= COPIED:
        search.picked[level], search.of_pair[level], search.saved[level] = state.picked, state.of_pair, state.saved
    _put(profile, sign, k, user, state, tables)


@njit(nogil=True, inline="always")
def _undo(profile, sign, level, k, user, state, tables, search):
    """Take back what `_try` did: where profiles are few, from a copy, which takes less time than the logs again."""
    if len(state.saved) > COPIED:
        _put(profile, -sign, k, user, state, tables)
    else:
        state.picked[:], state.of_pair[:], state.saved[:] = search.picked[level], search.of_pair[level], search.saved[level]
        state.taken[profile] -= sign
        _head(profile, user, state)


@_compiled(fastmath={"nnan", "nsz", "contract"})
def _values(relevance_weight, worth, weight, saved, best, value):
    """What the best unpicked item of each profile is worth, -inf where there is none; the largest of them."""
    largest = value[0] = -np.inf
    for profile in range(1, len(worth)):
        own = relevance_weight * worth[profile] + weight * saved[profile] if relevance_weight > 0 else saved[profile]
        value[profile] = own if best[profile] > -np.inf else -np.inf
        largest = max(largest, value[profile])
    return largest


@_compiled(fastmath={"nnan", "nsz", "contract"})
def _largest(relevance_weight, worth, weight, saved, best):
    """What the best profile that has an item left is worth; -inf where none has."""
    largest = -np.inf
    if relevance_weight == 0:
        for profile in range(1, len(worth)):
            if best[profile] > -np.inf:
                largest = max(largest, saved[profile])
    else:
        for profile in range(1, len(worth)):
            value = relevance_weight * worth[profile] + weight * saved[profile]
            largest = max(largest, value if best[profile] > -np.inf else -np.inf)
    return largest


@_compiled
def _entering(largest, value, k, user, state, tables):
    """The profile whose best unpicked item is worth `largest`; of several the more relevant, then the lower id."""
    best, found, values, ids = state.best, state.found, state.values, state.ids
    winner = 0
    for profile in range(1, len(value)):
        if value[profile] < largest - TIE:
            continue
        if winner == 0 or best[profile] > best[winner]:
            winner = profile
        elif best[profile] == best[winner]:
            _find(winner, user.row, k, tables.items_by_profile, tables.profile_begin, found, values, ids)
            _find(profile, user.row, k, tables.items_by_profile, tables.profile_begin, found, values, ids)
            if ids[profile, state.taken[profile]] < ids[winner, state.taken[winner]]:
                winner = profile
    return winner


@_compiled
def setwise(
    scores, p, lambdas, beta, k, by_probability, profile_of_item, items_by_profile, profile_begin, member_begin, members,
    category_begin, pair_share, pair_begin, profile_by_pair, start, stop, lists,
):  # fmt: skip
    """Fill `lists [S, B, k]` for users `start` to `stop`; the first of them whose scores hold nan or +inf, or -1."""
    n_profiles = len(member_begin) - 1
    smoothing = k * beta / (1 - beta)
    of_first, saved_by_first = np.empty((2, len(pair_share))), np.empty((2, n_profiles))
    picked, of_pair, saved = np.zeros(p.shape[1]), np.empty(len(pair_share)), np.empty(n_profiles)
    best, worth = np.empty(n_profiles), np.empty(n_profiles)
    first_best, first_worth = np.empty(n_profiles), np.empty(n_profiles)
    taken, found = np.zeros(n_profiles, np.int64), np.full(n_profiles, -1, np.int64)
    values, ids = np.empty((n_profiles, k)), np.empty((n_profiles, k), np.int64)
    chosen = np.empty(k, np.int64)
    value = np.empty(n_profiles)
    search = Search(
        np.empty((k, n_profiles)), np.empty(k), value, np.empty(k * k, np.int64), np.empty(k * k), np.empty(CANDIDATES, np.int64),
        np.empty((LEVELS, p.shape[1])), np.empty((LEVELS, len(pair_share))), np.empty((LEVELS, n_profiles)),
    )  # fmt: skip
    state = State(picked, of_pair, saved, best, worth, taken, found, values, ids)
    tables = Tables(
        items_by_profile, profile_begin, member_begin, members, category_begin, pair_share, pair_begin, profile_by_pair
    )
    for number in range(start, stop):
        row, own = scores[number], p[number]
        if _has_nan(row):
            return number
        _best_scores(row, profile_of_item, first_best)
        for profile in range(n_profiles):
            if first_best[profile] == np.inf:
                return number
        log_total = _log_sum_exp(row) if by_probability else np.nan
        user = User(row, own, smoothing, log_total)
        first_worth[:] = first_best
        if by_probability:
            for profile in range(n_profiles):
                first_worth[profile] = math.exp(first_best[profile] - log_total)
        _saved_by_all(
            own,
            smoothing,
            smoothing,
            category_begin,
            pair_share,
            pair_begin,
            profile_by_pair,
            of_first,
            saved_by_first[0],
            saved_by_first[1],
        )
        found[:] = -1
        for setting in range(len(lambdas)):
            weight = lambdas[setting]
            of_pair[:], saved[:], best[:] = of_first[0], saved_by_first[0], first_best
            worth[:] = first_worth
            picked[:] = 0.0
            taken[:] = 0
            count = 0
            cautious = weight / (weight + CAUTION * (1 - weight))
            while count < k:
                largest = _values(1 - cautious, worth, cautious, saved, best, value)
                if largest == -np.inf:
                    break
                chosen[count] = _entering(largest, value, k, user, state, tables)
                _put(chosen[count], 1, k, user, state, tables)
                count += 1
            if count == k and weight > 0:
                _improve(chosen, weight, k, user, state, tables, search)
            _write(chosen[:count], taken, values, ids, lists[setting, number])
    return -1


@_compiled
def _write(chosen, taken, values, ids, out):
    """The items of a set by falling score, equal scores by rising id, 0 at the end."""
    scores = np.empty(len(chosen))
    count = 0
    for profile in np.unique(chosen):
        for rank in range(taken[profile]):
            place = count
            while place > 0 and (
                scores[place - 1] < values[profile, rank]
                or (scores[place - 1] == values[profile, rank] and out[place - 1] > ids[profile, rank])
            ):
                scores[place], out[place] = scores[place - 1], out[place - 1]
                place -= 1
            scores[place], out[place] = values[profile, rank], ids[profile, rank]
            count += 1
    out[count:] = 0


@_compiled
def _improve(chosen, weight, k, user, state, tables, search):
    """Swap items until neither one swap nor, as far as they are looked for, two or three at once help."""
    few = k * (k - 1) * (k - 2) // 6 * len(state.saved) <= TRIPLES
    while True:
        _swap_one(chosen, weight, k, user, state, tables, search)
        if _swap_two(chosen, weight, k, user, state, tables, search):
            continue
        if k < 3 or not few or not _swap_three(chosen, weight, k, user, state, tables, search):
            return


@njit(nogil=True, inline="always")
def _value(profile, weight, state):
    return (1 - weight) * state.worth[profile] + weight * state.saved[profile]


@_compiled
def _repeated(chosen, place, begin):
    """Whether an item of the same profile stands before `place`, from `begin` on: to take either out is the same."""
    found = False
    for other in range(begin, place):
        found |= chosen[other] == chosen[place]
    return found


@_compiled
def _swap_one(chosen, weight, k, user, state, tables, search):
    """Swap one item after another for the best other one, where that helps, until all stay.

    What profiles are worth without each item is left for `_swap_two`.
    """
    without, loss = search.without, search.loss
    place, stayed = 0, 0
    while stayed < k:
        leaving = chosen[place]
        _try(leaving, -1, 0, k, user, state, tables, search)
        loss[place] = _value(leaving, weight, state)
        largest = _values(1 - weight, state.worth, weight, state.saved, state.best, without[place])
        if largest > loss[place] + TIE:
            chosen[place] = _entering(largest, without[place], k, user, state, tables)
            _put(chosen[place], 1, k, user, state, tables)
            stayed = 0
        else:
            _undo(leaving, -1, 0, k, user, state, tables, search)
            stayed += 1
        place = (place + 1) % k


@_compiled(fastmath={"nnan", "nsz", "contract"})
def _promise(one, two, now):
    """What the best profile is worth without two items, about: what it rises by without each, added up."""
    largest = -np.inf
    for profile in range(1, len(now)):
        largest = max(largest, one[profile] + two[profile] - now[profile])
    return largest


@_compiled
def _swap_two(chosen, weight, k, user, state, tables, search):
    """Make two swaps that help together, if some are found; the most promising pairs of items leave first."""
    without, loss, now, pairs, promise, candidates = (
        search.without, search.loss, search.value, search.pairs, search.promise, search.candidates
    )  # fmt: skip
    saved, best, worth = state.saved, state.best, state.worth
    _values(1 - weight, worth, weight, saved, best, now)
    for profile in range(1, len(now)):
        now[profile] = max(now[profile], -1e300)
    count = 0
    for one in range(k):
        if _repeated(chosen, one, 0):
            continue
        for two in range(one + 1, k):
            if _repeated(chosen, two, one + 1):
                continue
            value = 2 * _promise(without[one], without[two], now) - loss[one] - loss[two]
            place = count
            while place > 0 and promise[place - 1] < value:
                promise[place], pairs[place] = promise[place - 1], pairs[place - 1]
                place -= 1
            promise[place], pairs[place] = value, one * k + two
            count += 1
    looks, tries = 0, max(TRIES, min(len(candidates), LOOKS // (count * len(best) + 1)))
    for number in range(count):
        one, two = pairs[number] // k, pairs[number] % k
        first, second = chosen[one], chosen[two]
        _try(first, -1, 0, k, user, state, tables, search)
        needed = _value(first, weight, state)
        _try(second, -1, 1, k, user, state, tables, search)
        needed += _value(second, weight, state) + TIE
        enters, also, tried = _two(needed, tries, 2, weight, k, user, state, tables, search)
        looks += tried
        if enters:
            chosen[one], chosen[two] = enters, also
            _put(enters, 1, k, user, state, tables)
            _put(also, 1, k, user, state, tables)
            return True
        _undo(second, -1, 1, k, user, state, tables, search)
        _undo(first, -1, 0, k, user, state, tables, search)
        if looks >= LOOKS:
            break
    return False


@_compiled
def _two(needed, tries, level, weight, k, user, state, tables, search):
    """Two profiles whose best items are worth more than `needed` together, 0 if none are found, and how many were looked at.

    Two items are worth no more together than each alone, added up, so one of them must be worth half of what is needed.
    """
    saved, best, worth = state.saved, state.best, state.worth
    value, candidates = search.value, search.candidates
    largest = _values(1 - weight, worth, weight, saved, best, value)
    tried, count = len(best), 0
    if 2 * largest <= needed:
        return 0, 0, tried
    for profile in range(1, len(best)):
        if value[profile] + value[profile] > needed:
            place = count if count < len(candidates) else count - 1
            if place < count and value[candidates[place]] >= value[profile]:
                continue
            while place > 0 and value[candidates[place - 1]] < value[profile]:
                candidates[place] = candidates[place - 1]
                place -= 1
            candidates[place] = profile
            count = min(count + 1, len(candidates))
    for number in range(count):
        profile = candidates[number]
        worth_of_one = value[profile]
        if worth_of_one + largest <= needed or number == tries:
            break
        _try(profile, 1, level, k, user, state, tables, search)
        rest = _largest(1 - weight, worth, weight, saved, best)
        tried += len(best)
        if worth_of_one + rest > needed:
            _values(1 - weight, worth, weight, saved, best, value)
            also = _entering(rest, value, k, user, state, tables)
            _undo(profile, 1, level, k, user, state, tables, search)
            return profile, also, tried
        _undo(profile, 1, level, k, user, state, tables, search)
    return 0, 0, tried


@_compiled
def _swap_three(chosen, weight, k, user, state, tables, search):
    """Make three swaps that help together, if there are any."""
    saved, best, worth = state.saved, state.best, state.worth
    for one in range(k):
        for two in range(one + 1, k):
            for three in range(two + 1, k):
                needed = TIE
                for level, place in enumerate((one, two, three)):
                    _try(chosen[place], -1, level, k, user, state, tables, search)
                    needed += _value(chosen[place], weight, state)
                largest = _largest(1 - weight, worth, weight, saved, best)
                for profile in range(1, len(best)):
                    own = _value(profile, weight, state)
                    if best[profile] == -np.inf or own + 2 * largest <= needed:
                        continue
                    _try(profile, 1, 3, k, user, state, tables, search)
                    enters, also, _ = _two(needed - own, len(search.candidates), 4, weight, k, user, state, tables, search)
                    if enters:
                        _put(enters, 1, k, user, state, tables)
                        _put(also, 1, k, user, state, tables)
                        chosen[one], chosen[two], chosen[three] = profile, enters, also
                        return True
                    _undo(profile, 1, 3, k, user, state, tables, search)
                for level, place in ((2, three), (1, two), (0, one)):
                    _undo(chosen[place], -1, level, k, user, state, tables, search)
    return False
