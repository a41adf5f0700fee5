// A network: boxes in rows by their depth (the longest path to them), rows flowing down and on into the next column.
// Arrows to the next row go straight down; longer ones run in channels to the right of the boxes, one for each box
// that they come from.

function networkRows(figure) {
  const count = figure.nodes.length, depth = new Array(count).fill(0);
  // Nodes come in the order of execution: arrows against it would be cycles.
  const edges = [...new Set(figure.edges.filter(([from, to]) => from !== to).map(String))].map(key => key.split(',').map(Number));
  const sources = figure.nodes.map(() => []);
  edges.forEach(([from, to]) => sources[to].push(from));
  const order = d3.range(count), forward = edges.every(([from, to]) => from < to);
  if (!forward) order.splice(0, count, ...topological(count, edges));
  const place = new Map(order.map((node, index) => [node, index]));
  const rows = [], lane = new Array(count).fill(0);
  for (const node of order) {
    depth[node] = d3.max(sources[node].filter(from => place.get(from) < place.get(node)), from => depth[from] + 1) || 0;
    const row = rows[depth[node]] || (rows[depth[node]] = []);
    const taken = new Set(row.map(other => lane[other]));
    const wanted = sources[node].map(from => lane[from]).find(each => !taken.has(each));
    let free = 0;
    while (taken.has(free)) ++free;
    lane[node] = wanted === undefined ? free : wanted;
    row.push(node);
  }
  return {rows: rows, depth: depth, lane: lane, edges: edges.filter(([from, to]) => depth[from] < depth[to]), lanes: 1 + (d3.max(lane) || 0)};
}

function topological(count, edges) {
  const waiting = new Array(count).fill(0), next = d3.range(count).map(() => []), done = [];
  edges.forEach(([from, to]) => { ++waiting[to]; next[from].push(to); });
  const ready = d3.range(count).filter(node => !waiting[node]);
  while (ready.length) {
    const node = ready.shift();
    done.push(node);
    next[node].forEach(to => --waiting[to] || ready.push(to));
  }
  return done.concat(d3.range(count).filter(node => !done.includes(node)));
}

// Where columns begin: near even parts, where fewest arrows are cut.
function columnStarts(network, count) {
  const rows = network.rows.length, cut = new Array(rows + 1).fill(0);
  network.edges.forEach(([from, to]) => { for (let row = network.depth[from] + 1; row <= network.depth[to]; ++row) ++cut[row]; });
  const starts = [0], slack = Math.max(1, Math.round(rows / count / 6));
  for (let column = 1; column < count; ++column) {
    const even = Math.round(column * rows / count);
    const near = d3.range(Math.max(starts[column - 1] + 1, even - slack), Math.min(rows, even + slack + 1));
    starts.push(near.reduce((best, row) => cut[row] + Math.abs(row - even) / 100 < cut[best] + Math.abs(best - even) / 100 ? row : best, near[0]));
  }
  return starts.concat(rows);
}

// The long arrows' channels: for each column a list of {from: node, first, last: rows, targets}, with a channel number.
function networkChannels(network, starts) {
  const columnOf = row => d3.bisectRight(starts, row) - 1;
  const columns = starts.slice(1).map(() => []);
  const find = (column, node, first) => {
    let bus = columns[column].find(each => each.from === node);
    if (!bus) columns[column].push(bus = {from: node, first: first, last: first, targets: [], leaves: false, enters: first < network.depth[node]});
    return bus;
  };
  for (const [from, to] of network.edges) {
    const a = network.depth[from], b = network.depth[to], home = columnOf(a), away = columnOf(b);
    if (home === away && b === a + 1) continue;
    const bus = find(home, from, a);
    if (home === away) {
      bus.targets.push(to);
      bus.last = Math.max(bus.last, b);
    } else {
      bus.leaves = true;
      bus.last = starts[home + 1];
      const entry = find(away, from, starts[away] - 1);
      entry.enters = true;
      entry.targets.push(to);
      entry.last = Math.max(entry.last, b);
    }
  }
  for (const column of columns) {
    const ends = [];
    column.sort((a, b) => a.first - b.first || a.last - b.last);
    for (const bus of column) {
      bus.channel = ends.findIndex(end => end <= bus.first);
      if (bus.channel < 0) bus.channel = ends.length;
      ends[bus.channel] = bus.last;
    }
    column.channels = ends.length;
  }
  return columns;
}

// A line through the points with round corners.
function roundedPath(points) {
  const clean = points.filter((point, index) => !index || Math.hypot(point[0] - points[index - 1][0], point[1] - points[index - 1][1]) > 0.1);
  let path = 'M' + clean[0];
  for (let i = 1; i < clean.length - 1; ++i) {
    const corner = clean[i];
    const toward = (other) => {
      const length = Math.hypot(other[0] - corner[0], other[1] - corner[1]), share = Math.min(4, length / 2) / length;
      return [corner[0] + (other[0] - corner[0]) * share, corner[1] + (other[1] - corner[1]) * share];
    };
    path += 'L' + toward(clean[i - 1]) + 'Q' + corner + ' ' + toward(clean[i + 1]);
  }
  return path + 'L' + clean[clean.length - 1];
}

function drawDiagram(figure, box, state) {
  const network = state.network || (state.network = networkRows(figure));
  const compact = figure.nodes.length > 40;
  const boxHeight = compact ? 22 : 40, gap = compact ? 14 : 20, least = compact ? 170 : 150, laneGap = 10, gutter = 34;
  const width = Math.max(300, box.clientWidth) - 4;
  const rows = network.rows.length;
  const count = Math.max(1, Math.min(4, Math.floor(width / (network.lanes * (least + laneGap) + 60 + gutter)), Math.ceil(rows / 12)));
  const starts = columnStarts(network, count), columns = networkChannels(network, starts);
  const channels = d3.max(columns, column => column.channels) || 0;
  const spacing = Math.max(3, Math.min(9, 90 / Math.max(1, channels))), channelWidth = channels ? 8 + channels * spacing : 0;
  const laneWidth = Math.max(network.lanes > 3 ? 110 : 130, Math.min(300, (width / count - gutter - channelWidth) / network.lanes - laneGap));
  const step = boxHeight + gap, columnWidth = network.lanes * (laneWidth + laneGap) + channelWidth + gutter;
  const tallest = d3.max(starts.slice(1), (end, index) => end - starts[index]) || 1;
  const crossings = d3.sum(columns, column => column.filter(bus => bus.leaves).length);
  const margin = 10 + (count > 1 ? 10 + crossings * 3 : 0);
  const fullWidth = Math.ceil(count * columnWidth - gutter + 8), fullHeight = Math.ceil(tallest * step + 2 * margin);

  const columnOf = row => d3.bisectRight(starts, row) - 1;
  const x = node => 4 + columnOf(network.depth[node]) * columnWidth + network.lane[node] * (laneWidth + laneGap);
  const rowTop = row => margin + (row - starts[Math.max(0, columnOf(row))]) * step;
  const y = node => rowTop(network.depth[node]);
  // A box alone in its row on the main way has the row to itself.
  const total = network.lanes * (laneWidth + laneGap) - laneGap;
  const wide = node => network.lane[node] === 0 && network.rows[network.depth[node]].length === 1 ? total : laneWidth;
  const channelX = (column, channel) => 4 + column * columnWidth + network.lanes * (laneWidth + laneGap) + 2 + channel * spacing;

  const marker = figure.id + '-arrow';
  const svg = makeSvg('svg', {class: 'plot diagram', viewBox: '0 0 ' + fullWidth + ' ' + fullHeight, width: fullWidth, height: fullHeight, role: 'img', 'aria-label': describeFigure(figure)},
    makeSvg('defs', null, makeSvg('marker', {id: marker, viewBox: '0 0 6 6', refX: 5, refY: 3, markerWidth: 6, markerHeight: 6, orient: 'auto'}, makeSvg('path', {class: 'arrow', d: 'M0,0.4L5.4,3L0,5.6z'}))));
  const plot = makeSvg('g'), lines = makeSvg('g', {class: 'edges'}), boxes = makeSvg('g');
  append(svg, [append(plot, [lines, boxes])]);
  const connect = (points, from, to) => append(lines, [makeSvg('path', {class: 'edge', d: roundedPath(points), 'marker-end': 'url(#' + marker + ')', 'data-from': from, 'data-to': to})]);

  for (const [from, to] of network.edges) {
    if (network.depth[to] !== network.depth[from] + 1 || columnOf(network.depth[from]) !== columnOf(network.depth[to])) continue;
    const ax = x(from) + wide(from) / 2, bx = x(to) + wide(to) / 2, ay = y(from) + boxHeight, by = y(to), middle = (ay + by) / 2;
    connect([[ax, ay], [ax, middle], [bx, middle], [bx, by]], from, to);
  }
  let crossing = 0;
  columns.forEach((column, index) => column.filter(bus => !bus.enters).forEach(bus => {
    // Out of the box at its lower right corner, into the next at its upper right one.
    const exit = x(bus.from) + wide(bus.from) - 12, below = y(bus.from) + boxHeight + gap * 0.3, rail = channelX(index, bus.channel);
    const start = [[exit, y(bus.from) + boxHeight], [exit, below], [rail, below]];
    const enter = (to, railX) => [[railX, y(to) - gap * 0.3], [x(to) + wide(to) - 12, y(to) - gap * 0.3], [x(to) + wide(to) - 12, y(to)]];
    bus.targets.forEach(to => connect(start.concat(enter(to, rail)), bus.from, to));
    if (!bus.leaves) return;
    const ground = margin + (starts[index + 1] - starts[index]) * step + crossing * 3 - gap / 2, sky = 6 + crossing * 3, out = (index + 1) * columnWidth - gutter / 2 - 4 + (crossing % 5) * 3;
    ++crossing;
    columns.forEach((other, place) => other.filter(entry => entry.enters && entry.from === bus.from).forEach(entry => entry.targets.forEach(to => {
      const first = network.depth[to] === starts[place];
      const arrive = first ? [[x(to) + wide(to) / 2, sky], [x(to) + wide(to) / 2, y(to)]]
        : [[channelX(place, entry.channel), sky], ...enter(to, channelX(place, entry.channel))];
      connect(start.concat([[rail, ground], [out, ground], [out, sky]], arrive), bus.from, to);
    })));
  }));

  const most = d3.max(figure.nodes, node => node.weight || 0) || 1, hits = [];
  const groups = [...new Set(figure.nodes.map(node => node.group || ''))];
  figure.nodes.forEach((node, index) => {
    const boxWidth = wide(index), group = groups.indexOf(node.group || ''), shaded = 0.07 + 0.5 * (node.weight || 0) / most;
    const cell = makeSvg('g', {class: 'node' + (state.visible(group) ? '' : ' dim'), transform: 'translate(' + x(index) + ',' + y(index) + ')', 'data-node': index},
      makeSvg('rect', {class: 'node-ground', width: boxWidth, height: boxHeight, rx: 4}),
      makeSvg('rect', {class: 'node-box', width: boxWidth, height: boxHeight, rx: 4, 'fill-opacity': shaded}),
      makeSvg('rect', {class: 'node-side', width: 4, height: boxHeight, rx: 2}));
    cell.style.setProperty('--c', state.looks[group].color);
    const title = fitted(node.title, boxWidth - 18, 11.5, 600), used = textWidth(title, 11.5, 600) + 18;
    append(cell, [makeSvg('text', {class: 'node-title', x: 10, y: compact ? 15 : 17}, title)]);
    const detail = node.detail ? fitted(node.detail, compact ? boxWidth - used - 6 : boxWidth - 18, 10.5) : '';
    if (detail.length > 3) append(cell, [compact ? makeSvg('text', {class: 'node-detail', x: boxWidth - 6, y: 15, 'text-anchor': 'end'}, detail)
      : makeSvg('text', {class: 'node-detail', x: 10, y: 32}, detail)]);
    append(boxes, [cell]);
    hits.push({box: [x(index), y(index), x(index) + boxWidth, y(index) + boxHeight], x: x(index) + boxWidth / 2, y: y(index), node: index,
      lines: () => [{text: node.title, strong: true, look: state.looks[group]}, {text: node.id}, node.detail ? {text: node.detail} : null,
        node.weight ? ['Share of the whole', numberText(node.weight * 100, 3) + '%'] : null].filter(Boolean)});
  });
  // A little more than the box has is shown; much more scrolls.
  box.classList.toggle('scrolls', fullHeight > 860);
  return {svg: svg, plot: plot, hits: hits, left: 0, top: 0,
    point: hit => lines.childNodes.forEach(line => line.classList.toggle('near', Boolean(hit) && (line.dataset.from === String(hit.node) || line.dataset.to === String(hit.node))))};
}
