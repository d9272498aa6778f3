"""Jacobians of a recurrent net, from W_h and the slopes sigma'(z): tensors, no model.

Layout: as the book's formulas have it, the denominator layout.  The last two
axes of a Jacobian are (input, output): entry [i, j] is d output_j / d input_i.
`torch.autograd.functional.jacobian` has them the other way round.  Shapes are stated in
the types and enforced in tests; elsewhere torch's own rules of broadcasting hold.
"""

from jaxtyping import Float
from torch import Tensor


def step_jacobian(
    W_h: Float[Tensor, "H H"], slopes: Float[Tensor, "*batch H"]
) -> Float[Tensor, "*batch H H"]:
    """dh^(t)/dh^(t-1) = W_h^top diag(sigma'(z^(t))) (eq-step-jacobian).

    slopes: sigma'(z^(t)), at the step that is entered.  Result: entry [.., i, j]
    is dh_j^(t) / dh_i^(t-1), so the axes are (h^(t-1), h^(t)).
    """
    # A diagonal matrix from the right scales columns: no H x H diagonal is made.
    return W_h.mT * slopes.unsqueeze(-2)


def preactivation_jacobian(
    W_h: Float[Tensor, "H H"], slopes_prev: Float[Tensor, "*batch H"]
) -> Float[Tensor, "*batch H H"]:
    """dz^(t)/dz^(t-1) = diag(sigma'(z^(t-1))) W_h^top (eq-preactivation-jacobian).

    The same net, followed by its state *before* the nonlinearity, as Pascanu,
    Mikolov and Bengio (2013) keep it.  slopes_prev: sigma'(z^(t-1)), at the step
    that is left.  Result: entry [.., i, j] is dz_j^(t) / dz_i^(t-1).
    """
    return slopes_prev.unsqueeze(-1) * W_h.mT
