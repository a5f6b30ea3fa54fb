-- The catalog of PostgreSQL as clients read it: `pg` stands for pg_catalog and `info` for information_schema. The
-- tables of `facts` come first (`catalog.py` fills them); the tables below are filled from them, and most stay empty.
-- Names of columns follow PostgreSQL 15 to 18, https://www.postgresql.org/docs/18/catalogs.html.

CREATE SCHEMA pg;
CREATE SCHEMA info;
CREATE TABLE pg.pg_class (oid UINTEGER, relname TEXT, relnamespace UINTEGER, reltype UINTEGER, reloftype UINTEGER,
    relowner UINTEGER, relam UINTEGER, relfilenode UINTEGER, reltablespace UINTEGER, relpages INT4, reltuples FLOAT8,
    relallvisible INT4, reltoastrelid UINTEGER, relhasindex BOOL, relisshared BOOL, relpersistence TEXT, relkind TEXT,
    relnatts INT2, relchecks INT2, relhasrules BOOL, relhastriggers BOOL, relhassubclass BOOL, relrowsecurity BOOL,
    relforcerowsecurity BOOL, relispopulated BOOL, relreplident TEXT, relispartition BOOL, relrewrite UINTEGER,
    relfrozenxid UINTEGER, relminmxid UINTEGER, relacl TEXT[], reloptions TEXT[], relpartbound TEXT);
CREATE TABLE pg.pg_attribute (attrelid UINTEGER, attname TEXT, atttypid UINTEGER, attstattarget INT4, attlen INT2,
    attnum INT2, attndims INT4, attcacheoff INT4, atttypmod INT4, attbyval BOOL, attalign TEXT, attstorage TEXT,
    attcompression TEXT, attnotnull BOOL, atthasdef BOOL, atthasmissing BOOL, attidentity TEXT, attgenerated TEXT,
    attisdropped BOOL, attislocal BOOL, attinhcount INT4, attcollation UINTEGER, attacl TEXT[], attoptions TEXT[],
    attfdwoptions TEXT[], attmissingval TEXT);
CREATE TABLE pg.pg_type (oid UINTEGER, typname TEXT, typnamespace UINTEGER, typowner UINTEGER, typlen INT2, typbyval
    BOOL, typtype TEXT, typcategory TEXT, typispreferred BOOL, typisdefined BOOL, typdelim TEXT, typrelid UINTEGER,
    typsubscript UINTEGER, typelem UINTEGER, typarray UINTEGER, typinput UINTEGER, typoutput UINTEGER, typreceive
    UINTEGER, typsend UINTEGER, typmodin UINTEGER, typmodout UINTEGER, typanalyze UINTEGER, typalign TEXT, typstorage
    TEXT, typnotnull BOOL, typbasetype UINTEGER, typtypmod INT4, typndims INT4, typcollation UINTEGER, typdefaultbin
    TEXT, typdefault TEXT, typacl TEXT[]);
CREATE TABLE pg.pg_namespace (oid UINTEGER, nspname TEXT, nspowner UINTEGER, nspacl TEXT[]);
CREATE TABLE pg.pg_attrdef (oid UINTEGER, adrelid UINTEGER, adnum INT2, adbin TEXT);
CREATE TABLE pg.pg_description (objoid UINTEGER, classoid UINTEGER, objsubid INT4, description TEXT);
CREATE TABLE pg.pg_database (oid UINTEGER, datname TEXT, datdba UINTEGER, encoding INT4, datlocprovider TEXT,
    datistemplate BOOL, datallowconn BOOL, datconnlimit INT4, datfrozenxid UINTEGER, datminmxid UINTEGER,
    dattablespace UINTEGER, datcollate TEXT, datctype TEXT, daticulocale TEXT, datcollversion TEXT, datacl TEXT[],
    datlocale TEXT, daticurules TEXT);
CREATE TABLE pg.pg_constraint (oid UINTEGER, conname TEXT, connamespace UINTEGER, contype TEXT, condeferrable BOOL,
    condeferred BOOL, convalidated BOOL, conrelid UINTEGER, contypid UINTEGER, conindid UINTEGER, conparentid
    UINTEGER, confrelid UINTEGER, confupdtype TEXT, confdeltype TEXT, confmatchtype TEXT, conislocal BOOL, coninhcount
    INT4, connoinherit BOOL, conkey INT2[], confkey INT2[], conpfeqop UINTEGER[], conppeqop UINTEGER[], conffeqop
    UINTEGER[], confdelsetcols INT2[], conexclop UINTEGER[], conbin TEXT, conperiod BOOL, conenforced BOOL);
CREATE TABLE pg.pg_index (indexrelid UINTEGER, indrelid UINTEGER, indnatts INT2, indnkeyatts INT2, indisunique BOOL,
    indnullsnotdistinct BOOL, indisprimary BOOL, indisexclusion BOOL, indimmediate BOOL, indisclustered BOOL,
    indisvalid BOOL, indcheckxmin BOOL, indisready BOOL, indislive BOOL, indisreplident BOOL, indkey INT2[],
    indcollation UINTEGER[], indclass UINTEGER[], indoption INT2[], indexprs TEXT, indpred TEXT);
CREATE TABLE pg.pg_roles (rolname TEXT, rolsuper BOOL, rolinherit BOOL, rolcreaterole BOOL, rolcreatedb BOOL,
    rolcanlogin BOOL, rolreplication BOOL, rolconnlimit INT4, rolpassword TEXT, rolvaliduntil TIMESTAMP, rolbypassrls
    BOOL, rolconfig TEXT[], oid UINTEGER);
CREATE TABLE pg.pg_user (usename TEXT, usesysid UINTEGER, usecreatedb BOOL, usesuper BOOL, userepl BOOL, usebypassrls
    BOOL, passwd TEXT, valuntil TIMESTAMP, useconfig TEXT[]);
CREATE TABLE pg.pg_proc (oid UINTEGER, proname TEXT, pronamespace UINTEGER, proowner UINTEGER, prolang UINTEGER,
    procost FLOAT8, prorows FLOAT8, provariadic UINTEGER, prosupport UINTEGER, prokind TEXT, prosecdef BOOL,
    proleakproof BOOL, proisstrict BOOL, proretset BOOL, provolatile TEXT, proparallel TEXT, pronargs INT2,
    pronargdefaults INT2, prorettype UINTEGER, proargtypes UINTEGER[], proallargtypes UINTEGER[], proargmodes TEXT[],
    proargnames TEXT[], proargdefaults TEXT, protrftypes UINTEGER[], prosrc TEXT, probin TEXT, prosqlbody TEXT,
    proconfig TEXT[], proacl TEXT[]);
CREATE TABLE pg.pg_am (oid UINTEGER, amname TEXT, amhandler UINTEGER, amtype TEXT);
CREATE TABLE pg.pg_collation (oid UINTEGER, collname TEXT, collnamespace UINTEGER, collowner UINTEGER, collprovider
    TEXT, collisdeterministic BOOL, collencoding INT4, collcollate TEXT, collctype TEXT, colliculocale TEXT,
    collversion TEXT, colllocale TEXT);
CREATE TABLE pg.pg_inherits (inhrelid UINTEGER, inhparent UINTEGER, inhseqno INT4, inhdetachpending BOOL);
CREATE TABLE pg.pg_policy (oid UINTEGER, polname TEXT, polrelid UINTEGER, polcmd TEXT, polpermissive BOOL, polroles
    UINTEGER[], polqual TEXT, polwithcheck TEXT);
CREATE TABLE pg.pg_publication (oid UINTEGER, pubname TEXT, pubowner UINTEGER, puballtables BOOL, pubinsert BOOL,
    pubupdate BOOL, pubdelete BOOL, pubtruncate BOOL, pubviaroot BOOL, pubgencols TEXT);
CREATE TABLE pg.pg_publication_rel (oid UINTEGER, prpubid UINTEGER, prrelid UINTEGER, prqual TEXT, prattrs INT2[]);
CREATE TABLE pg.pg_publication_namespace (oid UINTEGER, pnpubid UINTEGER, pnnspid UINTEGER);
CREATE TABLE pg.pg_statistic_ext (oid UINTEGER, stxrelid UINTEGER, stxname TEXT, stxnamespace UINTEGER, stxowner
    UINTEGER, stxstattarget INT4, stxkeys INT2[], stxkind TEXT[], stxexprs TEXT);
CREATE TABLE pg.pg_trigger (oid UINTEGER, tgrelid UINTEGER, tgparentid UINTEGER, tgname TEXT, tgfoid UINTEGER, tgtype
    INT2, tgenabled TEXT, tgisinternal BOOL, tgconstrrelid UINTEGER, tgconstrindid UINTEGER, tgconstraint UINTEGER,
    tgdeferrable BOOL, tginitdeferred BOOL, tgnargs INT2, tgattr INT2[], tgargs TEXT, tgqual TEXT, tgoldtable TEXT,
    tgnewtable TEXT);
CREATE TABLE pg.pg_rewrite (oid UINTEGER, rulename TEXT, ev_class UINTEGER, ev_type TEXT, ev_enabled TEXT, is_instead
    BOOL, ev_qual TEXT, ev_action TEXT);
CREATE TABLE pg.pg_depend (classid UINTEGER, objid UINTEGER, objsubid INT4, refclassid UINTEGER, refobjid UINTEGER,
    refobjsubid INT4, deptype TEXT);
CREATE TABLE pg.pg_enum (oid UINTEGER, enumtypid UINTEGER, enumsortorder FLOAT8, enumlabel TEXT);
CREATE TABLE pg.pg_range (rngtypid UINTEGER, rngsubtype UINTEGER, rngmultitypid UINTEGER, rngcollation UINTEGER,
    rngsubopc UINTEGER, rngcanonical UINTEGER, rngsubdiff UINTEGER);
CREATE TABLE pg.pg_settings (name TEXT, setting TEXT, unit TEXT, category TEXT, short_desc TEXT, extra_desc TEXT,
    context TEXT, vartype TEXT, source TEXT, min_val TEXT, max_val TEXT, enumvals TEXT[], boot_val TEXT, reset_val
    TEXT, sourcefile TEXT, sourceline INT4, pending_restart BOOL);
CREATE TABLE pg.pg_tables (schemaname TEXT, tablename TEXT, tableowner TEXT, tablespace TEXT, hasindexes BOOL,
    hasrules BOOL, hastriggers BOOL, rowsecurity BOOL);
CREATE TABLE pg.pg_views (schemaname TEXT, viewname TEXT, viewowner TEXT, definition TEXT);
CREATE TABLE pg.pg_matviews (schemaname TEXT, matviewname TEXT, matviewowner TEXT, tablespace TEXT, hasindexes BOOL,
    ispopulated BOOL, definition TEXT);
CREATE TABLE pg.pg_foreign_table (ftrelid UINTEGER, ftserver UINTEGER, ftoptions TEXT[]);
CREATE TABLE pg.pg_foreign_server (oid UINTEGER, srvname TEXT, srvowner UINTEGER, srvfdw UINTEGER, srvtype TEXT,
    srvversion TEXT, srvacl TEXT[], srvoptions TEXT[]);
CREATE TABLE pg.pg_foreign_data_wrapper (oid UINTEGER, fdwname TEXT, fdwowner UINTEGER, fdwhandler UINTEGER,
    fdwvalidator UINTEGER, fdwacl TEXT[], fdwoptions TEXT[]);
CREATE TABLE pg.pg_tablespace (oid UINTEGER, spcname TEXT, spcowner UINTEGER, spcacl TEXT[], spcoptions TEXT[]);
CREATE TABLE pg.pg_sequence (seqrelid UINTEGER, seqtypid UINTEGER, seqstart INT8, seqincrement INT8, seqmax INT8,
    seqmin INT8, seqcache INT8, seqcycle BOOL);
CREATE TABLE pg.pg_sequences (schemaname TEXT, sequencename TEXT, sequenceowner TEXT, data_type TEXT, start_value
    INT8, min_value INT8, max_value INT8, increment_by INT8, cycle BOOL, cache_size INT8, last_value INT8);
CREATE TABLE pg.pg_group (groname TEXT, grosysid UINTEGER, grolist UINTEGER[]);
CREATE TABLE pg.pg_auth_members (roleid UINTEGER, member UINTEGER, grantor UINTEGER, admin_option BOOL, inherit_option
    BOOL, set_option BOOL);
CREATE TABLE pg.pg_shdescription (objoid UINTEGER, classoid UINTEGER, description TEXT);
CREATE TABLE pg.pg_extension (oid UINTEGER, extname TEXT, extowner UINTEGER, extnamespace UINTEGER, extrelocatable
    BOOL, extversion TEXT, extconfig UINTEGER[], extcondition TEXT[]);
CREATE TABLE pg.pg_language (oid UINTEGER, lanname TEXT, lanowner UINTEGER, lanispl BOOL, lanpltrusted BOOL,
    lanplcallfoid UINTEGER, laninline UINTEGER, lanvalidator UINTEGER, lanacl TEXT[]);
CREATE TABLE pg.pg_indexes (schemaname TEXT, tablename TEXT, indexname TEXT, tablespace TEXT, indexdef TEXT);
CREATE TABLE pg.pg_partitioned_table (partrelid UINTEGER, partstrat TEXT, partnatts INT2, partdefid UINTEGER,
    partattrs INT2[], partclass UINTEGER[], partcollation UINTEGER[], partexprs TEXT);
CREATE TABLE pg.pg_event_trigger (oid UINTEGER, evtname TEXT, evtevent TEXT, evtowner UINTEGER, evtfoid UINTEGER,
    evtenabled TEXT, evttags TEXT[]);
CREATE TABLE pg.pg_cast (oid UINTEGER, castsource UINTEGER, casttarget UINTEGER, castfunc UINTEGER, castcontext TEXT,
    castmethod TEXT);
CREATE TABLE pg.pg_operator (oid UINTEGER, oprname TEXT, oprnamespace UINTEGER, oprowner UINTEGER, oprkind TEXT,
    oprcanmerge BOOL, oprcanhash BOOL, oprleft UINTEGER, oprright UINTEGER, oprresult UINTEGER, oprcom UINTEGER,
    oprnegate UINTEGER, oprcode UINTEGER, oprrest UINTEGER, oprjoin UINTEGER);
CREATE TABLE pg.pg_opclass (oid UINTEGER, opcmethod UINTEGER, opcname TEXT, opcnamespace UINTEGER, opcowner UINTEGER,
    opcfamily UINTEGER, opcintype UINTEGER, opcdefault BOOL, opckeytype UINTEGER);
CREATE TABLE pg.pg_aggregate (aggfnoid UINTEGER, aggkind TEXT, aggnumdirectargs INT2, aggtransfn UINTEGER, aggfinalfn
    UINTEGER, aggcombinefn UINTEGER, aggserialfn UINTEGER, aggdeserialfn UINTEGER, aggmtransfn UINTEGER,
    aggminvtransfn UINTEGER, aggmfinalfn UINTEGER, aggfinalextra BOOL, aggmfinalextra BOOL, aggfinalmodify TEXT,
    aggmfinalmodify TEXT, aggsortop UINTEGER, aggtranstype UINTEGER, aggtransspace INT4, aggmtranstype UINTEGER,
    aggmtransspace INT4, agginitval TEXT, aggminitval TEXT);
CREATE TABLE pg.pg_stat_user_tables (relid UINTEGER, schemaname TEXT, relname TEXT, seq_scan INT8, seq_tup_read INT8,
    idx_scan INT8, idx_tup_fetch INT8, n_tup_ins INT8, n_tup_upd INT8, n_tup_del INT8, n_tup_hot_upd INT8, n_live_tup
    INT8, n_dead_tup INT8, n_mod_since_analyze INT8, n_ins_since_vacuum INT8, last_vacuum TIMESTAMP, last_autovacuum
    TIMESTAMP, last_analyze TIMESTAMP, last_autoanalyze TIMESTAMP, vacuum_count INT8, autovacuum_count INT8,
    analyze_count INT8, autoanalyze_count INT8);
CREATE TABLE pg.pg_stat_activity (datid UINTEGER, datname TEXT, pid INT4, leader_pid INT4, usesysid UINTEGER, usename
    TEXT, application_name TEXT, client_addr TEXT, client_hostname TEXT, client_port INT4, backend_start TIMESTAMP,
    xact_start TIMESTAMP, query_start TIMESTAMP, state_change TIMESTAMP, wait_event_type TEXT, wait_event TEXT, state
    TEXT, backend_xid UINTEGER, backend_xmin UINTEGER, query_id INT8, query TEXT, backend_type TEXT);
CREATE TABLE pg.pg_locks (locktype TEXT, database UINTEGER, relation UINTEGER, page INT4, "tuple" INT2, virtualxid
    TEXT, transactionid UINTEGER, classid UINTEGER, objid UINTEGER, objsubid INT2, virtualtransaction TEXT, pid INT4,
    mode TEXT, granted BOOL, fastpath BOOL, waitstart TIMESTAMP);
CREATE TABLE pg.pg_rules (schemaname TEXT, tablename TEXT, rulename TEXT, definition TEXT);
CREATE TABLE pg.pg_policies (schemaname TEXT, tablename TEXT, policyname TEXT, permissive TEXT, roles TEXT[], cmd
    TEXT, qual TEXT, with_check TEXT);
CREATE TABLE pg.pg_default_acl (oid UINTEGER, defaclrole UINTEGER, defaclnamespace UINTEGER, defaclobjtype TEXT,
    defaclacl TEXT[]);
CREATE TABLE pg.pg_user_mapping (oid UINTEGER, umuser UINTEGER, umserver UINTEGER, umoptions TEXT[]);
CREATE TABLE pg.pg_seclabel (objoid UINTEGER, classoid UINTEGER, objsubid INT4, provider TEXT, label TEXT);
CREATE TABLE pg.pg_conversion (oid UINTEGER, conname TEXT, connamespace UINTEGER, conowner UINTEGER, conforencoding
    INT4, contoencoding INT4, conproc UINTEGER, condefault BOOL);
CREATE TABLE pg.pg_available_extensions (name TEXT, default_version TEXT, installed_version TEXT, comment TEXT);
CREATE TABLE pg.pg_timezone_names (name TEXT, abbrev TEXT, utc_offset TEXT, is_dst BOOL);
CREATE TABLE pg.pg_prepared_xacts (transaction UINTEGER, gid TEXT, prepared TIMESTAMP, owner TEXT, database TEXT);
CREATE TABLE pg.pg_db_role_setting (setdatabase UINTEGER, setrole UINTEGER, setconfig TEXT[]);
CREATE TABLE pg.pg_ts_config (oid UINTEGER, cfgname TEXT, cfgnamespace UINTEGER, cfgowner UINTEGER, cfgparser
    UINTEGER);
CREATE TABLE pg.pg_shdepend (dbid UINTEGER, classid UINTEGER, objid UINTEGER, objsubid INT4, refclassid UINTEGER,
    refobjid UINTEGER, deptype TEXT);
CREATE TABLE pg.pg_init_privs (objoid UINTEGER, classoid UINTEGER, objsubid INT4, privtype TEXT, initprivs TEXT[]);
CREATE TABLE info.tables (table_catalog TEXT, table_schema TEXT, table_name TEXT, table_type TEXT,
    self_referencing_column_name TEXT, reference_generation TEXT, user_defined_type_catalog TEXT,
    user_defined_type_schema TEXT, user_defined_type_name TEXT, is_insertable_into TEXT, is_typed TEXT, commit_action
    TEXT);
CREATE TABLE info.columns (table_catalog TEXT, table_schema TEXT, table_name TEXT, column_name TEXT, ordinal_position
    INT4, column_default TEXT, is_nullable TEXT, data_type TEXT, character_maximum_length INT4, character_octet_length
    INT4, numeric_precision INT4, numeric_precision_radix INT4, numeric_scale INT4, datetime_precision INT4,
    interval_type TEXT, interval_precision INT4, character_set_catalog TEXT, character_set_schema TEXT,
    character_set_name TEXT, collation_catalog TEXT, collation_schema TEXT, collation_name TEXT, domain_catalog TEXT,
    domain_schema TEXT, domain_name TEXT, udt_catalog TEXT, udt_schema TEXT, udt_name TEXT, scope_catalog TEXT,
    scope_schema TEXT, scope_name TEXT, maximum_cardinality INT4, dtd_identifier TEXT, is_self_referencing TEXT,
    is_identity TEXT, identity_generation TEXT, identity_start TEXT, identity_increment TEXT, identity_maximum TEXT,
    identity_minimum TEXT, identity_cycle TEXT, is_generated TEXT, generation_expression TEXT, is_updatable TEXT);
CREATE TABLE info.schemata (catalog_name TEXT, schema_name TEXT, schema_owner TEXT, default_character_set_catalog
    TEXT, default_character_set_schema TEXT, default_character_set_name TEXT, sql_path TEXT);
CREATE TABLE info.views (table_catalog TEXT, table_schema TEXT, table_name TEXT, view_definition TEXT, check_option
    TEXT, is_updatable TEXT, is_insertable_into TEXT, is_trigger_updatable TEXT, is_trigger_deletable TEXT,
    is_trigger_insertable_into TEXT);
CREATE TABLE info.table_constraints (constraint_catalog TEXT, constraint_schema TEXT, constraint_name TEXT,
    table_catalog TEXT, table_schema TEXT, table_name TEXT, constraint_type TEXT, is_deferrable TEXT,
    initially_deferred TEXT, enforced TEXT, nulls_distinct TEXT);
CREATE TABLE info.key_column_usage (constraint_catalog TEXT, constraint_schema TEXT, constraint_name TEXT,
    table_catalog TEXT, table_schema TEXT, table_name TEXT, column_name TEXT, ordinal_position INT4,
    position_in_unique_constraint INT4);
CREATE TABLE info.referential_constraints (constraint_catalog TEXT, constraint_schema TEXT, constraint_name TEXT,
    unique_constraint_catalog TEXT, unique_constraint_schema TEXT, unique_constraint_name TEXT, match_option TEXT,
    update_rule TEXT, delete_rule TEXT);
CREATE TABLE info.constraint_column_usage (table_catalog TEXT, table_schema TEXT, table_name TEXT, column_name TEXT,
    constraint_catalog TEXT, constraint_schema TEXT, constraint_name TEXT);
CREATE TABLE info.check_constraints (constraint_catalog TEXT, constraint_schema TEXT, constraint_name TEXT,
    check_clause TEXT);
CREATE TABLE info.routines (specific_catalog TEXT, specific_schema TEXT, specific_name TEXT, routine_catalog TEXT,
    routine_schema TEXT, routine_name TEXT, routine_type TEXT, module_catalog TEXT, module_schema TEXT, module_name
    TEXT, udt_catalog TEXT, udt_schema TEXT, udt_name TEXT, data_type TEXT, character_maximum_length INT4,
    character_octet_length INT4, character_set_catalog TEXT, character_set_schema TEXT, character_set_name TEXT,
    collation_catalog TEXT, collation_schema TEXT, collation_name TEXT, numeric_precision INT4,
    numeric_precision_radix INT4, numeric_scale INT4, datetime_precision INT4, interval_type TEXT, interval_precision
    INT4, type_udt_catalog TEXT, type_udt_schema TEXT, type_udt_name TEXT, scope_catalog TEXT, scope_schema TEXT,
    scope_name TEXT, maximum_cardinality INT4, dtd_identifier TEXT, routine_body TEXT, routine_definition TEXT,
    external_name TEXT, external_language TEXT, parameter_style TEXT, is_deterministic TEXT, sql_data_access TEXT,
    is_null_call TEXT, sql_path TEXT, schema_level_routine TEXT, max_dynamic_result_sets INT4, is_user_defined_cast
    TEXT, is_implicitly_invocable TEXT, security_type TEXT, to_sql_specific_catalog TEXT, to_sql_specific_schema TEXT,
    to_sql_specific_name TEXT, as_locator TEXT, created TIMESTAMP, last_altered TIMESTAMP, new_savepoint_level TEXT,
    is_udt_dependent TEXT, result_cast_from_data_type TEXT, result_cast_as_locator TEXT, result_cast_char_max_length
    INT4, result_cast_char_octet_length INT4, result_cast_char_set_catalog TEXT, result_cast_char_set_schema TEXT,
    result_cast_char_set_name TEXT, result_cast_collation_catalog TEXT, result_cast_collation_schema TEXT,
    result_cast_collation_name TEXT, result_cast_numeric_precision INT4, result_cast_numeric_precision_radix INT4,
    result_cast_numeric_scale INT4, result_cast_datetime_precision INT4, result_cast_interval_type TEXT,
    result_cast_interval_precision INT4, result_cast_type_udt_catalog TEXT, result_cast_type_udt_schema TEXT,
    result_cast_type_udt_name TEXT, result_cast_scope_catalog TEXT, result_cast_scope_schema TEXT,
    result_cast_scope_name TEXT, result_cast_maximum_cardinality INT4, result_cast_dtd_identifier TEXT);
CREATE TABLE info.parameters (specific_catalog TEXT, specific_schema TEXT, specific_name TEXT, ordinal_position INT4,
    parameter_mode TEXT, is_result TEXT, as_locator TEXT, parameter_name TEXT, data_type TEXT,
    character_maximum_length INT4, character_octet_length INT4, character_set_catalog TEXT, character_set_schema TEXT,
    character_set_name TEXT, collation_catalog TEXT, collation_schema TEXT, collation_name TEXT, numeric_precision
    INT4, numeric_precision_radix INT4, numeric_scale INT4, datetime_precision INT4, interval_type TEXT,
    interval_precision INT4, udt_catalog TEXT, udt_schema TEXT, udt_name TEXT, scope_catalog TEXT, scope_schema TEXT,
    scope_name TEXT, maximum_cardinality INT4, dtd_identifier TEXT, parameter_default TEXT);
CREATE TABLE info.sequences (sequence_catalog TEXT, sequence_schema TEXT, sequence_name TEXT, data_type TEXT,
    numeric_precision INT4, numeric_precision_radix INT4, numeric_scale INT4, start_value TEXT, minimum_value TEXT,
    maximum_value TEXT, increment TEXT, cycle_option TEXT);
CREATE TABLE info.triggers (trigger_catalog TEXT, trigger_schema TEXT, trigger_name TEXT, event_manipulation TEXT,
    event_object_catalog TEXT, event_object_schema TEXT, event_object_table TEXT, action_order INT4, action_condition
    TEXT, action_statement TEXT, action_orientation TEXT, action_timing TEXT, action_reference_old_table TEXT,
    action_reference_new_table TEXT, action_reference_old_row TEXT, action_reference_new_row TEXT, created TIMESTAMP);
CREATE TABLE info.table_privileges (grantor TEXT, grantee TEXT, table_catalog TEXT, table_schema TEXT, table_name
    TEXT, privilege_type TEXT, is_grantable TEXT, with_hierarchy TEXT);
CREATE TABLE info.column_privileges (grantor TEXT, grantee TEXT, table_catalog TEXT, table_schema TEXT, table_name
    TEXT, column_name TEXT, privilege_type TEXT, is_grantable TEXT);
CREATE TABLE info.character_sets (character_set_catalog TEXT, character_set_schema TEXT, character_set_name TEXT,
    character_repertoire TEXT, form_of_use TEXT, default_collate_catalog TEXT, default_collate_schema TEXT,
    default_collate_name TEXT);
CREATE TABLE info.enabled_roles (role_name TEXT);
CREATE TABLE info.applicable_roles (grantee TEXT, role_name TEXT, is_grantable TEXT);
CREATE TABLE info.role_table_grants (grantor TEXT, grantee TEXT, table_catalog TEXT, table_schema TEXT, table_name
    TEXT, privilege_type TEXT, is_grantable TEXT, with_hierarchy TEXT);

-- ---- what is known -------------------------------------------------------------------------------------------------

INSERT INTO pg.pg_namespace BY NAME
    SELECT unnest([11, 2200, 13000]) AS oid, unnest(['pg_catalog', 'public', 'information_schema']) AS nspname,
        10 AS nspowner;
INSERT INTO pg.pg_roles BY NAME
    SELECT oid, name AS rolname, false AS rolsuper, true AS rolinherit, false AS rolcreaterole, false AS rolcreatedb,
        login AS rolcanlogin, false AS rolreplication, -1 AS rolconnlimit, false AS rolbypassrls FROM facts.people;
INSERT INTO pg.pg_user BY NAME
    SELECT name AS usename, oid AS usesysid, false AS usecreatedb, false AS usesuper, false AS userepl,
        false AS usebypassrls FROM facts.people WHERE login;
INSERT INTO pg.pg_database BY NAME
    SELECT oid, name AS datname, 10 AS datdba, 6 AS encoding, 'c' AS datlocprovider, false AS datistemplate,
        true AS datallowconn, -1 AS datconnlimit, 1663 AS dattablespace, 'C' AS datcollate, 'C' AS datctype
    FROM facts.databases;
INSERT INTO pg.pg_tablespace BY NAME SELECT 1663 AS oid, 'pg_default' AS spcname, 10 AS spcowner;
INSERT INTO pg.pg_am BY NAME SELECT 2 AS oid, 'heap' AS amname, 't' AS amtype;
INSERT INTO pg.pg_collation BY NAME
    SELECT unnest([100, 950]) AS oid, unnest(['default', 'C']) AS collname, 11 AS collnamespace, 10 AS collowner,
        unnest(['d', 'c']) AS collprovider, true AS collisdeterministic, -1 AS collencoding;
CREATE TABLE facts.receivers AS  -- the functions that drivers know types by
    SELECT * FROM (VALUES (16, 2436, 'boolrecv'), (17, 2412, 'bytearecv'), (18, 2434, 'charrecv'), (19, 2422, 'namerecv'),
        (20, 2408, 'int8recv'), (21, 2404, 'int2recv'), (23, 2406, 'int4recv'), (24, 2444, 'regprocrecv'),
        (25, 2414, 'textrecv'), (26, 2418, 'oidrecv'), (114, 324, 'json_recv'), (700, 2424, 'float4recv'),
        (701, 2426, 'float8recv'), (705, 2416, 'unknownrecv'), (1042, 2430, 'bpcharrecv'), (1043, 2432, 'varcharrecv'),
        (1082, 2468, 'date_recv'), (1083, 2470, 'time_recv'), (1114, 2474, 'timestamp_recv'),
        (1184, 2476, 'timestamptz_recv'), (1186, 2478, 'interval_recv'), (1700, 2460, 'numeric_recv'),
        (2205, 2452, 'regclassrecv'), (2206, 2454, 'regtyperecv'), (2278, 3120, 'void_recv'), (2950, 2961, 'uuid_recv'),
        (3802, 3805, 'jsonb_recv')) AS known(type, receiver, receiver_name);
INSERT INTO pg.pg_type BY NAME
    SELECT oid, name AS typname, 11 AS typnamespace, 10 AS typowner, size AS typlen, size BETWEEN 1 AND 8 AS typbyval,
        kind AS typtype, category AS typcategory, false AS typispreferred, true AS typisdefined, ',' AS typdelim,
        0 AS typrelid, 0 AS typsubscript, element AS typelem, array_type AS typarray,
        CASE WHEN category = 'A' THEN 750 ELSE 0 END AS typinput, 0 AS typoutput,
        CASE WHEN category = 'A' THEN 2400 ELSE COALESCE(receiver, 0) END AS typreceive, 0 AS typsend, 0 AS typmodin, 0 AS typmodout, 0 AS typanalyze, 'i' AS typalign,
        CASE WHEN size > 0 THEN 'p' ELSE 'x' END AS typstorage, false AS typnotnull, 0 AS typbasetype, -1 AS typtypmod,
        0 AS typndims, CASE WHEN category = 'S' THEN 100 ELSE 0 END AS typcollation
    FROM facts.types LEFT JOIN facts.receivers ON receivers.type = types.oid;
INSERT INTO pg.pg_proc BY NAME  -- what clients know types by
    SELECT oid, proname, 11 AS pronamespace, 10 AS proowner, 'f' AS prokind
    FROM (SELECT unnest([750, 2400]) AS oid, unnest(['array_in', 'array_recv']) AS proname
        UNION ALL SELECT receiver, receiver_name FROM facts.receivers);
INSERT INTO pg.pg_class BY NAME
    SELECT oid, name AS relname, 2200 AS relnamespace, 0 AS reltype, 0 AS reloftype, 10 AS relowner,
        CASE WHEN kind = 'r' THEN 2 ELSE 0 END AS relam, 0 AS relfilenode, 0 AS reltablespace, 0 AS relpages,
        -1 AS reltuples, 0 AS relallvisible, 0 AS reltoastrelid, false AS relhasindex, false AS relisshared,
        'p' AS relpersistence, kind AS relkind, width AS relnatts, 0 AS relchecks, kind = 'v' AS relhasrules,
        oid IN (SELECT child FROM facts.keys UNION SELECT parent FROM facts.keys) AS relhastriggers,
        false AS relhassubclass, false AS relrowsecurity, false AS relforcerowsecurity, true AS relispopulated,
        'd' AS relreplident, false AS relispartition, 0 AS relrewrite, 0 AS relfrozenxid, 0 AS relminmxid
    FROM facts.relations;
INSERT INTO pg.pg_attribute BY NAME
    SELECT relation AS attrelid, c.name AS attname, type AS atttypid, -1 AS attstattarget, size AS attlen,
        number AS attnum, 0 AS attndims, -1 AS attcacheoff, -1 AS atttypmod, size BETWEEN 1 AND 8 AS attbyval,
        'i' AS attalign, CASE WHEN size > 0 THEN 'p' ELSE 'x' END AS attstorage, '' AS attcompression,
        required AS attnotnull, false AS atthasdef, false AS atthasmissing, '' AS attidentity, '' AS attgenerated,
        false AS attisdropped, true AS attislocal, 0 AS attinhcount,
        CASE WHEN category = 'S' THEN 100 ELSE 0 END AS attcollation
    FROM facts.columns c JOIN facts.types t ON t.oid = c.type;
INSERT INTO pg.pg_description BY NAME
    SELECT oid AS objoid, 1259 AS classoid, 0 AS objsubid, comment AS description FROM facts.relations
        WHERE comment <> ''
    UNION ALL
    SELECT relation, 1259, number, comment FROM facts.columns WHERE comment <> '';
INSERT INTO pg.pg_constraint BY NAME
    SELECT oid, name AS conname, 2200 AS connamespace, 'f' AS contype, false AS condeferrable, false AS condeferred,
        true AS convalidated, child AS conrelid, 0 AS contypid, 0 AS conindid, 0 AS conparentid, parent AS confrelid,
        'a' AS confupdtype, 'a' AS confdeltype, 's' AS confmatchtype, true AS conislocal, 0 AS coninhcount,
        true AS connoinherit, child_columns AS conkey, parent_columns AS confkey, false AS conperiod,
        true AS conenforced
    FROM facts.keys;
INSERT INTO pg.pg_tables BY NAME
    SELECT 'public' AS schemaname, name AS tablename, 'lapwing' AS tableowner, false AS hasindexes, false AS hasrules,
        false AS hastriggers, false AS rowsecurity FROM facts.relations WHERE kind = 'r';
INSERT INTO pg.pg_views BY NAME
    SELECT 'public' AS schemaname, name AS viewname, 'lapwing' AS viewowner, sql AS definition FROM facts.relations
    WHERE kind = 'v';

INSERT INTO info.schemata BY NAME
    SELECT current_name AS catalog_name, nspname AS schema_name, 'lapwing' AS schema_owner
    FROM pg.pg_namespace, facts.here;
INSERT INTO info.tables BY NAME
    SELECT current_name AS table_catalog, 'public' AS table_schema, name AS table_name,
        CASE kind WHEN 'v' THEN 'VIEW' ELSE 'BASE TABLE' END AS table_type, 'NO' AS is_insertable_into,
        'NO' AS is_typed FROM facts.relations, facts.here;
INSERT INTO info.views BY NAME
    SELECT current_name AS table_catalog, 'public' AS table_schema, name AS table_name, sql AS view_definition,
        'NONE' AS check_option, 'NO' AS is_updatable, 'NO' AS is_insertable_into
    FROM facts.relations, facts.here WHERE kind = 'v';
INSERT INTO info.columns BY NAME
    SELECT current_name AS table_catalog, 'public' AS table_schema, r.name AS table_name, c.name AS column_name,
        c.number AS ordinal_position, CASE WHEN required THEN 'NO' ELSE 'YES' END AS is_nullable,
        t.shown AS data_type, CASE type WHEN 20 THEN 64 WHEN 701 THEN 53 END AS numeric_precision,
        CASE WHEN type IN (20, 701) THEN 2 WHEN type = 1700 THEN 10 END AS numeric_precision_radix,
        CASE type WHEN 20 THEN 0 END AS numeric_scale, CASE type WHEN 1114 THEN 6 WHEN 1082 THEN 0 END
        AS datetime_precision, current_name AS udt_catalog, 'pg_catalog' AS udt_schema, t.name AS udt_name,
        'NO' AS is_self_referencing, 'NO' AS is_identity, 'NEVER' AS is_generated, 'NO' AS is_updatable
    FROM facts.columns c JOIN facts.relations r ON r.oid = c.relation JOIN facts.types t ON t.oid = c.type, facts.here;
INSERT INTO info.table_constraints BY NAME
    SELECT current_name AS constraint_catalog, 'public' AS constraint_schema, k.name AS constraint_name,
        current_name AS table_catalog, 'public' AS table_schema, r.name AS table_name,
        'FOREIGN KEY' AS constraint_type, 'NO' AS is_deferrable, 'NO' AS initially_deferred
    FROM facts.keys k JOIN facts.relations r ON r.oid = k.child, facts.here;
INSERT INTO info.key_column_usage BY NAME
    SELECT current_name AS constraint_catalog, 'public' AS constraint_schema, k.name AS constraint_name,
        current_name AS table_catalog, 'public' AS table_schema, r.name AS table_name, c.name AS column_name,
        list_position(k.child_columns, c.number) AS ordinal_position
    FROM facts.keys k JOIN facts.relations r ON r.oid = k.child
        JOIN facts.columns c ON c.relation = k.child AND list_contains(k.child_columns, c.number), facts.here;

-- ---- functions -----------------------------------------------------------------------------------------------------

CREATE MACRO pgf_relation_name(x) AS (SELECT max(name) FROM facts.relations WHERE oid = x);
CREATE MACRO pgf_namespace_name(x) AS (SELECT max(nspname) FROM pg.pg_namespace WHERE oid = x);
CREATE MACRO pgf_role_name(x) AS (SELECT max(name) FROM facts.people WHERE oid = x);
CREATE MACRO pgf_pg_get_userbyid(x) AS pgf_role_name(x);
CREATE MACRO pgf_obj_description(x) AS (SELECT max(description) FROM pg.pg_description WHERE objoid = x AND objsubid = 0),
    (x, c) AS (SELECT max(description) FROM pg.pg_description WHERE objoid = x AND objsubid = 0);
CREATE MACRO pgf_shobj_description(x, c) AS NULL::TEXT;
CREATE MACRO pgf_col_description(x, n) AS
    (SELECT max(description) FROM pg.pg_description WHERE objoid = x AND objsubid = n);
CREATE MACRO pgf_pg_get_expr(x, r) AS NULL::TEXT, (x, r, p) AS NULL::TEXT;
CREATE MACRO pgf_pg_get_viewdef(x) AS (SELECT max(sql) FROM facts.relations WHERE oid = x),
    (x, p) AS (SELECT max(sql) FROM facts.relations WHERE oid = x);
CREATE MACRO pgf_pg_get_constraintdef(x) AS (SELECT max(shown) FROM facts.keys WHERE oid = x),
    (x, p) AS (SELECT max(shown) FROM facts.keys WHERE oid = x);
CREATE MACRO pgf_pg_get_indexdef(x) AS NULL::TEXT, (x, c, p) AS NULL::TEXT;
CREATE MACRO pgf_pg_get_ruledef(x) AS NULL::TEXT, (x, p) AS NULL::TEXT;
CREATE MACRO pgf_pg_get_triggerdef(x) AS NULL::TEXT, (x, p) AS NULL::TEXT;
CREATE MACRO pgf_pg_get_statisticsobjdef_columns(x) AS NULL::TEXT;
CREATE MACRO pgf_pg_get_partkeydef(x) AS NULL::TEXT;
CREATE MACRO pgf_pg_get_serial_sequence(t, c) AS NULL::TEXT;
CREATE MACRO pgf_pg_get_function_result(x) AS NULL::TEXT;
CREATE MACRO pgf_pg_get_function_arguments(x) AS NULL::TEXT;
CREATE MACRO pgf_pg_get_function_identity_arguments(x) AS NULL::TEXT;
CREATE MACRO pgf_pg_get_functiondef(x) AS NULL::TEXT;
CREATE MACRO pgf_pg_table_is_visible(x) AS x IS NOT NULL;
CREATE MACRO pgf_pg_type_is_visible(x) AS x IS NOT NULL;
CREATE MACRO pgf_pg_function_is_visible(x) AS x IS NOT NULL;
CREATE MACRO pgf_pg_collation_is_visible(x) AS x IS NOT NULL;
CREATE MACRO pgf_pg_opclass_is_visible(x) AS x IS NOT NULL;
CREATE MACRO pgf_pg_operator_is_visible(x) AS x IS NOT NULL;
CREATE MACRO pgf_pg_relation_is_publishable(x) AS false;
CREATE MACRO pgf_pg_is_in_recovery() AS false;
CREATE MACRO pgf_pg_is_other_temp_schema(x) AS false;
CREATE MACRO pgf_pg_my_temp_schema() AS 0::UINTEGER;
CREATE MACRO pgf_pg_advisory_unlock_all() AS NULL::TEXT;
CREATE MACRO pgf_pg_encoding_to_char(x) AS 'UTF8';
CREATE MACRO pgf_pg_client_encoding() AS 'UTF8';
CREATE MACRO pgf_pg_size_pretty(x) AS NULL::TEXT;
CREATE MACRO pgf_pg_table_size(x) AS NULL::BIGINT;
CREATE MACRO pgf_pg_relation_size(x) AS NULL::BIGINT;
CREATE MACRO pgf_pg_total_relation_size(x) AS NULL::BIGINT;
CREATE MACRO pgf_pg_indexes_size(x) AS NULL::BIGINT;
CREATE MACRO pgf_pg_database_size(x) AS NULL::BIGINT;
CREATE MACRO pgf_pg_tablespace_location(x) AS '';
CREATE MACRO pgf_array_upper(a, d) AS CASE WHEN d = 1 AND len(a) > 0 THEN len(a)::INT4 END;
CREATE MACRO pgf_array_lower(a, d) AS CASE WHEN d = 1 AND len(a) > 0 THEN 1 END;
CREATE MACRO pgf__pg_expandarray(a) AS unnest(list_transform(a, lambda x, i: {'x': x, 'n': i}));
CREATE MACRO pgf_cardinality(a) AS len(a)::INT4;
CREATE MACRO pgf_quote_ident(x) AS
    CASE WHEN regexp_matches(x, '^[a-z_][a-z0-9_$]*$') THEN x ELSE '"' || replace(x, '"', '""') || '"' END;
CREATE MACRO pgf_relation_number(x) AS (SELECT max(oid) FROM facts.relations
    WHERE x IN (name, pgf_quote_ident(name), 'public.' || pgf_quote_ident(name)));
CREATE MACRO pgf_grants(p) AS regexp_matches(lower(p), '(^|,)\s*(select|usage|connect)\s*(,|$)');
CREATE MACRO pgf_has_table_privilege(t, p) AS pgf_grants(p), (r, t, p) AS pgf_grants(p);
CREATE MACRO pgf_has_any_column_privilege(t, p) AS pgf_grants(p), (r, t, p) AS pgf_grants(p);
CREATE MACRO pgf_has_column_privilege(t, c, p) AS pgf_grants(p), (r, t, c, p) AS pgf_grants(p);
CREATE MACRO pgf_has_schema_privilege(s, p) AS pgf_grants(p), (r, s, p) AS pgf_grants(p);
CREATE MACRO pgf_has_database_privilege(d, p) AS pgf_grants(p), (r, d, p) AS pgf_grants(p);
CREATE MACRO pgf_has_sequence_privilege(d, p) AS false, (r, d, p) AS false;
CREATE MACRO pgf_has_function_privilege(d, p) AS false, (r, d, p) AS false;
CREATE MACRO pgf_procedure_name(x) AS COALESCE((SELECT max(proname) FROM pg.pg_proc WHERE oid = x), '-');
CREATE MACRO pgf_pg_get_keywords() AS TABLE
    SELECT keyword_name AS word, 'U' AS catcode, true AS barelabel, 'unreserved' AS catdesc, 'can be bare label' AS baredesc
    FROM duckdb_keywords();
