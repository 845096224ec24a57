// Part of open-torch-neuronx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

import { useEffect, useMemo, useState } from "react";
import { isDark, seriesColor } from "../colors";
import type { Row, Statistics } from "../data/source";
import { count, duration, percent } from "../format";
import { Await, Empty, useLoaded, useSession } from "../parts/common";
import { DataTable } from "../parts/table";
import { chosenRegions, distribution, GENERATORS, type Generator, type Region, type RegionChoice } from "../regions";
import { useStore } from "../store";
import { figuresOf } from "./figures";

const NAMES: Record<Generator, string> = {
  none: "None",
  kernels: "Kernels",
  hierarchy: "Hierarchy",
  collectives: "Collectives",
};
const MOST_COMPARED = 3;
/** A menu of more entries is slow to open, and nobody reads it. */
const MOST_LISTED = 500;

/** The regions that the session's choice means; the timeline and the summary follow. */
export function useRegions() {
  const session = useSession();
  const choice = useStore(session.regionChoice);
  const loaded = useLoaded(() => session.generatedRegions(), [session, choice.generator, choice.level]);
  const found = loaded.state === "ready" ? loaded.value : undefined;
  const chosen = useMemo(() => chosenRegions(found?.regions ?? [], choice), [found, choice]);
  return { loaded, chosen, choice };
}

/** Makes regions of kernels, parts of the model or collectives, and sets up to three of them side by side. */
export function RegionsPanel() {
  const session = useSession();
  const { loaded, chosen, choice } = useRegions();
  const [compared, setCompared] = useState<readonly string[]>([]);
  const change = (part: Partial<RegionChoice>) => {
    if (part.generator !== undefined || part.level !== undefined) setCompared([]);
    session.chooseRegions({ ...choice, ...part });
  };
  const toggle = (id: string) =>
    setCompared((now) => (now.includes(id) ? now.filter((other) => other !== id) : [...now, id].slice(-MOST_COMPARED)));
  const side = chosen.filter((region) => compared.includes(region.id));
  return (
    <div className="regions">
      <div className="table-tools">
        <GeneratorMenu title="Generator" choose={(generator) => change({ generator, level: 0 })} />
        {choice.generator === "hierarchy" && (
          <label>
            Level{" "}
            <select value={choice.level} onChange={(event) => change({ level: Number(event.target.value) })}>
              {Array.from(
                { length: Math.max(choice.level + 1, loaded.state === "ready" ? loaded.value.levels : 0) },
                (_, level) => (
                  // biome-ignore lint/suspicious/noArrayIndexKey: a level is its number.
                  <option key={level} value={level}>
                    {level}
                  </option>
                ),
              )}
            </select>
          </label>
        )}
        {choice.generator !== "none" && (
          <>
            <label>
              Name{" "}
              <input value={choice.text} maxLength={200} onChange={(event) => change({ text: event.target.value })} />
            </label>
            {(
              [
                ["Stride", "stride", 1, "every how-manieth region"],
                ["Offset", "offset", 0, "regions left out before the first"],
                ["Count", "count", 0, "how many at most; 0: all"],
              ] as const
            ).map(([title, key, least, hint]) => (
              <label key={key} title={hint}>
                {title}{" "}
                <input
                  type="number"
                  className="narrow"
                  min={least}
                  value={choice[key]}
                  onChange={(event) => change({ [key]: Math.max(least, Math.floor(Number(event.target.value)) || 0) })}
                />
              </label>
            ))}
          </>
        )}
      </div>
      {choice.generator === "none" ? (
        <Empty title="No regions">
          A generator makes regions of the kernels or of a level of the model's hierarchy: bands in the timeline, a menu
          in the summary, and their durations here.
        </Empty>
      ) : (
        <Await loaded={loaded}>
          {({ regions }) =>
            regions.length ? (
              <>
                <Durations regions={chosen} />
                {side.length > 0 && <SideBySide key={side.map((region) => region.id).join()} regions={side} />}
                <DataTable
                  label="Regions"
                  rows={chosen}
                  rowKey={(region) => region.id}
                  exportName={`${session.profile.name}-regions`}
                  onSelect={(region) => session.show(region.start, region.end)}
                  columns={[
                    {
                      key: "compare",
                      title: "Compare",
                      width: 70,
                      value: (region) => compared.includes(region.id),
                      render: (region) => (
                        <input
                          type="checkbox"
                          aria-label={`Compare ${region.name}`}
                          checked={compared.includes(region.id)}
                          onClick={(event) => event.stopPropagation()}
                          onChange={() => toggle(region.id)}
                        />
                      ),
                    },
                    { key: "name", width: 260 },
                    {
                      key: "start",
                      title: "Start",
                      numeric: true,
                      value: (region) => region.start,
                      render: (region) => duration(region.start),
                    },
                    {
                      key: "duration",
                      title: "Duration",
                      numeric: true,
                      value: (region) => region.end - region.start,
                      render: (region) => duration(region.end - region.start),
                    },
                  ]}
                />
              </>
            ) : (
              <Empty title={`No ${NAMES[choice.generator].toLowerCase()}`}>
                {choice.generator === "collectives"
                  ? "The program of one core holds no collective operations."
                  : "The NEFF holds no provenance, so instructions cannot be traced to kernels and modules."}
              </Empty>
            )
          }
        </Await>
      )}
    </div>
  );
}

function GeneratorMenu({ title, choose }: { title: string; choose: (generator: Generator) => void }) {
  const { generator } = useStore(useSession().regionChoice);
  return (
    <label>
      {title}{" "}
      <select value={generator} onChange={(event) => choose(event.target.value as Generator)}>
        {GENERATORS.map((name) => (
          <option key={name} value={name}>
            {NAMES[name]}
          </option>
        ))}
      </select>
    </label>
  );
}

/** How many regions take how long. */
function Durations({ regions }: { regions: readonly Region[] }) {
  const bins = distribution(regions.map((region) => region.end - region.start));
  if (!bins.length) return <p className="muted">No region has such a name and place.</p>;
  const most = Math.max(...bins.map((bin) => bin.count));
  const color = seriesColor(0, isDark());
  return (
    <figure className="durations">
      <figcaption>
        Annotation region duration distribution: {count(regions.length)} regions, {duration(bins[0].from)} to{" "}
        {duration(bins[bins.length - 1].to)}
      </figcaption>
      <div className="durations-bars" role="img" aria-label="Regions by duration">
        {bins.map((bin) => (
          <span
            key={bin.from}
            style={{ height: `${(bin.count / most) * 100}%`, background: color }}
            title={`${duration(bin.from)} to ${duration(bin.to)}: ${count(bin.count)}`}
          />
        ))}
      </div>
    </figure>
  );
}

function SideBySide({ regions }: { regions: readonly Region[] }) {
  const session = useSession();
  const { source, profile, device } = session;
  const loaded = useLoaded<[Row[], Statistics[]]>(
    () =>
      Promise.all([
        session.rows("Metadata"),
        Promise.all(regions.map(({ start, end }) => source.statistics(profile.name, device, start, end))),
      ]),
    [session],
  );
  return (
    <Await loaded={loaded}>
      {([constants, statistics]) => {
        const columns = regions.map((region, i) => {
          const total = region.end - region.start;
          const engines = statistics[i].engines.map((row): [string, string] => [
            `${row.track} in use`,
            percent(Number(row.time_ns) / total),
          ]);
          return new Map([
            ["Duration", duration(total)],
            ...figuresOf(statistics[i], total, constants[0]),
            ...engines,
          ] as [string, string][]);
        });
        const names = [...new Set(columns.flatMap((column) => [...column.keys()]))];
        return (
          <table className="plain" aria-label="Regions side by side">
            <thead>
              <tr>
                <th>Metric</th>
                {regions.map((region) => (
                  <th key={region.id} className="number" title={region.name}>
                    {region.name}
                  </th>
                ))}
              </tr>
            </thead>
            <tbody>
              {names.map((name) => (
                <tr key={name}>
                  <td>{name}</td>
                  {columns.map((column, i) => (
                    <td key={regions[i].id} className="number">
                      {column.get(name) ?? "–"}
                    </td>
                  ))}
                </tr>
              ))}
            </tbody>
          </table>
        );
      }}
    </Await>
  );
}

/** Draws the regions in the timeline; a part of that panel, so that they last when their own is closed. */
export function RegionBands() {
  const session = useSession();
  const { chosen } = useRegions();
  const timeline = useStore(session.timeline);
  useEffect(() => timeline?.setBands(chosen), [timeline, chosen]);
  return null;
}

/** Chooses the part of the profile that the summary is about. */
export function RegionMenu({ region, choose }: { region: Region | null; choose: (region: Region | null) => void }) {
  const session = useSession();
  const { chosen, choice } = useRegions();
  const window = session.window.get();
  const view: Region = { id: "view", name: "timeline's view", start: window.start, end: window.end };
  return (
    <div className="region-menu">
      <label>
        Region{" "}
        <select
          aria-label="Region"
          value={region?.id ?? ""}
          onChange={(event) =>
            choose(
              event.target.value === "view" ? view : (chosen.find((entry) => entry.id === event.target.value) ?? null),
            )
          }
        >
          <option value="">Whole profile</option>
          {window.end > 1 && (
            <option value="view">
              View of the timeline ({duration(window.start)} to {duration(window.end)})
            </option>
          )}
          {chosen.slice(0, MOST_LISTED).map((entry) => (
            <option key={entry.id} value={entry.id}>
              {entry.name} ({duration(entry.start)} + {duration(entry.end - entry.start)})
            </option>
          ))}
        </select>
      </label>
      {chosen.length > MOST_LISTED && (
        <span className="muted">
          The first {count(MOST_LISTED)} of {count(chosen.length)}; name, stride and offset of the Regions panel choose
          others.
        </span>
      )}
      <GeneratorMenu
        title="Add regions"
        choose={(generator) => {
          choose(null);
          session.chooseRegions({ ...choice, generator, level: 0 });
        }}
      />
    </div>
  );
}
