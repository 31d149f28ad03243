// A client made of generated types alone: it saves tasks, pops them and finishes them, and is told what was wrong with a bad one.
import createClient from "openapi-fetch";
import type { components, paths } from "./schema.js";

declare const process: { argv: string[] };

function must<T>(what: string, answer: { data?: T; error?: components["schemas"]["Problem"] }): T {
  if (answer.error || answer.data === undefined) throw new Error(`${what}: ${answer.error?.code} ${answer.error?.detail}`);
  return answer.data;
}

const client = createClient<paths>({ baseUrl: process.argv[2] });
const body = { tag: "mail.send", body: { n: 1 }, delay: "50ms" };
const saved = must("save", await client.POST("/v1/tasks", { body }));
const pop = { path: { tag: "mail.send" }, query: { wait: "20s" } };
const { tasks } = must("pop", await client.POST("/v1/tags/{tag}/pop", { params: pop }));
const task = tasks[0];
const finish = { params: { path: { id: task.id } }, body: { token: task.token } };
const finished = await client.POST("/v1/tasks/{id}/finish", finish);

if (tasks.length !== 1 || task.id !== saved.id || task.attempt !== 1) throw new Error(`popped ${JSON.stringify(tasks)}`);
if (finished.response.status !== 204) throw new Error(`finish: ${finished.response.status}`);
const stale = await client.POST("/v1/tasks/{id}/finish", finish);
if (stale.error?.code !== "lease_lost") throw new Error(`a stale token: ${stale.error?.code}`);

const first = must("save with a key", await client.POST("/v1/tasks", {
  params: { header: { "Idempotency-Key": "client" } },
  body: { tag: "generated/client", delay: "1h", key: "k", headers: { a: "b" } },
}));
const duplicate = must("duplicate", await client.POST("/v1/tasks", { body: { tag: "generated/client", key: "k", delay: 1000 } }));
if (!duplicate.duplicate || duplicate.id !== first.id) throw new Error("the duplicate is another task");
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
