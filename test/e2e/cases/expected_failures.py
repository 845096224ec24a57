# Part of open-torch-neuronx, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

"""Tests that fail for a reason that is known. An entry that passes fails the run, so that the table does not outlive its
reasons."""

from __future__ import annotations

EXPECTED_FAILURES: dict[str, str] = {}
