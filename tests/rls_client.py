"""A client of the rate limit service: grpcio, with what it makes of proto/."""

import sys

import grpc
from servers import PATIENCE_S, ROOT

sys.path.append(str(ROOT / "proto"))
rls, rls_services = grpc.protos_and_services("rls.proto")
health, health_services = grpc.protos_and_services("health.proto")

OK = rls.RateLimitResponse.OK
OVER = rls.RateLimitResponse.OVER_LIMIT


def descriptor(*entries, hits=None, own_rate=None, negative=False):
    """descriptor(("user", "a"), hits=2, own_rate=(10, rls.MINUTE))"""
    made = rls.RateLimitDescriptor(is_negative_hits=negative)
    for key, value in entries:
        made.entries.add(key=key, value=value)
    if hits is not None:
        made.hits_addend.value = hits
    if own_rate is not None:
        made.limit.requests_per_unit, made.limit.unit = own_rate
    return made


class RlsClient:
    """One connection (its channel shares none with others)."""

    def __init__(self, target, credentials=None, options=()):
        options = [("grpc.use_local_subchannel_pool", 1), *options]
        if credentials is None:
            self.channel = grpc.insecure_channel(target, options)
        else:
            self.channel = grpc.secure_channel(target, credentials, options)
        self._service = rls_services.RateLimitServiceStub(self.channel)
        self._health = health_services.HealthStub(self.channel)

    def ask(self, domain, *descriptors, hits=0, timeout=PATIENCE_S, **options):
        request = rls.RateLimitRequest(domain=domain, descriptors=descriptors, hits_addend=hits)
        return self._service.ShouldRateLimit(request, timeout=timeout, **options)

    def start(self, domain, *descriptors, timeout=PATIENCE_S):
        request = rls.RateLimitRequest(domain=domain, descriptors=descriptors)
        return self._service.ShouldRateLimit.future(request, timeout=timeout)

    def codes(self, domain, *descriptors, **options):
        """The overall code and those of the statuses."""
        answer = self.ask(domain, *descriptors, **options)
        return answer.overall_code, [status.code for status in answer.statuses]

    def refusal(self, domain, *descriptors, **options):
        """The status code and the message of a call that fails."""
        try:
            answer = self.ask(domain, *descriptors, **options)
        except grpc.RpcError as error:
            return error.code(), error.details()
        raise AssertionError(f"answered: {answer}")

    def healthy(self, service=""):
        answer = self._health.Check(health.HealthCheckRequest(service=service), timeout=PATIENCE_S)
        return answer.status == health.HealthCheckResponse.SERVING

    def close(self):
        self.channel.close()


def headers(answer):
    """The fields to add to an answer; each at most once."""
    found = {}
    for header in answer.response_headers_to_add:
        assert header.key.lower() not in found, header.key
        found[header.key.lower()] = header.value
    return found
