/** Buried tasks, grouped by tube, kind and error; a group is kicked or dropped up to the moment at which it was shown. */

import { h } from "../lib/dom.js";
import { ago, moment, t } from "../lib/words.js";
import { api } from "../lib/api.js";
import { empty, may, quoted, showCount, tag, withStates } from "../lib/page.js";
import { bulk } from "../lib/dialog.js";

export default {
  title: "page.dead_letters",
  right: "inspect",
  render(root, parameters, { me, signal }) {
    const show = withStates(root, () => api.get("/v1/queue/dead-letters", {}, { signal }), ({ groups, now }) => {
      showCount("dead_letters", groups.reduce((sum, one) => sum + one.size, 0));
      return shown(groups, now, may(me, "operate"), () => show());
    });
  },
};

const shown = (groups, now, mayChange, again) => [
  h("h1", {}, t("page.dead_letters")),
  groups.length === 0 && empty({ title: t("dead_letters.none"), text: t("dead_letters.none_text") }),
  h("ul", { class: "cards" }, groups.map((group) => card(group, now, mayChange, again))),
];

function card(group, now, mayChange, again) {
  const list = `#/tasks?${new URLSearchParams({ state: "buried", tube: group.tube, ...(group.kind && { kind_prefix: group.kind }) })}`;
  return h("li", { class: "card", key: `${group.tube}\t${group.kind}\t${group.error}` },
    h("h2", {}, group.error ? quoted(group.error) : t("dead_letters.no_error")),
    h("p", {}, tag("bad", t("dead_letters.size", { count: group.size })), " ", t("dead_letters.since", { when: ago(group.since) })),
    h("p", { class: "quiet" }, h("a", { href: list }, [group.tube, group.kind].filter(Boolean).join(" · "))),
    mayChange && h("div", { class: "actions" },
      h("button", { class: "primary", onclick: () => change(group, now, "kick", again) }, t("tasks.kick")),
      h("button", { class: "danger", onclick: () => change(group, now, "cancel", again) }, t("dead_letters.drop"))));
}

async function change({ tube, kind, error, size }, before, verb, again) {
  const covers = { [t("tasks.tube")]: tube, ...(kind && { [t("tasks.kind_prefix")]: kind }), [t("tasks.error")]: error || "–" };
  await bulk({
    title: t(`tasks.${verb}_title`, { count: size }), action: verb === "kick" ? t("tasks.kick") : t("dead_letters.drop"), danger: verb === "cancel", count: size,
    covers, until: moment(before), changed: (count) => t("tasks.changed", { count }), unchanged: (count) => t("tasks.unchanged", { count }),
    step: async (expected, cursor, options) => {
      const step = await api.post(`/v1/queue/dead-letters:${verb}`, { tube, kind, error, before, expected }, options);
      return { changed: step.changed, next: step.changed && step.left };
    },
  });
  again();
}
