"""The conformance tool for HTTP/2 against every door that speaks it, all of its tests, the strict ones too."""

import subprocess
from xml.etree import ElementTree

import pytest
from servers import PATIENCE_S, ROOT

TOOL = "github.com/summerwind/h2spec/cmd/h2spec"
# Beside HTTP/1.1 without TLS, what is no preface is a request of HTTP/1.1, and is answered as one.
NO_PREFACE = "Sends invalid connection preface"


@pytest.fixture(scope="session")
def h2spec(tmp_path_factory):
    binary = tmp_path_factory.mktemp("h2spec") / "h2spec"
    subprocess.run(["go", "build", "-o", binary, TOOL], cwd=ROOT / "tests" / "go" / "h2spec", check=True, timeout=300)
    return binary


def run(h2spec, folder, address, *options):
    """The names of the tests that failed; how many there were."""
    host, port = address
    report = folder / "report.xml"
    command = [h2spec, "-h", host, "-p", port, "-S", "-o", 2, "-P", "/v1/models", "-j", report, *options]
    subprocess.run([str(word) for word in command], capture_output=True, timeout=10 * PATIENCE_S, check=False)
    cases = ElementTree.parse(report).findall(".//testcase")
    failed = [
        case.get("classname") for case in cases if case.find("failure") is not None or case.find("error") is not None
    ]
    return failed, len(cases)


@pytest.mark.timeout(300)
@pytest.mark.parametrize("door", ["grpc", "gateway", "api"])
def test_without_tls(door, h2spec, start_weir, tmp_path):
    weir = start_weir(listen={"grpc": "127.0.0.1:0"})
    failed, count = run(h2spec, tmp_path, weir.address(door))
    assert count == 146
    assert failed == ([] if door == "grpc" else [NO_PREFACE])


@pytest.mark.timeout(300)
@pytest.mark.parametrize("door", ["grpc", "gateway"])
def test_over_tls(door, h2spec, start_weir, certificates, tmp_path):
    tls = {"cert": str(certificates.cert), "key": str(certificates.key)}
    weir = start_weir(listen={door: {"address": "127.0.0.1:0", "tls": tls}})
    failed, count = run(h2spec, tmp_path, weir.address(door), "-t", "-k")
    assert count == 146
    assert failed == []
