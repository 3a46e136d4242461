/** What stands around every page: menu, badge of liveness, banner of the connection, language, colours, signing out. */

import { h, paint } from "./dom.js";
import { LANGUAGES, ago, chooseLanguage, currentLanguage, t } from "./words.js";
import { watchConnection } from "./api.js";
import { watchLive } from "./live.js";
import { PAGES } from "./menu.js";

const THEME = "ada.theme";
const AGE_PAUSE = 10000;

export const theme = () => localStorage.getItem(THEME) || "auto";

/** Shows the colours that were chosen for this browser; "auto" follows the system. */
export function applyTheme() {
  if (theme() === "auto") delete document.documentElement.dataset.theme;
  else document.documentElement.dataset.theme = theme();
}

/** Whether this person or key may see a page of the menu. A list: all of them; "key": no person, as the API asks there. */
export const may = (me, right) => right === null || Boolean(me) && [right].flat().every((one) => (one === "key" ? me.kind === "key" : me.rights.includes(one)));

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
        h("a", { href: `#/${page.name}`, "aria-current": page.name === name ? "page" : null }, t(`page.${page.name}`))))))),
    h("a", { class: "me", href: "#/account", "aria-current": name === "account" ? "page" : null }, me.name || t("page.account")),
  ];
}

function choice(label, options, value, change) {
  return h("label", {}, h("span", {}, t(label)), h("select", { onchange: (event) => change(event.target.value) },
    Object.entries(options).map(([name, text]) => h("option", { value: name, selected: name === value }, text))));
}
