// Checks an exported hand of five card draw and its fairness proof, after docs/fairness.md, version 1.
// One file, no dependencies. In Node: `node verify.js hand.json`. In a page: <script src="verify.js"></script>, then
// fivedrawVerify(text) gives {proved: [...], notProved: [...], failed: [...]}. It shares no code with the house.
"use strict";

(function (root) {
  const TEXTS = [];
  for (const rank of "23456789TJQKA") for (const suit of "cdhs") TEXTS.push(rank + suit);
  const NUMBERS = new Map(TEXTS.map((text, number) => [text, number]));
  const HAND = 5;
  const DECK = 52;
  // What is held of a file at once: one hand of a file with one a line, or all of a file that is one object.
  const HAND_CHARACTERS_MAX = 64 * 1024 * 1024;

  // ---- bytes ------------------------------------------------------------------------------------------------------

  const utf8 = (text) => new TextEncoder().encode(text);

  function concat(...parts) {
    const whole = new Uint8Array(parts.reduce((sum, part) => sum + part.length, 0));
    let at = 0;
    for (const part of parts) {
      whole.set(part, at);
      at += part.length;
    }
    return whole;
  }

  function unhex(text) {
    if (typeof text !== "string" || !/^([0-9a-f]{2})*$/.test(text)) throw new Broken("file", "bytes that are not hex");
    return Uint8Array.from(text.match(/../g) || [], (pair) => parseInt(pair, 16));
  }

  const hex = (bytes) => Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");

  function u32(number) {
    const bytes = new Uint8Array(4);
    new DataView(bytes.buffer).setUint32(0, number);
    return bytes;
  }

  function u64(number) {
    if (!Number.isSafeInteger(number) || number < 0) throw new Broken("file", `${number} is not a number of a hand or deck`);
    const bytes = new Uint8Array(8);
    new DataView(bytes.buffer).setBigUint64(0, BigInt(number));
    return bytes;
  }

  const sized = (bytes) => concat(u32(bytes.length), bytes);

  // ---- SHA-256 (FIPS 180-4) and HMAC (FIPS 198-1) -----------------------------------------------------------------

  const [ROUND, START] = (function constants() {
    const primes = [];
    for (let n = 2; primes.length < 64; n++) if (primes.every((prime) => n % prime)) primes.push(n);
    // The first 32 bits of the fractional part of a root, by whole-number roots of the scaled prime.
    const fraction = (prime, power) => {
      const scaled = BigInt(prime) << BigInt(32 * power);
      let low = 0n;
      let high = 1n << 40n;
      while (high - low > 1n) {
        const middle = (low + high) / 2n;
        if (middle ** BigInt(power) <= scaled) low = middle;
        else high = middle;
      }
      return Number(low & 0xffffffffn);
    };
    return [primes.map((prime) => fraction(prime, 3)), primes.slice(0, 8).map((prime) => fraction(prime, 2))];
  })();

  const turn = (word, by) => (word >>> by) | (word << (32 - by));

  function sha256(message) {
    const padded = new Uint8Array((((message.length + 8) >> 6) + 1) << 6);
    padded.set(message);
    padded[message.length] = 0x80;
    const view = new DataView(padded.buffer);
    view.setBigUint64(padded.length - 8, BigInt(message.length) * 8n);
    const state = START.slice();
    const words = new Int32Array(64);
    for (let block = 0; block < padded.length; block += 64) {
      for (let t = 0; t < 16; t++) words[t] = view.getInt32(block + 4 * t);
      for (let t = 16; t < 64; t++) {
        const early = words[t - 15];
        const late = words[t - 2];
        const first = turn(early, 7) ^ turn(early, 18) ^ (early >>> 3);
        const second = turn(late, 17) ^ turn(late, 19) ^ (late >>> 10);
        words[t] = (words[t - 16] + first + words[t - 7] + second) | 0;
      }
      let [a, b, c, d, e, f, g, h] = state;
      for (let t = 0; t < 64; t++) {
        const choice = (e & f) ^ (~e & g);
        const majority = (a & b) ^ (a & c) ^ (b & c);
        const one = (h + (turn(e, 6) ^ turn(e, 11) ^ turn(e, 25)) + choice + ROUND[t] + words[t]) | 0;
        const two = ((turn(a, 2) ^ turn(a, 13) ^ turn(a, 22)) + majority) | 0;
        [h, g, f, e, d, c, b, a] = [g, f, e, (d + one) | 0, c, b, a, (one + two) | 0];
      }
      [a, b, c, d, e, f, g, h].forEach((word, at) => (state[at] = (state[at] + word) | 0));
    }
    const digest = new Uint8Array(32);
    state.forEach((word, at) => new DataView(digest.buffer).setInt32(4 * at, word));
    return digest;
  }

  function hmac(key, message) {
    const block = new Uint8Array(64);
    block.set(key.length > 64 ? sha256(key) : key);
    const inner = sha256(concat(block.map((byte) => byte ^ 0x36), message));
    return sha256(concat(block.map((byte) => byte ^ 0x5c), inner));
  }

  // ---- the specification: shuffle, places, chain ------------------------------------------------------------------

  function contextOf(hand) {
    const parts = [sized(utf8("fivedraw.shuffle.v1")), sized(utf8(hand.table)), u64(hand.hand), sized(unhex(hand.proof.cut))];
    parts.push(u32(hand.proof.player_seeds.length));
    for (const each of hand.proof.player_seeds) parts.push(u32(each.seat), sized(unhex(each.seed)));
    return concat(...parts);
  }

  function shuffled(seed, context, number, pool) {
    const key = hmac(seed, concat(context, u32(number)));
    let block = new Uint8Array(0);
    let used = 0;
    let counter = 0;
    const next = () => {
      if (used === block.length) {
        block = hmac(key, u32(counter++));
        used = 0;
      }
      return block[used++];
    };
    const order = pool.slice();
    for (let last = order.length - 1; last > 0; last--) {
      const fair = 256 - (256 % (last + 1));
      let byte = next();
      while (byte >= fair) byte = next();
      const chosen = byte % (last + 1);
      [order[last], order[chosen]] = [order[chosen], order[last]];
    }
    return order;
  }

  const leafOf = (place) =>
    sha256(concat(Uint8Array.of(0, place.shuffle, place.place, NUMBERS.get(place.card)), unhex(place.salt)));

  function rootFrom(place, size) {
    let node = leafOf(place);
    let at = place.place;
    const path = place.path.map(unhex);
    for (; size > 1; at >>= 1, size = (size + 1) >> 1) {
      if ((at ^ 1) >= size) continue;
      const neighbour = path.shift();
      if (neighbour === undefined || neighbour.length !== 32) return "";
      node = sha256(at & 1 ? concat(Uint8Array.of(1), neighbour, node) : concat(Uint8Array.of(1), node, neighbour));
    }
    return path.length ? "" : hex(node);
  }

  const chainOf = (hand) =>
    hex(
      sha256(
        concat(
          sized(utf8("fivedraw.chain.v1")),
          unhex(hand.proof.previous_chain),
          sized(utf8(hand.table)),
          u64(hand.proof.deck_number),
          u64(hand.hand),
          unhex(hand.proof.commitment),
        ),
      ),
    );

  // ---- report -----------------------------------------------------------------------------------------------------

  class Broken extends Error {
    constructor(check, where) {
      super(`${check}: ${where}`);
    }
  }

  class Report {
    name = "";
    proved = [];
    notProved = [];
    failed = [];

    check(fine, check, where) {
      if (!fine) this.failed.push(`${check}: ${where}`);
      return fine;
    }

    conclude(before, sentence) {
      if (this.failed.length === before) this.proved.push(sentence);
    }
  }

  // ---- the shape of a file ----------------------------------------------------------------------------------------

  const isWhole = (least, most) => (value) => Number.isSafeInteger(value) && value >= least && value <= most;
  const matches = (pattern) => (value) => typeof value === "string" && pattern.test(value);
  const oneOf = (...words) => (value) => words.includes(value);
  const listOf = (fits, least = 0) => (value) => Array.isArray(value) && value.length >= least && value.every(fits);
  const isObject = (value) => value !== null && typeof value === "object" && !Array.isArray(value);
  const shape = (fields) => (value) => isObject(value) && Object.entries(fields).every(([name, fits]) => Object.hasOwn(value, name) && fits(value[name]));

  const count = isWhole(0, Number.MAX_SAFE_INTEGER);
  const seatOrNone = isWhole(0, 9);
  const bool = (value) => typeof value === "boolean";
  const text = (value) => typeof value === "string";
  const bytes = matches(/^([0-9a-f]{2})*$/);
  const hash = matches(/^[0-9a-f]{64}$/);
  const cards = listOf((value) => NUMBERS.has(value));
  const bySeat = (value) => isObject(value) && Object.entries(value).every(([seat, amount]) => /^[1-9]$/.test(seat) && count(amount));

  const isOptions = shape({
    ante_minor: count,
    small_blind_minor: count,
    big_blind_minor: count,
    first_round: text,
    second_round_all_checked: text,
    max_draw: isWhole(0, 5),
    single_four_card_draw: bool,
    reshuffle: text,
    odd_chips: text,
    rake_basis_points: isWhole(0, 10000),
    rake_cap_minor: count,
  });
  const isProof = shape({
    version: Number.isSafeInteger,
    deck_number: isWhole(1, Number.MAX_SAFE_INTEGER),
    commitment: hash,
    chain: hash,
    previous_chain: hash,
    shuffles: listOf(shape({ shuffle: count, root: hash, cards: isWhole(1, 52) })),
    places: listOf(shape({ shuffle: count, place: count, card: (value) => NUMBERS.has(value), salt: matches(/^[0-9a-f]{32}$/), path: listOf(hash) })),
    passed: listOf(shape({ shuffle: count, place: count })),
    seed: bytes,
    cut: bytes,
    player_seeds: listOf(shape({ seat: seatOrNone, seed: bytes })),
    void: bool,
  });
  const isHand = shape({
    name: text,
    table: text,
    hand: isWhole(1, Number.MAX_SAFE_INTEGER),
    epoch: count,
    options: isOptions,
    start_time: text,
    end_time: text,
    button: seatOrNone,
    seats: listOf(
      shape({
        seat: isWhole(1, 9),
        player: text,
        display_name: text,
        stack_before_minor: count,
        stack_after_minor: count,
        dealt: cards,
        final_cards: cards,
        shown: bool,
        mucked: bool,
        discarded: cards,
        drawn: cards,
        timed_out: bool,
      }),
      2,
    ),
    events: listOf(shape({ sequence: count, epoch: count, hand: count, type: text, body: isObject, commit_time: text })),
    pots: listOf(isObject),
    outcome: text,
    rake_minor: count,
    carry_in_minor: count,
    carry_out_minor: count,
    incomplete: bool,
    your_seat: seatOrNone,
    void_reason: text,
  });

  const startingSeat = shape({ seat: seatOrNone, player: text, display_name: text, stack_minor: count });
  const KINDS = new Map(
    Object.entries({
      hand_started: shape({ button: seatOrNone, seats: listOf(startingSeat), carry_minor: count, deck_number: count, commitment: hash, chain: hash, options: isObject }),
      deck_committed: shape({ root: hash, cut_by: seatOrNone, cut: bytes, player_seeds: listOf(shape({ seat: seatOrNone, seed: bytes })) }),
      forced_bet_posted: shape({ seat: seatOrNone, kind: oneOf("ante", "small_blind", "big_blind", "post", "dead_blind"), amount_minor: count, all_in: bool }),
      cards_dealt: shape({ seats: listOf(seatOrNone), your_cards: cards }),
      stage_started: shape({ stage: oneOf("first_round", "draw", "second_round"), pot_minor: count }),
      turn_started: shape({ turn: shape({ seat: seatOrNone, turn: count, to_call_minor: count }) }),
      action_taken: shape({
        seat: seatOrNone,
        kind: oneOf("fold", "check", "call", "bet", "raise"),
        to_minor: count,
        added_minor: count,
        all_in: bool,
        by_clock: bool,
        turn: count,
      }),
      bet_returned: shape({ seat: seatOrNone, amount_minor: count }),
      bets_collected: shape({ round: count, pot_minor: count }),
      cards_discarded: shape({ seat: seatOrNone, count, your_discards: cards, by_clock: bool, turn: count }),
      cards_drawn: shape({ seat: seatOrNone, count, your_cards: cards, late: bool }),
      deck_reshuffled: shape({ number: count, cards: count, root: hash, dealt_before: count }),
      card_burned: shape({}),
      hand_shown: shape({ seat: seatOrNone, cards, voluntary: bool }),
      hand_mucked: shape({ seat: seatOrNone }),
      pot_awarded: shape({ pot: shape({ index: count, amount_minor: count, winners: bySeat, rake_minor: count }) }),
      hand_ended: shape({ outcome: oneOf("showdown", "uncontested", "passed_out"), carry_minor: count, rake_minor: count, stacks_minor: bySeat }),
      hand_settled: shape({ next_commitment: bytes }),
      hand_voided: shape({ reason: text, stacks_minor: bySeat, carry_minor: count, next_commitment: bytes }),
    }),
  );
  // What may happen at a table at any moment of a hand, and moves neither its cards nor its chips.
  const BESIDE = new Set(
    (
      "hidden hand_waiting seat_taken seat_left seat_changed stack_changed table_paused table_resumed table_closed " +
      "table_rebuilt carry_refunded waiting_list_changed chat_sent"
    ).split(" "),
  );

  // A number that is not whole, or that doubles would round, is refused as it is written.
  function checkNumbers(line) {
    for (const [number] of line.replace(/"(?:[^"\\]|\\.)*"/g, '""').matchAll(/[-+]?[0-9][-+0-9.eE]*/g))
      if (!/^-?[0-9]{1,16}$/.test(number) || Math.abs(Number(number)) > Number.MAX_SAFE_INTEGER)
        throw new Broken("file", `${number.slice(0, 40)} is no whole number of at most 53 bits`);
  }

  function handOf(line) {
    const hand = JSON.parse(line);
    checkNumbers(line);
    if (!isHand(hand)) throw new Broken("file", "not an exported hand: it lacks what a hand has");
    if (hand.proof !== undefined && hand.proof !== null && !isProof(hand.proof)) throw new Broken("file", "not an exported hand: its proof is none");
    return hand;
  }

  function haveBodies(hand, report) {
    const before = report.failed.length;
    for (const { sequence, type, body } of hand.events) {
      const fits = KINDS.get(type);
      if (fits) report.check(fits(body), "events", `event ${sequence} (${type}): it lacks what its kind needs`);
      else report.check(BESIDE.has(type), "events", `event ${sequence} (${type}): this kind is not known here`);
    }
    return report.failed.length === before;
  }

  // ---- which place each card is due from, by the public events ----------------------------------------------------

  const at = (shuffle, place) => `${shuffle}/${place}`;
  const spoken = (key) => `shuffle ${key.split("/")[0]}, place ${key.split("/")[1]}`;

  class Walk {
    constructor(hand) {
      this.mixed = hand.options.reshuffle === "mixed";
      this.isVoid = hand.outcome === "void";
      this.dealOrder = hand.seats.map((seat) => seat.seat);
      this.dealOrder.sort((a, b) => (a <= hand.button) - (b <= hand.button) || a - b);
      this.mayPass = new Set(hand.proof.passed.map((each) => at(each.shuffle, each.place)));
      this.passed = [];
      this.due = new Map();
      this.stream = new Map();
      this.roots = new Map();
      this.steps = [];
      this.late = 0;
      Object.assign(this, { shuffle: 0, cursor: 0, size: 0, burns: 0, reshuffle: null });
      Object.assign(this, { held: new Map(), pile: new Map(), discarded: new Map(), owed: new Map() });
    }

    require(fine, what) {
      if (!fine) throw new Broken("events", `${this.where}: ${what}`);
    }

    take(event) {
      this.where = `event ${event.sequence} (${event.type})`;
      const body = event.body;
      if (event.type === "deck_committed") {
        this.require(this.size === 0, "the deck is committed twice");
        this.size = DECK;
        this.roots.set(0, { root: body.root, cards: DECK });
      } else if (event.type === "cards_dealt") this.deal(body.seats);
      else if (event.type === "action_taken" && body.kind === "fold") this.fold(body.seat);
      else if (event.type === "cards_discarded") this.discard(body.seat, body.count);
      else if (event.type === "deck_reshuffled") {
        this.require(this.reshuffle === null, "the deck is reshuffled twice for one draw");
        this.require(body.number === this.shuffle + 1, `reshuffle ${this.shuffle + 1} is due`);
        this.reshuffle = body;
      } else if (event.type === "card_burned") this.burns++;
      else if (event.type === "cards_drawn") this.draw(body.seat, body.count, body.late);
    }

    end() {
      this.where = "end";
      if (this.isVoid) return;
      this.require(this.passed.length === this.mayPass.size, "a place was passed over for nobody");
      this.require(![...this.owed.values()].some(Boolean), "a seat did not get all cards of its draw");
      this.require(this.reshuffle === null && this.burns === 0, "a reshuffle or a burned card led to no draw");
    }

    deal(seats) {
      this.require(this.size > 0, "cards are dealt before the deck is committed");
      this.require(this.held.size === 0, "cards are dealt twice");
      const fine = seats.length === this.dealOrder.length && seats.every((seat, n) => seat === this.dealOrder[n]);
      this.require(fine, "the deal does not go clockwise from the button's left");
      for (const seat of seats) this.held.set(seat, HAND);
      for (let round = 0; round < HAND; round++) for (const seat of seats) this.next(seat, false);
    }

    fold(seat) {
      this.require(this.held.has(seat), `seat ${seat} holds no hand to fold`);
      this.pile.set(seat, (this.pile.get(seat) || 0) + this.held.get(seat));
      this.held.delete(seat);
      this.steps.push({ kind: "fold", seat });
    }

    discard(seat, count) {
      this.require(this.held.has(seat), `seat ${seat} holds no live hand`);
      this.require(!this.discarded.has(seat), `seat ${seat} draws twice`);
      this.require(Number.isInteger(count) && count >= 0 && count <= HAND, `${count} discards`);
      const over = [...this.owed].every(([other, owed]) => owed <= (this.discarded.get(other) === 4 ? 1 : 0));
      this.require(over, "the draw before is not over");
      this.discarded.set(seat, count);
      this.owed.set(seat, count);
      this.held.set(seat, this.held.get(seat) - count);
      if (count) this.pile.set(seat, count);
      this.steps.push({ kind: "discard", seat });
    }

    draw(seat, count, late) {
      const owed = this.owed.get(seat);
      this.require(owed !== undefined && this.held.has(seat), `seat ${seat} has no draw`);
      this.require(count > 0 && (count === owed || (owed === 4 && count === 3)), `${count} cards for ${owed} discards`);
      // The fourth card of four is the only one that comes late, and it comes alone.
      const isFourth = this.discarded.get(seat) === 4 && owed === 1;
      this.require(late === isFourth, "the fourth card of four comes late, and no other");
      this.require(this.burns === 0 || late, "a card is burned for a late card only");
      if (late) this.late = seat;
      const receivers = [...Array(this.burns).fill(0), ...Array(count).fill(seat)];
      if (this.reshuffle !== null) {
        const before = this.reshuffle.dealt_before;
        this.require(before >= 0 && before <= receivers.length, `${before} cards before the reshuffle`);
        for (const receiver of receivers.splice(0, before)) this.next(receiver, late);
        this.turnOver(seat, late);
      }
      for (const receiver of receivers) this.next(receiver, late);
      this.owed.set(seat, owed - count);
      this.held.set(seat, this.held.get(seat) + count);
      this.burns = 0;
      this.reshuffle = null;
    }

    turnOver(seat, late) {
      const left = this.size - this.cursor;
      const own = late ? this.discarded.get(seat) : 0;
      this.require(this.mixed || left <= own, `the deck is reshuffled with ${left} cards left`);
      let pool = this.mixed ? left : 0;
      for (const [owner, count] of this.pile) if (owner !== seat) pool += count;
      this.require(this.reshuffle.cards === pool, `${this.reshuffle.cards} cards are reshuffled, ${pool} are due`);
      this.steps.push({ kind: "reshuffle", seat, shuffle: this.shuffle, cursor: this.cursor, size: this.size });
      this.pile = new Map([...this.pile].filter(([owner]) => owner === seat));
      this.shuffle++;
      this.cursor = 0;
      this.size = pool;
      this.roots.set(this.shuffle, { root: this.reshuffle.root, cards: pool });
    }

    next(seat, late) {
      while (late && this.mayPass.has(at(this.shuffle, this.cursor))) this.passed.push(at(this.shuffle, this.cursor++));
      this.require(this.cursor < this.size, "the stub has no card for it");
      const key = at(this.shuffle, this.cursor++);
      this.due.set(key, seat);
      if (!this.stream.has(seat)) this.stream.set(seat, []);
      this.stream.get(seat).push(key);
      this.steps.push({ kind: "card", seat, key });
    }
  }

  // ---- the course of a hand: its events one by one, each of which must be possible where it stands -----------------

  function need(fine, where, what, check = "events") {
    if (!fine) throw new Broken(check, `${where}: ${what}`);
  }

  const sum = (numbers) => numbers.reduce((total, number) => total + number, 0);

  // Pots by what the seats paid, the main pot first: [{ amount, eligible (clockwise), payers }].
  function potsDue(paid, live, extra) {
    const pots = [];
    const all = [...paid.values()];
    let below = 0;
    for (const level of [...new Set(live.map((seat) => paid.get(seat)))].sort((a, b) => a - b)) {
      const layers = all.filter((chips) => chips > below).map((chips) => Math.min(chips, level) - below);
      pots.push({ amount: sum(layers), eligible: live.filter((seat) => paid.get(seat) >= level), payers: layers.length });
      below = level;
    }
    const last = Math.max(...pots.map((pot, index) => (pot.eligible.length > 1 ? index : -1)));
    pots[last < 0 ? pots.length - 1 : last].amount += sum(all.filter((chips) => chips > below).map((chips) => chips - below));
    pots[0].amount += extra;
    return pots.filter((pot) => pot.amount);
  }

  // What five cards are worth, as numbers to be compared one after the other: poker's usual order. Aces are low in
  // 5-4-3-2-A only, and suits decide nothing.
  function worthOf(held) {
    const ranks = held.map((card) => NUMBERS.get(card) >> 2).sort((a, b) => b - a);
    const isFlush = held.every((card) => card[1] === held[0][1]);
    const howMany = (rank) => ranks.filter((each) => each === rank).length;
    const groups = [...new Set(ranks)].sort((a, b) => howMany(b) - howMany(a) || b - a);
    if (groups.length === HAND) {
      const isWheel = ranks.join() === "12,3,2,1,0";
      if (isWheel || ranks[0] - ranks[4] === 4) return [isFlush ? 8 : 4, isWheel ? 3 : ranks[0]];
      return [isFlush ? 5 : 0, ...groups];
    }
    return [{ 41: 7, 32: 6, 31: 3, 22: 2, 21: 1 }[`${howMany(groups[0])}${howMany(groups[1])}`], ...groups];
  }

  const compare = (left, right) => {
    const n = left.findIndex((each, place) => each !== right[place]);
    return n < 0 ? 0 : left[n] - right[n];
  };

  function rakesDue(pots, points, cap) {
    const taken = [];
    for (const pot of pots) {
      const rake = pot.payers > 1 ? Number((BigInt(pot.amount) * BigInt(points)) / 10000n) : 0;
      taken.push(cap ? Math.min(rake, cap - sum(taken)) : rake);
    }
    return taken;
  }

  class Payout {
    constructor(course, isPassedOut) {
      const { live, order, options } = course;
      this.live = [...live];
      // What each seat's five cards are worth, of those that this viewer knows.
      this.worth = new Map();
      for (const { seat, final_cards } of course.hand.seats) if (new Set(final_cards).size === HAND && final_cards.length === HAND) this.worth.set(seat, worthOf(final_cards));
      this.oddStay = options.odd_chips === "next_pot";
      this.pots = isPassedOut ? [] : potsDue(course.paid, live, course.extra);
      this.rakes = course.drawn.length ? rakesDue(this.pots, options.rake_basis_points, options.rake_cap_minor) : this.pots.map(() => 0);
      this.outcome = isPassedOut ? "passed_out" : live.length === 1 ? "uncontested" : "showdown";
      this.carried = isPassedOut ? course.pot : 0;
      this.left = this.pots.length;
      this.shown = new Set();
      this.won = new Map();
      this.toShow = [];
      if (this.outcome !== "showdown") return;
      const start = course.aggressor ? order.indexOf(course.aggressor) : 0;
      const turned = [...order.slice(start), ...order.slice(0, start)];
      for (const pot of [...this.pots].reverse())
        if (pot.eligible.length > 1) this.toShow.push(...turned.filter((seat) => pot.eligible.includes(seat) && !this.toShow.includes(seat)));
    }

    shows(seat, isShown, where) {
      need(this.toShow[0] === seat, where, `seat ${seat} is not the next to show or muck`);
      this.toShow.shift();
      if (isShown) this.shown.add(seat);
    }

    showsUnasked(seat, where) {
      const fine = this.live.includes(seat) && !this.shown.has(seat) && this.outcome !== "passed_out";
      need(fine, where, `seat ${seat} has nothing to show`);
      this.shown.add(seat);
    }

    award(pot, where) {
      need(!this.toShow.length, where, `seats ${this.toShow} neither showed nor mucked`);
      need(this.left > 0 && pot.index === this.left - 1, where, `pot ${this.left - 1} is the next to be paid`);
      this.left--;
      const [due, rake] = [this.pots[pot.index], this.rakes[pot.index]];
      need(pot.amount_minor === due.amount, where, `pot ${pot.index} holds ${due.amount}`, "chips");
      need(pot.rake_minor === rake, where, `the rake of pot ${pot.index} is ${rake}`, "chips");
      const winners = due.eligible.filter((seat) => Object.hasOwn(pot.winners, String(seat)));
      const fine = winners.length > 0 && winners.length === Object.keys(pot.winners).length;
      need(fine, where, `only seats ${due.eligible} can win pot ${pot.index}`, "chips");
      if (due.eligible.length > 1) {
        const known = due.eligible.filter((seat) => this.worth.has(seat));
        const best = known.filter((seat) => known.every((other) => compare(this.worth.get(seat), this.worth.get(other)) >= 0));
        need(same(winners, best), where, `seats ${best} have the best hand for pot ${pot.index}`, "winner");
      }
      const shared = due.amount - rake;
      const odd = shared % winners.length;
      winners.forEach((seat, place) => {
        // What one seat alone can win, it wins without showing.
        need(due.eligible.length === 1 || this.shown.has(seat), where, `seat ${seat} wins and did not show`);
        const share = (shared - odd) / winners.length + (!this.oddStay && place < odd ? 1 : 0);
        need(pot.winners[seat] === share, where, `the share of seat ${seat} is ${share}`, "chips");
        this.won.set(seat, (this.won.get(seat) || 0) + share);
      });
      if (this.oddStay) this.carried += odd;
    }

    ended(body, where, stacks) {
      need(!this.left, where, `pot ${this.left - 1} was paid to nobody`);
      need(body.outcome === this.outcome, where, `the hand ended ${this.outcome}`, "chips");
      need(body.rake_minor === sum(this.rakes), where, `the pots were raked ${sum(this.rakes)}`, "chips");
      need(body.carry_minor === this.carried, where, `${this.carried} are carried to the next hand`, "chips");
      for (const [seat, before] of stacks) {
        const [due, found] = [before + (this.won.get(seat) || 0), body.stacks_minor[seat]];
        need(found === due, where, `seat ${seat} ends with ${found}, its events say ${due}`, "chips");
      }
      need(Object.keys(body.stacks_minor).length === stacks.size, where, "it tells stacks of seats that are not in it", "chips");
    }
  }

  // What has to come before the deal. Antes and blinds follow from options and seats; a stack too short for one is all-in
  // with it. Who owes a post was decided in earlier hands: of posts, how much, in which order and beside what is checked.
  class ForcedBets {
    constructor(options, order, stacks) {
      this.options = options;
      this.order = order;
      this.stacks = stacks;
      this.due = order.map((seat) => ["ante", seat, options.ante_minor]);
      // Heads-up the button, which is the last clockwise, posts the small blind.
      this.blinds = order.length === 2 ? [order[1], order[0]] : order.slice(0, 2);
      if (options.big_blind_minor) this.due.push(["small_blind", this.blinds[0], options.small_blind_minor], ["big_blind", this.blinds[1], options.big_blind_minor]);
      this.posted = [];
      this.dead = [];
    }

    // What is due next as [kind, seat, amount], or undefined; nothing is due from an empty stack.
    next() {
      while (this.due.length) {
        const [kind, seat, size] = this.due[0];
        const amount = Math.min(size, this.stacks.get(seat));
        if (amount) return [kind, seat, amount];
        this.due.shift();
      }
      return undefined;
    }

    take({ kind, seat, amount_minor }, where) {
      const [dueKind, dueSeat, amount] = this.next() || this.post(kind, seat, where);
      need(kind === dueKind && seat === dueSeat, where, `the ${dueKind} of seat ${dueSeat} is the next forced bet`);
      need(amount_minor === amount, where, `the ${kind} of seat ${seat} is ${amount}, not ${amount_minor}`, "chips");
      this.due.shift();
    }

    complete(where) {
      const [kind, seat] = this.next() || [];
      need(kind === undefined, where, `the ${kind} of seat ${seat} did not come`);
    }

    // Posts come after all that is due, clockwise, and dead blinds after them.
    post(kind, seat, where) {
      const size = { post: this.options.big_blind_minor, dead_blind: this.options.small_blind_minor }[kind] || 0;
      need(size > 0, where, `no ${kind} is due from anybody`);
      need(!this.blinds.includes(seat), where, `seat ${seat} is in the blinds, and posts nothing besides`);
      const [before, isLate] = kind === "post" ? [this.posted, this.dead.length > 0] : [this.dead, false];
      const isNext = before.every((each) => this.order.indexOf(each) < this.order.indexOf(seat));
      need(isNext && !isLate, where, "it is out of order");
      before.push(seat);
      // Who missed blinds owes both of them, the big one first.
      need(this.posted.includes(seat), where, `seat ${seat} has no post beside its dead blind`);
      return [kind, seat, Math.min(size, this.stacks.get(seat))];
    }
  }

  class Course {
    constructor(hand) {
      this.hand = hand;
      this.options = hand.options;
      this.order = hand.seats.map((seat) => seat.seat);
      this.order.sort((a, b) => (a <= hand.button) - (b <= hand.button) || a - b);
      this.live = [...this.order];
      this.stacks = new Map(hand.seats.map((seat) => [seat.seat, seat.stack_before_minor]));
      this.put = new Map(this.order.map((seat) => [seat, 0]));
      this.paid = new Map(this.put);
      this.extra = this.pot = hand.carry_in_minor;
      this.stage = "before";
      this.acted = new Set();
      this.drawn = [];
      this.forcedBets = new ForcedBets(this.options, this.order, this.stacks);
      this.payout = null;
      this.isReturned = false;
      Object.assign(this, { round: 0, level: 0, aggressor: 0, next: 0, turn: 0, asked: 0, waiting: 0, dueNow: 0, late: 0, burned: 0, unasked: 0 });
    }

    need(fine, what, check) {
      need(fine, this.where, what, check);
    }

    step(before, after) {
      this.need(this.stage === before, "it cannot be here");
      this.stage = after;
    }

    take(event) {
      this.where = `event ${event.sequence} (${event.type})`;
      if (KINDS.has(event.type)) this[event.type](event.body);
    }

    end(report) {
      this.where = "end";
      if (this.unasked)
        report.notProved.push(`That nobody took out the turns of ${this.unasked} actions: what a player chooses before the turn comes has none.`);
      if (this.hand.outcome === "void") return this.need(this.stage === "voided", "a void hand must hold hand_voided", "void");
      this.need(this.stage !== "before", "the events have no beginning of the hand (hand_started)");
      this.need(this.stage === "ended" || this.stage === "settled", "the events have no end of the hand (hand_ended)");
      if (this.stage === "ended")
        report.notProved.push("THAT THE HAND WAS SETTLED: the file has no hand_settled. Either it was taken out, or the house lost the table's state just after it had paid.");
    }

    hand_started() {
      this.step("before", "opened");
      this.need([...this.stacks.values()].every(Boolean), "a seat without chips is dealt in", "chips");
    }

    deck_committed(body) {
      this.step("opened", "committed");
      this.need(body.cut_by === 0 || body.cut_by === this.asked, `seat ${body.cut_by} was not asked for the cut`);
      this.need(body.cut_by !== 0 || body.cut === "", "nobody cut, and there is a cut");
      this.asked = 0;
    }

    forced_bet_posted({ seat, kind, amount_minor, all_in }) {
      this.need(this.stage === "committed", "forced bets come after the deck's order and before the deal");
      this.need(this.order.includes(seat), `seat ${seat} is not in the hand`);
      this.forcedBets.take({ kind, seat, amount_minor }, this.where);
      this.pay(seat, amount_minor, all_in);
      if (kind === "dead_blind") {
        this.extra += amount_minor;
        return;
      }
      this.paid.set(seat, this.paid.get(seat) + amount_minor);
      if (kind !== "ante") this.put.set(seat, this.put.get(seat) + amount_minor);
    }

    cards_dealt() {
      this.step("committed", "dealt");
      this.forcedBets.complete(this.where);
    }

    stage_started({ stage, pot_minor }) {
      this.need(pot_minor === this.pot, `the pot is ${this.pot}, not ${pot_minor}`, "chips");
      if (stage === "draw") {
        this.need(this.stage === "round 1 over" && this.payout === null, "no draw is due");
        this.stage = "draw";
        return;
      }
      if (stage === "first_round") {
        this.step("dealt", "round");
        const isBlinds = this.options.first_round === "blinds";
        this.level = isBlinds ? this.options.big_blind_minor : 0;
        this.next = isBlinds ? (this.order.length > 2 ? 2 : 1) : 0;
      } else {
        const isDone = this.stage === "draw" && same(this.drawn, this.live) && !this.waiting && !this.late;
        this.need(isDone, "the draw is not over");
        Object.assign(this, { stage: "round", level: 0, next: 0 });
      }
      this.round = stage === "first_round" ? 1 : 2;
      this.acted.clear();
    }

    // The next seat that owes chips or has not acted, 0 if none; a lone one with chips is asked only if it owes.
    toAct() {
      const start = this.next % this.order.length;
      const clockwise = [...this.order.slice(start), ...this.order.slice(0, start)];
      const able = clockwise.filter((seat) => this.stacks.get(seat) && this.live.includes(seat));
      const asked = able.filter((seat) => this.put.get(seat) < this.level || !this.acted.has(seat));
      if (this.live.length < 2 || !asked.length) return 0;
      const most = Math.max(...this.live.map((seat) => this.put.get(seat)));
      return able.length > 1 || most > this.put.get(asked[0]) ? asked[0] : 0;
    }

    isDue(seat) {
      let due = 0;
      if (this.stage === "opened") due = this.order[0];
      if (this.stage === "round") due = this.toAct();
      if (this.stage === "draw" && !this.waiting) due = this.live.find((each) => !this.drawn.includes(each)) || 0;
      this.need(seat > 0 && seat === due, `it is not the turn of seat ${seat}`);
    }

    // Turns are numbered through; the table's count of them goes on from hand to hand.
    isNext(turn) {
      return this.turn ? turn === this.turn + 1 : turn > 0;
    }

    owed(seat) {
      return Math.min(Math.max(this.level - this.put.get(seat), 0), this.stacks.get(seat));
    }

    turn_started({ turn: { seat, turn, to_call_minor } }) {
      // A clock that is extended tells the same turn again.
      const isAgain = this.asked !== 0 && turn === this.turn && seat === this.asked;
      this.need(isAgain || (this.asked === 0 && this.isNext(turn)), "this is not the next turn");
      this.isDue(seat);
      const owed = this.stage === "round" ? this.owed(seat) : 0;
      this.need(to_call_minor === owed, `seat ${seat} owes ${owed}, not ${to_call_minor}`, "chips");
      this.asked = seat;
      this.turn = turn;
    }

    // A seat answers its turn. Where none was told, the seat chose before (the turn has a number), or nobody plays for it
    // any more (it has none, and what is done is idle: a fold, a check, no discard).
    answers({ seat, turn }, isIdle, mayBeUnasked) {
      this.isDue(seat);
      if (this.asked) this.need(turn === this.turn, `turn ${this.turn} is open, not ${turn}`);
      else if (turn === 0) this.need(isIdle, `nobody asked seat ${seat}`);
      else {
        this.need(mayBeUnasked && this.isNext(turn), `turn ${turn} never began`);
        this.turn = turn;
        this.unasked++;
      }
      this.asked = 0;
    }

    action_taken(body) {
      const { seat, kind, added_minor: added, to_minor: to } = body;
      this.need(this.stage === "round", "no round of betting is on");
      const isIdle = kind === "fold" || kind === "check";
      this.answers(body, isIdle, (isIdle || kind === "call") && !body.by_clock);
      this.need(!body.by_clock || kind === "fold" || kind === "check", "a clock can only check or fold");
      const owed = this.owed(seat);
      const fits = {
        fold: added === 0,
        check: added === 0 && owed === 0,
        call: added === owed && owed > 0,
        bet: this.level === 0 && added > 0,
        raise: this.level > 0 && to > this.level,
      };
      this.need(fits[kind], `${kind} does not go with ${added}, where the level is ${this.level}`, "chips");
      if (added || body.all_in) this.pay(seat, added, body.all_in);
      this.put.set(seat, this.put.get(seat) + added);
      this.paid.set(seat, this.paid.get(seat) + added);
      this.need(to === this.put.get(seat), `the chips of seat ${seat} are at ${this.put.get(seat)}, not ${to}`, "chips");
      this.next = this.order.indexOf(seat) + 1;
      this.acted.add(seat);
      if (kind === "fold") this.live = this.live.filter((each) => each !== seat);
      if (kind !== "bet" && kind !== "raise") return;
      this.level = to;
      this.acted = new Set([seat]);
      this.aggressor = this.round === 2 ? seat : 0;
    }

    uncalled() {
      const [first, second] = [...this.paid.values()].sort((a, b) => b - a);
      const owner = this.order.find((seat) => this.paid.get(seat) === first);
      return first > second && this.live.includes(owner) ? [owner, first - second] : [0, 0];
    }

    bet_returned({ seat, amount_minor }) {
      this.need(this.stage === "round" && this.toAct() === 0, "the round is not over");
      const [owner, amount] = this.isReturned ? [0, 0] : this.uncalled();
      this.need(amount > 0 && seat === owner && amount_minor === amount, `${amount} go back to ${owner}`, "chips");
      this.isReturned = true;
      this.stacks.set(seat, this.stacks.get(seat) + amount);
      this.paid.set(seat, this.paid.get(seat) - amount);
      this.pot -= amount;
    }

    bets_collected({ round, pot_minor }) {
      this.need(this.stage === "round" && this.toAct() === 0, "the round is not over");
      this.need(this.uncalled()[1] === 0, "a bet that nobody called is not returned", "chips");
      this.need(round === this.round, `this is round ${this.round}`);
      this.need(pot_minor === this.pot, `the pot is ${this.pot}, not ${pot_minor}`, "chips");
      const byRule = this.round === 1 ? this.options.first_round === "check_or_open" : this.options.second_round_all_checked === "pass_out";
      const isPassedOut = this.live.length > 1 && byRule && this.level === 0 && this.live.every((seat) => this.stacks.get(seat));
      this.put = new Map(this.order.map((seat) => [seat, 0]));
      this.isReturned = false;
      this.stage = `round ${this.round} over`;
      if (isPassedOut || this.live.length === 1 || this.round === 2) this.payout = new Payout(this, isPassedOut);
    }

    cards_discarded(body) {
      this.need(this.stage === "draw", "no draw is on");
      this.answers(body, body.count === 0, false);
      this.need(!body.by_clock || body.count === 0, "a clock can only stand pat");
      const isSingle = this.options.single_four_card_draw;
      const most = isSingle && this.late ? Math.min(this.options.max_draw, 3) : this.options.max_draw;
      this.need(body.count <= most, `${body.count} discards where ${most} are the most`);
      this.drawn.push(body.seat);
      this.waiting = body.count ? body.seat : 0;
      this.dueNow = body.count;
      if (body.count === 4 && isSingle) Object.assign(this, { late: body.seat, dueNow: 3 });
    }

    // Cards are due to who has just discarded, or a late one when all have drawn.
    areCardsDue() {
      return this.stage === "draw" && (this.waiting !== 0 || (this.late !== 0 && same(this.drawn, this.live)));
    }

    deck_reshuffled() {
      this.need(this.areCardsDue() && this.burned === 0, "no cards are due to anybody");
    }

    card_burned() {
      this.need(this.late !== 0 && this.areCardsDue(), "no late card is due to anybody");
      this.burned++;
    }

    cards_drawn({ seat, count: drawn, late }) {
      this.need(this.areCardsDue(), "no cards are due to anybody");
      if (this.waiting) {
        this.need(seat === this.waiting && drawn === this.dueNow && !late, `${this.dueNow} cards are due to seat ${this.waiting}`);
        this.waiting = 0;
        return;
      }
      this.need(seat === this.late && drawn === 1 && late, `a late card is due to seat ${this.late}`);
      const burns = this.late === this.drawn.at(-1) ? 1 : 0;
      this.need(this.burned === burns, `${burns} cards are to be burned before the late one`);
      this.late = this.burned = 0;
    }

    paying() {
      const isOver = this.payout !== null && /^round . over$/.test(this.stage);
      this.need(isOver, "the hand is not played to its end");
      return this.payout;
    }

    hand_shown({ seat, voluntary }) {
      if (!voluntary) return this.paying().shows(seat, true, this.where);
      this.need(["ended", "settled", "voided"].includes(this.stage), "the hand is not over");
      this.need(this.payout !== null, "the hand was never decided");
      this.payout.showsUnasked(seat, this.where);
    }

    hand_mucked({ seat }) {
      this.paying().shows(seat, false, this.where);
    }

    pot_awarded({ pot }) {
      this.paying().award(pot, this.where);
    }

    hand_ended(body) {
      this.paying().ended(body, this.where, this.stacks);
      this.stage = "ended";
    }

    hand_settled() {
      this.step("ended", "settled");
    }

    hand_voided() {
      this.need(this.hand.outcome === "void", "the hand was undone, and the file says otherwise", "void");
      this.need(!["before", "settled", "voided"].includes(this.stage), "it cannot be undone here", "void");
      this.stage = "voided";
    }

    pay(seat, amount, allIn) {
      this.need(amount > 0 && amount <= this.stacks.get(seat), `seat ${seat} has ${this.stacks.get(seat)}, not ${amount}`, "chips");
      this.stacks.set(seat, this.stacks.get(seat) - amount);
      this.pot += amount;
      this.need(allIn === (this.stacks.get(seat) === 0), `seat ${seat} has ${this.stacks.get(seat)} left`, "chips");
    }
  }

  // ---- the checks -------------------------------------------------------------------------------------------------

  function checkHand(hand, report) {
    if (!hand.proof) throw new Broken("proof", `${hand.table}/hands/${hand.hand} was exported without one`);
    if (!report.check(hand.proof.version === 1, "version", `${hand.proof.version} is not known here`)) return;
    report.check(!hand.incomplete, "events", "the log of this hand was lost (incomplete): nothing of it is proved");
    checkChain(hand, report);
    checkVoid(hand, report);
    if (!haveBodies(hand, report)) return;
    checkOrder(hand, report);
    checkCourse(hand, report);
    checkHead(hand, report);
    const walk = new Walk(hand);
    for (const event of hand.events) walk.take(event);
    walk.end();
    checkRoots(hand, walk, report);
    checkEntropy(hand, report);
    const opened = checkPlaces(hand, walk, report);
    checkCards(hand, walk, opened, report);
    if (hand.proof.seed) checkSeed(hand, walk, opened, report);
    else report.notProved.push("That the order came from the committed seed: only an auditor can open it.");
  }

  function checkChain(hand, report) {
    const before = report.failed.length;
    const proof = hand.proof;
    report.check(chainOf(hand) === proof.chain, "chain", "it does not follow from table, numbers and commitment");
    const started = hand.events.find((event) => event.type === "hand_started");
    if (!report.check(started !== undefined, "chain", "the events have no beginning of the hand")) return;
    for (const name of ["commitment", "chain", "deck_number"])
      report.check(started.body[name] === proof[name], "chain", `event ${started.sequence}: ${name} is not the proof's`);
    report.conclude(before, `Deck ${proof.deck_number} is linked to the table's chain with the commitment of its seed.`);
  }

  function checkVoid(hand, report) {
    const isVoid = hand.outcome === "void";
    report.check(hand.proof.void === isVoid, "void", "proof and hand do not agree on it");
    if (!isVoid) return;
    report.notProved.push("Why the hand was void: its number stays in the chain, so that it cannot be hidden.");
    if (hand.events.some((event) => event.type === "hand_ended"))
      report.notProved.push("WHY THE HAND WAS VOID AFTER IT WAS DECIDED: only a fault of the house can do that. Show it to an auditor.");
  }

  // Sequences ascend; an epoch may only rise where a table that lost its state undoes the hand.
  function checkOrder(hand, report) {
    let missing = 0;
    hand.events.forEach((event, n) => {
      report.check(event.hand === hand.hand, "order", `event ${event.sequence} is of hand ${event.hand}`);
      if (event.type === "hand_started") report.check(event.epoch === hand.epoch, "order", `event ${event.sequence} is of epoch ${event.epoch}`);
      const last = hand.events[n - 1];
      if (!last) return;
      if (event.epoch > last.epoch && hand.outcome === "void") {
        report.notProved.push(`That nothing is missing between epochs ${last.epoch} and ${event.epoch}.`);
        return;
      }
      report.check(event.sequence > last.sequence, "order", `event ${event.sequence} follows event ${last.sequence}`);
      missing += Math.max(event.sequence - last.sequence - 1, 0);
      report.check(event.epoch === last.epoch, "order", `event ${event.sequence} is of epoch ${event.epoch}`);
    });
    if (missing)
      report.notProved.push(
        `WHAT ${missing} MISSING EVENTS SAID: numbers between those of the hand are not in the file. Talk and the ` +
          "waiting list have such numbers; no action, card or chip of the hand can be told without being missed.",
      );
  }

  function checkCourse(hand, report) {
    const before = report.failed.length;
    try {
      const course = new Course(hand);
      for (const event of hand.events) course.take(event);
      course.end(report);
    } catch (error) {
      if (!(error instanceof Broken)) throw error;
      report.failed.push(error.message);
      return;
    }
    if (hand.outcome === "void") return;
    report.conclude(before, "The events tell one whole hand, each of them where it belongs.");
    report.conclude(before, "The chips of all events add up, for every seat and for the pot.");
  }

  // One text for equal values, whatever the order of their keys.
  function canonical(value) {
    if (Array.isArray(value)) return `[${value.map(canonical).join()}]`;
    if (value === null || typeof value !== "object") return JSON.stringify(value);
    const keys = Object.keys(value).sort();
    return `{${keys.map((key) => `${JSON.stringify(key)}:${canonical(value[key])}`).join()}}`;
  }

  // What stands twice in a file: the head of the hand against the events that it sums up.
  function checkHead(hand, report) {
    const before = report.failed.length;
    report.check(hand.name === `${hand.table}/hands/${hand.hand}`, "head", "the hand has another name than its number");
    report.check(hand.outcome === "void" || hand.void_reason === "", "head", "a hand that was played has a reason for being void");
    for (const event of hand.events) {
      const where = `event ${event.sequence} (${event.type})`;
      if (event.type === "hand_started") checkBeginning(hand, event, where, report);
      if (event.type === "hand_ended" && hand.outcome !== "void") checkEnd(hand, event, where, report);
      if (event.type === "hand_voided") checkUndone(hand, event, where, report);
    }
    const awarded = hand.outcome === "void" ? [] : hand.events.filter((event) => event.type === "pot_awarded").map((event) => event.body.pot);
    awarded.sort((left, right) => left.index - right.index);
    report.check(canonical(hand.pots) === canonical(awarded), "chips", "the hand's pots are not those that its events award");
    const did = (types, seat, also = () => true) => hand.events.some(({ type, body }) => types.includes(type) && body.seat === seat && also(body));
    for (const { seat, shown, mucked, timed_out } of hand.seats) {
      const byClock = did(["action_taken", "cards_discarded"], seat, (body) => body.by_clock);
      const fine = shown === did(["hand_shown"], seat) && mucked === did(["hand_mucked"], seat) && timed_out === byClock;
      report.check(fine, "head", `seat ${seat} showed, mucked or ran out of time otherwise than its events say`);
    }
    report.conclude(before, "The head of the hand says what its events say.");
  }

  function checkBeginning(hand, event, where, report) {
    const { body } = event;
    report.check(body.button === hand.button, "order", `${where}: the button is not the hand's`);
    report.check(hand.start_time === event.commit_time, "head", `${where}: the hand began at another time`);
    report.check(hand.carry_in_minor === body.carry_minor, "head", `${where}: ${body.carry_minor} were carried in`);
    const seats = hand.seats.map((seat) => [seat.seat, seat.player, seat.display_name, seat.stack_before_minor]);
    const begun = body.seats.map((seat) => [seat.seat, seat.player, seat.display_name, seat.stack_minor]);
    report.check(canonical(seats) === canonical(begun), "head", `${where}: seats, players or stacks are not the hand's`);
    const numbers = hand.seats.map((seat) => seat.seat);
    report.check(numbers.every((seat, n) => n === 0 || numbers[n - 1] < seat), "head", "the seats do not ascend");
    report.check(numbers.includes(hand.button), "head", "the button is at a seat that was not dealt in");
    report.check(hand.your_seat === 0 || numbers.includes(hand.your_seat), "head", `seat ${hand.your_seat} was not dealt in`);
    report.check(canonical(hand.options) === canonical(body.options), "head", `${where}: the options are not the hand's`);
  }

  function checkEnd(hand, event, where, report) {
    const { body } = event;
    report.check(hand.end_time === event.commit_time, "head", `${where}: the hand ended at another time`);
    report.check(hand.outcome === body.outcome, "head", `${where}: the outcome is not the hand's`);
    report.check(hand.rake_minor === body.rake_minor, "head", `${where}: the rake is ${body.rake_minor}`);
    report.check(hand.carry_out_minor === body.carry_minor, "head", `${where}: ${body.carry_minor} are carried out`);
    for (const { seat, stack_after_minor } of hand.seats)
      report.check(body.stacks_minor[seat] === stack_after_minor, "head", `${where}: seat ${seat} does not end with ${stack_after_minor}`);
  }

  function checkUndone(hand, event, where, report) {
    const { body } = event;
    report.check(hand.end_time === event.commit_time, "head", `${where}: the hand ended at another time`);
    report.check(hand.void_reason === body.reason, "head", `${where}: the reason is not the hand's`);
    report.check(hand.rake_minor === 0, "head", "a void hand has a rake");
    report.check(hand.carry_out_minor === body.carry_minor, "head", `${where}: ${body.carry_minor} are carried out`);
    const isCarried = body.carry_minor === hand.carry_in_minor;
    report.check(isCarried, "chips", `${where}: ${hand.carry_in_minor} were carried in, ${body.carry_minor} are given back`);
    for (const { seat, stack_before_minor, stack_after_minor } of hand.seats) {
      // Whoever has left since is not among them.
      const after = Object.hasOwn(body.stacks_minor, seat) ? body.stacks_minor[seat] : stack_before_minor;
      report.check(after === stack_after_minor, "head", `${where}: seat ${seat} ends with ${after}`);
      // A table that lost its state tells the stacks of those who sit there then.
      const fine = after === stack_before_minor || event.epoch > hand.epoch;
      report.check(fine, "chips", `${where}: seat ${seat} gets back ${after} of ${stack_before_minor}`);
    }
  }

  function checkRoots(hand, walk, report) {
    const before = report.failed.length;
    const told = new Map(hand.proof.shuffles.map((each) => [each.shuffle, each]));
    for (const number of new Set([...told.keys(), ...walk.roots.keys()])) {
      const [left, right] = [told.get(number), walk.roots.get(number)];
      if (!right && walk.isVoid) {
        report.notProved.push(`Shuffle ${number} was made, and the hand was void before it was announced.`);
        continue;
      }
      const fine = left && right && left.root === right.root && left.cards === right.cards;
      report.check(Boolean(fine), "root", `shuffle ${number} of the proof is not the one that was announced`);
    }
    if (walk.roots.size) report.conclude(before, `${walk.roots.size} committed shuffles are those announced before their first card.`);
  }

  // What players gave to the shuffle is what was told with the root.
  function checkEntropy(hand, report) {
    const before = report.failed.length;
    const committed = hand.events.find((event) => event.type === "deck_committed");
    if (!committed && hand.outcome === "void") return;
    const told = committed ? committed.body : {};
    const where = committed ? `event ${committed.sequence} (deck_committed)` : "the events";
    report.check((told.cut || "") === (hand.proof.cut || ""), "entropy", `${where}: the cut is not the proof's`);
    const seeds = hand.proof.player_seeds;
    const others = told.player_seeds || [];
    const fine = others.length === seeds.length && seeds.every((each, n) => each.seat === others[n].seat && each.seed === others[n].seed);
    report.check(fine, "entropy", `${where}: the players' seeds are not the proof's`);
    const ascending = seeds.every((each, n) => n === 0 || seeds[n - 1].seat < each.seat);
    report.check(ascending, "entropy", "the players' seeds do not ascend by seat");
    if (!committed) return;
    const given = seeds.length ? `the seeds of seats ${seeds.map((each) => each.seat).join(", ")}` : "no players' seeds";
    report.conclude(before, `${hand.proof.cut ? "A cut" : "No cut"} and ${given} were told with the root, before the first card.`);
  }

  function checkPlaces(hand, walk, report) {
    const before = report.failed.length;
    const shuffles = new Map(hand.proof.shuffles.map((each) => [each.shuffle, each]));
    const opened = new Map();
    const cards = new Set();
    for (const each of hand.proof.places) {
      const key = at(each.shuffle, each.place);
      const shuffle = shuffles.get(each.shuffle);
      if (!report.check(shuffle && each.place < shuffle.cards, "place", `${spoken(key)} does not exist`)) continue;
      report.check(!opened.has(key), "place", `${spoken(key)} is opened twice`);
      report.check(rootFrom(each, shuffle.cards) === shuffle.root, "place", `${spoken(key)}: card, salt and path do not lead to the root`);
      const known = hand.proof.seed || walk.due.has(key) || walk.passed.includes(key);
      report.check(known, "place", `${spoken(key)} was dealt to nobody, and is opened`);
      report.check(!cards.has(`${each.shuffle} ${each.card}`), "place", `shuffle ${each.shuffle} has a card twice`);
      cards.add(`${each.shuffle} ${each.card}`);
      opened.set(key, each.card);
    }
    if (opened.size) report.conclude(before, `${opened.size} opened places are in the committed orders.`);
    return opened;
  }

  const same = (left, right) => left.length === right.length && left.every((each, n) => each === right[n]);
  const sorted = (cards) => [...cards].sort();

  function checkCards(hand, walk, opened, report) {
    const before = report.failed.length;
    const explained = new Set();
    let seen = 0;
    for (const seat of hand.seats) {
      const stream = walk.stream.get(seat.seat) || [];
      const ordered = [...seat.dealt, ...seat.drawn];
      checkOwnEvents(hand, seat, report);
      report.check(!seat.drawn.some((card) => seat.discarded.includes(card)), "card", `seat ${seat.seat} got a discard back`);
      if (seat.dealt.length) report.check(ordered.length === stream.length, "card", `seat ${seat.seat}: ${ordered.length} cards, ${stream.length} due`);
      ordered.slice(0, stream.length).forEach((card, n) => {
        const key = stream[n];
        explained.add(key);
        const found = opened.get(key);
        if (found === undefined) report.failed.push(`card: seat ${seat.seat}, ${spoken(key)} was seen and is not opened`);
        else report.check(found === card, "card", `seat ${seat.seat}, ${spoken(key)} holds ${found}, the file says ${card}`);
      });
      for (const card of seat.final_cards) {
        const key = [...stream].reverse().find((each) => opened.get(each) === card);
        if (report.check(key !== undefined, "card", `seat ${seat.seat}: no opened place is due to it for card ${card}`)) explained.add(key);
      }
      seen += new Set([...ordered, ...seat.final_cards]).size;
    }
    checkPassed(hand, walk, opened, explained, report);
    if (!hand.proof.seed) {
      for (const key of opened.keys())
        report.check(explained.has(key), "place", `${spoken(key)} is opened for a card that the file does not show`);
      const hidden = [...walk.due.keys()].filter((key) => !opened.has(key)).length;
      if (hidden) report.notProved.push(`${hidden} cards that were dealt and that this viewer did not see.`);
    }
    report.conclude(before, `All ${seen} cards that this viewer saw are the ones that were due.`);
  }

  function checkOwnEvents(hand, seat, report) {
    const drawn = [];
    for (const { type, body, sequence } of hand.events) {
      if (type === "cards_dealt" && seat.seat === hand.your_seat)
        report.check(same(body.your_cards || [], seat.dealt), "card", `event ${sequence} deals other cards than seat ${seat.seat} has`);
      if (body.seat !== seat.seat) continue;
      if (type === "hand_shown")
        report.check(same(body.cards, seat.final_cards), "card", `event ${sequence} shows other cards than seat ${seat.seat} has`);
      if (type === "cards_discarded" && (body.your_discards || []).length)
        report.check(same(body.your_discards, seat.discarded) && body.count === seat.discarded.length, "card", `event ${sequence} has other discards than seat ${seat.seat}`);
      if (type === "cards_drawn") drawn.push(...(body.your_cards || []));
    }
    if (drawn.length) report.check(same(drawn, seat.drawn), "card", `the events draw other cards than seat ${seat.seat} has`);
    if (!seat.dealt.length || !seat.final_cards.length) return;
    const kept = seat.dealt.filter((card) => !seat.discarded.includes(card));
    report.check(same(sorted([...kept, ...seat.drawn]), sorted(seat.final_cards)), "card", `seat ${seat.seat} ends with other cards than it drew`);
  }

  function checkPassed(hand, walk, opened, explained, report) {
    const drawer = hand.seats.find((seat) => seat.seat === walk.late);
    const own = drawer ? drawer.discarded : [];
    let unknown = 0;
    for (const key of walk.passed) {
      if (opened.has(key)) {
        report.check(own.includes(opened.get(key)), "passed", `${spoken(key)} was passed over and is no discard of seat ${walk.late}`);
        explained.add(key);
      } else {
        unknown++;
        report.check(own.length === 0, "passed", `${spoken(key)} is passed over and not opened to its drawer`);
      }
    }
    if (unknown) report.notProved.push(`That ${unknown} places passed over held discards of seat ${walk.late}: it alone can see it.`);
  }

  // For auditors: the orders follow from the seed, and each new stub holds the cards that were due to it.
  function checkSeed(hand, walk, opened, report) {
    const before = report.failed.length;
    const seed = unhex(hand.proof.seed);
    report.check(hex(sha256(seed)) === hand.proof.commitment, "seed", "it is not the one committed to");
    const context = contextOf(hand);
    const orders = hand.proof.shuffles.map((each) => Array.from({ length: each.cards }, (_, n) => opened.get(at(each.shuffle, n)) || ""));
    orders.forEach((order, number) => {
      report.check(!order.includes(""), "seed", "not every place is opened");
      const pool = order.filter(Boolean).map((card) => NUMBERS.get(card)).sort((a, b) => a - b);
      const made = shuffled(seed, context, number, pool).map((card) => TEXTS[card]);
      report.check(same(made, order), "seed", `shuffle ${number} is not the order that the seed makes`);
    });
    report.check(orders.length === 0 || same(sorted(orders[0]), sorted(TEXTS)), "seed", "the deck does not hold the 52 cards");
    followCards(hand, walk, opened, orders, report);
    report.conclude(before, "Every shuffle and every card of the hand follow from the committed seed.");
  }

  function followCards(hand, walk, opened, orders, report) {
    const held = new Map(hand.seats.map((seat) => [seat.seat, []]));
    const piles = new Map();
    const discards = new Map(hand.seats.map((seat) => [seat.seat, seat.discarded]));
    let reshuffles = 0;
    for (const step of walk.steps) {
      if (step.kind === "card" && step.seat) held.get(step.seat).push(opened.get(step.key));
      if (step.kind === "fold") piles.set(step.seat, [...(piles.get(step.seat) || []), ...held.get(step.seat)]);
      if (step.kind === "discard") {
        const given = discards.get(step.seat);
        report.check(given.every((card) => held.get(step.seat).includes(card)), "seed", `seat ${step.seat} discards a card that it does not hold`);
        held.set(step.seat, held.get(step.seat).filter((card) => !given.includes(card)));
        if (given.length) piles.set(step.seat, given);
      }
      if (step.kind !== "reshuffle") continue;
      reshuffles++;
      const pool = walk.mixed ? orders[step.shuffle].slice(step.cursor) : [];
      for (const [owner, cards] of piles) if (owner !== step.seat) pool.push(...cards);
      report.check(same(sorted(pool), sorted(orders[reshuffles] || [])), "seed", `reshuffle ${reshuffles} does not hold the cards that were due to it`);
      for (const owner of [...piles.keys()]) if (owner !== step.seat) piles.delete(owner);
    }
  }

  // What is kept of a hand until the end of the file, for the links.
  function deckOf(hand) {
    const proof = hand.proof;
    const ended = hand.events.find((event) => event.type === "hand_settled" || event.type === "hand_voided");
    const [first, last] = [hand.events[0], hand.events.at(-1)];
    const digest = hex(
      sha256(
        utf8(
          canonical([
            proof.shuffles,
            hand.seats.map((seat) => [seat.seat, seat.player, seat.stack_before_minor, seat.stack_after_minor]),
            hand.events.map((event) => [event.sequence, event.epoch, event.type]),
            hand.pots,
            [proof.cut, proof.player_seeds, hand.outcome, hand.button],
          ]),
        ),
      ),
    );
    return {
      number: proof.deck_number,
      chain: proof.chain,
      previousChain: proof.previous_chain,
      commitment: proof.commitment,
      nextCommitment: (ended && ended.body.next_commitment) || "",
      hand: hand.hand,
      began: [first.epoch, first.sequence],
      ended: [last.epoch, last.sequence],
      carryIn: hand.carry_in_minor,
      carryOut: hand.carry_out_minor,
      digest,
    };
  }

  class Links {
    tables = new Map();
    doubled = new Set();

    // The same hand again, as somebody else saw it, must tell the same.
    add(hand, report) {
      const deck = deckOf(hand);
      const where = `deck ${deck.number} of ${hand.table}`;
      if (deck.number === 1)
        report.check(/^0{64}$/.test(deck.previousChain), "chain", "a table's first deck follows no other: the chain before it is 32 zero bytes");
      if (!this.tables.has(hand.table)) this.tables.set(hand.table, new Map());
      const decks = this.tables.get(hand.table);
      if (!decks.has(deck.number)) decks.set(deck.number, deck);
      const known = decks.get(deck.number);
      const isSame = known.chain === deck.chain && known.commitment === deck.commitment && known.hand === deck.hand;
      if (!report.check(isSame, "link", `${where} was dealt twice: two hands of this file have it`)) this.doubled.add(hand.table);
      else if (!report.check(known.digest === deck.digest, "link", `${where} is told twice, and not alike`)) this.doubled.add(hand.table);
    }

    end(report) {
      for (const [table, decks] of this.tables) {
        const all = [...decks.values()].sort((a, b) => a.number - b.number);
        const runs = [[all[0]]];
        for (const deck of all.slice(1)) {
          const earlier = runs.at(-1).at(-1);
          if (deck.number === earlier.number + 1) runs.at(-1).push(deck);
          else {
            this.order(table, earlier, deck, report);
            report.notProved.push(`decks ${earlier.number + 1} to ${deck.number - 1} of ${table} are not in the file.`);
            runs.push([deck]);
          }
        }
        for (const run of runs) this.run(table, run, runs.length === 1, report);
      }
    }

    order(table, earlier, later, report) {
      const where = `deck ${later.number} of ${table}`;
      report.check(earlier.hand < later.hand, "link", `${where} is of an earlier hand than deck ${earlier.number}`);
      // Sequences begin anew with each epoch.
      const isLater = earlier.ended[0] < later.began[0] || (earlier.ended[0] === later.began[0] && earlier.ended[1] < later.began[1]);
      report.check(isLater, "link", `${where} begins before deck ${earlier.number} ended, by its events' numbers`);
    }

    run(table, run, isOnly, report) {
      const before = report.failed.length;
      for (let n = 1; n < run.length; n++) {
        const [earlier, later] = [run[n - 1], run[n]];
        const where = `deck ${later.number} of ${table}`;
        this.order(table, earlier, later, report);
        report.check(later.previousChain === earlier.chain, "link", `${where} does not follow the one before`);
        if (earlier.nextCommitment)
          report.check(earlier.nextCommitment === later.commitment, "link", `${where} has another seed than was committed to at the hand before`);
        else report.notProved.push(`That the seed of ${where} was committed to at the hand before: it tells none.`);
        // A carry goes to the next hand, or back to those who paid it.
        const fine = later.carryIn === earlier.carryOut || later.carryIn === 0;
        report.check(fine, "link", `${where} begins with ${later.carryIn} carried, ${earlier.carryOut} were left`);
      }
      const which = isOnly ? "" : `, ${run[0].number} to ${run.at(-1).number},`;
      if (run.length > 1 && !this.doubled.has(table)) report.conclude(before, `${run.length} decks of ${table}${which} follow each other without a gap.`);
    }
  }

  // Takes exported hands one by one; only what the links need is kept of them, so a file may be of any length.
  class Verifier {
    links = new Links();
    objects = 0;

    // One hand, a JSON object: { name, proved, notProved, failed }, or null for an empty line.
    take(line) {
      if (!line.trim()) return null;
      this.objects++;
      const report = new Report();
      let hand = null;
      try {
        hand = handOf(line);
        report.name = hand.name;
        checkHand(hand, report);
      } catch (error) {
        if (error instanceof Broken) report.failed.push(error.message);
        else if (error instanceof SyntaxError || error instanceof TypeError || error instanceof RangeError)
          report.failed.push(`file: object ${this.objects} is not an exported hand: ${error.message}`);
        else throw error;
      }
      if (hand !== null && hand.proof && hand.events.length) this.links.add(hand, report);
      return report;
    }

    // What is to be said of the hands together.
    end() {
      const report = new Report();
      report.check(this.objects > 0, "file", "no hand in it");
      this.links.end(report);
      return report;
    }
  }

  // One hand as an indented object fills a whole text; else each line is one.
  const isOneObject = (beginning) => beginning.trimStart().startsWith("{\n");

  function fivedrawVerify(text) {
    const verifier = new Verifier();
    const whole = { proved: [], notProved: [], failed: [] };
    const add = (report) => {
      if (report) for (const kind of Object.keys(whole)) for (const sentence of report[kind]) whole[kind].push(sentence);
    };
    for (const line of isOneObject(text) ? [text] : text.split("\n")) add(verifier.take(line));
    add(verifier.end());
    return whole;
  }

  // Pieces of a text in, whole hands out. A hand (or a text of one object) beyond the limit is an error.
  class Splitter {
    rest = "";
    isWhole = null;

    *add(piece) {
      this.rest += piece;
      if (this.isWhole === null && this.rest.trimStart().length >= 2) this.isWhole = isOneObject(this.rest);
      if (this.isWhole === false) {
        const lines = this.rest.split("\n");
        this.rest = lines.pop();
        yield* lines;
      }
      if (this.rest.length > HAND_CHARACTERS_MAX) throw new RangeError(`a hand has more than ${HAND_CHARACTERS_MAX} characters`);
    }
  }

  root.fivedrawVerify = fivedrawVerify;
  root.FivedrawVerifier = Verifier;
  root.FivedrawSplitter = Splitter;
  if (typeof module === "undefined" || typeof require === "undefined" || require.main !== module) {
    if (typeof module !== "undefined") module.exports = { fivedrawVerify, Verifier, Splitter, sha256, hmac, hex, unhex, shuffled, contextOf, worthOf, ForcedBets };
    return;
  }
  const files = process.argv.slice(2);
  if (files.length !== 1) {
    console.error("usage: node verify.js FILE   (a hand exported as JSON with its proof, or one a line; - for standard input)");
    process.exit(2);
  }
  const counts = { proved: 0, notProved: 0, failed: 0 };
  const print = (text) => fs.writeSync(1, text);
  function tell(report, isOneOfMany) {
    if (!report) return;
    const lines = isOneOfMany && report.name ? [`${report.name}:`] : [];
    for (const [kind, word] of Object.entries({ proved: "proved     ", notProved: "not proved ", failed: "FAILED     " })) {
      lines.push(...report[kind].map((sentence) => `${word} ${sentence}`));
      counts[kind] += report[kind].length;
    }
    if (lines.length) print(`${lines.join("\n")}\n`);
  }
  const fs = require("node:fs");
  const verifier = new Verifier();
  const splitter = new Splitter();
  const decoder = new TextDecoder("utf-8", { fatal: true });
  const from = files[0] === "-" ? 0 : fs.openSync(files[0], "r");
  const piece = Buffer.alloc(1 << 20);
  try {
    for (let size; (size = fs.readSync(from, piece)); )
      for (const line of splitter.add(decoder.decode(piece.subarray(0, size), { stream: true }))) tell(verifier.take(line), true);
    splitter.rest += decoder.decode();
    tell(verifier.take(splitter.rest), splitter.isWhole === false);
  } catch (error) {
    if (!(error instanceof RangeError || error instanceof TypeError)) throw error;
    tell({ name: "", proved: [], notProved: [], failed: [`file: ${error.message}`] });
    verifier.objects++;
  }
  tell(verifier.end());
  print(`${counts.proved} proved, ${counts.notProved} not proved, ${counts.failed} failed\n`);
  process.exit(counts.failed ? 1 : 0);
})(typeof globalThis === "undefined" ? this : globalThis);
