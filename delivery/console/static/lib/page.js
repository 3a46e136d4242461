/**
 * What every page has: the frame around it (menu, badge of liveness, banner of the connection, language, colours), and the
 * states that look alike everywhere (loading, empty, error, no right; short notices). One file, so that the first page loads few.
 */

import { h, newId, paint } from "./dom.js";
import { LANGUAGES, ago, chooseLanguage, currentLanguage, has, moment, number, said, t, word } from "./words.js";
import { ApiError, NoResponse, api, isAway, watchConnection } from "./api.js";
import { watchLive } from "./live.js";

/**
 * The pages: what stands after `#/`, the module that shows it, the right it needs, and where it stands in the menu. A page
 * without a section is not in the menu; that of one thing stands in the module of its
 * `list`, by its name, and leads to the list without an id. The words are `page.<name>`, `section.<section>`.
 */
export const PAGES = [
  { name: "home", right: null, section: "main" },
  { name: "write", right: "write", section: "main" },
  { name: "messages", right: "read", section: "main" },
  { name: "message", right: "read", list: "messages" },
  { name: "inbox", right: ["read", "person"], section: "main" },
  { name: "thread", right: ["read", "person"], list: "inbox" },
  { name: "people", right: "people", section: "main" },
  { name: "person", right: "people", list: "people" },
  { name: "fields", right: "people" },
  { name: "groups", right: "people", section: "main" },
  { name: "group", right: "people", list: "groups" },
  { name: "import", right: "people", section: "main" },
  { name: "costs", right: "read", section: "main" },
  { name: "overview", right: "inspect", section: "operate" },
  { name: "processes", right: "inspect", section: "operate" },
  { name: "accounts", right: "inspect", section: "operate" },
  { name: "audit", right: "inspect", section: "operate" },
  { name: "tubes", right: "inspect", section: "queue" },
  { name: "tasks", right: "inspect", section: "queue" },
  { name: "task", right: "inspect", list: "tasks" },
  { name: "lanes", right: "inspect", section: "queue" },
  { name: "dead_letters", right: "inspect", section: "queue" },
  { name: "jobs", right: "inspect", section: "programs" },
  { name: "job", right: "inspect", list: "jobs" },
  { name: "sync", right: "people", section: "programs" },
  { name: "webhooks", right: ["people", "key"], section: "programs" },
  { name: "keys", right: "keys", section: "programs" },
  { name: "actions", right: "keys", section: "programs" },
  { name: "scenarios", right: "inspect", section: "authors" },
  { name: "dry_run", right: "inspect", section: "authors" },
  { name: "runs", right: "inspect", section: "authors" },
  { name: "forms", right: "inspect", section: "authors" },
  { name: "account", right: null },
];

// the frame

const THEME = "ada.theme";
const AGE_PAUSE = 10000;

const theme = () => localStorage.getItem(THEME) || "auto";

/** Shows the colours that were chosen for this browser; "auto" follows the system. */
export function applyTheme() {
  if (theme() === "auto") delete document.documentElement.dataset.theme;
  else document.documentElement.dataset.theme = theme();
}

/** Whether this person or key may see a page of the menu. A list: all of them; "key": no person, "person": no key, as the API asks there. */
export const may = (me, right) => right === null || Boolean(me) && [right].flat().every((one) => (["key", "person"].includes(one) ? me.kind === one : me.rights.includes(one)));

const COUNTS_PAUSE = 60000, FIRST_COUNT = 3000;
const counts = {};
let redraw = () => {};

/** Shows beside a page of the menu how many things wait there. */
export function showCount(page, count) {
  if (counts[page] === count) return;
  counts[page] = count;
  redraw();
}

/** Shows how many dead letters there are, of what /v1/overview says. */
export const countMatters = (matters) => showCount("dead_letters", matters.find((one) => one.kind === "dead_letters")?.count ?? 0);

/** Shows how many threads of these inboxes wait to be read. */
export const countUnread = (inboxes) => showCount("inbox", inboxes.reduce((sum, one) => sum + one.unread, 0));

async function readCounts({ me, name }) {
  if (document.visibilityState !== "visible") return;
  if (me?.kind === "person" && name !== "inbox") await api.get("/v1/threads", { limit: 1 }).then(({ inboxes }) => countUnread(inboxes), () => {});
  if (!may(me, "inspect") || name === "overview") return;
  await api.get("/v1/overview").then(({ matters }) => countMatters(matters), () => {});
}

/** Builds the frame in `root` and returns {content, showPage(name, me)}. `translate` is called when another language was chosen. */
export function buildFrame(root, translate) {
  const content = h("main", { id: "content", tabindex: "-1" });
  const bar = h("div", { class: "bar", keep: true });
  const menu = h("nav", { id: "menu" });
  const banner = h("div", { class: "banner-place", "aria-live": "polite" });
  const toasts = h("div", { id: "toasts", role: "status", "aria-live": "polite" });
  let current = { name: "", me: null };
  let connection = "online", live = { status: "off" };

  const closeMenu = () => { root.classList.remove("menu-open"); draw(); };
  const toggleMenu = () => { root.classList.toggle("menu-open"); draw(); };

  function draw() {
    const isSignedIn = Boolean(current.me);
    root.classList.toggle("signed-out", !isSignedIn);
    root.classList.toggle("away", isAway(connection));
    paint(bar,
      h("a", { class: "skip", href: "#content", onclick: (event) => { event.preventDefault(); content.focus(); } }, t("frame.skip")),
      h("a", { class: "name", href: "#/" }, t("frame.name")),
      badge(),
      isSignedIn && h("button", { class: "menu-button", "aria-expanded": String(root.classList.contains("menu-open")), "aria-controls": "menu", onclick: toggleMenu }, t("frame.menu")));
    paint(menu, isSignedIn && entries(current), choices());
    menu.setAttribute("aria-label", t("frame.menu"));
    paint(banner, connection !== "online" && h("p", { class: "banner", role: "alert" }, t(`frame.${connection}`)));
  }

  function badge() {
    if (live.status === "off" || !current.me) return null;
    const isLive = live.status === "live" && connection === "online";
    return h("span", { class: isLive ? "badge live" : "badge behind", role: "status" }, isLive ? t("frame.live") : t("frame.behind", { ago: ago(live.freshAt) }));
  }

  const choices = () => h("div", { class: "choices" },
    choice("frame.language", LANGUAGES, currentLanguage(), async (value) => { await chooseLanguage(value); translate(); }),
    choice("frame.theme", { auto: t("theme.auto"), light: t("theme.light"), dark: t("theme.dark") }, theme(), (value) => { localStorage.setItem(THEME, value); applyTheme(); }));

  redraw = draw;
  setTimeout(() => readCounts(current), FIRST_COUNT);
  setInterval(() => readCounts(current), COUNTS_PAUSE);
  watchConnection((state) => { connection = state; draw(); });
  watchLive((state) => { live = state; draw(); });
  setInterval(() => live.status === "behind" && draw(), AGE_PAUSE);
  menu.addEventListener("click", (event) => { if (event.target.closest("a")) closeMenu(); });
  root.addEventListener("keydown", (event) => {
    if (event.key === "Escape" && root.classList.contains("menu-open")) { closeMenu(); bar.querySelector(".menu-button").focus(); }
  });
  paint(root, h("header", {}, bar, menu), banner, content, toasts);
  return { content, showPage(name, me) { current = { name, me }; closeMenu(); } };
}

function entries({ name, me }) {
  const shown = PAGES.filter((page) => page.section && may(me, page.right));
  const sections = [...new Set(shown.map((page) => page.section))];
  return [
    sections.map((section) => h("div", { class: "section", key: section },
      section !== "main" && h("h2", {}, t(`section.${section}`)),
      h("ul", {}, shown.filter((page) => page.section === section).map((page) => h("li", {},
        h("a", { href: `#/${page.name}`, "aria-current": page.name === name ? "page" : null }, t(`page.${page.name}`),
          counts[page.name] > 0 && h("span", { class: "tag bad" }, number(counts[page.name])))))))),
    h("a", { class: "me", href: "#/account", "aria-current": name === "account" ? "page" : null }, me.name || t("page.account")),
  ];
}

function choice(label, options, value, change) {
  return h("label", {}, h("span", {}, t(label)), h("select", { onchange: (event) => change(event.target.value) },
    Object.entries(options).map(([name, text]) => h("option", { value: name, selected: name === value }, text))));
}

// states

/** Returns the sentence that a person reads about an error. */
export function explain(error) {
  if (error instanceof NoResponse) return t("error.no_response");
  if (!(error instanceof ApiError)) return t("error.page");
  const texts = error.errors.map((one) => explainOne(one));
  if (!texts.length) texts.push(explainOne({ code: error.code, message: error.detail || error.title }));
  if (error.retryAfter >= 60) texts.push(t("error.again", { at: moment(Date.now() + error.retryAfter * 1000) }));
  return [...new Set(texts)].join(" ");
}

/** Returns the sentence for {code, message} of the API. */
export const explainOne = ({ code, message }) => (has(`problem.${code}`) ? word("problem", code) : message);

export const loading = () => h("p", { class: "state loading", role: "status" }, t("state.loading"));

/** `action` is a button or a link with the next step. */
export const empty = ({ title, text, action }) => h("div", { class: "state" }, h("p", { class: "state-title" }, title), text && h("p", {}, text), action);

export const noRight = () => empty({ title: t("state.no_right"), text: t("state.no_right_text") });

/** `retry` is called by the button. */
export function failed(error, retry) {
  if (!(error instanceof ApiError || error instanceof NoResponse)) console.error(error);
  if (error.status === 403) return noRight();
  return h("div", { class: "state", role: "alert" },
    h("p", { class: "state-title" }, t("state.failed")),
    h("p", {}, explain(error)),
    error.code && h("p", { class: "quiet" }, h("code", {}, error.code)),
    retry && h("button", { onclick: retry }, t("action.retry")));
}

const LOADING_SHOWN_AFTER = 150;

/**
 * Shows in `root` what `draw(await load())` returns; until then that it is loading, and an error with a button. Returns a
 * function that loads again, which keeps the old content until the new one is there.
 */
export function withStates(root, load, draw) {
  let turn = 0;
  async function show() {
    const mine = ++turn;
    const timer = root.hasChildNodes() ? 0 : setTimeout(() => paint(root, loading()), LOADING_SHOWN_AFTER);
    try {
      const data = await load();
      if (mine === turn) paint(root, draw(data));
    } catch (error) {
      if (mine === turn && error.name !== "AbortError") paint(root, failed(error, show));
    } finally {
      clearTimeout(timer);
    }
  }
  show();
  return show;
}

/** Returns a box with a sentence: kind is "info", "good", "warn" or "bad". */
export const notice = (kind, ...children) => h("div", { class: `notice ${kind}`, role: kind === "bad" ? "alert" : "status" }, ...children);

/** Returns a row of a list of facts; a value that is missing is a dash. */
export const fact = (key, value) => h("div", {}, h("dt", {}, t(key)), h("dd", {}, value || "–"));

/** Returns a small mark with a word: kind is "good", "bad", "warn", "info" or "" (neutral). */
export const tag = (kind, text) => h("span", { class: `tag ${kind}` }, text);

/** Returns a text of Ada in the language of the reader; what a provider or a handler has said is quoted as it is. */
export function quoted(text) {
  const own = said(text);
  return own === text && currentLanguage() !== "en" ? h("q", { lang: "en" }, text) : own;
}

const STATUS_KINDS = {
  sent: "good", delivered: "good", read: "good", failed: "bad", unknown: "warn", expired: "bad", no_contact: "warn", queued: "info", sending: "info",
};
/** Returns the mark of the status of an outcome. */
export const statusTag = (status) => tag(STATUS_KINDS[status] || "", word("status", status));

/** Shows a short message at the bottom of the window, which screen readers read out. It goes by itself; an error stays longer. */
export const clearToasts = () => document.getElementById("toasts").replaceChildren();

export function toast(text, kind = "good") {
  const place = document.getElementById("toasts");
  if (place.lastChild?.textContent === text) place.lastChild.remove();
  const shown = h("p", { class: `toast ${kind}` }, text);
  place.append(shown);
  setTimeout(() => shown.remove(), kind === "bad" ? 12000 : 5000);
}

/** Says what has failed, unless the page was left meanwhile. */
export const toastError = (error) => error.name !== "AbortError" && toast(explain(error), "bad");

/**
 * Writes the errors of the API into a form: beside the field with the name in `path`, the others above the form. The first
 * wrong field gets the focus. Without an error clears them.
 */
function showErrors(form, error) {
  for (const old of form.querySelectorAll(".field-error, .form-error")) old.remove();
  for (const input of form.querySelectorAll("[aria-invalid]")) input.removeAttribute("aria-invalid");
  if (!error) return;
  const rest = [];
  for (const one of error.errors?.length ? error.errors : [{ path: "", whole: explain(error) }]) {
    const input = one.path && form.elements[one.path];
    if (input?.id) attach(input, explainOne(one));
    else rest.push(one.whole || explainOne(one));
  }
  if (rest.length) form.prepend(h("div", { class: "form-error notice bad", role: "alert" }, rest.map((text) => h("p", {}, text))));
  form.querySelector("[aria-invalid]")?.focus();
}

function attach(input, text) {
  const id = newId("error");
  input.before(h("p", { class: "field-error", id }, text));
  input.setAttribute("aria-invalid", "true");
  input.setAttribute("aria-describedby", [input.getAttribute("aria-describedby"), id].filter(Boolean).join(" "));
}

/**
 * Returns a handler for `onsubmit`: calls `work(form)` once at a time (a double click sends once), shows the button as busy,
 * writes errors into the form.
 */
export function submits(work) {
  return async (event) => {
    event.preventDefault();
    const form = event.currentTarget, button = event.submitter || form.querySelector("button");
    if (form.dataset.busy) return;
    form.dataset.busy = "1";
    button?.setAttribute("aria-disabled", "true");
    showErrors(form);
    try {
      await work(form, button);
    } catch (error) {
      if (error.name === "AbortError") return;
      if (!(error instanceof ApiError || error instanceof NoResponse)) console.error(error);
      showErrors(form, error);
    } finally {
      delete form.dataset.busy;
      button?.removeAttribute("aria-disabled");
    }
  };
}

// a message in a list

const ENTITIES = { lt: "<", gt: ">", amp: "&" };

/** Returns the text of a message as a person reads it in a list: without marks. */
export const plainOf = ({ text, content }) => (content?.parse_mode === "HTML" ? text.replace(/<a href="[^"]*">|<\/?\w+>/g, "").replace(/&(lt|gt|amp);/g, (_, name) => ENTITIES[name]) : text);

/** The same, or why there is none. */
/** The kinds of deliveries that Ada makes by itself, some of them in the name of a person. */
export const BY_ADA = ["result", "place", "halted"];

export const textOf = (row) => plainOf(row) || t(row.text_hidden ? "messages.hidden" : "messages.no_text");

const VERDICTS = { all_reached: "good", some_reached: "warn", nothing_worked: "bad", nobody_to_reach: "warn", partly: "info", in_progress: "info", scheduled: "info" };

/** Returns "Reached 27 of 30" in its colour; before anything was sent, the state. */
export function verdict(row) {
  const { reached, recipients } = row.counts;
  const isBefore = row.verdict === "scheduled" || row.verdict === "cancelled";
  const kind = row.verdict === "all_reached" && reached < recipients ? "warn" : VERDICTS[row.verdict] || "";
  return tag(kind, isBefore ? word("delivery_state", row.verdict) : t("messages.reached", { reached, count: recipients }));
}
