"""Times as pages and the document tell them."""

from datetime import UTC, datetime


def moment(seconds: float) -> str | None:
    """Return a time in UTC, as ISO 8601; None where it is not known."""
    try:
        return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="seconds") if seconds else None
    except (OverflowError, ValueError, OSError):
        return None
