/** The sources of people (`./ada sync`): what the last run did or why it changed nothing, a dry run, a run now. */

import { h } from "../lib/dom.js";
import { duration, moment, t, word } from "../lib/words.js";
import { api } from "../lib/api.js";
import { empty, fact, notice, quoted, tag, toastError, withStates } from "../lib/page.js";
import { confirm } from "../lib/dialog.js";
import { columnName, pageOf, pathOf } from "../lib/directory.js";

const AGAIN_MS = 5000;

export default {
  title: "page.sync",
  right: "people",
  render(root, parameters, { signal }) {
    const again = withStates(root, () => api.get("/v1/syncs", {}, { signal }), ({ sources }) => [
      h("h1", {}, t("page.sync")),
      h("p", { class: "quiet" }, t("sync.text")),
      sources.length === 0 && empty({ title: t("sync.none"), text: h("code", {}, "./ada sync 1c /srv/exports --every 1h") }),
      h("ul", { class: "plain-list" }, sources.map((one) => card(one, again))),
    ]);
    const timer = setInterval(() => document.visibilityState === "visible" && again(), AGAIN_MS);
    return () => clearInterval(timer);
  },
};

function card(one, again) {
  const { source, last, dry_run: shown, requested } = one;
  const ask = (dryRun) => act(() => api.post(`${pathOf("syncs", source)}/runs`, { dry_run: dryRun }), again);
  const fault = one.is_late ? "late" : last?.fault;
  return h("li", { class: "panel", key: source },
    h("h2", {}, source, " ", fault ? tag("bad", t(fault === "leaving" ? "sync.refused" : "sync.bad")) : last && tag("good", t("sync.good"))),
    fault && notice("bad", word("sync_fault", fault), last.fault && last.fault !== "leaving" && [" ", quoted(last.detail)]),
    last && h("dl", { class: "facts" },
      fact("sync.place", h("span", { class: "cut" }, last.place)),
      fact("sync.at", moment(last.at)),
      fact("sync.every", last.every ? duration(last.every) : t(last.place === "SCIM" ? "sync.pushed" : "sync.by_hand")),
      !last.fault && fact("sync.result", counts("import.done", last))),
    last?.disagreements.length > 0 && people("sync.disagreements", last.disagreements.map((text) => text.split(/\s(?=\S+$)/)).map(([id, name = ""]) => [id, columnName(name)])),
    shown && dryRun(shown),
    requested ? h("p", { role: "status" }, t("sync.requested")) : h("div", { class: "actions" },
      last?.every > 0 && !one.is_late && [h("button", { onclick: () => ask(true) }, t("sync.dry_run")), h("button", { onclick: () => ask(false) }, t("sync.run"))],
      h("button", { class: "danger", onclick: () => forget(source, again) }, t("sync.forget"))));
}

const counts = (key, run) => [t(key, run), run.left > 0 && [" ", t("sync.left", { count: run.left })]];

const dryRun = (run) => h("details", {}, h("summary", {}, t("sync.shown", { when: moment(run.at) })),
  run.fault ? notice("bad", word("sync_fault", run.fault), " ", quoted(run.detail)) : h("p", {}, counts("import.counts", run)),
  run.changes.length > 0 && people("sync.changes", run.changes.map(({ id, created, fields }) => [id, created ? t("import.is_new") : fields.map(columnName).join(", "), created])));

/** `found`: [id of a person, what about it, whether it is not there yet]. */
const people = (title, found) => h("div", {}, h("p", {}, t(title)),
  h("ul", { class: "plain-list" }, found.map(([id, text, isNew]) => h("li", {}, isNew ? id : h("a", { href: pageOf("person", id) }, id), " ", text))));

async function forget(source, again) {
  if (!await confirm({ title: t("sync.forget_title", { source }), text: t("sync.forget_text"), action: t("sync.forget"), danger: true })) return;
  await act(() => api.del(pathOf("syncs", source)), again);
}

async function act(call, again) {
  try {
    await call();
    again();
  } catch (error) {
    toastError(error);
  }
}
