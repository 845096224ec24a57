// Part of open-torch-neuronx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

import { type DragEvent, useCallback, useEffect, useRef, useState } from "react";
import type { DataSource, ProfileEntry } from "../data/source";
import { bytes } from "../format";
import { go } from "../route";
import { notify } from "../session";

const TABS = ["All", "Favourites", "Recently viewed"] as const;
const VIEWED = "neuron-explorer.viewed";

export function viewed(): string[] {
  try {
    const list = JSON.parse(localStorage.getItem(VIEWED) ?? "[]");
    return Array.isArray(list) ? list.filter((entry) => typeof entry === "string") : [];
  } catch {
    return [];
  }
}

export function noteViewed(name: string): void {
  try {
    localStorage.setItem(VIEWED, JSON.stringify([name, ...viewed().filter((entry) => entry !== name)].slice(0, 20)));
  } catch {
    // The list of what was viewed is a convenience only.
  }
}

export function ManagerPage({ source }: { source: DataSource }) {
  const [entries, setEntries] = useState<ProfileEntry[] | null>(null);
  const [dataPath, setDataPath] = useState("");
  const [error, setError] = useState("");
  const [text, setText] = useState("");
  const [tab, setTab] = useState<(typeof TABS)[number]>("All");
  const [folder, setFolder] = useState("");
  const [compare, setCompare] = useState<readonly string[]>([]);

  const reload = useCallback(async () => {
    try {
      const found = await source.profiles();
      setEntries(found.profiles);
      setDataPath(found.data_path);
      setError("");
    } catch (reason) {
      setError((reason as Error).message);
    }
  }, [source]);

  useEffect(() => {
    reload();
  }, [reload]);
  const busy = entries?.some((entry) => entry.status === "PROCESSING");
  useEffect(() => {
    if (!busy) return;
    const timer = setInterval(reload, 1500);
    return () => clearInterval(timer);
  }, [busy, reload]);

  const recent = viewed();
  const wanted = text.trim().toLowerCase();
  const folders = [...new Set((entries ?? []).map((entry) => entry.folder).filter(Boolean))] as string[];
  const shown = (entries ?? [])
    .filter(
      (entry) =>
        !wanted ||
        [entry.name, entry.kind, entry.folder ?? "", ...entry.tags].some((value) =>
          value.toLowerCase().includes(wanted),
        ),
    )
    .filter((entry) => !folder || entry.folder === folder)
    .filter((entry) => tab !== "Favourites" || entry.favourite)
    .filter((entry) => tab !== "Recently viewed" || recent.includes(entry.name));
  if (tab === "Recently viewed") shown.sort((a, b) => recent.indexOf(a.name) - recent.indexOf(b.name));

  return (
    <main className="manager" tabIndex={0}>
      <div className="manager-head">
        <div>
          <h1>Profiles</h1>
          {dataPath && <p className="muted">{dataPath}</p>}
        </div>
        <span className="spacer" />
        {compare.length === 2 && (
          <button
            type="button"
            className="primary"
            onClick={() => go({ page: "compare", query: { a: compare[0], b: compare[1] } })}
          >
            Compare the two
          </button>
        )}
      </div>
      {error && (
        <p className="error" role="alert">
          {error}
        </p>
      )}
      <div className="table-tools">
        <div role="group" aria-label="List" className="segments">
          {TABS.map((name) => (
            <button key={name} type="button" aria-pressed={tab === name} onClick={() => setTab(name)}>
              {name}
            </button>
          ))}
        </div>
        {folders.length > 0 && (
          <select aria-label="Folder" value={folder} onChange={(event) => setFolder(event.target.value)}>
            <option value="">all folders</option>
            {folders.map((name) => (
              <option key={name}>{name}</option>
            ))}
          </select>
        )}
        <input
          type="search"
          placeholder="Search names and tags"
          aria-label="Search profiles"
          value={text}
          onChange={(event) => setText(event.target.value)}
        />
      </div>
      {entries && shown.length === 0 && (
        <div className="empty">
          <strong>{entries.length ? "Nothing matches." : "There are no profiles yet."}</strong>
          {!entries.length && (
            <p>Upload the files of a capture below, or run neuron-explorer view --session-dir FOLDER.</p>
          )}
        </div>
      )}
      {shown.length > 0 && (
        <table className="plain profiles">
          <thead>
            <tr>
              <th>
                <span className="visually-hidden">Favourite</span>
              </th>
              <th>Name</th>
              <th>Status</th>
              <th>Type</th>
              <th>Tags</th>
              <th>Created</th>
              <th>Actions</th>
            </tr>
          </thead>
          <tbody>
            {shown.map((entry) => (
              <ProfileRow
                key={entry.name}
                entry={entry}
                source={source}
                reload={reload}
                chosen={compare}
                onChoose={(id) =>
                  setCompare((now) => (now.includes(id) ? now.filter((other) => other !== id) : [...now, id].slice(-2)))
                }
              />
            ))}
          </tbody>
        </table>
      )}
      {source.canWrite && <Upload source={source} reload={reload} />}
    </main>
  );
}

function ProfileRow({
  entry,
  source,
  reload,
  chosen,
  onChoose,
}: {
  entry: ProfileEntry;
  source: DataSource;
  reload: () => Promise<void>;
  chosen: readonly string[];
  onChoose: (id: string) => void;
}) {
  const dialog = useRef<HTMLDialogElement>(null);
  const editor = useRef<HTMLDialogElement>(null);
  const [typed, setTyped] = useState("");
  const [tags, setTags] = useState(entry.tags.join(", "));
  const [folder, setFolder] = useState(entry.folder ?? "");
  const ready = entry.status === "PROCESSED";
  const act = async (change: () => Promise<void>) => {
    try {
      await change();
      await reload();
    } catch (error) {
      notify((error as Error).message);
    }
  };
  const first = entry.has_system ? "system" : (entry.devices[0] ?? "");
  const id = `${entry.name}/${entry.devices[0] ?? first}`;
  return (
    <tr>
      <td>
        <button
          type="button"
          className="star"
          aria-pressed={entry.favourite}
          aria-label={`Favourite ${entry.name}`}
          disabled={!ready || !source.canWrite}
          onClick={() => act(() => source.update(entry.name, { favourite: !entry.favourite }))}
        >
          {entry.favourite ? "★" : "☆"}
        </button>
      </td>
      <td>
        {ready ? <a href={`#/p/${encodeURIComponent(entry.name)}`}>{entry.name}</a> : entry.name}
        {entry.folder && <span className="muted"> in {entry.folder}</span>}
        {entry.message && <pre className="error">{entry.message}</pre>}
        {entry.warnings.length > 0 && <div className="muted">{entry.warnings.length} warnings</div>}
      </td>
      <td>
        <span className={`status ${entry.status.toLowerCase()}`}>{entry.status}</span>
      </td>
      <td>{entry.kind}</td>
      <td>
        {entry.tags.map((tag) => (
          <span className="badge" key={tag}>
            {tag}
          </span>
        ))}
      </td>
      <td className="muted">{created(entry.created)}</td>
      <td className="actions">
        {ready && entry.devices.length > 0 && (
          <label>
            <input type="checkbox" checked={chosen.includes(id)} onChange={() => onChoose(id)} /> compare
          </label>
        )}
        {source.canWrite && (
          <>
            {ready && (
              <button type="button" className="quiet" onClick={() => editor.current?.showModal()}>
                Edit
              </button>
            )}
            {entry.status === "UPLOADED" && (
              <button type="button" className="quiet" onClick={() => act(() => source.process(entry.name, {}))}>
                Process
              </button>
            )}
            <button
              type="button"
              className="quiet"
              onClick={() => {
                setTyped("");
                dialog.current?.showModal();
              }}
            >
              Delete
            </button>
          </>
        )}
        <dialog ref={dialog} aria-label={`Delete ${entry.name}`}>
          <form
            method="dialog"
            onSubmit={() => {
              if (typed === "delete") act(() => source.remove(entry.name));
            }}
          >
            <h2>Delete {entry.name}?</h2>
            <p>
              Its tables and annotations are removed from the data folder. The capture's own files stay where they are.
            </p>
            <label>
              Type <code>delete</code> to confirm{" "}
              <input value={typed} onChange={(event) => setTyped(event.target.value)} />
            </label>
            <div className="buttons">
              <button type="button" onClick={() => dialog.current?.close()}>
                Cancel
              </button>
              <button type="submit" className="danger" disabled={typed !== "delete"}>
                Delete
              </button>
            </div>
          </form>
        </dialog>
        <dialog ref={editor} aria-label={`Edit ${entry.name}`}>
          <form
            method="dialog"
            onSubmit={() =>
              act(() =>
                source.update(entry.name, {
                  tags: tags
                    .split(",")
                    .map((tag) => tag.trim())
                    .filter(Boolean),
                  folder: folder.trim(),
                }),
              )
            }
          >
            <h2>{entry.name}</h2>
            <label>
              Tags, with commas <input value={tags} onChange={(event) => setTags(event.target.value)} />
            </label>
            <label>
              Folder{" "}
              <input
                value={folder}
                maxLength={100}
                pattern="[^\s\/]*"
                onChange={(event) => setFolder(event.target.value)}
              />
            </label>
            <div className="buttons">
              <button type="button" onClick={() => editor.current?.close()}>
                Cancel
              </button>
              <button type="submit" className="primary">
                Save
              </button>
            </div>
          </form>
        </dialog>
      </td>
    </tr>
  );
}

function created(value: ProfileEntry["created"]): string {
  if (value === null || value === undefined) return "";
  const date = new Date(typeof value === "number" ? value * 1000 : value);
  return Number.isNaN(date.getTime()) ? String(value) : date.toISOString().slice(0, 16).replace("T", " ");
}

interface Chosen {
  path: string;
  file: File;
}

/** Files of a dropped folder with their paths below it. */
async function droppedFiles(event: DragEvent): Promise<Chosen[]> {
  const found: Chosen[] = [];
  const walk = async (entry: FileSystemEntry, path: string): Promise<void> => {
    if (entry.isFile) {
      const file = await new Promise<File>((resolve, reject) => (entry as FileSystemFileEntry).file(resolve, reject));
      found.push({ path: path + file.name, file });
      return;
    }
    const reader = (entry as FileSystemDirectoryEntry).createReader();
    for (;;) {
      const batch = await new Promise<FileSystemEntry[]>((resolve, reject) => reader.readEntries(resolve, reject));
      if (!batch.length) return;
      for (const child of batch) await walk(child, `${path}${entry.name}/`);
    }
  };
  const entries = [...event.dataTransfer.items]
    .map((item) => item.webkitGetAsEntry())
    .filter((entry) => entry !== null);
  for (const entry of entries) await walk(entry, "");
  return found;
}

const WANTED = /\.(neff|ntff|pb|json|py|txt|mlir)$/;

function Upload({ source, reload }: { source: DataSource; reload: () => Promise<void> }) {
  const [files, setFiles] = useState<Chosen[]>([]);
  const [name, setName] = useState("");
  const [tags, setTags] = useState("");
  const [folder, setFolder] = useState("");
  const [sent, setSent] = useState<{ bytes: number; total: number } | null>(null);
  const [error, setError] = useState("");
  const [over, setOver] = useState(false);

  const take = (list: Chosen[]) => {
    const wanted = list.filter((entry) => WANTED.test(entry.path));
    setFiles(wanted);
    setError(
      wanted.length || !list.length ? "" : `none of the ${list.length} files is a .neff, .ntff, .pb or trace.json`,
    );
    if (!name && wanted.length) {
      const stem = wanted[0].path.includes("/")
        ? wanted[0].path.split("/")[0]
        : wanted[0].file.name.replace(/\.[^.]+$/, "");
      setName(stem.replace(/[^A-Za-z0-9_.@+-]+/g, "-").slice(0, 150));
    }
  };

  const send = async () => {
    setError("");
    const total = files.reduce((sum, entry) => sum + entry.file.size, 0);
    let done = 0;
    try {
      for (const { path, file } of files) {
        setSent({ bytes: done, total });
        await source.upload(name, path, file, (bytesSent) => setSent({ bytes: done + bytesSent, total }));
        done += file.size;
      }
      const list = tags
        .split(",")
        .map((tag) => tag.trim())
        .filter(Boolean);
      await source.process(name, { tags: list, folder: folder.trim() || undefined });
      setFiles([]);
      setName("");
    } catch (reason) {
      setError((reason as Error).message);
    }
    setSent(null);
    await reload();
  };

  return (
    <section className="upload">
      <h2>Upload a capture</h2>
      <form
        onSubmit={(event) => {
          event.preventDefault();
          send();
        }}
      >
        <div
          className={`drop${over ? " over" : ""}`}
          onDragOver={(event) => {
            event.preventDefault();
            setOver(true);
          }}
          onDragLeave={() => setOver(false)}
          onDrop={(event) => {
            event.preventDefault();
            setOver(false);
            droppedFiles(event).then(take, (reason: Error) => setError(reason.message));
          }}
        >
          <p>Drop a session folder, or a NEFF and its NTFF, here</p>
          <label className="button">
            Choose files
            <input
              type="file"
              multiple
              className="visually-hidden"
              onChange={(event) => take([...(event.target.files ?? [])].map((file) => ({ path: file.name, file })))}
            />
          </label>
          <label className="button">
            Choose a folder
            <input
              type="file"
              multiple
              className="visually-hidden"
              ref={(element) => element?.setAttribute("webkitdirectory", "")}
              onChange={(event) =>
                take(
                  [...(event.target.files ?? [])].map((file) => ({ path: file.webkitRelativePath || file.name, file })),
                )
              }
            />
          </label>
          {files.length > 0 && (
            <ul>
              {files.slice(0, 12).map((entry) => (
                <li key={entry.path}>
                  {entry.path} <span className="muted">{bytes(entry.file.size)}</span>
                </li>
              ))}
              {files.length > 12 && <li>and {files.length - 12} more</li>}
            </ul>
          )}
        </div>
        <div className="upload-fields">
          <label>
            Name{" "}
            <input
              required
              maxLength={150}
              pattern="[A-Za-z0-9_][A-Za-z0-9_.@+\-]*"
              title="letters, digits and _.@+-"
              value={name}
              onChange={(event) => setName(event.target.value)}
            />
          </label>
          <label>
            Tags <input placeholder="with commas" value={tags} onChange={(event) => setTags(event.target.value)} />
          </label>
          <label>
            Folder{" "}
            <input
              maxLength={100}
              pattern="[^\s\/]*"
              title="no spaces"
              value={folder}
              onChange={(event) => setFolder(event.target.value)}
            />
          </label>
          <button type="submit" className="primary" disabled={!files.length || !name || sent !== null}>
            Upload
          </button>
        </div>
        {sent && <progress aria-label="Upload" value={sent.bytes} max={Math.max(1, sent.total)} />}
        {error && (
          <p className="error" role="alert">
            {error}
          </p>
        )}
      </form>
    </section>
  );
}
