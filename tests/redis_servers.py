"""Redis and Valkey servers of the tests' own: on a unix socket and a free port, without persistence, ended by pid."""

import contextlib
import shutil
import socket
import subprocess

from servers import Process, wait_until

import redis

FLAVOURS = ("redis", "valkey")


def free_port():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


class RedisServer(Process):
    """`redis-server` or `valkey-server`, ready to answer."""

    def __init__(self, flavour, folder, *options, port=None, wrapper=(), env=None):
        binary = shutil.which(f"{flavour}-server")
        if binary is None:
            raise AssertionError(f"{flavour}-server is not installed; `make test` installs it")
        self.folder = folder
        self.port = port or free_port()
        self.url = f"redis://127.0.0.1:{self.port}/0"
        self.socket = folder / "store.sock"
        arguments = ["--port", str(self.port), "--bind", "127.0.0.1", "--unixsocket", str(self.socket)]
        arguments += ["--save", "", "--appendonly", "no"]
        super().__init__(
            [*wrapper, binary, *arguments, "--dir", str(folder), *options], f"{flavour}-server", cwd=folder, env=env
        )
        self.client = redis.Redis(port=self.port, socket_timeout=10)
        wait_until(self._answers, f"{flavour}-server answers on port {self.port}")

    def _answers(self):
        if not self.running():
            raise AssertionError(f"{self.name} ended at once:\n{self.report()}")
        try:
            return self.client.ping()
        except redis.exceptions.AuthenticationError:
            return True  # It answers, to others.
        except redis.exceptions.RedisError:
            return False

    def keys(self):
        return sorted(self.client.scan_iter("*"))

    def calls(self, command="evalsha"):
        """How often the command has been carried out."""
        return self.client.info("commandstats").get(f"cmdstat_{command}", {}).get("calls", 0)

    def decision_calls(self):
        """How often scripts have been called, but for the heartbeats of nodes, which alone ask ZCARD."""
        stats = self.client.info("commandstats")
        calls, beats = (stats.get(f"cmdstat_{command}", {}).get("calls", 0) for command in ("evalsha", "zcard"))
        return calls - beats

    def is_master(self):
        with contextlib.suppress(redis.exceptions.RedisError):
            return self.client.info("replication")["role"] == "master"
        return False


def tls_options(port, certificates):
    """A further port with TLS, for clients that show a certificate of the same authority."""
    options = {"port": port, "cert-file": certificates.cert, "key-file": certificates.key}
    options |= {"ca-cert-file": certificates.ca, "auth-clients": "yes"}
    return [word for name, value in options.items() for word in (f"--tls-{name}", str(value))]


class RedisSentinels:
    """A master with a replica, watched by three Sentinels that call it dead after half a second."""

    NAME = "limits"

    def __init__(self, flavour, make_folder, started):
        def start(*options, **settings):
            started.append(RedisServer(flavour, make_folder(flavour), *options, **settings))
            return started[-1]

        self.servers = [start("--repl-diskless-sync-delay", "0") for _ in range(2)]
        self.servers[1].client.replicaof("127.0.0.1", self.servers[0].port)
        wait_until(self._follows, "the replica follows")
        self.sentinels = []
        for _ in range(3):
            folder = make_folder("sentinel")
            settings = folder / "sentinel.conf"  # Sentinels rewrite it.
            settings.write_text(
                f"sentinel monitor {self.NAME} 127.0.0.1 {self.servers[0].port} 2\n"
                f"sentinel down-after-milliseconds {self.NAME} 500\n"
                f"sentinel failover-timeout {self.NAME} 2000\n"
            )
            self.sentinels.append(RedisSentinel(flavour, folder, settings))
            started.append(self.sentinels[-1])
        wait_until(lambda: all(self._is_ready(sentinel) for sentinel in self.sentinels), "the Sentinels know all")
        addresses = ",".join(f"127.0.0.1:{sentinel.port}" for sentinel in self.sentinels)
        self.url = f"redis+sentinel://{addresses}/{self.NAME}"

    def _follows(self):
        return self.servers[1].client.info("replication").get("master_link_status") == "up"

    def _is_ready(self, sentinel):
        state = sentinel.client.sentinel_master(self.NAME)
        return state["num-other-sentinels"] == 2 and state["num-slaves"] == 1

    def lag(self):
        """How many bytes of the first master's stream its replica has yet to acknowledge."""
        state = self.servers[0].client.info("replication")
        return state["master_repl_offset"] - state["slave0"]["offset"]

    def fail_over(self):
        """The change of masters on purpose, while the old one lives."""
        self.sentinels[0].client.execute_command("SENTINEL", "FAILOVER", self.NAME)

    def master_port(self):
        """What a Sentinel that knows of a change says; the first master's port as long as none does."""
        for sentinel in self.sentinels:
            port = sentinel.client.sentinel_get_master_addr_by_name(self.NAME)[1]
            if port != self.servers[0].port:
                return port
        return self.servers[0].port


class RedisSentinel(Process):
    def __init__(self, flavour, folder, settings):
        self.port = free_port()
        binary = shutil.which(f"{flavour}-server")
        arguments = [binary, str(settings), "--sentinel", "--port", str(self.port), "--bind", "127.0.0.1"]
        super().__init__(arguments, f"{flavour}-sentinel", cwd=folder)
        self.client = redis.Redis(port=self.port, socket_timeout=10)
        wait_until(self._answers, f"the Sentinel answers on port {self.port}")

    def _answers(self):
        if not self.running():
            raise AssertionError(f"{self.name} ended at once:\n{self.report()}")
        with contextlib.suppress(redis.exceptions.RedisError):
            return self.client.ping()
        return False


class RedisCluster:
    """Three masters, each with a third of the slots, and no replica."""

    def __init__(self, flavour, make_folder, started):
        options = ("--cluster-enabled", "yes", "--cluster-node-timeout", "2000")
        self.servers = []
        for _ in range(3):
            # The port of the cluster's own bus is 10,000 above, unless it is named.
            bus = ("--cluster-port", str(free_port()))
            self.servers.append(RedisServer(flavour, make_folder(flavour), *options, *bus))
            started.append(self.servers[-1])
        addresses = [f"127.0.0.1:{server.port}" for server in self.servers]
        cli = shutil.which(f"{flavour}-cli")
        command = [cli, "--cluster", "create", *addresses, "--cluster-replicas", "0", "--cluster-yes"]
        made = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
        assert made.returncode == 0, made.stdout + made.stderr
        wait_until(lambda: all(self._is_whole(server) for server in self.servers), "every node knows all slots")
        self.url = f"redis+cluster://{addresses[0]},{addresses[1]}"

    @staticmethod
    def _is_whole(server):
        info = server.client.execute_command("CLUSTER", "INFO")
        text = info if isinstance(info, str) else str(info)
        return "ok" in text and "16384" in text

    def move_slot(self, slot, source, target):
        """The steps of the Cluster specification, with the keys that the slot holds."""
        ids = [server.client.execute_command("CLUSTER", "MYID").decode() for server in (source, target)]
        target.client.execute_command("CLUSTER", "SETSLOT", slot, "IMPORTING", ids[0])
        source.client.execute_command("CLUSTER", "SETSLOT", slot, "MIGRATING", ids[1])
        while keys := source.client.execute_command("CLUSTER", "GETKEYSINSLOT", slot, 100):
            source.client.execute_command("MIGRATE", "127.0.0.1", target.port, "", 0, 5000, "KEYS", *keys)
        for server in (target, source):
            server.client.execute_command("CLUSTER", "SETSLOT", slot, "NODE", ids[1])
