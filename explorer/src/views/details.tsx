// Part of open-torch-neuronx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

import { useState } from "react";
import type { Frame, Row } from "../data/source";
import { cell, duration, heading } from "../format";
import { Await, Empty, Tabs, useLoaded, useSession } from "../parts/common";
import { download } from "../parts/csv";
import { useStore } from "../store";
import { deviceProfileOf } from "./devices";

/** The fields that say most, first; the others follow in the order of the table. */
const FIRST = [
  "name",
  "opcode",
  "operands",
  "variable",
  "op",
  "engine",
  "queue_name",
  "start_ts",
  "end_ts",
  "duration_ns",
  "trace_event_source",
];

export function DetailsPanel() {
  const session = useSession();
  const selection = useStore(session.selection);
  const loaded = useLoaded<Row | null>(
    () =>
      selection
        ? session.source.row(session.profile.name, session.device, selection.table, selection.row)
        : Promise.resolve(null),
    [session, selection?.table, selection?.row],
  );
  if (!selection) {
    return (
      <Empty title="Nothing is selected">Click an event of the timeline, or move to one with the arrow keys.</Empty>
    );
  }
  return (
    <Await loaded={loaded}>
      {(row) =>
        row && (
          <Tabs
            label="Event details"
            items={[
              { id: "event", title: "Event", content: <Fields row={row} table={selection.table} /> },
              {
                id: "dependencies",
                title: "Dependencies",
                content: <Dependencies row={row} table={selection.table} />,
              },
              { id: "stack", title: "Python stack", content: <Stack row={row} /> },
            ]}
          />
        )
      }
    </Await>
  );
}

export function title(row: Row): string {
  for (const name of ["name", "opcode", "variable", "op", "description", "operation"]) {
    const value = row[name];
    if (typeof value === "string" && value) return value;
  }
  return `row ${row.row}`;
}

function Fields({ row, table }: { row: Row; table: string }) {
  const session = useSession();
  const [all, setAll] = useState(false);
  const names = Object.keys(row).filter((name) => name !== "row");
  names.sort((a, b) => {
    const x = FIRST.indexOf(a);
    const y = FIRST.indexOf(b);
    return (x < 0 ? FIRST.length : x) - (y < 0 ? FIRST.length : y);
  });
  const shown = names.filter((name) => all || (row[name] !== null && row[name] !== "" && row[name] !== undefined));
  const deviceProfile =
    session.isSystem && row.name === "nc_exec_running" ? deviceProfileOf(row, session.profile.devices) : [];
  return (
    <div className="details">
      <div className="details-head">
        <h2>{title(row)}</h2>
        <span className="muted">{table}</span>
        <span className="spacer" />
        <button
          type="button"
          className="quiet"
          onClick={() => download(`${table}-${row.row}.json`, JSON.stringify(row, null, 1), "application/json")}
        >
          JSON
        </button>
        <button type="button" className="quiet" onClick={() => setAll(!all)} aria-pressed={all}>
          Empty fields
        </button>
      </div>
      {session.isSystem && (
        <p className="links">
          <button type="button" onClick={() => session.open("chain")}>
            Dependency chain
          </button>
          {deviceProfile.map((device) => (
            <a key={device} href={`#/p/${encodeURIComponent(session.profile.name)}/${encodeURIComponent(device)}`}>
              Open the device profile
            </a>
          ))}
        </p>
      )}
      <dl className="fields">
        {shown.map((name) => (
          <div key={name}>
            <dt title={name}>{heading(name)}</dt>
            <dd>
              <Value name={name} value={row[name]} />
            </dd>
          </div>
        ))}
      </dl>
    </div>
  );
}

function Value({ name, value }: { name: string; value: unknown }) {
  const session = useSession();
  if (session.isSystem && /_ts$|^timestamp$/.test(name) && value !== null) {
    return (
      <>
        {duration(session.fromTable(value as string))} <span className="muted">{String(value)}</span>
      </>
    );
  }
  if (name === "extra_attributes_json" && typeof value === "string") {
    try {
      return <pre>{JSON.stringify(JSON.parse(value), null, 1)}</pre>;
    } catch {
      return <>{value}</>;
    }
  }
  const text = cell(name, value);
  const exact = typeof value === "number" && text !== String(value) && !text.includes(value.toLocaleString("en-US"));
  return (
    <>
      {text} {exact && <span className="muted">{value}</span>}
    </>
  );
}

function Dependencies({ row, table }: { row: Row; table: string }) {
  const session = useSession();
  const loaded = useLoaded(async () => {
    if (session.isSystem) {
      const chain = await session.source.chain(session.profile.name, session.device, row.row);
      return { predecessors: chain.upstream, successors: chain.downstream };
    }
    if (!("id" in row) || table === "SemaphoreUpdate") return { predecessors: [], successors: [] };
    return session.source.links(session.profile.name, session.device, table, String(row.id));
  }, [session, row, table]);
  return (
    <Await loaded={loaded}>
      {(links) => (
        <>
          <Linked heading="Predecessors: what this waits for" rows={links.predecessors} table={table} />
          <Linked heading="Successors: what waits for this" rows={links.successors} table={table} />
        </>
      )}
    </Await>
  );
}

export function Linked({ heading: text, rows, table }: { heading: string; rows: Row[]; table: string }) {
  const session = useSession();
  return (
    <section className="linked">
      <h3>{text}</h3>
      {rows.length === 0 && <p className="muted">There are none.</p>}
      {rows.map((other) => (
        <button
          key={`${other.table_name}:${other.row}`}
          type="button"
          className="card-button"
          onClick={() => session.select(other, String(other.table_name ?? table))}
        >
          <strong>{title(other)}</strong>
          <span className="muted">
            {[
              other.engine ?? other.queue_name ?? other.trace_event_source,
              other.compiler_pc !== undefined && other.compiler_pc !== null ? `PC ${other.compiler_pc}` : "",
              duration(Number(other.duration_ns)),
            ]
              .filter(Boolean)
              .join(" · ")}
          </span>
          {typeof other.dependency_type === "string" && (
            <span className="badge">{other.dependency_type.toLowerCase().replace("_dependence", "")}</span>
          )}
        </button>
      ))}
    </section>
  );
}

function Stack({ row }: { row: Row }) {
  const session = useSession();
  const frames = typeof row.stack_frame_ids === "string" ? row.stack_frame_ids : "";
  const loaded = useLoaded<Frame[]>(
    () => (frames ? session.source.stack(session.profile.name, session.device, frames) : Promise.resolve([])),
    [session, frames],
  );
  return (
    <Await loaded={loaded}>
      {(list) =>
        list.length === 0 ? (
          <Empty title="No Python stack">The NEFF holds no source line for this event.</Empty>
        ) : (
          <ol className="stack">
            {list.map((frame, index) => (
              <li key={index}>
                <button
                  type="button"
                  className="link"
                  onClick={() => session.open("source", `${frame.file}:${frame.line}`)}
                >
                  {frame.file.split("/").slice(-2).join("/")}:{frame.line}
                </button>{" "}
                <span className="muted">{frame.function}</span>
              </li>
            ))}
          </ol>
        )
      }
    </Await>
  );
}
