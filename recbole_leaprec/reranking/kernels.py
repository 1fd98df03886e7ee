"""The loops of the rerankers, one user after another, compiled for the CPU.

Everything is in float64, and a rule decides ties: objectives closer than `TIE` are equal; the more relevant item wins, then
the lower id. So each list is the same as from trying every item, for any batch and any number of threads.

By how much an item lowers the divergence (what it *saves*) depends only on its profile. So only the best unpicked item of
each profile can win.

All loops are in this one file because numba caches a compiled function until the function's own file changes. It would not
notice a change in a called function of another file.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numba import njit

TIE = 1e-9
SLACK = 2 * TIE  # for bounds, whose last bits are inexact
SMALLEST_SHARE = 1e-20
BLOCK = 64

LARGEST_WORTH = 1e300
"""Raw scores beyond this count as this, because the difference of two of them would be no number."""

CAUTION = 4
"""The swaps start from a set in which calibration counts this many times less against relevance."""
LEAVING, SMALL = 8, 128
"""If there are more than `SMALL` profiles, only the `LEAVING` items with the smallest values in a set may leave in pairs."""
TRIED = 300
"""About how many profiles are looked at per pair that leaves. With few profiles, more are tried as the first to enter."""
FEW, SHORTLIST = 1024, 64
"""If there are more than `FEW` profiles, a pair that enters is searched only among the best `SHORTLIST`."""
TRIPLES = 512
"""Swaps of three items are tried if (triples of a list) times (profiles) is at most this."""
LEVELS = 4
"""The largest number of changes that are open, to be undone, at a time."""


def _compiled(function=None, **options):
    """Compile at the first call, to run without Python's lock (GIL). The result is kept on disk if a folder is writable."""
    if function is None:
        return lambda function: _compiled(function, **options)
    try:
        return njit(nogil=True, cache=True, **options)(function)
    except RuntimeError:  # numba finds no writable folder
        return njit(nogil=True, **options)(function)


@_compiled
def _has_nan(row):
    found = False
    for item in range(1, len(row)):
        found |= row[item] != row[item]
    return found


@_compiled(fastmath={"nnan", "nsz"})
def _largest(values):
    """The largest number, -inf if there are none. In eight chains, because each comparison waits for the one before it."""
    a = b = c = d = e = f = g = h = -np.inf
    whole = len(values) // 8 * 8
    for n in range(0, whole, 8):
        a, b, c, d = max(a, values[n]), max(b, values[n + 1]), max(c, values[n + 2]), max(d, values[n + 3])
        e, f, g, h = max(e, values[n + 4]), max(f, values[n + 5]), max(g, values[n + 6]), max(h, values[n + 7])
    for n in range(whole, len(values)):
        a = max(a, values[n])
    return max(max(max(a, b), max(c, d)), max(max(e, f), max(g, h)))


@_compiled(fastmath={"nnan", "nsz"})  # the order of -0 and 0 does not matter, and nan was ruled out
def _best_scores(row, profile_of_item, best):
    """The best score of each profile, -inf if it has no allowed item. There is no branch: it would often be mispredicted."""
    best[:] = -np.inf
    for item in range(1, len(row)):
        best[profile_of_item[item]] = max(best[profile_of_item[item]], row[item])


@_compiled
def _best_items(row, items, depth, values, ids):
    """Write the best `depth` of these items to `values` and `ids`, equal scores by rising id. Returns their number."""
    count, least = 0, -np.inf
    for item in items:
        score = np.float64(row[item])
        if score <= least:
            continue
        place = min(count, depth - 1)
        while place > 0 and values[place - 1] < score:
            values[place], ids[place] = values[place - 1], ids[place - 1]
            place -= 1
        values[place], ids[place] = score, item
        count = min(count + 1, depth)
        if count == depth:
            least = values[depth - 1]
    return count


@_compiled
def _find(profile, row, depth, items_by_profile, profile_begin, found, values, ids):
    """Look up the best items of a profile, if not done yet."""
    if found[profile] < 0:
        items = items_by_profile[profile_begin[profile] : profile_begin[profile + 1]]
        found[profile] = _best_items(row, items, depth, values[profile], ids[profile])


@_compiled
def _saved(profile, p, picked, smoothing, member_begin, members):
    """What an item of the profile saves if added to `picked`: `sum_c p log(1 + share / (picked + smoothing p))`."""
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
    """Fill `saved`: what an item of each profile saves as the only one of its list; and `slope`: how fast that falls.

    With `smoothing = k beta / (1-beta)`, a term `p log(1 + share / (smoothing p))` falls by `p x / (1 + x)` per unit of
    log k, where `x = share / (smoothing p)`. This slope is smallest at the last position, whose smoothing is `last`, so it
    is taken there: the saving falls at least this fast as the list grows.
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
    """Lower the bounds of all profiles that have the category, whose sum in the list rose from `before` to `after`."""
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
    """Fill `block` with the largest bound of each block of `BLOCK` profiles."""
    for number in range(len(block)):
        begin, end = number * BLOCK, min(number * BLOCK + BLOCK, len(best))
        own_best, own_saved, own_slope = best[begin:end], saved[begin:end], slope[begin:end]
        largest = -np.inf
        if weight == 0:
            for place in range(len(own_best)):
                largest = max(largest, own_best[place])
        elif relevance_weight == 0:
            for place in range(len(own_best)):
                largest = max(largest, own_saved[place] - own_slope[place] * log_position)
        else:
            for place in range(len(own_best)):
                value = relevance_weight * own_best[place] + weight * (own_saved[place] - own_slope[place] * log_position)
                largest = max(largest, value)
        block[number] = largest


@_compiled
def greedy(
    scores, p, weights, beta, profile_of_item, items_by_profile, profile_begin, member_begin, members, category_begin,
    pair_share, pair_begin, profile_by_pair, start, stop, lists,
):  # fmt: skip
    """Fill `lists [S, B, k]` for users `start` to `stop`. Returns the first user whose scores hold nan or +inf, or -1.

    Args:
        weights: `[S, k]`, the weight of calibration for each setting and position.

    What an item of a profile saves only falls from position to position, because `picked` and the position rise. So an
    earlier value is a bound, and only profiles whose bound reaches the best exact value need new logs. Bounds are kept
    tight: when the list gets more of a category, the bounds of all profiles with it are lowered. The terms of other
    categories fall with the logarithm of the position.
    """
    settings, k = weights.shape
    n_profiles = len(member_begin) - 1
    odds = beta / (1 - beta)
    best, saved_by_first, slope_of_first = np.empty(n_profiles), np.empty(n_profiles), np.empty(n_profiles)
    saved, slope, block = np.empty(n_profiles), np.empty(n_profiles), np.empty((n_profiles + BLOCK - 1) // BLOCK)
    of_pair, picked = np.empty((3, len(pair_share))), np.zeros(p.shape[1])
    looked_at, objective = np.empty(n_profiles, np.int64), np.empty(n_profiles)
    # The best items of each profile, looked up when first needed, and how many of them the list has.
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
                # The profile with the largest bound comes first: its exact value rules out most others.
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
            for number in range(count):  # reset for the next list
                profile = won[number]
                taken[profile], best[profile] = 0, values[profile, 0]
                for place in range(member_begin[profile], member_begin[profile + 1]):
                    picked[members[place]] = 0.0
    return -1


# --- The best set of k items


class User(NamedTuple):
    """The user of a set.

    Attributes:
        row, p: the user's scores and preference.
        smoothing: `k beta / (1-beta)`.
        log_total: the log of the softmax denominator; inf if g is the score itself.
    """

    row: np.ndarray
    p: np.ndarray
    smoothing: float
    log_total: float


class State(NamedTuple):
    """A set during the search.

    Attributes:
        picked: `[C]`, sums of p(c|i) over the items of the set.
        of_pair, saved: by how much each (category, share) pair, and one more item of each profile, would lower S_KL.
        best, worth: the score of each profile's best unpicked item, -inf if there is none; and its g.
        taken: the number of items of each profile in the set.
        found, values, ids: for each profile, how many best items were looked up (-1: not yet), their scores and ids.
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
    """The tables of `ItemCategories`."""

    items_by_profile: np.ndarray
    profile_begin: np.ndarray
    member_begin: np.ndarray
    members: np.ndarray
    category_begin: np.ndarray
    pair_share: np.ndarray
    pair_begin: np.ndarray
    profile_by_pair: np.ndarray


class Search(NamedTuple):
    """Scratch memory. A *value* is what an item adds to the objective.

    Attributes:
        value: `[P+1]`, the value of the best unpicked item of each profile.
        without, loss: `[k, P+1]`, `[k]`, the same after one of the items has left, and the value of that item then.
        short, column: `[S]`, the profiles among which pairs of swaps are searched; `[P+1]`, the index of each profile
            in `short`, -1 if it is not there.
        now, leaves, together, beside: `[S]`, `[k, S]`, `[S]`, `[S]`, the values of the profiles of `short`: with the whole
            set, without one item, without two, and without two but with one that entered.
        picked, of_pair, saved: copies of the state, one row per change that will be undone.
    """

    value: np.ndarray
    without: np.ndarray
    loss: np.ndarray
    short: np.ndarray
    column: np.ndarray
    now: np.ndarray
    leaves: np.ndarray
    together: np.ndarray
    beside: np.ndarray
    picked: np.ndarray
    of_pair: np.ndarray
    saved: np.ndarray


@njit(nogil=True, inline="always")
def _fast_exp(x):
    """exp of a number from -64 to 0, to 13 digits.

    exp(x) is (exp(x / 256))^256, and exp(x / 256) is a polynomial. It needs only multiplications and additions, which a
    processor does for many numbers at once.
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
def _log_sum_exp(row, largest):
    """log sum exp over the items; -inf if none is allowed. Terms below exp(-50) times the largest count as that much."""
    if largest == -np.inf:
        return largest
    total = 0.0
    for item in range(1, len(row)):
        total += _fast_exp(max(np.float64(row[item]) - largest, -50.0))
    return largest + math.log(total)


@njit(nogil=True, inline="always")
def _worth_of(score, user):
    """g of an item's score, its relevance in the objective; -inf where there is no item."""
    if user.log_total == np.inf:
        return score if score == -np.inf else min(max(score, -LARGEST_WORTH), LARGEST_WORTH)
    return _fast_exp(max(score - user.log_total, -64.0))


@_compiled(fastmath={"nnan", "nsz", "contract"})
def _worth_of_all(best, user, worth):
    for profile in range(len(best)):
        worth[profile] = _worth_of(best[profile], user)


@_compiled
def _copy(source, target):
    for place in range(len(source)):
        target[place] = source[place]


@_compiled
def _look_up(profile, k, user, state, tables):
    _find(profile, user.row, k, tables.items_by_profile, tables.profile_begin, state.found, state.values, state.ids)


@njit(nogil=True, inline="always")
def _head(profile, user, state):
    """Bring `best` and `worth` of a profile, the score and g of its best unpicked item, up to date."""
    taken = state.taken[profile]
    score = state.values[profile, taken] if taken < state.found[profile] else -np.inf
    state.best[profile] = score
    state.worth[profile] = _worth_of(score, user)


@_compiled
def _put(profile, sign, k, user, state, tables):
    """Add the best unpicked item of the profile to the set (sign 1), or remove its worst (-1), and update the state."""
    _look_up(profile, k, user, state, tables)
    state.taken[profile] += sign
    _head(profile, user, state)
    picked, of_pair, saved = state.picked, state.of_pair, state.saved
    begin, end = tables.member_begin[profile], tables.member_begin[profile + 1]
    share = sign / (end - begin)
    for member in range(begin, end):
        category = tables.members[member]
        after = picked[category] + share
        picked[category] = after if after > 1e-12 else 0.0
        own = user.p[category]
        if own > 0:
            rest = picked[category] + user.smoothing * max(own, SMALLEST_SHARE)
            for pair in range(tables.category_begin[category], tables.category_begin[category + 1]):
                value = own * math.log(1 + tables.pair_share[pair] / rest)
                change = value - of_pair[pair]
                of_pair[pair] = value
                for place in range(tables.pair_begin[pair], tables.pair_begin[pair + 1]):
                    saved[tables.profile_by_pair[place]] += change


@_compiled
def _try(profile, sign, level, k, user, state, tables, search):
    """`_put` that can be undone. Changes of several levels must be undone from the last to the first."""
    _copy(state.picked, search.picked[level])
    _copy(state.of_pair, search.of_pair[level])
    _copy(state.saved, search.saved[level])
    _put(profile, sign, k, user, state, tables)


@_compiled
def _undo(profile, sign, level, user, state, search):
    """Undo `_try` from the copies. This is faster than to compute the logs again."""
    _copy(search.picked[level], state.picked)
    _copy(search.of_pair[level], state.of_pair)
    _copy(search.saved[level], state.saved)
    state.taken[profile] -= sign
    _head(profile, user, state)


@_compiled(fastmath={"nnan", "nsz", "contract"})
def _values(relevance_weight, worth, weight, saved, best, value):
    """Fill `value`: the value of the best unpicked item of each profile, -inf if there is none."""
    for profile in range(len(worth)):
        own = relevance_weight * worth[profile] + weight * saved[profile] if relevance_weight > 0 else saved[profile]
        value[profile] = own if best[profile] > -np.inf else -np.inf
    value[0] = -np.inf


@_compiled
def _entering(largest, value, k, user, state, tables):
    """The profile whose best unpicked item has the value `largest`; on a tie the more relevant item, then the lower id."""
    best, ids, taken = state.best, state.ids, state.taken
    winner = 0
    for begin in range(0, len(value), BLOCK):
        end = min(begin + BLOCK, len(value))
        if _largest(value[begin:end]) < largest - TIE:
            continue
        for profile in range(begin, end):
            if value[profile] < largest - TIE:
                continue
            if winner == 0 or best[profile] > best[winner]:
                winner = profile
            elif best[profile] == best[winner]:
                _look_up(winner, k, user, state, tables)
                _look_up(profile, k, user, state, tables)
                if ids[profile, taken[profile]] < ids[winner, taken[winner]]:
                    winner = profile
    return winner


@_compiled
def setwise(
    scores, p, lambdas, beta, k, by_probability, profile_of_item, items_by_profile, profile_begin, member_begin, members,
    category_begin, pair_share, pair_begin, profile_by_pair, start, stop, lists,
):  # fmt: skip
    """Fill `lists [S, B, k]` for users `start` to `stop`. Returns the first user whose scores hold nan or +inf, or -1."""
    n_profiles, n_pairs, n_categories = len(member_begin) - 1, len(pair_share), p.shape[1]
    n_short = n_profiles if n_profiles - 1 <= FEW else SHORTLIST
    smoothing = k * beta / (1 - beta)
    of_first, saved_by_first = np.empty((2, n_pairs)), np.empty((2, n_profiles))
    picked, of_pair, saved = np.zeros(n_categories), np.empty(n_pairs), np.empty(n_profiles)
    best, worth = np.empty(n_profiles), np.empty(n_profiles)
    first_best, first_worth = np.empty(n_profiles), np.empty(n_profiles)
    taken, found = np.zeros(n_profiles, np.int64), np.full(n_profiles, -1, np.int64)
    values, ids = np.empty((n_profiles, k)), np.empty((n_profiles, k), np.int64)
    chosen, value = np.empty(k, np.int64), np.empty(n_profiles)
    search = Search(
        value, np.empty((k, n_profiles)), np.empty(k), np.arange(n_short), np.arange(n_profiles), np.empty(n_short),
        np.empty((k, n_short)), np.empty(n_short), np.empty(n_short), np.empty((LEVELS, n_categories)),
        np.empty((LEVELS, n_pairs)), np.empty((LEVELS, n_profiles)),
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
        user = User(row, own, smoothing, _log_sum_exp(row, _largest(first_best)) if by_probability else np.inf)
        _worth_of_all(first_best, user, first_worth)
        _saved_by_all(
            own, smoothing, smoothing, category_begin, pair_share, pair_begin, profile_by_pair, of_first, saved_by_first[0],
            saved_by_first[1],
        )  # fmt: skip
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
                _values(1 - cautious, worth, cautious, saved, best, value)
                largest = _largest(value)
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
    """Write the items of a set by falling score, equal scores by rising id, with 0s at the end."""
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
    """Swap items until no swap of one helps, and none of two (in small catalogues: or three) is found that helps."""
    few = k * (k - 1) * (k - 2) // 6 * len(state.saved) <= TRIPLES
    start = 0
    while True:
        _swap_one(chosen, weight, k, user, state, tables, search)
        number = _swap_two(start, chosen, weight, k, user, state, tables, search)
        if number >= 0:
            start = number
        elif k < 3 or not few or not _swap_three(chosen, weight, k, user, state, tables, search):
            return


@njit(nogil=True, inline="always")
def _more(value, than, size):
    """Whether a value is larger by more than a tie and the rounding of terms of that size. Else swaps might never end."""
    return value > than + TIE + 1e-12 * size


@njit(nogil=True, inline="always")
def _value(profile, weight, state):
    return (1 - weight) * state.worth[profile] + weight * state.saved[profile]


@_compiled
def _repeated(chosen, place, begin):
    """Whether an item of the same profile is between `begin` and `place`. To remove one or the other is the same."""
    found = False
    for other in range(begin, place):
        found |= chosen[other] == chosen[place]
    return found


@_compiled
def _without_one(place, chosen, weight, user, state, tables, search):
    """Fill `without[place]`: values after an item has left, -inf for its profile. Returns the value of that item then."""
    leaving, without = chosen[place], search.without[place]
    begin, end = tables.member_begin[leaving], tables.member_begin[leaving + 1]
    own_share, saved = 1.0 / (end - begin), 0.0
    _copy(search.value, without)
    for member in range(begin, end):
        category = tables.members[member]
        own = user.p[category]
        if own == 0:
            continue
        rest = max(state.picked[category] - own_share, 0.0) + user.smoothing * max(own, SMALLEST_SHARE)
        saved += own * math.log(1 + own_share / rest)
        for pair in range(tables.category_begin[category], tables.category_begin[category + 1]):
            more = weight * (own * math.log(1 + tables.pair_share[pair] / rest) - state.of_pair[pair])
            for other in range(tables.pair_begin[pair], tables.pair_begin[pair + 1]):
                without[tables.profile_by_pair[other]] += more
    without[leaving] = -np.inf
    worst = state.values[leaving, state.taken[leaving] - 1]
    return (1 - weight) * _worth_of(worst, user) + weight * saved


@_compiled
def _swap_one(chosen, weight, k, user, state, tables, search):
    """Swap one item after another for the best other one, if that helps, until all stay.

    `_swap_two` uses the values that remain in `value`, `without` and `loss`.
    """
    value, without, loss = search.value, search.without, search.loss
    _values(1 - weight, state.worth, weight, state.saved, state.best, value)
    place, stayed = 0, 0
    while stayed < k:
        loss[place] = _without_one(place, chosen, weight, user, state, tables, search)
        largest = _largest(without[place])
        if _more(largest, loss[place], abs(largest)):
            leaving, chosen[place] = chosen[place], _entering(largest, without[place], k, user, state, tables)
            _put(leaving, -1, k, user, state, tables)
            _put(chosen[place], 1, k, user, state, tables)
            _values(1 - weight, state.worth, weight, state.saved, state.best, value)
            stayed = 0
        else:
            stayed += 1
        place = (place + 1) % k


@_compiled
def _shorten(search):
    """Fill `now`. If there are more than `FEW` profiles, first put those with the largest `value` into `short`."""
    value, without, now, leaves, short, column = (
        search.value, search.without, search.now, search.leaves, search.short, search.column
    )  # fmt: skip
    if len(value) > len(short):
        count, least = 0, -np.inf
        for profile in range(1, len(value)):
            if value[profile] <= least:
                continue
            place = min(count, len(short) - 1)
            while place > 0 and value[short[place - 1]] < value[profile]:
                short[place] = short[place - 1]
                place -= 1
            short[place] = profile
            count = min(count + 1, len(short))
            if count == len(short):
                least = value[short[count - 1]]
        short[count:] = 0
        column[:] = -1
        for place in range(count):
            column[short[place]] = place
            for number in range(len(without)):
                leaves[number, place] = without[number, short[place]]
        leaves[:, count:] = -np.inf
    for place in range(len(short)):
        now[place] = max(value[short[place]], -1e300)


@_compiled(fastmath={"nnan", "nsz"})
def _add(one, two, now, together):
    """Fill `together`: values after two items without a common category have left. Their effects on a value add up."""
    for place in range(len(now)):
        together[place] = one[place] + two[place] - now[place]


@_compiled
def _without_two(one, two, chosen, weight, user, state, tables, search):
    """Fill `together`: values after two items have left. Returns the value of these two, put back one after the other."""
    first, second = chosen[one], chosen[two]
    column, together = search.column, search.together
    leaves = search.leaves if len(search.value) > len(search.short) else search.without
    _add(leaves[one], leaves[two], search.now, together)
    needed = search.loss[one] + search.loss[two]
    first_end, second_end = tables.member_begin[first + 1], tables.member_begin[second + 1]
    member, other = tables.member_begin[first], tables.member_begin[second]
    first_share, second_share = 1.0 / (first_end - member), 1.0 / (second_end - other)
    while member < first_end and other < second_end:
        category = tables.members[member]
        if category != tables.members[other]:
            if category < tables.members[other]:
                member += 1
            else:
                other += 1
            continue
        own, picked = user.p[category], state.picked[category]
        if own > 0:
            least = user.smoothing * max(own, SMALLEST_SHARE)
            both, only_first = max(picked - first_share - second_share, 0.0) + least, max(picked - first_share, 0.0) + least
            neither, only_second = picked + least, max(picked - second_share, 0.0) + least
            needed += weight * own * math.log((1 + second_share / both) / (1 + second_share / only_second))
            for pair in range(tables.category_begin[category], tables.category_begin[category + 1]):
                share = tables.pair_share[pair]
                more = (1 + share / both) * (1 + share / neither) / ((1 + share / only_first) * (1 + share / only_second))
                more = weight * own * math.log(more)
                for place in range(tables.pair_begin[pair], tables.pair_begin[pair + 1]):
                    if column[tables.profile_by_pair[place]] >= 0:
                        together[column[tables.profile_by_pair[place]]] += more
        member += 1
        other += 1
    if first == second:  # two items of the profile leave
        worst = state.taken[first] - 1
        better = _worth_of(state.values[first, worst - 1], user) - _worth_of(state.values[first, worst], user)
        needed += (1 - weight) * better
    for profile in (first, second):  # if one came back, it would be a swap of one item
        if column[profile] >= 0:
            together[column[profile]] = -np.inf
    return needed


@_compiled
def _take_out(profile, state, tables):
    """Subtract the profile's shares from `picked`; the rest of the state stays as it is."""
    begin, end = tables.member_begin[profile], tables.member_begin[profile + 1]
    for member in range(begin, end):
        category = tables.members[member]
        state.picked[category] = max(state.picked[category] - 1.0 / (end - begin), 0.0)


@_compiled
def _swap_two(start, chosen, weight, k, user, state, tables, search):
    """Make two swaps that help together, if some are found. Returns the number of the pair that left, or -1.

    Args:
        start: the number of the pair to begin with.
    """
    _shorten(search)
    leaving = k if len(state.best) <= SMALL else min(LEAVING, k)
    most, tries = np.partition(search.loss, leaving - 1)[leaving - 1], max(1, TRIED // len(search.short))
    for step in range(k * k):
        number = (start + step) % (k * k)
        one, two = number // k, number % k
        if one >= two or max(search.loss[one], search.loss[two]) > most:
            continue
        if _repeated(chosen, one, 0) or _repeated(chosen, two, one + 1):
            continue
        needed = _without_two(one, two, chosen, weight, user, state, tables, search)
        first, second = chosen[one], chosen[two]
        _copy(state.picked, search.picked[0])
        _take_out(first, state, tables)
        _take_out(second, state, tables)
        enters, also = _two(needed, abs(needed), tries, weight, k, user, state, tables, search)
        _copy(search.picked[0], state.picked)
        if enters:
            _put(first, -1, k, user, state, tables)
            _put(second, -1, k, user, state, tables)
            _put(enters, 1, k, user, state, tables)
            _put(also, 1, k, user, state, tables)
            chosen[one], chosen[two] = enters, also
            return number
    return -1


@_compiled
def _two(needed, size, tries, weight, k, user, state, tables, search):
    """Two profiles whose best items together have a larger value than `needed`; 0, 0 if none are found.

    `size` is the size of the terms that `needed` was computed from.

    The value of two items together is at most the sum of their values alone. So one of them must have at least half of
    `needed`. For each of the best, the search looks for the best other one. `search.together` holds the value of each
    alone, added to `picked`.
    """
    alone, beside, short = search.together, search.beside, search.short
    for _ in range(tries):
        own = _largest(alone)
        if 2 * own <= needed:
            break
        place = _first(alone, own)
        enters = short[place]
        _copy(alone, beside)
        _beside(enters, weight, user, state, tables, search.column, beside)
        _look_up(enters, k, user, state, tables)
        following = state.taken[enters] + 1
        if following < state.found[enters]:
            beside[place] -= (1 - weight) * (state.worth[enters] - _worth_of(state.values[enters, following], user))
        else:
            beside[place] = -np.inf
        other = _largest(beside)
        if _more(own + other, needed, size + abs(own) + abs(other)):
            return enters, short[_first(beside, other)]
        alone[place] = -np.inf  # tried with all others
    return 0, 0


@_compiled
def _first(values, value):
    """The first index of a value."""
    place = 0
    while values[place] != value:
        place += 1
    return place


@_compiled
def _beside(enters, weight, user, state, tables, column, value):
    """Subtract from the values of all profiles what they lose when an item enters."""
    begin, end = tables.member_begin[enters], tables.member_begin[enters + 1]
    entering_share = 1.0 / (end - begin)
    for member in range(begin, end):
        category = tables.members[member]
        own = user.p[category]
        if own == 0:
            continue
        before = state.picked[category] + user.smoothing * max(own, SMALLEST_SHARE)
        after = before + entering_share
        for pair in range(tables.category_begin[category], tables.category_begin[category + 1]):
            share = tables.pair_share[pair]
            less = weight * own * math.log((1 + share / before) / (1 + share / after))
            for place in range(tables.pair_begin[pair], tables.pair_begin[pair + 1]):
                if column[tables.profile_by_pair[place]] >= 0:
                    value[column[tables.profile_by_pair[place]]] -= less


@_compiled
def _swap_three(chosen, weight, k, user, state, tables, search):
    """Make three swaps that help together, if some are found. Returns whether it did."""
    value = search.value
    for one in range(k):
        for two in range(one + 1, k):
            for three in range(two + 1, k):
                needed, size = TIE, 0.0
                for level, place in enumerate((one, two, three)):
                    _try(chosen[place], -1, level, k, user, state, tables, search)
                    lost = _value(chosen[place], weight, state)
                    needed, size = needed + lost, size + abs(lost)
                _values(1 - weight, state.worth, weight, state.saved, state.best, value)
                largest = _largest(value)
                for profile in range(1, len(value)):
                    own = _value(profile, weight, state)
                    if state.best[profile] == -np.inf or own + 2 * largest <= needed:
                        continue
                    _try(profile, 1, 3, k, user, state, tables, search)
                    _values(1 - weight, state.worth, weight, state.saved, state.best, search.together)
                    enters, also = _two(needed - own, size + abs(own), len(value), weight, k, user, state, tables, search)
                    if enters:
                        _put(enters, 1, k, user, state, tables)
                        _put(also, 1, k, user, state, tables)
                        chosen[one], chosen[two], chosen[three] = profile, enters, also
                        return True
                    _undo(profile, 1, 3, user, state, search)
                for level, place in ((2, three), (1, two), (0, one)):
                    _undo(chosen[place], -1, level, user, state, search)
    return False
