"""Reload by SIGHUP, by the admin door and by a changed file: what stays, what changes, what is refused."""

import os
import threading

import httpx
import pytest
import yaml
from servers import http, make_config, wait_until

TEN = {"name": "limit", "per": ["client"], "rate": "10/hour"}


def rewrite(weir, limits, upstream, **sections):
    weir.write(make_config(limits, upstream=upstream.url, **sections))


class Load:
    """Calls in the background, each on its own way through the gateway; every answer is kept."""

    def __init__(self, weir, threads=4):
        self.statuses = []
        self.errors = []
        self._weir = weir
        self._stop = threading.Event()
        self._threads = [threading.Thread(target=self._run, args=(i,)) for i in range(threads)]

    def __enter__(self):
        for thread in self._threads:
            thread.start()
        wait_until(lambda: len(self.statuses) > 20, "the load has begun")
        return self

    def __exit__(self, *_):
        self._stop.set()
        for thread in self._threads:
            thread.join()

    def _run(self, number):
        with httpx.Client(timeout=30) as client:
            while not self._stop.is_set():
                try:
                    headers = {"authorization": f"Bearer load-{number}"}
                    answer = client.get(f"{self._weir.gateway}/v1/models", headers=headers)
                    self.statuses.append(answer.status_code)
                except httpx.HTTPError as error:
                    self.errors.append(repr(error))


@pytest.mark.parametrize("how", ["sighup", "admin"])
def test_reloads_under_load_drop_neither_a_call_nor_a_counter(start_weir, upstream, how):
    # A window, because a bucket would refill what the load takes.
    counted = {"name": "counted", "per": ["client"], "rate": "1000000/day"}
    counted |= {"algorithm": "fixed_window", "align": "calendar"}
    weir = start_weir([counted, TEN | {"match": {"path": "/v1/embeddings"}}])
    with Load(weir) as load:
        for i in range(10):
            rewrite(weir, [counted, {"name": f"extra-{i}", "per": [], "rate": "1000000/s"}], upstream)
            if how == "sighup":
                assert weir.hup()["message"] == "reloaded"
            else:
                assert weir.reload().status_code == 200
    assert load.errors == []
    assert set(load.statuses) == {200}
    # A load thread may end between its answer and its count; the server's own count is exact.
    used = sum(1_000_000 - int(weir.get(key=f"load-{i}").headers["x-ratelimit-remaining"]) - 1 for i in range(4))
    assert used == pytest.approx(len(load.statuses), abs=len(load.statuses) * 0.05 + 1)
    assert weir.metric("weir_limit_decisions_total", limit="counted") == len(load.statuses) + 4


@pytest.mark.parametrize("swap", ["write", "rename", "symlink"])
def test_a_changed_file_is_reloaded(start_weir, tmp_path, upstream, started, swap):
    from servers import Weir

    def text(rate):
        limits = [{"name": "limit", "per": ["client"], "rate": rate}]
        return yaml.safe_dump(make_config(limits, upstream=upstream.url, config={"watch": True}))

    if swap == "symlink":  # As Kubernetes mounts a ConfigMap.
        for number, rate in ((1, "10/hour"), (2, "20/hour")):
            (tmp_path / f"..{number}").mkdir()
            (tmp_path / f"..{number}" / "weir.yaml").write_text(text(rate))
        (tmp_path / "..data").symlink_to("..1")
        (tmp_path / "weir.yaml").symlink_to("..data/weir.yaml")
        config = (tmp_path / "weir.yaml").read_text()
    else:
        config = text("10/hour")
    weir = Weir(tmp_path, config)  # Through the link, the same content again.
    started.append(weir)
    assert weir.get(key="a").headers["x-ratelimit-limit"] == "10"
    if swap == "write":
        weir.config_path.write_text(text("20/hour"))
    elif swap == "rename":
        (tmp_path / "next").write_text(text("20/hour"))
        os.replace(tmp_path / "next", weir.config_path)
    else:
        (tmp_path / "..data_tmp").symlink_to("..2")
        os.replace(tmp_path / "..data_tmp", tmp_path / "..data")
    wait_until(lambda: weir.get(key="b").headers["x-ratelimit-limit"] == "20", "the new limit")
    assert weir.get(key="a").headers["x-ratelimit-limit"] == "20"


def test_case38_a_faulty_reload_leaves_the_old_policy(start_weir, upstream):
    weir = start_weir([TEN])
    good = weir.config_path.read_text()
    weir.write(good + "- {name: limit, per: [client], rate: 10/hour}\n")
    answer = weir.reload()
    assert answer.status_code == 422
    assert "limit" in answer.text and str(weir.config_path) in answer.text
    assert weir.hup()["message"].startswith("reload failed")
    assert weir.get(key="a").headers["x-ratelimit-limit"] == "10"
    assert weir.metric("weir_config_last_reload_successful") == 0
    weir.write(good)
    assert weir.reload().status_code == 200
    assert weir.metric("weir_config_last_reload_successful") == 1


def test_a_changed_listener_needs_a_restart(start_weir, upstream):
    weir = start_weir([TEN])
    rewrite(weir, [TEN | {"rate": "20/hour"}], upstream, threads=1)
    answer = weir.reload()
    assert answer.status_code == 409
    assert "restart" in answer.text and "threads" in answer.text
    assert weir.get(key="a").headers["x-ratelimit-limit"] == "10"


def test_case42_a_raise_counts_from_what_is_used(start_weir, upstream, fake_clock):
    weir = start_weir([TEN], env=fake_clock.env)
    statuses = [weir.get(key="a").status_code for _ in range(50)]
    assert statuses.count(200) == 10
    rewrite(weir, [TEN | {"rate": "20/hour"}], upstream)
    weir.hup()
    answers = [weir.get(key="a") for _ in range(15)]
    assert [answer.status_code for answer in answers] == [200] * 10 + [429] * 5
    assert {answer.headers["x-ratelimit-limit"] for answer in answers} == {"20"}


def test_case44_a_lowered_limit_holds_for_known_clients_at_once(start_weir, upstream, fake_clock):
    weir = start_weir([TEN | {"rate": "100/min"}], env=fake_clock.env)
    assert [weir.get(key="a").status_code for _ in range(3)] == [200] * 3
    rewrite(weir, [TEN | {"rate": "2/min"}], upstream)
    weir.hup()
    answers = [weir.get(key="a") for _ in range(6)]
    assert {answer.headers["x-ratelimit-limit"] for answer in answers} == {"2"}
    assert [answer.status_code for answer in answers].count(200) <= 2


def test_case45_reading_after_a_raise(start_weir, upstream, fake_clock):
    weir = start_weir([TEN | {"rate": "5/min"}], env=fake_clock.env)
    rewrite(weir, [TEN | {"rate": "10/min"}], upstream)
    weir.hup()
    for _ in range(7):
        assert weir.decide({"client": "a"})["allowed"]
    state = http.get(f"{weir.admin}/admin/state", params={"client": "a"})
    assert state.status_code == 200
    (limit,) = state.json()["limits"]
    assert (limit["name"], limit["quota"], limit["remaining"]) == ("limit", 10, 3)


def test_case46_metrics_go_on_after_a_reload(start_weir, upstream):
    none = {"name": "none", "per": ["client"], "rate": "0/hour", "match": {"path": "/none"}}
    weir = start_weir([none])
    assert [weir.get("/none", key="a").status_code for _ in range(3)] == [429] * 3
    with Load(weir, threads=2) as load:
        rewrite(weir, [none, TEN | {"match": {"path": "/other"}}], upstream)
        weir.hup()
        assert [weir.get("/none", key="a").status_code for _ in range(2)] == [429] * 2
        assert weir.metric("weir_limit_decisions_total", limit="none", outcome="denied") == 5
    assert load.errors == []


def test_a_changed_algorithm_starts_afresh_with_a_warning(start_weir, upstream):
    weir = start_weir([TEN])
    assert [weir.get(key="a").status_code for _ in range(11)] == [200] * 10 + [429]
    rewrite(weir, [TEN | {"algorithm": "sliding_window"}], upstream)
    weir.hup()
    assert weir.get(key="a").headers["x-ratelimit-remaining"] == "9"
    assert any("limit" in str(line) for line in weir.log_lines("reload: a limit starts afresh"))
