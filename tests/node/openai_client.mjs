// Drives openai-node against a gateway and prints what it saw as JSON.
//
//   node openai_client.mjs http://127.0.0.1:8080/v1 calls|limited
import OpenAI from "openai";

const [baseURL, scenario] = process.argv.slice(2);
const messages = [{ role: "user", content: "Hello" }];
const client = (maxRetries) => new OpenAI({ baseURL, apiKey: "sk-node", maxRetries });
const chat = (maxRetries) => client(maxRetries).chat.completions.create({ model: "m-1", messages });

async function calls() {
  const openai = client(0);
  const answer = await chat(0);
  let stream = "";
  let streamUsage = null;
  const chunks = await openai.chat.completions.create({
    model: "m-1",
    messages,
    stream: true,
    stream_options: { include_usage: true },
  });
  for await (const chunk of chunks) {
    stream += chunk.choices[0]?.delta?.content ?? "";
    if (chunk.usage) streamUsage = chunk.usage.total_tokens;
  }
  const embeddings = await openai.embeddings.create({ model: "m-1", input: "Hello", encoding_format: "float" });
  const models = [];
  for await (const model of openai.models.list()) models.push(model.id);
  const response = await openai.responses.create({ model: "m-1", input: "Hello" });
  return {
    chat: { content: answer.choices[0].message.content, total_tokens: answer.usage.total_tokens },
    stream,
    stream_usage: streamUsage,
    embedding: embeddings.data[0].embedding,
    models,
    response: response.output_text,
  };
}

async function limited() {
  await chat(0);
  let refused = null;
  let waitMs = 0;
  try {
    await chat(0);
  } catch (error) {
    refused = { status: error.status, code: error.code, name: error.constructor.name };
    waitMs = Number(error.headers.get("retry-after-ms"));
  }
  await new Promise((resolve) => setTimeout(resolve, waitMs));
  const { response } = await client(0).models.list().withResponse();
  const retried = await chat(2);
  return { refused, after_wait: response.status, with_retries: retried.choices[0].message.content };
}

console.log(JSON.stringify(scenario === "calls" ? await calls() : await limited()));
