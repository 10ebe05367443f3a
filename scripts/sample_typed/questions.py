"""The questions; golds are computed here, in plain Python, from the data in the files."""

from __future__ import annotations

import json

from sample.book import Book

from sample_typed.model import Question, Reply, Variable, csv_of, fenced
from sample_typed.picture import Picture

# -- a table --------------------------------------------------------------------------------------

_TRIPS: list[tuple[str, int, float]] = [
    ("Oder", 14, 31.5), ("Elbe", 22, 18.25), ("Weser", 9, 40.0), ("Havel", 17, 12.75),
    ("Spree", 30, 9.5), ("Saale", 11, 27.0), ("Mulde", 6, 35.25), ("Neisse", 13, 22.0),
]  # fmt: skip
_LONG = [trip for trip in _TRIPS if trip[2] > 20]
_MEAN = sum(guests for _, guests, _ in _TRIPS) / len(_TRIPS)


def _trips() -> Question:
    right = {"long_trips": len(_LONG), "mean_guests": round(_MEAN, 2)}
    wrong = {**right, "long_trips": len(_LONG) + 1}
    return Question(
        id="trips",
        kind="Table",
        difficulty="easy",
        instruction="""How many trips in the table are longer than 20 km, and how many guests does
            a trip have on average, to two decimals?""",
        files={"trips.csv": csv_of([["river", "guests", "km"], *map(list, _TRIPS)])},
        variables={
            "long_trips": Variable(len(_LONG), {"type": "int"}),
            "mean_guests": Variable(round(_MEAN, 2), {"type": "float", "tolerance": 0.01}),
        },
        replies=(
            Reply("fenced", fenced(right, "I counted the rows.\n\n")),
            Reply("bare JSON", json.dumps(right)),
            Reply("a sign and words", fenced({**right, "mean_guests": f"{_MEAN:.2f} guests"})),
            Reply(
                "within the tolerance", fenced({**right, "mean_guests": round(_MEAN, 2) + 0.009})
            ),
            Reply("one too many", fenced(wrong), "WA"),
            Reply("a key is missing", fenced({"long_trips": len(_LONG)}), "WA"),
            Reply("3.9 is not 3", fenced({**right, "long_trips": len(_LONG) + 0.9}), "WA"),
        ),
    )


# -- a table and a picture ------------------------------------------------------------------------

_BARS = {"red": 45, "blue": 80, "green": 60, "yellow": 30}
_SHOPS = [("red", "Harbour", 120), ("blue", "Market", 95), ("green", "Station", 143),
          ("yellow", "Bridge", 88)]  # fmt: skip
_TALLEST = max(_BARS, key=lambda colour: _BARS[colour])
_SHOP = next(shop for colour, shop, _ in _SHOPS if colour == _TALLEST)
_RENT = next(rent for colour, _, rent in _SHOPS if colour == _TALLEST)


def _bars() -> Question:
    picture = Picture(240, 160)
    picture.fill(20, 140, 200, 2, "black")
    for place, (colour, height) in enumerate(_BARS.items()):
        picture.fill(35 + 48 * place, 140 - height, 30, height, colour)
    right = {"shop": _SHOP, "rent": _RENT}
    return Question(
        id="bars",
        kind="Table and picture",
        difficulty="easy",
        instruction="""The picture shows the sales of four shops as bars, each in the colour that
            the table gives. Which shop sold most, and what is its rent?""",
        files={
            "shops.csv": csv_of([["colour", "shop", "rent"], *map(list, _SHOPS)]),
            "bars.png": picture.to_bytes(),
        },
        variables={
            "shop": Variable(_SHOP, {"type": "text"}),
            "rent": Variable(_RENT, {"type": "int"}),
        },
        replies=(
            Reply("fenced", fenced(right)),
            Reply(
                "code next to it",
                "```python\nprint(table.loc[table.colour == 'blue'])\n```\n\n" + fenced(right),
            ),
            Reply("as Python writes it", f"The answer is {right}"),
            Reply("another bar", fenced({"shop": "Station", "rent": 143}), "WA"),
            Reply("no JSON", f"It is {_SHOP}, with a rent of {_RENT}.", "WA"),
        ),
    )


# -- a picture ------------------------------------------------------------------------------------

_SQUARES = ["red blue red green", "blue red yellow red", "green red blue blue"]
_COUNTS = {colour: " ".join(_SQUARES).split().count(colour) for colour in ("red", "blue")}


def _squares() -> Question:
    picture = Picture(216, 164)
    for row, colours in enumerate(_SQUARES):
        for column, colour in enumerate(colours.split()):
            picture.fill(12 + 50 * column, 12 + 50 * row, 42, 42, colour)
    right = {"red": _COUNTS["red"], "more_red": _COUNTS["red"] > _COUNTS["blue"]}
    return Question(
        id="squares",
        kind="Picture",
        difficulty="easy",
        instruction="How many squares are red, and are there more red squares than blue ones?",
        files={"squares.png": picture.to_bytes()},
        variables={
            "red": Variable(_COUNTS["red"], {"type": "int"}),
            "more_red": Variable(_COUNTS["red"] > _COUNTS["blue"], {"type": "bool"}),
        },
        replies=(
            Reply("fenced", fenced(right)),
            Reply("yes in words", fenced({**right, "more_red": "Yes"})),
            Reply("not true", fenced({**right, "more_red": "not true"}), "WA"),
            Reply("a text instead of a number", fenced({**right, "red": "many"}), "WA"),
        ),
    )


_CARDS = (4, 7, 8, 8)
_TWENTY_FOUR = "(7 - 8 / 8) * 4"


def _cards() -> Question:
    picture = Picture(260, 90)
    for place, number in enumerate(_CARDS):
        picture.fill(14 + 62 * place, 10, 48, 70, "grey")
        picture.fill(16 + 62 * place, 12, 44, 66, "white")
        picture.write(26 + 62 * place, 25, str(number), size=8, colour="blue")
    return Question(
        id="cards",
        kind="Picture",
        difficulty="hard",
        instruction="""Make 24 of the four numbers in the picture, each used once, with + - * / and
            parentheses.""",
        files={"cards.png": picture.to_bytes()},
        variables={
            "expression": Variable(_TWENTY_FOUR, {"type": "expression", "operands": sorted(_CARDS)})
        },
        replies=(
            Reply("fenced", fenced({"expression": _TWENTY_FOUR})),
            Reply("with its value", fenced({"expression": f"4 * (7 - 8 / 8) = {24}"})),
            Reply("other numbers", fenced({"expression": "4 * 6"}), "WA"),
            Reply("only the value", fenced({"expression": 24}), "WA"),
            Reply(
                "code in place of arithmetic",
                fenced({"expression": "__import__('os').system('touch /tmp/here') or 24"}),
                "WA",
            ),
        ),
    )


# -- a workbook -----------------------------------------------------------------------------------

_STAFF: list[tuple[str, str, float]] = [
    ("Adams", "Research", 4200.0), ("Baker", "Sales and service", 3100.0),
    ("Clark", "Research", 4600.0), ("Davis", "Sales and service", 3500.0),
    ("Evans", "Sales and service", 3500.0), ("Frank", "Stores", 2900.0),
]  # fmt: skip
_DEPARTMENTS = list(dict.fromkeys(department for _, department, _ in _STAFF))
_LARGEST = max(_DEPARTMENTS, key=lambda name: sum(each == name for _, each, _ in _STAFF))
_SALES = [pay for _, department, pay in _STAFF if department == _LARGEST]
_BEST_PAID = [
    name for name, department, pay in _STAFF if (department, pay) == (_LARGEST, max(_SALES))
]
_THREE_PAYS = sorted((pay / 1000 for _, _, pay in _STAFF), reverse=True)[:3]


def _staff() -> Question:
    book = Book()
    sheet = book.sheet("Staff", (12, 20, 10))
    rows: list[tuple[str | float, ...]] = [("name", "department", "pay"), *_STAFF]
    for row, values in enumerate(rows, start=1):
        for column, value in enumerate(values, start=1):
            book.put(sheet, row, column, value)
    right = {
        "department": _LARGEST,
        "best_paid": _BEST_PAID[0],
        "three_highest": [round(pay, 1) for pay in _THREE_PAYS],
    }
    return Question(
        id="staff",
        kind="Workbook",
        difficulty="medium",
        instruction="""Which department has most people, who is best paid there (name one), and what
            are the three highest pays of all, in thousands, the highest first?""",
        files={"staff.xlsx": book.to_bytes()},
        variables={
            "department": Variable(_LARGEST, {"type": "text", "match": "fuzzy"}),
            "best_paid": Variable(_BEST_PAID, {"type": "text", "match": "one_of"}),
            "three_highest": Variable(
                [round(pay, 1) for pay in _THREE_PAYS], {"type": "list", "tolerance": 0.01}
            ),
        },
        replies=(
            Reply("fenced", fenced(right)),
            Reply(
                "the other name, words around",
                fenced(
                    {
                        **right,
                        "department": f"the {_LARGEST.lower()} department",
                        "best_paid": _BEST_PAID[-1],
                    }
                ),
            ),
            Reply(
                "the wrong order",
                fenced({**right, "three_highest": right["three_highest"][::-1]}),
                "WA",
            ),
            Reply("somebody else", fenced({**right, "best_paid": "Baker"}), "WA"),
        ),
    )


# -- lists in lists -------------------------------------------------------------------------------

_READINGS = {
    "North": [2.5, 7.0, 4.5], "East": [11.0, 9.5, 10.0], "South": [12.5, 15.0, 14.0],
    "West": [8.0, 6.5, 9.0],
}  # fmt: skip
_WARM = [[name, max(values)] for name, values in _READINGS.items() if max(values) > 10]


def _stations() -> Question:
    rows = [[name, *values] for name, values in _READINGS.items()]
    return Question(
        id="stations",
        kind="Table",
        difficulty="medium",
        instruction="""Which stations were warmer than 10 degrees at some time? Give a list of
            pairs, station and highest temperature, in any order.""",
        files={"stations.csv": csv_of([["station", "morning", "noon", "evening"], *rows])},
        variables={"warm": Variable(_WARM, {"type": "list", "match": "any_order"})},
        replies=(
            Reply("fenced", fenced({"warm": _WARM})),
            Reply("the other way round", fenced({"warm": _WARM[::-1]})),
            Reply("the list in a string", fenced({"warm": json.dumps(_WARM)})),
            Reply("the pairs turned round", fenced({"warm": [x[::-1] for x in _WARM]}), "WA"),
            Reply("one too few", fenced({"warm": _WARM[:1]}), "WA"),
            Reply("no reply", None, "NO"),
        ),
    )


QUESTIONS = (_trips(), _bars(), _squares(), _cards(), _staff(), _stations())

TABLE = {
    "title": "By what a question is about",
    "columns": [
        {"label": "Total"},
        {"label": "yes", "heading": "Picture", "division": "picture", "group": "yes"},
        {"label": "no", "heading": "Picture", "division": "picture", "group": "no"},
        {"label": "yes", "heading": "Table", "division": "table", "group": "yes"},
        {"label": "no", "heading": "Table", "division": "table", "group": "no"},
        {"label": "Both", "division": "both", "group": "yes"},
        {"label": "Easy", "heading": "Difficulty", "division": "difficulty", "group": "easy"},
        {"label": "Medium", "heading": "Difficulty", "division": "difficulty", "group": "medium"},
        {"label": "Hard", "heading": "Difficulty", "division": "difficulty", "group": "hard"},
    ],
}
"""The table of scores in reports on the suite."""
