"""What a soak of jobs does, random by a seed."""

from dataclasses import dataclass

SHORT_SECONDS, LONG_SECONDS = 5.0, 120.0


@dataclass(frozen=True)
class Plan:
    """`seconds`: of blows. `lease`, `period` in seconds. `processes`: that run jobs at a time. `vacancies`: how many
    there are in the end. `patience`: seconds in which every running job must end an iteration after the last blow.
    """

    seed: int
    seconds: float = LONG_SECONDS
    jobs: int = 300
    processes: int = 4
    lease: float = 2.0
    period: float = 8.0
    vacancies: int = 80
    patience: float = 300.0

    @property
    def users(self) -> range:
        return range(1, self.jobs + 1)

    @property
    def walkers(self) -> range:
        """The users that also have a job of the second kind."""
        return range(1, -(-self.jobs // 10) + 1)


def short_plan(seed: int) -> Plan:
    return Plan(seed, SHORT_SECONDS, jobs=20, processes=2, lease=1.0, period=1.0, vacancies=20, patience=90.0)


def person_of(user: int) -> str:
    """The account of a user at the service."""
    return f"user-{user}"


def job_of(user: int) -> str:
    return f"hunt.{user}"


def round_of(user: int) -> str:
    return f"round.{user}"
