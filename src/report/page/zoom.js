// Timelines can be zoomed: by wheel with Ctrl, by dragging over a range, by buttons.

// Puts the spans of the window in the place of all of them; the ends of the axis tell where it lies.
function showWindow(view) {
  const svg = view.svg, {low, high, from, to} = view.x, paths = [...svg.querySelectorAll('.span')];
  const whole = low === view.full.low && high === view.full.high;
  const shapes = paths.map(() => []), counts = paths.map(() => 0), until = {}, names = [];
  for (const mark of view.marks) {
    const [left, top, right, bottom] = mark.box, key = mark.row + ' ' + mark.series, wide = right - left > 4 ? right - left - 0.6 : right - left;
    ++counts[mark.series];
    if (right - (until[key] || -1) < 0.4) continue;
    until[key] = right;
    shapes[mark.series].push('M' + left.toFixed(1) + ' ' + top.toFixed(1) + 'h' + wide.toFixed(1) + 'V' + bottom.toFixed(1) + 'h-' + wide.toFixed(1) + 'z');
    const seen = [Math.max(left, from), Math.min(right, to)];
    const letters = Math.floor((seen[1] - seen[0] - 6) / 6.2);
    if (bottom - top < 10 || letters < 4) continue;
    names.push(makeSvg('text', {x: (seen[0] + seen[1]) / 2, y: (top + bottom) / 2 + 3.5, 'font-size': 10, fill: view.onColors[mark.series],
      'text-anchor': 'middle', 'data-series': mark.series}, mark.name.length > letters ? mark.name.slice(0, letters - 1) + '…' : mark.name));
  }
  paths.forEach((path, group) => setAttributes(path, {d: whole ? view.paths[group] : shapes[group].join(''), 'data-spans': counts[group]}));
  svg.querySelector('.span-names').replaceChildren(...(whole ? view.labels : names));
  const tick = (place, value, anchor) => makeSvg('text', {x: place, y: view.y.from + 16.2, 'font-size': 12, fill: 'var(--ink)', 'text-anchor': anchor}, quantityText(value, view.figure.x.unit, 6));
  svg.querySelector('.x-ticks').replaceChildren(...(whole ? view.ticks : [tick(from, low, 'start'), tick(to, high, 'end')]));
  view.showHidden();
}

function spanControls(view) {
  const svg = view.svg, full = view.x;
  Object.assign(view, {full: full, labels: [...svg.querySelector('.span-names').childNodes], ticks: [...svg.querySelector('.x-ticks').childNodes],
    paths: [...svg.querySelectorAll('.span')].map(path => path.getAttribute('d')),
    onColors: [...svg.querySelectorAll('.span')].map(path => path.getAttribute('fill').replace('--c', '--on-c'))});
  let pending = false, drag = null;
  const zoomTo = (low, high) => {
    const length = Math.min(full.high - full.low, Math.max(high - low, (full.high - full.low) * 1e-6));
    const start = Math.max(full.low, Math.min(low, full.high - length));
    const whole = length > (full.high - full.low) * 0.999999;
    view.x = whole ? full : scaleOf([start, start + length, 0, full.from, full.to].join(' '));
    reset.disabled = whole;
    if (!pending) requestAnimationFrame(() => {
      pending = false;
      view.marks = spanMarks(view);
      showWindow(view);
    });
    pending = true;
  };
  const scaleBy = (factor, around = (view.x.low + view.x.high) / 2) => zoomTo(around - (around - view.x.low) * factor, around + (view.x.high - around) * factor);
  const move = share => zoomTo(view.x.low + share * (view.x.high - view.x.low), view.x.high + share * (view.x.high - view.x.low));
  const at = event => view.x.low + (view.place(event)[0] - view.x.from) / (view.x.to - view.x.from) * (view.x.high - view.x.low);
  const button = (text, title, action) => make('button', {type: 'button', class: 'tool', title: title, 'aria-label': title, onclick: action}, text);
  const reset = button('All', 'Show the whole timeline', () => zoomTo(full.low, full.high));
  reset.disabled = true;

  view.box.addEventListener('wheel', event => {
    const sideways = Math.abs(event.deltaX) > Math.abs(event.deltaY);
    if (!event.ctrlKey && !event.metaKey && (!sideways || reset.disabled)) return;
    event.preventDefault();
    if (event.ctrlKey || event.metaKey) scaleBy(Math.pow(1.0025, event.deltaY), at(event));
    else move(event.deltaX / 800);
  }, {passive: false});
  view.box.addEventListener('pointerdown', event => {
    if (event.button === 0 && event.pointerType === 'mouse') drag = {from: view.place(event)[0], time: at(event), brush: null};
  });
  window.addEventListener('pointermove', event => {
    const here = drag ? view.place(event)[0] : 0;
    if (!drag || Math.abs(here - drag.from) < 4) return;
    hideTip();
    if (!drag.brush) append(svg, [drag.brush = makeSvg('rect', {class: 'brush', y: view.y.to, height: view.y.from - view.y.to})]);
    setAttributes(drag.brush, {x: Math.min(drag.from, here), width: Math.abs(here - drag.from)});
  });
  window.addEventListener('pointerup', event => {
    if (drag && drag.brush) {
      drag.brush.remove();
      zoomTo(...[drag.time, at(event)].sort((a, b) => a - b));
    }
    drag = null;
  });
  return [button('−', 'Zoom out', () => scaleBy(2)), button('+', 'Zoom in', () => scaleBy(0.5)),
    button('‹', 'Move to earlier', () => move(-0.5)), button('›', 'Move to later', () => move(0.5)), reset];
}
