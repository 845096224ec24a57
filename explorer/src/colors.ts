// Part of open-torch-neuronx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

/** Colours of slices. Neighbouring indices differ in hue; the lightness suits the theme. */

const HUES = [212, 28, 152, 276, 338, 188, 48, 120, 248, 8, 168, 300, 72, 228, 20, 320];

export interface Theme {
  dark: boolean;
  background: string;
  panel: string;
  text: string;
  muted: string;
  line: string;
  accent: string;
  selection: string;
  flow: string;
  warning: string;
}

/** The colours of the page. Of the document, as an element of a panel behind a tab is not in it and has no style. */
export function readTheme(): Theme {
  const style = getComputedStyle(document.documentElement);
  const value = (name: string) => style.getPropertyValue(name).trim();
  return {
    dark: value("--dark") === "1",
    background: value("--background"),
    panel: value("--panel"),
    text: value("--text"),
    muted: value("--muted"),
    line: value("--line"),
    accent: value("--accent"),
    selection: value("--selection"),
    flow: value("--flow"),
    warning: value("--warning"),
  };
}

function hslToRgb(h: number, s: number, l: number): [number, number, number] {
  const channel = (n: number) => {
    const k = (n + h / 30) % 12;
    return Math.round(255 * (l - s * Math.min(l, 1 - l) * Math.max(-1, Math.min(k - 3, 9 - k, 1))));
  };
  return [channel(0), channel(8), channel(4)];
}

function rgbOf(index: number, dark: boolean): [number, number, number] {
  const hue = HUES[index % HUES.length];
  const turn = Math.floor(index / HUES.length) % 3;
  const saturation = [0.62, 0.38, 0.5][turn];
  const lightness = dark ? [0.5, 0.58, 0.42][turn] : [0.6, 0.7, 0.5][turn];
  return hslToRgb(hue, saturation, lightness);
}

/** Whether the page is dark now. */
export function isDark(): boolean {
  return getComputedStyle(document.documentElement).getPropertyValue("--dark").trim() === "1";
}

export interface Palette {
  /** ABGR, as pixels of a canvas lie in memory. */
  pixels: Uint32Array;
  /** The same over the panel's colour, without transparency. */
  opaque: Uint32Array;
  css: string[];
  text: string[];
  counter: number;
  warning: number;
  /** The panel's colour. */
  background: number;
}

/** "#rrggbb", or "#rgb" as a build shortens it, as an opaque pixel lies in memory. */
export function colorOf(color: string): number {
  const digits = /^#([0-9a-f]{3}|[0-9a-f]{6})$/i.exec(color.trim())?.[1];
  if (!digits) throw new Error(`expected a colour as #rgb or #rrggbb but got ${JSON.stringify(color)}`);
  const value = Number.parseInt(digits.length === 3 ? digits.replace(/./g, "$&$&") : digits, 16);
  return ((0xff << 24) | ((value & 0xff) << 16) | (value & 0xff00) | (value >> 16)) >>> 0;
}

/** An opaque pixel: `color` over `ground`, covering `share` of it. */
export function blend(color: number, share: number, ground: number): number {
  const part = Math.round(share * 256);
  const blue = ((ground >>> 16) & 0xff) * (256 - part) + ((color >>> 16) & 0xff) * part;
  const green = ((ground >>> 8) & 0xff) * (256 - part) + ((color >>> 8) & 0xff) * part;
  const red = (ground & 0xff) * (256 - part) + (color & 0xff) * part;
  return ((0xff << 24) | ((blue >>> 8) << 16) | (green & 0xff00) | (red >>> 8)) >>> 0;
}

const FADED = 50;

/** One colour per name; names outside of `highlighted`, if it is given, are faded. */
export function makePalette(names: readonly string[], theme: Theme, highlighted?: ReadonlySet<string> | null): Palette {
  const pixels = new Uint32Array(Math.max(1, names.length));
  const background = colorOf(theme.panel);
  const css: string[] = [];
  const text: string[] = [];
  names.forEach((name, index) => {
    const grey = name === "(none)" || name === "(others)";
    const [r, g, b] = grey ? (theme.dark ? [104, 112, 122] : [168, 174, 182]) : rgbOf(index, theme.dark);
    const alpha = highlighted && !highlighted.has(name) ? FADED : 255;
    pixels[index] = ((alpha << 24) | (b << 16) | (g << 8) | r) >>> 0;
    css.push(alpha === 255 ? `rgb(${r},${g},${b})` : `rgba(${r},${g},${b},${alpha / 255})`);
    const light = (0.299 * r + 0.587 * g + 0.114 * b) / 255;
    text.push(alpha < 255 ? theme.muted : light > 0.52 ? "#10151c" : "#ffffff");
  });
  const opaque = pixels.map((color) => blend(color, (color >>> 24) / 255, background));
  return { pixels, opaque, css, text, counter: colorOf(theme.accent), warning: colorOf(theme.warning), background };
}

/** For charts and legends. */
export function seriesColor(index: number, dark: boolean): string {
  const [r, g, b] = rgbOf(index, dark);
  return `rgb(${r},${g},${b})`;
}

/** Black or white, whichever is easier to read on that colour. */
export function textOn(index: number, dark: boolean): string {
  const linear = rgbOf(index, dark).map((value) => (value / 255) ** 2.2);
  const luminance = 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2];
  // Where the contrasts with black and with white are the same.
  return luminance > 0.179 ? "#10151c" : "#ffffff";
}
