// main.js - joins the parts: filters, selection, the shared view, keys, links and themes.

const app = {
  view: { from: 0, to: 1 }, byOrder: false, extent: 1, selected: -1, theme: '',
  mask: new Uint8Array(count).fill(1),
  culprit: raw.culprit && raw.culprit.event !== null ? indexOf(raw.culprit.event) : -1,
  messenger: raw.messenger && raw.messenger.event !== null ? indexOf(raw.messenger.event) : -1,
  other: raw.other && raw.other.event !== null ? indexOf(raw.other.event) : -1,
};

// ---- colours

const colours = {};
app.colour = (name) => colours[name] || (colours[name] = getComputedStyle(document.documentElement).getPropertyValue('--' + name).trim() || '#888');
function setTheme(theme) {
  document.documentElement.dataset.theme = app.theme = theme;
  for (const name of Object.keys(colours)) delete colours[name];
  app.changed();
}

// ---- the view

app.wholeView = () => {
  const most = app.byOrder ? count : app.extent;
  return { from: -most * 0.01, to: most * 1.01 + (most ? 0 : 1) };
};
app.setView = (from, to) => {
  const whole = app.wholeView(), least = app.byOrder ? 4 : 50;
  let span = Math.min(Math.max(to - from, least), whole.to - whole.from);
  let start = (from + to) / 2 - span / 2;
  start = Math.min(Math.max(start, whole.from), whole.to - span);
  app.view = { from: start, to: start + span };
  app.changed();
};
app.zoom = (factor, at) => {
  const { from, to } = app.view, centre = at === undefined ? (from + to) / 2 : at;
  app.setView(centre - (centre - from) * factor, centre + (to - centre) * factor);
};
app.pan = (part) => {
  const span = app.view.to - app.view.from;
  app.setView(app.view.from + span * part, app.view.to + span * part);
};

// The event in the middle of some of its neighbours.
app.centre = (i) => {
  if (app.byOrder) { app.setView(i - 40, i + 40); return; }
  const a = Math.max(0, i - 25), b = Math.min(count - 1, i + 25);
  const half = Math.max(ev.t[i] - ev.t[a], ev.t[b] - ev.t[i], ev.took[i] * 2, 1000);
  const middle = ev.t[i] + ev.took[i] / 2;
  app.setView(middle - half, middle + half);
};
app.revealInView = (i) => {
  const at = startOf(app, i), { from, to } = app.view, span = to - from;
  if (at < from || at > to) app.setView(at - span / 2, at + span / 2);
  else if (span > (app.byOrder ? count : app.extent) * 0.5 && count > 400) app.centre(i);
};
// The operation that the culprit is shown with: the messenger, or what it collides with.
app.partner = app.messenger >= 0 ? app.messenger : app.other;
app.showBoth = () => {
  if (app.culprit < 0 || app.partner < 0) { app.show(Math.max(app.culprit, app.partner)); return; }
  const a = Math.min(startOf(app, app.culprit), startOf(app, app.partner));
  const b = Math.max(endOf(app, app.culprit), endOf(app, app.partner));
  const margin = Math.max((b - a) * 0.15, app.byOrder ? 5 : 500);
  app.setView(a - margin, b + margin);
};

let waiting = false;
app.changed = () => {
  if (waiting) return;
  waiting = true;
  requestAnimationFrame(() => {
    waiting = false;
    timeline.draw();
    map.draw();
  });
};

// ---- selection

// Events that this one refers to: the record it waits for, the launch that faulted, the allocation.
app.references = (i) => {
  const out = [], k = kindOf(i);
  for (const f of ['dst', 'src', 'len'])
    if (k[f][0] === 'e' && !isNone(ev[f], i)) {
      const other = indexOf(valueOf(ev[f], i));
      if (other >= 0 && other !== i) out.push(other);
    }
  return out;
};

function eventButton(seq, text) {
  const button = document.createElement('button');
  button.type = 'button';
  button.textContent = text || '#' + seq;
  button.addEventListener('click', () => app.show(indexOf(seq)));
  button.disabled = indexOf(seq) < 0;
  return button;
}

function addFact(list, label, value) {
  if (value === '' || value === undefined) return;
  const row = document.createElement('div'), dt = document.createElement('dt'), dd = document.createElement('dd');
  dt.textContent = label;
  if (value instanceof Node) dd.append(value); else dd.textContent = value;
  row.append(dt, dd);
  list.append(row);
}

function showDetails(i) {
  const box = $('details'), list = document.createElement('dl'), k = kindOf(i);
  const title = document.createElement('p');
  title.textContent = (i === app.culprit ? T('Culprit') + ': ' : i === app.messenger ? T('Messenger') + ': ' : i === app.other ? T('Collides with') + ': ' : '') + k.text;
  addFact(list, T('event'), '#' + ev.seq[i]);
  addFact(list, T('time'), secondsText(ev.t[i]) + ' s' + (ev.took[i] ? ', ' + T('took') + ' ' + (ev.took[i] / 1000).toFixed(3) + ' µs' : ''));
  addFact(list, T('detail'), detailText(i));
  addFact(list, k.name || T('name'), nameText(ev.name[i]));
  addFact(list, T('call'), callText(i));
  addFact(list, T('result'), statusText(i));
  for (const f of ['dst', 'src', 'len']) {
    if (!k[f][0]) continue;
    if (k[f][0] === 'e' && !isNone(ev[f], i)) addFact(list, k[f][1], eventButton(valueOf(ev[f], i)));
    else addFact(list, k[f][1], fieldText(k[f], ev[f], i) + (k[f][1] === 'bytes' && valueOf(ev[f], i) >= 1024 ? ' (' + bytesText(valueOf(ev[f], i)) + ')' : ''));
  }
  addFact(list, T('stream'), ev.stream[i] ? 's' + ev.stream[i] : '');
  addFact(list, T('thread'), ev.thread[i] ? 't' + ev.thread[i] : '');
  addFact(list, T('step'), ev.step[i] ? String(ev.step[i] - 1) : '');
  addFact(list, T('layer'), layerOf(i) >= 0 ? String(layerOf(i)) : '');
  addFact(list, T('called from'), siteText(ev.site[i]));
  const blocks = [];
  for (let n = touchedFrom[i]; n < touchedFrom[i + 1]; n++) blocks.push(nameText(block.name[touched[n]]) || hexOf(block.base, touched[n]));
  addFact(list, T('touches'), blocks.join(', '));
  box.replaceChildren(title, list);
  const line = raw.lines[ev.seq[i]];
  if (line) {
    const pre = document.createElement('pre');
    pre.textContent = line;
    box.append(pre);
  }
}

app.select = (i, how = {}) => {
  if (i < 0 || i >= count) return;
  app.selected = i;
  showDetails(i);
  if (how.reveal) app.revealInView(i);
  if (!how.fromList) list.reveal(i);
  list.draw();
  app.changed();
};

// Selects the event, goes to the timeline, and puts it in the middle.
app.show = (i) => {
  if (i < 0) return;
  if (!app.mask[i]) $('filters').reset();
  app.select(i);
  app.centre(i);
  $('timeline').scrollIntoView();
  $('timeline-canvas').focus({ preventScroll: true });
};

function followHash() {
  const m = /^#event-(\d+)$/.exec(location.hash);
  if (m) app.show(indexOf(Number(m[1])));
}

// ---- filters

const layers = new Int32Array(count);
for (let i = 0; i < count; i++) layers[i] = layerOf(i);

function fillSelect(select, all, entries) {
  select.replaceChildren();
  for (const [value, text] of [['', all], ...entries]) {
    const option = document.createElement('option');
    option.value = value;
    option.textContent = text;
    select.append(option);
  }
}

function makeFilters() {
  const inUse = (column) => { const s = new Set(column); s.delete(0); return s; };
  const streams = inUse(ev.stream), threads = inUse(ev.thread);
  fillSelect($('filter-stream'), T('all'), raw.streams.filter((s) => streams.has(s.id)).map((s) => [s.id, s.label]));
  fillSelect($('filter-thread'), T('all'), raw.threads.filter((t) => threads.has(t.id)).map((t) => [t.id, t.label]));
  const seen = [...new Set(layers)].filter((l) => l >= 0).sort((a, b) => a - b);
  fillSelect($('filter-layer'), T('all'), seen.map((l) => [l, String(l)]));
  const tensors = new Set();
  for (let b = 0; b < blockCount && tensors.size < 500; b++) if (block.name[b]) tensors.add(nameText(block.name[b]));
  for (let i = 0; i < count && tensors.size < 500; i++)
    if (ev.name[i] && (kindOf(i).name === 'tensor' || kindOf(i).name === 'range')) tensors.add(nameText(ev.name[i]));
  for (const text of tensors) {
    const option = document.createElement('option');
    option.value = text;
    $('tensors').append(option);
  }
  const present = new Set();
  for (let i = 0; i < count; i++) present.add(groupOfKind[ev.kind[i]]);
  GROUPS.forEach((group, n) => {
    if (!present.has(n)) return;
    const label = document.createElement('label'), box = document.createElement('input'), dot = document.createElement('i');
    box.type = 'checkbox';
    box.checked = box.defaultChecked = true;
    box.dataset.group = n;
    dot.style.background = 'var(--' + group.id + ')';
    label.append(box, dot, group.label);
    $('kinds').append(label);
  });
  const families = new Set();
  for (let b = 0; b < blockCount; b++) if (!(block.family[b] & 16)) families.add(block.family[b] & 15);
  for (const f of families) {
    const label = document.createElement('span'), dot = document.createElement('i');
    dot.style.background = 'var(--' + (FAMILY_COLOURS[f] || 'other') + ')';
    label.append(dot, FAMILIES[f] || '?');
    $('families').append(label);
  }
}

// Which of a table of texts contain the words; null if there are no words.
function matching(texts, words) {
  const wanted = words.trim().toLowerCase();
  if (!wanted) return null;
  const out = new Uint8Array(texts.length + 1);
  texts.forEach((text, n) => { out[n + 1] = text.toLowerCase().includes(wanted) ? 1 : 0; });
  return out;
}

function touches(i, names) {
  if (names[ev.name[i]]) return true;
  for (let k = touchedFrom[i]; k < touchedFrom[i + 1]; k++) if (names[block.name[touched[k]]]) return true;
  return false;
}

// A test for the search box: #123, an address, or words in names, calls, kinds and results.
function searchTest(words) {
  const text = words.trim().toLowerCase();
  if (!text) return null;
  if (/^#\d+$/.test(text)) { const seq = Number(text.slice(1)); return (i) => ev.seq[i] === seq; }
  if (/^0x[0-9a-f]+$/.test(text)) {
    const at = Number(text), inside = (pair, i) => { const a = valueOf(pair, i); return a <= at && at < a + Math.max(1, valueOf(ev.len, i)); };
    return (i) => {
      const k = kindOf(i);
      return (k.dst[0] === 'x' && inside(ev.dst, i)) || (k.src[0] === 'x' && inside(ev.src, i));
    };
  }
  const names = matching(raw.names, text), calls = matching(raw.functions, text), sites = matching(raw.sites, text);
  const kinds = {}, results = {};
  for (const k of Object.keys(raw.kinds)) kinds[k] = raw.kinds[k].text.includes(text);
  for (const s of Object.keys(raw.statuses)) results[s] = raw.statuses[s].toLowerCase().includes(text);
  results[PENDING] = 'pending'.includes(text);
  return (i) => touches(i, names) || calls[ev.fn[i]] || sites[ev.site[i]] || kinds[ev.kind[i]] || (ev.fn[i] && results[ev.status[i]]);
}

function applyFilters() {
  const tensor = matching(raw.names, $('filter-tensor').value), search = searchTest($('filter-text').value);
  const stream = Number($('filter-stream').value), thread = Number($('filter-thread').value);
  const layer = $('filter-layer').value === '' ? -1 : Number($('filter-layer').value);
  const errors = $('filter-errors').checked;
  const groups = GROUPS.map(() => true);
  for (const box of $('kinds').querySelectorAll('input')) groups[Number(box.dataset.group)] = box.checked;
  for (let i = 0; i < count; i++)
    app.mask[i] = groups[groupOfKind[ev.kind[i]]] && (!stream || ev.stream[i] === stream) && (!thread || ev.thread[i] === thread) &&
      (layer < 0 || layers[i] === layer) && (!errors || failed(i) || ev.kind[i] === 39) && (!tensor || touches(i, tensor)) &&
      (!search || search(i)) ? 1 : 0;
  const n = list.filter();
  $('filter-count').textContent = n === count ? '' : n + ' ' + T('of') + ' ' + count + ' ' + T('events');
  $('events-note').textContent = (n === count ? count + ' ' + T('events') : n + ' ' + T('of') + ' ' + count + ' ' + T('events')) +
    (raw.omitted ? '; ' + raw.omitted + ' of the recording are left out, far from culprit and messenger' : '');
  app.changed();
}

// ---- pointer and keys

function tip(text, x, y) {
  const box = $('tip');
  box.hidden = !text;
  if (!text) return;
  box.textContent = text;
  box.style.left = Math.min(x + 14, innerWidth - box.offsetWidth - 8) + 'px';
  box.style.top = Math.min(y + 16, innerHeight - box.offsetHeight - 8) + 'px';
}

const shortText = (i) => [kindOf(i).text + ' ' + titleOf(i), callText(i) + ' ' + statusText(i), whatText(i),
  '#' + ev.seq[i] + ' at ' + secondsText(ev.t[i]) + ' s'].filter((s) => s.trim()).join('\n');

// Drag, wheel and hover of a canvas that shares the view.
function listen(canvas, hover, click) {
  let drag = null;
  const at = (e) => { const r = canvas.getBoundingClientRect(); return { x: e.clientX - r.left, y: e.clientY - r.top }; };
  const unit = () => (app.view.to - app.view.from) / Math.max(1, canvas.clientWidth - LABEL_WIDTH);
  const value = (x) => app.view.from + (x - LABEL_WIDTH) * unit();
  canvas.addEventListener('pointerdown', (e) => {
    drag = { start: at(e), view: app.view, unit: unit(), zoom: e.shiftKey, moved: false };
    canvas.setPointerCapture(e.pointerId);
  });
  canvas.addEventListener('pointermove', (e) => {
    const p = at(e);
    if (!drag) { tip(hover(p.x, p.y), e.clientX, e.clientY); return; }
    if (Math.abs(p.x - drag.start.x) > 3) drag.moved = true;
    if (drag.moved && !drag.zoom) {
      const by = (drag.start.x - p.x) * drag.unit;
      app.setView(drag.view.from + by, drag.view.to + by);
    }
  });
  canvas.addEventListener('pointerup', (e) => {
    const p = at(e), was = drag;
    drag = null;
    if (!was) return;
    if (!was.moved) click(p.x, p.y);
    else if (was.zoom) app.setView(Math.min(value(p.x), value(was.start.x)), Math.max(value(p.x), value(was.start.x)));
  });
  canvas.addEventListener('pointerleave', () => tip(''));
  canvas.addEventListener('dblclick', (e) => app.zoom(0.4, value(at(e).x)));
  canvas.addEventListener('wheel', (e) => {
    if (document.activeElement !== canvas && !e.ctrlKey && Math.abs(e.deltaX) <= Math.abs(e.deltaY)) return;
    if (Math.abs(e.deltaX) > Math.abs(e.deltaY)) app.pan(e.deltaX / canvas.clientWidth);
    else app.zoom(Math.exp(Math.max(-1, Math.min(1, e.deltaY / 300))), value(at(e).x));
    e.preventDefault();
  }, { passive: false });
}

const actions = {
  in: () => app.zoom(0.5), out: () => app.zoom(2), left: () => app.pan(-0.2), right: () => app.pan(0.2),
  fit: () => { const w = app.wholeView(); app.setView(w.from, w.to); },
  culprit: () => app.show(app.culprit), messenger: () => app.show(app.messenger), both: () => app.showBoth(),
};
const viewKeys = { '+': 'in', '=': 'in', '-': 'out', ArrowLeft: 'left', ArrowRight: 'right', 0: 'fit', c: 'culprit', m: 'messenger', b: 'both' };

function keys(own) {
  return (e) => {
    if (e.ctrlKey || e.metaKey || e.altKey) return;
    if (own[e.key]) own[e.key]();
    else if (viewKeys[e.key]) actions[viewKeys[e.key]]();
    else return;
    e.preventDefault();
  };
}

// ---- all together

for (let i = 0; i < count; i++) app.extent = Math.max(app.extent, ev.t[i] + ev.took[i]);

const timeline = makeTimeline($('timeline-canvas'), $('timeline-scroll'), app);
const map = makeMap($('memory-canvas'), $('memory-scroll'), app);
const list = makeList($('rows'), $('rows-space'), app);

function selectBlock(b) {
  if (b < 0) return;
  map.select(b);
  const box = $('block'), p = document.createElement('p');
  p.textContent = map.text(b).join('; ') + ' ';
  p.append(eventButton(block.begin[b]));
  if (block.end[b]) p.append(' ', eventButton(block.end[b] - 1));
  box.replaceChildren(p);
  app.changed();
}

listen($('timeline-canvas'), (x, y) => { const i = timeline.hit(x, y); return i >= 0 ? shortText(i) : ''; },
  (x, y) => { const i = timeline.hit(x, y); if (i >= 0) app.select(i); });
listen($('memory-canvas'), (x, y) => { const b = map.hit(x, y); return b >= 0 ? map.text(b).join('\n') : ''; },
  (x, y) => selectBlock(map.hit(x, y)));
$('timeline-canvas').addEventListener('keydown', keys({
  n: () => timeline.step(1), p: () => timeline.step(-1), ArrowUp: () => timeline.moveTrack(-1), ArrowDown: () => timeline.moveTrack(1),
}));
$('memory-canvas').addEventListener('keydown', keys({
  ArrowUp: () => selectBlock(map.step(-1)), ArrowDown: () => selectBlock(map.step(1)),
}));
for (const button of document.querySelectorAll('[data-do]')) {
  button.addEventListener('click', () => actions[button.dataset.do]());
  if ((button.dataset.do === 'culprit' && app.culprit < 0) || (button.dataset.do === 'messenger' && app.messenger < 0) ||
      (button.dataset.do === 'both' && (app.culprit < 0 || app.partner < 0))) button.disabled = true;
}
$('by-order').addEventListener('change', (e) => {
  app.byOrder = e.target.checked;
  if (app.selected >= 0) app.centre(app.selected); else actions.fit();
});
$('theme').addEventListener('click', () => setTheme(app.theme === 'dark' ? 'light' : 'dark'));
$('filters').addEventListener('input', applyFilters);
$('kinds').addEventListener('input', applyFilters);
$('filters').addEventListener('submit', (e) => e.preventDefault());
$('filters').addEventListener('reset', () => {
  for (const box of $('kinds').querySelectorAll('input')) box.checked = true;
  setTimeout(applyFilters);
});
addEventListener('resize', () => { app.changed(); list.draw(); });
addEventListener('hashchange', followHash);
document.addEventListener('click', (e) => { // the same link a second time is no change of hash
  const link = e.target.closest && e.target.closest('a[href^="#event-"]');
  if (link && link.hash === location.hash) followHash();
});

$('timeline-note').textContent = count + ' ' + T('events') + (raw.omitted ? ' ' + T('of') + ' ' + (count + raw.omitted) : '');
$('memory-note').textContent = blockCount + ' ' + T('blocks') + (raw.blocksOmitted ? ' ' + T('of') + ' ' + (blockCount + raw.blocksOmitted) : '');
document.documentElement.dataset.theme = app.theme = matchMedia('(prefers-color-scheme: dark)').matches ? 'dark' : 'light';
makeFilters();
app.view = app.wholeView();
applyFilters();
timeline.draw();
map.draw();
if (app.culprit >= 0) app.select(app.culprit);
if (app.culprit >= 0 && app.partner >= 0) app.showBoth();
followHash();
// Milliseconds from the start of loading to the first picture; the tests read it.
document.documentElement.dataset.ready = String(Math.round(performance.now()));
