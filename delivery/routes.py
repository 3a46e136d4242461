"""The table of all operations. Registration, scopes, the OpenAPI document and the tests read it."""

from delivery.api import (
    actions,
    api_keys,
    audits,
    bots,
    calendar_feed,
    files,
    health,
    inbound,
    jobs,
    jobs_control,
    live,
    me,
    monitoring,
    pages,
    processes,
    queue_tasks,
    queue_tubes,
    sessions,
    sign_in,
    threads,
    updates,
    webhooks,
)
from delivery.api.deliveries import (
    answers,
    bulk,
    changes,
    costs,
    histories,
    preview,
    recipients,
    sender,
    sending,
    series,
    templates,
    tracking,
)
from delivery.api.directory import contacts, groups, imports, person_export, syncs, users
from delivery.api.recipient_pages import answer_page, devices, preferences_page
from delivery.api.scim import endpoints as scim
from delivery.console import files as console_files
from delivery.http.route import OpenRoute, Route, Routes

_RESOURCES = (
    sending, bulk, preview, histories, changes, tracking, recipients, answers, threads, templates, series, costs,
    sender,
    files, imports, updates,
    monitoring, queue_tubes, audits, processes, bots, queue_tasks,
    jobs, jobs_control, sign_in, webhooks,
    users, person_export, contacts, groups, syncs,
    scim, me, calendar_feed, sessions, actions, live, api_keys,
    inbound, answer_page, preferences_page, devices, health, pages, console_files,
)  # fmt: skip

_ALL = [route for resource in _RESOURCES for route in resource.ROUTES]
ROUTES = tuple(route for route in _ALL if isinstance(route, Route))
OPEN_ROUTES = tuple(route for route in _ALL if isinstance(route, OpenRoute))
EVERY_ROUTE: Routes = (*ROUTES, *OPEN_ROUTES)
