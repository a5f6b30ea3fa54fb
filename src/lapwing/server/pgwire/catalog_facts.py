"""The public facts of a data set, and the types and numbers that the catalog of PostgreSQL has for them."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, final
from zlib import crc32

from sqlglot import exp

from lapwing.server.pgwire import values
from lapwing.tables.tables import ColumnDescription, Tables

FIRST_OWN: Final = 16_384
"""The first number of an object that PostgreSQL did not bring along."""
OWNER: Final = "lapwing"
"""The role that owns all tables; no person is it."""
TYPE_OF: Final = {
    "integer": values.INT8, "decimal": values.NUMERIC, "float": values.FLOAT8, "string": values.TEXT_TYPE,
    "boolean": values.BOOL, "date": values.DATE, "timestamp": values.TIMESTAMP,
}  # fmt: skip
TYPES: Final = (
    # number, name, as SQL spells it, bytes, category, type of arrays
    (16, "bool", "boolean", 1, "B", 1000), (17, "bytea", "bytea", -1, "U", 1001), (18, "char", '"char"', 1, "Z", 1002),
    (19, "name", "name", 64, "S", 1003), (20, "int8", "bigint", 8, "N", 1016), (21, "int2", "smallint", 2, "N", 1005),
    (23, "int4", "integer", 4, "N", 1007), (24, "regproc", "regproc", 4, "N", 1008),
    (25, "text", "text", -1, "S", 1009), (26, "oid", "oid", 4, "N", 1028), (114, "json", "json", -1, "U", 199),
    (700, "float4", "real", 4, "N", 1021),
    (701, "float8", "double precision", 8, "N", 1022), (705, "unknown", "unknown", -2, "X", 0),
    (1042, "bpchar", "character", -1, "S", 1014), (1043, "varchar", "character varying", -1, "S", 1015),
    (1082, "date", "date", 4, "D", 1182), (1083, "time", "time without time zone", 8, "D", 1183),
    (1114, "timestamp", "timestamp without time zone", 8, "D", 1115),
    (1184, "timestamptz", "timestamp with time zone", 8, "D", 1185), (1186, "interval", "interval", 16, "T", 1187),
    (1700, "numeric", "numeric", -1, "N", 1231), (2205, "regclass", "regclass", 4, "N", 2210),
    (2206, "regtype", "regtype", 4, "N", 2211), (2278, "void", "void", 4, "P", 0),
    (2950, "uuid", "uuid", 16, "U", 2951), (3802, "jsonb", "jsonb", -1, "U", 3807),
)  # fmt: skip
CATALOG_NUMBERS: Final = {
    "pg_class": 1259, "pg_type": 1247, "pg_proc": 1255, "pg_attribute": 1249, "pg_database": 1262, "pg_am": 2601,
    "pg_namespace": 2615, "pg_constraint": 2606, "pg_attrdef": 2604, "pg_description": 2609, "pg_index": 2610,
    "pg_trigger": 2620, "pg_rewrite": 2618, "pg_roles": 12000, "pg_extension": 3079, "pg_language": 2612,
    "pg_operator": 2617, "pg_collation": 3456, "pg_enum": 3501, "pg_inherits": 2611, "pg_tablespace": 1213,
    "pg_authid": 1260, "pg_opclass": 2616, "pg_depend": 2608,
}  # fmt: skip
"""The numbers of the tables of the catalog itself."""
RESULTS: Final = {
    "BOOLEAN": values.BOOL, "TINYINT": values.INT2, "SMALLINT": values.INT2, "INTEGER": values.INT4,
    "BIGINT": values.INT8, "UINTEGER": values.OID, "HUGEINT": values.NUMERIC, "DOUBLE": values.FLOAT8,
    "FLOAT": values.FLOAT8, "DATE": values.DATE, "TIMESTAMP": values.TIMESTAMP, "BOOLEAN[]": 1000, "SMALLINT[]": 1005,
    "INTEGER[]": 1007, "BIGINT[]": 1016, "UINTEGER[]": 1028, "VARCHAR[]": 1009,
}  # fmt: skip
"""The type of PostgreSQL for each type of DuckDB; any other value is sent as a text."""
CASTS: Final = {
    **dict.fromkeys(("name", "text", "char", "bpchar", "varchar", "json", "jsonb", "unknown", "uuid"), "VARCHAR"),
    **dict.fromkeys(("sql_identifier", "character_data", "yes_or_no", "pg_node_tree", "cstring"), "VARCHAR"),
    **dict.fromkeys(("oid", "xid", "cid"), "UINTEGER"),
    "int2": "SMALLINT", "smallint": "SMALLINT", "int": "INTEGER", "int4": "INTEGER", "integer": "INTEGER",
    "cardinal_number": "INTEGER", "int8": "BIGINT", "bigint": "BIGINT", "bool": "BOOLEAN", "boolean": "BOOLEAN",
    "float4": "DOUBLE", "float8": "DOUBLE", "float": "DOUBLE", "double": "DOUBLE", "real": "DOUBLE",
    "decimal": "DECIMAL(38, 9)", "numeric": "DECIMAL(38, 9)", "date": "DATE", "timestamp": "TIMESTAMP",
    "int2vector": "SMALLINT[]", "oidvector": "UINTEGER[]",
}  # fmt: skip
NAMES_OF: Final = {
    "regclass": "pgf_relation_name", "regtype": "pgf_format_type", "regnamespace": "pgf_namespace_name",
    "regrole": "pgf_role_name",
}  # fmt: skip
"""The functions that show the name of an object by its number."""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """The public facts that a person is shown.

    Args:
        dataset: The data set that is read.
        datasets: The names of all data sets that the person may see.
    """

    person: str
    dataset: str
    datasets: Sequence[str]
    tables: Tables
    version: str


def type_of(column: ColumnDescription) -> int:
    """Return the number of the type of a column."""
    return TYPE_OF.get(column.type or "", values.TEXT_TYPE)


def type_rows() -> list[tuple[int, str, str, int, str, str, int, int]]:
    """Return the rows of `facts.types`: each type, and the arrays of it."""
    plain = [
        (oid, name, shown, size, category, "p" if category in "PX" else "b", 0, array)
        for oid, name, shown, size, category, array in TYPES
    ]
    arrays = [
        (array, f"_{name}", f"{shown}[]", -1, "A", "b", oid, 0) for oid, name, shown, _, _, array in TYPES if array
    ]
    return plain + arrays


def hashed(name: str) -> int:
    """Return the number of an object, by its name."""
    return FIRST_OWN + crc32(name.encode()) % (2**31 - 2 * FIRST_OWN)


def numeric_or_text(type_: str) -> int:
    """Return the number of the type for a type of DuckDB that `RESULTS` does not have."""
    return values.NUMERIC if type_.startswith(("DECIMAL", "UBIGINT", "UHUGEINT")) else values.TEXT_TYPE


def type_name(type_: exp.Expr) -> tuple[str, int]:
    """Return the name of a type without its schema, and how many times it is an array."""
    text = (
        type_.sql("postgres").lower().replace('"', "").removeprefix("pg_catalog.").removeprefix("information_schema.")
    )
    depth = text.count("[]")
    return text.replace("[]", "").split("(")[0].replace(" precision", "").strip(), depth
