"""HTTP at each of three NameNodes: what a member tells of itself, and what any of them serves of the cluster."""

import json
import os
import subprocess
import time
import urllib.error
import urllib.parse
import urllib.request

BEAN = "/jmx?qry=Hadoop:service=NameNode,name="


class Stay(urllib.request.HTTPRedirectHandler):
    """Goes nowhere by itself."""

    def redirect_request(self, *_):
        return None


OPENER = urllib.request.build_opener(Stay)


def ask(address, path, method="GET", body=None):
    """Status, headers and body of an answer."""
    request = urllib.request.Request(f"http://{address}{path}", data=body, method=method)
    try:
        with OPENER.open(request, timeout=60) as answer:
            return answer.status, answer.headers, answer.read()
    except urllib.error.HTTPError as error:
        return error.code, error.headers, error.read()


def is_healthy(address):
    try:
        return ask(address, "/health")[0] == 200
    except OSError:
        return False


def expect(is_so, told):
    if not is_so:
        raise AssertionError(told)


def of_members(three):
    """Each tells what it is."""
    leader = three.leader()
    for name in three.running():
        at, leads = three.http[name], name == leader
        status, _, text = ask(at, "/isActive")
        wanted = (200, b"I am Active!") if leads else (405, b"I am not Active!")
        expect((status, text.strip()) == wanted, f"{name}: {status} {text}")
        state = "active" if leads else "standby"
        bean = json.loads(ask(at, BEAN + "NameNodeStatus")[2])["beans"][0]
        expect(bean["State"] == state, f"{name}: {bean}")
        bean = json.loads(ask(at, BEAN + "FSNamesystem")[2])["beans"][0]
        expect(bean["tag.HAState"] == state, f"{name}: {bean}")
        figures = ask(at, "/prom")[2].decode()
        for figure in ["quorum_term ", 'quorum_member_role{member="nn1"', "rpc_calls_running "]:
            expect(f"cairn_namenode_{figure}" in figures, f"{name} has no {figure}")
        expect(ask(at, "/health")[0] == 200, name)


def by_webhdfs(three, step):
    """A client that knows one address writes, lists, reads, renames and deletes, at each member."""
    for name in three.running():
        at, path = three.http[name], f"/webhdfs-{step}-{name}"

        def op(path, op, method="GET", **more):
            query = urllib.parse.urlencode({"op": op, "user.name": three.user, **more})
            return ask(at, f"/webhdfs/v1{path}?{query}", method)

        content = os.urandom(100_000)
        status, headers, told = op(path, "CREATE", "PUT", overwrite="true")
        expect(status == 307, f"{name}: {status} {told}")
        place = headers["Location"].removeprefix("http://")
        status, _, told = ask(place.split("/")[0], place[place.index("/"):], "PUT", content)
        expect(status == 201, f"{name}: {status} {told}")
        status, headers, told = op(path, "OPEN")
        expect(status == 307, f"{name}: {status} {told}")
        place = headers["Location"].removeprefix("http://")
        expect(ask(place.split("/")[0], place[place.index("/"):])[2] == content, f"{path} is not what was written")
        names = [entry["pathSuffix"] for entry in json.loads(op("/", "LISTSTATUS")[2])["FileStatuses"]["FileStatus"]]
        expect(path[1:] in names, f"{name} lists {names}")
        expect(json.loads(op(path, "RENAME", "PUT", destination=path + "-2")[2])["boolean"], name)
        expect(json.loads(op(path + "-2", "DELETE", "DELETE")[2])["boolean"], name)


def java(three, *words):
    command = ["java", "-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1"]
    done = subprocess.run([*command, "-cp", three.classes, *words], capture_output=True, text=True)
    expect(done.returncode == 0, f"{words}: {done.stdout}{done.stderr}")
    return done.stdout


def by_commands(three, name):
    """Commands of Hadoop and of Cairn that know one member's address."""
    http, rpc = three.http[name], three.rpc[name]
    tools = "org.apache.hadoop.hdfs.tools"
    one = ["-D", f"dfs.namenode.http-address={http}", "-fs", f"hdfs://{rpc}"]
    told = java(three, f"{tools}.DFSck", *one, "/")
    expect("HEALTHY" in told, told)
    image = f"{three.folder}/image-{name}"
    os.makedirs(image, exist_ok=True)
    java(three, f"{tools}.DFSAdmin", *one, "-fetchImage", image)
    expect(any(os.path.getsize(f"{image}/{file}") for file in os.listdir(image)), "there is no image")
    local = f"{three.folder}/by-{name}"
    with open(local, "wb") as out:
        out.write(os.urandom(50_000))
    there, web = f"/by-{name}", f"webhdfs://{http}"
    java(three, "org.apache.hadoop.fs.FsShell", "-put", "-f", local, web + there)
    back = f"{local}-back"
    java(three, "org.apache.hadoop.fs.FsShell", "-get", "-f", web + there, back)
    with open(local, "rb") as one_file, open(back, "rb") as other:
        expect(one_file.read() == other.read(), f"{there} is not what was written")
    expect("HEALTHY" in three.run("--fs", f"hdfs://{rpc}", "fsck", "/"), "cairn fsck")


def all_of_it(three, until):
    """Before whoever leads is killed, while nobody leads, and afterwards."""
    three.until_healthy()
    of_members(three)
    by_webhdfs(three, "before")
    term, leader = three.leads()
    follower = next(name for name in three.running() if name != leader)
    by_commands(three, follower)
    three.kill(leader)
    began = time.monotonic()
    path = f"/webhdfs/v1/between?op=MKDIRS&user.name={three.user}"
    status, _, told = ask(three.http[follower], path, "PUT")
    expect(status == 200 and b"true" in told, f"{status} {told}")
    print(f"        a directory was made by WebHDFS {time.monotonic() - began:.2f} s after the leader was killed", flush=True)
    status, _, told = ask(three.http[follower], f"/fsck?ugi={three.user}&path=/between")
    expect(status == 200 and b"HEALTHY" in told, f"{status} {told}")
    until("another one leads", lambda: three.leads(after=term))
    of_members(three)
    by_webhdfs(three, "after")
    three.start(leader)
    until("it follows", lambda: is_healthy(three.http[leader]))
    by_webhdfs(three, "again")
    by_commands(three, leader)
