// list.js - the event list: of a hundred thousand rows only those in view exist.

const ROW = 23;

function makeList(box, space, app) {
  const pool = [];
  let shown = new Uint32Array(0); // indices that pass the filters

  function filter() {
    const out = new Uint32Array(count);
    let n = 0;
    for (let i = 0; i < count; i++) if (app.mask[i]) out[n++] = i;
    shown = out.slice(0, n);
    space.style.height = n * ROW + 'px';
    draw();
    return n;
  }

  function makeRow() {
    const row = document.createElement('div');
    row.setAttribute('role', 'row');
    row.cells = [];
    for (let c = 0; c < 9; c++) {
      const cell = document.createElement('span');
      cell.setAttribute('role', 'gridcell');
      row.append(cell);
      row.cells.push(cell);
    }
    row.addEventListener('click', () => app.select(row.index, { reveal: true, fromList: true }));
    space.append(row);
    return row;
  }

  function fill(row, n) {
    const i = shown[n];
    row.index = i;
    row.id = 'row-' + i;
    row.style.top = n * ROW + 'px';
    row.className = 'row' + (n % 2 ? ' odd' : '') + (failed(i) ? ' failed' : '') + (i === app.culprit ? ' culprit' : '') +
      (i === app.messenger ? ' messenger' : '') + (i === app.other ? ' collides' : '') + (i === app.selected ? ' selected' : '');
    row.setAttribute('aria-selected', i === app.selected ? 'true' : 'false');
    row.setAttribute('aria-rowindex', n + 2);
    const texts = ['#' + ev.seq[i], ev.thread[i] || ev.t[i] ? secondsText(ev.t[i]) : '–', ev.thread[i] ? 't' + ev.thread[i] : '',
      ev.stream[i] ? 's' + ev.stream[i] : '', kindOf(i).text, titleOf(i), callText(i), statusText(i), whatText(i)];
    texts.forEach((text, c) => {
      if (row.cells[c].textContent !== text) row.cells[c].textContent = text;
      row.cells[c].title = text.length > 14 ? text : '';
    });
    row.hidden = false;
  }

  function draw() {
    const first = Math.max(0, Math.floor(box.scrollTop / ROW) - 4);
    const last = Math.min(shown.length, Math.ceil((box.scrollTop + box.clientHeight) / ROW) + 4);
    for (let k = 0; k < Math.max(pool.length, last - first); k++) {
      if (k >= pool.length) pool.push(makeRow());
      if (first + k < last) fill(pool[k], first + k);
      else pool[k].hidden = true;
    }
    if (app.selected >= 0) box.setAttribute('aria-activedescendant', 'row-' + app.selected);
  }

  function placeOf(i) {
    const n = lowerBound(shown, i);
    return n < shown.length && shown[n] === i ? n : -1;
  }

  function reveal(i) {
    const n = placeOf(i);
    if (n < 0) return;
    const y = n * ROW;
    if (y < box.scrollTop || y + ROW > box.scrollTop + box.clientHeight) box.scrollTop = Math.max(0, y - box.clientHeight / 2);
    draw();
  }

  box.addEventListener('scroll', draw);
  box.addEventListener('keydown', (e) => {
    const page = Math.max(1, Math.floor(box.clientHeight / ROW) - 1);
    const moves = { ArrowDown: 1, ArrowUp: -1, PageDown: page, PageUp: -page, Home: -count, End: count };
    if (e.key === 'Enter' && app.selected >= 0) {
      app.show(app.selected);
      e.preventDefault();
    }
    if (!(e.key in moves) || !shown.length) return;
    const n = placeOf(app.selected);
    const to = n < 0 ? (moves[e.key] > 0 ? 0 : shown.length - 1) : n + moves[e.key];
    app.select(shown[Math.min(shown.length - 1, Math.max(0, to))], { reveal: true, fromList: true });
    reveal(app.selected);
    e.preventDefault();
  });
  return { filter, draw, reveal };
}
