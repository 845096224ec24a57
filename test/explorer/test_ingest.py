# Part of open-torch-neuronx, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

"""From the files of a capture to tables, and what the tables say about the program."""

from __future__ import annotations

import json
import os
import pathlib
import random
import re
import subprocess
import sys

import duckdb
import pytest
from neuron_explorer import _decoder, ingest, schema
from neuron_explorer.ingest.session import IngestError
from neuron_explorer.metrics import insights


def sql(folder: pathlib.Path, query: str) -> list[tuple]:
    """Names of tables in braces are Parquet files of the folder."""
    for table in schema.tables():
        query = query.replace("{" + table + "}", f"'{folder}/{table}.parquet'")
    return duckdb.sql(query).fetchall()


# A long run of the tests of random damage: NEURON_RANDOM_DAMAGE=100 makes them a hundred times as long.
LONGER = int(os.environ.get("NEURON_RANDOM_DAMAGE", "1"))


def test_all_tables_follow_the_schema(profile, device):
    for folder in (profile, device):
        for file in folder.glob("*.parquet"):
            columns = [row[0] for row in duckdb.sql(f"DESCRIBE SELECT * FROM '{file}'").fetchall()]
            assert columns == [column.name for column in schema.tables()[file.stem].columns], file.stem
    description = json.loads((profile / "profile.json").read_text())
    assert description["kind"] == "system" and description["warnings"] == []
    assert sorted(description["device_profiles"]) == sorted(path.name for path in (profile / "device").iterdir())


def test_data_paths_execute_one_instruction_at_a_time(device):
    overlaps = sql(
        device,
        """SELECT count(*) FROM (SELECT start_ts < lag(end_ts) OVER (PARTITION BY timeline_track ORDER BY start_ts)
        AS bad FROM {Instruction} WHERE NOT contains(timeline_track, 'sequencer')) WHERE bad""",
    )
    assert overlaps == [(0,)]
    assert sql(
        device,
        "SELECT min(start_ts) >= 0, max(end_ts) <= (SELECT total_time * 1e9 + 1 FROM {Summary}) FROM {Instruction}",
    ) == [(True, True)]


def test_provenance_reaches_module_operator_and_line(device):
    rows = sql(
        device,
        """SELECT DISTINCT layer, hlo_name, nki_source_location, stack_frame_ids FROM {Instruction}
        WHERE opcode = 'MATMUL' AND tensor_instruction_type = 'MATMUL'""",
    )
    # The layer is compiled once and runs four times; each run is told apart.
    assert {layer for layer, *_ in rows} == {f"{block}.{name}" for block in range(4) for name in ("up", "down")}
    for _, operation, location, frames in rows:
        assert "mm" in operation or "matmul" in operation or "linear" in operation
        assert location.split(":")[0].endswith(".py") and frames
    (source,) = sql(device, "SELECT text FROM {SourceFile} WHERE contains(path, 'step.py')")
    lines = source[0].splitlines()
    located = sql(
        device, "SELECT DISTINCT nki_source_location FROM {Instruction} WHERE contains(nki_source_location, 'step.py')"
    )
    assert any("rms norm" in lines[int(location.rsplit(":", 1)[1]) - 1] for (location,) in located)
    # And from the line back: every location of a row is a frame of the tables.
    missing = sql(
        device,
        """SELECT count(*) FROM (SELECT DISTINCT unnest(string_split(stack_frame_ids, ',')) AS id FROM {Instruction}
        WHERE stack_frame_ids IS NOT NULL) WHERE id NOT IN (SELECT id FROM {StackFrame})""",
    )
    assert missing == [(0,)]


def test_framework_tree_adds_up(device):
    nodes = sql(
        device,
        """SELECT id, node_name, parent_name, children_ids, hbm_read_bytes, vector_engine_instruction_count
        FROM {FrameworkNode}""",
    )
    by_id = {row[0]: row for row in nodes}
    names = {row[1] for row in nodes}
    assert any(name.endswith("/0/up") or "/0/up/" in name for name in names), sorted(names)[:20]
    for _, _, parent, children, read, count in nodes:
        assert parent == "" or parent in names
        inner = [by_id[child] for child in json.loads(children)]
        if inner:
            assert read == sum(child[4] for child in inner)
            assert count == sum(child[5] for child in inner)
    assert nodes[0][4] == sql(device, "SELECT hbm_read_bytes FROM {Summary}")[0][0]


def test_bytes_agree_between_tables(device):
    ((read, written, total),) = sql(
        device,
        """SELECT sum(transfer_bytes) FILTER (read_num_sbuf_partitions = 0),
        sum(transfer_bytes) FILTER (write_num_sbuf_partitions = 0), sum(transfer_bytes) FROM {DmaPacketAggregated}""",
    )
    ((summary_read, summary_written, summary_total, moved),) = sql(
        device,
        """SELECT hbm_read_bytes, hbm_write_bytes, dma_transfer_total_bytes,
        (SELECT max(total_transfer_bytes) FROM {DmaUsage}) FROM {Summary}""",
    )
    assert (read, written, total) == (summary_read, summary_written, summary_total)
    assert abs(moved - total) <= 1
    (triggered,) = sql(device, "SELECT sum(hbm_read_bytes), sum(hbm_write_bytes) FROM {Instruction}")
    assert triggered == (read, written)


def test_flops_of_the_graph_and_of_the_machine(device):
    ((model, hardware, transposed),) = sql(device, "SELECT model_flops, hardware_flops, transpose_flops FROM {Summary}")
    # Four blocks of 128 x 256 x 512, up and down.
    assert model == 2 * 4 * 2 * 128 * 256 * 512
    assert hardware - transposed == model


def test_critical_path_covers_the_time(device):
    ((first, covered, last),) = sql(device, "SELECT min(start_ts), sum(duration_ns), max(end_ts) FROM {CriticalPath}")
    ((end,),) = sql(
        device,
        "SELECT greatest((SELECT max(end_ts) FROM {Instruction}), (SELECT max(end_ts) FROM {DmaPacketAggregated}))",
    )
    assert first == 0 and last == end and covered == end
    gaps = sql(
        device,
        """SELECT count(*) FROM (SELECT start_ts - lag(end_ts) OVER (ORDER BY step) AS gap FROM {CriticalPath})
        WHERE gap <> 0""",
    )
    assert gaps == [(0,)]
    # Every step names a row that exists and starts there.
    wrong = sql(
        device,
        """SELECT count(*) FROM {CriticalPath} p
        LEFT JOIN {Instruction} i ON p."table" = 'Instruction' AND p.row_id = i.id
        LEFT JOIN {DmaPacketAggregated} d ON p."table" <> 'Instruction' AND p.row_id = d.id
        WHERE coalesce(i.start_ts, d.start_ts) <> p.start_ts OR coalesce(i.id, d.id) IS NULL""",
    )
    assert wrong == [(0,)]


def test_edges_go_forward(device):
    wrong = sql(
        device,
        """SELECT count(*) FROM {Flow} f JOIN {Instruction} a ON f.in_table = 'Instruction' AND f.in_id = a.id
        JOIN {Instruction} b ON f.out_table = 'Instruction' AND f.out_id = b.id WHERE b.start_ts < a.start_ts""",
    )
    assert wrong == [(0,)]
    assert sql(device, "SELECT count(*) > 0 FROM {Flow} WHERE dependency_type = 'semaphore'") == [(True,)]


def test_what_if_never_gets_slower_and_dma_helps(device):
    scenarios = dict(sql(device, "SELECT scenario, speedup FROM {WhatIf}"))
    assert scenarios["engines and DMA twice as fast"] > 1.05
    assert all(speedup > 0.95 for speedup in scenarios.values()), scenarios


def test_semaphores_add_up(device):
    ((rows, negative, known),) = sql(
        device, "SELECT count(*), count(*) FILTER (value < 0), count(row_id) FROM {SemaphoreUpdate}"
    )
    assert rows > 50 and negative == 0 and known == rows
    # An update is never seen before what makes it has started.
    early = sql(
        device,
        """SELECT count(*) FROM {SemaphoreUpdate} u JOIN {Instruction} i ON u.row_id = i.id
        WHERE u.update_source <> 'AXI' AND u.timestamp < i.start_ts""",
    )
    assert early == [(0,)]


def test_on_chip_memory_is_used_and_fits(device):
    ((used, most),) = sql(device, "SELECT max(avg_util_percent), max(partition_0_util_percent) FROM {SbufUsage}")
    assert 0 < used <= 1 and most <= 1
    ((psum,),) = sql(device, "SELECT max(avg_util_percent) FROM {PsumUsage}")
    assert 0 < psum <= 1
    assert sql(
        device, "SELECT count(*) FROM {SbufAllocation} WHERE end_ts < start_ts OR end_address <= start_address"
    ) == [(0,)]


def test_phases_are_linked_to_nodes(device):
    phases = [row[0] for row in sql(device, 'SELECT phase FROM {IrPhase} ORDER BY "order"')]
    assert phases[0].startswith("import") and any("schedule" in phase for phase in phases), phases
    assert sql(device, "SELECT count(*) FROM {IrLocation} WHERE node_id NOT IN (SELECT id FROM {FrameworkNode})") == [
        (0,)
    ]
    # The layer's function is in the text once: instructions of every run find their operation in it.
    texts = dict(sql(device, "SELECT phase, text FROM {IrPhase}"))
    operations = {"import": "neuron.contract", "schedule": "nisa.matmul"}
    for layer in (f"{block}.{name}" for block in range(4) for name in ("up", "down")):
        rows = sql(
            device,
            f"""SELECT DISTINCT l.phase, l.line FROM {{IrLocation}} l JOIN {{Instruction}} i
            ON i.raw_framework_id = l.node_id WHERE i.opcode = 'MATMUL' AND i.layer = '{layer}'""",
        )
        for phase, operation in operations.items():
            lines = texts[phase].splitlines()
            assert any(operation in lines[line - 1] for where, line in rows if where == phase), (layer, phase)


def test_the_last_phase_is_what_was_emitted(device):
    """Every instruction that ran stands in the line of the disassembly that its engine and position say."""
    phase, text = sql(device, 'SELECT phase, text FROM {IrPhase} ORDER BY "order" DESC LIMIT 1')[0]
    assert phase == "emit"
    lines = text.splitlines()
    places = {
        (engine, pc): line
        for engine, pc, line in sql(device, "SELECT engine, pc, line FROM {IrLocation} WHERE phase = 'emit'")
    }
    ran = sql(device, "SELECT DISTINCT engine, pc, opcode, operands, raw_framework_id FROM {Instruction}")
    assert len(ran) > 100
    for engine, pc, opcode, operands, _ in ran:
        line = lines[places[engine, pc] - 1]
        if opcode != "ACT_TABLE_LOAD":
            # Waits and what follows have columns of their own; the first operand is in the text as it is.
            assert operands.split(" ")[0] in line, (engine, pc, opcode, operands, line)
        headers = [text for text in lines[: places[engine, pc]] if text.startswith("stream ")]
        assert headers[-1] == f"stream {engine.lower()} {{"
    nodes = set(sql(device, "SELECT engine, pc, node_id FROM {IrLocation} WHERE phase = 'emit'"))
    assert nodes >= {(engine, pc, node) for engine, pc, _, _, node in ran}


def test_insights_repeat_the_summary(device):
    """What a rule says of a metric is the summary's value of it."""
    (columns,) = sql(device, "SELECT * FROM {Summary}")
    names = [name for name, *_ in sql(device, "DESCRIBE SELECT * FROM {Summary}")]
    summary = dict(zip(names, columns, strict=True))
    found = sql(device, "SELECT metric, value FROM {Insight}")
    assert found
    for metric, value in found:
        assert value == pytest.approx(float(summary[metric])), metric


@pytest.mark.parametrize(
    "changes",
    [
        {"hardware_flops": 1000, "transpose_flops": 400, "tensor_engine_active_time_percent": 0.9},
        {"mfu_inst_estimated_percent": 0.2, "tensor_engine_active_time_percent": 0.6, "hardware_flops": 1000},
        {"hbm_read_bytes": 1000, "spill_reload_bytes": 700},
        {"dma_active_time_percent": 0.3, "total_active_time_percent": 0.9},
    ],
)
def test_insights_of_any_profile_repeat_the_summary(changes):
    values = {"total_active_time_percent": 0.7, "dma_transfer_count": 3, "dma_transfer_average_bytes": 100.0, **changes}
    found = list(insights.find(values))
    assert len(found) >= 2
    for insight in found:
        assert insight.value == pytest.approx(float(values.get(insight.metric) or 0)), insight


def test_locations_are_the_users_own_lines(device):
    """torch.nn.functional.silu and Linear are called from step.py; their own lines are in the stack only."""
    rows = sql(device, "SELECT DISTINCT nki_source_location FROM {Instruction} WHERE nki_source_location IS NOT NULL")
    assert rows and all(location.rsplit("/", 1)[-1].startswith("step.py:") for (location,) in rows), rows


def test_chain_from_operator_to_device(profile):
    """Framework dispatch -> framework stream -> runtime -> hardware: three edges."""
    rows = sql(
        profile,
        """SELECT a.name, b.framework_stream_id, c.name, d.name, d.extra_attributes_json
        FROM {SystemProfileEvents} a JOIN {Flow} x ON x.in_id = a.id JOIN {SystemProfileEvents} b ON x.out_id = b.id
        JOIN {Flow} y ON y.in_id = b.id JOIN {SystemProfileEvents} c ON y.out_id = c.id
        JOIN {Flow} z ON z.in_id = c.id JOIN {SystemProfileEvents} d ON z.out_id = d.id
        WHERE a.name LIKE 'aten::%' AND d.name = 'nc_exec_running'""",
    )
    assert {"aten::mul", "aten::add"} <= {row[0] for row in rows}
    for operator, stream, call, _, extra in rows:
        assert stream is not None and call == "nrta_execute_schedule"
        attributes = json.loads(extra)
        name = attributes["device_profile_name"]
        assert (profile / "device" / name / "Instruction.parquet").exists()
        # The program of that operator, not another one.
        assert re.match(rf"{operator.replace('::', '_')}[._]", name)
        assert name.endswith(f"_model_{attributes['model_id']}")


def test_samples_and_device_memory(profile):
    assert sql(profile, "SELECT min(util_percent) >= 0 FROM {CpuUsage}") == [(True,)]
    assert sql(profile, "SELECT min(used_bytes) > 0, max(used_percent) < 1.0 FROM {HostMemUsage}") == [(True, True)]
    assert sql(profile, "SELECT max(total_bytes) > 0 FROM {SystemProfileHbmUsage}") == [(True,)]


def test_filters(capture, tmp_path):
    filters = ingest.Filters(event_types=["hardware", "^nc_exec_running"], device=False)
    folder = ingest.ingest_session(capture, tmp_path / "filtered", filters=filters)
    names = dict(
        sql(
            folder, "SELECT name, count(*) FROM {SystemProfileEvents} WHERE trace_event_source = 'neuron_hw' GROUP BY 1"
        )
    )
    assert "nc_exec_running" not in names
    assert sql(folder, "SELECT count(*) FROM {SystemProfileEvents} WHERE trace_event_source = 'neuron_rt'") == [(0,)]
    assert not (folder / "device").exists()


def test_pair(pair, tmp_path):
    folder = ingest.ingest_pair(*pair, tmp_path / "pair")
    assert json.loads((folder / "profile.json").read_text())["kind"] == "device"
    (device,) = (folder / "device").iterdir()
    assert schema.rows_of(device, "Instruction") > 100


def test_mismatched_pair_is_refused(capture, pair, tmp_path):
    trace = tmp_path / "other.ntff"
    another = next(path for path in capture.glob("*.neff") if path != pair[0])
    _, other = _decoder.execute(another.read_bytes(), {})
    trace.write_bytes(other)
    with pytest.raises(IngestError, match="do not belong together.*use the pair with the same number"):
        ingest.ingest_pair(pair[0], trace, tmp_path / "out")
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (lambda content: b"", "empty file"),
        (lambda content: content[: len(content) // 2], "truncated or damaged"),
        (lambda content: b"\x7fELF" + content, "another format"),
        (lambda content: content[:7] + b"\x09" + content[8:], "expected a device trace of version 2 but got 9"),
    ],
)
def test_damaged_traces_are_explained(pair, tmp_path, damage, message):
    trace = tmp_path / "damaged.ntff"
    trace.write_bytes(damage(pair[1].read_bytes()))
    with pytest.raises(IngestError, match=message):
        ingest.ingest_pair(pair[0], trace, tmp_path / "out")


def test_damaged_neff_is_explained(pair, tmp_path):
    neff = tmp_path / "damaged.neff"
    neff.write_bytes(pair[0].read_bytes()[:2000])
    with pytest.raises(IngestError, match="NEFF"):
        ingest.ingest_pair(neff, pair[1], tmp_path / "out")


def test_folders_that_are_no_captures(tmp_path):
    with pytest.raises(IngestError, match="does not exist"):
        ingest.ingest_session(tmp_path / "nowhere", tmp_path / "out")
    (tmp_path / "empty").mkdir()
    with pytest.raises(IngestError, match="an empty folder"):
        ingest.ingest_session(tmp_path / "empty", tmp_path / "out")
    (tmp_path / "foreign").mkdir()
    (tmp_path / "foreign" / "ntrace.pb").write_bytes(b"\xff" * 100)
    with pytest.raises(IngestError, match="ntrace.pb is not a file of this project"):
        ingest.ingest_session(tmp_path / "foreign", tmp_path / "out")


def test_missing_neff_is_a_warning(capture, tmp_path):
    copy = tmp_path / "copy"
    copy.mkdir()
    for file in capture.iterdir():
        if file.suffix != ".neff":
            (copy / file.name).write_bytes(file.read_bytes())
    folder = ingest.ingest_session(copy, tmp_path / "out")
    warnings = json.loads((folder / "profile.json").read_text())["warnings"]
    assert any("is missing: its device profile is left out" in text for text in warnings)


def test_random_damage_is_an_error_and_never_a_crash(pair, tmp_path):
    """Flipped bytes and cut ends of both files: either the tables are written or the error is one of ours."""
    neff, trace = (path.read_bytes() for path in pair)
    generator = random.Random(7)
    outcomes = {"read": 0, "refused": 0}
    for round_number in range(60 * LONGER):
        data = bytearray(trace if round_number % 3 else neff)
        for _ in range(generator.randint(1, 4)):
            data[generator.randrange(len(data))] = generator.randrange(256)
        if round_number % 5 == 0:
            del data[generator.randrange(len(data)) :]
        damaged = (neff, bytes(data)) if round_number % 3 else (bytes(data), trace)
        try:
            decoded = _decoder.DeviceProfile(*damaged)
            decoded.instructions(), decoded.updates(), decoded.critical_path(), decoded.allocations("sbuf")
            outcomes["read"] += 1
        except _decoder.ProfileError:
            outcomes["refused"] += 1
    assert outcomes["refused"] > 10, outcomes


def test_random_damage_of_a_session_is_explained(capture, tmp_path):
    """The same for the files beside the trace: whatever is in them, tables or an error that names a file."""
    generator = random.Random(11)
    names = ("ntrace.pb", "trace_info.pb", "cpu_util.pb", "host_mem.pb", "trace.json")
    whole = {name: (capture / name).read_bytes() for name in names}
    outcomes = {"read": 0, "refused": 0}
    for round_number in range(40 * LONGER):
        folder = tmp_path / f"damaged{round_number}"
        folder.mkdir()
        for name in names:
            (folder / name).write_bytes(whole[name])
        name = names[round_number % len(names)]
        data = bytearray(whole[name])
        for _ in range(generator.randint(1, 6)):
            data[generator.randrange(len(data))] = generator.randrange(256)
        if round_number % 4 == 0:
            del data[generator.randrange(len(data)) :]
        (folder / name).write_bytes(data)
        try:
            ingest.ingest_session(folder, tmp_path / "profile", filters=ingest.Filters(device=False))
            outcomes["read"] += 1
        except IngestError as error:
            assert name in str(error)
            outcomes["refused"] += 1
    assert min(outcomes.values()) > 0, outcomes


def test_lost_events_are_counted(tmp_path):
    """A ring that is too small for a capture: the newest stay, the loss is said at once and in the profile."""
    script = """
import sys, warnings, torch
from torch.profiler import ProfilerActivity, profile
from torch_neuronx.profiling import NeuronConfig, NeuronProfiler, ProfileMode
config = NeuronConfig(modes=[ProfileMode.RUNTIME], max_events_per_nc=8, profile_output_dir=sys.argv[1])
x = torch.ones(16, device="neuron")
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    with profile(activities=[ProfilerActivity.CPU, ProfilerActivity.PrivateUse1], experimental_config=config,
                 on_trace_ready=NeuronProfiler(config).export_trace):
        for _ in range(20):
            x = x + x
        torch.neuron.synchronize()
print([str(item.message) for item in caught if "lost" in str(item.message)])
"""
    output = subprocess.check_output([sys.executable, "-c", script, str(tmp_path / "output")], text=True, timeout=120)
    assert "the capture lost its 12 oldest events: max_events_per_nc is 8" in output
    folder = ingest.ingest_session(tmp_path / "output", tmp_path / "profile")
    warnings = json.loads((folder / "profile.json").read_text())["warnings"]
    assert any("12 events were dropped" in text for text in warnings)
