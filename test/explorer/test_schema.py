# Part of open-torch-neuronx, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

"""The schema, the writer of tables, and the synthetic profiles."""

from __future__ import annotations

import json
import subprocess
import sys

import duckdb
import numpy
import pytest
from neuron_explorer import cli, schema, synthetic


def test_tables_have_unique_columns_and_descriptions():
    for table in schema.tables().values():
        names = [column.name for column in table.columns]
        assert len(set(names)) == len(names), table.name
        assert all(len(column.description) > 2 for column in table.columns), table.name


def test_import_without_torch():
    code = "import sys, neuron_explorer.cli, neuron_explorer.synthetic; print('torch' in sys.modules)"
    assert subprocess.check_output([sys.executable, "-c", code], text=True).strip() == "False"


@pytest.mark.parametrize("package", ["numpy", "pyarrow"])
def test_missing_packages_are_named(package):
    code = f"import sys; sys.modules[{package!r}] = None; from neuron_explorer.__main__ import main; sys.exit(main())"
    process = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert process.returncode == 2
    assert f"expected the Python package {package} but it is not installed" in process.stderr
    assert "Traceback" not in process.stderr


def test_show_profile_schema(capsys):
    assert cli.main(["--show-profile-schema"]) == 0
    text = capsys.readouterr().out
    assert "Instruction: " in text and "evt_wait_time_ns (int64, optional) [ns]" in text


def test_writer_checks_columns(tmp_path):
    with pytest.raises(schema.SchemaError, match="expected a table of the schema but got 'Nothing'"):
        schema.TableWriter(tmp_path, "Nothing")
    with pytest.raises(schema.SchemaError, match="expected column 'timestamp' but got none"):
        schema.write_table(tmp_path, "PendingDma", {"value": [1]})
    with pytest.raises(schema.SchemaError, match="expected columns of the schema but got"):
        schema.write_table(tmp_path, "PendingDma", {"timestamp": [1], "value": [1], "colour": [1]})
    with pytest.raises(schema.SchemaError, match="expected 1 rows but got 2"):
        schema.write_table(tmp_path, "PendingDma", {"timestamp": [1], "value": [1, 2]})
    with pytest.raises(schema.SchemaError, match="expected no nulls but got 1"):
        schema.write_table(tmp_path, "PendingDma", {"timestamp": [None], "value": [1]})


def test_writer_continues_ids_over_batches(tmp_path):
    with schema.TableWriter(tmp_path, "PendingDma") as writer:
        writer.write({"timestamp": numpy.array([1, 2]), "value": numpy.array([1, 0], numpy.int32)})
        writer.write({"timestamp": [5], "value": [7]})
    rows = duckdb.sql(f"SELECT id, timestamp, value FROM '{tmp_path}/PendingDma.parquet'").fetchall()
    assert rows == [(0, 1, 1), (1, 2, 0), (2, 5, 7)]


def test_synthetic_profile(tmp_path):
    assert synthetic.main([str(tmp_path / "p"), "--events", "5000", "--system", "50"]) == 0
    device = tmp_path / "p" / "device" / "synthetic"
    rows = schema.rows_of(device, "Instruction") + schema.rows_of(device, "DmaPacketAggregated")
    assert rows == 5000
    description = json.loads((tmp_path / "p" / "profile.json").read_text())
    assert description["kind"] == "system" and description["status"] == "PROCESSED"
    # Instructions of one engine never overlap, edges go forward, every table follows the schema.
    overlaps = duckdb.sql(
        f"""SELECT count(*) FROM (SELECT start_ts < lag(end_ts) OVER (PARTITION BY engine ORDER BY start_ts) AS bad
        FROM '{device}/Instruction.parquet') WHERE bad"""
    ).fetchall()
    assert overlaps == [(0,)]
    assert duckdb.sql(f"SELECT min(gap_time) >= 0 FROM '{device}/Flow.parquet'").fetchall() == [(True,)]
    for file in [*device.glob("*.parquet"), *(tmp_path / "p").glob("*.parquet")]:
        columns = [row[0] for row in duckdb.sql(f"DESCRIBE SELECT * FROM '{file}'").fetchall()]
        assert columns == [column.name for column in schema.tables()[file.stem].columns], file.stem
