# SPDX-License-Identifier: Apache-2.0
"""What a command of husk costs from exec to exit, for `tools/bench cost`: instructions, counted by callgrind(1), of husk and of
the entrypoint that it calls; page faults and memory. Of ten pods of namespaces one runs.
"""

import os
import re
import shutil
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
PODS = 10
# Of an environment of its own: how much there is of it, the dynamic linker counts, too.
ENVIRONMENT = {"PATH": os.environ["PATH"], "HOME": "/nonexistent"}


def run(command, **environment):
    done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, env=ENVIRONMENT | environment, check=False)
    if done.returncode:
        sys.exit(f"bench cost: {' '.join(command)}: status {done.returncode}: {done.stderr.decode(errors='replace')}")
    return done.stdout.decode()


class Commands:
    def __init__(self, build, work, image):
        self.build = build
        self.work = f"{work}/commands"
        self.image = image
        self.program = f"{build}/bin/husk"
        self.husk = [self.program, "--system-config=", "--local-config=", f"--dir={self.work}/data", "--stage1=ns"]
        os.mkdir(self.work)
        os.chmod(self.work, 0o755)
        self.make_pods()

    def make_pods(self):
        run([*self.husk, "run", "--net=none", self.image, "--", "true"])
        run([*self.husk, "prepare", self.image, "--", "true"])
        run([f"{HERE}/make-pods", f"{self.work}/data", str(PODS - 1)])
        self.uuid = self.sandbox()
        run([*self.husk, "app", "add", self.uuid, self.image, "--name=app", "--", "sleep", "1000"])
        run([*self.husk, "app", "start", "--app=app", self.uuid])
        # A stage1 whose `run` does nothing: what is counted of a pod's start ends with the exec of stage1.
        self.nothing = f"{self.work}/nothing"
        shutil.copytree(f"{self.build}/lib/husk/stage1-ns", self.nothing)
        shutil.copy("/bin/true", f"{self.nothing}/bin/run")

    def sandbox(self):
        return run([*self.husk, "app", "sandbox", "--net=none", "--detach"]).strip()

    def end(self):
        run([*self.husk, "stop", "--force", self.uuid])

    def commands(self):
        """Names and words, in an order in which each finds what it needs: those that only look, and the others."""
        app = ["app", "--app=app", self.uuid]
        light = {"version": ["--version"], "list": ["list"], "status": ["status", self.uuid], "logs": ["logs", *app[1:]],
                 "app-list": ["app", "list", self.uuid], "cat-manifest": ["cat-manifest", self.uuid]}
        others = {"app-exec": ["app", "exec", *app[1:], "--", "true"], "enter": ["enter", self.uuid, "true"],
                  "app-stop": ["app", "stop", *app[1:]], "app-start": ["app", "start", *app[1:]],
                  "prepare": ["prepare", self.image, "--", "true"],
                  "run": [f"--stage1={self.nothing}", "run", "--net=none", self.image, "--", "true"]}
        return light, others

    def instructions(self, words):
        """Of husk and the entrypoints, each by itself a program."""
        out = f"{self.work}/callgrind"
        os.mkdir(out)
        run(["valgrind", "--tool=callgrind", "--trace-children=yes", f"--callgrind-out-file={out}/%p", *self.husk, *words],
            LD_PRELOAD=f"{self.build}/tests/bench-preload.so")
        counts = {}
        for name in os.listdir(out):
            with open(f"{out}/{name}", encoding="utf-8") as f:
                found = dict(re.findall(r"^(cmd|summary): *(\S+)", f.read(), re.M))
            counts[os.path.basename(found["cmd"])] = int(found["summary"])
        shutil.rmtree(out)
        return counts

    def faults(self, words):
        quiet = [(os.POSIX_SPAWN_OPEN, fd, "/dev/null", os.O_RDWR, 0) for fd in range(3)]
        child = os.posix_spawn(self.program, [*self.husk, *words], ENVIRONMENT, file_actions=quiet)
        return os.wait4(child, 0)[2].ru_minflt

    def kib(self, words):
        peak = f"{self.work}/peak"
        run([f"{self.build}/tests/peak", peak, *self.husk, *words])
        with open(peak, encoding="utf-8") as f:
            return int(f.read())

    def figures(self):
        light, others = self.commands()
        figures = {}
        for name, words in {**light, **others}.items():
            figures[f"{name}.instructions"] = sum(self.instructions(words).values())
        other = self.sandbox()
        figures["stop.instructions"] = sum(self.instructions(["stop", other]).values())
        run([*self.husk, "status", "--wait", other])
        run([*self.husk, "rm", other])
        for name, words in light.items():
            figures |= {f"{name}.faults": self.faults(words), f"{name}.kib": self.kib(words)}
        return figures


def measure(build, work, image, rounds):
    """A list of figures, one for each round."""
    commands = Commands(build, work, image)
    try:
        return [commands.figures() for _ in range(rounds)]
    finally:
        commands.end()
