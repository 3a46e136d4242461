/**
 * Lists: columns, filters in the address, "more" by cursor, selection with actions, live changes that move nothing under the
 * pointer or the focus. Rows are cards on a phone. 10,000 rows scroll smoothly: the browser lays out only what is seen.
 */

import { field, h, paint, values } from "./dom.js";
import { t } from "./words.js";
import { empty, failed, loading, toastError } from "./page.js";
import { markFresh } from "./live.js";

const FEW_FILTERS = 2;
// More than these are folded on a phone, so that the rows are seen.

/**
 * Shows a list in `root` and returns {reload, update, selected}.
 *
 *   label       what the list contains, for screen readers
 *   columns     [{key, title, width: "2fr", cell: (row) => node or text, class: "number"}]; the first names the row
 *   load        async ({cursor, signal, ...filters}) => ({rows, next})
 *   id          (row) => its id
 *   href        (row) => the address of its page, optional; the first cell is the link, null for none
 *   filters     [{name, label, options: [[value, text], …]} | {name, label, type: "search", example}], optional
 *   context     of the page: the filters stand in its address
 *   actions     [{title, danger, run: async (ids, rows) => …}], optional: with them rows can be selected
 *   whenEmpty   {title, text, action} for a list without rows; with filters set, "nothing found" is shown in its place
 */
export function table(root, options) {
  const list = new List(root, options);
  list.reload();
  return list;
}

class List {
  constructor(root, options) {
    Object.assign(this, { root, options, rows: [], next: null, waiting: null, chosen: new Set(), turn: 0, reloading: 0, failure: null, isLoaded: false });
    this.body = h("div", { class: "list-body" });
    this.filters = options.filters?.length ? this.filterForm() : null;
    paint(root, this.filters, this.body);
    this.observer = new IntersectionObserver((seen) => seen.some((one) => one.isIntersecting) && this.more(), { rootMargin: "600px" });
    options.context?.signal?.addEventListener("abort", () => this.observer.disconnect(), { once: true });
  }

  // filters

  filterValues() {
    const query = this.options.context?.query || {};
    return Object.fromEntries((this.options.filters || []).map(({ name }) => [name, query[name] || ""]).filter(([, value]) => value));
  }

  filterForm() {
    const now = this.filterValues();
    const apply = (form) => { this.options.context.setQuery(values(form)); this.reload(); };
    let timer = 0;
    const form = h("form", { class: "filters", role: "search", "aria-label": this.options.label, onsubmit: (event) => { event.preventDefault(); apply(form); },
      onchange: () => apply(form),
      oninput: (event) => { if (event.target.type === "search") { clearTimeout(timer); timer = setTimeout(() => apply(form), 300); } } },
    this.options.filters.map(({ name, label, options, type, example }) => field({ label }, options
      ? h("select", { name }, options.map(([value, text]) => h("option", { value, selected: value === (now[name] || "") }, text)))
      : h("input", { name, type: type || "text", value: now[name] || "", placeholder: example, autocomplete: "off" }))));
    return this.options.filters.length > FEW_FILTERS ? this.foldedOnPhones(form, now) : form;
  }

  foldedOnPhones(form, now) {
    const wide = matchMedia("(min-width: 40rem)");
    const box = h("details", { class: "filter-box", open: wide.matches || Object.keys(now).length > 0 }, h("summary", {}, t("table.filter")), form);
    wide.addEventListener("change", () => { box.open = wide.matches; }, { signal: this.options.context?.signal });
    return box;
  }

  clearFilters() {
    this.options.context.setQuery(Object.fromEntries(this.options.filters.map(({ name }) => [name, ""])));
    this.filters.replaceWith(this.filters = this.filterForm());
    this.reload();
  }

  // loading

  /** Loads from the beginning, as many rows as there are now; keeps what is shown until then. */
  async reload() {
    const turn = this.reloading = ++this.turn;
    if (!this.isLoaded) setTimeout(() => { if (turn === this.turn && !this.isLoaded && !this.failure) paint(this.body, loading()); }, 150);
    try {
      const page = await this.load(null, this.rows.length);
      if (turn === this.turn) this.show(page);
    } catch (error) {
      if (turn === this.turn && error.name !== "AbortError") this.showFailure(error);
    } finally {
      if (turn === this.reloading) this.reloading = 0;
    }
  }

  async load(cursor, wanted = 0) {
    const query = { ...this.filterValues(), signal: this.options.context?.signal };
    const page = await this.options.load({ ...query, cursor });
    while (page.rows.length < wanted && page.next) {
      const further = await this.options.load({ ...query, cursor: page.next });
      page.rows.push(...further.rows);
      page.next = further.next;
    }
    return page;
  }

  show({ rows, next }) {
    Object.assign(this, { rows: [...rows], next, waiting: null, failure: null, isLoaded: true });
    const ids = new Set(rows.map(this.options.id));
    for (const id of this.chosen) if (!ids.has(id)) this.chosen.delete(id);
    markFresh();
    this.paint();
  }

  showFailure(error) {
    this.failure = error;
    if (this.isLoaded) toastError(error);
    else paint(this.body, failed(error, () => { this.failure = null; this.reload(); }));
  }

  /** Loads all rows, such as before they are printed. */
  async all() {
    for (let before = -1; this.next && this.rows.length > before;) {
      before = this.rows.length;
      await this.more();
    }
  }

  /** Loads the next page, once however often it is called meanwhile. */
  more() {
    this.coming ||= this.loadMore().finally(() => { this.coming = null; });
    return this.coming;
  }

  async loadMore() {
    if (!this.next) return;
    const turn = this.turn;
    try {
      const page = await this.load(this.next);
      if (turn !== this.turn) return;
      const known = new Set(this.rows.map(this.options.id));
      this.rows.push(...page.rows.filter((row) => !known.has(this.options.id(row))));
      this.next = page.next;
      this.paint();
    } catch (error) {
      toastError(error);
    }
  }

  /**
   * Reads the list again after something has changed. Rows that stay are changed in place; if rows would move while the
   * pointer or the focus is in the list, a button offers the new ones. While the list is being loaded for new filters,
   * that begins again: its rows are shown at once.
   */
  async update() {
    if (!this.isLoaded || this.reloading) return this.reload();
    const turn = ++this.turn;
    const page = await this.load(null, this.rows.length).catch((error) => { if (error.name !== "AbortError") console.warn(error.message); });
    if (!page || turn !== this.turn) return;
    const ids = this.rows.map(this.options.id);
    const fresh = page.rows.filter((row) => !ids.includes(this.options.id(row)));
    const isSame = !fresh.length && page.rows.length === ids.length && page.rows.every((row, place) => this.options.id(row) === ids[place]);
    if (isSame || !this.isUsed()) return this.show(page);
    const byId = new Map(page.rows.map((row) => [this.options.id(row), row]));
    this.rows = this.rows.map((row) => byId.get(this.options.id(row)) || row);
    this.waiting = { ...page, fresh: fresh.length };
    markFresh();
    this.paint();
  }

  isUsed() {
    const rows = this.body.querySelector(".rows");
    return this.chosen.size > 0 || Boolean(rows && (rows.matches(":hover") || rows.contains(document.activeElement)));
  }

  // painting

  paint() {
    if (!this.rows.length && !this.waiting) return paint(this.body, this.whenEmpty());
    const { columns, actions, label } = this.options;
    const widths = [actions && "2.75rem", ...columns.map((one) => one.width || "1fr")].filter(Boolean).join(" ");
    paint(this.body,
      this.waiting && h("button", { key: "waiting", class: "waiting", onclick: () => this.show(this.waiting) },
        this.waiting.fresh ? t("table.new", { count: this.waiting.fresh }) : t("table.changed")),
      actions && this.actionBar(),
      h("div", { key: "table", class: "table", role: "table", "aria-label": label, "aria-rowcount": this.next ? -1 : this.rows.length + 1, style: { "--columns": widths } },
        h("div", { role: "rowgroup", class: "head" }, h("div", { role: "row", class: "row" },
          actions && h("div", { role: "columnheader", class: "choice" }, this.chooseAll()),
          columns.map((one) => h("div", { role: "columnheader", class: one.class }, one.title)))),
        h("div", { role: "rowgroup", class: "rows" }, this.rows.map((row) => this.row(row)))),
      h("div", { key: "foot", class: "list-foot" },
        h("span", { class: "quiet" }, t(this.next ? "table.shown_so_far" : "table.shown", { count: this.rows.length })),
        this.next && h("button", { class: "more", onclick: () => this.more() }, t("table.more"))));
    this.observer.disconnect();
    const more = this.body.querySelector(".more");
    if (more) this.observer.observe(more);
  }

  row(row) {
    const { columns, id, href, actions } = this.options;
    const name = id(row);
    const [first, ...rest] = columns;
    const link = (content) => (href?.(row) ? h("a", { href: href(row) }, content) : content);
    return h("div", { key: `row ${name}`, role: "row", class: this.chosen.has(name) ? "row chosen" : "row" },
      actions && h("div", { role: "cell", class: "choice" }, h("input", { type: "checkbox", checked: this.chosen.has(name),
        "aria-label": t("table.choose", { name: first.name?.(row) ?? name }), onchange: (event) => this.choose([name], event.target.checked) })),
      h("div", { role: "rowheader", class: `first ${first.class || ""}` }, link(first.cell(row))),
      rest.map((one) => {
        const content = one.cell(row);
        return h("div", { role: "cell", class: content === "–" ? `${one.class || ""} nothing` : one.class, dataset: { title: one.title } }, content);
      }));
  }

  whenEmpty() {
    if (!Object.keys(this.filterValues()).length) return empty(this.options.whenEmpty || { title: t("table.empty") });
    return empty({ title: t("table.nothing_found"), action: h("button", { onclick: () => this.clearFilters() }, t("table.clear_filters")) });
  }

  // selection

  choose(ids, isChosen) {
    for (const id of ids) isChosen ? this.chosen.add(id) : this.chosen.delete(id);
    this.paint();
  }

  chooseAll() {
    const ids = this.rows.map(this.options.id);
    const count = this.chosen.size;
    return h("input", { type: "checkbox", checked: count > 0 && count === ids.length, indeterminate: count > 0 && count < ids.length,
      "aria-label": t("table.choose_all"), onchange: (event) => this.choose(ids, event.target.checked) });
  }

  get selected() {
    return this.rows.filter((row) => this.chosen.has(this.options.id(row)));
  }

  actionBar() {
    const count = this.chosen.size;
    return h("div", { key: "actions", class: "action-bar", hidden: !count, role: "toolbar", "aria-label": t("table.actions") },
      h("span", {}, t("table.selected", { count })),
      this.options.actions.map((one) => h("button", { class: one.danger ? "danger" : "", onclick: () => this.act(one) }, one.title)),
      h("button", { class: "plain", onclick: () => this.choose([...this.chosen], false) }, t("table.choose_none")));
  }

  async act({ run }) {
    try {
      if (await run([...this.chosen], this.selected) === false) return;
      this.chosen.clear();
      await this.reload();
    } catch (error) {
      toastError(error);
    }
  }
}
