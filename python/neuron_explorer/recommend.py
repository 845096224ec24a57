# Part of open-torch-neuronx, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

"""Recommendations as Markdown: the findings of the rules, the critical path and what would help most."""

from __future__ import annotations

import pathlib

from .tables import one, rows

_SEVERITY = {3: "severe", 2: "notable", 1: "information"}


def recommend(device: pathlib.Path) -> str:
    """`device`: the folder of a device profile."""
    summary = one(device, "Summary")
    lines = [f"# Recommendations for {device.name}", ""]
    total = summary.get("total_time") or 0.0
    lines.append(f"Modelled time {total * 1e6:.2f} us; nothing was measured on hardware.")
    lines.append("")
    for row in rows(device, "Insight", "SELECT * FROM {} ORDER BY severity DESC, id"):
        lines += [
            f"## {row['title']} ({_SEVERITY.get(row['severity'], '')})",
            "",
            f"* symptom: {row['symptom']}",
            f"* suggestion: {row['suggestion']}",
            f"* rule: {row['metric']} is {row['value']:.4g}, compared with {row['threshold']:.4g}",
            "",
        ]
    path = rows(
        device,
        "CriticalPath",
        "SELECT coalesce(kernel_name, '') AS kernel, engine, wait_reason, count(*) AS steps, sum(duration_ns) AS ns "
        "FROM {} GROUP BY ALL ORDER BY ns DESC LIMIT 10",
    )
    if path:
        whole = max(1, rows(device, "CriticalPath", "SELECT sum(duration_ns) AS ns FROM {}")[0]["ns"])
        lines += [
            "## What sets the time",
            "",
            "| kernel | on | after | steps | time | share |",
            "|---|---|---|---|---|---|",
        ]
        lines += [
            f"| {row['kernel']} | {row['engine']} | {row['wait_reason']} | {row['steps']} | {row['ns'] / 1000:.2f} us "
            f"| {100 * row['ns'] / whole:.1f} % |"
            for row in path
        ]
        lines.append("")
    scenarios = rows(device, "WhatIf", "SELECT * FROM {} ORDER BY speedup DESC")
    if scenarios:
        lines += ["## What if", "", "| the machine had | time | speed-up |", "|---|---|---|"]
        lines += [
            f"| {row['scenario']} | {row['total_time_ns'] / 1000:.2f} us | {row['speedup']:.2f} |" for row in scenarios
        ]
        lines.append("")
    kernels = rows(device, "KernelRoofline", "SELECT * FROM {} ORDER BY end_ts - start_ts DESC LIMIT 10")
    if kernels:
        lines += ["## Longest kernels", "", "| kernel | time | limiter | flops / byte |", "|---|---|---|---|"]
        for row in kernels:
            intensity = row["arithmetic_intensity"]
            lines.append(
                f"| {row['kernel_name']} | {(row['end_ts'] - row['start_ts']) / 1000:.2f} us | {row['limiter']} | "
                + (f"{intensity:.2f} |" if intensity is not None else "|")
            )
        lines.append("")
    return "\n".join(lines)
