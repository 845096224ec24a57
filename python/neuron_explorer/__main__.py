# Part of open-torch-neuronx, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

"""The command neuron-explorer, and python -m neuron_explorer."""

import sys

#: What the extra `explorer` of pyproject.toml installs.
_EXTRA = ("duckdb", "numpy", "pyarrow", "starlette", "uvicorn")


def main() -> int:
    """Runs the command; without the packages of the extra it says what to install, since a plain installation has the
    command, too."""
    try:
        from .cli import main as command

        return command()
    except ModuleNotFoundError as error:
        missing = (error.name or "").split(".")[0]
        if missing not in _EXTRA:
            raise
        print(
            f"neuron-explorer: expected the Python package {missing} but it is not installed; in a clone of this project, "
            "pip install '.[explorer]' installs what the command needs",
            file=sys.stderr,
        )
        return 2


if __name__ == "__main__":
    sys.exit(main())
