"""One-step Jacobians: index order, batches, and the published slip."""

import jaxtyping
import numpy as np
import pytest
import torch
from torch.autograd.functional import jacobian

from companion.jacobian import preactivation_jacobian, step_jacobian
from companion.rnn import TANH


@pytest.mark.parametrize("function", [step_jacobian, preactivation_jacobian])
@pytest.mark.parametrize("shape", [(4,), (2, 4), (2, 5, 4), (0, 4)])
def test_leading_axes_are_batches(function, shape: tuple[int, ...]) -> None:  # type: ignore[no-untyped-def]
    generator = torch.Generator().manual_seed(0)
    W_h = torch.randn(4, 4, generator=generator)
    slopes = torch.rand(shape, generator=generator)
    result = function(W_h, slopes)
    assert result.shape == (*shape, 4)
    for index in np.ndindex(shape[:-1]):
        assert torch.equal(result[index], function(W_h, slopes[index]))


def test_the_first_axis_is_the_input_and_the_second_the_output() -> None:
    W_h = torch.tensor([[1.0, 2.0], [3.0, 4.0]])
    slopes = torch.tensor([10.0, 100.0])
    # Entry [input, output]: the weight from input to output, times the output's slope.
    assert step_jacobian(W_h, slopes).tolist() == [[10.0, 300.0], [20.0, 400.0]]
    # Times the input's slope, when the state is taken before the nonlinearity.
    assert preactivation_jacobian(W_h, slopes).tolist() == [[10.0, 30.0], [200.0, 400.0]]


def test_a_wrong_shape_is_named_in_tests() -> None:
    with pytest.raises(jaxtyping.TypeCheckError, match="slopes"):
        step_jacobian(torch.eye(3), torch.ones(4))


def test_gradients_flow_through_the_jacobian() -> None:
    W_h = torch.randn(3, 3, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    slopes = torch.tensor([0.5, 0.2, 0.9], dtype=torch.float64)
    for function in (step_jacobian, preactivation_jacobian):
        inputs = (W_h.clone().requires_grad_(), slopes.clone().requires_grad_())
        assert torch.autograd.gradcheck(function, inputs)


def test_case_j01_the_state_before_the_nonlinearity() -> None:
    W = torch.tensor([[0.0, 2.0], [0.5, 0.0]], dtype=torch.float64)
    state = torch.tensor([0.3, -1.0], dtype=torch.float64)
    slopes = TANH.derivative(state)
    numerator = preactivation_jacobian(W, slopes).mT
    want = torch.tensor([[0.0, 0.839949], [0.457568, 0.0]], dtype=torch.float64)
    torch.testing.assert_close(numerator, want, rtol=0, atol=1e-6)
    torch.testing.assert_close(numerator, jacobian(lambda x: W @ torch.tanh(x), state))
    singular = torch.linalg.svdvals(numerator).tolist()
    assert singular == pytest.approx([0.839949, 0.457568], abs=1e-6)
    published = torch.linalg.svdvals(W.T @ torch.diag(slopes)).tolist()
    assert published == pytest.approx([1.830274, 0.209987], abs=1e-6)


def test_the_paper_example_in_both_orders() -> None:
    """W_h = [[1,2],[0,1]], z = (.5,-1) then (1.5,.2): 0.436 right, 1.796 wrong."""
    W_h = torch.tensor([[1.0, 2.0], [0.0, 1.0]], dtype=torch.float64)
    z = torch.tensor([[0.5, -1.0], [1.5, 0.2]], dtype=torch.float64)
    first, second = step_jacobian(W_h, TANH.derivative(z))
    assert (first @ second)[1, 0].item() == pytest.approx(0.436, abs=5e-4)
    assert (second @ first)[1, 0].item() == pytest.approx(1.796, abs=5e-4)
