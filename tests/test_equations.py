"""Every displayed claim of the book, by a second route.  The ledger is made from these."""

import math
from itertools import product

import pytest
import torch
from cases import Net, activations, nets
from checking import Check, relative_error
from hypothesis import assume, given
from hypothesis import strategies as st
from torch import Tensor
from torch.autograd.functional import jacobian

from companion.jacobian import preactivation_jacobian, step_jacobian
from companion.rnn import ACTIVATIONS, RELU, TANH, Activation, preactivation, rnn_step, unroll

seeds = st.integers(0, 2**31)


def randn(seed: int, *shape: int) -> Tensor:
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(shape, generator=generator, dtype=torch.float64)


def first_step(net: Net) -> tuple[Tensor, Tensor]:
    """The state before one step of the first sequence, and the slopes of that step."""
    z = preactivation(net.x[:1, 0], net.h_0[:1], net.W_x, net.W_h, net.b)
    return net.h_0[0], net.activation.derivative(z)[0]


def step_from(net: Net, t: int = 0):  # type: ignore[no-untyped-def]
    """The map from a state to the next one in the first sequence, for vectors."""
    return lambda h: rnn_step(net.x[:1, t], h[None], *net.weights)[0]


def central_difference(f, at: Tensor, size: float = 1e-6) -> Tensor:  # type: ignore[no-untyped-def]
    """The derivative of f_k by at_i at [i, k], without autograd."""
    nudges = size * torch.eye(len(at), dtype=at.dtype)
    return torch.stack([(f(at + n) - f(at - n)) / (2 * size) for n in nudges])


def is_near_a_kink(net: Net) -> bool:
    z = preactivation(net.x[:1, 0], net.h_0[:1], net.W_x, net.W_h, net.b)
    return net.activation is RELU and bool((z.abs() < 1e-3).any())


# ------------------------------------------------------------- one_step_jacobian


@pytest.mark.equation("eq-step-entry")
@given(net=nets())
def test_an_entry_is_weight_times_slope(net: Net, check: Check) -> None:
    h, slopes = first_step(net)
    assume(not is_near_a_kink(net))
    want = central_difference(step_from(net), h)
    got = torch.empty_like(want)
    for p, q in product(range(len(h)), repeat=2):
        got[p, q] = slopes[q] * net.W_h[q, p]
    # A difference of size 1e-6 is itself off by about 1e-10 over the size of the slopes.
    check(got, want, route="central differences", rtol=1e-5, atol=1e-8)


@pytest.mark.equation("eq-step-jacobian")
@given(net=nets())
def test_step_jacobian_equals_autograd(net: Net, check: Check) -> None:
    h, slopes = first_step(net)
    check(step_jacobian(net.W_h, slopes), jacobian(step_from(net), h).mT, route="autograd")


@pytest.mark.equation("eq-step-jacobian")
@given(net=nets())
def test_step_jacobian_equals_the_matrix_product(net: Net, check: Check) -> None:
    _, slopes = first_step(net)
    want = net.W_h.T @ torch.diag(slopes)
    check(step_jacobian(net.W_h, slopes), want, route="the product written out")


@pytest.mark.equation("eq-two-layouts")
@given(net=nets())
def test_the_numerator_layout_is_the_transpose(net: Net, check: Check) -> None:
    h, slopes = first_step(net)
    check(torch.diag(slopes) @ net.W_h, jacobian(step_from(net), h), route="autograd")
    check(torch.diag(slopes) @ net.W_h, step_jacobian(net.W_h, slopes).mT, route="transpose")


@pytest.mark.equation("eq-row-nudge")
@given(net=nets(), seed=seeds)
def test_a_row_nudge_is_multiplied_from_the_right(net: Net, seed: int, check: Check) -> None:
    h, slopes = first_step(net)
    nudge = randn(seed, len(h))
    _, pushed = torch.func.jvp(step_from(net), (h,), (nudge,))
    check(nudge @ step_jacobian(net.W_h, slopes), pushed, route="forward mode")


@pytest.mark.equation("eq-one-step-back")
@given(net=nets(), seed=seeds)
def test_a_gradient_column_is_multiplied_from_the_left(
    net: Net, seed: int, check: Check
) -> None:
    h, slopes = first_step(net)
    arriving = randn(seed, len(h))
    start = h.clone().requires_grad_()
    (leaving,) = torch.autograd.grad(step_from(net)(start), start, arriving)
    check(step_jacobian(net.W_h, slopes) @ arriving, leaving, route="reverse mode")


@pytest.mark.equation("eq-four-slopes")
@given(activation=activations, seed=seeds)
def test_slopes_equal_autograd(activation: Activation, seed: int, check: Check) -> None:
    z = 2 * randn(seed, 7)
    z.requires_grad_()
    (want,) = torch.autograd.grad(activation(z).sum(), z)
    check(activation.derivative(z), want, route="autograd")


@pytest.mark.equation("eq-four-slopes")
@given(seed=seeds)
def test_slopes_equal_the_printed_formulas(seed: int, check: Check) -> None:
    z = 2 * randn(seed, 7)
    sigmoid = 1 / (1 + torch.exp(-z))
    printed = {
        "tanh": 1 - torch.tanh(z) ** 2,
        "sigmoid": sigmoid * (1 - sigmoid),
        "relu": torch.where(z > 0, 1.0, 0.0).double(),
        "identity": torch.ones(7, dtype=z.dtype),
    }
    for activation in ACTIVATIONS:
        check(activation.derivative(z), printed[activation.name], route="closed form")


def two_step_slopes(net: Net) -> tuple[Tensor, Tensor]:
    z = unroll(net.x[:1], net.h_0[:1], *net.weights).preactivations[0]
    return net.activation.derivative(z[0]), net.activation.derivative(z[1])


@pytest.mark.equation("eq-two-steps")
@given(net=nets())
def test_two_steps_multiply_oldest_first(net: Net, check: Check) -> None:
    first, second = two_step_slopes(net)
    got = step_jacobian(net.W_h, first) @ step_jacobian(net.W_h, second)
    two = lambda h: step_from(net, 1)(step_from(net, 0)(h))  # noqa: E731
    check(got, jacobian(two, net.h_0[0]).mT, route="autograd")


@pytest.mark.equation("eq-preactivation-jacobian")
@given(net=nets())
def test_preactivation_jacobian_equals_autograd(net: Net, check: Check) -> None:
    z = randn(net.x.shape[1], len(net.b))
    following = lambda z: net.W_h @ net.activation(z) + net.b  # noqa: E731
    got = preactivation_jacobian(net.W_h, net.activation.derivative(z))
    check(got, jacobian(following, z).mT, route="autograd")


# ------------------------------------------------------------------ two_products


@pytest.mark.equation("eq-one-unit-chain")
@given(seed=seeds, steps=st.integers(1, 30))
def test_one_units_chain_equals_autograd(seed: int, steps: int, check: Check) -> None:
    w, h_0, *x = randn(seed, steps + 2)
    h = start = h_0.clone().requires_grad_()
    factors = []
    for x_t in x:
        z = w * h + x_t
        h = torch.tanh(z)
        factors.append(w * TANH.derivative(z.detach()))
    (want,) = torch.autograd.grad(h, start)
    check(torch.stack(factors).prod(), want, route="autograd")


@pytest.mark.equation("eq-weight-gradient")
@given(seed=seeds, steps=st.integers(1, 30))
def test_a_weights_gradient_is_a_sum_of_pushes(seed: int, steps: int, check: Check) -> None:
    w, *x = randn(seed, steps + 1)
    weight = w.clone().requires_grad_()
    h, pushes = torch.zeros((), dtype=torch.float64), []
    for x_t in x:
        slope = TANH.derivative((weight * h + x_t).detach())
        pushes = [push * w * slope for push in pushes] + [slope * h.detach()]
        h = torch.tanh(weight * h + x_t)
    (want,) = torch.autograd.grad(h, weight)
    check(torch.stack(pushes).sum(), want, route="autograd", atol=1e-14)


def random_sentences(seed: int, V: int, T: int) -> Tensor:
    """A distribution over all V^T sentences of T words, none of them independent."""
    table = randn(seed, *[V] * T).exp()
    return table / table.sum()


@pytest.mark.equation("eq-three-words")
@given(seed=seeds, T=st.integers(2, 5))
def test_conditionals_multiply_to_the_joint(seed: int, T: int, check: Check) -> None:
    joint = random_sentences(seed, 3, T)
    prefix = [joint.sum(dim=tuple(range(t, T))) if t < T else joint for t in range(T + 1)]
    for y in product(range(3), repeat=T):
        factors = [prefix[t + 1][y[: t + 1]] / prefix[t][y[:t]] for t in range(T)]
        check(torch.stack(factors).prod(), joint[y], route="enumeration")


@pytest.mark.equation("eq-mass")
@given(seed=seeds, n=st.integers(1, 6))
def test_ended_and_running_sentences_share_all_mass(seed: int, n: int, check: Check) -> None:
    chances = torch.softmax(randn(seed, 3, 3), dim=-1)  # START, red, blue -> END, red, blue

    def mass(sentence: tuple[int, ...]) -> Tensor:
        steps = zip((0, *sentence), sentence, strict=False)
        return torch.stack([chances[a, b] for a, b in steps]).prod()

    words = (1, 2)
    ended = [mass((*y, 0)) for t in range(n) for y in product(words, repeat=t)]
    running = [mass(y) for y in product(words, repeat=n)]
    one = torch.ones((), dtype=torch.float64)
    check(torch.stack(ended + running).sum(), one, route="enumeration")


@pytest.mark.equation("eq-logs-add")
@given(seed=seeds, count=st.integers(1, 40))
def test_the_log_of_a_product_is_the_sum_of_logs(seed: int, count: int, check: Check) -> None:
    factors = randn(seed, count)
    want = torch.tensor(math.log(abs(math.prod(factors.tolist()))), dtype=torch.float64)
    check(factors.abs().log().sum(), want, route="the product itself", atol=1e-12)


# ------------------------------------------------------------- wrong is rejected

WRONG_STEPS = {
    "wrong side": lambda W, d: torch.diag(d) @ W.T,
    "not transposed": lambda W, d: W @ torch.diag(d),
}
WRONG_CHAINS = {
    "wrong order": lambda W, d_0, d_1, d_2: (W.T * d_2) @ (W.T * d_1),
    "one step off": lambda W, d_0, d_1, d_2: (W.T * d_0) @ (W.T * d_1),
    "wrong side": lambda W, d_0, d_1, d_2: (d_1[:, None] * W.T) @ (d_2[:, None] * W.T),
    "not transposed": lambda W, d_0, d_1, d_2: (W * d_1) @ (W * d_2),
}


@pytest.mark.parametrize("name", WRONG_STEPS)
@given(net=nets(activation=TANH))
def test_a_wrong_step_is_rejected(name: str, net: Net) -> None:
    h, slopes = first_step(net)
    want = jacobian(step_from(net), h).mT
    assert relative_error(WRONG_STEPS[name](net.W_h, slopes), want) > 1e-8


@pytest.mark.parametrize("name", WRONG_CHAINS)
@given(net=nets(activation=TANH), seed=seeds)
def test_a_wrong_chain_is_rejected(name: str, net: Net, seed: int) -> None:
    first, second = two_step_slopes(net)
    before = TANH.derivative(randn(seed, len(first)))
    want = step_jacobian(net.W_h, first) @ step_jacobian(net.W_h, second)
    assert relative_error(WRONG_CHAINS[name](net.W_h, before, first, second), want) > 1e-8
