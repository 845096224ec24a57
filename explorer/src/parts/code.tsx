// Part of open-torch-neuronx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

import { python } from "@codemirror/lang-python";
import { defaultHighlightStyle, HighlightStyle, StreamLanguage, syntaxHighlighting } from "@codemirror/language";
import { highlightSelectionMatches, search, searchKeymap } from "@codemirror/search";
import { EditorState, type Extension, RangeSetBuilder, StateEffect, StateField } from "@codemirror/state";
import {
  Decoration,
  type DecorationSet,
  EditorView,
  GutterMarker,
  gutter,
  keymap,
  lineNumbers,
} from "@codemirror/view";
import { tags } from "@lezer/highlight";
import { useEffect, useRef } from "react";

/** MLIR as far as reading needs it: comments, strings, values, operations, types, numbers. */
const mlir = StreamLanguage.define({
  token(stream) {
    if (stream.match("//")) {
      stream.skipToEnd();
      return "comment";
    }
    if (stream.match(/^"(?:[^"\\]|\\.)*"/)) return "string";
    if (stream.match(/^[%#^@][\w.$-]+/)) return "variableName";
    if (stream.match(/^![\w.]+/)) return "typeName";
    if (stream.match(/^(?:tensor|memref|vector|index|i\d+|f\d+|bf16|f8\w*)\b/)) return "typeName";
    if (stream.match(/^(?:0x[0-9a-fA-F]+|-?\d+(?:\.\d+)?(?:[eE][-+]?\d+)?)/)) return "number";
    if (stream.match(/^[a-z_]+\.[\w.]+/)) return "keyword";
    if (stream.match(/^[A-Za-z_][\w$]*/)) return null;
    stream.next();
    return null;
  },
});

const colors = HighlightStyle.define([
  { tag: tags.keyword, color: "var(--code-keyword)" },
  { tag: [tags.string, tags.special(tags.string)], color: "var(--code-string)" },
  { tag: tags.comment, color: "var(--code-comment)" },
  { tag: tags.number, color: "var(--code-number)" },
  { tag: [tags.typeName, tags.className], color: "var(--code-type)" },
  { tag: tags.function(tags.variableName), color: "var(--code-function)" },
]);

const theme = EditorView.theme({
  "&": { height: "100%", fontSize: "12px", backgroundColor: "var(--panel)", color: "var(--text)" },
  ".cm-scroller": { fontFamily: "ui-monospace, 'DejaVu Sans Mono', monospace" },
  ".cm-gutters": { backgroundColor: "var(--panel)", color: "var(--muted)", borderRight: "1px solid var(--line)" },
  ".cm-cursor": { borderLeftColor: "var(--text)" },
  ".cm-selectionBackground": { backgroundColor: "var(--select) !important" },
  ".cm-panels": { backgroundColor: "var(--background)", color: "var(--text)" },
});

export interface LineNote {
  text: string;
  title: string;
  share: number;
}

class NoteMarker extends GutterMarker {
  private readonly note: LineNote;
  constructor(note: LineNote) {
    super();
    this.note = note;
  }
  override toDOM(): Node {
    const element = document.createElement("span");
    element.className = "line-note";
    element.textContent = this.note.text;
    element.title = this.note.title;
    element.style.setProperty("--share", String(this.note.share));
    return element;
  }
  override eq(other: NoteMarker): boolean {
    return other.note.text === this.note.text && other.note.share === this.note.share;
  }
}

const mark = StateEffect.define<readonly number[]>();
const marked = StateField.define<DecorationSet>({
  create: () => Decoration.none,
  update(value, transaction) {
    for (const effect of transaction.effects) {
      if (!effect.is(mark)) continue;
      const builder = new RangeSetBuilder<Decoration>();
      for (const line of [...new Set(effect.value)].sort((a, b) => a - b)) {
        if (line < 1 || line > transaction.state.doc.lines) continue;
        const at = transaction.state.doc.line(line).from;
        builder.add(at, at, Decoration.line({ class: "marked-line" }));
      }
      return builder.finish();
    }
    return value.map(transaction.changes);
  },
  provide: (field) => EditorView.decorations.from(field),
});

interface CodeProps {
  label: string;
  text: string;
  language: "python" | "mlir";
  notes?: ReadonlyMap<number, LineNote>;
  lines: readonly number[];
  onLine?: (line: number) => void;
}

/** Text that is read, not written: line notes in a gutter, marked lines, search with Ctrl+F. */
export default function Code({ label, text, language, notes, lines, onLine }: CodeProps) {
  const root = useRef<HTMLDivElement>(null);
  const view = useRef<EditorView | null>(null);
  const chosen = useRef(onLine);
  chosen.current = onLine;

  useEffect(() => {
    const extensions: Extension[] = [
      lineNumbers(),
      theme,
      syntaxHighlighting(colors),
      syntaxHighlighting(defaultHighlightStyle, { fallback: true }),
      language === "python" ? python() : mlir,
      EditorState.readOnly.of(true),
      EditorView.contentAttributes.of({ "aria-label": label }),
      search({ top: true }),
      highlightSelectionMatches(),
      keymap.of([
        ...searchKeymap,
        {
          key: "Enter",
          run: (editor) => {
            chosen.current?.(editor.state.doc.lineAt(editor.state.selection.main.head).number);
            return true;
          },
        },
      ]),
      marked,
      EditorView.domEventHandlers({
        click: (event, editor) => {
          const at = editor.posAtCoords({ x: event.clientX, y: event.clientY });
          if (at !== null) chosen.current?.(editor.state.doc.lineAt(at).number);
        },
      }),
    ];
    if (notes) {
      extensions.unshift(
        gutter({
          class: "note-gutter",
          lineMarker: (editor, block) => {
            const note = notes.get(editor.state.doc.lineAt(block.from).number);
            return note ? new NoteMarker(note) : null;
          },
          initialSpacer: () => new NoteMarker({ text: "0000× 000.0 µs", title: "", share: 0 }),
        }),
      );
    }
    const editor = new EditorView({ doc: text, extensions, parent: root.current! });
    // Text that does not fit must be reachable with the keyboard alone.
    editor.scrollDOM.tabIndex = 0;
    view.current = editor;
    // Aliases of locations come before the program.
    const program = /^(?!#|$)/m.exec(text)?.index ?? 0;
    if (language === "mlir" && program)
      editor.dispatch({ effects: EditorView.scrollIntoView(program, { y: "start" }) });
    return () => editor.destroy();
  }, [label, text, language, notes]);

  useEffect(() => {
    const editor = view.current;
    if (!editor) return;
    const effects: StateEffect<unknown>[] = [mark.of(lines)];
    const first = lines.find((line) => line >= 1 && line <= editor.state.doc.lines);
    if (first) effects.push(EditorView.scrollIntoView(editor.state.doc.line(first).from, { y: "center" }));
    editor.dispatch({ effects });
  }, [lines, text, notes]);

  return <div className="code" ref={root} />;
}
