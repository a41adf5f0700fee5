// Lines, points, trajectories and roofs over two axes.

function drawable(figure) {
  return point => point[0] !== null && point[1] !== null && (!figure.x.log || point[0] > 0) && (!figure.y.log || point[1] > 0);
}

// The corners that must be seen: where a roof bends, and where two cross.
function ridges(figure, roofs) {
  const to = axis => axis.log ? Math.log : value => value, from = axis => axis.log ? Math.exp : value => value;
  const corners = roofs.flatMap(roof => roof.points.slice(1, -1));
  const pieces = roofs.flatMap(roof => roof.points.slice(1).map((end, index) =>
    [to(figure.x)(roof.points[index][0]), to(figure.y)(roof.points[index][1]), to(figure.x)(end[0]), to(figure.y)(end[1])]));
  for (const [i, a] of pieces.entries()) {
    for (const b of pieces.slice(i + 1)) {
      const ax = a[2] - a[0], ay = a[3] - a[1], bx = b[2] - b[0], by = b[3] - b[1], cross = ax * by - ay * bx;
      if (Math.abs(cross) < 1e-6 * Math.hypot(ax, ay) * Math.hypot(bx, by)) continue;
      const s = ((b[0] - a[0]) * by - (b[1] - a[1]) * bx) / cross, t = ((b[0] - a[0]) * ay - (b[1] - a[1]) * ax) / cross;
      // Ends that touch are not crossings: roofs often share a piece.
      if (s <= 1e-9 || s >= 1 - 1e-9 || t <= 1e-9 || t >= 1 - 1e-9) continue;
      corners.push([from(figure.x)(a[0] + s * ax), from(figure.y)(a[1] + s * ay)]);
    }
  }
  return corners;
}

// The part of a line of screen points inside the plot (Liang and Barsky), as runs of points.
function clipped(points, width, height) {
  const parts = [];
  for (let i = 1; i < points.length; ++i) {
    const [x0, y0] = points[i - 1], dx = points[i][0] - x0, dy = points[i][1] - y0;
    let from = 0, to = 1, outside = false;
    for (const [p, q] of [[-dx, x0], [dx, width - x0], [-dy, y0], [dy, height - y0]]) {
      if (p === 0) outside = outside || q < 0;
      else if (p < 0) from = Math.max(from, q / p);
      else to = Math.min(to, q / p);
    }
    if (outside || from >= to) continue;
    const start = [x0 + from * dx, y0 + from * dy], end = [x0 + to * dx, y0 + to * dy];
    const last = parts[parts.length - 1];
    if (last && from === 0) last.push(end);
    else parts.push([start, end]);
  }
  return parts;
}

function drawXy(figure, box, state) {
  const shown = figure.series.map((series, index) => ({...series, points: series.points.filter(drawable(figure)), look: state.looks[index], index: index}))
    .filter(series => state.visible(series.index));
  const roofs = shown.filter(series => series.style === 'roof'), data = shown.filter(series => series.style !== 'roof');
  const seen = data.flatMap(series => series.points);
  const corners = ridges(figure, roofs);
  // Roofs alone still show themselves.
  const extra = seen.length ? corners : roofs.flatMap(roof => roof.points);
  const xs = seen.map(point => point[0]), ys = seen.flatMap(point => [point[1], point[2], point[3]].filter(value => typeof value === 'number'));
  const categories = figure.x.categories;
  const narrow = box.clientWidth < 560;
  const xValues = [...xs, ...extra.map(point => point[0])], yValues = [...ys, ...extra.map(point => 1.25 * point[1])];
  // A roof shows its slope over three decades, most of them before its ridge.
  const decades = roofs.length && figure.x.log ? Math.log10(d3.max(xValues) / d3.min(xValues)) : 3;
  if (decades < 3) xValues.push(d3.min(xValues) / Math.pow(10, 0.7 * (3 - decades)), d3.max(xValues) * Math.pow(10, 0.3 * (3 - decades)));
  const x = makeAxis(figure.x, xValues, {tickSpace: 64, tight: !roofs.length && !figure.x.log && !data.every(series => series.style === 'points'), whole: true});
  const y = makeAxis(figure.y, yValues, {tickSpace: 42});
  const frame = makeFrame(box, figure, {x: x, y: y, height: roofs.length ? (narrow ? 380 : 500) : (narrow ? 300 : 360),
    clipMargin: 7,
    xTicks: categories ? categories.map((name, index) => ({value: index, text: name})) : null});
  const at = point => [x.scale(point[0]), y.scale(point[1])];
  const room = new Room(frame.width, frame.height), hits = [];
  const area = makeSvg('g', {'clip-path': frame.clip}), over = makeSvg('g');
  append(frame.plot, [area, over]);

  // Labels keep clear of all points, and of each other.
  data.forEach(series => { if (series.style !== 'line' && series.style !== 'step' && series.points.length <= 200) {
    series.points.forEach(point => { const [px, py] = at(point); room.take([px - 5, py - 5, px + 5, py + 5]); }); } });
  roofs.forEach(roof => drawRoof(roof, at, frame, room, area));
  data.forEach(series => drawSeries(series, at, y, area, hits, figure));
  const labelled = data.filter(series => series.style !== 'line' && series.style !== 'step').flatMap(series => series.points.filter(point => point[4]).map(point => ({point: point, series: series})));
  if (labelled.length <= 80) labelled.forEach(({point, series}) => {
    const [px, py] = at(point);
    const label = px >= 0 && py >= 0 && px <= frame.width && py <= frame.height ? labelPoint(room, px, py, point[4]) : null;
    if (label) { label.style.setProperty('--c', series.look.color); append(over, [label]); }
  });
  return {svg: frame.svg, plot: frame.plot, hits: hits, left: frame.left, top: frame.top};
}

function drawRoof(roof, at, frame, room, area) {
  const parts = clipped(roof.points.map(at), frame.width, frame.height);
  const group = makeSvg('g', {class: 'roof-line', 'data-series': roof.index});
  group.style.setProperty('--c', roof.look.color);
  for (const part of parts) append(group, [makeSvg('path', {class: 'roof', d: d3.line()(part), 'stroke-dasharray': dashOf(roof.look)})]);
  const longest = parts.slice().sort((a, b) => b.length - a.length)[0];
  const label = longest ? labelLine(room, longest, roof.name) : null;
  if (label) append(group, [label]);
  append(area, [group]);
}

function drawSeries(series, at, y, area, hits, figure) {
  const group = makeSvg('g', {class: 'series', 'data-series': series.index, 'data-points': series.points.length});
  group.style.setProperty('--c', series.look.color);
  const joined = series.style === 'line' || series.style === 'line_points' || series.style === 'step';
  const withMarks = series.style === 'points' || series.style === 'line_points' || series.points.length === 1;
  const curve = series.style === 'step' ? d3.curveStepAfter : d3.curveLinear;
  const ranged = series.points.filter(point => typeof point[2] === 'number' && typeof point[3] === 'number' && (!figure.y.log || point[2] > 0));
  if (!withMarks && ranged.length > 1) {
    append(group, [makeSvg('path', {class: 'band', d: d3.area().curve(curve).x(point => at(point)[0])
      .y0(point => y.scale(point[2])).y1(point => y.scale(point[3]))(ranged)})]);
  }
  if (joined && series.points.length > 1) {
    append(group, [makeSvg('path', {class: 'stroke', d: d3.line().curve(curve)(series.points.map(at)), 'stroke-dasharray': series.style === 'line_points' ? null : dashOf(series.look)})]);
  }
  if (withMarks) {
    for (const point of ranged) {
      const px = at(point)[0], low = y.scale(point[2]), high = y.scale(point[3]);
      if (Math.abs(low - high) < 3) continue;
      append(group, [makeSvg('path', {class: 'error', d: 'M' + px + ',' + low + 'V' + high + 'M' + (px - 3) + ',' + low + 'h6M' + (px - 3) + ',' + high + 'h6'})]);
    }
    const shape = markPath(series.look, series.points.length > 300 ? 16 : series.style === 'points' ? 52 : 42);
    for (const point of series.points) {
      const [px, py] = at(point);
      append(group, [makeSvg('path', {class: 'mark', d: shape, transform: 'translate(' + px + ',' + py + ')'})]);
    }
  }
  append(area, [group]);
  for (const point of series.points) {
    const [px, py] = at(point);
    hits.push({x: px, y: py, lines: () => pointLines(figure, series, point)});
  }
}

function pointLines(figure, series, point) {
  const xName = figure.x.title || 'x', yName = figure.y.title || 'y';
  const categories = figure.x.categories;
  const lines = [{text: series.name, strong: true, look: series.look}];
  [point[4], point[5]].filter(Boolean).forEach(text => lines.push({text: text}));
  lines.push([xName, categories ? categories[point[0]] : quantityText(point[0], figure.x.unit)], [yName, quantityText(point[1], figure.y.unit)]);
  if (typeof point[2] === 'number' && typeof point[3] === 'number') {
    lines.push(['95% interval', quantityText(point[2], figure.y.unit) + ' – ' + quantityText(point[3], figure.y.unit)]);
  }
  return lines;
}
