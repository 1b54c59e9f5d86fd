#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""doc_blocks.py FILE.md...: runs what documents tell a reader to type.

A block marked "console" is a session: lines that begin with "$ " are commands (a backslash at the end of a line continues
it), the lines behind one are what it prints, on stdout and stderr, where "…" stands for any text. The blocks of a file
run one after the other in one shell in the working directory. A block marked "sh" is a list of commands that are not
run, as they change the machine or take long; the program of each must be there: below HUSK_SOURCE_DIR or in PATH.
A block with "$ " in it must be marked. Prints a line for each block; exit status 1 if one is wrong.

    HUSK_DOC_LIMIT   seconds for one command (default 300)
"""

import os
import re
import select
import shutil
import signal
import subprocess
import sys
import time

FENCE = re.compile(r"^```(\w*)[^\n]*\n(.*?)^```$", re.M | re.S)
LIMIT = float(os.environ.get("HUSK_DOC_LIMIT", "300"))
TOP = os.environ.get("HUSK_SOURCE_DIR", os.path.join(os.path.dirname(__file__), "..", ".."))
END = b"\1"


def commands(block):
    """The (command, expected output) pairs of a session."""
    pairs = []
    continued = False
    for line in block.splitlines():
        if continued:
            pairs[-1][0] += "\n" + line
        elif line.startswith("$ "):
            pairs.append([line[2:], ""])
        elif pairs:
            pairs[-1][1] += line + "\n"
        else:
            raise ValueError(f'begins with "{line}", which is not a command')
        continued = (continued or line.startswith("$ ")) and line.endswith("\\")
    return pairs


# Commands come on a descriptor of their own, as they may read stdin, which is empty.
LOOP = """while IFS= read -r -d '' -u $1 command; do
(exit ${status-0}); eval "$command"
status=$?; printf '\\1'
done"""


class Shell:
    """A shell that keeps its variables and its last exit status from one command to the next."""

    def __init__(self):
        reader, self.writer = os.pipe()
        self.process = subprocess.Popen(
            ["bash", "--norc", "-c", LOOP, "bash", str(reader)],
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, pass_fds=[reader],
            start_new_session=True,
        )
        os.close(reader)

    def run(self, command):
        """What the command prints. TimeoutError if it does not end, EOFError if the shell does."""
        os.write(self.writer, command.encode() + b"\0")
        out, deadline = b"", time.monotonic() + LIMIT
        while not out.endswith(END):
            if not select.select([self.process.stdout], [], [], max(0, deadline - time.monotonic()))[0]:
                raise TimeoutError(f"did not end within {LIMIT:g} s")
            chunk = os.read(self.process.stdout.fileno(), 65536)
            if not chunk:
                raise EOFError("the shell ended")
            out += chunk
        return out[:-1].decode(errors="replace")

    def end(self):
        """Ends it, with a command that still runs."""
        os.close(self.writer)
        os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()


def matches(want, got):
    return re.fullmatch(".*".join(re.escape(part) for part in want.split("…")), got, re.S) is not None


def run_session(shell, block):
    """None, or what is wrong."""
    for command, want in commands(block):
        try:
            got = shell.run(command)
        except (TimeoutError, EOFError) as e:
            return f"$ {command}\n{e}"
        if not matches(want, got):
            return f"$ {command}\nprints:\n{got}instead of:\n{want}"
    return None


def check_list(block):
    """None, or the commands of a block that is not run whose program is not there."""
    missing = []
    for line in block.replace("\\\n", " ").splitlines():
        word = re.sub(r"#.*|^\s*(\w+=\S*\s+)*", "", line).split(" ")[0]
        # What is in capitals or in a build directory is the reader's.
        if not word or re.match(r"[A-Z]|build", word):
            continue
        if not os.access(os.path.join(TOP, word), os.X_OK) and not shutil.which(word):
            missing.append(word)
    return f"not there: {' '.join(missing)}" if missing else None


def main():
    failed = ran = 0
    for path in sys.argv[1:]:
        with open(path, encoding="utf-8") as f:
            text = f.read()
        shell = Shell()
        for m in FENCE.finditer(text):
            kind, block = m[1], m[2]
            wrong = None
            if kind == "console":
                wrong = run_session(shell, block)
            elif kind == "sh":
                wrong = check_list(block)
            elif re.search(r"^\$ ", block, re.M):
                wrong = 'has commands, but is not marked "console"'
            else:
                continue
            ran += 1
            failed += wrong is not None
            where = f"{path}:{text.count(chr(10), 0, m.start()) + 1}"
            print(f"{'FAIL' if wrong else 'ok  '} {where} {kind}", flush=True)
            if wrong:
                print("    " + wrong.rstrip("\n").replace("\n", "\n    "), flush=True)
        shell.end()
    print(f"{ran} blocks, {failed} wrong")
    sys.exit(1 if failed or ran == 0 else 0)


main()
