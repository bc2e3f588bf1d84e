// The output of an attempt: a window of at most 200 rows, which moves with the scroll position or follows the end.
import { base, keys, setText, toast } from "./page.js";
import { fragment } from "./live.js";

const MAX_ROWS = 200;
const params = new URLSearchParams(location.search);
const bar = () => document.querySelector("#log-bar .log-bar");
const list = () => document.querySelector("#log .log");
const numberOf = (row) => Number(row?.id.slice(1) ?? 0);
const lines = () => [...(list()?.querySelectorAll("li[id]") ?? [])];
const total = () => Number(list()?.dataset.lines ?? 0);
let stream, loading = Promise.resolve(), isFollowing = false, isLoading = false, text = params.get("q") ?? "", hits = [], at = -1;

const query = (more) => {
  const { job, attempt } = list().dataset;
  const all = { job, attempt, stream: params.get("stream") ?? "", ...more };
  return new URLSearchParams(Object.entries(all).filter(([, value]) => value !== ""));
};
const grouped = (number) => number.toLocaleString("en");
const showPlace = () => {
  const rows = lines();
  setText(document.getElementById("log-place"), rows.length ? `lines ${grouped(numberOf(rows[0]))}–${grouped(numberOf(rows.at(-1)))} of ${grouped(total())}` : "no lines");
  const empty = document.getElementById("log-empty");
  if (empty && rows.length) empty.remove();
  // Links of the page without scripts: here the window moves by itself.
  document.querySelectorAll("#log-pager a").forEach((link) => { link.hidden = true; });
};

/** Marks the text that the reader looks for, without another element. */
const mark = () => {
  if (!globalThis.Highlight) return;
  const ranges = [];
  for (const code of text ? list().querySelectorAll("li code") : []) {
    const walker = document.createTreeWalker(code, NodeFilter.SHOW_TEXT);
    for (let node = walker.nextNode(); node; node = walker.nextNode()) {
      for (let from = node.data.indexOf(text); from >= 0; from = node.data.indexOf(text, from + text.length)) {
        const range = new Range();
        range.setStart(node, from);
        range.setEnd(node, from + text.length);
        ranges.push(range);
      }
    }
  }
  CSS.highlights.set("found", new Highlight(...ranges));
};

/** Loads another window; the row under the eyes of the reader stays where it is. */
const load = (more) => (loading = loading.then(() => loadNow(more)));
const loadNow = async (more) => {
  if (!list()) return;
  isLoading = true;
  try {
    const response = await fetch(`${base}/live/rows?${query(more)}`);
    if (!response.ok) throw new Error(`The output cannot be read: status ${response.status}.`);
    const fresh = fragment(await response.text()).firstElementChild, old = list();
    const anchor = [...old.children].find((row) => row.id && row.offsetTop + row.offsetHeight > old.scrollTop);
    const offset = anchor ? anchor.offsetTop - old.scrollTop : 0;
    Object.assign(old.dataset, fresh.dataset);
    if (!("running" in fresh.dataset)) delete old.dataset.running;
    old.replaceChildren(...fresh.children);
    const same = anchor && document.getElementById(anchor.id);
    if (same) old.scrollTop = same.offsetTop - offset;
    showPlace();
    mark();
  } catch (error) {
    toast(error.message, true);
  } finally {
    isLoading = false;
  }
};
const toEnd = () => { list().scrollTop = list().scrollHeight; };

const press = (name, isOn) => document.querySelector(`[data-log="${name}"]`)?.setAttribute("aria-pressed", String(isOn));
const add = ({ html, lines: count, skipped, over }) => {
  const place = list(), rows = [...fragment(html).children];
  place.dataset.lines = count;
  if (skipped) place.replaceChildren();
  for (const row of rows) {
    const known = row.id && document.getElementById(row.id);
    if (known) known.replaceWith(row);
    else place.append(row);
  }
  while (place.childElementCount > MAX_ROWS) place.firstElementChild.remove();
  if (over) {
    delete place.dataset.running;
    stop();
  }
  if (rows.length) toEnd();
  showPlace();
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
  if (numberOf(lines().at(-1)) < total()) await load({});
  toEnd();
  if (!("running" in list().dataset)) return;
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
let isInterrupted = false;

let lastTop = 0;
const scrolled = async () => {
  const place = list();
  const isUp = place.scrollTop < lastTop;
  lastTop = place.scrollTop;
  const rows = lines(), first = numberOf(rows[0]), last = numberOf(rows.at(-1));
  const below = place.scrollHeight - place.scrollTop - place.clientHeight;
  if (isFollowing && isUp && below > 60) stop();
  if (isFollowing || isLoading) return;
  if (isUp && place.scrollTop < 400 && first > 1) await load({ line: Math.max(1, first - MAX_ROWS / 2) });
  else if (!isUp && below < 400 && last < total()) await load({ line: Math.max(1, Math.min(first + MAX_ROWS / 2, total() - MAX_ROWS + 1)) });
  else if (!isUp && below < 4 && last >= total() && "running" in place.dataset) follow();
};

/** Shows a line in the middle. */
const goTo = async (number) => {
  stop();
  if (!document.getElementById(`L${number}`)) await load({ line: Math.max(1, number - MAX_ROWS / 2), q: text });
  const row = document.getElementById(`L${number}`);
  list().querySelector(".current")?.classList.remove("current");
  row?.classList.add("current");
  row?.scrollIntoView({ block: "center" });
};
const find = async (wanted) => {
  text = wanted;
  const place = document.getElementById("found");
  const url = new URL(location.href);
  if (text) url.searchParams.set("q", text);
  else url.searchParams.delete("q");
  history.replaceState(null, "", url);
  const top = lines().find((row) => row.offsetTop >= list().scrollTop);
  if (text) {
    await load({ q: text });
    hits = (list().dataset.hits || "").split(",").filter(Boolean).map(Number);
    at = Math.max(0, hits.findIndex((hit) => hit >= numberOf(top)));
  } else hits = [];
  mark();
  await step(0);
  if (!text) setText(place, "");
};
const step = async (by) => {
  const place = document.getElementById("found");
  if (!hits.length) return setText(place, text ? "no match" : "");
  at = (at + by + hits.length) % hits.length;
  setText(place, `${at + 1} of ${grouped(hits.length)}`);
  await goTo(hits[at]);
};

const toggle = (name) => {
  const isOn = document.getElementById("log").classList.toggle(name);
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
  const input = event.target.querySelector("[type=search]");
  input.blur();
  find(input.value);
});

const begin = async () => {
  for (const name of ["times", "nowrap"]) if (localStorage.getItem(`queuectl-log-${name}`)) toggle(name);
  if (!list()) return;
  list().addEventListener("scroll", scrolled, { passive: true });
  showPlace();
  const line = Number(/^#L(\d+)$/.exec(location.hash)?.[1] ?? params.get("line") ?? 0);
  if (line) await goTo(line);
  else if (text) await find(text);
  else if ("running" in list().dataset) await follow();
  else toEnd();
};
document.addEventListener("swapped", async () => {
  const latest = bar()?.dataset.latest;
  // A job that had not run yet, or whose output could not be read, has output now.
  if (latest && !list()) return document.getElementById("log") || location.reload();
  if (!latest || params.has("attempt")) return;
  if (latest !== list().dataset.attempt && (isFollowing || !("running" in list().dataset))) {
    list().dataset.attempt = latest;
    list().dataset.lines = 0;
    list().replaceChildren();
    await load({});
    follow();
  } else if (isInterrupted && "running" in list().dataset) {
    isInterrupted = false;
    follow();
  }
});
document.addEventListener("visibilitychange", () => {
  if (document.hidden && isFollowing) {
    stop();
    isInterrupted = true;
  } else if (!document.hidden && isInterrupted) {
    isInterrupted = false;
    follow();
  }
});
begin();
