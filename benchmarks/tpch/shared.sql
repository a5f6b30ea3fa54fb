-- 05 customer+supplier: of the supplier's nation
select count(*, contribution_bounds_per_group => auto) as n from supplier, lineitem, orders, customer, nation, region
where s_suppkey = l_suppkey and l_orderkey = o_orderkey and o_custkey = c_custkey and c_nationkey = n_nationkey and
n_nationkey = s_nationkey and r_regionkey = n_regionkey

-- 07 customer+supplier: all volume
select sum(l_extendedprice * (1 - l_discount) / 1000, contribution_bounds_per_group => auto) as volume from nation n1,
nation n2, customer, orders, lineitem, supplier where n1.n_nationkey = c_nationkey and n2.n_nationkey = s_nationkey and
c_custkey = o_custkey and o_orderkey = l_orderkey and l_suppkey = s_suppkey

-- 08 customer+supplier: orders of 1995 and 1996
select count(*, contribution_bounds_per_group => auto) as n from nation n1, nation n2, customer, orders, lineitem,
supplier, region where n1.n_nationkey = c_nationkey and n2.n_nationkey = s_nationkey and c_custkey = o_custkey and
o_orderkey = l_orderkey and l_suppkey = s_suppkey and n1.n_regionkey = r_regionkey and o_orderdate >= date '1995-01-01'
and o_orderdate <= date '1996-12-31'

-- 21 order+supplier: all items
select count(*, contribution_bounds_per_group => auto) as n from nation, supplier, lineitem, orders where s_suppkey =
l_suppkey and o_orderkey = l_orderkey and s_nationkey = n_nationkey
