"""Which passwords are refused as they are chosen: the short ones, and the common ones that are long enough.

Guesses are slow (`authentication`), so a password has to withstand thousands of them, not billions: those that lists of
leaked passwords begin with. Of twelve characters or more these are a common word with digits and signs around it, keys
that lie side by side, something short said again and again, digits alone, or the owner's name with a little more. Each
is a rule here, and the words are some that such lists have many times. What is let in need not be good for all that.
"""

import re
from typing import Final

from lapwing.errors import InvalidParameter
from lapwing.server.faulty_field import at_field

SHORTEST: Final = 12
LONGEST: Final = 1000
WORDS: Final = frozenset(
    """
    abc abcd abcdef access account admin administrator alexander analyst andrew angel anthony arsenal asdf asdfgh
    asdfghjkl ashley auditor autumn baby babygirl banana barcelona baseball basketball batman beautiful butterfly
    changeit changeme changemenow changethis charlie cheese chelsea chocolate christopher company computer cookie
    curator daniel data database default defaultpassword demo donald dragon elizabeth everton example family flower
    football forever freedom george google guest hannah hello helloworld hunter iamthebest iloveu iloveyou internet
    jasmine jennifer jessica jesus jesuschrist jordan joshua justin killer lapwing letmein letmeinplease liverpool
    login london love lovely loveme loveyou manager manchester manchesterunited mancity master masterpassword
    matthew michael michelle monkey mustang mypassword mysecret mysecretpassword newpass newpassword newyork nicole
    ninja nothing ohmygod pass passpass passphrase passw passwd password please pokemon princess private public
    qazwsx qazwsxedc qwer qwert qwerty qwertyuiop rockyou root samantha samsung secret secretpassword server service
    shadow sharepoint soccer spiderman spring start starwars strongpassword summer sunshine super superman
    supersecret supersecretpassword sysadmin system temp temporary temppassword test testing testpassword testuser
    thisisapassword thisismypassword thomas tigger tinkerbell trustno trustnoone unbelievable user username
    verysecret welcome whatever william winter wordpass yankees zxcv zxcvbn zxcvbnm
    """.split()  # noqa: SIM905 - a list of words is read more easily without commas
)
KEYS: Final = (
    "abcdefghijklmnopqrstuvwxyz", "012345678901234567890", "qwertyuiop", "qwertzuiop", "azertyuiop", "asdfghjkl",
    "zxcvbnm", "yxcvbnm", "1qaz2wsx3edc4rfv5tgb6yhn7ujm8ik9ol0p", "1q2w3e4r5t6y7u8i9o0p", "qazwsxedcrfvtgbyhnujmikolp",
    "q1w2e3r4t5y6u7i8o9p0", "1a2b3c4d5e6f7g8h9i0j", "a1b2c3d4e5f6g7h8i9j0", "!@#$%^&*()_+", "zaq12wsxcde34rfvbgt56yhn",
)  # fmt: skip
LINES: Final = tuple(line for keys in KEYS for line in (keys, keys[::-1]))
SWAPPED: Final = str.maketrans("@$!013457", "asioieast")
"""What is often written for a letter."""
MEAN_RUN: Final = 4
"""Keys side by side, on average, from which on there is nothing else to a password."""
DIGITS: Final = 20
SHORTEST_NAME: Final = 4


def require_good(password: str, name: str) -> None:
    """Refuse a password that is too short, too long, or that many have.

    Args:
        name: Of whoever is to have it.

    Raises:
        InvalidParameter: Which says why.
    """
    if not SHORTEST <= len(password) <= LONGEST:
        text = f"The password must have from {SHORTEST} to {LONGEST} characters."
        raise at_field("password", InvalidParameter(text))
    why = _common(password.casefold(), name.casefold())
    if why:
        text = (
            f"The password is {why}, which is easy to guess. Choose several unrelated words, or a password from a "
            f"password manager."
        )
        raise at_field("password", InvalidParameter(text))


def _common(password: str, name: str) -> str:
    """Return what is common about a password; empty if nothing is."""
    if password.isdigit() and len(password) < DIGITS:
        return "only digits"
    if _runs(password) * MEAN_RUN <= len(password):
        return "keys or letters in order"
    if any(_is_repeated(text) for text in (password, _letters(password))):
        return "a repeated short text"
    if len(name) >= SHORTEST_NAME and len(password.replace(name, "")) < SHORTEST and name in password:
        return "almost its owner's name"
    if any(re.sub(r"[\W\d_]", "", word) in WORDS for word in (password, _letters(password))):
        return "a common one"
    return ""


def _letters(password: str) -> str:
    """Return a password without the digits and signs around it, and with letters for what is written for letters.

    >>> _letters("p@ssw0rd2026!")
    'password'
    """
    return re.sub(r"^[\W\d_]+|[\W\d_]+$", "", password).translate(SWAPPED)


def _is_repeated(text: str) -> bool:
    """Tell whether a text is one shorter than a password, at least twice."""
    sizes = range(1, min(len(text) // 2, SHORTEST - 1) + 1)
    return any(text == (text[:size] * len(text))[: len(text)] for size in sizes)


def _runs(password: str) -> int:
    """Return of how many runs of keys or letters in their order, or of one character, a password is made.

    >>> _runs("abcd12345678"), _runs("aaaaaaaaaaaa"), _runs("the ox sings")
    (2, 1, 12)
    """
    runs, start, place = 0, 0, 0
    while start < len(password):
        place = start + 1
        while place < len(password) and _is_run(password[start : place + 1]):
            place += 1
        runs, start = runs + 1, place
    return runs


def _is_run(part: str) -> bool:
    return part == part[0] * len(part) or any(part in line for line in LINES)
