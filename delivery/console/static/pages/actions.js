/** The action log: who changed what for others, of how many things, why and when; as a list and as a file. */

import { h, paint } from "../lib/dom.js";
import { fullMoment, has, moment, number, said, t, word } from "../lib/words.js";
import { address, api } from "../lib/api.js";
import { table } from "../lib/table.js";
import { inZone } from "../lib/draft.js";

export default {
  title: "page.actions",
  right: "keys",
  render(root, parameters, context) {
    const place = h("div");
    const filters = ({ who, what, since }) => ({ who, what, since: since && inZone(`${since}T00:00`, context.me.timezone) });
    const file = () => address("/v1/actions.csv", filters(context.query));
    const follow = (event) => { event.currentTarget.href = file(); };
    paint(root, h("h1", {}, t("page.actions")),
      h("div", { class: "actions" }, h("a", { class: "button", href: file(), download: "actions.csv", onclick: follow }, t("actions.csv"))), place);
    table(place, {
      label: t("page.actions"), context, id: (row) => row.id,
      filters: [
        { name: "who", label: t("actions.who_filter"), type: "search" },
        { name: "what", label: t("actions.what_filter"), type: "search" },
        { name: "since", label: t("actions.since"), type: "date" },
      ],
      columns: [
        { title: t("actions.when"), width: "9rem", cell: (row) => h("time", { datetime: row.at, title: fullMoment(row.at) }, moment(row.at)) },
        { title: t("actions.who"), width: "1.5fr", cell: (row) => h("a", { class: "cut", title: row.who, href: `#/actions?${new URLSearchParams({ who: row.who })}` }, row.name || row.who) },
        { title: t("actions.what"), width: "4fr", cell: (row) => [h("span", { class: "cut" }, whatOf(row.what)), h("code", { class: "cut quiet small" }, `${row.what.split(" ")[0]} ${row.target}`), row.filter && h("code", { class: "cut quiet small", dir: "auto" }, row.filter)] },
        { title: t("actions.count"), width: "5rem", class: "number", cell: (row) => number(row.count) },
        { title: t("actions.why"), width: "3fr", cell: (row) => (row.why ? h("span", { class: "cut", dir: "auto" }, row.why) : "–") },
        { title: t("actions.via"), width: "6rem", cell: (row) => word("via", row.via) },
      ],
      load: ({ cursor, signal, ...chosen }) => page({ ...filters(chosen), cursor, limit: 50 }, signal),
      whenEmpty: { title: t("actions.none"), text: t("actions.none_text") },
    });
  },
};

/** Returns a route in words, such as "Person: changed" for `PATCH /v1/users/{id}`; a reading is a sentence. */
function whatOf(what) {
  const [method, path] = what.split(" ");
  if (!path.startsWith("/")) return said(what);
  const [place, verb] = path.split(":");
  const names = place.split("/").slice(2).filter((one) => one !== "queue" && !one.startsWith("{"));
  const done = method === "PUT" && path.startsWith("/scim/") ? "PATCH" : method; // SCIM replaces by PUT, the others add
  const did = verb || (has(`did.${names.at(-1)}`) ? names.pop() : done);
  return t("actions.did", { thing: word("thing", names.at(-1).replace("-", "_")), did: word("did", did) });
}

/** A page of the API may end early without a row, and with a cursor. */
async function page(query, signal) {
  const { actions, next } = await api.get("/v1/actions", query, { signal });
  return actions.length || !next ? { rows: actions, next } : page({ ...query, cursor: next }, signal);
}
