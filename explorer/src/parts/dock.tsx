// Part of open-torch-neuronx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

import { createDockview, type DockviewApi, type IContentRenderer, type ITabRenderer } from "dockview";
import "dockview/dist/styles/dockview.css";
import { type ReactNode, useEffect, useRef, useState } from "react";
import { createPortal } from "react-dom";
import { notify, type Session } from "../session";
import { useStore } from "../store";
import { PanelVisible } from "./common";

export interface PanelKind {
  id: string;
  title: string;
  content: ReactNode;
}

const LAYOUTS = "neuron-explorer.layouts";

/** Where panels stand at first: beside the timeline what is looked at together with it, below it what needs width. */
function arrange(api: DockviewApi, panels: PanelKind[], system: boolean): void {
  api.clear();
  const title = (id: string) => panels.find((panel) => panel.id === id)?.title ?? id;
  const has = (id: string) => panels.some((panel) => panel.id === id);
  const add = (id: string, position?: object, size?: object) =>
    has(id) &&
    api.addPanel({
      id,
      component: id,
      tabComponent: "tab",
      title: title(id),
      ...(position ? { position: position as never } : {}),
      ...size,
    });
  add("timeline");
  const below = system
    ? ["statistics", "devices", "annotations", "tables"]
    : [
        "operators",
        "hierarchy",
        "roofline",
        "critical",
        "memory",
        "statistics",
        "tensors",
        "annotations",
        "regions",
        "tables",
      ];
  const beside = system ? ["details", "chain", "search"] : ["details", "search", "source", "ir"];
  add(
    below[0],
    { referencePanel: "timeline", direction: "below" },
    { initialHeight: Math.round(window.innerHeight * 0.36) },
  );
  for (const id of below.slice(1)) add(id, { referencePanel: below[0], direction: "within" }, { inactive: true });
  add(
    beside[0],
    { referencePanel: "timeline", direction: "right" },
    { initialWidth: Math.max(320, Math.min(520, Math.round(window.innerWidth * 0.27))) },
  );
  for (const id of beside.slice(1)) add(id, { referencePanel: beside[0], direction: "within" }, { inactive: true });
  api.getPanel("timeline")?.api.setActive();
}

function kept(): Record<string, unknown> {
  try {
    return JSON.parse(localStorage.getItem(LAYOUTS) ?? "{}");
  } catch {
    return {};
  }
}

function keep(layouts: Record<string, unknown>): void {
  try {
    localStorage.setItem(LAYOUTS, JSON.stringify(layouts));
  } catch {
    notify("the browser refuses to keep the layout");
  }
}

export interface DockHandle {
  open(id: string): void;
  reset(): void;
  save(name: string): void;
  load(name: string): void;
  remove(name: string): void;
  names(): string[];
  toggleMaximised(): void;
}

/** Panels that can be dragged, resized, tabbed and maximised. */
export function Dock({
  session,
  panels,
  onReady,
}: {
  session: Session;
  panels: PanelKind[];
  onReady: (dock: DockHandle) => void;
}) {
  const root = useRef<HTMLDivElement>(null);
  const api = useRef<DockviewApi | null>(null);
  const [places, setPlaces] = useState<ReadonlyMap<string, HTMLElement>>(new Map());
  const [visible, setVisible] = useState<ReadonlySet<string>>(new Set());
  const request = useStore(session.request);
  const isPainted = useStore(session.isPainted);

  useEffect(() => {
    const elements = new Map<string, HTMLElement>();
    const seen = new Set<string>();
    // Outside of the document until all panels are there: each one added would cost a layout of the page.
    const place = root.current!;
    const stage = document.createElement("div");
    stage.className = "dock-stage";
    const made = createDockview(stage, {
      className: "dock",
      theme: { name: "explorer", className: "dock-theme", gap: 6 } as never,
      disableFloatingGroups: true,
      createComponent: ({ name }): IContentRenderer => {
        const element = document.createElement("div");
        element.className = "dock-panel";
        element.dataset.panel = name;
        return {
          element,
          // What has never been in view asks for no data: the first paint waits for nothing hidden.
          init: ({ api: panel }) => {
            const publish = () => {
              const shown = panel.isVisible;
              if (shown !== seen.has(name)) {
                if (shown) seen.add(name);
                else seen.delete(name);
                setVisible(new Set(seen));
              }
              if (!shown || elements.get(name) === element) return;
              elements.set(name, element);
              setPlaces(new Map(elements));
            };
            panel.onDidVisibilityChange(publish);
            // While panels are added each is in view for a moment: what counts is how it stands when all are there.
            queueMicrotask(publish);
          },
          dispose: () => {
            if (elements.get(name) === element) {
              elements.delete(name);
              seen.delete(name);
            }
            setPlaces(new Map(elements));
          },
        };
      },
      // Without the close button of the default: buttons inside of tabs cannot be reached by assistive technology.
      createTabComponent: (): ITabRenderer => {
        const element = document.createElement("div");
        element.className = "dock-tab";
        return {
          element,
          init: ({ title, api: panel }) => {
            element.textContent = title;
            element.addEventListener("dblclick", () =>
              panel.isMaximized() ? panel.exitMaximized() : panel.maximize(),
            );
          },
        };
      },
    });
    api.current = made;
    made.layout(place.clientWidth, place.clientHeight);
    const system = session.isSystem;
    const name = (text: string) => `${system ? "system" : "device"}:${text}`;
    const apply = (text: string) => {
      const found = kept()[name(text)];
      try {
        if (!found) throw new Error("not kept");
        made.fromJSON(found as never);
      } catch {
        arrange(made, panels, system);
      }
    };
    if (kept()[name("")]) apply("");
    else arrange(made, panels, system);
    place.append(stage);
    let timer = 0;
    const changed = made.onDidLayoutChange(() => {
      clearTimeout(timer);
      timer = window.setTimeout(() => {
        if (!made.hasMaximizedGroup()) keep({ ...kept(), [name("")]: made.toJSON() });
      }, 500);
    });
    onReady({
      open: (id) => {
        const panel = made.getPanel(id);
        if (panel) panel.api.setActive();
        else {
          const kind = panels.find((entry) => entry.id === id);
          if (kind) made.addPanel({ id, component: id, tabComponent: "tab", title: kind.title });
        }
      },
      reset: () => arrange(made, panels, system),
      save: (text) => keep({ ...kept(), [name(text)]: made.toJSON() }),
      load: apply,
      remove: (text) => {
        const { [name(text)]: _, ...rest } = kept();
        keep(rest);
      },
      names: () =>
        Object.keys(kept())
          .filter((key) => key.startsWith(name("")) && key !== name(""))
          .map((key) => key.slice(name("").length)),
      toggleMaximised: () => {
        if (made.hasMaximizedGroup()) made.exitMaximizedGroup();
        else if (made.activePanel) made.maximizeGroup(made.activePanel);
      },
    });
    return () => {
      clearTimeout(timer);
      changed.dispose();
      made.dispose();
      stage.remove();
      api.current = null;
    };
  }, [session]);

  useEffect(() => {
    if (!request) return;
    const panel = api.current?.getPanel(request.panel);
    // Details must not take the place of what the user looks at in the same group on every click.
    if (
      panel &&
      !(
        request.panel === "details" &&
        panel.group.activePanel &&
        ["source", "ir", "chain"].includes(panel.group.activePanel.id)
      )
    ) {
      const active = document.activeElement as HTMLElement | null;
      panel.api.setActive();
      if (active?.closest(".timeline")) active.focus();
    }
  }, [request]);

  return (
    <>
      <div className="dock-root" ref={root} />
      {panels.map((panel) => {
        const place = places.get(panel.id);
        // The timeline is what people wait for.
        return place && (isPainted || panel.id === "timeline")
          ? createPortal(<PanelVisible value={visible.has(panel.id)}>{panel.content}</PanelVisible>, place, panel.id)
          : null;
      })}
    </>
  );
}
