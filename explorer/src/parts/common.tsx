// Part of open-torch-neuronx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

import { createContext, type ReactNode, useContext, useEffect, useRef, useState, useSyncExternalStore } from "react";
import type { Session } from "../session";

export const SessionContext = createContext<Session | null>(null);

export function useSession(): Session {
  const session = useContext(SessionContext);
  if (!session) throw new Error("a panel outside of a session");
  return session;
}

/** Whether the panel is in view: one behind another tab keeps its state but need not follow every frame. */
export const PanelVisible = createContext(true);

const never = () => () => undefined;

/** The timeline's range, frame by frame while the panel is in view; a hidden panel keeps what it had. */
export function useWindow(): { start: number; end: number } {
  const { window } = useSession();
  const visible = useContext(PanelVisible);
  const kept = useRef(window.get());
  return useSyncExternalStore(visible ? window.subscribe : never, () => {
    if (visible) kept.current = window.get();
    return kept.current;
  });
}

const CALM_MS = 120;

/** The timeline's range, a few times a second. */
export function useCalmWindow(): { start: number; end: number } {
  const { window } = useSession();
  const [shown, setShown] = useState(window.get());
  useEffect(() => {
    let timer: ReturnType<typeof setTimeout> | undefined;
    const update = () => {
      timer = undefined;
      setShown(window.get());
    };
    update();
    const stop = window.subscribe(() => {
      timer ??= setTimeout(update, CALM_MS);
    });
    return () => {
      clearTimeout(timer);
      stop();
    };
  }, [window]);
  return shown;
}

/** The timeline's range when it has come to rest. */
export function useSettledWindow(): { start: number; end: number } {
  const { window } = useSession();
  const visible = useContext(PanelVisible);
  const [settled, setSettled] = useState(window.get());
  useEffect(() => {
    if (!visible) return;
    setSettled(window.get());
    let timer: ReturnType<typeof setTimeout> | undefined;
    const stop = window.subscribe(() => {
      clearTimeout(timer);
      timer = setTimeout(() => setSettled(window.get()), 200);
    });
    return () => {
      clearTimeout(timer);
      stop();
    };
  }, [window, visible]);
  return settled;
}

export type Loaded<T> = { state: "loading" } | { state: "error"; message: string } | { state: "ready"; value: T };

/** The result of an asynchronous question; an answer that comes after the next question is dropped. */
export function useLoaded<T>(ask: () => Promise<T>, dependencies: readonly unknown[]): Loaded<T> {
  const [loaded, setLoaded] = useState<Loaded<T>>({ state: "loading" });
  useEffect(() => {
    let current = true;
    setLoaded({ state: "loading" });
    ask().then(
      (value) => current && setLoaded({ state: "ready", value }),
      (error: Error) => current && setLoaded({ state: "error", message: error.message }),
    );
    return () => {
      current = false;
    };
  }, dependencies);
  return loaded;
}

export function Await<T>({ loaded, children }: { loaded: Loaded<T>; children: (value: T) => ReactNode }) {
  if (loaded.state === "loading") {
    return (
      <p className="empty" role="status">
        Loading …
      </p>
    );
  }
  if (loaded.state === "error") {
    return (
      <p className="error" role="alert">
        {loaded.message}
      </p>
    );
  }
  return <>{children(loaded.value)}</>;
}

export function Empty({ title, children }: { title: string; children?: ReactNode }) {
  return (
    <div className="empty">
      <strong>{title}</strong>
      {children && <p>{children}</p>}
    </div>
  );
}

export interface TabItem {
  id: string;
  title: string;
  content: ReactNode;
}

let tabsNumber = 0;

export function Tabs({ label, items, initial }: { label: string; items: TabItem[]; initial?: string }) {
  const [prefix] = useState(() => `tabs${++tabsNumber}`);
  const [chosen, setChosen] = useState(initial ?? items[0]?.id);
  const current = items.find((item) => item.id === chosen) ?? items[0];
  const move = (step: number) => {
    const next = items[(items.indexOf(current) + step + items.length) % items.length];
    setChosen(next.id);
    document.getElementById(`${prefix}-${next.id}`)?.focus();
  };
  return (
    <div className="tabs">
      <div role="tablist" aria-label={label} className="tab-list">
        {items.map((item) => (
          <button
            key={item.id}
            type="button"
            role="tab"
            id={`${prefix}-${item.id}`}
            aria-selected={item === current}
            aria-controls={`${prefix}-panel`}
            tabIndex={item === current ? 0 : -1}
            onClick={() => setChosen(item.id)}
            onKeyDown={(event) => {
              if (event.key === "ArrowRight") move(1);
              if (event.key === "ArrowLeft") move(-1);
            }}
          >
            {item.title}
          </button>
        ))}
      </div>
      <div role="tabpanel" id={`${prefix}-panel`} aria-labelledby={`${prefix}-${current?.id}`} className="tab-panel">
        {current?.content}
      </div>
    </div>
  );
}
