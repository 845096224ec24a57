// Part of open-torch-neuronx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

import { useEffect, useMemo, useRef, useState } from "react";
import type { DataSource, ProfileDescription, Row } from "./data/source";
import { Await, Empty, SessionContext, useLoaded, useSession } from "./parts/common";
import { Dock, type DockHandle, type PanelKind } from "./parts/dock";
import { formatRoute, go, route } from "./route";
import { notices, notify, Session } from "./session";
import { useStore } from "./store";
import { ComparePage } from "./views/compare";
import { DetailsPanel } from "./views/details";
import { ManagerPage, noteViewed } from "./views/manager";
import { MemoryPanel } from "./views/memory";
import { HierarchyPanel, OperatorsPanel } from "./views/operators";
import {
  AnnotationsPanel,
  ChainPanel,
  CriticalPathPanel,
  DevicesPanel,
  StatisticsPanel,
  TablesPanel,
  TensorsPanel,
} from "./views/panels";
import { RegionsPanel } from "./views/regions";
import { RooflinePanel } from "./views/roofline";
import { SearchPanel } from "./views/search";
import { IrPanel, SourcePanel } from "./views/source";
import { SummaryPage } from "./views/summary";
import { TimelinePanel } from "./views/timeline";

type ThemeChoice = "auto" | "light" | "dark";
const THEME = "neuron-explorer.theme";
/** Where a letter is text, or chooses an entry, and no command. */
const TYPING = "input:not([type=checkbox]), textarea, select, dialog, .cm-editor";

function useTheme(): [ThemeChoice, (choice: ThemeChoice) => void] {
  const [choice, setChoice] = useState<ThemeChoice>(() => {
    try {
      return (localStorage.getItem(THEME) as ThemeChoice) ?? "auto";
    } catch {
      return "auto";
    }
  });
  useEffect(() => {
    if (choice === "auto") delete document.documentElement.dataset.theme;
    else document.documentElement.dataset.theme = choice;
    try {
      localStorage.setItem(THEME, choice);
    } catch {
      // The choice lasts as long as the page.
    }
  }, [choice]);
  return [choice, setChoice];
}

export function App({ source }: { source: DataSource }) {
  const current = useStore(route);
  const [theme, setTheme] = useTheme();
  const help = useRef<HTMLDialogElement>(null);
  useEffect(() => {
    const key = (event: KeyboardEvent) => {
      const typing = (event.target as HTMLElement).closest(TYPING);
      if (event.key === "?" && !typing) {
        event.preventDefault();
        help.current?.showModal();
      }
    };
    window.addEventListener("keydown", key);
    return () => window.removeEventListener("keydown", key);
  }, []);
  const frame = (
    <div className="right-tools">
      <select aria-label="Theme" value={theme} onChange={(event) => setTheme(event.target.value as ThemeChoice)}>
        <option value="auto">Theme</option>
        <option value="light">Light</option>
        <option value="dark">Dark</option>
      </select>
      <button type="button" onClick={() => help.current?.showModal()} aria-label="Keys and help" title="Keys (?)">
        ?
      </button>
    </div>
  );
  return (
    <>
      {current.page === "profiles" && (
        <>
          <header className="top">
            <Logo />
            <span className="spacer" />
            {frame}
          </header>
          <ManagerPage source={source} />
        </>
      )}
      {current.page === "compare" && (
        <>
          <header className="top">
            <Logo />
            <span className="spacer" />
            {frame}
          </header>
          <ComparePage source={source} />
        </>
      )}
      {current.page === "profile" && (
        <Profile source={source} name={current.profile} device={current.device} tools={frame} />
      )}
      <Help dialog={help} />
      <Notices />
    </>
  );
}

function Logo() {
  return (
    <a className="logo" href="#/" aria-label="Neuron Explorer, all profiles">
      <svg viewBox="0 0 16 16" aria-hidden="true">
        <rect width="16" height="16" rx="3" />
        <path d="M3 5h6M5 8h8M3 11h5" />
      </svg>
      <span>Neuron Explorer</span>
    </a>
  );
}

function Notices() {
  const list = useStore(notices);
  return (
    <div className="notices" role="status" aria-live="polite">
      {list.map((entry) => (
        <p key={entry.id}>{entry.text}</p>
      ))}
    </div>
  );
}

function Profile({
  source,
  name,
  device,
  tools,
}: {
  source: DataSource;
  name: string;
  device: string;
  tools: React.ReactNode;
}) {
  const loaded = useLoaded<ProfileDescription>(() => source.profile(name), [source, name]);
  return (
    <Await loaded={loaded}>
      {(profile) => {
        const chosen = device || (profile.has_system ? "system" : (profile.devices[0] ?? ""));
        if (!chosen) {
          return (
            <>
              <header className="top">
                <Logo />
                <span className="spacer" />
                {tools}
              </header>
              <Empty title={`${name} holds no tables`}>
                Its status is {profile.status}. {profile.warnings.map(textOf).join(" ")}
              </Empty>
            </>
          );
        }
        return <Opened key={`${name}/${chosen}`} source={source} profile={profile} device={chosen} tools={tools} />;
      }}
    </Await>
  );
}

function textOf(warning: string | { message: string }): string {
  return typeof warning === "string" ? warning : warning.message;
}

const SYSTEM_PANELS: PanelKind[] = [
  { id: "timeline", title: "System timeline", content: <TimelinePanel /> },
  { id: "details", title: "Details", content: <DetailsPanel /> },
  { id: "chain", title: "Dependency chain", content: <ChainPanel /> },
  { id: "search", title: "Search", content: <SearchPanel /> },
  { id: "statistics", title: "Selection", content: <StatisticsPanel /> },
  { id: "devices", title: "Device profiles", content: <DevicesPanel /> },
  { id: "annotations", title: "Annotations", content: <AnnotationsPanel /> },
  { id: "tables", title: "Tables", content: <TablesPanel /> },
];

const DEVICE_PANELS: PanelKind[] = [
  { id: "timeline", title: "Device timeline", content: <TimelinePanel /> },
  { id: "details", title: "Details", content: <DetailsPanel /> },
  { id: "search", title: "Search", content: <SearchPanel /> },
  { id: "source", title: "Source", content: <SourcePanel /> },
  { id: "ir", title: "IR", content: <IrPanel /> },
  { id: "operators", title: "Operators", content: <OperatorsPanel /> },
  { id: "hierarchy", title: "Hierarchy", content: <HierarchyPanel /> },
  { id: "roofline", title: "Roofline", content: <RooflinePanel /> },
  { id: "critical", title: "Critical path", content: <CriticalPathPanel /> },
  { id: "memory", title: "Memory", content: <MemoryPanel /> },
  { id: "statistics", title: "Selection", content: <StatisticsPanel /> },
  { id: "tensors", title: "Tensors", content: <TensorsPanel /> },
  { id: "annotations", title: "Annotations", content: <AnnotationsPanel /> },
  { id: "regions", title: "Regions", content: <RegionsPanel /> },
  { id: "tables", title: "Tables", content: <TablesPanel /> },
];

/** The summary is about the regions, not about a place of the timeline. */
function regionsOf({ regions }: Record<string, string>): Record<string, string> {
  return regions ? { regions } : {};
}

/** A click outside closes the menus of the page, as people expect of menus. */
function useClosingMenus() {
  useEffect(() => {
    const close = (event: Event) => {
      for (const menu of document.querySelectorAll<HTMLDetailsElement>("details.menu[open]"))
        if (!menu.contains(event.target as Node)) menu.open = false;
    };
    const key = (event: KeyboardEvent) => {
      if (event.key !== "Escape") return;
      for (const menu of document.querySelectorAll<HTMLDetailsElement>("details.menu[open]")) {
        menu.open = false;
        menu.querySelector("summary")?.focus();
      }
    };
    window.addEventListener("pointerdown", close);
    window.addEventListener("keydown", key);
    return () => {
      window.removeEventListener("pointerdown", close);
      window.removeEventListener("keydown", key);
    };
  }, []);
}

function Opened({
  source,
  profile,
  device,
  tools,
}: {
  source: DataSource;
  profile: ProfileDescription;
  device: string;
  tools: React.ReactNode;
}) {
  const session = useMemo(() => new Session(source, profile, device), [source, profile, device]);
  const current = useStore(route);
  const dock = useRef<DockHandle | null>(null);
  const [focusMode, setFocusMode] = useState(false);
  const panels = session.isSystem ? SYSTEM_PANELS : DEVICE_PANELS;
  useClosingMenus();

  useEffect(() => {
    noteViewed(profile.name);
    document.title = `${profile.name} – Neuron Explorer`;
    session.load();
  }, [session, profile]);

  useEffect(() => {
    const key = (event: KeyboardEvent) => {
      const target = event.target as HTMLElement;
      if (target.closest(TYPING)) return;
      if (event.ctrlKey || event.metaKey || event.altKey) return;
      if (event.key === "/") {
        event.preventDefault();
        session.open("search");
        dock.current?.open("search");
      } else if (event.key === "t") {
        event.preventDefault();
        session.timeline.get()?.focus();
      } else if (event.key === "z") {
        dock.current?.toggleMaximised();
      } else if (!target.closest(".tl-overlay, [role=grid], [role=tab], button, a, summary")) {
        session.timeline.get()?.key(event);
      }
    };
    window.addEventListener("keydown", key);
    return () => window.removeEventListener("keydown", key);
  }, [session]);

  const tab = (name: "analysis" | "summary") => (
    <a
      href={formatRoute({ page: "profile", profile: profile.name, device, tab: name })}
      aria-current={current.tab === name ? "page" : undefined}
      onClick={(event) => {
        event.preventDefault();
        go({
          page: "profile",
          profile: profile.name,
          device,
          tab: name,
          query: name === "analysis" ? current.query : regionsOf(current.query),
        });
      }}
    >
      {name === "analysis" ? "Analysis" : "Summary"}
    </a>
  );

  return (
    <SessionContext.Provider value={session}>
      <div className={`workspace${focusMode ? " focus-mode" : ""}`}>
        <header className="top">
          <Logo />
          <NeffInformation />
          <label className="choice">
            <span className="visually-hidden">Part of the profile</span>
            <select
              value={device}
              onChange={(event) =>
                go({ page: "profile", profile: profile.name, device: event.target.value, tab: current.tab })
              }
            >
              {profile.has_system && <option value="system">System</option>}
              {profile.devices.map((entry) => (
                <option key={entry} value={entry}>
                  {entry}
                </option>
              ))}
            </select>
          </label>
          <nav aria-label="Views" className="main-tabs">
            {tab("analysis")}
            {tab("summary")}
          </nav>
          <span className="spacer" />
          <details className="menu right">
            <summary>Add widget</summary>
            <div className="menu-body">
              {panels.map((panel) => (
                <button key={panel.id} type="button" onClick={() => dock.current?.open(panel.id)}>
                  {panel.title}
                </button>
              ))}
            </div>
          </details>
          <LayoutMenu dock={dock} />
          <Warnings />
          <button type="button" onClick={copyLink} title="Copy the address of this view">
            Link
          </button>
          <button
            type="button"
            aria-pressed={focusMode}
            onClick={() => setFocusMode(!focusMode)}
            title="Hide the tab bars"
          >
            Focus
          </button>
          {tools}
        </header>
        <main className={current.tab === "analysis" ? "analysis" : "hidden"}>
          <h1 className="visually-hidden">{profile.name}</h1>
          <Dock
            session={session}
            panels={panels}
            onReady={(handle) => {
              dock.current = handle;
            }}
          />
        </main>
        {current.tab === "summary" && (
          <main className="summary-main" tabIndex={0}>
            <h1 className="visually-hidden">Summary of {profile.name}</h1>
            <SummaryPage />
          </main>
        )}
      </div>
    </SessionContext.Provider>
  );
}

function copyLink() {
  navigator.clipboard.writeText(location.href).then(
    () => notify("the address of this view is copied"),
    () => notify("the browser does not let pages copy: use the address bar"),
  );
}

function LayoutMenu({ dock }: { dock: React.RefObject<DockHandle | null> }) {
  const [names, setNames] = useState<string[]>([]);
  const [name, setName] = useState("");
  return (
    <details className="menu right" onToggle={() => setNames(dock.current?.names() ?? [])}>
      <summary>Layout</summary>
      <div className="menu-body">
        <button type="button" onClick={() => dock.current?.reset()}>
          Default layout
        </button>
        <button type="button" onClick={() => dock.current?.toggleMaximised()}>
          Maximise or restore (Z)
        </button>
        {names.map((entry) => (
          <div key={entry} className="menu-row">
            <button type="button" onClick={() => dock.current?.load(entry)}>
              {entry}
            </button>
            <button
              type="button"
              aria-label={`Delete layout ${entry}`}
              onClick={() => {
                dock.current?.remove(entry);
                setNames(dock.current?.names() ?? []);
              }}
            >
              ✕
            </button>
          </div>
        ))}
        <hr />
        <form
          onSubmit={(event) => {
            event.preventDefault();
            if (!name.trim()) return;
            dock.current?.save(name.trim());
            setNames(dock.current?.names() ?? []);
            setName("");
          }}
        >
          <input
            aria-label="Name of the layout"
            placeholder="Save as"
            value={name}
            onChange={(event) => setName(event.target.value)}
          />
        </form>
      </div>
    </details>
  );
}

function NeffInformation() {
  const session = useSession();
  const [open, setOpen] = useState(false);
  const loaded = useLoaded<Row[]>(() => (open ? session.rows("NeffHeader") : Promise.resolve([])), [open, session]);
  return (
    <details className="menu" onToggle={(event) => setOpen(event.currentTarget.open)}>
      <summary className="profile-name">{session.profile.name}</summary>
      <div className="menu-body wide">
        <dl className="fields compact">
          {[
            ["Kind", session.profile.kind],
            ["Created", session.profile.created],
            ["Source", session.profile.source],
            ["Schema", session.profile.schema_version],
            ["Tags", session.profile.tags.join(", ")],
            ...(loaded.state === "ready"
              ? Object.entries(loaded.value[0] ?? {}).filter(([key]) => key !== "row" && key !== "id")
              : []),
          ]
            .filter(([, value]) => value !== null && value !== undefined && value !== "")
            .map(([key, value]) => (
              <div key={String(key)}>
                <dt>{String(key).replaceAll("_", " ")}</dt>
                <dd>{String(value)}</dd>
              </div>
            ))}
        </dl>
      </div>
    </details>
  );
}

function Warnings() {
  const session = useSession();
  const loaded = useLoaded<Row[]>(() => session.rows("Warning", { limit: 500 }), [session]);
  const own = session.profile.warnings.map(textOf);
  const list = [...own, ...(loaded.state === "ready" ? loaded.value.map((row) => String(row.message)) : [])];
  return (
    <details className="menu right">
      <summary className={list.length ? "has-warnings" : ""}>{list.length ? `⚠ ${list.length}` : "No notices"}</summary>
      <div className="menu-body wide">
        {list.length === 0 && <p className="muted">The files were read without a remark.</p>}
        {[...new Set(list)].map((text) => (
          <p key={text} className="warning">
            {text}
          </p>
        ))}
      </div>
    </details>
  );
}

const KEYS: [string, string][] = [
  ["W, S", "zoom in and out"],
  ["A, D", "move left and right"],
  ["F", "fit the selection, the box or everything"],
  ["0", "show everything"],
  ["← →", "previous and next event of the track"],
  ["↑ ↓", "event of the track above and below"],
  ["Enter", "source of the event; in the system timeline its dependency chain"],
  ["M", "annotate the selected event's start"],
  ["Esc", "clear selection and box"],
  ["Page up, Page down", "scroll the tracks"],
  ["Home, End", "start and end of the profile"],
  ["/", "search"],
  ["T", "put the focus into the timeline"],
  ["Z", "maximise or restore the active panel"],
  ["F6, Ctrl+], Ctrl+[", "next panel group, next and previous tab"],
  ["?", "this list"],
];

const POINTER: [string, string][] = [
  ["drag", "move"],
  ["drag the axis", "move along the time"],
  ["Ctrl + wheel", "zoom at the pointer"],
  ["Shift + wheel", "move along the time"],
  ["Shift + drag", "select a box; its sums are in Selection"],
  ["double click", "zoom to the event"],
  ["Ctrl + click", "source of the event"],
  ["right click", "annotation"],
];

function Help({ dialog }: { dialog: React.RefObject<HTMLDialogElement | null> }) {
  return (
    <dialog ref={dialog} aria-labelledby="help-title" className="help">
      <h2 id="help-title">Keys and pointer</h2>
      <div className="help-columns">
        {[KEYS, POINTER].map((list, index) => (
          <dl key={index}>
            {list.map(([key, text]) => (
              <div key={key}>
                <dt>
                  <kbd>{key}</kbd>
                </dt>
                <dd>{text}</dd>
              </div>
            ))}
          </dl>
        ))}
      </div>
      <form method="dialog">
        <button type="submit" className="primary">
          Close
        </button>
      </form>
    </dialog>
  );
}
