"""Times as stores write them, as numbers; without a calendar, a clock or a time zone."""

from __future__ import annotations

DAY = 86_400.0


def day_of(seconds: float) -> str:
    """The day (UTC) of a time in seconds since 1970, as stores write it; of a time before the year 1, the first."""
    days = int(max(seconds // DAY, -719_162)) + 719_468
    era, day_of_era = divmod(days, 146_097)
    year_of_era = (day_of_era - day_of_era // 1460 + day_of_era // 36_524 - day_of_era // 146_096) // 365
    day_of_year = day_of_era - (365 * year_of_era + year_of_era // 4 - year_of_era // 100)
    month = (5 * day_of_year + 2) // 153  # from March, as below
    year = era * 400 + year_of_era + (month > 9)
    return f"{year:04}-{(month + 2) % 12 + 1:02}-{day_of_year - (153 * month + 2) // 5 + 1:02}"


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
