"""What calls give: documents, tables and figures, which show themselves in notebooks."""

from __future__ import annotations

import html
import os
from dataclasses import dataclass, field
from typing import Any, Dict, List, Mapping, Optional, Sequence, Union

from ._library import check, lib


def html_table(title: str, columns: Sequence[str], rows: Sequence[Sequence[Any]], notes: Sequence[str] = ()) -> str:
    """A table as HTML; everything in it is text."""
    head = "".join(f"<th>{html.escape(str(column))}</th>" for column in columns)
    body = "".join("<tr>" + "".join(f"<td>{html.escape(_cell(cell))}</td>" for cell in row) + "</tr>" for row in rows)
    below = "".join(f"<p>{html.escape(note)}</p>" for note in notes)
    return f"<table><caption>{html.escape(title)}</caption><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>{below}"


def _cell(value: Any) -> str:
    if value is None:
        return "n/a"
    return f"{value:.6g}" if isinstance(value, float) else str(value)


class Document(Dict[str, Any]):
    """What a call found, with the keys that the command's ``--json`` has.

    In a notebook it shows its main list as a table, of wide ones the columns in ``shown``; ``frame()`` gives all of
    that list as a data frame.

    >>> document = rl.Document({"epochs": [{"epoch": 1, "loss": 0.5}]}, main="epochs")
    >>> "<td>0.5</td>" in document._repr_html_()
    True
    """

    def __init__(self, contents: Mapping[str, Any], main: Optional[str] = None, shown: Sequence[str] = ()):
        super().__init__(contents)
        self._main, self._shown = main, shown

    @property
    def rows(self) -> List[Dict[str, Any]]:
        """The main list: results of a bench, rows of a profile, epochs of a training."""
        return list(self.get(self._main, [])) if self._main else [dict(self)]

    def frame(self) -> Any:
        """The main list as a data frame of pandas or polars, or as a dictionary of columns."""
        from ._store import to_frame
        names = list(dict.fromkeys(key for row in self.rows for key in row))
        return to_frame({name: [row.get(name) for row in self.rows] for name in names})

    def _repr_html_(self) -> str:
        rows = self.rows
        names = [name for name in dict.fromkeys(key for row in rows for key in row)
                 if any(not isinstance(row.get(name), (list, dict)) for row in rows)]
        if self._shown:
            names = [name for name in self._shown if name in names]
        return html_table(self._main or "", names, [[row.get(name) for name in names] for row in rows])


@dataclass
class Figure:
    """A drawing; ``svg`` is its text."""

    id: str
    title: str
    svg: str = field(repr=False)
    caption: str = field(default="", repr=False)
    reading: str = field(default="", repr=False)
    notes: List[str] = field(default_factory=list, repr=False)
    runs: List[int] = field(default_factory=list, repr=False)

    def save(self, path: Union[str, "os.PathLike[str]"]) -> None:
        """Writes the drawing as the end of the name says: .svg, or .png and .pdf, which rsvg-convert makes."""
        check(lib.rl_picture(self.svg.encode(), os.fsencode(path)))

    def _repr_svg_(self) -> str:
        return self.svg


@dataclass
class Table:
    """A table of a report: cells have the text that is shown and, where it is a number, its value."""

    id: str
    title: str
    columns: List[Dict[str, Any]] = field(repr=False)
    rows: List[List[Dict[str, Any]]] = field(repr=False)
    caption: str = field(default="", repr=False)
    notes: List[str] = field(default_factory=list, repr=False)

    def frame(self) -> Any:
        """As a data frame: numbers where cells have them, else their texts."""
        from ._store import to_frame
        values = {}
        for index, column in enumerate(self.columns):
            name = f"{column['title']} ({column['unit']})" if column["unit"] else column["title"]
            cells = [row[index] for row in self.rows]
            values[name] = [cell["value"] if column["number"] else cell["text"] for cell in cells]
        return to_frame(values)

    def _repr_html_(self) -> str:
        names = [column["title"] for column in self.columns]
        return html_table(self.title, names, [[cell["text"] for cell in row] for row in self.rows],
                          [self.caption, *self.notes] if self.caption else self.notes)


class Exhibits(List[Union[Table, Figure]]):
    """Tables and figures, shown one below the other."""

    @property
    def figures(self) -> List[Figure]:
        return [each for each in self if isinstance(each, Figure)]

    @property
    def tables(self) -> List[Table]:
        return [each for each in self if isinstance(each, Table)]

    def _repr_html_(self) -> str:
        return "\n".join(each.svg if isinstance(each, Figure) else each._repr_html_() for each in self)
