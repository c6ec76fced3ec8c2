"""A clock that a test moves, for a server that runs under libfaketime: both of its clocks stand still in between."""

import os
from datetime import UTC, datetime
from pathlib import Path

LIBRARIES = [
    *Path("/usr/lib").glob("*/faketime/libfaketimeMT.so.1"),
    *Path("/usr/lib/faketime").glob("libfaketimeMT.so.1"),
]


def shifted_clock(seconds):
    """The environment of a server whose clock goes so many seconds ahead."""
    return {"LD_PRELOAD": str(LIBRARIES[0]), "FAKETIME": f"{seconds:+}s", "DONT_FAKE_MONOTONIC": "1"}


class FakeClock:
    def __init__(self, path):
        self._path = Path(path)
        self._seconds = 0.0
        self.set(datetime(2026, 6, 15, 12, 0, 0, tzinfo=UTC))

    @staticmethod
    def available():
        return bool(LIBRARIES)

    @property
    def env(self):
        return {
            "LD_PRELOAD": str(LIBRARIES[0]),
            "FAKETIME_TIMESTAMP_FILE": str(self._path),
            "FAKETIME_NO_CACHE": "1",
            "TZ": "UTC",
        }

    @property
    def unix(self):
        return self._seconds

    def set(self, instant):
        """`instant`: an aware datetime, or Unix seconds."""
        self._seconds = instant.timestamp() if isinstance(instant, datetime) else float(instant)
        whole = int(self._seconds)
        micros = round((self._seconds - whole) * 1_000_000)
        text = datetime.fromtimestamp(whole, UTC).strftime("%Y-%m-%d %H:%M:%S") + f".{micros:06d}"
        fresh = self._path.with_suffix(".next")
        fresh.write_text(text + "\n")
        os.replace(fresh, self._path)

    def advance(self, seconds):
        self.set(self._seconds + seconds)
