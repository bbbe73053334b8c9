// The console's plain core, from fastpong/console by `python docs/make_core.py`: do not change it here.
// `core.power_on(rom)` is a state; `core.set_controls` and `core.frame` do to it what their twins in Python do.
"use strict";

const core = (() => {
const mod = (a, b) => { const rest = a % b; return rest < 0 ? rest + b : rest; };
const divmod = (a, b) => [Math.floor(a / b), mod(a, b)];

const ABSOLUTE_X = 7, ABSOLUTE_Y = 8, ACCUMULATOR = 1, ADC = 0, AND = 1, ASL = 2, BALL = 4, BCC = 3, BCS = 4,
  BEFORE_COPY = 1, BEQ = 5, BIT = 6, BLANK_CLOCKS = 68, BMI = 7, BPL = 9, BREAK_VECTOR = 65534, BVC = 11, BVS = 12,
  CARTRIDGE = 4096, CLC = 13, CLD = 14, CLI = 15, CLOCKS = 228, CLV = 16, CMP = 17, COLUBK = 9, COLUP0 = 6,
  COLUP1 = 7, COLUPF = 8, COMB = 8, CPX = 18, CPY = 19, CTRLPF = 10, CXCLR = 44, CXPPMM = 7, DEC = 20, DEX = 21,
  DEY = 22, ENABL = 31, ENAM0 = 29, ENAM1 = 30, END = 55632, EOR = 23, FARADS = 1e-08, FIRE = 3,
  FRAME_CYCLES = 100000, FREQUENCY = 1190000.0, GRP0 = 27, GRP1 = 28, HMBL = 36, HMCLR = 43, HMOVE = 42, HMP0 = 32,
  IMMEDIATE = 2, IMPLIED = 0, INC = 24, INDIRECT = 9, INDIRECT_X = 10, INDIRECT_Y = 11, INPT0 = 8, INPT1 = 9,
  INPT5 = 13, INTIM = 4, INX = 25, INY = 26, JMP = 27, JSR = 28, LDA = 29, LDX = 30, LDY = 31, LEFT = 1, LEFTFIRE = 5,
  LINE_CYCLES = 76, MISSILE_0 = 2, MISSILE_1 = 3, MOST_LINES = 290, NEVER = 1073741824, NOTHING = 0, NO_COPY = -1,
  NUSIZ0 = 4, NUSIZ1 = 5, ON_COPY = 2, ORA = 34, PADDLE_HIGH = 790196, PADDLE_LOW = 27450, PADDLE_STEP = 23000,
  PF0 = 13, PF1 = 14, PF2 = 15, PHA = 35, PHP = 36, PLA = 37, PLAYER_0 = 0, PLAYER_1 = 1, PORTS = 512,
  RAM_BYTES = 128, REFP0 = 11, REFP1 = 12, RELATIVE = 12, RESBL = 20, RESM0 = 18, RESM1 = 19, RESMP0 = 40,
  RESMP1 = 41, RESP0 = 16, RESP1 = 17, RIGHT = 0, RIGHTFIRE = 4, RIOT = 128, ROL = 39, ROR = 40, RTI = 41, RTS = 42,
  SBC = 43, SEC = 44, SED = 45, SEI = 46, STA = 47, STACK = 256, START = 7752, STX = 48, SWCHA = 0, SWCHB = 2,
  TAX = 50, TAY = 51, TIMER = 20, TOP = 34, TSX = 52, TXA = 53, TXS = 54, TYA = 55, UNDEFINED = -1, VBLANK = 1,
  VDELBL = 39, VDELP0 = 37, VDELP1 = 38, VSYNC = 0, WIDE = 5, WIDEST = 7, WSYNC = 2, ZERO_PAGE = 3, ZERO_PAGE_X = 4,
  ZERO_PAGE_Y = 5, _BL = 16, _M0 = 4, _M1 = 8, _P0 = 1, _P1 = 2, _PF = 32;
const BLOCKS = Int32Array.of(1, 2, 4, 8, 2048, 1024, 512, 256, 128, 64, 32, 16, 4096, 8192, 16384, 32768, 65536,
  131072, 262144, 524288);
const COLLISIONS = Int32Array.of(0, 0, 0, 16384, 0, 2, 1, 16387, 0, 4, 8, 16396, 32768, 32774, 32777, 49167, 0, 32,
  128, 16544, 512, 546, 641, 17059, 2048, 2084, 2184, 18604, 35328, 35366, 35465, 51887, 0, 16, 64, 16464, 256, 274,
  321, 16723, 1024, 1044, 1096, 17500, 34048, 34070, 34121, 50527, 4096, 4144, 4288, 20720, 4864, 4914, 5057, 21491,
  7168, 7220, 7368, 23804, 40704, 40758, 40905, 57343);
const COPIES = Int32Array.of(0, -1, -1, 0, 16, -1, 0, 32, -1, 0, 16, 32, 0, 64, -1, 0, -1, -1, 0, 32, 64, 0, -1, -1);
const CROSSING = Int32Array.of(0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0,
  1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0,
  0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,
  0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,
  0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0,
  1, 0, 0, 1, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 1, 0, 0,
  0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 1, 0, 0);
const CYCLES = Int32Array.of(7, 6, 0, 0, 0, 3, 5, 0, 3, 2, 2, 0, 0, 4, 6, 0, 2, 5, 0, 0, 0, 4, 6, 0, 2, 4, 0, 0, 0, 4,
  7, 0, 6, 6, 0, 0, 3, 3, 5, 0, 4, 2, 2, 0, 4, 4, 6, 0, 2, 5, 0, 0, 0, 4, 6, 0, 2, 4, 0, 0, 0, 4, 7, 0, 6, 6, 0, 0, 0,
  3, 5, 0, 3, 2, 2, 0, 3, 4, 6, 0, 2, 5, 0, 0, 0, 4, 6, 0, 2, 4, 0, 0, 0, 4, 7, 0, 6, 6, 0, 0, 0, 3, 5, 0, 4, 2, 2, 0,
  5, 4, 6, 0, 2, 5, 0, 0, 0, 4, 6, 0, 2, 4, 0, 0, 0, 4, 7, 0, 0, 6, 0, 0, 3, 3, 3, 0, 2, 0, 2, 0, 4, 4, 4, 0, 2, 6, 0,
  0, 4, 4, 4, 0, 2, 5, 2, 0, 0, 5, 0, 0, 2, 6, 2, 0, 3, 3, 3, 0, 2, 2, 2, 0, 4, 4, 4, 0, 2, 5, 0, 0, 4, 4, 4, 0, 2, 4,
  2, 0, 4, 4, 4, 0, 2, 6, 0, 0, 3, 3, 5, 0, 2, 2, 2, 0, 4, 4, 6, 0, 2, 5, 0, 0, 0, 4, 6, 0, 2, 4, 0, 0, 0, 4, 7, 0, 2,
  6, 0, 0, 3, 3, 5, 0, 2, 2, 2, 0, 4, 4, 6, 0, 2, 5, 0, 0, 0, 4, 6, 0, 2, 4, 0, 0, 0, 4, 7, 0);
const MODE = Int32Array.of(0, 10, 0, 0, 0, 3, 3, 0, 0, 2, 1, 0, 0, 6, 6, 0, 12, 11, 0, 0, 0, 4, 4, 0, 0, 8, 0, 0, 0,
  7, 7, 0, 6, 10, 0, 0, 3, 3, 3, 0, 0, 2, 1, 0, 6, 6, 6, 0, 12, 11, 0, 0, 0, 4, 4, 0, 0, 8, 0, 0, 0, 7, 7, 0, 0, 10,
  0, 0, 0, 3, 3, 0, 0, 2, 1, 0, 6, 6, 6, 0, 12, 11, 0, 0, 0, 4, 4, 0, 0, 8, 0, 0, 0, 7, 7, 0, 0, 10, 0, 0, 0, 3, 3, 0,
  0, 2, 1, 0, 9, 6, 6, 0, 12, 11, 0, 0, 0, 4, 4, 0, 0, 8, 0, 0, 0, 7, 7, 0, 0, 10, 0, 0, 3, 3, 3, 0, 0, 0, 0, 0, 6, 6,
  6, 0, 12, 11, 0, 0, 4, 4, 5, 0, 0, 8, 0, 0, 0, 7, 0, 0, 2, 10, 2, 0, 3, 3, 3, 0, 0, 2, 0, 0, 6, 6, 6, 0, 12, 11, 0,
  0, 4, 4, 5, 0, 0, 8, 0, 0, 7, 7, 8, 0, 2, 10, 0, 0, 3, 3, 3, 0, 0, 2, 0, 0, 6, 6, 6, 0, 12, 11, 0, 0, 0, 4, 4, 0, 0,
  8, 0, 0, 0, 7, 7, 0, 2, 10, 0, 0, 3, 3, 3, 0, 0, 2, 0, 0, 6, 6, 6, 0, 12, 11, 0, 0, 0, 4, 4, 0, 0, 8, 0, 0, 0, 7, 7,
  0);
const OPERATION = Int32Array.of(10, 34, -1, -1, -1, 34, 2, -1, 36, 34, 2, -1, -1, 34, 2, -1, 9, 34, -1, -1, -1, 34, 2,
  -1, 13, 34, -1, -1, -1, 34, 2, -1, 28, 1, -1, -1, 6, 1, 39, -1, 38, 1, 39, -1, 6, 1, 39, -1, 7, 1, -1, -1, -1, 1,
  39, -1, 44, 1, -1, -1, -1, 1, 39, -1, 41, 23, -1, -1, -1, 23, 32, -1, 35, 23, 32, -1, 27, 23, 32, -1, 11, 23, -1,
  -1, -1, 23, 32, -1, 15, 23, -1, -1, -1, 23, 32, -1, 42, 0, -1, -1, -1, 0, 40, -1, 37, 0, 40, -1, 27, 0, 40, -1, 12,
  0, -1, -1, -1, 0, 40, -1, 46, 0, -1, -1, -1, 0, 40, -1, -1, 47, -1, -1, 49, 47, 48, -1, 22, -1, 53, -1, 49, 47, 48,
  -1, 3, 47, -1, -1, 49, 47, 48, -1, 55, 47, 54, -1, -1, 47, -1, -1, 31, 29, 30, -1, 31, 29, 30, -1, 51, 29, 50, -1,
  31, 29, 30, -1, 4, 29, -1, -1, 31, 29, 30, -1, 16, 29, 52, -1, 31, 29, 30, -1, 19, 17, -1, -1, 19, 17, 20, -1, 26,
  17, 21, -1, 19, 17, 20, -1, 8, 17, -1, -1, -1, 17, 20, -1, 14, 17, -1, -1, -1, 17, 20, -1, 18, 43, -1, -1, 18, 43,
  24, -1, 25, 43, 33, -1, 18, 43, 24, -1, 5, 43, -1, -1, -1, 43, 24, -1, 45, 43, -1, -1, -1, 43, 24, -1);
const REFLECTED = Int32Array.of(0, 128, 64, 192, 32, 160, 96, 224, 16, 144, 80, 208, 48, 176, 112, 240, 8, 136, 72,
  200, 40, 168, 104, 232, 24, 152, 88, 216, 56, 184, 120, 248, 4, 132, 68, 196, 36, 164, 100, 228, 20, 148, 84, 212,
  52, 180, 116, 244, 12, 140, 76, 204, 44, 172, 108, 236, 28, 156, 92, 220, 60, 188, 124, 252, 2, 130, 66, 194, 34,
  162, 98, 226, 18, 146, 82, 210, 50, 178, 114, 242, 10, 138, 74, 202, 42, 170, 106, 234, 26, 154, 90, 218, 58, 186,
  122, 250, 6, 134, 70, 198, 38, 166, 102, 230, 22, 150, 86, 214, 54, 182, 118, 246, 14, 142, 78, 206, 46, 174, 110,
  238, 30, 158, 94, 222, 62, 190, 126, 254, 1, 129, 65, 193, 33, 161, 97, 225, 17, 145, 81, 209, 49, 177, 113, 241, 9,
  137, 73, 201, 41, 169, 105, 233, 25, 153, 89, 217, 57, 185, 121, 249, 5, 133, 69, 197, 37, 165, 101, 229, 21, 149,
  85, 213, 53, 181, 117, 245, 13, 141, 77, 205, 45, 173, 109, 237, 29, 157, 93, 221, 61, 189, 125, 253, 3, 131, 67,
  195, 35, 163, 99, 227, 19, 147, 83, 211, 51, 179, 115, 243, 11, 139, 75, 203, 43, 171, 107, 235, 27, 155, 91, 219,
  59, 187, 123, 251, 7, 135, 71, 199, 39, 167, 103, 231, 23, 151, 87, 215, 55, 183, 119, 247, 15, 143, 79, 207, 47,
  175, 111, 239, 31, 159, 95, 223, 63, 191, 127, 255);
const TIMER_SHIFTS = [0, 3, 6, 10];
const _CHANGE = [2, 32, 39, 40, 24, 20];
const _JUMP = [27, 28, 42, 41, 10];
const _READ = [29, 30, 31, 0, 43, 1, 34, 23, 6, 17, 18, 19];
const _STACK = [35, 36, 37, 38];
const _WRITE = [47, 48, 49];

// Switch the console on: return its state.
function power_on(rom) {
  const vector = 8188 & rom.length - 1;
  return { ram: new Uint8Array(128), cycle: 0, frame_start: 0, beam: 0, vsync_end: 1073741824, PF: 0, collisions: 0,
    dump_cycle: 0, timer_set: 0, timer_read: 0, resistance: Int32Array.of(0, 0), paddle: Int32Array.of(408823, 408823),
    frames: 0, PC: rom[vector] | rom[vector + 1] << 8, A: 0, X: 0, Y: 0, S: 255, N: 0, V: 0, D: 0, I: 0, Z: 0, C: 0,
    frame_over: 0, VSYNC: 0, VBLANK: 0, NUSIZ0: 0, NUSIZ1: 0, COLUP0: 0, COLUP1: 0, COLUPF: 0, COLUBK: 0, CTRLPF: 0,
    REFP0: 0, REFP1: 0, GRP0: 0, GRP1: 0, ENAM0: 0, ENAM1: 0, ENABL: 0, VDELP0: 0, VDELP1: 0, VDELBL: 0, RESMP0: 0,
    RESMP1: 0, old_GRP0: 0, old_GRP1: 0, old_ENABL: 0, HM: Int32Array.of(0, 0, 0, 0, 0), position: Int32Array.of(0, 0,
    0, 0, 0), skip_copy: Int32Array.of(0, 0), mirrored: 0, comb: 0, dumped: 0, timer: 25, timer_shift: 6, timer_ran_out:
    0, SWCHA: 0, SWCHB: 0, held: 2 };
}

// Emulate until the program ends the frame: it switches VSYNC off.
function frame(s, rom, screen) {
  begin_frame(s);
  while (!s.frame_over) {
    if (s.cycle < FRAME_CYCLES) {
      instruction(s, rom, screen);
    } else {
      s.frame_over = 1;
    }
  }
}

// Set paddles, buttons and switches for the next frame.
function set_controls(s, action_a, action_b, select, reset, difficulty) {
  let fire_a, fire_b;
  [s.paddle[0], s.paddle[1]] = [turned(s.paddle[0], action_a), turned(s.paddle[1], action_b)];
  [s.resistance[1], s.resistance[0]] = [s.paddle[0], s.paddle[1]];
  fire_a = action_a >= FIRE ? 64 : 0;
  fire_b = action_b >= FIRE ? 128 : 0;
  s.SWCHA = 255 - fire_a - fire_b;
  s.SWCHB = 63 - reset - 2 * select + (difficulty << 6);
}

// Count cycles and clocks from here on; the beam stays where it is in its line.
function begin_frame(s) {
  let cycles;
  cycles = s.cycle;
  s.dump_cycle = Math.max(s.dump_cycle - cycles, 0 - NEVER);
  s.timer_set = Math.max(s.timer_set - cycles, 0 - NEVER);
  s.timer_read = Math.max(s.timer_read - cycles, 0 - NEVER);
  if (s.vsync_end !== NEVER) {
    s.vsync_end = Math.max(s.vsync_end - cycles * 3, 0 - NEVER);
  }
  s.frame_start = 0 - mod(cycles * 3 - s.frame_start, CLOCKS);
  s.beam = s.frame_start + START;
  s.cycle = 0;
  s.frame_over = 0;
}

// Execute one instruction. One that is not documented ends the frame, and is not executed.
function instruction(s, rom, screen) {
  let start, code, operation, address, last, value;
  start = s.PC;
  code = fetch(s, rom, screen, 0);
  operation = OPERATION[code];
  if (operation === UNDEFINED) {
    [s.PC, s.frame_over] = [start, 1];
    return;
  }
  s.cycle += CYCLES[code];
  [address, last] = fetch_address(s, rom, screen, code);
  if (_READ.includes(operation)) {
    use(s, operation, peek(s, rom, screen, address, last));
  } else if (MODE[code] === ACCUMULATOR) {
    s.A = changed(s, operation, s.A);
  } else if (_CHANGE.includes(operation)) {
    poke(s, screen, address, changed(s, operation, peek(s, rom, screen, address, last)));
  } else if (_WRITE.includes(operation)) {
    value = operation === STA ? s.A : operation === STX ? s.X : s.Y;
    poke(s, screen, address, value);
  } else if (MODE[code] === RELATIVE) {
    if (branch_taken(s, operation)) {
      s.cycle += (s.PC ^ address) & 65280 ? 2 : 1;
      s.PC = address;
    }
  } else if (_JUMP.includes(operation)) {
    jump(s, rom, screen, operation, address, last);
  } else if (_STACK.includes(operation)) {
    push_or_pull(s, rom, screen, operation, last);
  } else {
    transfer(s, operation);
  }
}

// Return the ohms of a paddle after an action.
function turned(ohms, action) {
  if (action === RIGHT || action === RIGHTFIRE) {
    return Math.max(ohms - PADDLE_STEP, PADDLE_LOW);
  }
  if (action === LEFT || action === LEFTFIRE) {
    return Math.min(ohms + PADDLE_STEP, PADDLE_HIGH);
  }
  return ohms;
}

// Read the byte at the program counter, and move on to the next.
function fetch(s, rom, screen, last) {
  let byte;
  byte = peek(s, rom, screen, s.PC, last);
  s.PC = s.PC + 1 & 65535;
  return byte;
}

// Fetch the rest of an instruction; return the address of its operand, and the last byte on the data bus.
function fetch_address(s, rom, screen, code) {
  let mode, low, high, address, base;
  mode = MODE[code];
  if (mode === IMPLIED || mode === ACCUMULATOR) {
    return [0, code];
  }
  if (mode === IMMEDIATE) {
    address = s.PC;
    s.PC = address + 1 & 65535;
    return [address, code];
  }
  low = fetch(s, rom, screen, code);
  if (mode === ZERO_PAGE) {
    return [low, low];
  }
  if (mode === ZERO_PAGE_X) {
    return [low + s.X & 255, low];
  }
  if (mode === ZERO_PAGE_Y) {
    return [low + s.Y & 255, low];
  }
  if (mode === RELATIVE) {
    return [s.PC + (low > 127 ? low - 256 : low) & 65535, low];
  }
  if (mode === INDIRECT_X) {
    return read_pointer(s, rom, screen, low + s.X & 255, low);
  }
  if (mode === INDIRECT_Y) {
    [base, high] = read_pointer(s, rom, screen, low, low);
    return [add_index(s, base, s.Y, code), high];
  }
  high = fetch(s, rom, screen, low);
  if (mode === INDIRECT) {
    return read_pointer(s, rom, screen, high << 8 | low, high);
  }
  if (mode === ABSOLUTE_X) {
    return [add_index(s, high << 8 | low, s.X, code), high];
  }
  if (mode === ABSOLUTE_Y) {
    return [add_index(s, high << 8 | low, s.Y, code), high];
  }
  return [high << 8 | low, high];
}

// Do an operation that reads a value: load, add, subtract, combine, compare.
function use(s, operation, value) {
  if (operation === LDA) {
    s.A = value;
    set_nz(s, value);
  } else if (operation === LDX) {
    s.X = value;
    set_nz(s, value);
  } else if (operation === LDY) {
    s.Y = value;
    set_nz(s, value);
  } else if (operation === ADC || operation === SBC) {
    if (s.D) {
      add_decimal(s, value, operation === SBC);
    } else {
      add(s, operation === ADC ? value : value ^ 255);
    }
  } else if (operation === AND || operation === ORA || operation === EOR) {
    s.A = operation === AND ? s.A & value : operation === ORA ? s.A | value : s.A ^ value;
    set_nz(s, s.A);
  } else if (operation === BIT) {
    [s.N, s.V, s.Z] = [value >> 7, value >> 6 & 1, (s.A & value) === 0 ? 1 : 0];
  } else if (operation === CMP) {
    compare(s, s.A, value);
  } else if (operation === CPX) {
    compare(s, s.X, value);
  } else if (operation === CPY) {
    compare(s, s.Y, value);
  }
}

// Read a byte.
function peek(s, rom, screen, address, last) {
  if (address & CARTRIDGE) {
    return rom[address & rom.length - 1];
  }
  if (!(address & RIOT)) {
    return read_tia(s, screen, address & 15, last);
  }
  if (!(address & PORTS)) {
    return s.ram[address & RAM_BYTES - 1];
  }
  return read_riot(s, address);
}

// Return what an operation that writes back makes of a value: shift, rotate, count.
function changed(s, operation, value) {
  let result, old;
  if (operation === INC) {
    result = value + 1 & 255;
  } else if (operation === DEC) {
    result = value - 1 & 255;
  } else {
    old = s.C;
    if (operation === ASL || operation === ROL) {
      s.C = value >> 7;
      result = (value << 1 | (operation === ROL ? old : 0)) & 255;
    } else {
      s.C = value & 1;
      result = value >> 1 | (operation === ROR ? old << 7 : 0);
    }
  }
  set_nz(s, result);
  return result;
}

// Write a byte. The cartridge ignores it, and so do the ports, which are inputs.
function poke(s, screen, address, value) {
  if (address & CARTRIDGE) {
    return;
  }
  if (!(address & RIOT)) {
    write_tia(s, screen, address & 63, value);
  } else if (!(address & PORTS)) {
    s.ram[address & RAM_BYTES - 1] = value;
  } else if ((address & TIMER) === TIMER) {
    set_timer(s, address, value);
  }
}

// Return whether a branch is taken.
function branch_taken(s, operation) {
  let flag, wanted;
  if (operation === BPL || operation === BMI) {
    [flag, wanted] = [s.N, operation === BMI];
  } else if (operation === BVC || operation === BVS) {
    [flag, wanted] = [s.V, operation === BVS];
  } else if (operation === BCC || operation === BCS) {
    [flag, wanted] = [s.C, operation === BCS];
  } else {
    [flag, wanted] = [s.Z, operation === BEQ];
  }
  return Boolean((flag !== 0) === wanted);
}

// Jump, call, break, or return. A call pushes the address of its last byte; BRK that of the second after it.
function jump(s, rom, screen, operation, address, last) {
  let flags, _;
  if (operation === JMP) {
    s.PC = address;
  } else if (operation === JSR) {
    push_word(s, screen, s.PC - 1 & 65535);
    s.PC = address;
  } else if (operation === RTS) {
    s.PC = pull_word(s, rom, screen, last) + 1 & 65535;
  } else if (operation === RTI) {
    flags = pull(s, rom, screen, last);
    set_status(s, flags);
    s.PC = pull_word(s, rom, screen, flags);
  } else {
    push_word(s, screen, s.PC + 1 & 65535);
    push(s, screen, status(s));
    s.I = 1;
    [s.PC, _] = read_pointer(s, rom, screen, BREAK_VECTOR, last);
  }
}

// Put A or the flags on the stack, or take them from there.
function push_or_pull(s, rom, screen, operation, last) {
  if (operation === PHA) {
    push(s, screen, s.A);
  } else if (operation === PHP) {
    push(s, screen, status(s));
  } else if (operation === PLA) {
    s.A = pull(s, rom, screen, last);
    set_nz(s, s.A);
  } else {
    set_status(s, pull(s, rom, screen, last));
  }
}

// Do an operation inside the processor: copy or count a register, set or clear a flag, or nothing (NOP).
function transfer(s, operation) {
  if (operation === TAX) {
    use(s, LDX, s.A);
  } else if (operation === TAY) {
    use(s, LDY, s.A);
  } else if (operation === TXA) {
    use(s, LDA, s.X);
  } else if (operation === TYA) {
    use(s, LDA, s.Y);
  } else if (operation === TSX) {
    use(s, LDX, s.S);
  } else if (operation === INX || operation === DEX) {
    use(s, LDX, s.X + (operation === INX ? 1 : -1) & 255);
  } else if (operation === INY || operation === DEY) {
    use(s, LDY, s.Y + (operation === INY ? 1 : -1) & 255);
  } else if (operation === TXS) {
    s.S = s.X;
  } else if (operation === CLC || operation === SEC) {
    s.C = operation === SEC ? 1 : 0;
  } else if (operation === CLD || operation === SED) {
    s.D = operation === SED ? 1 : 0;
  } else if (operation === CLI || operation === SEI) {
    s.I = operation === SEI ? 1 : 0;
  } else if (operation === CLV) {
    s.V = 0;
  }
}

// Return the address that lies at a pointer, and its upper byte. A pointer does not leave its page.
function read_pointer(s, rom, screen, pointer, last) {
  let low, high;
  low = peek(s, rom, screen, pointer, last);
  high = peek(s, rom, screen, pointer & 65280 | pointer + 1 & 255, low);
  return [high << 8 | low, high];
}

// Return a base with an index added, and count the cycle that the carry into the upper byte costs.
function add_index(s, base, index, code) {
  let address;
  address = base + index & 65535;
  if ((address ^ base) & 65280) {
    s.cycle += CROSSING[code];
  }
  return address;
}

// Set the flags N and Z after a result.
function set_nz(s, value) {
  [s.N, s.Z] = [value >> 7, value === 0 ? 1 : 0];
}

// Add a value and the carry to A, or subtract it and the borrow, with two decimal digits in each byte.
function add_decimal(s, value, subtract) {
  let before, digits, a, b, borrow, result;
  before = s.A;
  [a, b] = [(before >> 4) * 10 + (before & 15), (value >> 4) * 10 + (value & 15)];
  if (subtract) {
    borrow = 1 - s.C;
    result = a - b - borrow;
    if (result < 0) {
      result += 100;
    }
    s.C = before >= value + borrow ? 1 : 0;
  } else {
    result = a + b + s.C;
    s.C = result > 99 ? 1 : 0;
  }
  digits = mod(result & 255, 100);
  s.A = Math.floor(digits / 10) << 4 | mod(digits, 10);
  s.V = ((before ^ s.A) & (s.A ^ value)) >> 7 & 1;
  set_nz(s, s.A);
}

// Add a value and the carry to A. To subtract, add the value with all its bits turned.
function add(s, value) {
  let result;
  result = s.A + value + s.C;
  s.V = ((s.A ^ result) & (value ^ result)) >> 7 & 1;
  [s.C, s.A] = [result >> 8, result & 255];
  set_nz(s, result & 255);
}

// Set the flags after a subtraction whose result is not kept.
function compare(s, register, value) {
  s.C = register >= value ? 1 : 0;
  set_nz(s, register - value & 255);
}

// Draw up to the present clock, and return what the processor reads from a register.
function read_tia(s, screen, register, last) {
  catch_up(s, screen, s.cycle * 3);
  return register_value(s, register, last);
}

// Return what the processor reads from a port or from the timer.
function read_riot(s, address) {
  let register;
  register = address & 7;
  if (register === SWCHA) {
    return s.SWCHA;
  }
  if (register === SWCHB) {
    return s.SWCHB;
  }
  if ((register & 5) === INTIM) {
    return _read_timer(s);
  }
  return 0;
}

// Draw up to the clock at which the write begins to show, and write.
function write_tia(s, screen, register, value) {
  catch_up(s, screen, s.cycle * 3 + delay(s, register));
  store(s, register, value);
}

// Start the timer: the processor writes TIM1T, TIM8T, TIM64T or T1024T.
function set_timer(s, address, value) {
  s.timer_shift = TIMER_SHIFTS[address & 3];
  [s.timer, s.timer_set, s.timer_ran_out] = [value, s.cycle, 0];
}

// Push two bytes, the upper one first.
function push_word(s, screen, word) {
  push(s, screen, word >> 8);
  push(s, screen, word & 255);
}

// Pull two bytes, the lower one first.
function pull_word(s, rom, screen, last) {
  let low;
  low = pull(s, rom, screen, last);
  return pull(s, rom, screen, low) << 8 | low;
}

// Take a byte from the stack.
function pull(s, rom, screen, last) {
  s.S = s.S + 1 & 255;
  return peek(s, rom, screen, STACK | s.S, last);
}

// Set the flags from a byte.
function set_status(s, byte) {
  [s.N, s.V, s.D] = [byte >> 7 & 1, byte >> 6 & 1, byte >> 3 & 1];
  [s.I, s.Z, s.C] = [byte >> 2 & 1, byte >> 1 & 1, byte & 1];
}

// Put a byte on the stack. Programs also point the stack at the TIA, to write registers in few cycles.
function push(s, screen, value) {
  poke(s, screen, STACK | s.S, value);
  s.S = s.S - 1 & 255;
}

// Return the flags as the byte that PHP and BRK push; its bits 4 and 5 are always set.
function status(s) {
  return s.N << 7 | s.V << 6 | 48 | s.D << 3 | s.I << 2 | s.Z << 1 | s.C;
}

// Draw up to a clock. Nothing is drawn, and nothing collides, outside the lines that are shown.
function catch_up(s, screen, clock) {
  let end, y, in_line, x, colour;
  end = Math.min(clock, s.frame_start + END);
  while (s.beam < end) {
    [y, in_line] = divmod(s.beam - s.frame_start, CLOCKS);
    if (in_line >= BLANK_CLOCKS) {
      x = in_line - BLANK_CLOCKS;
      colour = pixel(s, x);
      if (s.comb && x < COMB) {
        colour = 0;
      }
      if (x === COMB - 1) {
        s.comb = 0;
      }
      screen[(y - TOP) * 160 + x] = colour;
    }
    if (in_line === CLOCKS - 1) {
      [s.mirrored, s.skip_copy[PLAYER_0], s.skip_copy[PLAYER_1]] = [s.CTRLPF & 1, 0, 0];
    }
    s.beam += 1;
  }
}

// Return what the processor reads from a register, once the picture is drawn up to the present clock.
function register_value(s, register, last) {
  let undriven, two_bits, charged;
  undriven = last & 63;
  if (register <= CXPPMM) {
    two_bits = s.collisions >> 2 * register & 3;
    return (two_bits & 1) << 7 | (two_bits & 2) << 5 | undriven;
  }
  if (register <= INPT5) {
    charged = register <= INPT1 ? s.cycle > charged_after(s, register - INPT0) : true;
    return charged ? 128 | undriven : undriven;
  }
  return undriven;
}

// Return INTIM. It counts intervals down to 0; then it has run out, and counts cycles, from 255 down.
function _read_timer(s) {
  let cycles, left, timer, interval, late;
  [timer, interval] = [s.timer, 1 << s.timer_shift];
  cycles = s.cycle - 1 - s.timer_set;
  left = timer - (cycles >> s.timer_shift) - 1;
  if (left >= 0) {
    return left & 255;
  }
  left = timer * interval - cycles - 1;
  if (left <= -2 && !s.timer_ran_out) {
    [s.timer_ran_out, s.timer_read] = [1, s.cycle];
  }
  if (s.timer_ran_out) {
    late = s.timer_read - (s.timer_set + timer * interval);
    left = timer - (cycles >> s.timer_shift) - late;
  }
  return left & 255;
}

// Return the clocks after the present one from which on a write to a register shows.
function delay(s, register) {
  let quarter, met, player, nusiz;
  if (register === VBLANK || register === REFP0 || register === REFP1 || register === GRP0 || register === GRP1) {
    return 1;
  }
  if (register === NUSIZ0 || register === NUSIZ1 || register === RESM0 || register === RESM1) {
    return 8;
  }
  if (PF0 <= register && register <= PF2) {
    quarter = Math.floor(clock_in_line(s) / 3) & 3;
    return quarter === 0 ? 4 : quarter === 1 ? 5 : quarter === 2 ? 2 : 3;
  }
  if (register === RESP0 || register === RESP1) {
    [player, nusiz] = register === RESP0 ? [PLAYER_0, s.NUSIZ0] : [PLAYER_1, s.NUSIZ1];
    met = met_by_reset(nusiz, s.position[player], position_after_reset(s, 5));
    return met === ON_COPY ? 11 : 0;
  }
  return 0;
}

// Write a value into a register at cycle ``s.cycle``; the picture has been drawn up to there.
function store(s, register, value) {
  let clock, in_line, new_, met, k;
  clock = s.cycle * 3;
  in_line = clock_in_line(s);
  if (Math.floor((clock - s.frame_start) / CLOCKS) > MOST_LINES) {
    s.frame_over = 1;
  }
  if (register === VSYNC) {
    s.VSYNC = value;
    if (value & 2) {
      s.vsync_end = clock + CLOCKS;
    } else if (clock >= s.vsync_end) {
      [s.vsync_end, s.frame_over] = [NEVER, 1];
    }
  } else if (register === VBLANK) {
    if (value & 128) {
      s.dumped = 1;
    } else if (s.VBLANK & 128) {
      [s.dumped, s.dump_cycle] = [0, s.cycle];
    }
    s.VBLANK = value;
  } else if (register === WSYNC) {
    s.cycle += rest_of_line(s);
  } else if (register === NUSIZ0) {
    [s.NUSIZ0, s.skip_copy[PLAYER_0]] = [value, 0];
  } else if (register === NUSIZ1) {
    [s.NUSIZ1, s.skip_copy[PLAYER_1]] = [value, 0];
  } else if (register === COLUP0) {
    s.COLUP0 = value & 254;
  } else if (register === COLUP1) {
    s.COLUP1 = value & 254;
  } else if (register === COLUPF) {
    s.COLUPF = value & 254;
  } else if (register === COLUBK) {
    s.COLUBK = value & 254;
  } else if (register === CTRLPF) {
    s.CTRLPF = value;
    if (in_line < BLANK_CLOCKS + 79) {
      s.mirrored = value & 1;
    }
  } else if (register === REFP0) {
    s.REFP0 = value & 8;
  } else if (register === REFP1) {
    s.REFP1 = value & 8;
  } else if (register === PF0) {
    s.PF = s.PF & 1048560 | value >> 4;
  } else if (register === PF1) {
    s.PF = s.PF & 1044495 | value << 4;
  } else if (register === PF2) {
    s.PF = s.PF & 4095 | value << 12;
  } else if (register === RESP0) {
    new_ = position_after_reset(s, 5);
    met = met_by_reset(s.NUSIZ0, s.position[PLAYER_0], new_);
    [s.position[PLAYER_0], s.skip_copy[PLAYER_0]] = [new_, met === BEFORE_COPY ? 0 : 1];
  } else if (register === RESP1) {
    new_ = position_after_reset(s, 5);
    met = met_by_reset(s.NUSIZ1, s.position[PLAYER_1], new_);
    [s.position[PLAYER_1], s.skip_copy[PLAYER_1]] = [new_, met === BEFORE_COPY ? 0 : 1];
  } else if (register === RESM0 || register === RESM1 || register === RESBL) {
    s.position[MISSILE_0 + register - RESM0] = position_after_reset(s, 4);
  } else if (register === GRP0) {
    [s.GRP0, s.old_GRP1] = [value, s.GRP1];
  } else if (register === GRP1) {
    [s.GRP1, s.old_GRP0, s.old_ENABL] = [value, s.GRP0, s.ENABL];
  } else if (register === ENAM0) {
    s.ENAM0 = value & 2;
  } else if (register === ENAM1) {
    s.ENAM1 = value & 2;
  } else if (register === ENABL) {
    s.ENABL = value & 2;
  } else if (HMP0 <= register && register <= HMBL) {
    s.HM[register - HMP0] = value >> 4;
  } else if (register === VDELP0) {
    s.VDELP0 = value & 1;
  } else if (register === VDELP1) {
    s.VDELP1 = value & 1;
  } else if (register === VDELBL) {
    s.VDELBL = value & 1;
  } else if (register === RESMP0) {
    if (s.RESMP0 && !(value & 2)) {
      s.position[MISSILE_0] = mod(s.position[PLAYER_0] + _middle(s.NUSIZ0), 160);
    }
    s.RESMP0 = value & 2;
  } else if (register === RESMP1) {
    if (s.RESMP1 && !(value & 2)) {
      s.position[MISSILE_1] = mod(s.position[PLAYER_1] + _middle(s.NUSIZ1), 160);
    }
    s.RESMP1 = value & 2;
  } else if (register === HMOVE) {
    _move(s, Math.floor(in_line / 3));
  } else if (register === HMCLR) {
    for (k = 0; k < BALL + 1; k++) {
      s.HM[k] = 0;
    }
  } else if (register === CXCLR) {
    s.collisions = 0;
  }
}

// Return the colour at x with the present registers, and set collision latches.
function pixel(s, x) {
  let objects;
  if (s.VBLANK & 2) {
    return 0;
  }
  objects = objects_at(s, x);
  s.collisions |= COLLISIONS[objects];
  return colour_of(s, objects, x);
}

// Return the cycle after which a paddle's capacitor is full: `NEVER`, or −`NEVER` if no paddle is plugged in.
function charged_after(s, paddle) {
  let ohms, full;
  ohms = s.resistance[paddle];
  if (ohms === 0) {
    return 0 - NEVER;
  }
  full = s.dump_cycle + charging_cycles(ohms);
  return full >= 0 && !s.dumped ? full : NEVER;
}

// Return the clock of its line, 0 … 227, at which the present cycle begins.
function clock_in_line(s) {
  return mod(s.cycle * 3 - s.frame_start, CLOCKS);
}

// Return what the beam meets when RESP moves a player: a copy, the four pixels before one, or nothing.
function met_by_reset(nusiz, old, new_) {
  let mode, width, distance, k, copy;
  mode = nusiz & 7;
  width = mode === WIDE ? 16 : mode === WIDEST ? 32 : 8;
  distance = mod(new_ - old, 160);
  for (k = 0; k < 3; k++) {
    copy = COPIES[mode * 3 + k];
    if (copy !== NO_COPY && copy <= distance && distance < copy + 4) {
      return BEFORE_COPY;
    }
    if (copy !== NO_COPY && copy + 4 <= distance && distance < copy + 4 + width) {
      return ON_COPY;
    }
  }
  return NOTHING;
}

// Return where RESP, RESM or RESBL at the present cycle put an object.
function position_after_reset(s, lag) {
  let x;
  x = clock_in_line(s) - BLANK_CLOCKS;
  return x < 0 ? lag - 2 : mod(x + lag, 160);
}

// Return the cycles for which WSYNC halts the processor: until the line ends, or none if it just begins.
function rest_of_line(s) {
  return mod(Math.floor((CLOCKS - clock_in_line(s)) / 3), LINE_CYCLES);
}

// Return the pixels from a player's position to its middle, where RESMP puts the missile.
function _middle(nusiz) {
  let mode;
  mode = nusiz & 7;
  return mode === WIDE ? 8 : mode === WIDEST ? 16 : 4;
}

// Move all objects by their motions, 0 … 7 pixels to the left or 1 … 8 to the right.
function _move(s, cycle) {
  let k, motion;
  if (cycle <= 20 || cycle === LINE_CYCLES - 1) {
    s.comb = 1;
  }
  if (cycle <= 3 || cycle === LINE_CYCLES - 1) {
    for (k = 0; k < BALL + 1; k++) {
      motion = s.HM[k];
      s.position[k] = mod(s.position[k] + (motion < 8 ? 0 - motion : 16 - motion), 160);
    }
  }
  s.skip_copy[PLAYER_0] = s.skip_copy[PLAYER_1] = 0;
}

// Return the set of objects that cover x: bit `PLAYER_0` … bit `PLAYFIELD`.
function objects_at(s, x) {
  let objects, graphics_0, graphics_1, ball;
  [graphics_0, graphics_1, ball] = delayed(s);
  if (s.REFP0) {
    graphics_0 = REFLECTED[graphics_0];
  }
  if (s.REFP1) {
    graphics_1 = REFLECTED[graphics_1];
  }
  objects = 0;
  if (graphics_0 && player_at(x, s.position[PLAYER_0], s.NUSIZ0, graphics_0, s.skip_copy[PLAYER_0])) {
    objects |= _P0;
  }
  if (graphics_1 && player_at(x, s.position[PLAYER_1], s.NUSIZ1, graphics_1, s.skip_copy[PLAYER_1])) {
    objects |= _P1;
  }
  if (s.ENAM0 && !s.RESMP0 && missile_at(x, s.position[MISSILE_0], s.NUSIZ0)) {
    objects |= _M0;
  }
  if (s.ENAM1 && !s.RESMP1 && missile_at(x, s.position[MISSILE_1], s.NUSIZ1)) {
    objects |= _M1;
  }
  if (ball && mod(x - s.position[BALL], 160) < 1 << (s.CTRLPF >> 4 & 3)) {
    objects |= _BL;
  }
  if (playfield_at(s, x)) {
    objects |= _PF;
  }
  return objects;
}

// Return the colour of the object in front. "Score" gives each half of the playfield the colour of a player.
function colour_of(s, objects, x) {
  let score, in_front;
  [score, in_front] = [s.CTRLPF & 2, s.CTRLPF & 4];
  if (in_front && objects & (_PF | _BL)) {
    return s.COLUPF;
  }
  if (objects & (_P0 | _M0)) {
    return s.COLUP0;
  }
  if (objects & _PF && score && x < 80) {
    return s.COLUP0;
  }
  if (objects & (_P1 | _M1)) {
    return s.COLUP1;
  }
  if (objects & _PF && score) {
    return s.COLUP1;
  }
  if (objects & (_PF | _BL)) {
    return s.COLUPF;
  }
  return s.COLUBK;
}

// Return after how many cycles a paddle's capacitor is full. Through a larger resistance it takes longer.
function charging_cycles(ohms) {
  return Math.trunc(1.6 * ohms * FARADS * FREQUENCY);
}

// Return GRP0, GRP1 and ENABL as they are shown. A vertical delay shows what one was before its last hand-over.
function delayed(s) {
  return [s.VDELP0 ? s.old_GRP0 : s.GRP0, s.VDELP1 ? s.old_GRP1 : s.GRP1, s.VDELBL ? s.old_ENABL : s.ENABL];
}

// Return whether a player covers x. A wide one begins a pixel later.
function player_at(x, position, nusiz, graphics, skip_copy) {
  let k, mode, distance, shift, inside, copy;
  [mode, distance] = [nusiz & 7, mod(x - position, 160)];
  if (mode === WIDE || mode === WIDEST) {
    shift = mode === WIDE ? 1 : 2;
    inside = 1 <= distance && distance <= 8 << shift && !skip_copy;
    return inside && (graphics & 128 >> (distance - 1 >> shift)) !== 0;
  }
  for (k = skip_copy; k < 3; k++) {
    copy = COPIES[mode * 3 + k];
    if (copy !== NO_COPY && copy <= distance && distance < copy + 8) {
      return Boolean(graphics & 128 >> distance - copy);
    }
  }
  return false;
}

// Return whether a missile covers x. It has as many copies as its player.
function missile_at(x, position, nusiz) {
  let k, distance, width, copy;
  [distance, width] = [mod(x - position, 160), 1 << (nusiz >> 4 & 3)];
  for (k = 0; k < 3; k++) {
    copy = COPIES[(nusiz & 7) * 3 + k];
    if (copy !== NO_COPY && copy <= distance && distance < copy + width) {
      return true;
    }
  }
  return false;
}

// Return whether the playfield covers x. Its right half repeats the left one, or reflects it.
function playfield_at(s, x) {
  let block;
  block = Math.floor(x / 4);
  if (block >= 20) {
    block = s.mirrored ? 39 - block : block - 20;
  }
  return Boolean(s.PF & BLOCKS[block]);
}

return { power_on, set_controls, frame, PADDLE_LOW, PADDLE_HIGH, PADDLE_STEP };
})();
