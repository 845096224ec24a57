// Part of open-torch-neuronx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

import { useEffect, useRef, useState } from "react";
import type { Row, SearchResult } from "../data/source";
import { Empty, useSession } from "../parts/common";
import { type Column, DataTable } from "../parts/table";
import { useStore } from "../store";
import { title } from "./details";

const SEARCHABLE: Record<string, { label: string; field: string }> = {
  Instruction: { label: "Instructions", field: "opcode" },
  DmaPacketAggregated: { label: "DMA transfers", field: "variable" },
  DmaPacket: { label: "DMA packets", field: "variable" },
  SemaphoreUpdate: { label: "Semaphore updates", field: "id" },
  CcOp: { label: "Collective operations", field: "operation" },
  Error: { label: "Errors", field: "description" },
  TensorInfo: { label: "Tensors", field: "variable_name" },
  SystemProfileEvents: { label: "Events", field: "name" },
};
const PAGE = 500;

export function SearchPanel() {
  const session = useSession();
  const categories = Object.keys(SEARCHABLE).filter((table) => session.has(table));
  const [table, setTable] = useState(categories[0] ?? "");
  const [fields, setFields] = useState<string[]>([]);
  const [field, setField] = useState(SEARCHABLE[categories[0]]?.field ?? "");
  const [text, setText] = useState("");
  const [exact, setExact] = useState(false);
  const [result, setResult] = useState<SearchResult | null>(null);
  const [error, setError] = useState("");
  const [current, setCurrent] = useState(0);
  const input = useRef<HTMLInputElement>(null);
  const request = useStore(session.request);

  useEffect(() => {
    if (request?.panel !== "search") return;
    const asked = /^([A-Za-z]+):([a-z_0-9]+)=(.*)$/.exec(request.argument ?? "");
    if (asked) {
      setTable(asked[1]);
      setField(asked[2]);
      setText(asked[3]);
    }
    setTimeout(() => input.current?.select(), 50);
  }, [request]);

  useEffect(() => {
    if (!table) return;
    let alive = true;
    session.source.fields(session.profile.name, session.device, table).then(
      (found) => {
        if (!alive) return;
        const names = Object.keys(found);
        setFields(names);
        setField((now) => (names.includes(now) ? now : (SEARCHABLE[table]?.field ?? names[0])));
      },
      (reason: Error) => alive && setError(reason.message),
    );
    return () => {
      alive = false;
    };
  }, [session, table]);

  const ask = async (offset = 0) => {
    setError("");
    if (!text.trim()) {
      setResult(null);
      session.hits.set([]);
      return;
    }
    try {
      const query = { field, text, exact, limit: PAGE, offset };
      const found = await session.source.search(session.profile.name, session.device, table, query);
      setResult(found);
      setCurrent(0);
      const slices = session.slices.get();
      const drawn = found.rows.map((row) => {
        const start = (row.start_ts ?? row.timestamp) as number | string | undefined;
        return slices && start !== undefined ? slices.find(table, row.row, session.fromTable(start)) : -1;
      });
      session.hits.set(drawn.filter((index) => index >= 0));
      if (found.rows.length && slices) session.select(found.rows[0], table);
    } catch (reason) {
      setResult(null);
      setError((reason as Error).message);
    }
  };

  const step = (by: number) => {
    if (!result?.rows.length) return;
    const next = (current + by + result.rows.length) % result.rows.length;
    setCurrent(next);
    session.select(result.rows[next], table);
  };

  const columns: Column<Row>[] = [
    { key: "title", title: "Name", render: title, value: title, width: 150 },
    { key: field, width: 130 },
    { key: "start_ts", title: "Start", numeric: true },
    { key: "duration_ns", title: "Duration", numeric: true },
  ].filter((column, index, list) => list.findIndex((entry) => entry.key === column.key) === index);

  return (
    <div className="search">
      <form
        className="search-form"
        onSubmit={(event) => {
          event.preventDefault();
          ask();
        }}
      >
        <select aria-label="Category" value={table} onChange={(event) => setTable(event.target.value)}>
          {categories.map((name) => (
            <option key={name} value={name}>
              {SEARCHABLE[name].label}
            </option>
          ))}
        </select>
        <select aria-label="Field" value={field} onChange={(event) => setField(event.target.value)}>
          {fields.map((name) => (
            <option key={name}>{name}</option>
          ))}
        </select>
        <input
          ref={input}
          type="search"
          aria-label="Value"
          placeholder="text, number, a..b, >a"
          value={text}
          onChange={(event) => setText(event.target.value)}
        />
        <label>
          <input type="checkbox" checked={exact} onChange={(event) => setExact(event.target.checked)} /> exact
        </label>
        <button type="submit" className="primary">
          Search
        </button>
      </form>
      {error && (
        <p className="error" role="alert">
          {error}
        </p>
      )}
      {result && (
        <div className="pages" role="status">
          <button type="button" onClick={() => step(-1)} aria-label="Previous hit">
            ‹
          </button>
          {result.rows.length ? current + 1 : 0} of {result.count.toLocaleString("en-US")}
          {result.count > result.rows.length ? ` (first ${result.rows.length} listed)` : ""}
          <button type="button" onClick={() => step(1)} aria-label="Next hit">
            ›
          </button>
        </div>
      )}
      {result ? (
        <DataTable
          label="Hits"
          rows={result.rows}
          columns={columns}
          rowKey={(row) => row.row}
          exportName={`${session.profile.name}-search`}
          selected={(row) => row === result.rows[current]}
          onSelect={(row) => {
            setCurrent(result.rows.indexOf(row));
            session.select(row, table);
          }}
          empty="Nothing matches."
        />
      ) : (
        <Empty title="Search by field">Hits are marked in the timeline. Press / to come here.</Empty>
      )}
    </div>
  );
}
