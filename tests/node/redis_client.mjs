// Drives ioredis against the resp door and prints what it saw as JSON.
//
//   node redis_client.mjs PORT [PASSWORD]
import { Redis } from "ioredis";

const [port, password] = process.argv.slice(2);
const redis = new Redis({ host: "127.0.0.1", port: Number(port), password, connectionName: "weir-node" });

const seen = {};
seen.ping = await redis.ping();
seen.name = await redis.client("GETNAME");
seen.throttle = await redis.call("CL.THROTTLE", "node:one", 15, 30, 60);
seen.check = await redis.call("WEIR.CHECK", "client", "node", "COST", "requests", 2);
const pipeline = redis.pipeline();
for (let i = 0; i < 5; i++) pipeline.call("CL.THROTTLE", "node:many", 2, 1, 3600);
seen.pipeline = (await pipeline.exec()).map(([error, reply]) => error ?? reply[0]);
seen.error = await redis.call("CL.THROTTLE", "node:one", 0, 0, 1).catch((error) => error.message);
await redis.quit();
console.log(JSON.stringify(seen));
