// What every part of the page uses: making elements, the tooltip, saving files.
// Text of the document becomes text nodes and attributes; nothing is ever parsed as HTML.

const report = JSON.parse(document.getElementById('page-data').textContent);

function append(parent, children) {
  for (const child of children.flat(Infinity)) {
    if (child === null || child === undefined || child === '') continue;
    parent.appendChild(child instanceof Node ? child : document.createTextNode(String(child)));
  }
  return parent;
}

function setAttributes(node, attributes) {
  for (const [name, value] of Object.entries(attributes || {})) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith('on')) node.addEventListener(name.slice(2), value);
    else node.setAttribute(name, value === true ? '' : value);
  }
  return node;
}

// make('p', {class: 'x', onclick: f}, 'text', otherElement): an element with its children.
function make(tag, attributes, ...children) {
  return append(setAttributes(document.createElement(tag), attributes), children);
}

function makeSvg(tag, attributes, ...children) {
  return append(setAttributes(document.createElementNS('http://www.w3.org/2000/svg', tag), attributes), children);
}

// A line icon on a 16 x 16 grid.
function icon(path, name) {
  return makeSvg('svg', {class: 'icon' + (name ? ' icon-' + name : ''), viewBox: '0 0 16 16', 'aria-hidden': 'true'},
    makeSvg('path', {d: path}));
}

function saveFile(name, type, text) {
  const url = URL.createObjectURL(new Blob([text], {type: type}));
  make('a', {href: url, download: name}).click();
  setTimeout(() => URL.revokeObjectURL(url), 10000);
}

function csvText(rows) {
  const field = value => {
    const text = value === null || value === undefined ? '' : String(value);
    return /[",\r\n]|^ | $/.test(text) ? '"' + text.replace(/"/g, '""') + '"' : text;
  };
  return rows.map(row => row.map(field).join(',')).join('\r\n') + '\r\n';
}

const tip = make('div', {id: 'page-tip', class: 'tip', role: 'status', hidden: true});

// Lines are {text, strong, swatch} or [name, value].
function showTip(x, y, lines) {
  tip.replaceChildren(...lines.map(line => Array.isArray(line)
    ? make('div', {class: 'tip-pair'}, make('span', null, line[0]), make('b', null, line[1]))
    : make('div', {class: line.strong ? 'tip-title' : 'tip-line'}, line.swatch ? line.swatch.cloneNode(true) : null, line.text)));
  tip.hidden = false;
  // Beside the pointer, on the side that has room.
  const width = tip.offsetWidth, height = tip.offsetHeight, gap = 14;
  const left = x + gap + width > document.documentElement.clientWidth - 4 ? x - gap - width : x + gap;
  const top = y + gap + height > window.innerHeight - 4 ? y - gap - height : y + gap;
  tip.style.left = Math.max(4, Math.min(left, document.documentElement.clientWidth - width - 4)) + 'px';
  tip.style.top = Math.max(4, top) + 'px';
}

function hideTip() {
  tip.hidden = true;
}
