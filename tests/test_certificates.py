"""The certificates of the doors: read again with every reload, and resumed sessions of clients that show theirs."""

import socket
import ssl

import httpx
import pytest
from raw_http2 import Http2Connection
from servers import PLENTY, tls_door, trusting, wait_until


def certificate_of(weir, door="gateway"):
    context = ssl.create_default_context()
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    with socket.create_connection(weir.address(door), 10) as plain, context.wrap_socket(plain) as tls:
        return tls.getpeercert(binary_form=True)


def der(path):
    return ssl.PEM_cert_to_DER_cert(path.read_text())


class TestCertificates:
    @pytest.fixture
    def files(self, certificates, tmp_path):
        """Copies, so that a test may replace them."""

        class Files:
            cert, key, ca = tmp_path / "cert.pem", tmp_path / "key.pem", certificates.ca

            def use(self, source):
                self.cert.write_bytes(source.cert.read_bytes())
                self.key.write_bytes(source.key.read_bytes())

        files = Files()
        files.use(certificates)
        return files

    @pytest.mark.parametrize("how", ["sighup", "admin", "watch"])
    def test_a_reload_reads_them_again(self, start_weir, certificates, other_certificates, files, how):
        listen = {door: tls_door(files) for door in ("gateway", "api")}
        weir = start_weir([PLENTY], listen=listen, config={"watch": how == "watch"})
        assert certificate_of(weir) == der(certificates.cert)
        context = trusting(certificates, "h2")
        with Http2Connection(weir.address("gateway"), context) as old:
            slow = old.begin("/v1/models?x-mock-latency-ms=300")
            files.use(other_certificates)
            if how == "sighup":
                assert weir.hup()["message"] == "reloaded"
            elif how == "admin":
                assert weir.reload().status_code == 200
            new = [der(other_certificates.cert)] * 2
            wait_until(lambda: [certificate_of(weir, door) for door in ("gateway", "api")] == new, "the new one", 10)
            assert old.finish(slow).status == 200
            assert old.ask("/v1/models").status == 200  # As it was.
            assert old.peer_certificate() == der(certificates.cert)

    @pytest.mark.parametrize(
        ("spoil", "reason"),
        [
            (lambda files, _: files.cert.unlink(), "cert.pem: No such file or directory"),
            (lambda files, _: files.key.write_text("no key\n"), "key.pem: "),
            (lambda files, other: files.key.write_bytes(other.key.read_bytes()), "key.pem: key values mismatch"),
        ],
    )
    def test_a_fault_keeps_the_old_ones(self, start_weir, certificates, other_certificates, files, spoil, reason):
        weir = start_weir([PLENTY], listen={"gateway": tls_door(files)})
        spoil(files, other_certificates)
        answer = weir.reload()
        assert answer.status_code == 422
        assert "listen.gateway: " in answer.text and reason in answer.text
        line = weir.hup()
        assert line["message"] == "reload failed; the running policy stays"
        assert reason in line["error"]
        assert certificate_of(weir) == der(certificates.cert)
        assert weir.metric("weir_config_last_reload_successful") == 0
        files.use(other_certificates)
        assert weir.reload().status_code == 200
        assert certificate_of(weir) == der(other_certificates.cert)

    def test_a_missing_file_is_named_at_start(self, weir_command, tmp_path):
        config = tmp_path / "weir.yaml"
        config.write_text(
            "listen: {gateway: {address: '127.0.0.1:0', tls: {cert: gone.pem, key: gone.key}}}\n"
            "limits: [{name: a, per: [ip], rate: 1/s}]\n"
        )
        run = weir_command("serve", "--config", config)
        assert run.returncode != 0
        assert "listen.gateway: certificate " in run.stderr
        assert "gone.pem: No such file or directory" in run.stderr

    def test_a_client_certificate_is_still_asked_for_when_a_session_is_resumed(self, start_weir, certificates):
        weir = start_weir([PLENTY], listen={"gateway": tls_door(certificates, client_ca=str(certificates.ca))})
        url = f"https://localhost:{weir.address('gateway')[1]}/v1/models"
        with pytest.raises(httpx.TransportError):
            httpx.get(url, verify=trusting(certificates))
        context = trusting(certificates, "h2")
        context.load_cert_chain(certificates.cert, certificates.key)
        session = None
        for _ in range(3):
            with socket.create_connection(weir.address("gateway"), 10) as plain:
                with context.wrap_socket(plain, server_hostname="localhost", session=session) as tls:
                    assert tls.selected_alpn_protocol() == "h2"
                    tls.settimeout(5)
                    assert tls.recv(9)[3] == 4  # SETTINGS; the tickets came before.
                    session = tls.session
