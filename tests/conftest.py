"""Fixtures: an upstream for the whole run; servers that live as long as a test and leave their log when it fails."""

import ipaddress
import subprocess
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID
from fake_clock import FakeClock
from raw_http2 import Http2Connection
from redis_servers import FLAVOURS, RedisCluster, RedisSentinels, RedisServer
from servers import BINARY, Process, Upstream, Weir, make_config
from store_proxy import StoreProxy

STARTED = pytest.StashKey[list[Process]]()


def pytest_configure():
    if not Path(BINARY).exists():
        raise pytest.UsageError(f"{BINARY} is not there: `make build`, or name another with WEIR_BINARY")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item, call):
    report = yield
    if report.failed:
        for process in item.stash.get(STARTED, []):
            report.sections.append((f"{process.name} (pid {process.pid})", process.report()))
    return report


@pytest.fixture(scope="session")
def upstream():
    """The stand-in upstream, shared: tests that count use paths of their own."""
    server = Upstream()
    yield server
    assert server.stop() == 0, server.report()


@pytest.fixture
def started(request):
    """Processes that the test started: ended after it, in the reverse order."""
    processes = []
    request.node.stash[STARTED] = processes
    yield processes
    for process in reversed(processes):
        if process.running():
            try:
                process.stop()
            except subprocess.TimeoutExpired:
                pytest.fail(f"{process.name} did not end after SIGTERM:\n{process.report()}")


@pytest.fixture
def start_weir(tmp_path_factory, started, upstream):
    """start_weir(limits, **sections) -> Weir, with the shared upstream behind the gateway unless told otherwise."""

    def start(limits=(), env=None, options=(), text=None, wrapper=(), **sections):
        if text is None:
            if "upstreams" not in sections:
                sections.setdefault("upstream", upstream.url)
            text = make_config(limits, **sections)
        server = Weir(tmp_path_factory.mktemp("weir"), text, env=env, options=options, wrapper=wrapper)
        started.append(server)
        return server

    return start


@pytest.fixture
def h2c(weir):
    """HTTP/2 without TLS, to the gateway of the module's own `weir`."""
    with Http2Connection(weir.address("gateway")) as connection:
        yield connection


@pytest.fixture
def start_upstream(started):
    def start(*options):
        server = Upstream(*options)
        started.append(server)
        return server

    return start


@pytest.fixture
def start_redis(tmp_path_factory, started):
    """start_redis("redis" or "valkey", *options) -> RedisServer"""

    def start(flavour="redis", *options, **settings):
        server = RedisServer(flavour, tmp_path_factory.mktemp(flavour), *options, **settings)
        started.append(server)
        return server

    return start


@pytest.fixture(params=FLAVOURS)
def shared_store(request, start_redis):
    """A server of each kind in turn."""
    return start_redis(request.param)


@pytest.fixture(params=FLAVOURS)
def redis_cluster(request, tmp_path_factory, started):
    return RedisCluster(request.param, tmp_path_factory.mktemp, started)


@pytest.fixture(params=FLAVOURS)
def redis_sentinels(request, tmp_path_factory, started):
    return RedisSentinels(request.param, tmp_path_factory.mktemp, started)


@pytest.fixture
def start_proxy():
    """start_proxy(port, certificates=None) -> StoreProxy, between a node and the store at that port."""
    proxies = []

    def start(port, certificates=None):
        proxies.append(StoreProxy(port, certificates))
        return proxies[-1]

    yield start
    for proxy in proxies:
        proxy.close()


@pytest.fixture
def start_node(start_weir):
    """start_node(server, limits, **sections) -> Weir, one of the nodes that share their limits through `server`."""

    def start(server, limits, store=None, **sections):
        settings = {"kind": "redis", "url": server.url, "timeout": "500ms", **(store or {})}
        return start_weir(limits, store=settings, identity={"secret": "tests-share-this-secret"}, **sections)

    return start


@pytest.fixture
def fake_clock(tmp_path):
    """A clock that stands still until it is moved; pass `env=fake_clock.env` to start_weir."""
    if not FakeClock.available():
        pytest.fail("libfaketime is not installed (Debian package faketime)")
    return FakeClock(tmp_path / "clock")


@pytest.fixture
def weir_command():
    """Runs `weir ...` to its end."""

    def run(*arguments, env=None, timeout_s=60):
        return subprocess.run(
            [BINARY, *map(str, arguments)],
            capture_output=True,
            text=True,
            timeout=timeout_s,
            env=env,
            stdin=subprocess.DEVNULL,
            check=False,
        )

    return run


class Certificates:
    """An authority and a certificate for localhost and 127.0.0.1 by it."""

    def __init__(self, folder, authority="weir tests"):
        self.ca, self.cert, self.key = folder / "ca.pem", folder / "cert.pem", folder / "key.pem"
        now = datetime.now(UTC)
        ca_key = ec.generate_private_key(ec.SECP256R1())
        ca_name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, authority)])
        leaf_key = ec.generate_private_key(ec.SECP256R1())
        leaf_name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "localhost")])
        names = [x509.DNSName("localhost"), x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]

        def certificate(subject, public_key):
            return (
                x509.CertificateBuilder()
                .subject_name(subject)
                .issuer_name(ca_name)
                .public_key(public_key)
                .serial_number(x509.random_serial_number())
                .not_valid_before(now - timedelta(days=1))
                .not_valid_after(now + timedelta(days=2))
            )

        ca = (
            certificate(ca_name, ca_key.public_key())
            .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
            .sign(ca_key, hashes.SHA256())
        )
        leaf = (
            certificate(leaf_name, leaf_key.public_key())
            .add_extension(x509.SubjectAlternativeName(names), critical=False)
            .sign(ca_key, hashes.SHA256())
        )
        self.ca.write_bytes(ca.public_bytes(serialization.Encoding.PEM))
        self.cert.write_bytes(leaf.public_bytes(serialization.Encoding.PEM))
        self.key.write_bytes(
            leaf_key.private_bytes(
                serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
            )
        )


@pytest.fixture(scope="session")
def certificates(tmp_path_factory):
    return Certificates(tmp_path_factory.mktemp("certificates"))


@pytest.fixture(scope="session")
def other_certificates(tmp_path_factory):
    """By an authority that nobody trusts."""
    return Certificates(tmp_path_factory.mktemp("other-certificates"), "others")
