# Part of open-torch-neuronx, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

"""The server: what it answers, whom it refuses, and that a profile's numbers arrive as they are in the tables."""

from __future__ import annotations

import contextlib
import http.client
import io
import itertools
import json
import threading
import time

import duckdb
import numpy
import pyarrow
import pyarrow.ipc
import pytest
from neuron_explorer import drawing
from neuron_explorer.profiles import ProfileError, ProfileStore
from neuron_explorer.server.app import create_app
from neuron_explorer.server.query import QueryError, Tables

TOKEN = "token-of-this-test"


class Server:
    def __init__(self, app):
        import uvicorn

        self.server = uvicorn.Server(uvicorn.Config(app, port=0, log_level="error"))
        self.thread = threading.Thread(target=self.server.run, daemon=True)
        self.thread.start()
        deadline = time.monotonic() + 30
        while not self.server.started:
            assert time.monotonic() < deadline and self.thread.is_alive(), "the server did not start"
            time.sleep(0.02)
        self.port = self.server.servers[0].sockets[0].getsockname()[1]

    def ask(self, method, path, body=None, headers=None):
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        with contextlib.closing(connection):
            connection.request(method, path, body, headers or {})
            response = connection.getresponse()
            return response.status, dict(response.getheaders()), response.read()

    def get(self, path):
        status, _, body = self.ask("GET", path)
        assert status == 200, body
        return json.loads(body)

    def close(self):
        self.server.should_exit = True
        self.thread.join(10)


@pytest.fixture(scope="module")
def server(data_folder):
    running = Server(create_app(data_folder, TOKEN))
    yield running
    running.close()


@pytest.fixture
def writable(tmp_path):
    running = Server(create_app(tmp_path, TOKEN, max_upload_bytes=1000))
    yield running, tmp_path
    running.close()


def read_stream(body):
    table = pyarrow.ipc.open_stream(io.BytesIO(body)).read_all()
    return table, json.loads(table.schema.metadata[b"explorer"])


def lane_of_slices(described):
    """Lane of each slice of a device profile, from how many rows each lane has and where each row begins."""
    lane_of_row = numpy.repeat(numpy.arange(len(described["rows"])), described["rows"])
    return numpy.repeat(lane_of_row, numpy.diff(described["offsets"]))


def test_lists_profiles_and_tables(server):
    listed = {entry["name"]: entry for entry in server.get("/api/profiles")["profiles"]}
    assert listed["device"]["kind"] == "device" and not listed["device"]["has_system"]
    assert listed["system"]["has_system"] and listed["system"]["devices"]
    described = server.get("/api/profiles/device")
    (device,) = described["devices"]
    assert described["device_tables"][device]["Instruction"] > 0


def test_every_event_is_drawn_with_its_exact_times(server, data_folder):
    device = server.get("/api/profiles/device")["devices"][0]
    _, _, body = server.ask("GET", f"/api/profiles/device/{device}/drawn/slices")
    table, described = read_stream(body)
    folder = data_folder / "profiles" / "device" / "device" / device
    for name in ("Instruction", "DmaPacketAggregated"):
        lanes = [i for i, lane in enumerate(described["lanes"]) if lane["table"] == name]
        chosen = numpy.isin(lane_of_slices(described), lanes)
        rows = table["row"].to_numpy()[chosen]
        expected = duckdb.sql(
            f"SELECT start_ts, end_ts - start_ts AS dur FROM read_parquet('{folder / name}.parquet')"
        ).fetchnumpy()
        # Transfers stand in the lane of their queue and in that of their engine.
        assert sorted(set(rows.tolist())) == list(range(len(expected["dur"])))
        numpy.testing.assert_array_equal(table["ts"].to_numpy()[chosen], expected["start_ts"][rows])
        numpy.testing.assert_array_equal(table["dur"].to_numpy()[chosen], expected["dur"][rows])
    ts, dur = table["ts"].to_numpy().astype(int), table["dur"].to_numpy().astype(int)
    assert described["offsets"][-1] == table.num_rows
    for low, high in itertools.pairwise(described["offsets"]):
        assert (ts[low + 1 : high] >= (ts + dur)[low : max(low, high - 1)]).all()
    assert len(table.to_batches()) == 1


def test_an_overview_is_of_device_profiles_only(server):
    device = server.get("/api/profiles/device")["devices"][0]
    status, _, body = server.ask("GET", f"/api/profiles/device/{device}/drawn/overview")
    _, described = read_stream(body)
    slices, _ = read_stream(server.ask("GET", f"/api/profiles/device/{device}/drawn/slices")[2])
    assert status == 200 and described["lanes"] and slices.num_rows
    status, _, body = server.ask("GET", "/api/profiles/system/system/drawn/overview")
    assert status == 400 and "of a device profile" in body.decode()


def test_system_times_count_from_the_first_event(server, data_folder):
    _, _, body = server.ask("GET", "/api/profiles/system/system/drawn/slices")
    table, described = read_stream(body)
    path = data_folder / "profiles" / "system" / "SystemProfileEvents.parquet"
    first, count = duckdb.sql(f"SELECT min(start_ts), count(*) FROM read_parquet('{path}')").fetchall()[0]
    assert int(described["base"]) == first and table.num_rows == count and table["ts"].to_numpy().min() == 0


def test_colours_follow_the_order_of_the_slices(server, data_folder):
    device = server.get("/api/profiles/device")["devices"][0]
    slices, described = read_stream(server.ask("GET", f"/api/profiles/device/{device}/drawn/slices")[2])
    colors, names = read_stream(server.ask("GET", f"/api/profiles/device/{device}/drawn/colors?by=kernel")[2])
    assert colors.num_rows == slices.num_rows
    folder = data_folder / "profiles" / "device" / "device" / device
    kernels = duckdb.sql(
        f"SELECT kernel_instruction_name FROM read_parquet('{folder / 'Instruction'}.parquet')"
    ).fetchnumpy()["kernel_instruction_name"]
    lanes = [i for i, lane in enumerate(described["lanes"]) if lane["table"] == "Instruction"]
    chosen = numpy.flatnonzero(numpy.isin(lane_of_slices(described), lanes))[::97]
    for index in chosen.tolist():
        row = slices["row"][index].as_py()
        assert names["colors"][colors["color"][index].as_py()] == (kernels[row] or "(none)")


def test_counters_keep_extremes_when_thinned():
    ts = numpy.arange(1_000_000)
    value = numpy.zeros(1_000_000)
    value[[3, 777_777]] = [-5, 9]
    moments, values = drawing.thinned(ts, value)
    assert len(moments) <= 2 * drawing.MAX_SAMPLES and values.max() == 9 and values.min() == -5
    assert (numpy.diff(moments) > 0).all()


def test_search_by_text_and_number(server, data_folder):
    device = server.get("/api/profiles/device")["devices"][0]
    path = data_folder / "profiles" / "device" / "device" / device / "Instruction.parquet"
    base = f"/api/profiles/device/{device}/search/Instruction"
    for query, condition in (
        ("field=opcode&text=matm", "opcode ILIKE '%matm%'"),
        ("field=opcode&text=MATMUL&exact=1", "opcode = 'MATMUL'"),
        ("field=duration_ns&text=%3E300", "duration_ns > 300"),
        ("field=duration_ns&text=100..200", "duration_ns BETWEEN 100 AND 200"),
    ):
        (count,) = duckdb.sql(f"SELECT count(*) FROM read_parquet('{path}') WHERE {condition}").fetchall()[0]
        assert server.get(f"{base}?{query}&limit=5")["count"] == count
    status, _, body = server.ask("GET", f"{base}?field=opcode%22%20OR%201=1&text=x")
    assert status == 400 and b"has no column" in body
    status, _, body = server.ask("GET", f"{base}?field=duration_ns&text=soon")
    assert status == 400 and b"expected a number, a range" in body


def test_links_name_both_ends(server, data_folder):
    device = server.get("/api/profiles/device")["devices"][0]
    folder = data_folder / "profiles" / "device" / "device" / device
    first, then = duckdb.sql(
        f"SELECT in_id, out_id FROM read_parquet('{folder}/Flow.parquet') "
        "WHERE in_table = 'Instruction' AND out_table = 'Instruction' LIMIT 1"
    ).fetchall()[0]
    links = server.get(f"/api/profiles/device/{device}/links/Instruction?id={then}")
    assert str(first) in [row["id"] for row in links["predecessors"]]
    links = server.get(f"/api/profiles/device/{device}/links/Instruction?id={first}")
    assert str(then) in [row["id"] for row in links["successors"]]


def test_statistics_of_a_window(server, data_folder):
    device = server.get("/api/profiles/device")["devices"][0]
    path = data_folder / "profiles" / "device" / "device" / device / "Instruction.parquet"
    (end,) = duckdb.sql(f"SELECT max(end_ts) FROM read_parquet('{path}')").fetchall()[0]
    low, high = end // 3, end // 2
    found = server.get(f"/api/profiles/device/{device}/view/statistics?start={low}&end={high}")
    expected = dict(
        duckdb.sql(
            f"SELECT engine, sum(least(end_ts, {high}) - greatest(start_ts, {low})) FROM read_parquet('{path}') "
            f"WHERE start_ts < {high} AND end_ts > {low} GROUP BY engine"
        ).fetchall()
    )
    assert {row["track"]: row["time_ns"] for row in found["engines"]} == expected


def test_dependency_chain_leads_from_framework_to_hardware(server, data_folder):
    path = data_folder / "profiles" / "system" / "SystemProfileEvents.parquet"
    rows = duckdb.sql(
        f"SELECT file_row_number FROM read_parquet('{path}', file_row_number=true) "
        "WHERE trace_event_source = 'framework' AND name LIKE 'aten::%' LIMIT 1"
    ).fetchall()[0]
    seen, open_rows = set(), [rows[0]]
    for _ in range(3):
        following = []
        for row in open_rows:
            chain = server.get(f"/api/profiles/system/system/chain?row={row}")
            for event in chain["downstream"]:
                seen.add(event["name"])
                following.append(event["row"])
        open_rows = following[:8]
    assert "nc_exec_running" in seen


@pytest.mark.parametrize(
    "path",
    [
        "/../pyproject.toml",
        "/%2e%2e/pyproject.toml",
        "/..%2f..%2fetc%2fpasswd",
        "/api/profiles/..%2f..",
        "/api/profiles/device/..%2f..",
        "/api/profiles/device/%2e%2e/rows/Instruction",
        "/api/profiles/device/x/rows/..%2fSummary",
    ],
)
def test_paths_outside_are_not_served(server, path):
    status, _, body = server.ask("GET", path)
    assert status in (400, 404), body


def test_foreign_host_and_other_sites_are_refused(server):
    assert server.ask("GET", "/api/profiles", headers={"Host": "evil.example"})[0] == 400
    assert server.ask("GET", "/api/profiles", headers={"Sec-Fetch-Site": "cross-site"})[0] == 403
    for headers in (
        {},
        {"Cookie": "neuron_explorer_token=wrong"},
        {"Sec-Fetch-Site": "cross-site", "Cookie": f"neuron_explorer_token={TOKEN}"},
    ):
        assert server.ask("DELETE", "/api/profiles/device", headers=headers)[0] == 403
    assert server.get("/api/profiles/device")["name"] == "device"


def test_headers_of_every_answer(server):
    for path in ("/", "/api/profiles", "/nothing"):
        _, headers, _ = server.ask("GET", path)
        headers = {name.lower(): value for name, value in headers.items()}
        assert "default-src 'none'" in headers["content-security-policy"]
        assert headers["x-content-type-options"] == "nosniff"
        assert "access-control-allow-origin" not in headers


def test_token_becomes_a_strict_cookie(server):
    status, headers, _ = server.ask("GET", f"/?token={TOKEN}")
    headers = {name.lower(): value for name, value in headers.items()}
    assert (
        status == 303
        and "samesite=strict" in headers["set-cookie"].lower()
        and "httponly" in headers["set-cookie"].lower()
    )
    assert "set-cookie" not in {name.lower() for name in server.ask("GET", "/?token=other")[1]}


def test_uploads_are_limited_and_checked(writable):
    running, folder = writable
    headers = {"X-Neuron-Explorer-Token": TOKEN}

    def put(name, body):
        status, _, answer = running.ask("PUT", f"/api/profiles/{name}", body, headers)
        return status, answer.decode()

    assert put("mine/files/trace.json", b"{}")[0] == 201
    status, text = put("mine/files/big.ntff", b"x" * 2000)
    assert status == 400 and "at most 1000 are taken" in text
    status, text = put("mine/files/empty.ntff", b"")
    assert status == 400 and "empty.ntff is empty" in text
    status, text = put("mine/files/short.neff", b"NEFF")
    assert status == 400 and "short.neff is shorter than a NEFF's header" in text
    for bad in (
        "mine/files/..%2f..%2fx.json",
        "mine/files/run.sh",
        "..%2fmine/files/a.json",
        "mine/files/.hidden.json",
    ):
        assert put(bad, b"{}")[0] in (400, 404, 405), bad
    assert sorted(path.name for path in folder.rglob("*") if path.is_file()) == ["trace.json"]
    # Chunks without an announced length are counted while they arrive.
    status, _, answer = running.ask("PUT", "/api/profiles/mine/files/big.pb", iter([b"y" * 600, b"y" * 600]), headers)
    assert status == 400 and b"larger than the 1000 bytes" in answer
    status, _, answer = running.ask("POST", "/api/profiles/mine/process", b"{}", headers)
    assert status == 400 and b"expected a NEFF and an NTFF" in answer


def test_links_out_of_the_data_folder_are_refused(tmp_path, data_folder):
    store = ProfileStore(tmp_path / "data")
    (store.profiles / "linked").symlink_to(data_folder / "profiles" / "device")
    with pytest.raises(ProfileError, match="is a link or lies outside"):
        store.folder("linked")
    assert store.list() == []


def test_profile_manager_changes(tmp_path):
    store = ProfileStore(tmp_path)
    folder = store.profiles / "one"
    folder.mkdir()
    (folder / "profile.json").write_text('{"name": "one", "kind": "device", "status": "PROCESSED"}')
    changed = store.update("one", {"tags": ["b", "a", "a"], "favourite": True, "folder": "team"})
    assert changed["tags"] == ["a", "b"] and changed["favourite"] and changed["folder"] == "team"
    with pytest.raises(ProfileError, match="without spaces or slashes"):
        store.update("one", {"folder": "a b"})
    with pytest.raises(ProfileError, match="expected tags, favourite or folder but got name"):
        store.update("one", {"name": "two"})
    (folder / "profile.json").write_text("{")
    assert store.describe("one")["status"] == "ERROR_PROCESS_INCOMPLETE"
    store.delete("one")
    assert store.list() == []
    with pytest.raises(ProfileError, match="no profile is called"):
        store.delete("one")


def test_queries_cannot_leave_the_data_folder(tmp_path, data_folder):
    tables = Tables(data_folder)
    secret = tmp_path / "secret.csv"
    secret.write_text("a\n1\n")
    for statement in (
        f"SELECT * FROM '{secret}'",
        f"COPY (SELECT 1) TO '{tmp_path / 'out.csv'}'",
        "SET enable_external_access=true",
    ):
        with pytest.raises(QueryError):
            tables.execute(statement)
    assert not (tmp_path / "out.csv").exists()


def test_serve_refuses_other_addresses(tmp_path):
    from neuron_explorer.server import serve

    with pytest.raises(ValueError, match="expected a loopback address but got 0.0.0.0"):
        serve(tmp_path, 0, host="0.0.0.0")
