// A client made of generated types alone: it saves tasks, pops them and finishes them, and is told what was wrong with a bad one.
import createClient from "openapi-fetch";
import type { components, paths } from "./schema.js";

declare const process: { argv: string[] };

const client = createClient<paths>({ baseUrl: process.argv[2] });

function must<T>(what: string, answer: { data?: T; error?: components["schemas"]["Problem"] }): T {
  if (answer.error || answer.data === undefined) throw new Error(`${what}: ${answer.error?.code} ${answer.error?.detail}`);
  return answer.data;
}

const saved = must("save", await client.POST("/v1/tasks", {
  params: { header: { "Idempotency-Key": "client" } },
  body: { tag: "generated/client", body: { n: 1 }, delay: "50ms", key: "k", headers: { a: "b" } },
}));
const duplicate = must("duplicate", await client.POST("/v1/tasks", { body: { tag: "generated/client", key: "k", delay: 1000 } }));
if (!duplicate.duplicate || duplicate.id !== saved.id) throw new Error("the duplicate is another task");

const popped = await client.POST("/v1/tags/{tag}/pop", { params: { path: { tag: "generated/client" }, query: { max: 5, wait: "20s" } } });
const tasks = must("pop", popped).tasks;
const task = tasks[0];
if (tasks.length !== 1 || task.id !== saved.id || task.attempt !== 1) throw new Error(`popped ${JSON.stringify(tasks)}`);
const finished = await client.POST("/v1/tasks/{id}/finish", { params: { path: { id: task.id } }, body: { token: task.token } });
if (finished.response.status !== 204) throw new Error(`finish: ${finished.response.status}`);

const stale = await client.POST("/v1/tasks/{id}/finish", { params: { path: { id: task.id } }, body: { token: task.token } });
if (stale.error?.code !== "lease_lost") throw new Error(`a stale token: ${stale.error?.code}`);
const empty = await client.POST("/v1/pop", { params: { query: { tag: ["a", "generated/client"] } } });
if (empty.response.status !== 204) throw new Error(`a pop of nothing: ${empty.response.status}`);

const batch = must("batch", await client.POST("/v1/tasks/batch", { body: [{ tag: "a", delay: "1h" }, { tag: "b", delay: "1h" }] }));
if (batch.results.length !== 2) throw new Error("a batch of two has another number of results");
const lines = must("lines", await client.POST("/v1/tasks/batch", {
  body: '{"tag":"a","delay":"1h"}\n{"tag":"b","delay":"1h"}\n',
  bodySerializer: (text: unknown) => text as string,
  headers: { "Content-Type": "application/x-ndjson" },
}));
if (lines.results.length !== 2) throw new Error("two lines have another number of results");

const page = must("list", await client.GET("/v1/tasks", { params: { query: { status: "completed", limit: 10 } } }));
const status: "pending" | "executing" | "completed" | "failed" | "cancelled" | undefined = page.tasks[0].status;
if (status !== "completed" || page.next !== undefined) throw new Error(`listed ${JSON.stringify(page)}`);
const bad = await client.POST("/v1/tasks", { body: { tag: "?" } });
if (bad.error?.code !== "invalid_tag") throw new Error(`a bad tag: ${bad.error?.code}`);
