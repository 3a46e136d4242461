"""Simulates a service of vacancies: OAuth 2 with PKCE, profiles, a paged search, applications.

A person who signs in agrees at once. No person can apply twice to the same vacancy; a day has a limit of applications.
A request that such a service refuses is refused here.
"""

from sandbox.vacancies.oauth import CLIENT_ID, CLIENT_SECRET
from sandbox.vacancies.server import VacanciesServer

__all__ = ["CLIENT_ID", "CLIENT_SECRET", "VacanciesServer"]
