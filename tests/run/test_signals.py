"""Stopping a run: once politely, twice at once."""

import os
import signal

import pytest

from bench.run.signals import polite_stop


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_the_first_signal_asks_and_the_second_stops(number: signal.Signals) -> None:
    mine = signal.signal(number, signal.SIG_DFL)  # tests in the background ignore SIGINT
    told: list[str] = []
    try:
        with polite_stop(told.append) as stop:
            assert not stop
            os.kill(os.getpid(), number)
            assert stop.signal == number
            assert len(told) == 1
            with pytest.raises(KeyboardInterrupt):
                os.kill(os.getpid(), number)
        assert signal.getsignal(number) is signal.SIG_DFL  # given back
    finally:
        signal.signal(number, mine)


def test_what_was_ignored_stays_ignored() -> None:
    mine = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        with polite_stop(lambda text: None) as stop:
            os.kill(os.getpid(), signal.SIGINT)
            assert not stop
    finally:
        signal.signal(signal.SIGINT, mine)
