// timeline.js - streams and host threads over time, drawn on a canvas: only what is in view.
//
// `app` is main.js's: app.view {from, to} in ns, or in events if app.byOrder; app.mask[i]: passes the
// filters; app.selected: index or -1; app.colour(name); app.select(i), app.changed().

const LABEL_WIDTH = 168, TRACK = 24, BAR = 17, TOP = 58;

const startOf = (app, i) => (app.byOrder ? i : ev.t[i]);
const endOf = (app, i) => (app.byOrder ? i + 1 : ev.t[i] + ev.took[i]);

// Tracks: { label, title, items: Uint32Array of indices, ends: largest end so far }.
function makeTracks() {
  const lists = new Map();
  const put = (key, i) => {
    const list = lists.get(key);
    if (list) list.push(i); else lists.set(key, [i]);
  };
  for (let i = 0; i < count; i++) {
    if (ev.stream[i]) put('s' + ev.stream[i], i);
    if (ev.thread[i]) put('t' + ev.thread[i], i);
  }
  const tracks = [];
  const add = (prefix, all) => all.forEach((d) => {
    const list = lists.get(prefix + d.id);
    if (list) tracks.push({ key: prefix + d.id, label: d.label, title: d.title, items: Uint32Array.from(list), cache: {} });
  });
  add('s', raw.streams);
  add('t', raw.threads);
  return tracks;
}

// The items in order of their start, and the largest end up to each: calls nest, and the recorder
// of one thread may be a little ahead of another's.
function orderOf(track, app) {
  const mode = app.byOrder ? 'order' : 'time';
  if (!track.cache[mode]) {
    let items = track.items;
    if (!app.byOrder) {
      let sorted = true;
      for (let k = 1; k < items.length && sorted; k++) sorted = ev.t[items[k - 1]] <= ev.t[items[k]];
      if (!sorted) items = items.slice().sort((a, b) => ev.t[a] - ev.t[b] || a - b);
    }
    const ends = new Float64Array(items.length);
    let most = -1;
    for (let k = 0; k < items.length; k++) ends[k] = most = Math.max(most, endOf(app, items[k]));
    track.cache[mode] = { items, ends };
  }
  return track.cache[mode];
}

// The first k with array[k] >= value.
function lowerBound(array, value) {
  let a = 0, b = array.length;
  while (a < b) {
    const m = (a + b) >> 1;
    if (array[m] < value) a = m + 1; else b = m;
  }
  return a;
}

function sizeCanvas(canvas, height) {
  const scale = window.devicePixelRatio || 1, width = canvas.clientWidth;
  if (canvas.width !== Math.round(width * scale) || canvas.height !== Math.round(height * scale)) {
    canvas.width = Math.round(width * scale);
    canvas.height = Math.round(height * scale);
    canvas.style.height = height + 'px';
  }
  const g = canvas.getContext('2d');
  g.setTransform(scale, 0, 0, scale, 0, 0);
  return { g, width, height };
}

// A round distance between ticks.
function tickStep(span, most) {
  const rough = span / most, power = Math.pow(10, Math.floor(Math.log10(rough)));
  const lead = rough / power;
  return power * (lead <= 1 ? 1 : lead <= 2 ? 2 : lead <= 5 ? 5 : 10);
}

function tickText(app, value, step) {
  if (app.byOrder) {
    const i = Math.round(value);
    return i >= 0 && i < count ? '#' + ev.seq[i] : '';
  }
  if (step >= 1e8) return (value / 1e9).toFixed(step >= 1e9 ? 0 : 1) + ' s';
  if (step >= 1e5) return (value / 1e6).toFixed(step >= 1e6 ? 0 : 1) + ' ms';
  if (step >= 100) return (value / 1e3).toFixed(step >= 1e3 ? 0 : 1) + ' µs';
  return Math.round(value) + ' ns';
}

function drawAxis(g, app, x, width, y, height) {
  const { from, to } = app.view;
  let step = tickStep(to - from, Math.max(2, (width - LABEL_WIDTH) / 130));
  if (app.byOrder) step = Math.max(1, step);
  g.font = '11px ui-monospace, monospace';
  g.textBaseline = 'middle';
  g.textAlign = 'left';
  for (let v = Math.ceil(from / step) * step; v <= to; v += step) {
    const at = Math.round(x(v)) + 0.5;
    g.strokeStyle = app.colour('line');
    g.beginPath();
    g.moveTo(at, y);
    g.lineTo(at, height);
    g.stroke();
    g.fillStyle = app.colour('soft');
    g.fillText(tickText(app, v, step), at + 4, y + 8);
  }
}

function makeTimeline(canvas, scroller, app) {
  const tracks = makeTracks();
  const height = () => TOP + Math.max(1, tracks.length) * TRACK + 8;
  const xOf = (width) => {
    const scale = (width - LABEL_WIDTH) / (app.view.to - app.view.from);
    return (v) => LABEL_WIDTH + (v - app.view.from) * scale;
  };
  const barY = (n) => TOP + n * TRACK + (TRACK - BAR) / 2;
  const trackOf = (i) => {
    const n = tracks.findIndex((t) => t.key === 's' + ev.stream[i]);
    return n >= 0 ? n : tracks.findIndex((t) => t.key === 't' + ev.thread[i]);
  };

  // Bars of one track. Those that fall on the same pixel in the same colour are drawn once.
  function drawTrack(g, n, x, width) {
    const { items, ends } = orderOf(tracks[n], app), y = barY(n), labels = [];
    let lastPixel = -1, lastColour = '';
    for (let pass = 0; pass < 2; pass++) {
      lastPixel = -1;
      for (let k = lowerBound(ends, app.view.from); k < items.length; k++) {
        const i = items[k], start = startOf(app, i);
        if (start > app.view.to) break;
        if ((app.mask[i] === 1) !== (pass === 1)) continue;
        const left = Math.max(LABEL_WIDTH, x(start)), right = Math.min(width, x(endOf(app, i)));
        const wide = Math.max(app.byOrder ? right - left - (right - left > 6 ? 1 : 0) : right - left, 1.5);
        const colour = pass === 0 ? 'line' : failed(i) ? 'fault' : GROUPS[groupOfKind[ev.kind[i]]].id;
        const pixel = Math.floor(left);
        if (wide < 2 && pixel === lastPixel && colour === lastColour) continue;
        lastPixel = pixel;
        if (colour !== lastColour) {
          g.fillStyle = app.colour(colour);
          lastColour = colour;
        }
        g.fillRect(left, y, wide, BAR);
        if (wide > 5) { // neighbours of one colour stay apart
          g.fillStyle = app.colour('paper');
          g.fillRect(left, y, 0.8, BAR);
          lastColour = '';
        }
        // A bar that covers the one before it leaves it less room for its label.
        const before = labels.length - 3;
        if (before >= 0 && labels[before + 1] + labels[before + 2] > left) labels[before + 2] = left - labels[before + 1];
        if (pass === 1 && wide > 34 && labels.length < 1200) labels.push(i, left, wide);
      }
    }
    g.font = '11px ui-monospace, monospace';
    g.textBaseline = 'middle';
    g.textAlign = 'left';
    g.fillStyle = app.colour('paper');
    for (let k = 0; k < labels.length; k += 3) {
      const text = titleOf(labels[k]) || callText(labels[k]) || kindOf(labels[k]).text;
      const room = Math.floor((labels[k + 2] - 6) / 6.7);
      if (room < 3) continue;
      g.fillText(text.length > room ? text.slice(0, Math.max(1, room - 1)) + '…' : text, labels[k + 1] + 3, y + BAR / 2 + 0.5);
    }
  }

  function drawPin(g, x, width, i, label, colour, side) {
    if (i < 0) return null;
    const at = x(startOf(app, i)), n = trackOf(i);
    const y = n >= 0 ? barY(n) : TOP;
    if (at < LABEL_WIDTH - 1 || at > width + 1) {
      const out = at < LABEL_WIDTH;
      g.fillStyle = app.colour(colour);
      g.font = 'bold 12px system-ui, sans-serif';
      g.textAlign = out ? 'left' : 'right';
      g.fillText(out ? '◀ ' + label : label + ' ▶', out ? LABEL_WIDTH + 4 : width - 4, side < 0 ? 30 : 46);
      return null;
    }
    const right = Math.max(at + 2, Math.min(width, x(endOf(app, i))));
    g.strokeStyle = g.fillStyle = app.colour(colour);
    g.lineWidth = 1.5;
    g.beginPath();
    g.moveTo(at, 24);
    g.lineTo(at, y);
    g.stroke();
    g.lineWidth = 2;
    g.strokeRect(at - 1, y - 2, Math.max(right - at + 2, 4), BAR + 4);
    g.lineWidth = 1;
    g.font = 'bold 12px system-ui, sans-serif';
    const wide = g.measureText(label).width + 12;
    let left = side < 0 ? at - wide : at;
    left = Math.min(Math.max(left, LABEL_WIDTH), width - wide);
    const top = side < 0 ? 22 : 38;
    g.fillRect(left, top, wide, 16);
    g.fillStyle = app.colour('paper');
    g.textAlign = 'left';
    g.fillText(label, left + 6, top + 8.5);
    return { x: at, y: y + BAR / 2 };
  }

  // A curve from one bar to another, with a head at its end.
  function drawLink(g, a, b, colour) {
    if (!a || !b || (Math.abs(a.x - b.x) < 3 && a.y === b.y)) return;
    const bend = Math.max(24, Math.abs(b.x - a.x) * 0.3), down = a.y === b.y ? 30 : 0;
    g.strokeStyle = g.fillStyle = app.colour(colour);
    g.lineWidth = 1.5;
    g.setLineDash([5, 3]);
    g.beginPath();
    g.moveTo(a.x, a.y);
    g.bezierCurveTo(a.x + bend, a.y + down, b.x - bend, b.y + down, b.x, b.y);
    g.stroke();
    g.setLineDash([]);
    g.lineWidth = 1;
    g.beginPath();
    g.moveTo(b.x, b.y);
    g.lineTo(b.x - 8, b.y - 4 + down / 4);
    g.lineTo(b.x - 8, b.y + 4 + down / 4);
    g.fill();
  }

  // Where the selected event refers to: the record it waits for, the launch that faulted, the alloc.
  function drawReferences(g, x, width) {
    const i = app.selected;
    if (i < 0) return;
    const place = (k) => {
      const at = x(startOf(app, k)), n = trackOf(k);
      return n >= 0 && at >= LABEL_WIDTH && at <= width ? { x: at, y: barY(n) + BAR / 2 } : null;
    };
    for (const other of app.references(i)) drawLink(g, place(other), place(i), 'sync');
  }

  function draw() {
    const { g, width } = sizeCanvas(canvas, height());
    const x = xOf(width), all = height();
    g.fillStyle = app.colour('paper');
    g.fillRect(0, 0, width, all);
    tracks.forEach((t, n) => {
      g.fillStyle = app.colour('track');
      if (n % 2 === 0) g.fillRect(0, TOP + n * TRACK, width, TRACK);
    });
    drawAxis(g, app, x, width, 4, all);
    const first = Math.max(0, Math.floor((scroller.scrollTop - TOP) / TRACK));
    const last = Math.min(tracks.length - 1, Math.ceil((scroller.scrollTop + scroller.clientHeight - TOP) / TRACK));
    for (let n = first; n <= last; n++) drawTrack(g, n, x, width);
    if (app.selected >= 0) drawSelected(g, x, width);
    drawReferences(g, x, width);
    const from = drawPin(g, x, width, app.culprit, T('culprit'), 'culprit', -1);
    const to = drawPin(g, x, width, app.messenger, T('messenger'), 'messenger', 1);
    const other = app.other === app.messenger ? null : drawPin(g, x, width, app.other, T('collides'), 'collides', 1);
    drawLink(g, from, to, 'culprit');
    drawLink(g, from, other, 'collides');
    drawLabels(g, all);
  }

  function drawSelected(g, x, width) {
    const i = app.selected;
    g.strokeStyle = app.colour('ink');
    g.lineWidth = 2;
    for (const key of ['s' + ev.stream[i], 't' + ev.thread[i]]) {
      const n = tracks.findIndex((t) => t.key === key);
      const left = x(startOf(app, i)), right = x(endOf(app, i));
      if (n < 0 || right < LABEL_WIDTH || left > width) continue;
      g.strokeRect(Math.max(left, LABEL_WIDTH) - 1, barY(n) - 1, Math.max(3, Math.min(right, width) - left + 2), BAR + 2);
    }
    g.lineWidth = 1;
  }

  function drawLabels(g, all) {
    g.fillStyle = app.colour('panel');
    g.fillRect(0, 0, LABEL_WIDTH - 2, all);
    g.font = '12px system-ui, sans-serif';
    g.textBaseline = 'middle';
    g.textAlign = 'left';
    g.fillStyle = app.colour('soft');
    g.fillText(app.byOrder ? T('event') : T('time from the start'), 10, 12);
    g.fillStyle = app.colour('ink');
    tracks.forEach((t, n) => {
      const text = t.label.length > 24 ? t.label.slice(0, 23) + '…' : t.label;
      g.fillText(text, 10, TOP + n * TRACK + TRACK / 2);
    });
    if (!tracks.length) g.fillText(T('no events'), 10, TOP + TRACK / 2);
  }

  // The event at a point, -1 if there is none within a few pixels.
  function hit(px, py) {
    const n = Math.floor((py - TOP) / TRACK);
    if (n < 0 || n >= tracks.length || px < LABEL_WIDTH) return -1;
    const x = xOf(canvas.clientWidth), { items, ends } = orderOf(tracks[n], app);
    const unit = (app.view.to - app.view.from) / (canvas.clientWidth - LABEL_WIDTH);
    const at = app.view.from + (px - LABEL_WIDTH) * unit;
    let best = -1, distance = 5;
    for (let k = lowerBound(ends, at - 5 * unit); k < items.length && startOf(app, items[k]) <= at + 5 * unit; k++) {
      const i = items[k], left = x(startOf(app, i)), right = Math.max(left + 1.5, x(endOf(app, i)));
      const d = px < left ? left - px : px > right ? px - right : 0;
      const weight = d + (app.mask[i] ? 0 : 4);
      if (weight <= distance) { distance = weight; best = i; }
    }
    return best;
  }

  // The event before or after on the track of the selected one that passes the filters.
  function step(by) {
    let i = app.selected;
    const n = i >= 0 ? Math.max(0, trackOf(i)) : 0;
    if (!tracks.length) return;
    const items = tracks[n].items;
    let k = i >= 0 ? lowerBound(items, i) : by > 0 ? -1 : items.length;
    for (k += by; k >= 0 && k < items.length; k += by)
      if (app.mask[items[k]]) { app.select(items[k], { reveal: true }); return; }
  }

  // The event nearest in time on the next track.
  function moveTrack(by) {
    const i = app.selected;
    const n = i >= 0 ? trackOf(i) + by : by > 0 ? 0 : tracks.length - 1;
    if (n < 0 || n >= tracks.length) return;
    const items = tracks[n].items;
    const near = items[Math.min(items.length - 1, lowerBound(items, Math.max(0, i)))];
    app.select(near, { reveal: true, track: n });
  }

  scroller.addEventListener('scroll', () => app.changed());
  return { draw, hit, step, moveTrack, tracks, labelWidth: LABEL_WIDTH };
}
