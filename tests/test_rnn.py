"""A recurrent net's step and its unrolled run, against torch's own."""

import math

import pytest
import torch
from cases import Net, nets
from hypothesis import given
from hypothesis import strategies as st

from companion.rnn import (
    ACTIVATIONS,
    IDENTITY,
    RELU,
    SIGMOID,
    TANH,
    Activation,
    preactivation,
    rnn_step,
    unroll,
)


@given(net=nets())
def test_unrolling_repeats_the_step(net: Net) -> None:
    states, preactivations = unroll(net.x, net.h_0, *net.weights)
    h = net.h_0
    for t in range(net.x.shape[1]):
        z = preactivation(net.x[:, t], h, net.W_x, net.W_h, net.b)
        h = rnn_step(net.x[:, t], h, *net.weights)
        torch.testing.assert_close(preactivations[:, t], z, rtol=1e-12, atol=1e-12)
        torch.testing.assert_close(states[:, t], h, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("activation", [TANH, RELU], ids=lambda a: a.name)
@given(data=st.data())
def test_unroll_equals_torch_values_and_gradients(
    activation: Activation, data: st.DataObject
) -> None:
    net = data.draw(nets(activation=activation))
    H, D = net.W_x.shape
    torchs = torch.nn.RNN(D, H, nonlinearity=activation.name, batch_first=True).double()
    with torch.no_grad():
        torchs.weight_ih_l0.copy_(net.W_x)
        torchs.weight_hh_l0.copy_(net.W_h)
        torchs.bias_ih_l0.copy_(net.b)
        torchs.bias_hh_l0.zero_()
    ours = [t.clone().requires_grad_() for t in (net.x, net.h_0, net.W_x, net.W_h, net.b)]
    states, _ = unroll(*ours, activation)
    x, h_0 = (t.clone().requires_grad_() for t in (net.x, net.h_0))
    torch_states, _ = torchs(x, h_0[None])
    torch.testing.assert_close(states, torch_states, rtol=1e-12, atol=1e-12)

    weights = torch.linspace(-1, 1, states.numel(), dtype=torch.float64).view_as(states)
    got = torch.autograd.grad((weights * states).sum(), ours)
    inputs = [x, h_0, torchs.weight_ih_l0, torchs.weight_hh_l0, torchs.bias_ih_l0]
    want = torch.autograd.grad((weights * torch_states).sum(), inputs)
    for a, b in zip(got, want, strict=True):
        # Relative to the largest entry: gradients of a growing ReLU net reach 1e6.
        torch.testing.assert_close(
            a, b, rtol=1e-12, atol=1e-12 * max(1.0, b.abs().max().item())
        )


@given(net=nets(activation=TANH))
def test_gradients_reach_the_weights_through_the_preactivations(net: Net) -> None:
    W_h = net.W_h.clone().requires_grad_()
    states, z = unroll(net.x, net.h_0, net.W_x, W_h, net.b)  # tanh is the default
    got, want = (
        torch.autograd.grad(s.sum(), W_h, retain_graph=True)[0] for s in (torch.tanh(z), states)
    )
    torch.testing.assert_close(got, want, rtol=1e-10, atol=1e-12)


def test_there_are_four_activations() -> None:
    assert [a.name for a in ACTIVATIONS] == ["tanh", "sigmoid", "relu", "identity"]


def test_the_slope_of_tanh_has_a_slope_of_its_own() -> None:
    """Its first derivative at 0 is 0 and its second -2; states of 0 are common."""
    z = torch.zeros((), dtype=torch.float64, requires_grad=True)
    (first,) = torch.autograd.grad(TANH.derivative(z), z, create_graph=True)
    (second,) = torch.autograd.grad(first, z)
    assert first.item() == 0
    assert second.item() == pytest.approx(-2)


def test_a_step_on_paper() -> None:
    one = torch.ones(1, 1, dtype=torch.float64)
    z = preactivation(2 * one, 3 * one, 5 * one, 7 * one, 11 * one[0])
    assert z.item() == 2 * 5 + 3 * 7 + 11
    h = rnn_step(0 * one, one, one, one, 0 * one[0])
    assert h.item() == pytest.approx(math.tanh(1), rel=1e-15)  # tanh is the default


def test_no_steps_give_empty_tensors() -> None:
    states, preactivations = unroll(
        torch.zeros(2, 0, 3),
        torch.zeros(2, 4),
        torch.zeros(4, 3),
        torch.zeros(4, 4),
        torch.zeros(4),
    )
    assert states.shape == preactivations.shape == (2, 0, 4)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("activation", ACTIVATIONS, ids=lambda a: a.name)
def test_dtype_follows_the_inputs(activation: Activation, dtype: torch.dtype) -> None:
    z = torch.tensor([-1.0, 0.0, 2.0], dtype=dtype)
    assert activation(z).dtype == activation.derivative(z).dtype == dtype


def test_activations_change_nothing_in_place_and_share_no_memory() -> None:
    for activation in ACTIVATIONS:
        z = torch.tensor([-1.0, 0.5])
        activation(z).zero_()
        activation.derivative(z).zero_()
        assert z.tolist() == [-1.0, 0.5]


@pytest.mark.parametrize("activation", ACTIVATIONS, ids=lambda a: a.name)
def test_gamma_is_the_largest_slope(activation: Activation) -> None:
    z = torch.linspace(-40, 40, 8001, dtype=torch.float64)
    slopes = activation.derivative(z)
    assert slopes.max().item() == pytest.approx(activation.gamma, rel=1e-12)
    assert slopes.min().item() >= 0


@pytest.mark.parametrize(
    ("activation", "values", "slopes"),
    [
        (TANH, [0.0, 3 / 5], [1.0, 16 / 25]),
        (SIGMOID, [1 / 2, 2 / 3], [1 / 4, 2 / 9]),
        (RELU, [0.0, math.log(2)], [0.0, 1.0]),
        (IDENTITY, [0.0, math.log(2)], [1.0, 1.0]),
    ],
    ids=lambda value: getattr(value, "name", ""),
)
def test_activations_at_zero_and_log_two(
    activation: Activation, values: list[float], slopes: list[float]
) -> None:
    z = torch.tensor([0.0, math.log(2)], dtype=torch.float64)
    assert activation(z).tolist() == pytest.approx(values, rel=1e-15)
    assert activation.derivative(z).tolist() == pytest.approx(slopes, rel=1e-14)


def test_slopes_keep_their_digits_when_saturated() -> None:
    """1 - tanh(z)^2 is exactly 0 from z = 20 on; the true slope is 4 exp(-2 z)."""
    z = torch.tensor([-300.0, -20.0, 20.0, 300.0], dtype=torch.float64)
    far = z.abs()
    torch.testing.assert_close(TANH.derivative(z), 4 * torch.exp(-2 * far), rtol=1e-13, atol=0)
    torch.testing.assert_close(
        SIGMOID.derivative(2 * z), torch.exp(-2 * far), rtol=1e-13, atol=0
    )
    for activation in (TANH, SIGMOID):
        extreme = torch.tensor([-math.inf, -1e4, 1e4, math.inf], dtype=torch.float64)
        assert activation.derivative(extreme).tolist() == [0.0] * 4


def test_case_k01_the_slope_of_relu_at_zero_is_torchs() -> None:
    z = torch.tensor([-0.0, 0.0], dtype=torch.float64, requires_grad=True)
    (torchs,) = torch.autograd.grad(torch.relu(z).sum(), z)
    assert RELU.derivative(z).tolist() == torchs.tolist() == [0.0, 0.0]
