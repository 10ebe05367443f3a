"""What the region of a machine changes in text: the order of dates, and names of months and days.

Sources of the names: Excel's own values in workbooks (Spanish and Chinese), and two libraries that
write what Excel shows: the tables of `numfmt` 4.0 (https://github.com/borgar/numfmt), and of
`excelize` (https://github.com/qax-os/excelize). Where these or versions of Windows differ, a
language has several styles. The letters of codes are those of `numfmt`. Pure.
"""

from __future__ import annotations

import enum
import functools
import itertools
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace


class DayOrder(enum.Enum):
    """Which number of a date such as ``3/4/2021`` is the day; the region of a machine decides it.

    UNKNOWN stands for the order of the United States, but a string that is a date only in the other
    order may be one.
    """

    UNKNOWN = enum.auto()
    DAY_FIRST = enum.auto()
    MONTH_FIRST = enum.auto()


@dataclass(frozen=True, slots=True)
class Names:
    """The names of months and days in a language; None where its styles differ.

    Attributes:
        language: its code, such as ``es``.
        months: the names that ``mmmm`` writes, January first.
        short_months: the names that ``mmm`` writes.
        days: the names that ``dddd`` writes, Sunday first.
        short_days: the names that ``ddd`` writes.
        other_codes: first letters of English format codes for which the language uses other
            letters, such as ``y`` if it writes the year as ``aaaa``; ``a`` for ``AM/PM`` if it
            shows other letters.
    """

    language: str
    months: tuple[str | None, ...]
    short_months: tuple[str | None, ...]
    days: tuple[str | None, ...]
    short_days: tuple[str | None, ...]
    other_codes: str = ""

    def in_text(self, text: str) -> bool:
        """Whether text contains one of the names that are words, in upper or lower case."""
        return _pattern(self).search(text) is not None


@functools.lru_cache(maxsize=64)
def _pattern(names: Names) -> re.Pattern[str]:
    written = {*names.months, *names.short_months, *names.days, *names.short_days}
    words = sorted(
        (re.escape(name) for name in written if name and not name.isdigit()), key=len, reverse=True
    )
    # Names in Chinese and Japanese follow numbers and other characters without a space.
    return re.compile(rf"(?<![^\W\d_])(?:{'|'.join(words)})(?![a-zà-ÿ])", re.IGNORECASE)


def _style(
    language: str, months: str, short_months: str, days: str, short_days: str, other_codes: str = ""
) -> Names:
    return Names(
        language,
        tuple(months.split()),
        tuple(short_months.split()),
        tuple(days.split()),
        tuple(short_days.split()),
        other_codes,
    )


def _dotted(names: Names) -> Names:
    """The same language with a dot after every short name that is shorter than the full one."""

    def dotted(short: Sequence[str | None], full: Sequence[str | None]) -> tuple[str | None, ...]:
        return tuple(
            name if name == long else f"{name}." for name, long in zip(short, full, strict=True)
        )

    return replace(
        names,
        short_months=dotted(names.short_months, names.months),
        short_days=dotted(names.short_days, names.days),
    )


def _capital(names: Names) -> Names:
    """The same language with a capital letter in all names of months."""

    def capital(written: Iterable[str | None]) -> tuple[str | None, ...]:
        return tuple(name and name.capitalize() for name in written)

    return replace(names, months=capital(names.months), short_months=capital(names.short_months))


ENGLISH = _style(
    "en",
    "January February March April May June July August September October November December",
    "Jan Feb Mar Apr May Jun Jul Aug Sep Oct Nov Dec",
    "Sunday Monday Tuesday Wednesday Thursday Friday Saturday",
    "Sun Mon Tue Wed Thu Fri Sat",
)

_SPANISH = _style(
    "es",
    "enero febrero marzo abril mayo junio julio agosto septiembre octubre noviembre diciembre",
    "ene feb mar abr may jun jul ago sep oct nov dic",
    "domingo lunes martes miércoles jueves viernes sábado",
    "dom lun mar mié jue vie sáb",
    "ya",
)
_FRENCH = _style(
    "fr",
    "janvier février mars avril mai juin juillet août septembre octobre novembre décembre",
    "janv févr mars avr mai juin juil août sept oct nov déc",
    "dimanche lundi mardi mercredi jeudi vendredi samedi",
    "dim lun mar mer jeu ven sam",
    "yd",
)
_GERMAN = _style(
    "de",
    "Januar Februar März April Mai Juni Juli August September Oktober November Dezember",
    "Jan Feb Mrz Apr Mai Jun Jul Aug Sep Okt Nov Dez",
    "Sonntag Montag Dienstag Mittwoch Donnerstag Freitag Samstag",
    "So Mo Di Mi Do Fr Sa",
    "yd",
)
_ITALIAN = _style(
    "it",
    "gennaio febbraio marzo aprile maggio giugno luglio agosto settembre ottobre novembre dicembre",
    "gen feb mar apr mag giu lug ago set ott nov dic",
    "domenica lunedì martedì mercoledì giovedì venerdì sabato",
    "dom lun mar mer gio ven sab",
    "yd",
)
_PORTUGUESE = _style(
    "pt",
    "janeiro fevereiro março abril maio junho julho agosto setembro outubro novembro dezembro",
    "jan fev mar abr mai jun jul ago set out nov dez",
    "domingo segunda-feira terça-feira quarta-feira quinta-feira sexta-feira sábado",
    "dom seg ter qua qui sex sáb",
    "y",
)
_DUTCH = _style(
    "nl",
    "januari februari maart april mei juni juli augustus september oktober november december",
    "jan feb mrt apr mei jun jul aug sep okt nov dec",
    "zondag maandag dinsdag woensdag donderdag vrijdag zaterdag",
    "zo ma di wo do vr za",
    "yh",
)
_POLISH = _style(
    "pl",
    "styczeń luty marzec kwiecień maj czerwiec lipiec sierpień wrzesień październik listopad"
    " grudzień",
    "sty lut mar kwi maj cze lip sie wrz paź lis gru",
    "niedziela poniedziałek wtorek środa czwartek piątek sobota",
    "niedz pon wt śr czw pt sob",
    "yh",
)
_RUSSIAN = _style(
    "ru",
    "январь февраль март апрель май июнь июль август сентябрь октябрь ноябрь декабрь",
    "янв фев мар апр май июн июл авг сен окт ноя дек",
    "воскресенье понедельник вторник среда четверг пятница суббота",
    "Вс Пн Вт Ср Чт Пт Сб",  # noqa: RUF001
    "ydhms",
)
_DANISH = _style(
    "da",
    "januar februar marts april maj juni juli august september oktober november december",
    "jan feb mar apr maj jun jul aug sep okt nov dec",
    "søndag mandag tirsdag onsdag torsdag fredag lørdag",
    "sø ma ti on to fr lø",
    "yh",
)
_NORWEGIAN = _style(
    "nb",
    "januar februar mars april mai juni juli august september oktober november desember",
    "jan feb mar apr mai jun jul aug sep okt nov des",
    "søndag mandag tirsdag onsdag torsdag fredag lørdag",
    "søn man tir ons tor fre lør",
    "yha",
)
_SWEDISH = _style(
    "sv",
    "januari februari mars april maj juni juli augusti september oktober november december",
    "jan feb mar apr maj jun jul aug sep okt nov dec",
    "söndag måndag tisdag onsdag torsdag fredag lördag",
    "sön mån tis ons tor fre lör",
    "yhta",
)
_NUMBERED = " ".join(f"{number}月" for number in range(1, 13))
_CHINESE = _style(
    "zh",
    "一月 二月 三月 四月 五月 六月 七月 八月 九月 十月 十一月 十二月",
    _NUMBERED,
    "星期日 星期一 星期二 星期三 星期四 星期五 星期六",
    "周日 周一 周二 周三 周四 周五 周六",
    "a",
)
_TAIWANESE = replace(_CHINESE, short_days=("週日", "週一", "週二", "週三", "週四", "週五", "週六"))
_JAPANESE = _style(
    "ja",
    _NUMBERED,
    " ".join(map(str, range(1, 13))),
    "日曜日 月曜日 火曜日 水曜日 木曜日 金曜日 土曜日",
    "日 月 火 水 木 金 土",
    "a",
)

LANGUAGES = (
    _SPANISH,
    _dotted(_SPANISH),
    replace(_SPANISH, short_days=("do", "lu", "ma", "mi", "ju", "vi", "sá")),
    _FRENCH,
    _dotted(_FRENCH),
    _GERMAN,
    replace(_GERMAN, short_months=("Jan", "Feb", "Mär", *_GERMAN.short_months[3:])),
    replace(
        _GERMAN,
        months=("Jänner", *_GERMAN.months[1:]),
        short_months=("Jän", "Feb", "Mär", *_GERMAN.short_months[3:]),
    ),
    _ITALIAN,
    _PORTUGUESE,
    _dotted(_PORTUGUESE),
    _capital(_PORTUGUESE),
    _DUTCH,
    replace(_dotted(_DUTCH), short_days=_DUTCH.short_days),
    _POLISH,
    _dotted(_POLISH),
    replace(_POLISH, short_days=("N", "Pn", "Wt", "Śr", "Cz", "Pt", "So")),
    _RUSSIAN,
    _capital(_RUSSIAN),
    _DANISH,
    _dotted(_DANISH),
    _NORWEGIAN,
    _dotted(_NORWEGIAN),
    _SWEDISH,
    _CHINESE,
    replace(_TAIWANESE, short_months=_TAIWANESE.months),
    replace(_TAIWANESE, months=_TAIWANESE.short_months),
    _JAPANESE,
    replace(_JAPANESE, short_months=_JAPANESE.months),
)
"""The styles of all languages except English."""


def common(styles: Sequence[Names]) -> Names:
    """The names that several styles share."""

    def shared(lists: Iterable[Sequence[str | None]]) -> tuple[str | None, ...]:
        return tuple(
            names[0] if len(set(names)) == 1 else None for names in zip(*lists, strict=True)
        )

    return Names(
        " or ".join(dict.fromkeys(style.language for style in styles)),
        shared(style.months for style in styles),
        shared(style.short_months for style in styles),
        shared(style.days for style in styles),
        shared(style.short_days for style in styles),
        "".join(sorted(set(itertools.chain.from_iterable(s.other_codes for s in styles)))),
    )


@dataclass(frozen=True, slots=True)
class Region:
    """How a machine reads and writes dates in text; by default as in the United States.

    Attributes:
        day_order: whether the day or the month comes first in dates of numbers.
        names: the names of months and days.
    """

    day_order: DayOrder = DayOrder.UNKNOWN
    names: Names = ENGLISH

    @property
    def speaks_english(self) -> bool:
        """Whether names of months and days are English."""
        return self.names is ENGLISH

    def names_month(self, text: str) -> bool:
        """Whether text contains a name of a month or day, in this region's language or English."""
        return self.names.in_text(text) or ENGLISH.in_text(text)


UNITED_STATES = Region()
