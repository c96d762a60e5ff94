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
      else if (event.type === "cards_drawn") this.draw(body.seat, body.count, Boolean(body.late));
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
      const fits = late ? count === 1 && owed >= 1 : count === owed || (owed === 4 && count === 3);
      this.require(fits, `${count} cards for ${owed} discards`);
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

  // ---- the checks -------------------------------------------------------------------------------------------------

  function checkHand(hand, report) {
    complete(hand);
    if (!report.check(hand.proof.version === 1, "version", `${hand.proof.version} is not known here`)) return;
    checkChain(hand, report);
    checkOrder(hand, report);
    checkChips(hand, report);
    const walk = new Walk(hand);
    for (const event of hand.events) walk.take(event);
    walk.end();
    checkRoots(hand, walk, report);
    checkEntropy(hand, report);
    const opened = checkPlaces(hand, walk, report);
    checkCards(hand, walk, opened, report);
    if (hand.proof.seed) checkSeed(hand, walk, opened, report);
    else report.notProved.push("That the order came from the committed seed: only an auditor can open it.");
    const isVoid = hand.outcome === "void";
    report.check(Boolean(hand.proof.void) === isVoid, "void", "proof and hand do not agree on it");
    if (isVoid) report.notProved.push("Why the hand was void: its number stays in the chain, so that it cannot be hidden.");
  }

  function complete(hand) {
    if (hand === null || typeof hand !== "object" || !Array.isArray(hand.seats) || !Array.isArray(hand.events)) throw new Broken("file", "it holds no exported hand");
    if (!hand.proof) throw new Broken("proof", "the hand was exported without one");
    hand.options = hand.options || {};
    hand.proof.passed = hand.proof.passed || [];
    hand.proof.player_seeds = hand.proof.player_seeds || [];
    for (const seat of hand.seats) for (const name of ["dealt", "drawn", "discarded", "final_cards"]) seat[name] = seat[name] || [];
    for (const each of hand.proof.places) if (!NUMBERS.has(each.card)) throw new Broken("file", `${each.card} is no card`);
  }

  function checkChain(hand, report) {
    const before = report.failed.length;
    const proof = hand.proof;
    report.check(chainOf(hand) === proof.chain, "chain", "it does not follow from table, numbers and commitment");
    const started = hand.events.find((event) => event.type === "hand_started");
    if (!report.check(started !== undefined, "chain", "the events have no beginning of the hand")) return;
    for (const name of ["commitment", "chain", "deck_number"])
      report.check(started.body[name] === proof[name], "chain", `event ${started.sequence}: ${name} is not the proof's`);
    report.check(started.body.button === hand.button, "order", `event ${started.sequence}: the button is not the hand's`);
    report.conclude(before, `Deck ${proof.deck_number} is linked to the table's chain with the commitment of its seed.`);
  }

  function checkOrder(hand, report) {
    let last = null;
    let missing = 0;
    for (const event of hand.events) {
      report.check(event.epoch === hand.epoch && event.hand === hand.hand, "order", `event ${event.sequence} is of another hand`);
      if (last !== null) {
        report.check(event.sequence > last, "order", `event ${event.sequence} follows event ${last}`);
        missing += Math.max(event.sequence - last - 1, 0);
      }
      last = event.sequence;
    }
    if (missing) report.notProved.push(`${missing} events between those of the hand are not in the file.`);
  }

  // One text for equal values, whatever the order of their keys.
  function canonical(value) {
    if (Array.isArray(value)) return `[${value.map(canonical).join()}]`;
    if (value === null || typeof value !== "object") return JSON.stringify(value);
    const keys = Object.keys(value).sort();
    return `{${keys.map((key) => `${JSON.stringify(key)}:${canonical(value[key])}`).join()}}`;
  }

  function checkChips(hand, report) {
    const ended = hand.events.find((event) => event.type === "hand_ended");
    if (!ended || hand.outcome === "void") return;
    const before = report.failed.length;
    const stacks = new Map(hand.seats.map((seat) => [seat.seat, seat.stack_before_minor]));
    const move = (seat, amount) => stacks.set(Number(seat), stacks.get(Number(seat)) + amount);
    let pot = hand.carry_in_minor || 0;
    let [paid, raked] = [0, 0];
    const awarded = [];
    for (const { type, body, sequence } of hand.events) {
      const added = { forced_bet_posted: body.amount_minor, action_taken: body.added_minor, bet_returned: -body.amount_minor }[type];
      if (added !== undefined) {
        move(body.seat, -added);
        pot += added;
      }
      if (type === "bets_collected") report.check(body.pot_minor === pot, "chips", `event ${sequence}: the pot is ${pot}, not ${body.pot_minor}`);
      if (type !== "pot_awarded") continue;
      for (const [seat, amount] of Object.entries(body.pot.winners)) {
        move(seat, amount);
        paid += amount;
      }
      raked += body.pot.rake_minor;
      awarded.push(body.pot);
    }
    for (const [seat, amount] of stacks) {
      const told = ended.body.stacks_minor[String(seat)];
      report.check(told === amount, "chips", `seat ${seat} ends with ${told}, its events say ${amount}`);
    }
    const where = `event ${ended.sequence} (hand_ended)`;
    report.check(ended.body.outcome === hand.outcome, "chips", `${where}: the outcome is not the hand's`);
    report.check((ended.body.rake_minor || 0) === raked, "chips", `${where}: the pots were raked ${raked}`);
    if (hand.pots) {
      awarded.sort((left, right) => left.index - right.index);
      const isTold = canonical(hand.pots) === canonical(awarded);
      report.check(isTold, "chips", "the hand's pots are not those that its events award");
    }
    const out = paid + raked + (ended.body.carry_minor || 0);
    report.check(pot === out, "chips", `${pot} went into the pot, ${out} were paid, raked and carried`);
    report.conclude(before, "The chips of all events add up, for every seat and for the pot.");
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
        report.check(same(sorted(body.cards), sorted(seat.final_cards)), "card", `event ${sequence} shows other cards than seat ${seat.seat} has`);
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

  function checkLinks(hands, report) {
    const tables = new Map();
    for (const hand of hands) {
      if (!hand.proof) continue;
      if (!tables.has(hand.table)) tables.set(hand.table, []);
      tables.get(hand.table).push(hand);
    }
    for (const [table, decks] of tables) {
      decks.sort((a, b) => a.proof.deck_number - b.proof.deck_number);
      const before = report.failed.length;
      let linked = 0;
      for (let n = 1; n < decks.length; n++) {
        const [earlier, later] = [decks[n - 1], decks[n]];
        const number = later.proof.deck_number;
        if (number === earlier.proof.deck_number) continue;
        if (number !== earlier.proof.deck_number + 1) {
          report.notProved.push(`decks ${earlier.proof.deck_number + 1} to ${number - 1} of ${table} are not in the file.`);
          continue;
        }
        linked++;
        report.check(later.proof.previous_chain === earlier.proof.chain, "link", `deck ${number} of ${table} does not follow the one before`);
        const ended = earlier.events.find((event) => event.type === "hand_settled" || event.type === "hand_voided");
        if (ended && ended.body.next_commitment)
          report.check(ended.body.next_commitment === later.proof.commitment, "link", `deck ${number} of ${table} has another seed than was committed to at the hand before`);
      }
      if (linked) report.conclude(before, `${linked + 1} decks of ${table} follow each other without a gap.`);
    }
  }

  function fivedrawVerify(text) {
    const report = new Report();
    const lines = text.trimStart().startsWith("{\n") ? [text] : text.split("\n").filter((line) => line.trim());
    if (!lines.length) report.failed.push("file: no hand in it");
    const hands = [];
    for (const line of lines) {
      try {
        const hand = JSON.parse(line);
        checkHand(hand, report);
        hands.push(hand);
      } catch (error) {
        if (error instanceof Broken) report.failed.push(error.message);
        else if (error instanceof SyntaxError || error instanceof TypeError) report.failed.push(`file: not an exported hand: ${error.message}`);
        else throw error;
      }
    }
    checkLinks(hands, report);
    return { proved: report.proved, notProved: report.notProved, failed: report.failed };
  }

  root.fivedrawVerify = fivedrawVerify;
  if (typeof module === "undefined" || typeof require === "undefined" || require.main !== module) {
    if (typeof module !== "undefined") module.exports = { fivedrawVerify, sha256, hmac, hex, unhex, shuffled, contextOf };
    return;
  }
  const files = process.argv.slice(2);
  if (files.length !== 1) {
    console.error("usage: node verify.js FILE   (a hand exported as JSON with its proof, or one a line; - for standard input)");
    process.exit(2);
  }
  const found = fivedrawVerify(require("node:fs").readFileSync(files[0] === "-" ? 0 : files[0], "utf8"));
  for (const sentence of found.proved) console.log(`proved      ${sentence}`);
  for (const sentence of found.notProved) console.log(`not proved  ${sentence}`);
  for (const sentence of found.failed) console.log(`FAILED      ${sentence}`);
  console.log(`${found.proved.length} proved, ${found.notProved.length} not proved, ${found.failed.length} failed`);
  process.exit(found.failed.length ? 1 : 0);
})(typeof globalThis === "undefined" ? this : globalThis);
