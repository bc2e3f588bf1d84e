// The palette and the list of keys.
import { ask, base, el } from "./page.js";

const get = async (path) => {
  try {
    const response = await fetch(`${base}/api/v1/${path}`);
    return response.ok ? await response.json() : [];
  } catch {
    return [];
  }
};
const link = (name, path) => ({ name, href: base + path });
const pages = () => [...document.querySelectorAll("#rail nav a:not(.brand)")].map((one) => ({ name: one.querySelector(".name").textContent, href: one.href }));
/** What the page itself offers: its buttons outside of rows, and switches of the frame. */
const actions = () => [...document.querySelectorAll("main section:not(#jobs) .actions > button[data-act], #theme, #help")].map((button) => ({ name: button.getAttribute("aria-label") ?? button.textContent, run: () => button.click() }));

export const openPalette = () => {
  const input = el("input", { type: "search", placeholder: "a page, a job by number or id, a queue, an action", autocomplete: "off" });
  input.setAttribute("aria-label", "Go to");
  input.setAttribute("role", "combobox");
  input.setAttribute("aria-expanded", "true");
  input.setAttribute("aria-controls", "palette-list");
  const list = el("ul", { id: "palette-list" });
  list.setAttribute("role", "listbox");
  list.setAttribute("aria-label", "Places");
  const fixed = [...pages(), ...actions()];
  let chosen = 0, found = [], queues = [], ids = [];
  const entries = () => {
    const typed = input.value.trim(), small = typed.toLowerCase();
    const named = fixed.filter((entry) => entry.name.toLowerCase().includes(small));
    if (!typed) return named;
    return [...named,
      ...queues.filter((name) => name.includes(typed)).slice(0, 5).map((name) => link(`Queue ${name}`, `/queues/${encodeURIComponent(name)}`)),
      ...ids.slice(0, 5).map((id) => link(`Job ${id}`, `/jobs/${encodeURIComponent(id)}`)),
      ...(ids.includes(typed) ? [] : [link(`Job ${typed}`, `/jobs/${encodeURIComponent(typed)}`)]),
      link(`Jobs whose command has “${typed}”`, `/jobs?like=${encodeURIComponent(`*${typed}*`)}`)];
  };
  const show = () => {
    found = entries();
    chosen = Math.min(Math.max(chosen, 0), found.length - 1);
    list.replaceChildren(...found.map((entry, at) => {
      const item = el("a", { href: entry.href ?? "#", id: `place-${at}` }, entry.name);
      item.setAttribute("role", "option");
      item.setAttribute("aria-selected", String(at === chosen));
      item.tabIndex = -1;
      item.addEventListener("click", (event) => {
        if (!entry.run) return;
        event.preventDefault();
        input.closest("dialog").close();
        entry.run();
      });
      const row = el("li", {}, item);
      row.setAttribute("role", "presentation");
      return row;
    }));
    input.setAttribute("aria-activedescendant", `place-${chosen}`);
    list.children[chosen]?.scrollIntoView({ block: "nearest" });
  };
  let latest = 0;
  input.addEventListener("input", async () => {
    chosen = 0;
    show();
    const typed = input.value.trim(), own = ++latest;
    const known = typed ? await get(`suggest?field=id&prefix=${encodeURIComponent(typed)}`) : [];
    if (own !== latest) return;
    ids = known;
    show();
  });
  input.addEventListener("keydown", (event) => {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (step) { chosen += step; show(); event.preventDefault(); }
    if (event.key === "Enter") { event.preventDefault(); list.children[chosen]?.firstElementChild.click(); }
  });
  show();
  ask("Go to", input, list);
  input.focus();
  get("suggest?field=queue").then((names) => { queues = names; show(); });
};

export const openHelp = () => {
  ask("Keys", document.getElementById("keys").content.cloneNode(true), el("div", { className: "buttons" }, el("button", { value: "close" }, "Close")));
};
