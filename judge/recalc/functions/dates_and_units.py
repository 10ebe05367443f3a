"""Computes dates, CONVERT, and the functions of the former Analysis ToolPak. Pure.

Source of the units: Microsoft's page on CONVERT. Listed here are only the units that engines do not
support under all their names, or with all their prefixes; the others are left to the engines.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence

from judge.formulas.references import Reference
from judge.formulas.tree import ArrayConstant, Constant, Missing, Node
from judge.recalc.functions.conversions import (
    LAST_SERIAL,
    NUM,
    VALUE,
    UnsureError,
    date_serial,
    day_and_time,
    day_parts,
    is_of_other_order,
    month_and_day,
    text_number,
)
from judge.recalc.functions.criteria import Scalar, has_logical, is_number
from judge.recalc.functions.refusals import REFUSALS
from judge.recalc.functions.scalars import Evaluation, Function, OfValues
from judge.workbook.cell import ErrorValue

MAX_MONTHS = 12 * 8100
"""A number of months beyond the end of the calendar."""

FIRST_DAYS = 60
"""Serial number of the last day of February 1900; up to it, engines number the days differently.
"""

MAX_PLAIN_DAY = 27
"""The largest day number that is never the last day of a month."""

# -- dates -----------------------------------------------------------------------------------------


def _datevalue(evaluation: Evaluation, value: Scalar) -> Scalar:
    evaluation.converted = True
    if not isinstance(value, str):
        return VALUE
    moment = _moment(evaluation, value)
    return moment if isinstance(moment, ErrorValue) else float(moment[0] + math.floor(moment[1]))


def _timevalue(evaluation: Evaluation, value: Scalar) -> Scalar:
    evaluation.converted = True
    if not isinstance(value, str):
        return VALUE
    moment = _moment(evaluation, value)
    return moment if isinstance(moment, ErrorValue) else moment[1] % 1


def _moment(evaluation: Evaluation, text: str) -> tuple[int, float] | ErrorValue:
    """Reads a date, a time or both as a day and a time of day; #VALUE! if the text is neither."""
    plain = text.strip(" ")
    region = evaluation.values.region
    if not any(map(str.isdigit, plain)) or is_of_other_order(plain, region):
        return VALUE
    moment = day_and_time(plain, region)
    if moment is not None:
        return moment
    if text_number(plain) is None:
        return VALUE
    raise UnsureError


def _date(evaluation: Evaluation, *values: Scalar) -> Scalar:
    parts: list[int] = []
    for value in values:
        number = evaluation.number(value)
        if isinstance(number, ErrorValue):
            return VALUE
        parts.append(math.floor(number))
    year, month, day = parts
    if max(abs(month), abs(day)) > 32_767:
        raise UnsureError
    serial = date_serial(year, month, day)
    # In the first months of 1900, days are counted past a day that only Excel knows.
    counted = year in (0, 1900) and month <= 2
    early = serial is None or serial <= FIRST_DAYS or year < 1900 or counted
    evaluation.converted = evaluation.converted or early
    return NUM if serial is None else float(serial)


def _part(part_index: int) -> Function:
    """Returns a Python function that computes YEAR, MONTH or DAY."""

    def plain(evaluation: Evaluation, value: Scalar) -> Scalar:
        day = None
        if isinstance(value, str) and part_index:
            day = month_and_day(value.strip(" "), evaluation.values.region)
        if day is not None:  # of this year, but that does not matter here
            evaluation.converted = True
            return float(day[part_index - 1])
        number = evaluation.number(value)
        if isinstance(number, ErrorValue):
            return number
        inside = 0 <= number < LAST_SERIAL + 1
        evaluation.converted = evaluation.converted or not inside or number < 61
        return float(day_parts(math.floor(number))[part_index]) if inside else NUM

    return OfValues(1, 1, plain)


def _weekday(evaluation: Evaluation, *values: Scalar) -> Scalar:
    """WEEKDAY: the day of the week, counted from a day that its second argument chooses."""
    numbers: list[float] = []
    for value in values:
        number = evaluation.number(value)
        if isinstance(number, ErrorValue):
            return evaluation.refused(number)
        numbers.append(number)
    refused = evaluation.refusal("WEEKDAY", values)
    if refused is not None:
        return evaluation.refused(refused)
    day, kind = math.floor(numbers[0]), math.trunc(numbers[1]) if len(numbers) > 1 else 1
    if not 0 <= day <= LAST_SERIAL:
        raise UnsureError
    after_sunday = (day - 1) % 7
    if kind == 3:
        return (after_sunday - 1) % 7
    first = {1: 0, 2: 1}.get(kind, kind - 10)
    return (after_sunday - first) % 7 + 1


def _weeknum(evaluation: Evaluation, arguments: Sequence[Node]) -> Scalar:
    """WEEKNUM: the number of the week, which begins on a day that the second argument chooses."""
    values = [evaluation.scalar(argument) for argument in arguments]
    day, kind = values[0], values[1] if len(values) > 1 else 1
    if len(values) > 2 or not is_number(day) or not is_number(kind) or day <= FIRST_DAYS:
        return _add_in("WEEKNUM")(evaluation, arguments)
    refused = evaluation.refusal("WEEKNUM", values)
    if refused is not None:
        return evaluation.refused(refused)
    year, _, _ = day_parts(math.floor(day))
    if math.trunc(kind) == 21:  # the week belongs to the year of its Thursday
        thursday = math.floor(day) - (math.floor(day) - 2) % 7 + 3
        start = date_serial(day_parts(thursday)[0], 1, 1)
        return float((thursday - (start or 0)) // 7 + 1)
    first = {1: 0, 2: 1}.get(math.trunc(kind), math.trunc(kind) - 10)
    january = date_serial(year, 1, 1) or 0
    return float((math.floor(day) - january + (january - 1 - first) % 7) // 7 + 1)


def _datedif(evaluation: Evaluation, start: Scalar, end: Scalar, unit: Scalar) -> Scalar:
    """DATEDIF in days, or in completed months or years.

    Excel's results for ``MD`` and ``YD`` are known to be wrong for some dates, and are left to the
    engines.
    """
    if not isinstance(unit, str) or unit.upper() not in ("Y", "M", "D", "YM"):
        raise UnsureError
    days: list[int] = []
    for value in (start, end):
        number = evaluation.number(value)
        if isinstance(number, ErrorValue):
            return number
        if isinstance(value, bool) or not FIRST_DAYS < number < LAST_SERIAL + 1:
            raise UnsureError
        days.append(math.floor(number))
    if days[0] > days[1]:
        return NUM
    if unit.upper() == "D":
        return float(days[1] - days[0])
    (year, month, day), (end_year, end_month, end_day) = map(day_parts, days)
    months = (end_year - year) * 12 + end_month - month - (end_day < day)
    return float({"Y": months // 12, "M": months, "YM": months % 12}[unit.upper()])


def _time(evaluation: Evaluation, *values: Scalar) -> Scalar:
    parts: list[int] = []
    for value in values:
        number = evaluation.number(value)
        if isinstance(number, ErrorValue):
            raise UnsureError
        parts.append(math.trunc(number))
    refused = evaluation.refusal("TIME", values)
    if refused is not None:
        return evaluation.refused(refused)
    return (3600 * parts[0] + 60 * parts[1] + parts[2]) % 86_400 / 86_400


def _clock(part_index: int) -> Function:
    """Returns a Python function that computes HOUR, MINUTE or SECOND."""

    def plain(evaluation: Evaluation, value: Scalar) -> Scalar:
        number = evaluation.number(value)
        if isinstance(number, ErrorValue):
            return number
        if not 0 <= number < LAST_SERIAL + 1:
            return evaluation.refused(NUM)
        seconds = number % 1 * 86_400
        if abs(seconds % 1 - 0.5) < 0.01:
            raise UnsureError  # it depends on the last digits which way Excel rounds them
        whole = math.floor(seconds + 0.5) % 86_400
        return (whole // 3600, whole // 60 % 60, whole % 60)[part_index]

    return OfValues(1, 1, plain)


def _months_away(*, at_end: bool) -> Function:
    """Computes EDATE and EOMONTH for the first days of 1900 and for dates beyond the calendar."""

    def call(evaluation: Evaluation, arguments: Sequence[Node]) -> Scalar:
        if len(arguments) != 2:
            raise UnsureError
        numbers: list[int] = []
        for argument in arguments:
            value = evaluation.scalar(argument)
            number = evaluation.number(value)
            if isinstance(value, bool):
                evaluation.converted, number = True, VALUE
            if isinstance(number, ErrorValue):
                return number
            numbers.append(math.trunc(number))
        start, months = numbers
        if not 0 <= start <= LAST_SERIAL or abs(months) > MAX_MONTHS:
            evaluation.converted = True
            return NUM
        year, month, day = day_parts(start)
        last = date_serial(year, month + months + 1, 0)
        first = date_serial(year, month + months, 1)
        if last is None or first is None:
            evaluation.converted = True
            return NUM
        result = last if at_end else min(first + day - 1, last)
        evaluation.converted = evaluation.converted or start <= FIRST_DAYS or result <= FIRST_DAYS
        return float(result)

    return call


# -- functions of the former add-in ----------------------------------------------------------------

ADD_IN = frozenset(
    """
    ACCRINTM AMORDEGRC AMORLINC BESSELI BESSELJ BESSELK BESSELY BIN2DEC BIN2HEX BIN2OCT COMPLEX
    CONVERT COUPDAYBS COUPDAYS COUPDAYSNC COUPNCD COUPNUM COUPPCD CUMIPMT CUMPRINC DEC2BIN DEC2HEX
    DEC2OCT DELTA DISC DOLLARDE DOLLARFR DURATION EDATE EFFECT EOMONTH ERF ERF.PRECISE ERFC
    ERFC.PRECISE FACTDOUBLE GCD GESTEP HEX2BIN HEX2DEC HEX2OCT IMABS IMAGINARY IMARGUMENT
    IMCONJUGATE IMCOS IMCOSH IMCOT IMCSC IMCSCH IMDIV IMEXP IMLN IMLOG10 IMLOG2 IMPOWER IMPRODUCT
    IMREAL IMSEC IMSECH IMSIN IMSINH IMSQRT IMSUB IMSUM IMTAN INTRATE ISEVEN ISODD LCM MDURATION
    MROUND MULTINOMIAL NETWORKDAYS NOMINAL OCT2BIN OCT2DEC OCT2HEX PRICE PRICEDISC PRICEMAT QUOTIENT
    RECEIVED SERIESSUM SQRTPI TBILLEQ TBILLPRICE TBILLYIELD WEEKNUM WORKDAY XNPV YEARFRAC YIELD
    YIELDDISC YIELDMAT
    """.split()  # noqa: SIM905 - a list of twenty lines says no more
)
"""Functions from the Analysis ToolPak, which do not accept logical values as numbers."""


def _refusing_logical(evaluation: Evaluation, arguments: Sequence[Node]) -> Scalar:
    """Returns #VALUE! if the first argument that is not a number is a logical value.

    Raises:
        UnsureError: other arguments, which are left to the engines.
    """
    for argument in arguments:
        if isinstance(argument, Reference) and not _is_cell(argument):
            values = list(evaluation.values.cells(argument).values.values())
        else:
            values = [evaluation.scalar(argument)]
        if any(isinstance(value, (str, ErrorValue)) for value in values):
            raise UnsureError
        if any(isinstance(value, bool) for value in values):
            evaluation.converted = True
            return VALUE
    raise UnsureError


def _add_in(name: str) -> Function:
    """A function of the former add-in, of which only the refused arguments are computed here."""

    def call(evaluation: Evaluation, arguments: Sequence[Node]) -> Scalar:
        if name not in REFUSALS:
            return _refusing_logical(evaluation, arguments)
        values = [evaluation.scalar(argument) for argument in arguments]
        if all(is_number(value) or value is None for value in values):
            refused = evaluation.refusal(name, values)
            if refused is not None:
                return evaluation.refused(refused)
        return _refusing_logical(evaluation, arguments)

    return call


def _working_days(name: str) -> Function:
    """NETWORKDAYS, WORKDAY and their INTL variants, of which only the refusals are known here."""
    has_weekend = name.endswith(".INTL")

    def call(evaluation: Evaluation, arguments: Sequence[Node]) -> Scalar:
        if len(arguments) < 2:
            raise UnsureError
        values = [evaluation.scalar(argument) for argument in arguments[:2]]
        if any(isinstance(value, (str, ErrorValue)) for value in values):
            raise UnsureError
        refused = evaluation.refusal(name, values)
        if has_weekend and len(arguments) > 2 and refused is None:
            weekend = evaluation.scalar(arguments[2])
            refused = _refused_weekend(weekend, free=name == "NETWORKDAYS.INTL")
        if refused is not None:
            return evaluation.refused(refused)
        if has_weekend:
            raise UnsureError
        return _refusing_logical(evaluation, arguments)

    return call


_WEEKENDS = frozenset((*range(1, 8), *range(11, 18)))


def _refused_weekend(weekend: Scalar, *, free: bool) -> ErrorValue | None:
    """The error if a value does not say which days are the weekend: a number, or seven 0 and 1.

    Args:
        weekend: the value.
        free: whether all seven days may be free.
    """
    if isinstance(weekend, str):
        is_mask = len(weekend) == 7 and set(weekend) <= {"0", "1"}
        return None if is_mask and (free or "0" in weekend) else VALUE
    if not is_number(weekend):
        return None
    return None if math.trunc(float(weekend or 0)) in _WEEKENDS else NUM


def _logical_payment(refused: ErrorValue, payments: int) -> Function:
    """XNPV and XIRR: a logical value is refused as the rate, or among the payments.

    Args:
        refused: the result if one of the payments is a logical value.
        payments: index of the payments among the arguments.
    """

    def call(evaluation: Evaluation, arguments: Sequence[Node]) -> Scalar:
        if len(arguments) < 2:
            raise UnsureError
        paid = arguments[payments]
        if isinstance(paid, Reference) and not _is_cell(paid):
            values = evaluation.values.cells(paid).filled()
            if any(isinstance(value, (str, ErrorValue)) for value in values):
                raise UnsureError
            if has_logical(values):
                evaluation.converted = True
                return refused
        if not payments and _is_out_of_order(evaluation, arguments[1]):
            return evaluation.refused(NUM)
        rate = arguments[:1] if payments else arguments[2:]
        return _refusing_logical(evaluation, rate)

    return call


def _is_out_of_order(evaluation: Evaluation, dates: Node) -> bool:
    """Whether a date of XIRR precedes the first one; engines other than Excel accept that."""
    values: list[Scalar] = []
    if isinstance(dates, ArrayConstant):
        values = [node.value for row in dates.rows for node in row if isinstance(node, Constant)]
    elif isinstance(dates, Reference):
        values = evaluation.values.cells(dates).filled()
    days = [math.floor(value) for value in values if is_number(value)]
    return len(days) == len(values) and any(day < days[0] for day in days)


def _duration(*, modified: bool) -> Function:
    """DURATION and MDURATION of a bond that is bought on the day of a coupon.

    All coupons are then whole periods away, so the value does not depend on how days are counted.
    Other days are left to the engines, although LibreOffice and IronCalc differ on them.
    """

    def call(evaluation: Evaluation, arguments: Sequence[Node]) -> Scalar:
        if len(arguments) not in (5, 6):
            raise UnsureError
        values = [evaluation.scalar(argument) for argument in arguments]
        numbers = [float(value) for value in values if is_number(value)]
        if len(numbers) < len(values):
            return _refusing_logical(evaluation, arguments)
        settlement, maturity, coupon, yield_, frequency, *basis = numbers
        periods = _whole_periods(settlement, maturity, frequency)
        if coupon <= 0 or yield_ <= 0 or any(basis_code not in range(5) for basis_code in basis):
            raise UnsureError
        growth = 1 + yield_ / frequency
        paid = [coupon / frequency / growth**number for number in range(1, periods + 1)]
        paid[-1] += 1 / growth**periods
        weighted = sum(number * part for number, part in enumerate(paid, start=1))
        evaluation.converted = True
        return weighted / sum(paid) / frequency / (growth if modified else 1)

    return call


_BY_SHARE: Mapping[str, Callable[[float, float, float], float]] = {
    "DISC": lambda price, redemption, share: (redemption - price) / redemption / share,
    "INTRATE": lambda paid, redemption, share: (redemption - paid) / paid / share,
    "YIELDDISC": lambda price, redemption, share: (redemption - price) / price / share,
    "RECEIVED": lambda paid, discount, share: paid / (1 - discount * share),
    "PRICEDISC": lambda discount, redemption, share: redemption * (1 - discount * share),
    "ACCRINTM": lambda rate, par, share: par * rate * share,
}
"""Function of a security without coupons -> computes it from its third and fourth argument, and the
time in years. Source: the equations on Microsoft's pages."""

_DEFAULT_PAR = 1000.0


def _by_share(name: str) -> Function:
    """A function of a security without coupons, for days that are not at the end of a month.

    Years of exact days are left to engines.
    """
    refusing = _add_in(name)

    def call(evaluation: Evaluation, arguments: Sequence[Node]) -> Scalar:
        try:
            return refusing(evaluation, arguments)
        except UnsureError:
            numbers = _bond_numbers(evaluation, arguments, 3 if name == "ACCRINTM" else None)
        if len(numbers) not in (4, 5):
            raise UnsureError
        start, end, one, other, *basis = numbers
        if start >= end or min(one, other) <= 0:
            raise UnsureError
        share = _years(math.floor(start), math.floor(end), *basis)
        evaluation.converted = True
        return _BY_SHARE[name](one, other, share)

    return call


def _bond_numbers(
    evaluation: Evaluation, arguments: Sequence[Node], par: int | None
) -> list[float]:
    """The arguments of a function of a security, which are all numbers.

    Args:
        evaluation: the evaluation of the formula.
        arguments: its arguments; a par value that is left out is 1000.
        par: index of the par value among the arguments, if there is one.
    """
    values = [
        _DEFAULT_PAR if at == par and isinstance(node, Missing) else evaluation.scalar(node) or 0.0
        for at, node in enumerate(arguments)
    ]
    if not all(map(is_number, values)):
        raise UnsureError
    return [float(value) for value in values if isinstance(value, (int, float))]


def _years(start: int, end: int, basis: float = 0) -> float:
    """The time between two days in years, by 30/360 or with years of 360 or 365 days."""
    if basis in (0, 4):
        return _days_of_360(start, end) / 360
    if basis not in (2, 3):
        raise UnsureError
    return (end - start) / (360 if basis == 2 else 365)


def _accrint(evaluation: Evaluation, arguments: Sequence[Node]) -> Scalar:
    """ACCRINT by 30/360, if the par value is left out; engines take 0 for it."""
    if len(arguments) not in (6, 7) or not isinstance(arguments[4], Missing):
        raise UnsureError
    issue, first, end, rate, par, frequency, *basis = _bond_numbers(evaluation, arguments, 4)
    if not issue < first or not issue < end or rate <= 0 or frequency not in (1, 2, 4):
        raise UnsureError
    if any(basis_code not in (0, 4) for basis_code in basis):
        raise UnsureError
    evaluation.converted = True
    return par * rate * _years(math.floor(issue), math.floor(end), *basis)


def _whole_periods(settlement: float, maturity: float, frequency: float) -> int:
    """How many whole periods lie between two days.

    Raises:
        UnsureError: the time is not a number of whole periods, or a day is at the end of a month.
    """
    if frequency not in (1, 2, 4) or not FIRST_DAYS < settlement < maturity <= LAST_SERIAL:
        raise UnsureError
    first, last = day_parts(math.floor(settlement)), day_parts(math.floor(maturity))
    months = 12 * (last[0] - first[0]) + last[1] - first[1]
    if first[2] != last[2] or first[2] > MAX_PLAIN_DAY or months % (12 // int(frequency)):
        raise UnsureError
    return months * int(frequency) // 12


def _odd_first(*, of_yield: bool) -> Function:
    """ODDFYIELD, or ODDFPRICE: a bond whose first period is shorter than the others.

    Days are counted by 30/360 (US) or exactly; other ways, long first periods and days at the end
    of a month are left to engines. Source: Microsoft's page on ODDFPRICE.
    """

    def call(evaluation: Evaluation, arguments: Sequence[Node]) -> Scalar:
        if len(arguments) not in (8, 9):
            raise UnsureError
        values = [evaluation.scalar(argument) for argument in arguments]
        if any(isinstance(value, (str, bool, ErrorValue)) or value is None for value in values):
            raise UnsureError
        numbers = [float(value) for value in values if isinstance(value, (int, float))]
        settlement, maturity, issue, first = map(math.floor, numbers[:4])
        rate, given, redemption, frequency = numbers[4:8]
        basis = numbers[8] if len(numbers) > 8 else 0
        if basis not in (0, 1) or rate <= 0 or given <= 0 or redemption <= 0:
            raise UnsureError
        if not issue < settlement < first < maturity:
            raise UnsureError
        coupons = _whole_periods(first, maturity, frequency) + 1
        year, month, day = day_parts(first)
        before = date_serial(year, month - 12 // int(frequency), day)
        if before is None or before > issue:
            raise UnsureError
        days = _exact_days if basis else _days_of_360
        period = days(before, first)
        accrued, left = days(issue, settlement) / period, days(settlement, first) / period
        share = days(issue, first) / period

        def price(return_: float) -> float:
            growth, paid = 1 + return_ / frequency, 100 * rate / frequency
            later = math.fsum(paid / growth ** (number + left) for number in range(1, coupons))
            total = redemption / growth ** (coupons - 1 + left) + paid * share / growth**left
            return float(total + later - paid * accrued)

        evaluation.converted = True
        return _solved(price, given) if of_yield else price(given)

    return call


def _exact_days(start: int, end: int) -> int:
    return end - start


def _days_of_360(start: int, end: int) -> int:
    """Days by 30/360, between days that are not at the end of a month."""
    first, last = day_parts(start), day_parts(end)
    if max(first[2], last[2]) > MAX_PLAIN_DAY:
        raise UnsureError
    return 360 * (last[0] - first[0]) + 30 * (last[1] - first[1]) + last[2] - first[2]


def _solved(price: Callable[[float], float], target_price: float) -> float:
    """The yield from 0 to 10 that gives a price, which falls as the yield rises.

    Raises:
        UnsureError: there is no such yield.
    """
    low, high = 0.0, 10.0
    if not price(high) <= target_price <= price(low):
        raise UnsureError
    for _ in range(100):
        middle = (low + high) / 2
        low, high = (middle, high) if price(middle) > target_price else (low, middle)
    return (low + high) / 2


def _is_cell(reference: Reference) -> bool:
    _, top, left, bottom, right = reference
    return (top, left) == (bottom, right)


# -- units -----------------------------------------------------------------------------------------

_TIME = {"s": 1, "sec": 1, "mn": 60, "min": 60, "hr": 3600, "d": 86_400, "day": 86_400}
_LENGTH = {"m": 1}
_MASS = {"g": 1}
_FORCE = {"N": 1}
_ENERGY = {"J": 1}
_POWER = {"W": 1, "w": 1}

_WITH_PREFIXES = frozenset(("s", "sec", "m", "g", "N", "J", "W", "w"))

_PREFIXES = {
    "Y": 24, "Z": 21, "E": 18, "P": 15, "T": 12, "G": 9, "M": 6, "k": 3, "h": 2, "e": 1, "da": 1,
    "d": -1, "c": -2, "m": -3, "u": -6, "n": -9, "p": -12, "f": -15, "a": -18, "z": -21, "y": -24,
}  # fmt: skip


def _unit(name: str) -> tuple[int, float, int]:
    """The kind of a unit, its size in the first unit of the kind, and its prefix's power of ten."""
    for number, units in enumerate((_TIME, _LENGTH, _MASS, _FORCE, _ENERGY, _POWER)):
        if name in units:
            return number, units[name], 0
        for unit in units.keys() & _WITH_PREFIXES:
            prefix = name.removesuffix(unit)
            if prefix != name and prefix in _PREFIXES:
                return number, units[unit], _PREFIXES[prefix]
    raise UnsureError


def _convert(evaluation: Evaluation, arguments: Sequence[Node]) -> Scalar:
    if len(arguments) != 3:
        raise UnsureError
    value = evaluation.scalar(arguments[0])
    if isinstance(value, bool):
        evaluation.converted = True
        return VALUE
    names = [evaluation.scalar(argument) for argument in arguments[1:]]
    one, other = (name if isinstance(name, str) else "" for name in names)
    if isinstance(value, (str, ErrorValue)) or value is None:
        raise UnsureError
    (kind, factor, power), (other_kind, other_factor, other_power) = _unit(one), _unit(other)
    if kind != other_kind:
        raise UnsureError
    evaluation.converted = True
    ten = power - other_power
    amount = value * 10.0**ten if ten >= 0 else value / 10.0**-ten
    return amount * factor / other_factor


DATE_AND_UNIT_FUNCTIONS: dict[str, Function] = {
    **{f"{prefix}{name}": _add_in(name) for name in ADD_IN for prefix in ("", "_XLFN.")},
    **{
        name: _working_days(name)
        for name in ("NETWORKDAYS", "NETWORKDAYS.INTL", "WORKDAY", "WORKDAY.INTL")
    },
    "XNPV": _logical_payment(NUM, 1),
    "XIRR": _logical_payment(VALUE, 0),
    **{name: _by_share(name) for name in _BY_SHARE},
    "ACCRINT": _accrint,
    "ODDFPRICE": _odd_first(of_yield=False),
    "ODDFYIELD": _odd_first(of_yield=True),
    "DURATION": _duration(modified=False),
    "MDURATION": _duration(modified=True),
    "DATEVALUE": OfValues(1, 1, _datevalue),
    "TIMEVALUE": OfValues(1, 1, _timevalue),
    "DATE": OfValues(3, 3, _date),
    "EDATE": _months_away(at_end=False),
    "EOMONTH": _months_away(at_end=True),
    "YEAR": _part(0),
    "MONTH": _part(1),
    "DAY": _part(2),
    "TIME": OfValues(3, 3, _time),
    "HOUR": _clock(0),
    "MINUTE": _clock(1),
    "SECOND": _clock(2),
    "WEEKDAY": OfValues(1, 2, _weekday),
    "WEEKNUM": _weeknum,
    "DATEDIF": OfValues(3, 3, _datedif),
    "CONVERT": _convert,
}
