/** The first page after signing in: who one is and where to go. */

import { h, paint } from "../lib/dom.js";
import { t } from "../lib/words.js";
import { empty, may, PAGES } from "../lib/page.js";

export default {
  title: "page.home",
  right: null,
  render(root, parameters, { me }) {
    const pages = PAGES.filter((page) => page.section && page.name !== "home" && may(me, page.right));
    paint(root,
      h("h1", {}, me.name ? t("home.hello", { name: me.name }) : t("home.hello_nobody")),
      pages.length
        ? h("ul", { class: "cards" }, pages.map((page) => h("li", {}, h("a", { class: "card", href: `#/${page.name}` },
          h("strong", {}, t(`page.${page.name}`)), h("span", { class: "quiet" }, t(`page.${page.name}_about`))))))
        : empty({ title: t("home.nothing"), text: t("home.nothing_text") }));
  },
};
