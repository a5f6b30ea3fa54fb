"""What a question may begin with: tables as a catalog describes them, and Ibis expressions of them.

`lapwing.tables` is their documented place, wherever they are written.
"""

from lapwing.tables.tables import ColumnDescription, TableDescription, Tables, quoted, tables_of

__all__ = ["ColumnDescription", "TableDescription", "Tables", "quoted", "tables_of"]
