"""Comparison of a schema's tables, indexes, views, triggers and functions with its migrations."""

from typing import Any

import psycopg
from psycopg import sql

from dragoman.engine.ports import IntegrityReport
from dragoman.store.postgres import migrate
from dragoman.store.postgres.connect import Address, connect
from dragoman.store.postgres.errors import store_error
from dragoman.store.sql import SchemaObjects, compare_schemas

# Definitions name what is in the search path without its schema, so that those of two schemas can
# be compared.
_OBJECTS = """
WITH ours AS (SELECT * FROM pg_class WHERE relnamespace = current_schema()::regnamespace)
SELECT 'table ' || c.relname, string_agg(concat_ws(' ', a.attname,
         format_type(a.atttypid, a.atttypmod), l.collname, a.attnotnull,
         pg_get_expr(d.adbin, d.adrelid, true)), ', ' ORDER BY a.attnum)
FROM ours c JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped
LEFT JOIN pg_attrdef d ON d.adrelid = c.oid AND d.adnum = a.attnum
LEFT JOIN pg_collation l ON l.oid = a.attcollation
WHERE c.relkind IN ('r', 'p', 'f') GROUP BY c.relname
UNION ALL
SELECT 'constraint ' || n.conname, c.relname || ': ' || pg_get_constraintdef(n.oid, true)
FROM ours c JOIN pg_constraint n ON n.conrelid = c.oid WHERE n.contype <> 'n'
UNION ALL
SELECT 'index ' || c.relname,
       pg_get_indexdef(c.oid, 0, true) || CASE WHEN i.indisvalid THEN '' ELSE ' (invalid)' END
FROM ours c JOIN pg_index i ON i.indexrelid = c.oid
UNION ALL
SELECT 'view ' || relname, pg_get_viewdef(oid, true) FROM ours WHERE relkind IN ('v', 'm')
UNION ALL
SELECT 'sequence ' || c.relname, concat_ws(' ', s.seqstart, s.seqincrement, s.seqcycle)
FROM ours c JOIN pg_sequence s ON s.seqrelid = c.oid
UNION ALL
SELECT 'trigger ' || t.tgname || ' on ' || c.relname,
       pg_get_triggerdef(t.oid, true) || ' ' || t.tgenabled::text
FROM ours c JOIN pg_trigger t ON t.tgrelid = c.oid WHERE NOT t.tgisinternal
UNION ALL
SELECT 'rule ' || r.rulename || ' on ' || c.relname, pg_get_ruledef(r.oid, true)
FROM ours c JOIN pg_rewrite r ON r.ev_class = c.oid WHERE r.rulename <> '_RETURN'
UNION ALL
SELECT 'function ' || proname, prosrc
FROM pg_proc WHERE pronamespace = current_schema()::regnamespace
"""

_SUFFIX = "_expected"
_MAX_NAME = 63

_NOT_COMPARED = (
    psycopg.errors.InsufficientPrivilege,
    psycopg.errors.ReadOnlySqlTransaction,
    psycopg.errors.DuplicateSchema,
)

Connection = psycopg.Connection[Any]


def check_schema(address: Address) -> IntegrityReport:
    """Compare a schema with one of this version, which is made beside it and rolled back.

    It is not compared where the role may not make a schema, or that name is taken.
    """
    connection = connect(address)
    try:
        found = _list_objects(connection, address.schema)
        expected = _expected_objects(connection, address)
    except _NOT_COMPARED:
        return IntegrityReport(is_complete=False)
    except psycopg.Error as error:
        raise store_error(error, str(address), is_closed=connection.closed) from error
    finally:
        connection.close()
    return IntegrityReport(tuple(compare_schemas(found, expected)))


def _expected_objects(connection: Connection, address: Address) -> SchemaObjects:
    scratch = address.schema[: _MAX_NAME - len(_SUFFIX)] + _SUFFIX
    expected: SchemaObjects = {}
    with connection.transaction():
        connection.execute(sql.SQL("CREATE SCHEMA {}").format(sql.Identifier(scratch)))
        connection.execute(
            "SELECT set_config('search_path', %s, true)", (f"{scratch}, pg_catalog",)
        )
        for script in migrate.MIGRATIONS:
            connection.execute(script.encode())
        expected = _list_objects(connection, scratch)
        raise psycopg.Rollback
    return expected


def _list_objects(connection: Connection, schema: str) -> SchemaObjects:
    prefix = f"{schema}."
    found = connection.execute(_OBJECTS).fetchall()
    return {name: definition.replace(prefix, "") for name, definition in found}
