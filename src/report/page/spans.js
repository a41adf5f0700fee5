// A timeline: bars from begin to end on tracks. Spans of a track that overlap get lanes of their own; those thinner than
// a pixel are drawn together, so that thousands of them cost no more than the screen has pixels.

function spanLanes(figure) {
  const tracks = figure.tracks.map(name => ({name: name, spans: [], lanes: 1}));
  figure.spans.forEach(([track, name, group, begin, end]) => {
    if (begin === null || end === null) return;
    tracks[track].spans.push({track: track, name: figure.names[name], group: group, begin: begin, end: Math.max(begin, end)});
  });
  for (const track of tracks) {
    // Longer ones first: what they contain goes below them.
    track.spans.sort((a, b) => a.begin - b.begin || b.end - a.end);
    const ends = [];
    for (const span of track.spans) {
      let lane = ends.findIndex(end => end <= span.begin + 1e-12 * Math.abs(span.begin));
      if (lane < 0) lane = ends.length;
      ends[lane] = span.end;
      span.lane = lane;
    }
    track.lanes = Math.max(1, ends.length);
  }
  return tracks;
}

function drawSpans(figure, box, state) {
  const tracks = state.tracks || (state.tracks = spanLanes(figure));
  const all = tracks.flatMap(track => track.spans);
  if (!state.full) state.full = [d3.min(all, span => span.begin) || 0, d3.max(all, span => span.end) || 1];
  if (!state.zoom) state.zoom = state.full.slice();
  const lanes = d3.sum(tracks, track => track.lanes), laneHeight = lanes > 60 ? 10 : lanes > 24 ? 14 : 20, head = 19;
  const height = lanes * laneHeight + tracks.length * (head + 6);
  const x = makeAxis({...figure.x, log: false, low: undefined, high: undefined}, state.zoom, {tight: true, tickSpace: 70});
  const none = {scale: d3.scaleLinear().domain([0, 1]), title: '', ticks: () => []};
  const frame = makeFrame(box, figure, {x: x, y: none, height: height + 8 + 46, top: 8, left: 2, yBare: true, yTicks: []});
  const hits = [], area = makeSvg('g', {'clip-path': frame.clip}), names = makeSvg('g', {'aria-hidden': 'true'});
  append(frame.plot, [area, names]);
  let top = 0;
  for (const track of tracks) {
    append(names, [makeSvg('line', {class: 'track-line', x2: frame.width, y1: top, y2: top}),
      makeSvg('text', {class: 'track-name', x: 2, y: top + 14}, fitted(track.name, frame.width - 4, 11.5))]);
    top += head;
    drawTrack(figure, track, {top: top, laneHeight: laneHeight, x: x.scale, width: frame.width, area: area, hits: hits, state: state});
    top += track.lanes * laneHeight + 6;
  }
  return {svg: frame.svg, plot: frame.plot, hits: hits, left: frame.left, top: frame.top, scale: x.scale, plotHeight: frame.height};
}

function drawTrack(figure, track, view) {
  const [from, to] = view.state.zoom, last = [];
  for (const span of track.spans) {
    if (span.end < from || span.begin > to || !view.state.visible(span.group)) continue;
    const left = Math.max(-2, view.x(span.begin)), right = Math.min(view.width + 2, view.x(span.end));
    const before = last[span.lane];
    if (before && before.group === span.group && right - before.left < 1.5) {
      before.spans.push(span);
      before.right = Math.max(before.right, right);
      continue;
    }
    last[span.lane] = {left: left, right: right, group: span.group, spans: [span], lane: span.lane};
    view.hits.push(last[span.lane]);
  }
  // All marks of this track are complete now: draw those that are not drawn yet.
  for (const mark of view.hits.filter(each => !each.box)) {
    const y = view.top + mark.lane * view.laneHeight, width = Math.max(0.8, mark.right - mark.left), look = view.state.looks[mark.group];
    mark.box = [mark.left, y, mark.left + width, y + view.laneHeight - 1];
    mark.x = mark.left + width / 2;
    mark.y = y;
    mark.lines = () => spanLines(figure, track, mark, look);
    const rect = makeSvg('rect', {class: width > 4 ? 'span span-edged' : 'span', x: mark.left, y: y, width: width, height: view.laneHeight - 1, 'data-spans': mark.spans.length,
      rx: width > 6 ? 2 : 0});
    rect.style.setProperty('--c', look.color);
    append(view.area, [rect]);
    const inside = Math.min(view.width, mark.right) - Math.max(0, mark.left) - 8;
    if (inside < 22 || view.laneHeight < 14 || mark.spans.length > 1) continue;
    const words = fitted(mark.spans[0].name, inside, 10.5);
    if (words.length < 2) continue;
    const text = makeSvg('text', {class: 'span-name', x: Math.max(0, mark.left) + 4, y: y + view.laneHeight / 2 - 0.5, dy: '0.34em'}, words);
    text.style.setProperty('--on', look.color.replace('--c', '--on-c'));
    append(view.area, [text]);
  }
}

function spanLines(figure, track, mark, look) {
  const unit = figure.x.unit, group = figure.groups[mark.group];
  if (mark.spans.length > 1) {
    return [{text: mark.spans.length + ' spans', strong: true, look: look}, {text: track.name}, ['Together', quantityText(d3.sum(mark.spans, span => span.end - span.begin), unit)], {text: 'Zoom in to see them one by one'}];
  }
  const span = mark.spans[0];
  return [{text: span.name, strong: true, look: look}, {text: track.name + (group ? ' · ' + group : '')},
    ['Begins', quantityText(span.begin, unit)], ['Takes', quantityText(span.end - span.begin, unit)]];
}

// Zooming by wheel with Ctrl, by dragging over a range, by buttons and keys.
function spanControls(view) {
  const state = view.state;
  const zoomTo = (from, to) => {
    const [low, high] = state.full, least = (high - low) * 1e-6;
    const length = Math.min(high - low, Math.max(to - from, least));
    const start = Math.max(low, Math.min(from, high - length));
    state.zoom = [start, start + length];
    reset.disabled = length > (high - low) * 0.999999;
    if (!state.pending) requestAnimationFrame(() => { state.pending = false; view.draw(); });
    state.pending = true;
  };
  const scaleBy = (factor, around) => {
    const [from, to] = state.zoom, middle = around === undefined ? (from + to) / 2 : around;
    zoomTo(middle - (middle - from) * factor, middle + (to - middle) * factor);
  };
  const move = share => zoomTo(state.zoom[0] + share * (state.zoom[1] - state.zoom[0]), state.zoom[1] + share * (state.zoom[1] - state.zoom[0]));
  const at = event => view.drawn.scale.invert(event.clientX - view.box.getBoundingClientRect().left - view.drawn.left);
  const button = (text, title, action) => make('button', {type: 'button', class: 'tool', title: title, 'aria-label': title, onclick: action}, text);
  const reset = button('All', 'Show the whole timeline', () => zoomTo(...state.full));
  reset.disabled = true;

  view.box.addEventListener('wheel', event => {
    if (event.ctrlKey || event.metaKey) {
      event.preventDefault();
      scaleBy(Math.pow(1.0025, event.deltaY), at(event));
    } else if (Math.abs(event.deltaX) > Math.abs(event.deltaY)) {
      event.preventDefault();
      move(event.deltaX / 800);
    }
  }, {passive: false});
  let drag = null;
  view.box.addEventListener('pointerdown', event => {
    if (event.button !== 0) return;
    drag = {from: event.clientX, time: at(event), zoom: state.zoom.slice(), touch: event.pointerType !== 'mouse', brush: null};
  });
  window.addEventListener('pointermove', event => {
    if (!drag) return;
    if (drag.touch) {
      const shift = (event.clientX - drag.from) / view.box.clientWidth * (drag.zoom[1] - drag.zoom[0]);
      if (state.zoom[1] - state.zoom[0] < (state.full[1] - state.full[0]) * 0.999) zoomTo(drag.zoom[0] - shift, drag.zoom[1] - shift);
      return;
    }
    if (Math.abs(event.clientX - drag.from) < 4) return;
    hideTip();
    if (!drag.brush) append(view.drawn.plot, [drag.brush = makeSvg('rect', {class: 'brush', y: 0, height: view.drawn.plotHeight})]);
    const a = view.drawn.scale(drag.time), b = view.drawn.scale(at(event));
    setAttributes(drag.brush, {x: Math.min(a, b), width: Math.abs(a - b)});
  });
  window.addEventListener('pointerup', event => {
    if (drag && drag.brush) {
      const ends = [drag.time, at(event)].sort((a, b) => a - b);
      zoomTo(Math.max(ends[0], state.full[0]), Math.min(ends[1], state.full[1]));
    }
    drag = null;
  });
  window.addEventListener('pointercancel', () => { drag = null; });
  return [button('−', 'Zoom out', () => scaleBy(2)), button('+', 'Zoom in', () => scaleBy(0.5)),
    button('‹', 'Move to earlier', () => move(-0.5)), button('›', 'Move to later', () => move(0.5)), reset];
}
