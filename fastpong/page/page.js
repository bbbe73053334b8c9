"use strict";
// What the page shows and does, with the network of net.js and the game of game.js.

const $ = (id) => document.getElementById(id), ABOUT = JSON.parse($("about").textContent), POINTS = ABOUT.points;
const NAMES = ["up", "down", "stay"], REASONS = ["ball", "own paddle", "other paddle", "habit"];
const KINDS = ["ball", "own", "other"], UNMOVED = { ball: [0, 0], own: [0, 0], other: [0, 0] };
const TABLE = [25, 25, 29], WALL = [74, 74, 80], AGES = [[255, 255, 255], [150, 150, 155], [92, 92, 97]];
let net, screens, actions, values, logs, advantages, count, widest, tallest, most;
let kinds = [], now = 0, moved = UNMOVED, timer = 0;

const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue("--" + name).trim();
const signed = (x, digits) => (x < 0 ? "−" : "+") + Math.abs(x).toFixed(digits);
const grouped = (x) => x.toLocaleString("en");
const latest = (k, most, of) => Array.from({ length: Math.min(most, k + 1) }, (_, lag) => of(k - lag));
const last = (k) => latest(k - 1, net.history, (at) => actions[at]);
const quantile = (numbers, share) => numbers.sort((a, b) => a - b)[Math.floor(share * (numbers.length - 1))] || 1;

// Pixels so many rows and columns further, where they are still in the court.
function shifted(pixels, [rows, columns]) {
  return pixels.filter((pixel) => {
    const row = (pixel / COLUMNS | 0) + rows, column = pixel % COLUMNS + columns;
    return row >= 0 && row < ROWS && column >= 0 && column < COLUMNS;
  }).map((pixel) => pixel + rows * COLUMNS + columns);
}
// The images of a step, newest first, each as the pixels of every kind. What is moved is so in all: its speed is kept.
const imagesOf = (k, by) => latest(k, net.frames, (at) => KINDS.map((kind, i) => shifted(kinds[at][i], by[kind])));
const think = (k, images) => net.forward(images.map((image) => new Set(image.flat())), last(k));
const reasons = (k, images) => net.reasons(KINDS.map((_, i) => images.flatMap((image) => image[i])), last(k));

function makeBars(id, names) {
  const bar = (name) => `<div class="bar"><span>${name}</span><div><i></i></div><span></span></div>`;
  $(id).innerHTML = names.map(bar).join("");
}
function setBar(bar, from, to, name, text) {
  const style = { left: 100 * from + "%", width: 100 * (to - from) + "%", background: `var(--${name})` };
  Object.assign(bar.querySelector("i").style, style);
  bar.lastElementChild.textContent = text;
}
function drawThoughts(images) {
  const chances = think(now, images), best = chances.indexOf(Math.max(...chances));
  chances.forEach((chance, action) => {
    const bar = $("choices").children[action];
    setBar(bar, 0, chance, NAMES[action], (100 * chance).toFixed(1) + " %");
    bar.classList.toggle("on", action === best);
  });
  $("value").textContent = signed(net.value, 2);
  reasons(now, images).forEach((share, i) => {
    const end = 0.5 + Math.max(-0.5, Math.min(0.5, 0.5 * share / most)), name = share > 0 ? "up" : "down";
    const text = signed(share, Math.abs(share) < 1 ? 2 : 1);
    setBar($("why").children[i], Math.min(0.5, end), Math.max(0.5, end), name, text);
  });
}
function drawCourt(images) {
  const image = new ImageData(480, 420), screen = screens.seek(now);
  const put = (x, y, [red, green, blue]) => {          // a pixel of the console is three wide and two high
    for (let i = 0; i < 6; i++) image.data.set([red, green, blue, 255], 4 * ((2 * y + (i > 2)) * 480 + 3 * x + i % 3));
  };
  const paint = (pixel, paints) => {
    for (let i = 0; i < 2; i++) put(2 * (pixel % COLUMNS) + i, TOP + (pixel / COLUMNS | 0), paints);
  };
  for (let y = 0; y < HEIGHT; y++) {
    for (let x = 0; x < WIDTH; x++) {
      const index = screen[y * WIDTH + x], inside = y >= TOP && y < TOP + ROWS;
      put(x, y, inside || BACKGROUND[index] ? TABLE : index === BALL ? WALL : ABOUT.colours[index] || WALL);
    }
  }
  for (let age = Math.min(AGES.length, images.length) - 1; age >= 0; age--) {
    for (const pixel of images[age][0]) paint(pixel, AGES[age]);
  }
  for (const kind of [1, 2]) {
    const [first] = kinds[now][kind], index = screen[(TOP + (first / COLUMNS | 0)) * WIDTH + first % COLUMNS * 2];
    for (const pixel of images[0][kind]) paint(pixel, ABOUT.colours[index] || WALL);
  }
  $("court").getContext("2d").putImageData(image, 0, 0);
  const score = [1, -1].map((reward) => POINTS.filter(([at, one]) => at < now && one === reward).length);
  $("where").textContent = `step ${grouped(now + 1)} of ${grouped(count)}, agent ${score[0]}, opponent ${score[1]}`;
  $("back").disabled = moved === UNMOVED;
  $("hint").innerHTML = moved === UNMOVED ?
    "<b>Drag the ball or a paddle</b> and see it change its mind. The dim balls are one and two steps older." :
    "Moved by you, in all images that it sees, so that speeds are kept. It may never have met such a moment.";
}

// A chart of the steps from … to: a pen that knows their place. Names stand at the left, as wide in all charts.
function chart(id, from, to) {
  const canvas = $(id), scale = devicePixelRatio, width = canvas.clientWidth, height = canvas.clientHeight;
  const gutter = width < 500 ? 68 : 78, pen = canvas.getContext("2d");
  canvas.width = width * scale; canvas.height = height * scale;
  pen.scale(scale, scale);
  pen.font = "12px system-ui, sans-serif"; pen.textBaseline = "middle";
  const x = (k) => gutter + (k - from) / (to - from) * (width - gutter - 4);
  Object.assign(canvas, { range: [from, to], gutter });
  const box = (name, left, top, wide, high, alpha = 1) => {
    pen.globalAlpha = alpha; pen.fillStyle = colour(name); pen.fillRect(left, top, wide, high); pen.globalAlpha = 1;
  };
  const text = (words, y) => { pen.fillStyle = colour("soft"); pen.fillText(words, 0, y); };
  const line = (points, name, thick) => {
    pen.strokeStyle = colour(name); pen.lineWidth = thick; pen.lineJoin = "round"; pen.beginPath();
    for (const [left, top] of points) pen.lineTo(left, top);
    pen.stroke();
  };
  return { pen, width, height, gutter, x, box, text, line, step: x(from + 1) - x(from) };
}
function drawGame(id, from, to) {
  const c = chart(id, from, to), rally = id === "rally", steps = [];
  const top = rally ? c.height * 0.5 : c.height - 18, strip = rally ? 16 : 10;
  const zero = c.height - (c.height - top - strip) * 0.42;  // of the advantages
  const y = (value) => top / 2 - value / widest * (top / 2 - 7);
  for (let k = from; k < to; k++) {
    steps.push([c.x(k + 0.5), y(values[k])]);
    c.box(NAMES[actions[k]], c.x(k), top + 2, c.step + 0.5, strip);
    if (rally) {
      const high = Math.max(-1, Math.min(1, advantages[k] / tallest)) * (c.height - zero - 2);
      c.box(high > 0 ? "won" : "lost", c.x(k) + c.step * 0.1, zero - Math.max(0, high), c.step * 0.8, Math.abs(high));
    }
  }
  for (const level of rally ? [y(0), zero] : [y(0)]) c.line([[c.gutter, level], [c.width, level]], "line", 1);
  c.line(steps, "ink", rally ? 1.8 : 1);
  for (const [k, reward] of POINTS) {
    if (k < from || k >= to) continue;
    c.pen.fillStyle = colour(reward > 0 ? "won" : "lost"); c.pen.beginPath();
    c.pen.arc(Math.min(c.width - 5, c.x(k + 0.5)), reward > 0 ? 5 : top - 6, rally ? 5 : 3.5, 0, 7); c.pen.fill();
  }
  c.text("value", y(0)); c.text("choices", top + 2 + strip / 2);
  if (rally) c.text("advantage", zero);
  c.box("ink", c.x(now + 0.5) - 1, 0, 2, c.height);
}
function drawCarpet() {
  if (!ABOUT.carpet) return;
  const { from, to, rows } = ABOUT.carpet, high = 20;
  $("carpet").style.height = high * rows.length + "px";
  const c = chart("carpet", from, to);
  rows.forEach(([name, leanings], row) => {
    c.text(name, (row + 0.5) * high);
    leanings.forEach((leaning, i) => {
      c.box(leaning > 0 ? "up" : "down", c.x(from + i), row * high, c.step + 0.3, high - 1, Math.abs(leaning) / 100);
    });
  });
  if (now >= from && now < to) c.box("ink", c.x(now + 0.5) - 1, 0, 2, c.height);
}
function drawCurve() {
  if (!ABOUT.curve) return;
  const end = ABOUT.curve.at(-1)[0], c = chart("curve", 0, end), y = (share) => c.height - 8 - share * (c.height - 16);
  for (const share of [0, 0.5, 1]) {
    c.text(100 * share + " %", y(share));
    c.line([[c.gutter, y(share)], [c.width, y(share)]], "line", 1);
  }
  c.line(ABOUT.curve.map(([steps, share]) => [c.x(steps), y(share)]), "ink", 1.8);
}
function rallyOf(k) {
  const before = POINTS.filter(([at]) => at < k), after = POINTS.find(([at]) => at >= k);
  return [before.length ? before.at(-1)[0] + 1 : 0, after ? after[0] + 1 : count];
}

let asked = false;
function draw() {
  if (asked) return;
  asked = true;
  requestAnimationFrame(() => {
    asked = false;
    const images = imagesOf(now, moved);
    drawThoughts(images);
    drawCourt(images);
    drawGame("rally", ...rallyOf(now));
    drawGame("game", 0, count);
    drawCarpet();
  });
}
function go(k) { now = Math.max(0, Math.min(count - 1, k)); moved = UNMOVED; draw(); }
function play(on = !timer) {
  clearInterval(timer);
  if (on && now === count - 1) now = 0;
  timer = on ? setInterval(() => (now === count - 1 ? play(false) : go(now + 1)), ABOUT.seconds * 1000) : 0;
  $("play").textContent = on ? "pause" : "play";
}
function listen() {
  $("play").onclick = () => play();
  $("back").onclick = () => go(now);
  addEventListener("keydown", (event) => {
    const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    const space = event.key === " " && event.target.tagName !== "BUTTON";  // which it presses
    if (event.ctrlKey || event.metaKey || event.altKey || !(step || space)) return;
    if (step) { play(false); go(now + step); } else play();
    event.preventDefault();
  });
  for (const id of ["rally", "game", "carpet"]) {
    let range;                                         // of the rally that it was when it was touched
    const to = (event) => {
      const { left, width } = $(id).getBoundingClientRect(), { gutter } = $(id);
      const share = Math.max(0, Math.min(0.9999, (event.clientX - left - gutter) / (width - gutter - 4)));
      go(Math.floor(range[0] + share * (range[1] - range[0])));
    };
    $(id).onpointerdown = (event) => {
      play(false);
      range = $(id).range;
      $(id).setPointerCapture(event.pointerId);
      to(event);
    };
    $(id).onpointermove = (event) => { if ($(id).hasPointerCapture(event.pointerId)) to(event); };
  }
  let held = null;
  const place = (event) => {
    const { left, top, width, height } = $("court").getBoundingClientRect();
    return [(event.clientY - top) / height * HEIGHT - TOP, (event.clientX - left) / width * COLUMNS];
  };
  $("court").onpointerdown = (event) => {
    const [row, column] = place(event), kind = column < 14 ? "other" : column > 64 ? "own" : "ball";
    const pixels = kinds[now][KINDS.indexOf(kind)];
    if (!pixels.length) return;                        // between two points there is no ball
    play(false);
    $("court").setPointerCapture(event.pointerId);
    const middle = (of) => pixels.reduce((sum, pixel) => sum + of(pixel), 0) / pixels.length;
    const home = [middle((pixel) => pixel / COLUMNS | 0), middle((pixel) => pixel % COLUMNS)];
    held = { kind, from: kind === "ball" ? home : [row - moved[kind][0], column] };
    $("court").onpointermove(event);
  };
  $("court").onpointermove = (event) => {
    if (!held) return;
    const [row, column] = place(event), { kind, from } = held;
    moved = { ...moved, [kind]: [Math.round(row - from[0]), kind === "ball" ? Math.round(column - from[1]) : 0] };
    draw();
  };
  $("court").onpointerup = $("court").onpointercancel = () => { held = null; };
  const again = () => { drawCurve(); draw(); };
  addEventListener("resize", again);
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", again);
}
// Where to begin: near the end of the first rally to look at, as the ball comes towards the own paddle.
function start() {
  const [from, to] = ABOUT.rally, column = (k) => (kinds[k][0].length ? kinds[k][0][0] % COLUMNS : -1);
  for (let k = to - 1; k > from + 3; k--) {
    if (column(k) > column(k - 1) && column(k - 1) > 30 && column(k) < 58) return k;
  }
  return Math.max(from, to - 8);
}
(async () => {
  const bytes = async (name) => unpack($(name).textContent);
  const floats = async (name) => new Float32Array((await bytes(name)).buffer);
  net = new Net(await bytes("weights"), ABOUT.network);
  [actions, values, logs] = [await bytes("actions"), await floats("values"), await floats("logs")];
  advantages = await floats("advantages");
  count = actions.length;
  screens = new Screens(await bytes("screens"), count);
  for (let k = 0; k < count; k++) kinds.push(kindsOf(screens.seek(k), courtOf(screens.seek(k))));
  widest = Math.max(1, ...values.map(Math.abs));
  tallest = quantile([...advantages].map(Math.abs), 0.995);
  const sizes = Array.from({ length: 60 }, (_, i) => Math.floor(i * count / 60)).flatMap((k) => {
    const images = imagesOf(k, UNMOVED);
    think(k, images);
    return [...reasons(k, images)].map(Math.abs);
  });
  most = quantile(sizes, 0.97);
  makeBars("choices", NAMES.slice(0, net.actions));
  makeBars("why", REASONS);
  for (const [id, given] of [["learned", ABOUT.curve], ["became", ABOUT.carpet]]) $(id).hidden = !given;
  listen();
  go(start());
  drawCurve();
  window.ready = true;
  let worst = 0;
  for (let k = 0; k < count; k++) {
    const chances = think(k, imagesOf(k, UNMOVED)), log = Math.log(chances[actions[k]]);
    worst = Math.max(worst, Math.abs(net.value - values[k]), Math.abs(log - logs[k]));
    if (k % 100 === 99) await new Promise((resolve) => setTimeout(resolve));  // so that the page answers meanwhile
  }
  const [digits, exponent] = worst.toExponential(0).split("e");
  $("check").innerHTML = `The network of this page and the kernels that played differ by at most ${digits} × 10<sup>` +
    `${exponent.replace("-", "−")}</sup> over all ${grouped(count)} steps, in values and in logs of probabilities.`;
  window.measured = { worst, count };
})();
