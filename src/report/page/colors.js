// Colours of series: the same name has the same colour in every figure, and names that meet in a figure
// have different ones as long as there are enough. Where two share one, marks, dashes and shades differ.

// Of page.css: told apart by colour-blind readers too, the first five most easily.
const COLORS = 8;

function colorKeys(figure) {
  if (figure.kind === 'spans') return figure.groups;
  if (figure.kind === 'diagram') return figure.nodes.map(node => node.group || '');
  return figure.series.filter(series => series.style !== 'roof' || series.group).map(series => series.group || series.name);
}

function eachFigure(sections, visit) {
  for (const section of sections) {
    section.blocks.filter(block => block.block === 'figure').forEach(visit);
    eachFigure(section.sections || [], visit);
  }
}

// Greedy: in the order of the document, each name takes the colour that fewest of its neighbours have.
const colorOf = (function () {
  const neighbours = new Map(), colors = new Map();
  eachFigure(report.sections, figure => {
    const keys = [...new Set(colorKeys(figure))];
    for (const key of keys) {
      if (!neighbours.has(key)) neighbours.set(key, new Set());
      keys.forEach(other => other !== key && neighbours.get(key).add(other));
    }
  });
  for (const [key, others] of neighbours) {
    const used = new Array(COLORS).fill(0);
    others.forEach(other => colors.has(other) && used[colors.get(other)]++);
    colors.set(key, used.indexOf(Math.min(...used)));
  }
  return key => 'var(--c' + (colors.has(key) ? colors.get(key) : 0) + ')';
})();

// How each series of a figure looks: colour, mark, dash, and shade among those of its colour.
function looksOf(series) {
  const seen = new Map();
  return series.map(each => {
    const roof = each.style === 'roof';
    const color = roof && !each.group ? 'var(--roof)' : colorOf(each.group || each.name);
    const place = seen.get(color + roof) || 0;
    seen.set(color + roof, place + 1);
    return {color: color, mark: place, dash: place, shade: [1, 0.62, 0.4, 0.8, 0.5][place % 5], style: each.style};
  });
}

const marks = [d3.symbolCircle, d3.symbolSquare, d3.symbolTriangle, d3.symbolDiamond, d3.symbolCross, d3.symbolStar, d3.symbolWye];
function markPath(look, size) {
  return d3.symbol().type(marks[look.mark % marks.length]).size(size)();
}

const dashes = ['', '6 3', '2 3', '8 3 2 3', '4 2'];
function dashOf(look) {
  return dashes[look.dash % dashes.length] || null;
}

// The sample of a series in a legend or a tooltip.
function swatch(look) {
  const style = look.style || 'box';
  const svg = makeSvg('svg', {class: 'swatch', viewBox: '0 0 20 12', width: 20, height: 12, 'aria-hidden': 'true'});
  svg.style.setProperty('--c', look.color);
  if (style === 'box') append(svg, [makeSvg('rect', {x: 4, y: 1, width: 12, height: 10, rx: 2, class: 'fill', 'fill-opacity': look.shade || 1})]);
  if (style === 'line' || style === 'step' || style === 'line_points' || style === 'roof') {
    append(svg, [makeSvg('line', {x1: 0, x2: 20, y1: 6, y2: 6, class: style === 'roof' ? 'roof' : 'stroke', 'stroke-dasharray': style === 'line_points' ? null : dashOf(look)})]);
  }
  if (style === 'points' || style === 'line_points') {
    append(svg, [makeSvg('path', {d: markPath(look, 40), transform: 'translate(10,6)', class: 'fill'})]);
  }
  return svg;
}
