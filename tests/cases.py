"""Hypothesis strategies for nets: every axis of another size, no degenerate inputs.

The inputs are drawn by torch from a drawn seed: hypothesis chooses sizes and seeds,
and zeros, equal entries and symmetric matrices have probability 0.
"""

from dataclasses import dataclass

import torch
from hypothesis import strategies as st
from torch import Tensor

from companion.rnn import ACTIVATIONS, Activation

activations = st.sampled_from(ACTIVATIONS)


@dataclass(frozen=True)
class Net:
    """The weights of a net, a batch of inputs and a first state, all float64."""

    x: Tensor  # (B, T, D)
    h_0: Tensor  # (B, H)
    W_x: Tensor  # (H, D)
    W_h: Tensor  # (H, H)
    b: Tensor  # (H,)
    activation: Activation

    @property
    def weights(self) -> tuple[Tensor, Tensor, Tensor, Activation]:
        return self.W_x, self.W_h, self.b, self.activation


@st.composite
def nets(draw: st.DrawFn, activation: Activation | None = None) -> Net:
    """Nets with B = 2, D = 3, 2 to 6 units (at least 2: scalars commute), 2 to 7 steps."""
    generator = torch.Generator().manual_seed(draw(st.integers(0, 2**31)))
    H, T = draw(st.integers(2, 6)), draw(st.integers(2, 7))

    def randn(*shape: int) -> Tensor:
        return torch.randn(shape, generator=generator, dtype=torch.float64)

    return Net(
        x=randn(2, T, 3),
        h_0=randn(2, H),
        W_x=randn(H, 3),
        W_h=randn(H, H),
        b=randn(H),
        activation=activation or draw(activations),
    )
