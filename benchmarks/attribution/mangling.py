"""A decoder for the part of the Itanium C++ mangling that holds a function's name and template arguments.

Source: Itanium C++ ABI, section 5.1, https://itanium-cxx-abi.github.io/cxx-abi/abi.html#mangling. The parameter types of
the outermost function are not read: nothing here needs them.
"""

from __future__ import annotations

from collections.abc import Callable

_BUILTIN = {
    "v": "void", "w": "wchar_t", "b": "bool", "c": "char", "a": "signed char", "h": "unsigned char", "s": "short",
    "t": "unsigned short", "i": "int", "j": "unsigned int", "l": "long", "m": "unsigned long", "x": "long long",
    "y": "unsigned long long", "n": "__int128", "o": "unsigned __int128", "f": "float", "d": "double", "e": "long double",
    "g": "__float128", "z": "...",
}  # fmt: skip
_BUILTIN_D = {"Dn": "std::nullptr_t", "Dh": "half", "Di": "char32_t", "Ds": "char16_t", "Du": "char8_t", "Da": "auto"}
_STANDARD = {"Sa": "std::allocator", "Sb": "std::basic_string", "Ss": "std::string", "Si": "std::istream",
             "So": "std::ostream", "Sd": "std::iostream"}  # fmt: skip
_MAX_LENGTH = 20_000


class MangledNameError(ValueError):
    """The name is not mangled, is cut, or uses a part of the grammar that is not decoded."""


def decode(mangled: str) -> str:
    """``_Z9mul_mat_qIL9ggml_type12EEvPKc`` as ``mul_mat_q<(ggml_type)12>``. Raises MangledNameError."""
    if not mangled.startswith("_Z"):
        raise MangledNameError(mangled)
    try:
        return _Decoder(mangled).name()
    except (RecursionError, ValueError) as error:
        raise MangledNameError(mangled[:80]) from error


class _Decoder:
    def __init__(self, text: str) -> None:
        self._text = text
        self._at = 2
        self._known: list[str] = []

    def name(self) -> str:
        if self._take("N"):
            return self._nested()
        if self._take("Z"):
            return self._local()
        if self._peek() == "S" and self._peek(2) != "St":
            return self._substitution() + self._template_arguments()
        text = ("std::" if self._take("St") else "") + self._unqualified()
        if self._peek() == "I":
            self._remember(text)
            text += self._template_arguments()
        return text

    def _nested(self) -> str:
        while self._take("r") or self._take("V") or self._take("K") or self._take("R") or self._take("O"):
            pass
        text = ""
        while not self._take("E"):
            if self._peek() == "I":
                text += self._template_arguments()
            elif self._peek(2) == "St":
                self._at += 2
                text = "std"
                continue
            elif self._peek() == "S":
                text = self._substitution()
                continue
            elif self._peek() == "T":
                text = self._template_parameter()
            else:
                text = f"{text}::{self._unqualified(text)}" if text else self._unqualified()
            self._remember(text)
        if self._known:
            self._known.pop()
        return text

    def _local(self) -> str:
        function = self._encoding()
        self._expect("E")
        if self._take("s"):
            return function
        if self._take("d"):
            self._number()
            self._expect("_")
        text = f"{function}::{self.name()}"
        if self._take("_"):
            self._take("_")
            self._number()
            self._take("_")
        return text

    def _encoding(self) -> str:
        text = self.name()
        while self._at < len(self._text) and self._peek() not in "E.":
            self._type()
        return text

    def _unqualified(self, owner: str = "") -> str:
        self._take("L")
        head = self._peek(2)
        if head[:1].isdigit():
            length = self._number()
            text = self._text[self._at : self._at + length]
            if length == 0 or len(text) < length:
                raise MangledNameError(self._text)
            self._at += length
            text = "(anonymous namespace)" if text.startswith("_GLOBAL__N") else text
        elif head == "Ut":
            text = self._numbered("unnamed")
        elif head == "Ul":
            self._at += 2
            while self._peek() != "E":
                self._type()
            text = self._numbered("lambda", skip=1)
        elif head[:1] in ("C", "D") and head[1:].isdigit():
            self._at += 2
            text = ("~" if head[0] == "D" else "") + owner.rsplit("::", 1)[-1]
        elif head.isalpha() and head.islower():
            self._at += 2
            text = f"operator {self._type()}" if head == "cv" else "operator()" if head == "cl" else f"operator {head}"
        else:
            raise MangledNameError(self._text)
        while self._take("B"):
            self._unqualified()
        return text

    def _numbered(self, what: str, skip: int = 2) -> str:
        self._at += skip
        number = self._number() + 2 if self._peek() != "_" else 1
        self._expect("_")
        return f"{{{what}#{number}}}"

    def _type(self) -> str:
        text, is_new = self._type_of_one()
        if is_new:
            self._remember(text)
        return text

    def _type_of_one(self) -> tuple[str, bool]:
        """The type and whether later substitutions can refer to it (builtin types and substitutions are not counted)."""
        head, two = self._peek(), self._peek(2)
        if head in _BUILTIN:
            self._at += 1
            return _BUILTIN[head], False
        if head in ("P", "R", "O", "K", "V", "r", "C", "G"):
            self._at += 1
            return self._type() + {"P": "*", "R": "&", "O": "&&", "K": " const", "V": " volatile"}.get(head, ""), True
        if head == "D":
            return self._type_d(two)
        if head == "F":
            self._at += 1
            self._take("Y")
            parts = self._until_end(self._type)
            return f"{parts[0]} ({', '.join(parts[1:])})", True
        if head == "A":
            self._at += 1
            size = "" if self._peek() == "_" else str(self._number())
            self._expect("_")
            return f"{self._type()} [{size}]", True
        if head == "M":
            self._at += 1
            owner = self._type()
            return f"{self._type()} {owner}::*", True
        if head == "u":
            self._at += 1
            return self._unqualified(), True
        if head == "U":
            self._at += 1
            self._unqualified()
            return self._type(), True
        if head == "T":
            text = self._template_parameter()
            if self._peek() == "I":
                self._remember(text)
                text += self._template_arguments()
            return text, True
        if head == "S" and two != "St":
            text = self._substitution()
            return (text + self._template_arguments(), True) if self._peek() == "I" else (text, False)
        return self.name(), True

    def _type_d(self, two: str) -> tuple[str, bool]:
        self._at += 2
        if two in _BUILTIN_D:
            return _BUILTIN_D[two], False
        if two == "DF":
            bits = self._number()
            brain = self._take("b")
            if not brain:
                self._at += 1
            return ("std::bfloat16_t" if brain else f"_Float{bits}"), False
        if two == "Dp":
            return self._type(), True
        raise MangledNameError(self._text)

    def _template_arguments(self) -> str:
        if not (self._take("I") or self._take("J")):
            raise MangledNameError(self._text)
        arguments = [argument for argument in self._until_end(self._template_argument) if argument]
        return f"<{', '.join(arguments)}>"

    def _template_argument(self) -> str:
        if self._take("L"):
            return self._literal()
        if self._take("X"):
            text = self._expression()
            self._expect("E")
            return text
        if self._peek() == "J":
            return self._template_arguments()[1:-1]
        return self._type()

    def _literal(self) -> str:
        if self._take("_Z"):
            text = self._encoding()
            self._expect("E")
            return text
        kind = self._type()
        stop = self._text.find("E", self._at)
        if stop < 0:
            raise MangledNameError(self._text)
        value = self._text[self._at : stop].replace("n", "-", 1)
        self._at = stop + 1
        if kind == "bool":
            return "true" if value == "1" else "false"
        return value if kind in _BUILTIN.values() else f"({kind}){value}"

    def _expression(self) -> str:
        if self._take("ad"):
            return "&" + self._expression()
        if self._take("L"):
            return self._literal()
        if self._peek() == "T":
            return self._template_parameter()
        raise MangledNameError(self._text)

    def _template_parameter(self) -> str:
        self._expect("T")
        digits = ""
        while self._peek() != "_":
            digits += self._peek()
            self._at += 1
        self._expect("_")
        return f"T{int(digits, 36) + 2 if digits else 1}"

    def _substitution(self) -> str:
        two = self._peek(2)
        if two in _STANDARD:
            self._at += 2
            return _STANDARD[two]
        self._expect("S")
        digits = ""
        while self._peek() != "_":
            digits += self._peek()
            self._at += 1
        self._expect("_")
        try:
            return self._known[int(digits, 36) + 1 if digits else 0]
        except (IndexError, ValueError) as error:
            raise MangledNameError(self._text) from error

    def _remember(self, text: str) -> None:
        # Substitutions can double a name with every few letters: a hostile symbol must not fill the memory.
        if len(text) > _MAX_LENGTH:
            raise MangledNameError(self._text)
        self._known.append(text)

    def _until_end(self, read: Callable[[], str]) -> list[str]:
        parts: list[str] = []
        while not self._take("E"):
            parts.append(read())
        return parts

    def _number(self) -> int:
        start = self._at
        while self._text[self._at : self._at + 1].isdigit():
            self._at += 1
        return int(self._text[start : self._at] or "0")

    def _peek(self, length: int = 1) -> str:
        if self._at >= len(self._text):
            raise MangledNameError(self._text)
        return self._text[self._at : self._at + length]

    def _take(self, token: str) -> bool:
        if self._text.startswith(token, self._at):
            self._at += len(token)
            return True
        return False

    def _expect(self, token: str) -> None:
        if not self._take(token):
            raise MangledNameError(self._text)
