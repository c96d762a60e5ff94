"use strict";
// Puts the pieces of a live page in place, counts the hand's clock down, and steps through a finished hand.
(() => {
  const byId = (id) => document.getElementById(id);
  const POINTS_MAX = 120;
  const LINES_MAX = 200;
  const history = {};
  let deadline = 0;
  let ahead = 0;

  for (const time of document.querySelectorAll("time[data-ms]")) {
    time.textContent = new Date(Number(time.dataset.ms)).toISOString().replace("T", " ").slice(0, 19);
  }

  function draw(points) {
    for (const [name, value] of Object.entries(points)) {
      const kept = (history[name] ||= []);
      kept.push(value);
      if (kept.length > POINTS_MAX) kept.shift();
      const line = document.querySelector(`[data-chart="${name}"] polyline`);
      if (!line) continue;
      const top = Math.max(1, ...kept);
      line.setAttribute("points", kept.map((y, x) => `${(x * 300) / POINTS_MAX},${58 - (y * 54) / top}`).join(" "));
    }
  }

  // Rows are put in place a few in each frame, so that the page stays quick with any number of tables. A row that
  // changes again before its turn is put in place once, and a page that nobody looks at draws nothing.
  const ROWS_OF_A_FRAME = 100;
  const waiting = new Map();

  function replaceRows(rows) {
    if (!waiting.size) requestAnimationFrame(drawRows);
    for (const [table, html] of Object.entries(rows)) waiting.set(table, html);
  }

  // Only what differs is touched: a new cell costs the layout of the whole table, a new text that of its cell. What a
  // row's cells were is kept as text, which is quicker to compare than elements are.
  const cellsOf = new Map();

  function drawCells(table, row, html) {
    const cells = html.split("</td>");
    const old = cellsOf.get(table);
    cellsOf.set(table, cells);
    if (old?.length !== cells.length) { row.innerHTML = html; return; }
    for (let index = 0; index < cells.length - 1; index += 1) {
      if (cells[index] === old[index]) continue;
      const [, name, content] = /^<td(?: class="([^"]*)")?>(.*)$/s.exec(cells[index]);
      const cell = row.cells[index];
      cell.className = name || "";
      if (/[<&]/.test(content) || !cell.firstChild?.data) cell.innerHTML = content;
      else cell.firstChild.data = content;
    }
  }

  function drawRows() {
    const started = performance.now();
    const body = byId("rows");
    let left = ROWS_OF_A_FRAME;
    for (const [table, html] of waiting) {
      if (!left--) break;
      waiting.delete(table);
      let row = byId(`row-${table}`);
      if (!html) { cellsOf.delete(table); if (row) row.remove(); continue; }
      if (!row) { row = document.createElement("tr"); row.id = `row-${table}`; body.append(row); }
      drawCells(table, row, html);
    }
    if (waiting.size) requestAnimationFrame(drawRows);
    else drawFirst(body);
    busy(started);
  }

  // Tables that stand still in a hand come first, the longest first of all; one that goes on returns to its place by name.
  let drawnFirst = [...document.querySelectorAll("#rows td.stuck")].map((cell) => cell.parentElement.id.slice(4)).join(" ");
  let first = [];

  function drawFirst(body) {
    const wanted = first.join(" ");
    if (wanted === drawnFirst) return;
    const focused = document.activeElement;
    const rows = first.map((table) => byId(`row-${table}`)).filter(Boolean);
    const kept = new Set(rows);
    const others = [...body.rows].filter((row) => !kept.has(row));
    for (const table of drawnFirst ? drawnFirst.split(" ") : []) {
      const row = byId(`row-${table}`);
      if (!row || kept.has(row)) continue;
      const next = others.find((other) => other !== row && other.id > row.id);
      if (next) next.before(row); else body.append(row);
    }
    body.prepend(...rows);
    if (focused !== document.activeElement) focused.focus();
    drawnFirst = rows.map((row) => row.id.slice(4)).join(" ");
  }

  // For measurements.
  function busy(started) { window.fivedrawBusy = (window.fivedrawBusy || 0) + performance.now() - started; }

  // A form keeps the hand for which it was opened; once that is over it says so, and offers the present one.
  function tellHand(piece) {
    const hand = byId("hand");
    if (!hand) return;
    const isOver = Number(hand.value) !== piece.hand || !piece.playing;
    const told = isOver ? `Hand ${hand.value} is over.` : "";
    const take = byId("take");
    byId("void").disabled = isOver;
    take.hidden = !isOver || !piece.playing;
    take.dataset.hand = piece.hand;
    if (take.textContent !== `Take hand ${piece.hand}`) take.textContent = `Take hand ${piece.hand}`;
    if (byId("over").textContent !== told) byId("over").textContent = told;
  }

  byId("take")?.addEventListener("click", (event) => {
    byId("hand").value = event.target.dataset.hand;
    tellHand({ hand: Number(event.target.dataset.hand), playing: true });
    byId("void").focus();
  });

  function append(lines) {
    const list = byId("lines");
    if (!list) return;
    for (const line of lines) {
      const item = document.createElement("li");
      item.textContent = line;
      list.append(item);
    }
    while (list.children.length > LINES_MAX) list.firstElementChild.remove();
    list.scrollTop = list.scrollHeight;
  }

  const live = byId("live");
  if (live) {
    const source = new EventSource(live.dataset.live);
    source.onmessage = (message) => {
      const started = performance.now();
      const piece = JSON.parse(message.data);
      for (const [id, html] of Object.entries(piece.parts || {})) {
        const element = byId(id);
        if (!element) continue;
        const link = element.contains(document.activeElement) ? document.activeElement.getAttribute("href") : null;
        element.innerHTML = html;
        // Who was on a link stays on it.
        if (link) element.querySelector(`a[href="${CSS.escape(link)}"]`)?.focus();
      }
      if (piece.first) first = piece.first;
      if (live.dataset.rows && (piece.first || Object.keys(piece.rows || {}).length)) replaceRows(piece.rows || {});
      if (piece.points) draw(piece.points);
      if (piece.lines) append(piece.lines);
      if (piece.now) { deadline = piece.deadline; ahead = piece.now - Date.now(); }
      if ("playing" in piece) tellHand(piece);
      if (piece.end) { source.close(); byId("said").textContent = piece.end; }
      else byId("said").textContent = piece.lost ? `not live: ${piece.lost}` : "";
      busy(started);
      window.fivedrawPieces = (window.fivedrawPieces || 0) + 1;
      window.fivedrawBytes = (window.fivedrawBytes || 0) + message.data.length;
    };
    source.onerror = () => { byId("said").textContent = "not live: trying again"; };
  }

  const clock = byId("clock");
  if (clock) {
    setInterval(() => {
      const left = deadline ? Math.max(0, (deadline - Date.now() - ahead) / 1000) : 0;
      clock.textContent = deadline ? `${left.toFixed(0)} s` : "none";
    }, 250);
  }

  const steps = byId("steps");
  if (steps) {
    const last = steps.children.length - 1;
    const playing = document.querySelector('[data-step="play"]');
    let at = 0;
    let timer = 0;
    const halt = () => { clearInterval(timer); timer = 0; playing.setAttribute("aria-pressed", "false"); };
    const go = (to) => {
      at = Math.min(Math.max(0, to), last);
      [...steps.children].forEach((item, index) => item.classList.toggle("now", index === at));
      const item = steps.children[at];
      if (!item) return;
      byId("drawn").replaceChildren(item.querySelector("template").content.cloneNode(true));
      item.scrollIntoView({ block: "nearest" });
      byId("at").textContent = `step ${at + 1} of ${last + 1}: ${[...item.querySelectorAll("span")].map((each) => each.textContent).join("; ")}`;
      if (at === last) halt();
    };
    const turn = {
      first: () => go(0), last: () => go(last), "-1": () => go(at - 1), 1: () => go(at + 1),
    };
    const play = () => {
      if (timer) { halt(); return; }
      if (at === last) go(0);
      timer = setInterval(() => go(at + 1), 700);
      playing.setAttribute("aria-pressed", "true");
    };
    byId("replay").addEventListener("click", (event) => {
      const step = event.target.dataset.step;
      if (step === "play") play();
      else if (step) { halt(); turn[step](); }
    });
    const keys = { ArrowLeft: "-1", ArrowRight: "1", Home: "first", End: "last" };
    document.addEventListener("keydown", (event) => {
      if (!keys[event.key] || event.ctrlKey || event.altKey || event.metaKey) return;
      if (/^(INPUT|TEXTAREA|SELECT)$/.test(event.target.tagName)) return;
      event.preventDefault();
      halt();
      turn[keys[event.key]]();
    });
    go(0);
  }
})();
