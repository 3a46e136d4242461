/** The first page after signing in: who one is, what became of the last messages, and where to go. */

import { h, paint } from "../lib/dom.js";
import { moment, t } from "../lib/words.js";
import { api } from "../lib/api.js";
import { BY_ADA, empty, may, PAGES, tag, textOf, verdict } from "../lib/page.js";
import { follow } from "../lib/live.js";

const LAST = 3, MOST_READ = 50;

const asked = ({ answered, open, silent, late }) => answered + open + silent + late;

/** Shows the last messages in `place`, without replies of bots and inboxes and what Ada writes by itself; nothing if there are none, or they cannot be read. */
async function showLast(place, signal) {
  const { deliveries: found } = await api.get("/v1/deliveries", { limit: MOST_READ }, { signal }).catch(() => ({ deliveries: [] }));
  const deliveries = found.filter(({ kind }) => kind !== "reply" && !BY_ADA.includes(kind)).slice(0, LAST);
  paint(place, deliveries.length > 0 && [h("h2", {}, t("messages.last")), h("ul", { class: "cards" }, deliveries.map((row) => h("li", { key: row.id }, h("a", { class: "card", href: `#/message/${row.id}` },
    h("span", { class: "cut", dir: "auto" }, textOf(row)),
    h("span", {}, verdict(row), " ", row.answers && tag("info", t("messages.answered", { answered: row.answers.answered, count: asked(row.answers) }))),
    h("span", { class: "quiet small" }, [row.text_hidden && row.sender.name, moment(row.deliver_at)].filter(Boolean).join(", "))))))]);
}

const cards = (pages) => h("ul", { class: "cards" }, pages.map((page) => h("li", {}, h("a", { class: "card", href: `#/${page.name}` },
  h("strong", {}, t(`page.${page.name}`)), h("span", { class: "quiet" }, t(`page.${page.name}_about`))))));

export default {
  title: "page.home",
  right: null,
  async render(root, parameters, context) {
    const { me } = context, last = h("div", { class: "last" });
    const pages = PAGES.filter((page) => page.section && page.name !== "home" && may(me, page.right));
    paint(root,
      h("h1", {}, me.kind === "person" && me.name ? t("home.hello", { name: me.name }) : t("home.hello_nobody")),
      last,
      pages.length
        ? [...new Set(pages.map((page) => page.section))].map((section) => [section !== "main" && h("h2", {}, t(`section.${section}`)), cards(pages.filter((page) => page.section === section))])
        : empty({ title: t("home.nothing"), text: t("home.nothing_text") }));
    if (!may(me, "read")) return;
    follow(["deliveries"], () => showLast(last, context.signal), context.signal);
    await showLast(last, context.signal);
  },
};
