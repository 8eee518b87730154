"""A brace scanner: the functions of a C++ file with their extent, nesting, parameters and namespace."""

import re
from dataclasses import dataclass

from base.tree import bare, line_of, literal_lines

_CONTROL = re.compile(r"^(?:\}?\s*(?:else|do|try)\b|(?:\w+:\s*)?(?:if|for|while|switch|catch)\b)")
_TYPE = re.compile(r"^(?:(?:template|requires|export|typedef|static|inline|constexpr|const)\b.*?)?(?:class|struct|union|enum)\b")
_LAMBDA = re.compile(r"\[[^\[\]]*\]\s*(?:<[^{}]*>)?\s*(?:\([^{}]*\))?\s*(?:mutable|noexcept|constexpr|HWY_ATTR|->[\w:<>&*,\s]+|\s)*$")
_FUNCTION = re.compile(r"\)\s*(?:const|noexcept(?:\([^()]*\))?|override|final|mutable|&&?|try|HWY_ATTR|->[\w:<>&*,\s()]+|requires[^;]+|\s)*$")
_NOT_PARAMETERS = re.compile(
    r"\[\[[^\]]*\]\]|\b(?:decltype|explicit|alignas|noexcept|requires|__attribute__)\s*\((?:[^()]|\([^()]*\))*\)|operator\s*\(\s*\)")


@dataclass
class Function:
    """One function definition with a body."""

    name: str
    first_line: int
    last_line: int = 0
    literal_lines: int = 0  # inside raw string literals: data, not code
    nesting: int = 0
    deepest_line: int = 0
    parameters: int = 0
    namespaces: tuple = ()
    inside_type: bool = False

    @property
    def lines(self):
        return self.last_line - self.first_line + 1 - self.literal_lines


@dataclass
class _Block:
    kind: str  # namespace, type, function, lambda, control, block, initialiser
    name: str = ""
    function: Function = None
    depth: int = 0  # control blocks between here and the innermost function or lambda
    start: int = 0  # where the statement it belongs to begins
    parens: int = 0  # open parentheses around it


def parameter_count(head):
    """Parameters in the declarator `head`, which ends before the body or the initialiser list."""
    head = _NOT_PARAMETERS.sub(" ", head)
    head = re.sub(r"^\s*template\s*<[^()]*?>\s*(?=[A-Za-z\[])", "", head)
    start = head.find("(")
    depth, commas, something = 0, 0, False
    for position in range(start, len(head)) if start >= 0 else ():
        letter = head[position]
        if letter in "([{<":
            depth += 1
        elif letter in ")]}" or (letter == ">" and head[position - 1] != "-"):
            depth -= 1
            if depth == 0:
                break
        elif letter == "," and depth == 1:
            commas += 1
        if depth >= 1 and position > start and not letter.isspace():
            something = True
    return commas + 1 if something else 0


def _name(head):
    head = _NOT_PARAMETERS.sub(lambda m: "operator_call" if m[0].startswith("operator") else " ", head)
    match = re.search(r"((?:[\w~]+(?:<[^<>()]*>)?::)*(?:operator\s*[^\s\w(]+|[\w~]+))\s*\(", head)
    return match[1] if match else "?"


def _kind(head, outer, in_parens):
    stripped = re.sub(r"\s+", " ", head).strip()
    if _LAMBDA.search(stripped) and re.search(r"(?:^|[=(,{\s&|?:!])\[", stripped):
        return "lambda"
    if in_parens:
        return "initialiser"
    if re.match(r"(?:inline )?namespace\b|extern \"", stripped):
        return "namespace"
    if outer in ("namespace", "type", ""):
        if re.search(r"(?:^|[^=<>!])=(?!=)[^()]*$|\breturn$", stripped) and "operator" not in stripped:
            return "initialiser"
        if _FUNCTION.search(stripped):
            return "function"
        before_list = re.sub(r"\)\s*(?:noexcept\s*)?:[^:].*$", ")", stripped)
        if before_list != stripped:  # a constructor's initialiser list: a body follows `)` or `}`, a member follows its name
            return "function" if re.search(r"[)}]$", stripped) else "initialiser"
        return "type" if _TYPE.match(stripped) else "initialiser"
    if _CONTROL.match(stripped):
        return "control"
    if _TYPE.match(stripped) and "(" not in stripped:
        return "type"
    return "block" if not stripped or stripped.endswith(":") else "initialiser"


class _Scanner:
    def __init__(self, text):
        self.text = bare(text)
        self.stack = [_Block("")]
        self.functions = []
        self.head = 0  # where the current statement begins
        self.parens = 0

    def run(self):
        for match in re.finditer(r"[{}();]", self.text):
            position = match.start()
            {"{": self.open, "}": self.close, "(": self.paren, ")": self.unparen, ";": self.end}[match[0]](position)
        return self.functions

    def paren(self, _):
        self.parens += 1

    def unparen(self, _):
        self.parens -= 1

    def end(self, position):
        if self.parens == 0:
            self.head = position + 1

    def open(self, position):
        outer = self.stack[-1]
        head = self.text[self.head:position]
        head = re.sub(r"^(?:\s*(?:public|private|protected)\s*:(?!:))+", lambda m: " " * len(m[0]), head)
        start = self.head + len(head) - len(head.lstrip())
        block = _Block(_kind(head, outer.kind, self.parens > 0), start=self.head, parens=self.parens)
        block.function, block.depth = outer.function, outer.depth
        if block.kind == "namespace":
            match = re.search(r"namespace\s+([\w:]+)\s*$", head)
            block.name = match[1] if match else ""
        elif block.kind == "function":
            block.function, block.depth = self.begin_function(head, start), 0
        elif block.kind == "lambda":
            block.depth = 0
        elif block.kind == "control":
            self.go_deeper(block, position)
        self.stack.append(block)
        self.parens = 0
        self.head = position + 1

    def begin_function(self, head, start):
        names = tuple(b.name for b in self.stack if b.kind == "namespace")
        function = Function(_name(head), line_of(self.text, start), parameters=parameter_count(head), namespaces=names,
                            inside_type=any(b.kind == "type" for b in self.stack))
        self.functions.append(function)
        return function

    def go_deeper(self, block, position):
        block.depth += 1
        function = block.function
        if function and block.depth > function.nesting:
            function.nesting, function.deepest_line = block.depth, line_of(self.text, position)

    def close(self, position):
        if len(self.stack) == 1:
            return
        block = self.stack.pop()
        self.parens = block.parens
        if block.kind == "function":
            block.function.last_line = line_of(self.text, position)
        # After an initialiser or a lambda the statement goes on; after anything else the next one begins.
        self.head = block.start if block.kind in ("initialiser", "lambda") else position + 1


def functions(text):
    """The functions defined in C++ source `text`, in order."""
    found = [f for f in _Scanner(text).run() if f.last_line]
    literal = literal_lines(text)
    for function in found:
        function.literal_lines = sum(function.first_line < line <= function.last_line for line in literal)
    return found
