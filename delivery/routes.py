"""The table of all operations. Registration, scopes, the OpenAPI document and the tests read it."""

from delivery.api import (
    accounts,
    actions,
    api_keys,
    audits,
    calendar_feed,
    delivery_reports,
    files,
    health,
    identity_providers,
    inbound,
    jobs,
    jobs_many,
    jobs_mending,
    live,
    me,
    monitoring,
    pages,
    personal_keys,
    processes,
    queue_tasks,
    queue_tubes,
    sessions,
    sign_in,
    threads,
    webhooks,
)
from delivery.api.bots import forms, runs, scenarios, updates
from delivery.api.deliveries import (
    answers,
    changes,
    costs,
    histories,
    of_person,
    preview,
    recipients,
    sender,
    sending,
    series,
    templates,
    tracking,
)
from delivery.api.directory import contacts, groups, imports, own_fields, ownerships, person_export, syncs, users
from delivery.api.recipient_pages import answer_page, devices, preferences_page
from delivery.api.scim import endpoints as scim
from delivery.console import files as console_files
from delivery.http.route import OpenRoute, Route, Routes

_RESOURCES = (
    sending, preview, histories, changes, tracking, recipients, answers, threads, templates, series, costs,
    sender,
    files, imports, updates,
    monitoring, queue_tubes, audits, accounts, processes, scenarios, forms, runs, queue_tasks,
    jobs, jobs_many, jobs_mending, sign_in, webhooks,
    users, own_fields, of_person, person_export, contacts, groups, ownerships, syncs,
    scim, me, personal_keys, calendar_feed, sessions, identity_providers, actions, live, api_keys,
    delivery_reports, inbound, answer_page, preferences_page, devices, health, pages, console_files,
)  # fmt: skip

_ALL = [route for resource in _RESOURCES for route in resource.ROUTES]
ROUTES = tuple(route for route in _ALL if isinstance(route, Route))
OPEN_ROUTES = tuple(route for route in _ALL if isinstance(route, OpenRoute))
EVERY_ROUTE: Routes = (*ROUTES, *OPEN_ROUTES)
