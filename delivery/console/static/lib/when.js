/** The field for a time to come. */

import { field, h } from "./dom.js";
import { comingMoment, t } from "./words.js";
import { inZone } from "./draft.js";

const now = (timeZone) => new Intl.DateTimeFormat("sv-SE", { timeZone, dateStyle: "short", timeStyle: "short" }).format(new Date()).replace(" ", "T");

/** Whether the clock of the zone has passed `wall`. */
export const isPast = (wall, { timezone }) => Boolean(wall) && wall < now(timezone);

function isQuiet(wall, [begin, end]) {
  const time = wall.slice(11);
  return begin <= end ? begin <= time && time < end : time >= begin || time < end;
}

/** Returns the field with what is said of `wall`: that it has passed, or its weekday, distance and the quiet hours. */
export function timeField(wall, me, attributes) {
  const { timezone: zone, quiet_hours: quiet } = me;
  const hint = [t("write.when_hint", { zone }), quiet && t("write.quiet", { begin: quiet[0], end: quiet[1] })].filter(Boolean).join(" ");
  const error = isPast(wall, me) && t("problem.DELIVER_AT_PAST");
  return [
    field({ label: t("write.when"), hint, error }, h("input", { id: "when", type: "datetime-local", value: wall, ...attributes })),
    wall && !error && h("p", { key: "coming", role: "status" }, comingMoment(inZone(wall, zone)), quiet && isQuiet(wall, quiet) && [". ", t("write.moved", { at: quiet[1] })]),
  ];
}
