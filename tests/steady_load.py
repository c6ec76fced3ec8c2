"""Decisions asked of several nodes at a steady pace, from threads, while the test does something to their store."""

import threading
import time
from dataclasses import dataclass

import httpx


@dataclass(frozen=True)
class Answer:
    node: int  # Which of the nodes.
    sent_at: float  # time.monotonic()
    took_s: float
    status: int
    body: dict

    @property
    def allowed(self):
        return self.body.get("allowed", False)

    @property
    def source(self):
        return self.body.get("source")


class SteadyLoad:
    """`with SteadyLoad(nodes, client="alice") as load:` asks every node each `pace_s`; `load.answers` grows meanwhile.

    A call that fails altogether has the status 0. `threads` ask each node, with a connection of their own.
    """

    def __init__(self, nodes, client="alice", pace_s=0.02, threads=1):
        self.answers = []
        self._body = {"attributes": {"client": client}}
        self._pace_s = pace_s
        self._ended = threading.Event()
        self._threads = [
            threading.Thread(target=self._ask, args=(number, node.api), daemon=True)
            for number, node in enumerate(nodes)
            for _ in range(threads)
        ]

    def __enter__(self):
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_):
        self.stop()

    def stop(self):
        self._ended.set()
        for thread in self._threads:
            thread.join()

    def _ask(self, number, url):
        with httpx.Client(timeout=30) as client:
            while not self._ended.wait(self._pace_s):
                sent_at = time.monotonic()
                try:
                    answer = client.post(f"{url}/v1/check", json=self._body)
                    status, body = answer.status_code, answer.json()
                except (httpx.HTTPError, ValueError):
                    status, body = 0, {}
                self.answers.append(Answer(number, sent_at, time.monotonic() - sent_at, status, body))

    # --- Of what has been answered so far.

    def count(self, **wanted):
        return sum(all(getattr(answer, key) == value for key, value in wanted.items()) for answer in list(self.answers))

    def admitted(self, *sources):
        return sum(answer.allowed and answer.source in sources for answer in list(self.answers))

    def statuses(self):
        return {answer.status for answer in list(self.answers)}

    def since(self, moment):
        return [answer for answer in list(self.answers) if answer.sent_at >= moment]
