/**
 * The pages: what stands after `#/`, the module that shows it, the right it needs, and where it stands in the menu. A page
 * without a section is not in the menu. The words are `page.<name>`, `section.<section>`.
 */
export const PAGES = [
  { name: "home", right: null, section: "main" },
  { name: "write", right: "write", section: "main" },
  { name: "messages", right: "read", section: "main" },
  { name: "message", right: "read" },
  { name: "people", right: "people", section: "main" },
  { name: "person", right: "people" },
  { name: "groups", right: "people", section: "main" },
  { name: "group", right: "people" },
  { name: "import", right: "people", section: "main" },
  { name: "overview", right: "inspect", section: "operate" },
  { name: "tubes", right: "inspect", section: "operate" },
  { name: "tasks", right: "inspect", section: "operate" },
  { name: "task", right: "inspect" },
  { name: "lanes", right: "inspect", section: "operate" },
  { name: "dead_letters", right: "inspect", section: "operate" },
  { name: "processes", right: "inspect", section: "operate" },
  { name: "audit", right: "inspect", section: "operate" },
  { name: "jobs", right: "inspect", section: "operate" },
  { name: "job", right: "inspect" },
  { name: "webhooks", right: ["people", "key"], section: "operate" },
  { name: "keys", right: "keys", section: "operate" },
  { name: "actions", right: "keys", section: "operate" },
  { name: "scenarios", right: "inspect", section: "authors" },
  { name: "dry_run", right: "inspect", section: "authors" },
  { name: "runs", right: "inspect", section: "authors" },
  { name: "account", right: null },
];
