-- 03 customer: orders before 1995-03-15
select count(*, contribution_bounds_per_group => auto) as n from customer, orders, lineitem where c_custkey = o_custkey
and l_orderkey = o_orderkey and o_orderdate < date '1995-03-15'

-- 05 customer: of the supplier's nation
select count(*, contribution_bounds_per_group => auto) as n from supplier, lineitem, orders, customer, nation, region
where s_suppkey = l_suppkey and l_orderkey = o_orderkey and o_custkey = c_custkey and c_nationkey = n_nationkey and
n_nationkey = s_nationkey and r_regionkey = n_regionkey

-- 05 supplier: of the customer's nation
select count(*, contribution_bounds_per_group => auto) as n from supplier, lineitem, orders, customer, nation, region
where s_suppkey = l_suppkey and l_orderkey = o_orderkey and o_custkey = c_custkey and c_nationkey = n_nationkey and
n_nationkey = s_nationkey and r_regionkey = n_regionkey

-- 07 customer: all volume
select sum(l_extendedprice * (1 - l_discount) / 1000, contribution_bounds_per_group => auto) as volume from nation n1,
nation n2, customer, orders, lineitem, supplier where n1.n_nationkey = c_nationkey and n2.n_nationkey = s_nationkey and
c_custkey = o_custkey and o_orderkey = l_orderkey and l_suppkey = s_suppkey

-- 07 supplier: all volume
select sum(l_extendedprice * (1 - l_discount) / 1000, contribution_bounds_per_group => auto) as volume from nation n1,
nation n2, customer, orders, lineitem, supplier where n1.n_nationkey = c_nationkey and n2.n_nationkey = s_nationkey and
c_custkey = o_custkey and o_orderkey = l_orderkey and l_suppkey = s_suppkey

-- 08 customer: orders of 1995 and 1996
select count(*, contribution_bounds_per_group => auto) as n from nation n1, nation n2, customer, orders, lineitem,
supplier, region where n1.n_nationkey = c_nationkey and n2.n_nationkey = s_nationkey and c_custkey = o_custkey and
o_orderkey = l_orderkey and l_suppkey = s_suppkey and n1.n_regionkey = r_regionkey and o_orderdate >= date '1995-01-01'
and o_orderdate <= date '1996-12-31'

-- 08 supplier: orders of 1995 and 1996
select count(*, contribution_bounds_per_group => auto) as n from nation n1, nation n2, customer, orders, lineitem,
supplier, region where n1.n_nationkey = c_nationkey and n2.n_nationkey = s_nationkey and c_custkey = o_custkey and
o_orderkey = l_orderkey and l_suppkey = s_suppkey and n1.n_regionkey = r_regionkey and o_orderdate >= date '1995-01-01'
and o_orderdate <= date '1996-12-31'

-- 10 customer: all orders
select count(*, contribution_bounds_per_group => auto) as n from customer, orders, nation where c_custkey = o_custkey
and c_nationkey = n_nationkey

-- 11 supplier: all stock
select sum(ps_supplycost * ps_availqty / 1000000, contribution_bounds_per_group => auto) as value from nation, supplier,
partsupp where ps_suppkey = s_suppkey and s_nationkey = n_nationkey

-- 12 order: all items
select count(*, contribution_bounds_per_group => auto) as n from orders, lineitem where o_orderkey = l_orderkey

-- 18 customer: all quantity
select sum(l_quantity, contribution_bounds_per_group => auto) as quantity from customer, orders, lineitem where
c_custkey = o_custkey and o_orderkey = l_orderkey

-- 20 supplier: all items
select count(*, contribution_bounds_per_group => auto) as n from supplier, nation, partsupp, lineitem where l_partkey =
ps_partkey and l_suppkey = ps_suppkey and s_nationkey = n_nationkey and s_suppkey = ps_suppkey

-- 21 order: all items
select count(*, contribution_bounds_per_group => auto) as n from nation, supplier, lineitem, orders where s_suppkey =
l_suppkey and o_orderkey = l_orderkey and s_nationkey = n_nationkey

-- 21 supplier: all items
select count(*, contribution_bounds_per_group => auto) as n from nation, supplier, lineitem, orders where s_suppkey =
l_suppkey and o_orderkey = l_orderkey and s_nationkey = n_nationkey
