"""The speed of this machine: a fixed piece of work, timed."""

import time

REPEATS = 7


def calibration_seconds() -> float:
    """Return the fastest of several timings of a fixed piece of work on one core, about a second in all.

    The work is that of training many small networks at once: batched products, a rectifier and an update.
    """
    import torch

    generator = torch.Generator().manual_seed(0)
    x, w, v = (torch.rand(shape, generator=generator) for shape in ((64, 32, 16), (64, 16, 64), (64, 64, 1)))
    threads, fastest = torch.get_num_threads(), float("inf")
    torch.set_num_threads(1)
    try:
        for _ in range(REPEATS):
            began = time.perf_counter()
            for _ in range(50):
                hidden = torch.relu(torch.bmm(x, w))
                w = w - 1e-6 * torch.bmm(x.transpose(1, 2), hidden * torch.bmm(hidden, v))
            fastest = min(fastest, time.perf_counter() - began)
    finally:
        torch.set_num_threads(threads)
    return fastest
