"use strict";
// A recorded game. Each screen is the one before with some runs of pixels, down the columns, changed by exclusive or,
// which is its own inverse: one can go either way. See `differences` in fastpong/commands/page.py.

const HEIGHT = 210, WIDTH = 160, BALL = 14;            // of a screen; the ball's palette index

class Screens {
  // runs: for each of `count` screens their number, then for each the gap before it, its length, and what is changed.
  constructor(runs, count) {
    this.runs = runs;
    this.screen = new Uint8Array(HEIGHT * WIDTH);      // palette indices, row by row
    this.at = -1;                                      // the screen that this is
    this.starts = [0];
    while (this.at < count - 1) this.starts.push(this.change(++this.at));
  }

  // Returns screen number k, which holds until the next call.
  seek(k) {
    while (this.at < k) this.change(++this.at);
    while (this.at > k) this.change(this.at--);
    return this.screen;
  }

  // Apply the runs of screen k, and return where those of the next one begin.
  change(k) {
    const { runs, screen } = this;
    let at = this.starts[k], pixel = 0;
    const number = () => {
      let value = 0, shift = 0, byte;
      do { byte = runs[at++]; value |= (byte & 127) << shift; shift += 7; } while (byte > 127);
      return value;
    };
    for (let left = number(); left > 0; left--) {
      pixel += number();
      const end = pixel + number(), change = runs[at++];
      for (; pixel < end; pixel++) screen[pixel % HEIGHT * WIDTH + (pixel / HEIGHT | 0)] ^= change;
    }
    return at;
  }
}

// The pixels of a court, as `courtOf` lists them, by what they are: the ball's, the own paddle's, the other one's.
function kindsOf(screen, court) {
  const kinds = [[], [], []];
  for (const pixel of court) {
    const row = pixel / COLUMNS | 0, column = pixel % COLUMNS;
    const kind = screen[(TOP + row) * WIDTH + 2 * column] === BALL ? 0 : column < COLUMNS / 2 ? 2 : 1;
    kinds[kind].push(pixel);
  }
  return kinds;
}
