"""Read the question of a secure task from its document."""

from collections.abc import Mapping

from lapwing.privacy.amounts import read
from lapwing.secure.documents import count_of, list_of, mapping_of, signed, text_of
from lapwing.secure.numbers import Number
from lapwing.secure.values import Values
from lapwing.secure.vectors import Vector
from lapwing.secure.words import Words

Asked = Values | Number | Vector | Words


def asked_of(document: Mapping[str, object]) -> Asked:
    """Return what a task's document asks for."""
    if Values.kind in document:
        return Values(tuple(text_of(value) for value in list_of(document[Values.kind])))
    if Vector.kind in document:
        return _vector(document[Vector.kind])
    if Words.kind in document:
        return Words.from_document(mapping_of(document[Words.kind]))
    number = document[Number.kind]
    if not isinstance(number, dict):
        raise TypeError
    lower, upper = (signed(text_of(number[name]), name) for name in ("lower", "upper"))
    return Number(lower, upper, count_of(number["steps"]))


def _vector(document: object) -> Vector:
    if not isinstance(document, dict):
        raise TypeError
    names = tuple(text_of(name) for name in list_of(document["names"]))
    upper, bound = read(text_of(document["upper"]), "upper"), int(text_of(document["bound"]))
    return Vector(names, upper, count_of(document["steps"]), text_of(document["norm"]), bound)
