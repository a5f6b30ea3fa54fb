"""Random questions over the answers `a` (plan, site, n), `b` (plan, n) and `c` (n), as DuckDB reads them too."""

import random

COLUMNS = {"a": ("plan", "site", "n"), "b": ("plan", "n"), "c": ("n",)}
JOINS = ("JOIN", "LEFT JOIN", "RIGHT JOIN", "FULL JOIN")


def text_of(seed: int) -> str:
    """Return a question: joins, unions, aggregates and numbers beside a table, all of which must be answered."""
    chance = random.Random(seed)
    if chance.random() < 0.25:
        return _union(chance)
    return _joined(chance)


def _source(chance: random.Random) -> tuple[str, tuple[str, ...]]:
    """Return what stands in FROM, and the columns that it has."""
    name = chance.choice("aabbc")
    kind = chance.random()
    if kind < 0.5:
        return name, COLUMNS[name]
    if kind < 0.75:
        return f"(SELECT * FROM {name} WHERE n > {chance.randint(0, 500)})", COLUMNS[name]
    if name == "a":
        key = chance.choice(("plan", "site"))
        return f"(SELECT {key}, SUM(n) AS n FROM a GROUP BY {key})", (key, "n")
    return f"(SELECT MAX(n) AS n FROM {name})", ("n",)


def _number(chance: random.Random, names: list[str]) -> str:
    first, second = chance.choice(names), chance.choice(names)
    return chance.choice(
        (first, f"{first} - {second}", f"{first} * 2 + 1", f"COALESCE({first}, {second})", f"GREATEST({first}, 3)")
    )


def _joined(chance: random.Random) -> str:
    sources = [_source(chance) for _ in range(chance.choice((1, 2, 2, 2, 3)))]
    text, numbers, keys = "", list[str](), list[str]()
    for place, (source, columns) in enumerate(sources):
        name = f"t{place}"
        own = [f"{name}.{column}" for column in columns if column in ("plan", "site")]
        if not place:
            text = f"{source} AS {name}"
        else:
            pairs = [f"{left} = {right}" for left in keys for right in own if left.split(".")[1] == right.split(".")[1]]
            compared = f"{chance.choice(numbers)} > {name}.n"
            conditions = chance.choice((pairs[:1], pairs, [*pairs[:1], compared])) or [compared]
            text += f" {chance.choice(JOINS)} {source} AS {name} ON {' AND '.join(conditions)}"
        numbers.append(f"{name}.n")
        keys += own
    where = f" WHERE {chance.choice(numbers)} > {chance.randint(0, 900)}" if chance.random() < 0.3 else ""
    if chance.random() < 0.2:
        where = f" WHERE {numbers[0]} >= (SELECT AVG(n) FROM {chance.choice('abc')})"
    if keys and chance.random() < 0.35:
        key = chance.choice(keys)
        values = f"COUNT(*) AS k, SUM({_number(chance, numbers)}) AS s, MIN({chance.choice(numbers)}) AS m"
        return f"SELECT {key} AS key, {values} FROM {text}{where} GROUP BY {key}"
    shown = [*chance.sample(keys, min(len(keys), 2)), _number(chance, numbers), _number(chance, numbers)]
    items = ", ".join(f"{item} AS v{place}" for place, item in enumerate(shown))
    return f"SELECT {items} FROM {text}{where}"


def _union(chance: random.Random) -> str:
    legs = []
    for _ in range(chance.choice((2, 3))):
        name = chance.choice("abc")
        key = chance.choice([column for column in COLUMNS[name] if column in ("plan", "site")] or ["'all'"])
        legs.append(f"SELECT {key} AS key, {_number(chance, ['n'])} AS n FROM {name}")
    union = " UNION ALL ".join(legs)
    if chance.random() < 0.5:
        return union
    return f"SELECT key, SUM(n) AS s, COUNT(*) AS k FROM ({union}) AS u GROUP BY key HAVING COUNT(*) > 1"
