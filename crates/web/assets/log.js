// The output of an attempt: a window of at most 200 rows, which moves with the scroll position or follows the end. The lines
// around it have their room, so the scroll bar is that of the whole output.
import { base, keys, setText, toast } from "./page.js";
import { fragment } from "./live.js";

const MAX_ROWS = 200, ROW_PX = 18, PADDING_PX = 6;
/** Chromium scrolls to 2^24 pixels, and sometimes no further. */
const MAX_PX = 1.6e7;
/** Rows outside of the view that there should be before the next window is loaded, and before the view in that window. */
const SPARE_PX = 400, SPARE_ROWS = 80;
const params = new URLSearchParams(location.search);
const byId = (id) => document.getElementById(id);
const list = () => document.querySelector("#log .log");
const numberOf = (row) => +(row?.id.slice(1) ?? 0);
const lines = () => [...(list()?.querySelectorAll("li[id]") ?? [])];
/** How many lines the shown stream has, and which of them is the first row. */
const total = () => +(list()?.dataset.rows ?? 0);
const first = () => +(list()?.dataset.first ?? 1);
const isAtEnd = () => first() + lines().length > total();
const isRunning = () => "running" in list().dataset;
/** The row at the upper edge. */
const endOf = (row) => row.offsetTop + row.offsetHeight;
const topRow = () => lines().find((row) => endOf(row) > list().scrollTop);
const unit = () => Math.min(ROW_PX, MAX_PX / (total() || 1));
let isInterrupted = false, stream, loading = Promise.resolve(), isFollowing = false, isLoading = false, text = params.get("q") ?? "", hits = [], at = -1;
/** The line that was gone to, and how often that happened. */
let current = 0, jumps = 0;

const query = (more) => {
  const { job, attempt } = list().dataset;
  return new URLSearchParams(Object.entries({ job, attempt, stream: params.get("stream"), ...more }).filter(([, value]) => value));
};
const grouped = (number) => number.toLocaleString("en");
const showPlace = () => {
  const rows = lines(), place = list();
  place.style.setProperty("--above", `${(first() - 1) * unit()}px`);
  place.style.setProperty("--below", `${(total() - first() - rows.length + 1) * unit()}px`);
  setText(byId("log-place"), rows.length ? `lines ${grouped(numberOf(rows[0]))}–${grouped(numberOf(rows.at(-1)))} of ${grouped(Number(place.dataset.lines))}` : "no lines");
};

/** Marks the text that the reader looks for, without another element. */
const mark = () => {
  if (!globalThis.Highlight) return;
  const ranges = [];
  for (const code of text ? list().querySelectorAll("li code") : []) {
    const walker = document.createTreeWalker(code, NodeFilter.SHOW_TEXT);
    for (let node; (node = walker.nextNode());) {
      for (let from = -1; (from = node.data.indexOf(text, from + 1)) >= 0;) ranges.push(new StaticRange({ startContainer: node, startOffset: from, endContainer: node, endOffset: from + text.length }));
    }
  }
  CSS.highlights.set("found", new Highlight(...ranges));
};

const markCurrent = () => {
  list().querySelector(".current")?.classList.remove("current");
  byId(`L${current}`)?.classList.add("current");
};

/** Loads another window, and answers whether it could; the row under the eyes of the reader stays where it is. If it was not there, row `seen` comes there. */
const load = (more, seen) => {
  const asked = jumps;
  return (loading = loading.then(() => loadNow(more, seen, asked)));
};
const loadNow = async (more, seen, asked) => {
  // A window for a scroll position that the reader has left by going to a line would undo that.
  const isLate = () => seen && asked !== jumps;
  if (!list() || isLate()) return;
  isLoading = true;
  try {
    const response = await fetch(`${base}/live/rows?${query(more)}`);
    if (!response.ok) throw new Error(`The output cannot be read: status ${response.status}.`);
    const fresh = fragment(await response.text()).firstElementChild, old = list();
    if (isLate()) return;
    const anchor = topRow(), offset = anchor?.offsetTop - old.scrollTop;
    Object.assign(old.dataset, fresh.dataset);
    if (!("running" in fresh.dataset)) delete old.dataset.running;
    old.replaceChildren(...fresh.children);
    showPlace();
    const same = byId(anchor?.id), row = lines()[seen - first()];
    const by = same ? same.offsetTop - old.scrollTop - offset : row ? row.offsetTop - PADDING_PX - (seen - 1) * unit() : 0;
    if (Math.abs(by) >= 1) old.scrollTop += by;
    markCurrent();
    mark();
    return true;
  } catch (error) {
    toast(error.message, true);
  } finally {
    isLoading = false;
  }
};
const toEnd = () => list().scrollTo(0, 1e9);

const press = (name, isOn) => document.querySelector(`[data-log="${name}"]`)?.setAttribute("aria-pressed", isOn);
const add = ({ html, lines: count, rows: shown, skipped, over }) => {
  const place = list(), rows = [...fragment(html).children];
  if (skipped) place.replaceChildren();
  for (const row of rows) {
    const known = byId(row.id);
    if (known) known.replaceWith(row);
    else place.append(row);
  }
  while (place.childElementCount > MAX_ROWS) place.firstElementChild.remove();
  Object.assign(place.dataset, { lines: count, rows: shown, first: shown - lines().length + 1 });
  if (over) {
    delete place.dataset.running;
    stop();
  }
  showPlace();
  if (rows.length) toEnd();
  if (text) mark();
};
const stop = () => {
  stream?.close();
  isFollowing = false;
  press("follow", false);
};
const follow = async () => {
  if (!list()) return;
  stop();
  isInterrupted = false;
  if (!isAtEnd()) await load({});
  toEnd();
  if (!isRunning()) return;
  isFollowing = true;
  press("follow", true);
  // The last line may not have ended; it comes again.
  stream = new EventSource(`${base}/live/log?${query({ line: numberOf(lines().at(-1)) || "" })}`);
  stream.addEventListener("rows", (event) => add(JSON.parse(event.data)));
  for (const name of ["refused", "unreadable"]) {
    stream.addEventListener(name, (event) => {
      toast(JSON.parse(event.data).detail, true);
      stop();
    });
  }
  stream.addEventListener("error", () => {
    stop();
    // The page notices when the server is back.
    isInterrupted = true;
  });
};
let lastTop = 0;
const scrolled = async () => {
  const place = list(), rows = lines(), top = place.scrollTop, bottom = top + place.clientHeight;
  const isUp = top < lastTop, below = place.scrollHeight - bottom;
  lastTop = top;
  if (isFollowing && isUp && below > 60) stop();
  if (isFollowing || isLoading || !rows.length) return;
  const from = rows[0].offsetTop, to = endOf(rows.at(-1));
  if ((top < from + SPARE_PX && first() > 1) || (bottom > to - SPARE_PX && !isAtEnd())) {
    const seen = top >= from && top < to ? first() + rows.indexOf(topRow()) : Math.floor(top / unit()) + 1;
    const row = Math.max(1, Math.min(seen - SPARE_ROWS, total() - MAX_ROWS + 1));
    if (row === first()) return;
    await load({ row }, seen);
    // The reader may have scrolled meanwhile.
    if (first() === row) await scrolled();
  } else if (!isUp && below < 4 && isRunning()) follow();
};

/** Shows a line in the middle. */
const goTo = async (number) => {
  stop();
  jumps += 1;
  current = number;
  if (!byId(`L${number}`)) await load({ line: Math.max(1, number - MAX_ROWS / 2), q: text });
  markCurrent();
  byId(`L${number}`)?.scrollIntoView({ block: "center" });
};
const find = async (wanted) => {
  text = wanted;
  const url = new URL(location.href);
  if (text) url.searchParams.set("q", text);
  else url.searchParams.delete("q");
  history.replaceState(null, "", url);
  const top = topRow();
  jumps += 1;
  if (text) {
    if (!(await load({ q: text }))) return;
    hits = JSON.parse(`[${list().dataset.hits}]`);
    at = Math.max(0, hits.findIndex((hit) => hit >= numberOf(top)));
  } else hits = [];
  mark();
  await step(0);
};
const step = async (by) => {
  const place = byId("found");
  if (!hits.length) return setText(place, text ? "no match" : "");
  at = (at + by + hits.length) % hits.length;
  setText(place, `${at + 1} of ${grouped(hits.length)}`);
  await goTo(hits[at]);
};

const toggle = (name) => {
  const isOn = byId("log").classList.toggle(name);
  localStorage.setItem(`queuectl-log-${name}`, isOn ? "1" : "");
  press(name === "nowrap" ? "wrap" : name, name === "nowrap" ? !isOn : isOn);
};
const ACTS = { times: () => toggle("times"), wrap: () => toggle("nowrap"), follow: () => (isFollowing ? stop() : follow()), next: () => step(1), previous: () => step(-1) };
const attempt = (by) => {
  const links = [...document.querySelectorAll("#log-bar .attempts a")];
  links[links.findIndex((link) => link.ariaCurrent === "true") + by]?.click();
};
Object.assign(keys, { t: ACTS.times, w: ACTS.wrap, f: ACTS.follow, n: ACTS.next, N: ACTS.previous, "[": () => attempt(-1), "]": () => attempt(1) });

document.addEventListener("click", (event) => ACTS[event.target.closest("[data-log]")?.dataset.log]?.());
document.addEventListener("submit", (event) => {
  if (!event.target.closest("#log-bar .find") || !list()) return;
  event.preventDefault();
  const input = event.target.q;
  input.blur();
  find(input.value);
});

const begin = async () => {
  for (const name of ["times", "nowrap"]) if (byId("log") && localStorage.getItem(`queuectl-log-${name}`)) toggle(name);
  if (!list()) return;
  list().addEventListener("scroll", scrolled, { passive: true });
  showPlace();
  const line = Number(/^#L(\d+)$/.exec(location.hash)?.[1] ?? params.get("line") ?? 0);
  if (line) await goTo(line);
  else if (text) await find(text);
  else if (isRunning()) await follow();
  else toEnd();
};
document.addEventListener("swapped", async () => {
  const latest = document.querySelector("#log-bar .log-bar")?.dataset.latest;
  // A job that had not run yet, or whose output could not be read, has output now.
  if (latest && !list()) return byId("log") || location.reload();
  if (!latest || params.has("attempt")) return;
  if (latest !== list().dataset.attempt && (isFollowing || !isRunning())) {
    list().dataset.attempt = latest;
    list().replaceChildren();
    await load({});
    follow();
  } else if (isInterrupted && isRunning()) follow();
});
document.addEventListener("visibilitychange", () => {
  if (document.hidden && isFollowing) {
    stop();
    isInterrupted = true;
  } else if (!document.hidden && isInterrupted) follow();
});
begin();
