// A worker that needs nothing but Node 18: node worker.mjs [tag]. It takes the tag's tasks from the service, one by one.
const base = process.env.DELAYTASK_URL ?? "http://127.0.0.1:8080";
const tag = process.argv[2] ?? "greet";
const ttr = Number(process.env.TTR ?? 15); // seconds: so long after this process has died, another one gets its task
const stop = new AbortController();

async function call(path, body, signal) {
  const headers = { "Content-Type": "application/json" };
  if (process.env.DELAYTASK_TOKEN) headers.Authorization = `Bearer ${process.env.DELAYTASK_TOKEN}`;
  const options = { method: "POST", headers, body: body && JSON.stringify(body), redirect: "error" };
  const answer = await fetch(base + path, { ...options, signal: signal ?? AbortSignal.timeout(15_000) });
  const text = await answer.text(); // 204 has no body
  if (!answer.ok) throw new Error(`${path}: ${answer.status} ${text}`); // such as 409: the lease was lost
  return text ? JSON.parse(text) : {};
}

const sleep = (seconds) => new Promise((done) => setTimeout(done, seconds * 1000));

async function work(body) {
  // Your work; an error fails the attempt, and the task is tried again.
  if (body.fail) throw new Error(body.fail);
  await sleep(body.seconds ?? 0);
  console.log("hello", body.name);
}

async function run(task) {
  const path = `/v1/tasks/${task.id}/`;
  const { token } = task;
  const touch = () => call(path + "touch", { token, ttr: `${ttr}s` }).catch(console.error);
  const keep = setInterval(touch, (ttr * 1000) / 3); // renews the lease while the work goes on
  let failure;
  try {
    await work(task.body);
  } catch (error) {
    failure = error;
  } finally {
    clearInterval(keep);
  }
  if (failure) await call(path + "fail", { token, error: failure.message || String(failure) });
  else await call(path + "finish", { token });
}

for (const name of ["SIGTERM", "SIGINT"]) process.on(name, () => stop.abort()); // a task that runs is finished first
while (!stop.signal.aborted) {
  try {
    const wait = AbortSignal.any ? AbortSignal.any([stop.signal, AbortSignal.timeout(60_000)]) : stop.signal;
    const { tasks = [] } = await call(`/v1/pop?tag=${encodeURIComponent(tag)}&wait=30s&ttr=${ttr}s`, undefined, wait);
    for (const task of tasks) await run(task);
  } catch (error) {
    if (stop.signal.aborted) break;
    console.error(error);
    await sleep(1);
  }
}
