"""Write a checkpoint whose weights are the mean of several checkpoints.

    python -m training.average --out average.pt RUN1/checkpoint.pt RUN2/checkpoint.pt …

Checkpoints of runs that started from the same weights lie near each other; their average is often
better than each of them and costs nothing at run time.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

import torch
from torch import Tensor


def average(checkpoints: Sequence[Path]) -> dict[str, Tensor]:
    """Return the mean of each weight; tensors of integers are those of the first checkpoint."""
    networks = [
        torch.load(path, weights_only=True, map_location="cpu")["network"] for path in checkpoints
    ]
    return {
        name: torch.stack([network[name] for network in networks]).mean(0)
        if weight.is_floating_point()
        else weight
        for name, weight in networks[0].items()
    }


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("checkpoints", type=Path, nargs="+")
    parser.add_argument("--out", type=Path, required=True)
    options = parser.parse_args()
    torch.save({"network": average(options.checkpoints), "step": 0}, options.out)
    print(f"{options.out}: average of {len(options.checkpoints)} checkpoints")


if __name__ == "__main__":
    main()
