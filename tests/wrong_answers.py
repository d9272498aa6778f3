"""Wrong answers to the book's exercises, by label.  None may pass its check.

An open exercise has no solution in this repository: three invalid answers each, and
a blind search that must find a valid one.
"""

import itertools
import math
from collections.abc import Callable, Iterator

import torch
from torch import Tensor


def filled(value: float) -> list[list[float]]:
    return [[value] * 3] * 3


def scaled_rows(W_h: Tensor, states: Tensor) -> Tensor:
    return (1 - states**2)[..., :, None] * W_h.T


def not_transposed(W_h: Tensor, states: Tensor) -> Tensor:
    return W_h * (1 - states**2)[..., None, :]


def slopes_of_z(W_h: Tensor, states: Tensor) -> Tensor:
    return W_h.T * (1 - torch.tanh(states) ** 2)[..., None, :]


def all_nan(W_h: Tensor, states: Tensor) -> Tensor:
    return torch.full((*states.shape, states.shape[-1]), math.nan, dtype=torch.float64)


def one_matrix(W_h: Tensor, states: Tensor) -> Tensor:
    return W_h.T * (1 - states[0, 0] ** 2)


def log_without_start(sentence: list[str], table: dict[str, dict[str, float]]) -> float:
    pairs = itertools.pairwise(sentence)
    return sum(math.log(table[a][b]) for a, b in pairs if table[a][b])


def log_after_the_first_word(sentence: list[str], table: dict[str, dict[str, float]]) -> float:
    contexts = ["START", *sentence[:1] * len(sentence)]  # never moves on
    factors = [table[a][b] for a, b in zip(contexts, sentence, strict=False)]
    return sum(math.log(p) if p else -math.inf for p in factors)


def log_of_the_product(sentence: list[str], table: dict[str, dict[str, float]]) -> float:
    words = ["START", *sentence]
    p = math.prod(table[a][b] for a, b in itertools.pairwise(words))
    return math.log(p) if p else -math.inf  # underflows on a long sentence


WRONG: dict[str, list[Callable]] = {  # type: ignore[type-arg]
    "ex-one-unit-by-hand": [
        lambda: 4.0,  # the slopes forgotten
        lambda: 4 * 0.7864**2,  # the second slope used twice
        lambda: 2 * 0.7864,  # one weight
        lambda: math.nan,
    ],
    "ex-sentence-log": [
        log_without_start,
        log_of_the_product,
        log_after_the_first_word,
        lambda s, t: 0.0,
    ],
    "ex-both-fates": [
        lambda: (1.2, [0.1] * 5, [9.0] * 5),  # the first shrinks as well
        lambda: (3.0, [9.0] * 5, [0.1] * 5),  # both shrink
        lambda: (1.7, [0.0] * 5, [9.0] * 5),  # an input of 0
        lambda: (2.0, [0.1] * 4, [9.0] * 5),  # not five inputs
        lambda: (math.nan, [0.1] * 5, [9.0] * 5),
    ],
    "ex-jacobian-by-hand": [
        lambda: [[0, 0.75], [-0.25, 0.5]],  # the numerator layout
        lambda: [[0, -1], [3, 2]],  # the slopes forgotten
        lambda: [[0, -0.25], [0.75, 0.5], [0, 0]],
        lambda: [[0, math.nan], [0.75, 0.5]],
    ],
    "ex-from-states": [scaled_rows, not_transposed, slopes_of_z, all_nan, one_matrix],
    "ex-opposite-verdicts": [
        lambda: (filled(0.2), [0.0] * 3),  # both shrink
        lambda: (filled(2.0), [0.0] * 3),  # both grow
        lambda: (filled(0.0), [0.0] * 3),  # zeros
        lambda: ([[0.5, 0.5], [0.5, 0.5]], [0.0] * 2),  # not 3 x 3
        lambda: (filled(math.nan), [0.0] * 3),
    ],
}


def weights_and_inputs() -> Iterator[tuple]:  # type: ignore[type-arg]
    g = torch.Generator().manual_seed(0)
    while True:
        inputs = 0.1 + torch.rand(2, 1, generator=g) * 3 * torch.rand(2, 5, generator=g)
        signs = torch.randint(2, (2, 5), generator=g) * 2 - 1
        yield 4 * torch.rand((), generator=g).item(), *(signs * inputs).tolist()


def matrices_and_preactivations() -> Iterator[tuple]:  # type: ignore[type-arg]
    g = torch.Generator().manual_seed(0)
    while True:
        W_h, z = torch.randn(3, 3, generator=g), 2 * torch.randn(3, generator=g)
        yield W_h.tolist(), z.tolist()


# Open exercises: where a blind search may look.
SEARCH: dict[str, Callable[[], Iterator[tuple]]] = {  # type: ignore[type-arg]
    "ex-both-fates": weights_and_inputs,
    "ex-opposite-verdicts": matrices_and_preactivations,
}
