"""A recurrent net: z^(t) = W_h h^(t-1) + W_x x^(t) + b, and h^(t) = sigma(z^(t)).

Batch first.  A matrix is stored as (to, from), as torch stores it, so a row of a
batch is multiplied by the transpose: `h_prev @ W_h.T`.  All tensors of a call have one
floating dtype and one device, which the result follows.  Shapes are stated in the types
and enforced in tests; elsewhere torch's own rules of broadcasting hold.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor


@dataclass(frozen=True)
class Activation:
    """An elementwise sigma, its derivative, and gamma = sup |sigma'|.

    `function` and `derivative` map a tensor to one of the same shape and dtype.
    """

    name: str
    function: Callable[[Tensor], Tensor]
    derivative: Callable[[Tensor], Tensor]
    gamma: float

    def __call__(self, z: Tensor) -> Tensor:
        """sigma(z), of z's shape."""
        return self.function(z)


def _sigmoid_derivative(z: Tensor) -> Tensor:
    return torch.sigmoid(z) * torch.sigmoid(-z)  # the same for 1 - sigmoid(z)


def _tanh_derivative(z: Tensor) -> Tensor:
    # 1 - tanh(z)^2 is exactly 0 from z = 20 on; this form keeps all its digits.
    return 4 * _sigmoid_derivative(2 * z)


def _relu_derivative(z: Tensor) -> Tensor:
    return (z > 0).to(z.dtype)  # 0 at exactly 0, as torch has it


TANH = Activation("tanh", torch.tanh, _tanh_derivative, gamma=1.0)
SIGMOID = Activation("sigmoid", torch.sigmoid, _sigmoid_derivative, gamma=0.25)
RELU = Activation("relu", torch.relu, _relu_derivative, gamma=1.0)
IDENTITY = Activation("identity", torch.clone, torch.ones_like, gamma=1.0)
ACTIVATIONS = (TANH, SIGMOID, RELU, IDENTITY)


class Unrolled(NamedTuple):
    """All steps of one run.

    states          (B, T, H): h^(1) .. h^(T)
    preactivations  (B, T, H): z^(1) .. z^(T); the slopes are
                    `activation.derivative(preactivations)`
    """

    states: Tensor
    preactivations: Tensor


def preactivation(
    x_t: Float[Tensor, "B D"],
    h_prev: Float[Tensor, "B H"],
    W_x: Float[Tensor, "H D"],
    W_h: Float[Tensor, "H H"],
    b: Float[Tensor, " H"],
) -> Float[Tensor, "B H"]:
    """z^(t) = W_h h^(t-1) + W_x x^(t) + b (def-preactivation)."""
    return x_t @ W_x.T + h_prev @ W_h.T + b


def rnn_step(
    x_t: Float[Tensor, "B D"],
    h_prev: Float[Tensor, "B H"],
    W_x: Float[Tensor, "H D"],
    W_h: Float[Tensor, "H H"],
    b: Float[Tensor, " H"],
    activation: Activation = TANH,
) -> Float[Tensor, "B H"]:
    """h^(t) = sigma(z^(t)) (def-state)."""
    return activation(preactivation(x_t, h_prev, W_x, W_h, b))


def unroll(
    x: Float[Tensor, "B T D"],
    h_0: Float[Tensor, "B H"],
    W_x: Float[Tensor, "H D"],
    W_h: Float[Tensor, "H H"],
    b: Float[Tensor, " H"],
    activation: Activation = TANH,
) -> Unrolled:
    """h^(t) and z^(t) for t = 1 .. T, from h^(0).

    Equals `torch.nn.RNN` with b = b_ih + b_hh, values and gradients, for tanh
    and ReLU (b_hh = 0).  T = 0 gives tensors of shape (B, 0, H).
    """
    inputs = x @ W_x.T + b  # one product for all steps: the loop keeps W_h's alone
    h_t, states, preactivations = h_0, [], []
    for input_t in inputs.unbind(dim=1):
        z_t = input_t + h_t @ W_h.T
        h_t = activation(z_t)
        preactivations.append(z_t)
        states.append(h_t)
    if not states:
        return Unrolled(inputs, inputs)
    return Unrolled(torch.stack(states, dim=1), torch.stack(preactivations, dim=1))
