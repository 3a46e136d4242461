/** What became of a message, as a sentence and as the kind of its mark. */

import { t } from "./words.js";

/** Returns the sentence for a delivery: who of how many was reached. */
export function sentence({ verdict, counts }) {
  const isEverybody = verdict === "all_reached" && counts.reached === counts.recipients;
  return isEverybody ? t("messages.everybody", { count: counts.recipients }) : t(`verdict.${verdict}`, counts);
}

/** Returns the kind of mark: good only if everybody was reached. */
export function kindOf({ state, verdict, counts }) {
  if (state === "scheduled" || state === "released") return "info";
  if (counts.reached === counts.recipients) return "good";
  return verdict === "cancelled" ? "" : counts.reached ? "warn" : "bad";
}
