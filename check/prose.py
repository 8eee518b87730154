#!/usr/bin/env python3
"""Comments, pages and messages are plain technical English: this check finds the constructions that readers stumble on."""

import re
import sys

from base.tree import CODE_FOLDERS, CPP, ROOT, Finding, files, report

# A word or phrase, and what to write instead. They are searched in comments, pages and literals.
WORDS = {
    r"how-manieth": "write: sequence number",
    r"anew": "write: again, or restarts",
    r"whoever": "name the subject: a rank that ...",
    r"nobody": "name the subject: no rank, no thread, no caller",
    r"(?<!there )(?:is|are|was|were) no (?!longer\b|more\b|less\b|other\b|different\b)\w+": "write: is not a",
    r"(?:says?|said|tells?|told|hears?|heard)": "data and code do not speak: states, reports, sends, receives, prints",
    r"foretells?|foretold": "write: predicts, predicted",
    r"mend(?:s|ed|ing)?": "write: fix",
    r"beside": "write: next to, with, or compared with",
    r"so (?:many|much|long)(?! (?:as|that)\b)": "name the quantity",
    r"for good": "write: permanently",
    r"of one's own": "write: your own",
    r"(?:parts?|parted) from": "write: disconnects from",
    r"(?:comes?|came) to nothing": "write: has no effect, or fails",
    r"by itself alone|it alone": "write: only it",
    r"hereby|thereof|therein|whereof|wherein": "use plain words",
}
# How a sentence of a comment, page or message must not begin: a relative clause without a noun, or a genitive without a verb.
BEGINNINGS = {
    r"Who(?:se)?\b(?![^.?!]*\?)": "name the subject: A rank that ...",
    r"What\b(?![^.?!]*\?)": "name the subject, or ask a question",
    r"Of\b": "write a sentence with a subject and a verb",
    r"The same\b(?= (?:for|of|as|with|in|on|by)\b)": "write what it does",
    r"As (?:a |an |the )?\w+(?: of \w+)?[.;:]": "write a sentence",
    r"Into\b": "write a sentence with a subject and a verb",
}
PAGES = {".md"}
CODE = CPP | {".py", ".cmake", ".sh", ".txt", ""}
LEFT_OUT = ("check/prose.py", "check/test_checks.py", "check/mutants/", "test/fuzz/corpus/", "LICENSE", "data/")

_words = [(re.compile(rf"(?<![\w`'-])(?:{pattern})\b(?![`(])", re.IGNORECASE), advice) for pattern, advice in WORDS.items()]
_begins = [(re.compile(rf"(?:{pattern})"), advice) for pattern, advice in BEGINNINGS.items()]
_LITERAL = re.compile(r'"((?:\\.|[^"\\\n])*)"')


def _blank(match):
    return re.sub(r"[^\n]", " ", match[0])


def _without_code(text):
    """A page without fenced blocks, inline code and link targets."""
    text = re.sub(r"^```.*?^```", _blank, text, flags=re.MULTILINE | re.DOTALL)
    text = re.sub(r"<!--.*?-->", _blank, text, flags=re.DOTALL)
    text = re.sub(r"`[^`\n]*`", lambda m: "`" + "x" * (len(m[0]) - 2) + "`", text)
    return re.sub(r"\]\([^)\n]*\)", _blank, text)


def _blocks_of_page(text):
    """(line, text) of every paragraph, item and table cell."""
    line = 1
    for paragraph in re.split(r"(\n(?:[ \t]*\n)+|\n(?=[ \t]*(?:[-*]|\d+\.) )|\n(?=\|)|(?<=\|)\n|(?<= )\|(?= ))", _without_code(text)):
        stripped = re.sub(r"^[\s#>*|-]+|^\s*\d+\.\s+", "", paragraph)
        if stripped.strip():
            yield line + paragraph[:len(paragraph) - len(stripped)].count("\n"), stripped
        line += paragraph.count("\n")


def _blocks_of_code(text, marker):
    """(line, text) of every comment, whose consecutive lines are one text, and of every literal with two words or more."""
    comment, first = [], 0
    for number, line in enumerate(text.splitlines(), 1):
        bare = _LITERAL.sub(lambda m: '"' + "x" * len(m[1]) + '"', line)
        match = re.search(marker, bare)
        alone = match and not bare[:match.start()].strip()
        if comment and not (alone and number == first + len(comment)):
            yield first, "\n".join(comment)
            comment = []
        if match:
            words = line[match.end():].strip()
            if alone:
                first = first if comment else number
                comment.append(words)
            else:
                yield number, words
        code_end = match.start() if match else len(line)
        for literal in _LITERAL.finditer(line):
            if literal.start() < code_end and len(re.findall(r"[A-Za-z]{2,}", literal[1])) > 2:
                yield number, re.sub(r"\\n", " ", literal[1])
    if comment:
        yield first, "\n".join(comment)


def block_findings(path, line, text):
    text = re.sub(r"`[^`\n]*`", lambda m: "`" + "x" * (len(m[0]) - 2) + "`", text)
    for pattern, advice in _words:
        for match in pattern.finditer(text):
            yield Finding(path, line + text[:match.start()].count("\n"), f"'{match[0]}': {advice}")
    for sentence in re.finditer(r"(?:^|(?<=[.;] )|(?<=[.;]\n))\s*(?=[A-Z])", text):
        for pattern, advice in _begins:
            match = pattern.match(text, sentence.end())
            if match:
                yield Finding(path, line + text[:match.start()].count("\n"), f"a sentence begins with '{match[0]}': {advice}")


def torn_findings(path, text):
    """Comments and doc-strings that a rename or a formatter has destroyed."""
    lines = text.splitlines()
    for number, (line, after) in enumerate(zip(lines, [*lines[1:], ""]), 1):
        if match := re.match(r"\s*///? ((?:[A-Z][a-z]+){2,}) (?:by|of) ", line):
            yield Finding(path, number, f"a comment begins with '{match[1]}', as if a type had been renamed in it: write a sentence")
        if re.match(r"\s*///(?!<)", line) and len(line) - len(line.lstrip()) > len(after) - len(after.lstrip()) + 8 and after.strip():
            yield Finding(path, number, "a comment on the next line's declaration stands behind this line's: move it to the left")
        if re.fullmatch(r'\s*"[^"\\]{0,19} ?"', line) and _is_torn(lines[number - 2], after):
            yield Finding(path, number, f"a line of a text has only {line.strip()}: fill the lines")


def _is_torn(before, after):
    """Whether a formatter has cut a text between these lines: both are of the same text, and the first is no full line of it."""
    is_literal = lambda line: re.fullmatch(r'\s*".*"[,;)]*', line)
    return bool(is_literal(before) and is_literal(after)) and not before.rstrip().endswith('\\n"') and len(before) > 90


def findings(root, *folders):
    for path in files(root, *folders):
        name = str(path)
        if name.startswith(LEFT_OUT):
            continue
        if path.suffix in PAGES:
            blocks = _blocks_of_page((root / path).read_text())
        elif path.suffix in CPP:
            blocks = _blocks_of_code((root / path).read_text(errors="replace"), r"//[/!]?<?")
        elif path.suffix in CODE and (path.parts[0] in (*CODE_FOLDERS, "check", "scripts", "cmake", ".ci") or len(path.parts) == 1):
            blocks = _blocks_of_code((root / path).read_text(errors="replace"), r"(?:^|\s)#(?!!)")
        else:
            continue
        for line, text in blocks:
            yield from block_findings(name, line, text)
        if path.suffix in CPP:
            yield from torn_findings(name, (root / path).read_text(errors="replace"))


if __name__ == "__main__":
    sys.exit(report("prose", list(findings(ROOT, *sys.argv[1:]))))
