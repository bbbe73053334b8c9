"use strict";
// The network of preset `fast` in plain JavaScript, for one game: the twin of fastpong/dense.py.
//
//   const net = new Net(await unpack(base64), {frames: 3, history: 3, actions: 3, units: 64});
//   const court = courtOf(screen);                      // of each screen that is played
//   net.forward([court, courtBefore, …], [lastAction, …]);  // newest first, fewer at the beginning of a game
//   net.probabilities, net.value                        // of up, down, stay; points expected, discounted

const ROWS = 160, COLUMNS = 80, TOP = 34;              // the court: these rows of the screen, every second column
const GRID = 21, POSITIONS = GRID * GRID, CHANNELS = 16;
const BACKGROUND = new Uint8Array(256);                // see fastpong/pong.py
for (const index of [0, 34, 48, 128, 144, 160, 176, 192, 206, 228]) BACKGROUND[index] = 1;

// Base64 of a block that zlib has deflated, as bytes. In a browser only.
async function unpack(text) {
  const packed = Uint8Array.from(atob(text.trim()), (letter) => letter.charCodeAt(0));
  const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream("deflate"));
  return new Uint8Array(await new Response(stream).arrayBuffer());
}

// Float32Array of halves (IEEE 754 binary16): first all of their low bytes, then all of their high ones.
function floatsOf(bytes) {
  const count = bytes.length / 2, floats = new Float32Array(count), table = new Float32Array(65536);
  for (let half = 0; half < 65536; half++) {
    const exponent = (half >> 10) & 31, fraction = (half & 1023) / 1024, sign = half & 32768 ? -1 : 1;
    table[half] = sign * (exponent ? 2 ** (exponent - 15) * (1 + fraction) : 2 ** -14 * fraction);
  }
  for (let i = 0; i < count; i++) floats[i] = table[bytes[i] | (bytes[count + i] << 8)];
  return floats;
}

// What the network sees of a screen, Uint8Array of 210 × 160 palette indices: its set pixels, row · 80 + column.
function courtOf(screen) {
  const pixels = [];
  for (let row = 0; row < ROWS; row++) {
    for (let column = 0, at = (TOP + row) * 160; column < COLUMNS; column++, at += 2) {
      if (!BACKGROUND[screen[at]]) pixels.push(row * COLUMNS + column);
    }
  }
  return Int32Array.from(pixels);
}

// The four positions whose patch a pixel is in.
function positionsOf(pixel) {
  const at = GRID * (pixel / (8 * COLUMNS) | 0) + (pixel % COLUMNS >> 2);
  return [at, at + 1, at + GRID, at + GRID + 1];
}

class Net {
  // weights: bytes of halves, as `floatsOf` takes them, of kernel, bias, w1 and w2, one after the other.
  constructor(weights, { frames, history, actions, units }) {
    Object.assign(this, { frames, history, actions, units });
    const all = floatsOf(weights), inputs = POSITIONS * CHANNELS + 16;
    let at = 0;
    const take = (count) => all.subarray(at, at += count);
    this.kernel = take(frames * 8 * 4 * 4 * CHANNELS);
    this.bias = take(CHANNELS);
    this.w1 = take(inputs * units);
    this.w2 = take((actions + 1) * (units + 1));
    if (at !== all.length) throw new Error(`${all.length} weights, not ${at}`);
    this.sums = new Float64Array(POSITIONS * CHANNELS);
    this.seen = new Uint8Array(POSITIONS);
    this.positions = [];                               // those that see a pixel
    this.hidden = new Float64Array(units);
    this.logits = new Float64Array(actions);
    this.probabilities = new Float64Array(actions);
    this.value = 0;
  }

  // Rows of w1 for what is no pixel: a constant, and the last actions.
  sideRows(last) {
    return [0, ...last.slice(0, this.history).map((action, lag) => 1 + lag * this.actions + action)]
      .map((row) => (POSITIONS * CHANNELS + row) * this.units);
  }

  // courts, and the last actions: the newest first. Returns the probabilities.
  forward(courts, last) {
    const { kernel, bias, w1, w2, sums, seen, units, hidden, actions, logits, probabilities } = this;
    for (const position of this.positions) seen[position] = 0;
    this.positions = [];
    courts.slice(0, this.frames).forEach((court, frame) => {
      for (const pixel of court) {
        const row = pixel / COLUMNS | 0, column = pixel % COLUMNS;
        let from = ((frame * 8 + (row & 7)) * 4 + (column & 3)) * 4 * CHANNELS;
        for (const position of positionsOf(pixel)) {
          const to = position * CHANNELS;
          if (!seen[position]) { seen[position] = 1; this.positions.push(position); sums.set(bias, to); }
          for (let c = 0; c < CHANNELS; c++) sums[to + c] += kernel[from++];
        }
      }
    });
    hidden.fill(0);
    for (const from of this.sideRows(last)) for (let u = 0; u < units; u++) hidden[u] += w1[from + u];
    for (const position of this.positions) {
      for (let input = position * CHANNELS; input < (position + 1) * CHANNELS; input++) {
        const x = sums[input];
        if (x > 0) for (let u = 0, from = input * units; u < units; u++) hidden[u] += x * w1[from + u];
      }
    }
    for (let u = 0; u < units; u++) hidden[u] = Math.max(0, hidden[u]);
    for (let a = 0, from = 0; a <= actions; a++, from += units + 1) {
      let total = w2[from + units];
      for (let u = 0; u < units; u++) total += hidden[u] * w2[from + u];
      if (a < actions) logits[a] = total; else this.value = total;
    }
    const most = Math.max(...logits), all = logits.reduce((sum, logit) => sum + Math.exp(logit - most), 0);
    for (let a = 0; a < actions; a++) probabilities[a] = Math.exp(logits[a] - most) / all;
    return probabilities;
  }

  // Why up rather than down, after a `forward`: shares whose sum is logit(up) − logit(down), one for each of some
  // kinds of pixels (lists of them), and one for the last actions and constants. Where it is, the network is linear, so
  // that this is exact. What a patch with pixels of several kinds says counts for the first of them.
  reasons(kinds, last) {
    const { w1, w2, sums, units, hidden } = this, shares = new Float64Array(kinds.length + 1), kindOf = new Map();
    kinds.forEach((pixels, kind) => {
      for (const pixel of pixels) {
        for (const position of positionsOf(pixel)) if (!kindOf.has(position)) kindOf.set(position, kind);
      }
    });
    const votes = hidden.map((x, u) => (x > 0 ? w2[u] - w2[units + 1 + u] : 0));
    const vote = (from) => votes.reduce((total, one, u) => total + one * w1[from + u], 0);
    for (const position of this.positions) {
      for (let input = position * CHANNELS; input < (position + 1) * CHANNELS; input++) {
        if (sums[input] > 0) shares[kindOf.get(position)] += sums[input] * vote(input * units);
      }
    }
    shares[kinds.length] = w2[units] - w2[2 * units + 1];
    for (const from of this.sideRows(last)) shares[kinds.length] += vote(from);
    return shares;
  }
}
