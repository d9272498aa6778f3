"""Ratios against torch's own functions: CPU time of one thread, medians, one run.

    python benchmarks/bench.py

Each row times two ways to the same numbers, in turn, in one process.  A ratio above 1
means that the companion is the faster one.
"""

import statistics
import time
from collections.abc import Callable

import torch
from torch.func import jacrev, vmap

from companion.jacobian import step_jacobian
from companion.rnn import TANH, unroll

SECONDS = 1.0  # for each of the two, in each row
Work = Callable[[], object]


def ratio(peer: Work, ours: Work) -> tuple[float, float]:
    """Median time of the peer over ours, and ours in milliseconds."""
    times: dict[Work, list[float]] = {peer: [], ours: []}
    peer(), ours()
    while min(sum(spent) for spent in times.values()) < SECONDS:
        for work, spent in times.items():
            start = time.thread_time()
            work()
            spent.append(time.thread_time() - start)
    theirs, mine = (statistics.median(spent) for spent in times.values())
    return theirs / mine, 1e3 * mine


def forward_and_backward(batch: int, units: int, steps: int) -> tuple[Work, Work]:
    torchs = torch.nn.RNN(units, units, batch_first=True)
    torch.nn.init.zeros_(torchs.bias_hh_l0)  # ours has one bias
    x, h_0 = torch.randn(batch, steps, units), torch.zeros(batch, units)
    W_x, W_h, b = (
        getattr(torchs, name).detach().clone().requires_grad_()
        for name in ("weight_ih_l0", "weight_hh_l0", "bias_ih_l0")
    )

    def peer() -> tuple[torch.Tensor, ...]:
        return torch.autograd.grad(torchs(x)[0].sum(), list(torchs.parameters()))

    def ours() -> tuple[torch.Tensor, ...]:
        return torch.autograd.grad(unroll(x, h_0, W_x, W_h, b).states.sum(), [W_x, W_h, b])

    torch.testing.assert_close(list(ours()), list(peer())[:3], rtol=1e-4, atol=1e-4)
    return peer, ours


def step_jacobians(units: int, steps: int) -> tuple[Work, Work]:
    W_h = torch.randn(units, units) / units**0.5
    inputs, states = torch.randn(steps, units), torch.randn(steps, units)

    def step(h: torch.Tensor, z_x: torch.Tensor) -> torch.Tensor:
        return torch.tanh(W_h @ h + z_x)

    def peer() -> object:
        return vmap(jacrev(step))(states, inputs)

    def ours() -> object:
        return step_jacobian(W_h, TANH.derivative(states @ W_h.T + inputs))

    torch.testing.assert_close(ours(), vmap(jacrev(step))(states, inputs).mT)
    return peer, ours


def main() -> None:
    torch.set_num_threads(1)
    torch.manual_seed(0)
    print(f"{'work':44} {'peer':16} {'ratio':>6} {'ours, ms':>9}")
    for batch, units in [(1, 64), (32, 64), (32, 256)]:
        found, mine = ratio(*forward_and_backward(batch, units, steps=50))
        work = f"forward and backward, B={batch} H={units} T=50"
        print(f"{work:44} {'nn.RNN':16} {found:6.2f} {mine:9.2f}")
    for units in (64, 256):
        found, mine = ratio(*step_jacobians(units, steps=100))
        work = f"step Jacobians, H={units} T=100"
        print(f"{work:44} {'vmap(jacrev)':16} {found:6.2f} {mine:9.2f}")


if __name__ == "__main__":
    main()
