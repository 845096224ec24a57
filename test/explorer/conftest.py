# Part of open-torch-neuronx, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

"""A data folder with synthetic profiles, made once for all tests that only read it."""

from __future__ import annotations

import pytest


@pytest.fixture(scope="session")
def data_folder(tmp_path_factory):
    from neuron_explorer import synthetic

    root = tmp_path_factory.mktemp("data")
    assert synthetic.main(["--events", "6000", str(root / "profiles" / "device")]) in (0, None)
    assert synthetic.main(["--events", "2000", "--system", "60", str(root / "profiles" / "system")]) in (0, None)
    return root
