// Part of open-torch-neuronx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

import { type KeyboardEvent, type ReactNode, useEffect, useMemo, useRef, useState } from "react";
import { cell, heading } from "../format";
import { download, toCsv } from "./csv";

export interface Column<T> {
  key: string;
  title?: string;
  width?: number;
  /** Text or element shown; by default the value as its name says. */
  render?: (row: T) => ReactNode;
  /** What sorting and exports use. */
  value?: (row: T) => unknown;
  numeric?: boolean;
}

const ROW_HEIGHT = 25;
const EXTRA = 8;

interface TableProps<T> {
  label: string;
  rows: readonly T[];
  columns: Column<T>[];
  rowKey?: (row: T, index: number) => string | number;
  selected?: (row: T) => boolean;
  onSelect?: (row: T) => void;
  onContext?: (row: T) => void;
  empty?: string;
  filter?: boolean;
  exportName?: string;
  initialSort?: { key: string; descending: boolean };
  tools?: ReactNode;
}

/** A table of any length: only rows in view are in the page; sorting, filtering, keyboard and CSV. */
export function DataTable<T>(props: TableProps<T>) {
  const { label, rows, columns, rowKey, selected, onSelect, onContext } = props;
  const [sort, setSort] = useState(props.initialSort ?? null);
  const [text, setText] = useState("");
  const [top, setTop] = useState(0);
  const [height, setHeight] = useState(400);
  const [focused, setFocused] = useState(0);
  const scroller = useRef<HTMLDivElement>(null);

  useEffect(() => {
    const element = scroller.current;
    if (!element) return;
    const observer = new ResizeObserver(() => setHeight(element.clientHeight));
    observer.observe(element);
    return () => observer.disconnect();
  }, []);

  const valueAt = (column: Column<T>, row: T) =>
    column.value ? column.value(row) : (row as Record<string, unknown>)[column.key];

  const shown = useMemo(() => {
    let list = [...rows];
    const wanted = text.trim().toLowerCase();
    if (wanted) {
      list = list.filter((row) =>
        columns.some((column) =>
          String(valueAt(column, row) ?? "")
            .toLowerCase()
            .includes(wanted),
        ),
      );
    }
    const column = sort && columns.find((entry) => entry.key === sort.key);
    if (sort && column) {
      const sign = sort.descending ? -1 : 1;
      list.sort((a, b) => {
        const x = valueAt(column, a);
        const y = valueAt(column, b);
        if (x === y) return 0;
        if (x === null || x === undefined) return 1;
        if (y === null || y === undefined) return -1;
        if (typeof x === "number" && typeof y === "number") return sign * (x - y);
        return sign * String(x).localeCompare(String(y), "en", { numeric: true });
      });
    }
    return list;
  }, [rows, columns, sort, text]);

  const first = Math.max(0, Math.floor(top / ROW_HEIGHT) - EXTRA);
  const last = Math.min(shown.length, Math.ceil((top + height) / ROW_HEIGHT) + EXTRA);
  const template = columns
    .map((column) => `minmax(${column.width ?? (column.numeric ? 104 : 130)}px, ${column.numeric ? 0.6 : 1}fr)`)
    .join(" ");
  const least = columns.reduce((sum, column) => sum + (column.width ?? (column.numeric ? 104 : 130)), 0);

  const key = (event: KeyboardEvent) => {
    const step = { ArrowDown: 1, ArrowUp: -1, PageDown: 20, PageUp: -20 }[event.key];
    if (step) {
      event.preventDefault();
      const next = Math.max(0, Math.min(shown.length - 1, focused + step));
      setFocused(next);
      const element = scroller.current!;
      const y = next * ROW_HEIGHT;
      if (y < element.scrollTop) element.scrollTop = y;
      else if (y + 2 * ROW_HEIGHT > element.scrollTop + element.clientHeight)
        element.scrollTop = y + 2 * ROW_HEIGHT - element.clientHeight;
    } else if ((event.key === "Enter" || event.key === " ") && event.target === scroller.current && shown[focused]) {
      event.preventDefault();
      onSelect?.(shown[focused]);
    }
  };

  const csv = () => {
    const header = columns.map((column) => column.title ?? column.key);
    const body = shown.map((row) => columns.map((column) => valueAt(column, row)));
    download(`${props.exportName ?? label}.csv`, toCsv(header, body), "text/csv");
  };

  return (
    <div className="table">
      {(props.filter || props.exportName || props.tools) && (
        <div className="table-tools">
          {props.tools}
          {props.filter && (
            <input
              type="search"
              placeholder="Filter rows"
              aria-label={`Filter ${label}`}
              value={text}
              onChange={(event) => setText(event.target.value)}
            />
          )}
          <span className="muted">
            {shown.length.toLocaleString("en-US")} {shown.length === 1 ? "row" : "rows"}
          </span>
          {props.exportName && (
            <button type="button" className="quiet" onClick={csv} title="Save the rows as CSV">
              CSV
            </button>
          )}
        </div>
      )}
      <div
        className="table-scroll"
        ref={scroller}
        role="grid"
        aria-label={label}
        aria-rowcount={shown.length + 1}
        tabIndex={0}
        onScroll={(event) => setTop(event.currentTarget.scrollTop)}
        onKeyDown={key}
      >
        <div style={{ minWidth: least }}>
          <div className="table-head" role="row" style={{ gridTemplateColumns: template }}>
            {columns.map((column) => (
              <div
                key={column.key}
                role="columnheader"
                className={column.numeric ? "number" : ""}
                aria-sort={sort?.key === column.key ? (sort.descending ? "descending" : "ascending") : "none"}
              >
                <button
                  type="button"
                  onClick={() =>
                    setSort((now) =>
                      now?.key === column.key
                        ? { key: column.key, descending: !now.descending }
                        : { key: column.key, descending: Boolean(column.numeric) },
                    )
                  }
                >
                  {column.title ?? heading(column.key)}
                  {sort?.key === column.key ? (sort.descending ? " ↓" : " ↑") : ""}
                </button>
              </div>
            ))}
          </div>
          <div style={{ height: shown.length * ROW_HEIGHT, position: "relative" }} role="rowgroup">
            {shown.slice(first, last).map((row, i) => {
              const index = first + i;
              const chosen = selected?.(row) ?? false;
              return (
                <div
                  key={rowKey ? rowKey(row, index) : index}
                  role="row"
                  aria-rowindex={index + 2}
                  aria-selected={chosen}
                  className={`table-row${chosen ? " selected" : ""}${index === focused ? " focused" : ""}${onSelect ? " clickable" : ""}`}
                  style={{ top: index * ROW_HEIGHT, height: ROW_HEIGHT, gridTemplateColumns: template }}
                  onClick={() => {
                    setFocused(index);
                    onSelect?.(row);
                  }}
                  onContextMenu={
                    onContext &&
                    ((event) => {
                      event.preventDefault();
                      onContext(row);
                    })
                  }
                >
                  {columns.map((column) => {
                    const value = valueAt(column, row);
                    const content = column.render ? column.render(row) : cell(column.key, value);
                    return (
                      <div
                        key={column.key}
                        role="gridcell"
                        className={column.numeric ? "number" : ""}
                        title={typeof content === "string" ? content : undefined}
                      >
                        {content}
                      </div>
                    );
                  })}
                </div>
              );
            })}
          </div>
        </div>
        {shown.length === 0 && <p className="empty">{props.empty ?? "No rows."}</p>}
      </div>
    </div>
  );
}
