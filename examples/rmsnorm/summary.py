# Part of open-torch-neuronx, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

"""The three ways to write RMSNorm side by side.

python examples/rmsnorm/summary.py
"""

import compiled
import fused
import naive
from report import TIME_STATEMENT


def main():
    reports = [naive.run(), fused.run(), compiled.run()]
    base = reports[0]
    print("\n=== summary ===")
    header = f"{'':44}{'dispatches':>11}{'total us':>12}{'ratio':>8}{'kernels us':>12}{'ratio':>8}{'difference':>12}"
    print(header)
    print("-" * len(header))
    for item in reports:
        print(
            f"{item.title:44}{item.dispatches:11d}{item.total_us:12.2f}{base.total_us / item.total_us:8.2f}"
            f"{item.kernel_us:12.2f}{base.kernel_us / item.kernel_us:8.2f}{item.max_difference:12.2e}"
        )
    print("ratio: how many times faster than the naive version, with and without the fixed cost per execution")
    print(TIME_STATEMENT)
    return reports


if __name__ == "__main__":
    main()
