"""Machines on one computer, and the links from each of them to each service, which can fall silent.

Two kinds of links offer the same methods:

- :class:`Namespaces` gives each machine a network and a host name of its own, by the kernel's namespaces. Each service
  has a network of its own with a bridge, and each machine a cable (a veth pair) to each bridge. A cut port of a bridge
  passes nothing in either direction, so that both kernels see silence: no RST, no ICMP, no ARP. It needs root.
- :class:`Relays` needs nothing. Each machine reaches each service through a forwarder of its own. When that is silent,
  the kernels still acknowledge what is sent, and connections can still be opened, but nothing arrives.
"""

from __future__ import annotations

import os
import socket
import subprocess
from contextlib import suppress
from pathlib import Path

from support.faults.rest import PATIENCE, until
from support.faults.standalone import free_port
from support.forwarder import Forwarder

SERVICES = ("database", "pooler", "broker", "api", "messaging")
"""The services, in the order of their networks."""
NETWORK = "198.18"
"""Addresses begin so: RFC 2544 sets them aside for tests of networks."""
PORT = 7000
"""TCP port of every service that has an address of its own."""
FORWARDS, DISABLED = "3", "0"
"""States of a bridge's port, of IEEE 802.1D."""

HOST_NAME = """
import os, socket
socket.gethostname = lambda: os.environ["SMS_TESTS_HOST_NAME"]
"""
"""The host name of a machine that has none of its own, as every Python process there reads it."""


class Machine:
    """A machine, which runs one process and its children at a time.

    :param name: host name.
    :param folder: where its processes work, by which they are known.
    """

    def __init__(self, name, folder):
        self.name = name
        self.folder = folder
        folder.mkdir()

    def place(self, service):
        """Return host and port at which the machine reaches a service."""
        raise NotImplementedError

    def run(self, arguments, environment, output):
        """Start a process on the machine, with its links whole, in a session of its own, and return it.

        :param output: file for what it prints.
        """
        raise NotImplementedError

    def cut(self, *services):
        """Let the links to some services fall silent, in both directions; none given means all."""
        raise NotImplementedError

    def mend(self, *services):
        """Let the links to some services pass again; none given means all."""
        raise NotImplementedError


class Relays:
    """Links that are forwarders on 127.0.0.1."""

    kind = "relays"

    def __init__(self):
        self._places = {}
        self._machines = []

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for machine in self._machines:
            machine.close()

    def place(self, service):
        """Return host and port on which a service should listen."""
        return self._places.setdefault(service, ("127.0.0.1", free_port()))

    def machine(self, name, folder):
        """Make a machine.

        :param folder: of the machine, which does not exist yet.
        """
        machine = RelayedMachine(name, folder, {service: self.place(service) for service in SERVICES})
        self._machines.append(machine)
        return machine


class RelayedMachine(Machine):
    """A machine that is but a folder and forwarders.

    :param places: where each service listens.
    """

    def __init__(self, name, folder, places):
        super().__init__(name, folder)
        self.relays = {service: Forwarder(place) for service, place in places.items()}
        for relay in self.relays.values():
            relay.__enter__()
        (folder / "site").mkdir()
        (folder / "site" / "sitecustomize.py").write_text(HOST_NAME)

    def close(self):
        """End all relays."""
        for relay in self.relays.values():
            relay.__exit__()

    def place(self, service):
        """Return host and port of the machine's relay to a service."""
        return self.relays[service].host, self.relays[service].port

    def run(self, arguments, environment, output):
        """Start a process, and return it."""
        self.mend()
        known = f"{self.folder}/site:{environment.get('PYTHONPATH', '')}"
        return _start(arguments, {**environment, "PYTHONPATH": known, "SMS_TESTS_HOST_NAME": self.name}, self, output)

    def cut(self, *services):
        """Let the relays to some services fall silent; none given means all."""
        for service in services or SERVICES:
            self.relays[service].fall_silent()

    def mend(self, *services):
        """Let the relays to some services pass on what they held back; none given means all."""
        for service in services or SERVICES:
            self.relays[service].speak()


class Namespaces:
    """Links that are cables to bridges, in a network namespace that holds nothing else.

    The process that makes them must be root there: see :func:`enter_namespaces`.
    """

    kind = "namespaces"

    def __init__(self):
        self._machines = 0

    def __enter__(self):
        _ip("link", "set", "lo", "up")
        for number, service in enumerate(SERVICES, 1):
            _ip("link", "add", service, "address", _mac(number, 1), "type", "bridge")
            _ip("address", "add", f"{self.place(service)[0]}/24", "dev", service)
            _ip("link", "set", service, "up")
        return self

    def __exit__(self, *_):
        for service in SERVICES:
            _ip("link", "delete", service)

    def place(self, service):
        """Return host and port on which a service should listen, which machines reach, too."""
        return f"{NETWORK}.{SERVICES.index(service) + 1}.1", PORT

    def machine(self, name, folder):
        """Make a machine.

        :param folder: of the machine, which does not exist yet.
        """
        self._machines += 1
        return NamespacedMachine(name, folder, 10 + self._machines, self.place)


class NamespacedMachine(Machine):
    """A machine with a network and a host name of its own while a process runs on it.

    :param number: last number of its addresses.
    :param place: function that gives the place of a service.
    """

    def __init__(self, name, folder, number, place):
        super().__init__(name, folder)
        self._number = number
        self.place = place
        self._ports = {service: f"{service[:9]}-{number}" for service in SERVICES}
        # The sandbox serves requests for "localhost" only, wherever that is.
        hosts = f"{place('messaging')[0]} localhost\n127.0.0.1 {name}\n"
        (folder / "hosts").write_text(hosts)

    def run(self, arguments, environment, output):
        """Start a process in new namespaces, with cables, and return it."""
        lines = [
            "read go",
            "ip link set lo up",
            f"echo {self.name} > /proc/sys/kernel/hostname",
            "mount --bind hosts /etc/hosts",
        ]
        for number, service in enumerate(SERVICES, 1):
            lines += [
                f"ip link set {service} up",
                f"ip address add {NETWORK}.{number}.{self._number}/24 dev {service}",
                # What is known for ever need not be asked for, so that a cut looks as it does from far away.
                f"ip neighbour replace {self.place(service)[0]} lladdr {_mac(number, 1)} dev {service} nud permanent",
            ]
        script = "set -e\n" + "\n".join(lines) + '\nexec "$@" < /dev/null'
        inside = ["unshare", "--net", "--uts", "--mount", "sh", "-c", script, "sh", *arguments]
        process = _start(inside, environment, self, output, stdin=subprocess.PIPE)
        namespace = Path(f"/proc/{process.pid}/ns/net")
        own = Path("/proc/self/ns/net").readlink()
        until(lambda: namespace.readlink() != own, seconds=PATIENCE, what="the machine has a network", every=0.01)
        for number, service in enumerate(SERVICES, 1):
            self._plug_in(number, service, process.pid)
        process.stdin.write(b"go\n")
        process.stdin.close()
        return process

    def _plug_in(self, number, service, pid):
        port, mac = self._ports[service], _mac(number, self._number)
        # The kernel removes the cable of a process that has ended some time after it.
        with suppress(RuntimeError):
            _ip("link", "delete", port)
        far = ("type", "veth", "peer", "name", service, "address", mac, "netns", str(pid))
        _ip("link", "add", port, *far)
        _ip("link", "set", port, "master", service, "up")
        _ip(
            "neighbour",
            "replace",
            f"{NETWORK}.{number}.{self._number}",
            "lladdr",
            mac,
            "dev",
            service,
            "nud",
            "permanent",
        )

    def cut(self, *services):
        """Let the bridges' ports for some services pass nothing; none given means all services."""
        self._set_ports(services, DISABLED)

    def mend(self, *services):
        """Let the bridges' ports for some services pass everything; none given means all services."""
        self._set_ports(services, FORWARDS)

    def _set_ports(self, services, state):
        there = {name for _, name in socket.if_nameindex()}
        # A machine without a process has no cables.
        for service in (each for each in services or SERVICES if self._ports[each] in there):
            _run("bridge", "link", "set", "dev", self._ports[service], "state", state)


def enter_namespaces(arguments):
    """Replace this process by a command in namespaces of its own, whose processes all end with it.

    :param arguments: of the command.
    """
    ours = ("--net", "--pid", "--fork", "--kill-child", "--mount-proc")
    os.execvp("unshare", ["unshare", *ours, "--", *arguments])


def lacking():
    """Return why there can be no namespaces here; an empty text means that there can."""
    if os.geteuid() != 0:
        return "namespaces need root"
    made = subprocess.run(
        ["unshare", "--net", "--uts", "--mount", "--pid", "--fork", "ip", "link", "add", "a-bridge", "type", "bridge"],
        check=False,
        capture_output=True,
        text=True,
    )
    return made.stderr.strip() if made.returncode else ""


def _start(arguments, environment, machine, output, stdin=subprocess.DEVNULL):
    with output.open("ab") as printed:
        return subprocess.Popen(
            arguments,
            env=environment,
            cwd=machine.folder,
            stdin=stdin,
            stdout=printed,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )


def _mac(network, number):
    return f"02:00:00:00:{network:02x}:{number:02x}"


def _ip(*arguments):
    _run("ip", *arguments)


def _run(*arguments):
    ran = subprocess.run(arguments, check=False, capture_output=True, text=True)
    if ran.returncode:
        raise RuntimeError(f"{' '.join(arguments)}: {ran.stderr.strip()}")


def answers(place):
    """Return whether something accepts connections at a host and port."""
    with suppress(OSError), socket.create_connection(place, timeout=1):
        return True
    return False
