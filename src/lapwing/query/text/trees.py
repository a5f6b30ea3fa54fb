"""The nodes of a syntax tree, and copies of one, in less time than sqlglot's `find_all`, `find`, `walk` and `copy`.

Most stages look in every query for nodes that they rewrite, and most queries have no such nodes. One loop tells that.
The generators of sqlglot resume three functions for each node, and its copies are made by the general `deepcopy`.
"""

from typing import Any, TypeVar, overload

from sqlglot import exp

Node = TypeVar("Node", bound=exp.Expr)


@overload
def nodes_of(tree: exp.Expr) -> list[exp.Expr]: ...
@overload
def nodes_of(tree: exp.Expr, *kinds: type[Node]) -> list[Node]: ...
def nodes_of(tree: exp.Expr, *kinds: type[Any]) -> list[Any]:
    """Return all nodes of a tree, or its nodes of some kinds, level by level."""
    found: list[exp.Expr] = [tree]
    for node in found:
        for value in node.args.values():
            if type(value) is list:
                found += [one for one in value if isinstance(one, exp.Expr)]
            elif isinstance(value, exp.Expr):
                found.append(value)
    return [node for node in found if isinstance(node, kinds)] if kinds else found


@overload
def depth_first(tree: exp.Expr) -> list[exp.Expr]: ...
@overload
def depth_first(tree: exp.Expr, *kinds: type[Node]) -> list[Node]: ...
def depth_first(tree: exp.Expr, *kinds: type[Any]) -> list[Any]:
    """Return all nodes of a tree, or its nodes of some kinds, each before what stands in it, and that before others."""
    found, left = list[exp.Expr](), [tree]
    while left:
        node = left.pop()
        found.append(node)
        for value in reversed(node.args.values()):
            if type(value) is list:
                left += [one for one in reversed(value) if isinstance(one, exp.Expr)]
            elif isinstance(value, exp.Expr):
                left.append(value)
    return [node for node in found if isinstance(node, kinds)] if kinds else found


def has(tree: exp.Expr, *kinds: type[exp.Expr]) -> bool:
    """Tell whether a tree has a node of some kinds."""
    return any(issubclass(kind, kinds) for kind in set(map(type, nodes_of(tree))))


def copied(tree: Node) -> Node:
    """Return a tree of new nodes, which say the same of the same places in the text."""
    root = type(tree)()
    pairs: list[tuple[exp.Expr, exp.Expr]] = [(tree, root)]
    for node, new in pairs:
        if node.meta:
            new.meta.update(node.meta)
        if node.comments is not None:
            new.comments = list(node.comments)
        if node.type is not None:
            new.type = node.type
        for name, value in node.args.items():
            new.args[name] = list(value) if type(value) is list else value
            for place, child in enumerate(value) if type(value) is list else ((None, value),):
                if isinstance(child, exp.Expr):
                    other = type(child)()
                    other.parent, other.arg_key, other.index = new, name, place
                    if place is None:
                        new.args[name] = other
                    else:
                        new.args[name][place] = other
                    pairs.append((child, other))
    return root
