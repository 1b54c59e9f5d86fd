#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Pods of Kubernetes in the runtimes of one containerd, in turns: how long a kubelet waits for each call.

usage: cri.py SOCKET IMAGE ROUNDS

What the plugins of the network took is in the file CNI_TIMES, a line for each: command, begin, end
in seconds. The first round makes what later ones find (packed images, templates, caches), and does
not count.
"""
import collections
import json
import os
import statistics
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../support"))

import cri_call  # noqa: E402

RUNTIMES = {"runc": "runc", "husk (VM)": "husk", "husk (ns)": "husk-ns"}
EXECS = 5


class Pod:
    """One pod with one container, whose calls are timed: times are in milliseconds, by name."""

    def __init__(self, path, image, handler, name):
        self.path, self.image, self.handler, self.name = path, image, handler, name
        self.times = collections.defaultdict(list)

    def call(self, method, **request):
        begun = time.monotonic()
        answer = cri_call.call(self.path, method, json.dumps(request))
        self.times[method].append((time.monotonic() - begun) * 1000)
        return answer

    def live(self):
        sandbox = {"metadata": {"name": self.name, "uid": self.name, "namespace": "bench"}, "linux": {},
                   "log_directory": f"{os.path.dirname(self.path)}/logs/{self.name}"}
        container = {"metadata": {"name": "app"}, "image": {"image": self.image}, "command": ["sleep", "1000"],
                     "log_path": "app.log", "linux": {}}
        pod = self.call("RunPodSandbox", config=sandbox, runtime_handler=self.handler).pod_sandbox_id
        self.times["plugins of it"] = [plugins_took("ADD")]
        app = self.call("CreateContainer", pod_sandbox_id=pod, config=container, sandbox_config=sandbox).container_id
        self.call("StartContainer", id=app)
        for _ in range(EXECS):
            self.call("ExecSync", id=app, cmd=["true"])
        self.call("StopContainer", id=app, timeout=0)
        self.call("RemoveContainer", id=app)
        self.call("StopPodSandbox", id=pod)
        self.times["plugins of that"] = [plugins_took("DEL")]
        self.call("RemovePodSandbox", id=pod)
        return {name: statistics.median(times) for name, times in self.times.items()}


def plugins_took(command):
    """From the begin of the first plugin to the end of the last, in milliseconds, since this was asked last."""
    with open(os.environ["CNI_TIMES"], "r+", encoding="ascii") as f:
        lines = [line.split() for line in f]
        f.truncate(0)
    spans = [(float(begin), float(end)) for verb, begin, end in lines if verb == command]
    return (max(end for _, end in spans) - min(begin for begin, _ in spans)) * 1000


def sum_of(times):
    return times["RunPodSandbox"] + times["CreateContainer"] + times["StartContainer"]


def main(path, image, rounds):
    taken = {name: collections.defaultdict(list) for name in RUNTIMES}
    for i in range(int(rounds) + 1):
        for name, handler in RUNTIMES.items():
            times = Pod(path, image, handler, f"{handler}-{i}").live()
            times["until it runs"] = sum_of(times)
            for what, ms in times.items() if i else ():
                taken[name][what].append(ms)
    print(f"median of {rounds} rounds, ms (lowest to highest); the difference to the median of runc")
    print(f"{'':20}" + "".join(f"{name:>30}" for name in RUNTIMES))
    for what, floor in taken["runc"].items():
        row = f"{what:20}"
        for name in RUNTIMES:
            times = taken[name][what]
            middle = statistics.median(times)
            row += f"{middle:8.0f} ({min(times):.0f} to {max(times):.0f})".rjust(22)
            row += f"{middle - statistics.median(floor):+8.0f}" if name != "runc" else " " * 8
        print(row)
    for name in RUNTIMES:
        middle = {what: statistics.median(times) for what, times in taken[name].items()}
        print(f"{name}: until it runs, {100 * middle['plugins of it'] / middle['until it runs']:.0f} % are plugins of the network; "
              f"ExecSync takes {middle['ExecSync'] / statistics.median(taken['runc']['ExecSync']):.2f} of what it takes runc")
    machine = statistics.median(taken["husk (VM)"]["until it runs"]) - statistics.median(taken["husk (ns)"]["until it runs"])
    print(f"the machine: {100 * machine / statistics.median(taken['husk (VM)']['until it runs']):.0f} % of the VM's "
          "(what it takes more than namespaces)")


if __name__ == "__main__":
    main(*sys.argv[1:])
