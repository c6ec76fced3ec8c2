// Node's own HTTP/2 client against a door, by prior knowledge: prints what it saw as one JSON object.
//   node http2_client.mjs http://127.0.0.1:8080
import http2 from "node:http2";

const session = http2.connect(process.argv[2]);

function ask(headers, body) {
  return new Promise((resolve, reject) => {
    const request = session.request(headers, { endStream: body === undefined });
    const answer = { chunks: [], trailers: null };
    request.on("response", (head) => (answer.status = head[":status"]));
    request.on("data", (chunk) => answer.chunks.push(chunk));
    request.on("trailers", (fields) => (answer.trailers = { ...fields }));
    request.on("end", () => resolve({ ...answer, body: Buffer.concat(answer.chunks) }));
    request.on("error", reject);
    if (body !== undefined) request.end(body);
  });
}

const post = (path, fields = {}) => ({ ":method": "POST", ":path": path, "content-type": "application/json", ...fields });
const stream = JSON.stringify({ model: "mock-1", messages: [], stream: true });
const seen = {};

const models = await ask({ ":path": "/v1/models" });
seen.models = { status: models.status };

const parallel = Array.from({ length: 50 }, () => ask({ ":path": "/v1/models?x-mock-latency-ms=20" }));
seen.parallel = (await Promise.all(parallel)).map((answer) => answer.status);

const body = Buffer.alloc(4 << 20, "weir");
const echo = await ask(post("/echo"), body);
seen.echo_bytes = JSON.parse(echo.body).body_bytes;

const events = await ask(post("/v1/chat/completions", { "x-mock-events": "3", "x-mock-pace-ms": "5" }), stream);
seen.events = events.body.toString().split("\n\n").filter((line) => line.startsWith("data: ")).length;

const large = await ask(post("/v1/chat/completions", { "x-mock-endless-bytes": String(64 << 20) }), stream);
seen.large_bytes = large.body.length;

const trailers = await ask({ ":path": "/v1/models", "x-mock-trailers": "X-Checksum: abc" });
seen.trailers = trailers.trailers;

session.close();
console.log(JSON.stringify(seen));
