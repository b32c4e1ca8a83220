"""Times in pages and in documents."""

from datetime import UTC, datetime


def iso_time(seconds: float) -> str | None:
    """Return a time in UTC, as ISO 8601; None where it is not known."""
    try:
        return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="seconds") if seconds else None
    except (OverflowError, ValueError, OSError):
        return None


def day(seconds: float) -> str:
    """Return the day of a time in UTC; '' where it is not known."""
    return (iso_time(seconds) or "")[:10]
