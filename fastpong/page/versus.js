"use strict";
// A match on the console of core.js: a person on the left paddle, the network of net.js on the right one. No page here.
//
//   const match = new Match(rom, net, {frameSkip: 4, sticky: 0.25, sample: false});
//   match.play(ohmsAt(row), FASTEST);   // a frame, with the left paddle on its way to a row
//   match.screen, match.points, match.isOver

const SCREEN_ROWS = 210, SCREEN_COLUMNS = 160, WINNING = 21;
const LEFT_POINTS = 13, RIGHT_POINTS = 14, GAME = 22, BALL_ROW = 54;    // in RAM; the ball is out where its row is 0
const FOR_TWO = 2;                                     // the cartridge's game 3: the same Pong, but nobody is the computer
const STAY = 2, FIRE = 3, WITH_FIRE = [4, 5, FIRE];    // of up, down, stay; see ACTIONS in fastpong/pong.py
const FASTEST = core.PADDLE_STEP, BY_KEYS = 16000;     // ohms a frame: 5.8 rows, as the agent's paddle; and 4 rows
const OHMS_PER_ROW = 76 / (1.6 * 0.01e-6 * 1.19e6);    // see `charging_cycles` in core.js; a row takes 76 cycles
const LEAST = 34 * OHMS_PER_ROW;                       // with less the paddle is at the upper wall

// Ohms of a paddle whose middle is at a row of the screen, as measured.
function ohmsAt(row) { return (row + 1.6) * OHMS_PER_ROW; }

// Switch the console on and begin a game of the cartridge, as `boot` in fastpong/console/controls.py does.
function boot(rom, screen, game) {
  const s = core.power_on(rom);
  const run = (frames, select, reset) => {
    for (let k = 0; k < frames; k++) { core.set_controls(s, STAY, STAY, select, reset, 0); core.frame(s, rom, screen); }
  };
  run(60, 0, 0);
  run(4, 0, 1);
  while (s.ram[GAME] !== game) { run(2, 1, 0); run(1, 0, 0); }
  run(8, 0, 1);
  return s;
}

class Match {
  // sticky: the probability at each frame that the agent's action before is repeated. sample: it samples its actions.
  constructor(rom, net, { frameSkip, sticky, sample }) {
    Object.assign(this, { rom, net, frameSkip, sticky, sample, screen: new Uint8Array(SCREEN_ROWS * SCREEN_COLUMNS) });
    this.begin();
  }

  begin() {
    this.state = boot(this.rom, this.screen, FOR_TWO);
    this.frames = 0;
    this.courts = [];                                  // what the agent has seen and done, the newest first
    this.actions = [];
    this.held = STAY;
  }

  get points() { return [this.state.ram[LEFT_POINTS], this.state.ram[RIGHT_POINTS]]; }

  get isOver() { return Math.max(...this.points) >= WINNING; }

  // Let the agent look at the screen, and choose.
  think() {
    const { courts, actions, net } = this;
    courts.unshift(courtOf(this.screen));
    courts.splice(net.frames);
    const chances = net.forward(courts, actions);
    let action = chances.indexOf(Math.max(...chances));
    if (this.sample) {
      let rest = Math.random();
      action = chances.findIndex((chance) => (rest -= chance) < 0);
      if (action < 0) action = net.actions - 1;        // what rounding has left over
    }
    actions.unshift(action);
    actions.splice(net.history);
  }

  // Play a frame; `most` ohms is how far the left paddle turns at once. Both buttons are pressed to serve.
  play(aim, most) {
    const s = this.state;
    if (this.frames++ % this.frameSkip === 0) this.think();
    if (Math.random() >= this.sticky) this.held = this.actions[0];
    const to = Math.max(LEAST, Math.min(core.PADDLE_HIGH, aim));
    s.paddle[1] += Math.max(-most, Math.min(most, to - s.paddle[1]));
    const isOut = s.ram[BALL_ROW] === 0;
    core.set_controls(s, isOut ? WITH_FIRE[this.held] : this.held, isOut ? FIRE : STAY, 0, 0, 0);
    core.frame(s, this.rom, this.screen);
  }
}
