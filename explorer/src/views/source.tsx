// Part of open-torch-neuronx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

import { lazy, Suspense, useEffect, useMemo, useState } from "react";
import type { Frame, Line, Row } from "../data/source";
import { count, duration } from "../format";
import { Await, Empty, useLoaded, useSession } from "../parts/common";
import { DataTable } from "../parts/table";
import { notify } from "../session";
import { useStore } from "../store";

const Code = lazy(() => import("../parts/code"));
const NO_LINES: readonly number[] = [];

/** Source with the cost of each line; a line leads to its instructions and an instruction to its line. */
export function SourcePanel() {
  const session = useSession();
  const { source, profile, device } = session;
  const loaded = useLoaded(
    () => Promise.all([source.lines(profile.name, device), session.rows("SourceFile", { limit: 1000 })]),
    [session],
  );
  return (
    <Await loaded={loaded}>
      {([lines, files]) =>
        lines.length || files.length ? (
          <Sources lines={lines} files={files} />
        ) : (
          <Empty title="No source lines">
            The NEFF holds no Python lines, or its sources could not be read when the profile was made.
          </Empty>
        )
      }
    </Await>
  );
}

function Sources({ lines, files }: { lines: Line[]; files: Row[] }) {
  const session = useSession();
  const selection = useStore(session.selection);
  const request = useStore(session.request);
  const paths = useMemo(() => {
    const time = new Map<string, number>();
    for (const file of files) time.set(String(file.path), 0);
    for (const line of lines) time.set(line.file, (time.get(line.file) ?? 0) + line.time_ns);
    return [...time.entries()].sort((a, b) => b[1] - a[1]).map(([path]) => path);
  }, [lines, files]);
  const [path, setPath] = useState(() => preferred(paths, files));
  const [marks, setMarks] = useState<readonly number[]>(NO_LINES);
  const text = files.find((file) => file.path === path)?.text as string | undefined;
  const own = useMemo(() => lines.filter((line) => line.file === path), [lines, path]);
  const notes = useMemo(() => {
    const most = Math.max(1, ...own.map((line) => line.time_ns));
    const merged = new Map<number, Line>();
    for (const line of own) {
      const before = merged.get(line.line);
      merged.set(
        line.line,
        before
          ? {
              ...before,
              instructions: before.instructions + line.instructions,
              time_ns: before.time_ns + line.time_ns,
              frames: `${before.frames},${line.frames}`,
            }
          : line,
      );
    }
    return new Map(
      [...merged].map(([number, line]) => [
        number,
        {
          text: `${count(line.instructions)}× ${duration(line.time_ns)}`,
          title: `${count(line.instructions)} instructions, ${duration(line.time_ns)} on engines, ${count(line.tensor_elements)} multiply-adds`,
          share: line.time_ns / most,
        },
      ]),
    );
  }, [own]);

  useEffect(() => {
    if (request?.panel !== "source" || !request.argument) return;
    const asked = /^(.*):(\d+)$/.exec(request.argument);
    if (asked) {
      setPath(asked[1]);
      setMarks([Number(asked[2])]);
    }
  }, [request]);

  useEffect(() => {
    if (selection?.table !== "Instruction") return;
    let current = true;
    const follow = async () => {
      const row = await session.source.row(session.profile.name, session.device, "Instruction", selection.row);
      if (typeof row.stack_frame_ids !== "string" || !row.stack_frame_ids) return;
      const frames: Frame[] = await session.source.stack(session.profile.name, session.device, row.stack_frame_ids);
      const readable = new Set(files.map((file) => String(file.path)));
      // The user's own line before those of the library below it.
      const frame =
        frames.find((entry) => `${entry.file}:${entry.line}` === row.nki_source_location) ??
        frames.find((entry) => readable.has(entry.file)) ??
        frames[0];
      if (!current || !frame) return;
      setPath(frame.file);
      setMarks(frames.filter((entry) => entry.file === frame.file && entry.line !== null).map((entry) => entry.line!));
    };
    follow().catch(() => undefined);
    return () => {
      current = false;
    };
  }, [session, selection, files]);

  const toInstructions = async (number: number) => {
    const frames = own.filter((line) => line.line === number).flatMap((line) => line.frames.split(","));
    if (!frames.length) return;
    setMarks([number]);
    try {
      const events = await session.source.eventsOfFrames(session.profile.name, session.device, [...new Set(frames)]);
      const slices = session.slices.get();
      if (!events.length || !slices) return;
      session.hits.set(
        events.map((event) => slices.find("Instruction", event.row, Number(event.start_ts))).filter((i) => i >= 0),
      );
      session.show(Number(events[0].start_ts), Math.max(...events.map((event) => Number(event.end_ts))));
    } catch (error) {
      notify((error as Error).message);
    }
  };

  return (
    <div className="source">
      <div className="table-tools">
        <select aria-label="File" value={path} onChange={(event) => setPath(event.target.value)}>
          {paths.map((name) => (
            <option key={name} value={name}>
              {name.split("/").slice(-3).join("/")}
            </option>
          ))}
        </select>
        <span className="muted">click a line to see its instructions; select an instruction to see its line</span>
      </div>
      {text !== undefined ? (
        <Suspense fallback={<p className="empty">Loading …</p>}>
          <Code
            label={`Source of ${path}`}
            text={text}
            language="python"
            notes={notes}
            lines={marks}
            onLine={toInstructions}
          />
        </Suspense>
      ) : (
        <DataTable
          label={`Lines of ${path}`}
          rows={own}
          onSelect={(line) => toInstructions(line.line)}
          selected={(line) => marks.includes(line.line)}
          initialSort={{ key: "time_ns", descending: true }}
          columns={[
            { key: "line", numeric: true, width: 60 },
            { key: "function", width: 140 },
            { key: "instructions", numeric: true },
            { key: "time_ns", title: "Time on engines", numeric: true },
            { key: "tensor_elements", title: "Multiply-adds", numeric: true },
          ]}
        />
      )}
    </div>
  );
}

function preferred(paths: string[], files: Row[]): string {
  const readable = new Set(files.map((file) => String(file.path)));
  return paths.find((path) => readable.has(path)) ?? paths[0] ?? "";
}

/** Text of the program at each phase of the compiler, tied to instructions by the graph's nodes. */
export function IrPanel() {
  const session = useSession();
  const loaded = useLoaded(
    () =>
      Promise.all([
        session.rows("IrPhase", { limit: 200, order: "order" }),
        session.rows("IrLocation", { limit: 100000 }),
        session.rows("FrameworkNode", {
          limit: 50000,
          columns: ["id", "node_name", "start_ts", "end_ts"],
        }),
      ]),
    [session],
  );
  return (
    <Await loaded={loaded}>
      {([phases, locations, nodes]) =>
        phases.length ? (
          <Phases phases={phases} locations={locations} nodes={nodes} />
        ) : (
          <Empty title="No IR">
            The capture holds no text of the compiler's phases. Set TORCH_NEURONX_DUMP_PHASES when compiling to keep it.
          </Empty>
        )
      }
    </Await>
  );
}

/** Ids in FrameworkNode of the graph's nodes that an instruction came from; several when operators were merged. */
export function nodesOf(row: Row, nodes: Row[]): Set<string> {
  const found = new Set<string>();
  if (row.raw_framework_id !== null && row.raw_framework_id !== undefined) found.add(String(row.raw_framework_id));
  const names = new Set(
    String(row.hlo_attrs ?? "")
      .split("+")
      .filter(Boolean),
  );
  // The name of a node is unique in its graph and ends the path that the table has.
  if (names.size)
    for (const node of nodes) if (names.has(String(node.node_name).split("/").at(-1) ?? "")) found.add(String(node.id));
  return found;
}

/** The marked lines, the one that is the instruction itself first: of the emitted text its own, else its operation. */
function bestFirst(lines: number[], own: Row[], text: string, instruction: Row | null): number[] {
  if (!instruction || lines.length < 2) return lines;
  const { engine, pc } = instruction;
  const exact = own.find((row) => row.engine === engine && row.pc === pc && pc !== null && pc !== undefined);
  if (exact) return [Number(exact.line), ...lines.filter((line) => line !== exact.line)];
  const texts = text.split("\n");
  const kernel = String(instruction.kernel_instruction_name ?? "").split("#")[0];
  const begin = kernel ? texts.findIndex((line) => line.includes(`@${kernel} `)) + 1 : 0;
  const name = String(instruction.bir_instruction_name ?? "");
  const inside = lines.filter((line) => line > begin);
  const best = inside.find((line) => name && texts[line - 1].includes(`${name} `)) ?? inside[0];
  return best === undefined ? lines : [best, ...lines.filter((line) => line !== best)];
}

function Phases({ phases, locations, nodes }: { phases: Row[]; locations: Row[]; nodes: Row[] }) {
  const session = useSession();
  const selection = useStore(session.selection);
  const [phase, setPhase] = useState(() => String(phases[phases.length - 1].phase));
  const [chosen, setChosen] = useState<ReadonlySet<string>>(new Set());
  const [instruction, setInstruction] = useState<Row | null>(null);
  const text = String(phases.find((row) => row.phase === phase)?.text ?? "");
  const own = useMemo(() => locations.filter((row) => row.phase === phase), [locations, phase]);
  const lines = useMemo(
    () => [...new Set(own.filter((row) => chosen.has(String(row.node_id))).map((row) => Number(row.line)))],
    [own, chosen],
  );
  const ordered = useMemo(() => bestFirst(lines, own, text, instruction), [lines, own, text, instruction]);

  useEffect(() => {
    if (selection?.table !== "Instruction") return;
    let current = true;
    session.source.row(session.profile.name, session.device, "Instruction", selection.row).then(
      (row) => {
        if (!current) return;
        setChosen(nodesOf(row, nodes));
        setInstruction(row);
      },
      () => undefined,
    );
    return () => {
      current = false;
    };
  }, [session, selection, nodes]);

  const toTimeline = (line: number) => {
    const ids = new Set(own.filter((row) => row.line === line).map((row) => String(row.node_id)));
    if (!ids.size) return;
    setChosen(ids);
    setInstruction(null);
    const emitted = own.find((row) => row.line === line && row.engine);
    if (emitted) {
      // The instruction itself, where it ran first.
      session.source
        .search(session.profile.name, session.device, "Instruction", {
          field: "pc",
          text: String(emitted.pc),
          exact: true,
          limit: 5000,
        })
        .then(({ rows }) => {
          const first = rows.find((row) => row.engine === emitted.engine);
          if (first) session.select(first, "Instruction");
        })
        .catch(() => undefined);
      return;
    }
    const found = nodes.filter((row) => ids.has(String(row.id)));
    if (!found.length) return;
    session.show(
      Math.min(...found.map((row) => Number(row.start_ts))),
      Math.max(...found.map((row) => Number(row.end_ts))),
    );
    session.highlightBy("node", new Set(found.map((row) => String(row.node_name)))).catch(() => undefined);
  };

  return (
    <div className="source">
      <div className="table-tools">
        <div role="group" aria-label="Phase" className="segments">
          {phases.map((row) => (
            <button
              key={row.row}
              type="button"
              aria-pressed={row.phase === phase}
              onClick={() => setPhase(String(row.phase))}
            >
              {String(row.phase)}
            </button>
          ))}
        </div>
        <span className="muted">
          {own.length ? `${count(lines.length)} marked lines` : "this phase has no links to the graph"}
        </span>
      </div>
      <Suspense fallback={<p className="empty">Loading …</p>}>
        <Code label={`IR after ${phase}`} text={text} language="mlir" lines={ordered} onLine={toTimeline} />
      </Suspense>
    </div>
  );
}
