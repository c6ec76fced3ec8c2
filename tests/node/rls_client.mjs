// Asks the rate limit service four times and its health once: node rls_client.mjs HOST:PORT
import { fileURLToPath } from "node:url";
import path from "node:path";
import grpc from "@grpc/grpc-js";
import protoLoader from "@grpc/proto-loader";

const proto = path.join(path.dirname(fileURLToPath(import.meta.url)), "..", "..", "proto");
const load = (file) => grpc.loadPackageDefinition(protoLoader.loadSync(path.join(proto, file), { enums: String }));
const { RateLimitService } = load("rls.proto").envoy.service.ratelimit.v3;
const { Health } = load("health.proto").grpc.health.v1;

const target = process.argv[2];
const credentials = grpc.credentials.createInsecure();
const service = new RateLimitService(target, credentials);
const health = new Health(target, credentials);

const call = (client, method, request) =>
  new Promise((resolve, reject) => {
    client[method](request, { deadline: Date.now() + 10_000 }, (error, answer) =>
      error ? reject(error) : resolve(answer),
    );
  });

const request = { domain: "d", descriptors: [{ entries: [{ key: "user", value: "js" }] }] };
const answers = [];
for (let i = 0; i < 4; i += 1) {
  answers.push(await call(service, "ShouldRateLimit", request));
}
const { status } = await call(health, "Check", { service: "" });
console.log(JSON.stringify({ codes: answers.map((answer) => answer.overallCode), first: answers[0], health: status }));
service.close();
health.close();
