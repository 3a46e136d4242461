/** When a question is asked again, and what else holds for it; the draft keeps the terms as the API has them. */

import { field, h } from "../lib/dom.js";
import { period, t, word } from "../lib/words.js";

const WAITS = ["PT1H", "PT3H", "PT12H", "P1D", "P2D", "P7D"];
const MOST_REMINDERS = 10;
const MOST_NEEDED = 1000;
const PAID = "sms";

/** Returns the fields. `set(terms)` keeps changed terms and paints anew. `ways`: channels that may be asked later. */
export function drawTerms({ answer, visible, terms }, ways, set) {
  const put = (name, value) => {
    const { [name]: _, ...rest } = terms;
    set(value ? { ...rest, [name]: value } : rest);
  };
  const { remind, escalate, need, wave } = terms, hasOptions = answer === "confirm" || answer === "choice";
  return h("details", { key: "terms", open: Object.keys(terms).length > 0 || undefined }, h("summary", {}, t("write.terms")),
    wait("remind", remind?.after, (after) => put("remind", after && { ...remind, after }), "write.never"),
    remind && count("most", remind.most ?? 1, MOST_REMINDERS, (most) => put("remind", { ...remind, most: most || 1 })),
    remind?.most > 1 && wait("again", remind.every ?? remind.after, (every) => put("remind", { ...remind, every })),
    (ways.length > 0 || escalate) && wait("escalate", escalate?.after, (after) => put("escalate", after && { channels: likely(ways), ...escalate, after }), "write.never"),
    escalate && h("fieldset", {}, h("legend", {}, t("write.channels")), ways.map((one) => h("label", { class: "check" },
      h("input", { type: "checkbox", checked: escalate.channels.includes(one), onchange: ({ target }) => put("escalate", asked(escalate, ways, one, target.checked)) }), h("span", {}, word("channel", one))))),
    (hasOptions || need) && count("need", need ?? "", MOST_NEEDED, (people) => set({ ...terms, need: people || undefined, wave: people ? wave : undefined })),
    need && wait("wave", wave || "PT1H", (every) => put("wave", every)),
    visible !== "anonymous" && tick("change", terms.change === false, (isOn) => set({ ...terms, change: isOn ? false : undefined })),
    tick("late", Boolean(terms.late), (isOn) => put("late", isOn && "count")));
}

/** Returns whom to suggest: the dear channel that reaches nearly everybody, else the last one. */
const likely = (ways) => [ways.includes(PAID) ? PAID : ways.at(-1)];

/** Returns the terms with or without a channel; null without any. */
function asked({ after, channels }, ways, name, isOn) {
  const chosen = ways.filter((one) => (one === name ? isOn : channels.includes(one)));
  return chosen.length ? { after, channels: chosen } : null;
}

function wait(name, value, set, none) {
  const all = value && !WAITS.includes(value) ? [value, ...WAITS] : WAITS;
  return field({ label: t(`write_terms.${name}`) }, h("select", { id: `terms-${name}`, onchange: ({ target }) => set(target.value) },
    none && h("option", { value: "" }, t(none)), all.map((one) => h("option", { value: one, selected: one === value }, period(one)))));
}

const count = (name, value, max, set) => field({ label: t(`write_terms.${name}`), hint: name === "need" && t("write.need_hint") },
  h("input", { id: `terms-${name}`, type: "number", min: 1, max, value, onchange: ({ target }) => set(Number(target.value)) }));

const tick = (name, checked, set) => h("label", { class: "check" },
  h("input", { id: `terms-${name}`, type: "checkbox", checked, onchange: ({ target }) => set(target.checked) }), h("span", {}, t(`write_terms.${name}`)));
