"""What a process does to files, as strace tells it, and what a power cut may leave of that."""

import os
import random
import re
import subprocess

CALLS = (
    "openat,open,creat,write,pwrite64,writev,pwritev,pwritev2,ftruncate,truncate,fallocate,fsync,fdatasync,lseek,"
    "rename,renameat,renameat2,unlink,unlinkat,mkdir,mkdirat,rmdir,copy_file_range,sendfile,link,linkat,symlink"
)
SECTOR = 512
LINE = re.compile(r"^(\d+) +(\d+\.\d+) (.*)$")
CALL = re.compile(r"^(\w+)\((.*)\) += (-?\d+)")
HEX = re.compile(r"((?:\\x[0-9a-f]{2})+)")
STRING = re.compile(r'"((?:\\x[0-9a-f]{2})*)"(\.\.\.)?')


def plain(text):
    return bytes.fromhex(text.replace("\\x", ""))


def traced(trace, command):
    """The command, under strace, which writes to the file `trace`."""
    return ["strace", "-f", "--seccomp-bpf", "-qq", "-y", "-xx", "-ttt", "-s", "100000000", "-e", f"trace={CALLS}",
            "-e", "signal=none", "-o", trace, *command]


class File:
    """A file or folder, whatever its names are."""

    def __init__(self, data=b"", is_folder=False):
        self.is_folder = is_folder
        # Bytes of a file, or names of a folder, that no power cut takes.
        self.durable = {} if is_folder else data
        # What was done since, with the number of the step.
        self.later = []

    def applied(self, kept):
        """What is there if of the later changes those remain that `kept` has, as it has them."""
        if self.is_folder:
            names = dict(self.durable)
            for change in kept:
                for name, file in change:
                    names.pop(name, None) if file is None else names.update({name: file})
            return names
        data = bytearray(self.durable)
        for at, new in kept:
            if new is None:
                data = data[:at] + bytes(max(0, at - len(data)))
                continue
            if len(data) < at:
                data += bytes(at - len(data))
            data[at:at + len(new)] = new
        return bytes(data)

    def now(self):
        return self.applied([change for _, change in self.later])

    def sync(self, before):
        done = [change for step, change in self.later if step < before]
        self.durable = self.applied(done)
        self.later = [it for it in self.later if it[0] >= before]


class Disk:
    """The files below `root`, of which everything is durable that is in the folder `before`, a copy of it."""

    def __init__(self, before, root):
        self.root, self.at = root, {}
        self.top = self.read(before)
        self.step = 0

    def read(self, path):
        if os.path.isdir(path):
            folder = File(is_folder=True)
            for name in os.listdir(path):
                folder.durable[name] = self.read(f"{path}/{name}")
            return folder
        with open(path, "rb") as file:
            return File(file.read())

    def find(self, path):
        found = self.top
        for name in path[len(self.root):].split("/"):
            if name and found is not None:
                found = found.now().get(name) if found.is_folder else None
        return found

    def is_ours(self, path):
        return path is not None and (path == self.root or path.startswith(self.root + "/"))

    def play(self, trace):
        """Yields the time after each call that has changed something; this is then as it was at that time."""
        begun = {}
        with open(trace, errors="replace") as lines:
            for line in lines:
                found = LINE.match(line.rstrip("\n"))
                if not found:
                    continue
                pid, when, rest = found[1], float(found[2]), found[3]
                if rest.endswith("<unfinished ...>"):
                    begun[pid] = (rest[:-len("<unfinished ...>")].rstrip(), self.step)
                    # What a call does may be there before it returns; only a sync counts when it has.
                    continue
                since = self.step
                if rest.startswith("<... "):
                    head, since = begun.pop(pid)
                    rest = head + re.sub(r"^<\.\.\. \w+ resumed>", "", rest)
                call = CALL.match(rest)
                if not call or int(call[3]) < 0:
                    continue
                if self.do(call[1], call[2], int(call[3]), rest, since):
                    self.step += 1
                    yield when

    def change(self, file, change):
        file.later.append((self.step, change))
        return True

    def name(self, path, file):
        folder, name = os.path.split(path)
        return self.change(self.find(folder), [(name, file)])

    def do(self, call, words, result, whole, since):
        paths = [os.path.normpath(plain(text).decode("utf-8", "replace"))
                 for text, _ in STRING.findall(words)] if call in (
                     "openat", "open", "rename", "renameat", "renameat2", "unlink", "unlinkat", "mkdir", "mkdirat",
                     "rmdir", "creat", "truncate", "link", "linkat", "symlink") else []
        of = re.match(r"(\d+)<((?:\\x[0-9a-f]{2})+)>", words)
        path = plain(of[2]).decode("utf-8", "replace") if of else None
        if call in ("openat", "open"):
            return self.open(paths[0], words, whole, result)
        if paths:
            if not any(self.is_ours(path) for path in paths):
                return False
            if call.startswith("rename"):
                moved = self.find(paths[0])
                (old, was), (new, name) = os.path.split(paths[0]), os.path.split(paths[1])
                if old == new:
                    return self.change(self.find(old), [(name, moved), (was, None)])
                self.change(self.find(new), [(name, moved)])
                return self.change(self.find(old), [(was, None)])
            if call in ("unlink", "unlinkat", "rmdir"):
                return self.name(paths[0], None)
            if call in ("mkdir", "mkdirat"):
                return self.name(paths[0], File(is_folder=True))
            raise AssertionError(f"{call} is not known")
        if not self.is_ours(path):
            return False
        file = self.find(path)
        if file is None:
            # Removed, and still open.
            return False
        number = int(of[1])
        if call in ("fsync", "fdatasync"):
            file.sync(since)
            return True
        if call == "lseek":
            self.at[path, number] = result
            return False
        if call == "ftruncate":
            return self.change(file, (int(words.rsplit(",", 1)[1]), None))
        if call not in ("write", "pwrite64"):
            raise AssertionError(f"{call} of {path} is not known")
        text = STRING.search(words)
        assert text and not text[2], "a write was not told whole"
        data = plain(text[1])[:result]
        if call == "pwrite64":
            return self.change(file, (int(words.rsplit(",", 1)[1]), data))
        at = self.at.get((path, number), 0)
        self.at[path, number] = at + result
        return self.change(file, (at, data))

    def open(self, path, words, whole, number):
        if not self.is_ours(path):
            return False
        file = self.find(path)
        self.at[path, number] = len(file.now()) if file and "O_APPEND" in words and not file.is_folder else 0
        if file is None and "O_CREAT" in words:
            return self.name(path, File())
        return "O_TRUNC" in words and file is not None and self.change(file, (0, None))

    def cut(self, dice, to):
        """Writes to the folder `to` what a power cut leaves: of each file and folder that was not synced some of the
        changes since, in no order, the sectors of a write each by itself."""
        # So that all, nothing and what comes first are seen as well.
        share, is_prefix = dice.choice([0, 0.1, 0.5, 0.9, 1]), dice.random() < 0.3

        def keep(changes):
            kept = []
            for _, change in changes:
                if dice.random() >= share:
                    if is_prefix:
                        break
                    continue
                if isinstance(change, tuple) and change[1] and dice.random() < 0.2:
                    at, data = change
                    for from_ in range(0, len(data), SECTOR):
                        if dice.random() < 0.5:
                            kept.append((at + from_, data[from_:from_ + SECTOR]))
                    continue
                kept.append(change)
            return kept

        def write(file, path):
            left = file.applied(keep(file.later))
            if not file.is_folder:
                with open(path, "wb") as out:
                    out.write(left)
                return
            os.makedirs(path)
            for name, inner in left.items():
                write(inner, f"{path}/{name}")

        write(self.top, to)


def run(command):
    return subprocess.run(command, capture_output=True, text=True)


def dice(seed):
    return random.Random(seed)
