"use strict";
// What script adds to pages that work without it: refreshes, keys, copying, and charts.
(() => {
  const body = document.body;
  const fresh = { on: body.dataset.fresh === "on" };
  let etag = "";

  const live = () => document.getElementById("live");
  const selected = () => document.querySelector("#live input[type=checkbox]:checked");

  // A refresh is left out while no one looks, while rows are selected, and while the one before is under way.
  function refresh() {
    const part = live();
    if (!part || !fresh.on || document.hidden || selected() || part.classList.contains("htmx-request")) return;
    if (document.activeElement && part.contains(document.activeElement) &&
        document.activeElement.matches("input, select, textarea, button")) return;
    htmx.trigger(part, "refresh");
  }
  if (live()) setInterval(refresh, Number(body.dataset.every));
  document.addEventListener("visibilitychange", refresh);

  body.addEventListener("htmx:configRequest", (e) => {
    if (etag) e.detail.headers["If-None-Match"] = etag;
  });
  body.addEventListener("htmx:afterRequest", (e) => {
    const x = e.detail.xhr;
    const away = document.getElementById("away");
    away.hidden = x.status > 0 && x.status < 400;
    if (x.status === 401) location.reload();
    const now = x.getResponseHeader && x.getResponseHeader("Delaytask-Now");
    if (now) document.getElementById("read-at").textContent = now;
    if (x.status === 200) etag = x.getResponseHeader("ETag") || "";
  });
  body.addEventListener("htmx:sendError", () => { document.getElementById("away").hidden = false; });
  body.addEventListener("htmx:afterSettle", () => { charts(); copies(); });

  // A refresh leaves open what the reader has opened, and a chart whose numbers are the same.
  if (typeof Idiomorph !== "undefined") {
    Idiomorph.defaults.callbacks.beforeAttributeUpdated = (name, el) => !(name === "open" && el.tagName === "DETAILS");
    Idiomorph.defaults.callbacks.beforeNodeMorphed = (old, next) =>
      !(old.dataset?.series && old.dataset.series === next.dataset?.series);
  }

  // Copy buttons are there only where script is.
  function copies() {
    if (!navigator.clipboard) return;
    for (const button of document.querySelectorAll("button[data-copy]")) button.hidden = false;
  }
  document.addEventListener("click", (e) => {
    const button = e.target.closest("button[data-copy]");
    if (button) navigator.clipboard.writeText(button.dataset.copy);
  });
  copies();

  // Keys. Each is a link or a field of the page, so that nothing works by keys alone.
  let row = -1;
  let prefix = false;
  const rows = () => Array.from(document.querySelectorAll("main a.row"));
  function move(step) {
    const all = rows();
    if (!all.length) return;
    row = Math.max(0, Math.min(all.length - 1, row + step));
    for (const a of all) a.closest("tr")?.classList.remove("here");
    all[row].closest("tr")?.classList.add("here");
    all[row].focus();
  }
  const keys = {
    "/": () => document.getElementById("find").focus(),
    "?": () => document.getElementById("help").showModal(),
    j: () => move(1),
    k: () => move(-1),
    x: () => { const b = rows()[row]?.closest("tr")?.querySelector("input[type=checkbox]"); if (b) b.checked = !b.checked; },
    e: () => document.querySelector("a[data-key=e]")?.click(),
    p: () => {
      fresh.on = !fresh.on;
      document.getElementById("held").hidden = fresh.on;
    },
    u: () => {
      const zone = document.getElementById("zone");
      zone.value = "UTC";
      zone.form.submit();
    },
  };
  // At Enter on a box browsers press the first button of its form, which is hidden. The selection stays.
  document.addEventListener("submit", (e) => { if (e.submitter?.hidden) e.preventDefault(); });
  document.addEventListener("keydown", (e) => {
    if (body.dataset.keys !== "on" || e.ctrlKey || e.metaKey || e.altKey) return;
    if (e.target.closest("input:not([type=checkbox]), textarea, select, dialog")) return;
    if (prefix) {
      prefix = false;
      const to = document.querySelector(`.top nav a[data-key="${CSS.escape(e.key)}"]`);
      if (to) { e.preventDefault(); to.click(); }
      return;
    }
    if (e.key === "g") { prefix = true; return; }
    if (keys[e.key]) { e.preventDefault(); keys[e.key](); }
  });

  // Charts stand in data-series: times in seconds, and a list of numbers for each line. Marks explain changes, and from
  // and to bound the axis of times. An axis by arcsinh is a logarithmic one that has a zero. Each chart has its table.
  const drawn = new Map();
  function color(name) { return getComputedStyle(document.documentElement).getPropertyValue(name).trim(); }
  function charts() {
    if (typeof uPlot === "undefined") return;
    for (const [old, plot] of drawn) if (!old.isConnected) { plot.destroy(); drawn.delete(old); }
    for (const el of document.querySelectorAll(".plot[data-series]")) {
      const text = el.dataset.series;
      if (el.drawnFrom === text) continue;
      el.drawnFrom = text;
      drawn.get(el)?.destroy();
      const chart = JSON.parse(text);
      const dashes = [[], [8, 4], [2, 4]];
      const colors = chart.colors || ["--executing", "--overdue", "--failed"];
      const zone = el.dataset.zone;
      const grid = { stroke: color("--line"), width: 1 };
      const plot = new uPlot({
        width: Math.max(280, el.clientWidth), height: 200,
        tzDate: (seconds) => uPlot.tzDate(new Date(seconds * 1000), zone),
        scales: { x: chart.from ? { range: [chart.from, chart.to] } : {}, y: scale(chart) },
        hooks: { draw: [(u) => mark(u, chart.marks || [])] },
        axes: [
          { stroke: color("--quiet"), grid, values: [
            [86400, "{MM}-{DD}", "\n{YYYY}", null, null, null, null, null, 1],
            [60, "{HH}:{mm}", "\n{YYYY}-{MM}-{DD}", null, "\n{MM}-{DD}", null, null, null, 1],
            [1, "{HH}:{mm}:{ss}", "\n{YYYY}-{MM}-{DD}", null, "\n{MM}-{DD}", null, null, null, 1],
          ] },
          { stroke: color("--quiet"), grid: { ...grid, filter: ruled(chart) }, ticks: { ...grid, filter: ruled(chart) }, size: 64, values: (u, all) => all.map((n) => n == null || n < 0 ? "" : chart.unit === "ms" ? span(n) : n) },
        ],
        series: [{ label: el.dataset.time || "t", value: "{YYYY}-{MM}-{DD} {HH}:{mm}" }, ...chart.names.map((name, i) => ({
          label: name, stroke: color(colors[i % colors.length]), dash: dashes[i % 3], width: 2, spanGaps: false,
          points: { filter: (u, s, shown) => shown ? null : alone(u.data[s]) },
          value: (u, n) => n == null ? "–" : chart.unit === "ms" ? span(n) : n,
        }))],
      }, [chart.times, ...chart.values], el);
      drawn.set(el, plot);
    }
  }
  // Nine lines for each power of ten would be darker than what the chart shows.
  function ruled(chart) { return (u, all) => all.map((n) => chart.log && Math.abs(Math.log10(n) % 1) > 1e-6 ? null : n); }
  function scale(chart) {
    if (chart.log) return { distr: 3 };
    if (chart.arcsinh) return { distr: 4, asinh: 1, range: (u, min, max) => [0, Math.max(10, max * 1.5)] };
    return { range: (u, min, max) => uPlot.rangeNum(0, max || 1, 0.1, true) };
  }
  function mark(u, marks) {
    const { ctx, bbox } = u;
    ctx.save();
    ctx.strokeStyle = ctx.fillStyle = color("--quiet");
    ctx.setLineDash([3 * devicePixelRatio, 3 * devicePixelRatio]);
    for (const m of marks) {
      const x = Math.round(u.valToPos(m.at, "x", true));
      if (x < bbox.left || x > bbox.left + bbox.width) continue;
      ctx.beginPath();
      ctx.moveTo(x, bbox.top);
      ctx.lineTo(x, bbox.top + bbox.height);
      ctx.stroke();
      ctx.fillText(m.sign, x + 3 * devicePixelRatio, bbox.top + 12 * devicePixelRatio);
    }
    ctx.restore();
  }
  // A value between gaps has no line to stand on.
  function alone(values) {
    return values.map((n, i) => n != null && values[i - 1] == null && values[i + 1] == null ? i : -1).filter((i) => i >= 0);
  }
  function span(ms) {
    if (ms >= 60000) return `${+(ms / 60000).toPrecision(3)} min`;
    if (ms >= 1000) return `${+(ms / 1000).toPrecision(3)} s`;
    return `${+ms.toPrecision(3)} ms`;
  }
  addEventListener("resize", () => { for (const [el, plot] of drawn) plot.setSize({ width: Math.max(280, el.clientWidth), height: 200 }); });
  charts();
})();
