"""Times as stores write them, as numbers; without a calendar, a clock or a time zone."""

from __future__ import annotations

DAY = 86_400.0


def seconds_of(written: str) -> float | None:
    """Seconds since 1970 of a time as stores write it (UTC, to the second); None for anything else."""
    try:
        year, month, day = int(written[:4]), int(written[5:7]), int(written[8:10])
        hour, minute, second = int(written[11:13] or 0), int(written[14:16] or 0), int(written[17:19] or 0)
    except ValueError:
        return None
    # Counted from March, so that the day of a leap year comes last; 719,468 days lie before 1970.
    year -= month < 3
    day_of_year = (153 * ((month - 3) % 12) + 2) // 5 + day - 1
    days = year * 365 + year // 4 - year // 100 + year // 400 + day_of_year - 719_468
    return days * DAY + hour * 3600 + minute * 60 + second
