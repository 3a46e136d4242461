/** Starts the console: who is signed in, which page the address names, one page at a time. */

import { h, paint } from "./lib/dom.js";
import { loadFurtherWords, loadWords, setZone, t } from "./lib/words.js";
import { ApiError, api, onSignedOut } from "./lib/api.js";
import { applyTheme, buildFrame, clearToasts, failed, loading, may, noRight, PAGES, toast } from "./lib/page.js";

const SIGN_IN = "sign-in";
/** The pages that need no further words. */
const FIRST_PAGES = ["home", "overview"];
/** The link of the bot is `#/sign-in/<secret>`: what stands after # is sent to no server. */

let me = null;
let hasEnded = false;
let frame;
let ending = new AbortController();
let endPage = null;

/** Returns {name, parameters, query} of an address such as `#/messages/ID?state=failed`. */
function parse(hash) {
  const [path, query = ""] = hash.replace(/^#\/?/, "").split("?");
  const [name, ...parameters] = path.split("/").map(decodeURIComponent);
  return { name: name === "sign_in" ? SIGN_IN : name, parameters, query: Object.fromEntries(new URLSearchParams(query)) };
}

let news = "";
/** Goes to a page: go("messages/ID"). `said`: a toast that appears there; `replace`: Back does not lead to the page before. */
function go(path, said = "", replace = false) {
  news = said;
  if (replace) location.replace(`#/${path}`);
  else location.hash = `#/${path}`;
}

function contextOf(place) {
  const context = {
    me, go, signal: ending.signal, query: place.query, parameters: place.parameters,
    signedIn, signOut: leaveSession, hasEnded,
    /** Writes filters into the address without a new entry in the history of the browser. */
    setQuery(changes) {
      if (context.signal.aborted) return; // a field reports its change when its page is left
      const query = new URLSearchParams(Object.entries({ ...context.query, ...changes }).filter(([, value]) => value !== "" && value !== false && value !== undefined));
      context.query = Object.fromEntries(query);
      const path = [place.name, ...place.parameters].map(encodeURIComponent).join("/");
      history.replaceState(history.state, "", query.size ? `#/${path}?${query}` : `#/${path}`);
    },
    /** Sets the title of the window, such as to the name of the person that is shown. */
    title: (text) => { document.title = `${text} · ${t("frame.name")}`; },
  };
  return context;
}

const entryOf = (name) => PAGES.find((one) => one.name === name);

async function moduleOf(name) {
  if (name === SIGN_IN) return (await import("./pages/sign_in.js")).default;
  const page = entryOf(name);
  if (!page) return null;
  const [module] = await Promise.all([import(`./pages/${page.list || name}.js`), FIRST_PAGES.includes(name) || loadFurtherWords()]);
  return module[page.list ? name : "default"];
}

/** Address of a page → the link by which it was left, for Back. */
const links = new Map();

/** Returns whether Back or Forward has led here: then the entry of the history was marked before. */
function isAgain() {
  const again = Boolean(history.state?.seen);
  if (!again) history.replaceState({ seen: true }, "");
  return again;
}

/** Focuses the first element for a selector as soon as the page has it, unless the person has gone on meanwhile. */
function focusWhenThere(root, selector, signal) {
  const before = document.activeElement;
  const focus = () => {
    const found = root.querySelector(selector), heading = root.querySelector("h1"), now = document.activeElement;
    if (!found) return;
    observer.disconnect();
    if (now !== heading && (root.contains(now) || ![before, document.body].includes(now))) return;
    if (found === heading) found.tabIndex = -1;
    found.focus({ preventScroll: found === heading });
  };
  const observer = new MutationObserver(focus);
  observer.observe(root, { childList: true, subtree: true });
  signal.addEventListener("abort", () => observer.disconnect(), { once: true });
  focus();
}

/** Shows the page that the address names. `isNew`: a person has gone there, so the focus goes to its heading. */
async function show(isNew = true) {
  ending.abort();
  endPage?.();
  endPage = null;
  ending = new AbortController();
  const mine = ending;
  const place = parse(location.hash);
  place.name ||= may(me, "inspect") ? "overview" : "home";
  if (!me && place.name !== SIGN_IN) return signIn();
  const list = entryOf(place.name)?.list;
  if (list && !place.parameters.length) return location.replace(`#/${list}`);
  const root = h("div", { class: `page page-${place.name}` });
  frame.showPage(place.name, me);
  const timer = setTimeout(() => mine === ending && paint(root, loading()), 150);
  frame.content.replaceChildren(root);
  const left = isAgain() && isNew && links.get(location.hash);
  if (isNew) {
    window.scrollTo(0, 0);
    clearToasts();
    if (news) toast(news);
    news = "";
  }
  try {
    const page = await moduleOf(place.name);
    clearTimeout(timer);
    if (mine !== ending) return;
    root.replaceChildren();
    await draw(page, root, place, mine);
    if (isNew && mine === ending) focusWhenThere(root, "h1", mine.signal);
    if (left && mine === ending) focusWhenThere(root, `a[href="${CSS.escape(left)}"]`, mine.signal);
  } catch (error) {
    clearTimeout(timer);
    if (mine === ending && error.name !== "AbortError") paint(root, failed(error, () => show(false)));
  }
}

async function draw(page, root, place, mine) {
  if (!page) return paint(root, h("h1", {}, t("page.unknown")), h("p", {}, h("a", { href: "#/home" }, t("page.unknown_next"))));
  const context = contextOf(place);
  context.title(t(page.title));
  if (!may(me, page.right ?? null)) return paint(root, h("h1", {}, t(page.title)), noRight());
  const end = await page.render(root, place.parameters, context);
  if (mine === ending) endPage = end || null;
  else end?.();
}

// the session

const RETURN = "ada.return";

/** Goes to the sign-in and remembers where to return to. */
function signIn() {
  const place = parse(location.hash).name;
  if (place !== SIGN_IN) sessionStorage.setItem(RETURN, location.hash);
  me = null;
  location.replace(`#/${SIGN_IN}`);
}

async function signedIn() {
  hasEnded = false;
  await loadMe();
  const back = sessionStorage.getItem(RETURN) || "#/";
  sessionStorage.removeItem(RETURN);
  location.replace(back);
}

async function leaveSession(everywhere) {
  await api.del("/v1/sessions", everywhere ? { all: "true" } : {});
  me = null;
  sessionStorage.removeItem(RETURN);
  location.replace(`#/${SIGN_IN}?left=1`);
}

async function loadMe() {
  try {
    me = await api.get("/v1/me", {}, { isSignIn: true });
    setZone(me.timezone);
  } catch (error) {
    if (!(error instanceof ApiError) || error.status !== 401) throw error;
    me = null;
  }
}

async function start() {
  applyTheme();
  await loadWords();
  frame = buildFrame(document.getElementById("console"), () => show(false));
  onSignedOut(() => {
    if (!me) return;
    hasEnded = true;
    signIn();
  });
  window.addEventListener("hashchange", () => show());
  frame.content.addEventListener("click", ({ target }) => {
    const href = target.closest("a")?.getAttribute("href");
    if (href?.startsWith("#/")) links.set(location.hash, href);
  });
  if (parse(location.hash).name !== SIGN_IN) await loadMe();
  await show(false);
}

start();
