/** Lanes: the longest ones, and one in its order. In a lane one task after the other is done. */

import { h, paint } from "../lib/dom.js";
import { ago, number, t } from "../lib/words.js";
import { api } from "../lib/api.js";
import { quoted } from "../lib/page.js";
import { table } from "../lib/table.js";
import { stateTag } from "./tasks.js";

export const laneAddress = (tube, lane) => `#/lanes/${encodeURIComponent(tube)}/${encodeURIComponent(lane)}`;

export default {
  title: "page.lanes",
  right: "inspect",
  render(root, [tube, lane], context) {
    const note = h("p", { class: "quiet" }), place = h("div");
    paint(root, h("h1", { dir: "auto" }, lane || t("page.lanes")), lane && h("p", {}, h("a", { href: "#/lanes" }, t("lanes.back"))), note, place);
    if (lane) showOne(place, note, tube, lane, context);
    else showLongest(place, note, context);
  },
};

function showLongest(place, note, context) {
  table(place, {
    label: t("page.lanes"), context, id: (row) => `${row.tube}\t${row.lane}`, href: (row) => laneAddress(row.tube, row.lane),
    filters: [{ name: "tube", label: t("tasks.tube"), type: "search" }],
    columns: [
      { title: t("tasks.lane"), width: "2fr", name: (row) => row.lane, cell: (row) => h("span", { dir: "auto" }, row.lane) },
      { title: t("tasks.tube"), cell: (row) => row.tube },
      { title: t("lanes.tasks"), width: "7rem", class: "number", cell: (row) => number(row.tasks) },
      { title: t("lanes.head"), width: "2fr", cell: ({ head }) => (head ? [stateTag(head.state), " ", h("span", { class: "quiet" }, head.error && quoted(head.error))] : "–") },
    ],
    load: async ({ signal, tube }) => {
      const { lanes, read, is_complete: isComplete } = await api.get("/v1/queue/lanes", { tube }, { signal });
      paint(note, t(isComplete ? "lanes.about" : "lanes.some", { count: read }));
      return { rows: lanes, next: null };
    },
    whenEmpty: { title: t("lanes.none"), text: t("lanes.none_text") },
  });
}

function showOne(place, note, tube, lane, context) {
  const path = `/v1/queue/tubes/${encodeURIComponent(tube)}/lanes/${encodeURIComponent(lane)}`;
  table(place, {
    label: lane, context, id: (row) => row.id, href: (row) => `#/task/${encodeURIComponent(row.id)}`,
    columns: [
      { title: t("tasks.id"), width: "2fr", name: (row) => row.id, cell: (row) => row.id },
      { title: t("tasks.state"), width: "9rem", cell: (row) => stateTag(row.state) },
      { title: t("tasks.kind_prefix"), cell: (row) => row.kind || "–" },
      { title: t("tasks.user"), cell: (row) => row.user || "–" },
      { title: t("tasks.error"), width: "2fr", cell: (row) => (row.error ? [quoted(row.error), ` (${ago(row.erred)})`] : "–") },
    ],
    load: async ({ cursor, signal }) => {
      const { tasks, behind, next } = await api.get(path, { cursor, limit: 50 }, { signal });
      paint(note, t("lanes.of", { tube, count: behind }));
      return { rows: tasks, next };
    },
    whenEmpty: { title: t("lanes.over"), text: t("lanes.over_text") },
  });
}
