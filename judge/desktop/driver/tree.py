"""Reads the accessibility tree of a desktop, and corrects its errors.

Until the mouse has been over a window, the office reports positions as if the area that it draws
began at the window's upper edge, above the menu bar. Positions of GTK's own widgets, and of
anything drawn within them, such as the formula line, are right. The difference is measured where a
GTK widget contains the area that the office draws, and checked against the window on the screen.
Closed menus and hidden windows are not read. Each of these corrections can be left out.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

from judge.desktop.driver.bus import NOTHING, ROOT, Bus, Question, Ref
from judge.desktop.driver.cells import Sheet, extents_of, walked_cells
from judge.desktop.driver.nodes import Box, Node, Window, mark_cursor, plain_title, state_names

MAX_NODES = 20_000
_MAX_READINGS = 3
_MAX_CHILDREN = 1_024
_MAX_DEPTH = 50
_MAX_KNOWN = 100_000
_MAX_CHARS = 2_000
_VALUED = frozenset(["slider", "spin-button", "progress-bar", "level-bar"])
_HOLDERS = frozenset(["frame", "dialog", "root-pane", "document-spreadsheet", "window", "alert"])
_ICON_VIEWS = frozenset(["icon-view", "layered-pane", "list"])
_CELL_STATES = ("enabled", "showing", "visible")
_REPLACED = str.maketrans({"\ufffc": None, "\ufffd": None})


@dataclass(slots=True)
class _Seen:
    """An accessible object while the tree is read.

    Attributes:
        ref: the object.
        node: the node that is made from it.
        above: the windows that may hide it.
        window: the window that contains it; None if that is not known.
        shift: the correction of positions that the office reports; None if they cannot be right.
        gtk_box: position and size of the nearest ancestor that GTK draws.
        children: its children.
        gtk: whether GTK draws it.
        box: its position and size, whether or not it is hidden.
        count: how many children it has.
        offers: its interfaces.
    """

    ref: Ref
    node: Node
    above: list[Window]
    window: Window | None = None
    shift: tuple[int, int] | None = (0, 0)
    gtk_box: Box | None = None
    children: list[_Seen] = field(default_factory=list)
    gtk: bool = False
    box: Box | None = None
    count: int = 0
    offers: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class _Kind:
    """The properties of an object that never change: its role, its toolkit, its interfaces."""

    role: str
    gtk: bool
    offers: frozenset[str]


class Reader:
    """Reads the tree.

    Args:
        bus: the accessibility bus.
        corrections: names of the corrections that apply.
    """

    def __init__(self, bus: Bus, corrections: frozenset[str]) -> None:
        self._bus = bus
        self._corrections = corrections
        self._count = 0
        self._known: dict[Ref, _Kind] = {}
        self._origins: list[tuple[Ref, Box]] = []
        self._moved = False

    def read(self, look: Callable[[], tuple[list[Window], int]]) -> list[Node]:
        """Reads all nodes in document order.

        While a window moves or is resized, some of the positions that the office reports are old
        and some new. The tree is then read again, up to a limit.

        Args:
            look: returns the windows on the screen, the uppermost first, and the number of the
                active window.

        Raises:
            BrokenError: no program answers.
        """
        for _ in range(_MAX_READINGS):
            nodes = self._read(*look())
            if not self._moved:
                break
        return nodes

    def _read(self, windows: list[Window], active: int) -> list[Node]:
        desktop = _Seen(ROOT, Node("desktop-frame", "main"), [])
        applications = self._children([(ROOT, _MAX_CHILDREN)])[0]
        names = self._bus.ask(Question.about(ref, "Accessible", "Name") for ref in applications)
        frames = self._children([(ref, _MAX_CHILDREN) for ref in applications])
        self._count = 1
        self._origins, self._moved = [], False
        level: list[tuple[_Seen, _Seen]] = []
        for ref, name, below in zip(applications, names, frames, strict=True):
            application = _Seen(ref, Node("application", str(name or "")), [])
            desktop.children.append(application)
            application.children = self._ranked(below, windows, active)
            level += [(child, application) for child in application.children]
        for _ in range(_MAX_DEPTH):
            if not level or self._count > MAX_NODES:
                break
            level = self._level(level)
        again = self._bus.ask(extents_of(ref) for ref, _ in self._origins)
        boxes = [box for _, box in self._origins]
        self._moved |= any(
            box is not None and tuple(box) != was for box, was in zip(again, boxes, strict=True)
        )
        nodes = list(_flat(desktop))
        if "hit-tests" in self._corrections:
            mark_cursor(nodes)
        return nodes

    # windows

    def _ranked(self, frames: list[Ref], windows: list[Window], active: int) -> list[_Seen]:
        """Returns the top-level nodes of a program, the active window first."""
        if "order" not in self._corrections:
            return [_Seen(ref, Node("", ""), []) for ref in frames]
        answers = self._bus.ask(
            each
            for ref in frames
            for each in (Question.about(ref, "Accessible", "Name"), extents_of(ref))
        )
        ranked = []
        for ref, name, box in zip(frames, answers[::2], answers[1::2], strict=True):
            rank, window = _rank(str(name or ""), box, windows, active)
            above = windows[:rank] if rank < len(windows) else []
            ranked.append((rank, _Seen(ref, Node("", ""), above, window)))
        ranked.sort(key=lambda pair: pair[0])
        return [seen for _, seen in ranked]

    # levels

    def _level(self, level: list[tuple[_Seen, _Seen]]) -> list[tuple[_Seen, _Seen]]:
        """Reads the nodes of a level, which come with their parents; returns the next level."""
        self._describe(level)
        kept = []
        for seen, parent in level:
            if self._is_second_menu_bar(seen) or not seen.node.role:
                parent.children.remove(seen)
            else:
                kept.append((seen, parent))
        self._count += len(kept)
        entered = [seen for seen, parent in kept if self._is_entered(seen, parent)]
        closed = self._closed_menus([seen for seen in entered if seen.node.role == "menu"])
        entered = [seen for seen in entered if id(seen) not in closed]
        found = self._children([(seen.ref, seen.count) for seen in entered])
        following: list[tuple[_Seen, _Seen]] = []
        for seen, refs in zip(entered, found, strict=True):
            box = seen.box if seen.gtk else seen.gtk_box
            shift = (0, 0) if seen.gtk else seen.shift
            for ref in refs[: max(0, MAX_NODES - self._count - len(following))]:
                below = _Seen(ref, Node("", ""), seen.above, seen.window, shift, box)
                seen.children.append(below)
                following.append((below, seen))
        return following

    def _is_entered(self, seen: _Seen, parent: _Seen) -> bool:
        """Returns whether an object's children are read level by level, unlike a sheet's."""
        sheet = parent.node.role == "document-spreadsheet" and seen.node.role == "table"
        if seen.node.role == "document-spreadsheet" and "hit-tests" in self._corrections:
            if not _is_covered(seen.above, seen.box):
                self._read_sheet(seen)
            return False
        if sheet:
            self._walk_sheet(seen)
            return False
        return seen.count > 0 and not _is_covered(seen.above, seen.box)

    def _describe(self, level: list[tuple[_Seen, _Seen]]) -> None:
        self._learn([seen.ref for seen, _ in level if seen.ref not in self._known])
        answers = self._bus.ask(
            each
            for seen, _ in level
            for each in (
                Question.about(seen.ref, "Accessible", "Name"),
                Question(seen.ref, "Accessible", "GetState"),
                Question.about(seen.ref, "Accessible", "ChildCount"),
            )
        )
        for number, (seen, _) in enumerate(level):
            name, bits, count = answers[3 * number : 3 * number + 3]
            kind = self._known.get(seen.ref)
            if kind is None or bits is None:
                continue  # the object no longer exists
            node = seen.node
            node.role, seen.gtk, seen.offers = kind.role, kind.gtk, kind.offers
            node.name, node.states = (name or "")[:_MAX_CHARS], state_names(bits)
            seen.count = min(count or 0, _MAX_CHILDREN)
            node.image = "Image" in seen.offers
            if node.role == "frame" and "titles" in self._corrections:
                node.name = plain_title(node.name)
        self._place(level)
        self._tell(level)

    def _learn(self, refs: list[Ref]) -> None:
        """Reads the constant properties of objects; a path is never used for another object."""
        if len(self._known) > _MAX_KNOWN:
            self._known.clear()
        answers = self._bus.ask(
            each
            for ref in refs
            for each in (
                Question(ref, "Accessible", "GetRoleName"),
                Question(ref, "Accessible", "GetAttributes"),
                Question(ref, "Accessible", "GetInterfaces"),
            )
        )
        for number, ref in enumerate(refs):
            role, attributes, offers = answers[3 * number : 3 * number + 3]
            if role is not None and offers is not None:
                self._known[ref] = _Kind(
                    role[:_MAX_CHARS].strip().replace(" ", "-") or "unknown",
                    (attributes or {}).get("toolkit") == "gtk",
                    frozenset(each.rpartition(".")[2] for each in offers),
                )

    def _place(self, level: list[tuple[_Seen, _Seen]]) -> None:
        """Sets the positions of nodes."""
        everything = "order" not in self._corrections
        placed = [
            (seen, parent)
            for seen, parent in level
            if "Component" in seen.offers
            and (everything or {"showing", "visible"} <= set(seen.node.states))
        ]
        boxes = self._bus.ask(extents_of(seen.ref) for seen, _ in placed)
        for (seen, parent), box in zip(placed, boxes, strict=True):
            if box is None:
                continue
            seen.box = tuple(box)
            if "positions" in self._corrections:
                seen.box = self._corrected(seen, parent, tuple(box))
            if seen.box is not None and not _is_hidden(seen.above, *_middle(seen.box)):
                seen.node.box = seen.box
            elif seen.node.role not in _HOLDERS:
                seen.node.states = tuple(each for each in seen.node.states if each != "showing")

    def _corrected(self, seen: _Seen, parent: _Seen, box: Box) -> Box | None:
        """Corrects the reported position ``box`` of a node; None if it cannot be right."""
        if not seen.gtk and parent.gtk and seen.gtk_box is not None:
            self._measure(seen, seen.gtk_box, box)
        shift = (0, 0) if seen.gtk else seen.shift
        if shift is None:
            return None
        x, y, width, height = box[0] + shift[0], box[1] + shift[1], box[2], box[3]
        x, y = _within(parent.node, (x, y, width, height))
        # GTK reports positions far outside the screen for objects that it does not show.
        return (x, y, width, height) if x + width > 0 and y + height > 0 else None

    def _measure(self, seen: _Seen, room: Box, box: Box) -> None:
        """Compares an area that the office draws with the GTK widget that contains it.

        The area that fills a window has the same position as its widget. (Smaller areas, such as
        the formula line, get their position from the widget in which they are drawn.) The area must
        end where the window does; otherwise one of the two has just moved.
        """
        is_root = seen.node.role == "root-pane"
        if not is_root and box[2:] != room[2:]:
            return
        seen.shift = (room[0] - box[0], room[1] - box[1])
        self._origins.append((seen.ref, box))
        if is_root and seen.window is not None and not seen.window.ends_with(room[:2], box[2:]):
            seen.shift = None
            self._moved = True

    def _tell(self, level: list[tuple[_Seen, _Seen]]) -> None:
        """Reads text, description and value of nodes."""
        texts = [seen for seen, _ in level if "Text" in seen.offers]
        for seen, text in zip(texts, self._texts([each.ref for each in texts]), strict=True):
            seen.node.text = text
        pictures = [seen for seen, _ in level if seen.node.image and not seen.node.name]
        hints = self._bus.ask(
            Question.about(seen.ref, "Accessible", "Description") for seen in pictures
        )
        for seen, hint in zip(pictures, hints, strict=True):
            seen.node.hint = str(hint or "")[:_MAX_CHARS]
        valued = [seen for seen, _ in level if "Value" in seen.offers and seen.node.role in _VALUED]
        values = self._bus.ask(Question.about(seen.ref, "Value", "CurrentValue") for seen in valued)
        for seen, value in zip(valued, values, strict=True):
            if isinstance(value, int | float):
                seen.node.value = f"{value:g}"

    def _texts(self, refs: list[Ref]) -> list[str]:
        answers = self._bus.ask(Question(ref, "Text", "GetText", "ii", (0, -1)) for ref in refs)
        return [str(text or "")[:_MAX_CHARS].translate(_REPLACED) for text in answers]

    def _children(self, wanted: list[tuple[Ref, int]]) -> list[list[Ref]]:
        """Returns the children of some objects; if an object has very many, only the first ones."""
        answers = self._bus.ask(
            Question(ref, "Accessible", "GetChildren")
            if count < _MAX_CHILDREN or ref == ROOT or ref[1].endswith("/root")
            else Question(ref, "Accessible", "GetInterfaces")
            for ref, count in wanted
        )
        found = []
        for (ref, count), below in zip(wanted, answers, strict=True):
            refs = below or []
            if refs and isinstance(refs[0], str):
                refs = self._bus.ask(
                    Question(ref, "Accessible", "GetChildAtIndex", "i", (number,))
                    for number in range(count)
                )
            there = [ref for ref in refs if ref is not None and ref[1] != NOTHING]
            found.append(there[:_MAX_CHILDREN])
        return found

    # menus

    def _is_second_menu_bar(self, seen: _Seen) -> bool:
        return (
            "menus" in self._corrections
            and seen.node.role == "menu-bar"
            and not seen.gtk
            and seen.node.box is not None
            and seen.node.box[3] == 0
        )

    def _closed_menus(self, menus: list[_Seen]) -> set[int]:
        """Returns the menus that are completely off the screen."""
        if "menus" not in self._corrections:
            return set()
        unopened = [seen for seen in menus if not {"selected", "expanded"} & set(seen.node.states)]
        firsts = self._bus.ask(
            Question(seen.ref, "Accessible", "GetChildAtIndex", "i", (number,))
            for seen in unopened
            for number in range(3)
        )
        existing = [ref for ref in firsts if ref is not None and ref[1] != NOTHING]
        answers = self._bus.ask(Question(ref, "Accessible", "GetState") for ref in existing)
        shown = {
            ref
            for ref, bits in zip(existing, answers, strict=True)
            if "showing" in state_names(bits)
        }
        return {
            id(seen)
            for number, seen in enumerate(unopened)
            if not shown & set(filter(None, firsts[3 * number : 3 * number + 3]))
        }

    # sheets

    def _read_sheet(self, document: _Seen) -> None:
        tables = self._children([(document.ref, min(document.count, 64))])[0]
        window = self._bus.ask([extents_of(document.ref)])[0]
        roles = self._bus.ask(Question(ref, "Accessible", "GetRoleName") for ref in tables)
        shown = [ref for ref, role in zip(tables, roles, strict=True) if role == "table"]
        if not shown or window is None:
            return
        name = self._bus.ask([Question.about(shown[0], "Accessible", "Name")])[0]
        table = _Seen(shown[0], Node("table", str(name or ""), states=_CELL_STATES), [])
        document.children.append(table)
        cells = Sheet(self._bus, table.ref, tuple(window)).cells()
        texts = self._texts([cell.ref for cell in cells])
        shift = document.shift if "positions" in self._corrections else (0, 0)
        if shift is None:
            return
        for cell, text in zip(cells, texts, strict=True):
            x, y = cell.box[0] + shift[0], cell.box[1] + shift[1]
            width, height = cell.box[2], cell.box[3]
            node = Node("table-cell", cell.name, text)
            if not _is_hidden(document.above, x + width // 2, y + height // 2):
                node.box = (x, y, width, height)
                node.states = _CELL_STATES
            table.children.append(_Seen(cell.ref, node, []))
        self._count += len(cells)

    def _walk_sheet(self, table: _Seen) -> None:
        shift = table.shift if "positions" in self._corrections else (0, 0)
        if shift is None:
            return
        cells = []
        for cell in walked_cells(self._bus, table.ref):
            cells.append(cell)
            if self._count + len(cells) > MAX_NODES:
                break
        texts = self._texts([cell.ref for cell in cells])
        states = self._bus.ask(Question(cell.ref, "Accessible", "GetState") for cell in cells)
        for cell, text, bits in zip(cells, texts, states, strict=True):
            x, y, width, height = cell.box
            box = (x + shift[0], y + shift[1], width, height)
            node = Node("table-cell", cell.name, text, box, state_names(bits))
            table.children.append(_Seen(cell.ref, node, []))
        self._count += len(cells)


def _rank(title: str, box: Any, windows: list[Window], active: int) -> tuple[int, Window | None]:
    """Returns the position of a top-level node in the stack of windows, and its window.

    The position is 0 for popups, which have no window, and the number of windows if it is unknown.
    """
    if box is None:
        return len(windows), None
    best, rank = None, len(windows)
    for number, window in enumerate(windows):
        same = bool(title) and plain_title(window.title) == plain_title(title)
        distance = abs(window.x - box[0]) + abs(window.y - box[1])
        distance += abs(window.width - box[2]) + abs(window.height - box[3])
        key = (not same, distance, window.number != active)
        if (same or distance < 100) and (best is None or key < best):
            best, rank = key, number
    if best is None:
        return (len(windows) if title else 0), None
    return rank, windows[rank]


def _within(parent: Node, box: Box) -> tuple[int, int]:
    """Corrects a position in an icon view, which is reported relative to the view."""
    x, y, width, height = box
    if parent.role not in _ICON_VIEWS or parent.box is None:
        return x, y
    left, top, across, down = parent.box
    inside = left <= x < left + across and top <= y < top + down
    if not inside and 0 <= x <= across - width and 0 <= y <= down - height:
        return x + left, y + top
    return x, y


def _middle(box: Box) -> tuple[int, int]:
    return box[0] + box[2] // 2, box[1] + box[3] // 2


def _is_hidden(above: list[Window], x: int, y: int) -> bool:
    return any(window.covers(x, y) for window in above)


def _is_covered(above: list[Window], box: Box | None) -> bool:
    """Returns whether one window hides a whole area."""
    if box is None or not box[2] or not box[3]:
        return False
    x, y, width, height = box
    return any(
        window.covers(x, y) and window.covers(x + width - 1, y + height - 1) for window in above
    )


def _flat(root: _Seen) -> Iterator[Node]:
    """Yields the nodes in document order, with the numbers of their parents."""
    number = 0
    stack: list[tuple[_Seen, int | None]] = [(root, None)]
    while stack:
        seen, parent = stack.pop()
        seen.node.parent = parent
        yield seen.node
        stack += [(child, number) for child in reversed(seen.children)]
        number += 1
