"""The table of all operations. Registration, scopes, the OpenAPI document and the tests read it."""

from delivery.api import (
    accounts,
    actions,
    api_keys,
    audits,
    delivery_reports,
    files,
    health,
    inbound,
    live,
    me,
    monitoring,
    pages,
    processes,
    sessions,
    threads,
    webhooks,
)
from delivery.api.answer_page import answering
from delivery.api.bots import forms, runs, scenarios, updates
from delivery.api.deliveries import (
    addressees,
    answers,
    bulk,
    changes,
    channels,
    histories,
    of_person,
    preview,
    quota,
    recipients,
    sending,
    series,
    templates,
    tracking,
)
from delivery.api.directory import contacts, exports, groups, imports, links, ownerships, users
from delivery.api.jobs import jobs, log, many, mending
from delivery.api.queue import lanes, tasks, tubes
from delivery.api.sign_in import sign_in
from delivery.console import files as console_files
from delivery.http.route import OpenRoute, Route, Routes

_RESOURCES = (
    sending, preview, bulk, histories, changes, tracking, recipients, answers, threads, templates, series, channels,
    quota,
    addressees, files, imports, exports, links, updates,
    monitoring, tubes, lanes, audits, accounts, processes, scenarios, forms, runs, tasks,
    jobs, many, mending, log, sign_in, webhooks,
    users, of_person, contacts, groups, ownerships,
    me, sessions, actions, live, api_keys,
    delivery_reports, inbound, answering, health, pages, console_files,
)  # fmt: skip

_ALL = [route for resource in _RESOURCES for route in resource.ROUTES]
ROUTES = tuple(route for route in _ALL if isinstance(route, Route))
OPEN_ROUTES = tuple(route for route in _ALL if isinstance(route, OpenRoute))
EVERY_ROUTE: Routes = (*ROUTES, *OPEN_ROUTES)
