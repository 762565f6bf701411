"""Three NameNodes on hosts of three names that ask for tickets, who know each other by tickets, certificates and a key: any of
them serves, whoever leads. Cairn's DataNodes and Hadoop's keep what is written."""
import base64
import json
import os
import pathlib
import re
import subprocess
import sys
import threading
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "bench"))
import programs  # noqa: E402

FETCHER = "org.apache.hadoop.hdfs.tools.DelegationTokenFetcher"
IDS = ["nn1", "nn2", "nn3"]
# The host of each, and its address.
HOSTS = {"nn1": ("nn1.cairn.test", "127.0.0.11"), "nn2": ("nn2.cairn.test", "127.0.0.12"), "nn3": ("nn3.cairn.test", "127.0.0.13")}
NOBODY = "FILE:/nonexistent"
HA = "org.apache.hadoop.hdfs.server.namenode.ha"
PROVIDER, OBSERVER = f"{HA}.ConfiguredFailoverProxyProvider", f"{HA}.ObserverReadProxyProvider"
# DataNodes of Hadoop's beside Cairn's.
HADOOP_DATANODES = 2
# A job: it takes words apart, by MapReduce's local runner. It has no reducers: with Kerberos these want Hadoop's native library.
JOB = "org.apache.hadoop.examples.WordCount"
REFUSAL = "cairn.quorum.tls is not true"


def begin_with_mounts():
    """Begins this program again where mounts are its own."""
    may = [] if os.getuid() == 0 else ["--map-root-user"]
    os.environ["INTEROP_HAS_MOUNTS"] = "1"
    os.execvp("unshare", ["unshare", *may, "--mount", sys.executable, *sys.argv])


def have_names(folder):
    """Has the names of hosts lead to loopback addresses, for this program alone: a table of hosts with them is put over the
    machine's. Mounts are to be this program's own."""
    table = folder / "hosts"
    own = "".join(f"{address} {host}\n" for host, address in HOSTS.values())
    table.write_text(pathlib.Path("/etc/hosts").read_text() + own)
    subprocess.run(["mount", "--bind", table, "/etc/hosts"], check=True)


def certificate(folder, name):
    """A certificate of a member's host that vouches for itself, and its key."""
    host, _ = HOSTS[name]
    pem, key = folder / f"{name}.pem", folder / f"{name}.key"
    words = ["req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", f"/CN={host}", "-keyout", key]
    words += ["-out", pem, "-addext", f"subjectAltName=DNS:{host}"]
    words += ["-addext", "basicConstraints=critical,CA:FALSE"]
    subprocess.run(["openssl", *words], check=True, capture_output=True)
    return pem


def keys(folder, kdc, free_port):
    """What makes three members of a NameNode. Keys without a value are not to be there."""
    trusted = folder / "members.pem"
    trusted.write_text("".join(certificate(folder, name).read_text() for name in IDS))
    for name, (host, _) in HOSTS.items():
        kdc.keytab(f"nn/{host}", folder / f"{name}.keytab")
        kdc.keytab(f"HTTP/{host}", folder / f"{name}.keytab")
    secret = folder / "secret"
    secret.write_text("what all members of this quorum have")
    made = {
        "fs.defaultFS": "hdfs://ns",
        "dfs.namenode.rpc-address": None,
        "dfs.namenode.http-address": None,
        "dfs.namenode.keytab.file": None,
        "dfs.nameservices": "ns",
        "dfs.ha.namenodes.ns": ",".join(IDS),
        "dfs.client.failover.proxy.provider.ns": PROVIDER,
        "dfs.ha.fencing.methods": "shell(/bin/true)",
        "cairn.quorum.key-file": secret,
        "cairn.quorum.tls": "true",
        "cairn.https.authority": trusted,
        "dfs.namenode.redundancy.interval.seconds": "1",
        # For Hadoop's DataNodes, whose pages are nobody's business here.
        "ignore.secure.ports.for.testing": "true",
        # For jobs, which ask for the name of who renews their tokens.
        "yarn.resourcemanager.principal": "ann",
    }
    for name, (host, _) in HOSTS.items():
        made[f"dfs.namenode.rpc-address.ns.{name}"] = f"{host}:{free_port()}"
        made[f"dfs.namenode.http-address.ns.{name}"] = f"{host}:{free_port()}"
        made[f"cairn.quorum.address.ns.{name}"] = f"{host}:{free_port()}"
    return made


class Three:
    """The NameNodes of a cluster, three of them."""

    def begin(self):
        found = subprocess.run([*self.member("nn1"), "--found-quorum"], env=self.kdc.env, capture_output=True, text=True)
        if found.returncode != 0:
            sys.exit(f"no quorum: {found.stdout}{found.stderr}")
        for name in IDS:
            self.start_member(name)
        self.until("somebody leads", self.leader)
        self.start_datanodes()
        self.start_hadoop_datanodes()

    def member(self, name):
        words = [self.cairn, "--log", "info", "--conf", self.conf, "namenode", "--data", self.folder / name]
        own = self.folder.parent
        keys = {
            "dfs.ha.namenode.id": name,
            "dfs.namenode.keytab.file": own / f"{name}.keytab",
            "dfs.web.authentication.kerberos.keytab": own / f"{name}.keytab",
            "cairn.https.certificate": own / f"{name}.pem",
            "cairn.https.key": own / f"{name}.key",
            "cairn.namenode.audit-log": self.folder / f"{name}.audit",
            "dfs.namenode.audit.log.token.tracking.id": "true",
        }
        return [*words, *(word for key, value in keys.items() for word in ["-D", f"{key}={value}"])]

    def start_hadoop_datanodes(self):
        names = ["dfs.datanode.address", "dfs.datanode.ipc.address", "dfs.datanode.http.address"]
        for number in range(HADOOP_DATANODES):
            folder = self.folder / f"hadoop-datanode{number}"
            keys = {"dfs.datanode.data.dir": folder, **{name: "127.0.0.1:0" for name in names}}
            words = [word for key, value in keys.items() for word in ["-D", f"{key}={value}"]]
            self.start_java(folder.name, "org.apache.hadoop.hdfs.server.datanode.DataNode", *words)

    def start_member(self, name):
        log = open(self.folder / f"{name}.log", "a")
        process = subprocess.Popen(self.member(name), env=self.kdc.env, stdout=log, stderr=log)
        self.processes.append((name, process))

    def until(self, what, is_so, seconds=90):
        end = time.monotonic() + seconds
        while not (found := is_so()):
            if time.monotonic() > end:
                raise AssertionError(f"it is not so after {seconds} s: {what}")
            time.sleep(0.05)
        return found

    def voters(self):
        return sum((self.folder / f"{name}.log").read_text(errors="replace").count("Promote") for name in IDS)

    def leader(self):
        """Who has said last that it leads, of those that live."""
        terms = {}
        for name in [name for name, _ in self.processes if name in IDS]:
            text = re.sub("\x1b\\[[0-9;]*m", "", (self.folder / f"{name}.log").read_text(errors="replace"))
            told = re.findall(r"this NameNode (leads|does not lead any more).*?term=(\d+)", text)
            if told and told[-1][0] == "leads":
                terms[int(told[-1][1])] = name
        return terms[max(terms)] if terms else None

    def at(self, name, kind="rpc"):
        return self.keys[f"dfs.namenode.{kind}-address.ns.{name}"]

    def only(self, name):
        """Has Hadoop's commands know one member alone."""
        return ["-D", f"fs.defaultFS=hdfs://{self.at(name)}"]


def use(cluster, caches, stranger, check, told):
    """What clients, DataNodes and members do, before and after the leader is killed."""
    name = lambda what: f"members: {what}"
    hdfs, ann = caches["nn/localhost"], caches["ann"]
    good = lambda what, result, also=lambda result: True: check(name(what), result.returncode == 0 and also(result), told(result))
    cluster.until("all vote", lambda: cluster.voters() >= 2)
    good("cairn admin members", cluster.own(hdfs, "admin", "members"))
    leader = cluster.leader()
    followers = [one for one in IDS if one != leader]
    check(name("DataNodes have registered with their principal"), cluster.wait_for_datanodes(hdfs))
    states = cluster.hadoop(hdfs, "org.apache.hadoop.hdfs.tools.DFSHAAdmin", "-getAllServiceState")
    good("haadmin -getAllServiceState", states, lambda r: r.stdout.count("active") == 1 and r.stdout.count("standby") == 2)
    good("-mkdir", cluster.dfs(hdfs, "-mkdir", "-p", "/user/ann"))
    good("-chown", cluster.dfs(hdfs, "-chown", "ann", "/user/ann"))
    local, back = cluster.folder / "local", cluster.folder / "back"
    local.write_bytes(bytes(range(256)) * (12 << 10))
    good("-put", cluster.dfs(ann, "-put", str(local), "/user/ann/file"))
    everywhere(cluster, ann, hdfs, local, name, check, told)

    def same(what, result):
        is_same = back.exists() and back.read_bytes() == local.read_bytes()
        check(name(what), result.returncode == 0 and is_same, told(result))
        back.unlink(missing_ok=True)

    same("-get", cluster.dfs(ann, "-get", "/user/ann/file", str(back)))
    for one in followers:
        path = f"/user/ann/by-{one}"
        good(f"-put by the address of {one}, which follows", cluster.dfs(ann, *cluster.only(one), "-put", str(local), path))
        same(f"-get by the address of {one}", cluster.dfs(ann, *cluster.only(one), "-get", path, str(back)))
        result = cluster.dfs(ann, *cluster.only(one), "-mkdir", "/mine")
        check(name("others' rights count there"), "Permission denied: user=ann" in result.stderr, told(result))
        result = cluster.dfs(ann, *cluster.only(one), "-ls", "/user", HADOOP_PROXY_USER="bob")
        good("ann may act for bob there", result)
        result = cluster.dfs(ann, *cluster.only(one), "-ls", "/user", HADOOP_PROXY_USER="hdfs")
        check(name("and for nobody else"), "not allowed to impersonate" in result.stderr, told(result))
    one = followers[0]
    result = cluster.dfs(NOBODY, *cluster.only(one), "-ls", "/")
    check(name("without a ticket nobody comes in"), "Client cannot authenticate via:[TOKEN, KERBEROS]" in result.stderr, told(result))
    result = cluster.dfs(NOBODY, *cluster.only(one), "-D", "hadoop.security.authentication=simple", "-ls", "/", HADOOP_USER_NAME="hdfs")
    check(name("nor by word"), "SIMPLE authentication is not enabled" in result.stderr, told(result))
    result = cluster.dfs(stranger, *cluster.only(one), "-ls", "/")
    check(name("nor with a ticket of another realm"), result.returncode != 0, told(result))
    read_followers(cluster, caches, local, back, followers, name, check, told)
    tokens = fetch(cluster, ann, followers, name, check, told)
    run_job(cluster, hdfs, tokens, name, check, told)
    look_at_audit(cluster, tokens, name, check, told)
    use_http(cluster, caches, followers, name, check)
    survive(cluster, caches, tokens, name, check, told, (local, back))
    cancel(cluster, ann, tokens, name, check, told)
    refuse(cluster, name, check)


def everywhere(cluster, ann, hdfs, local, name, check, told):
    """DataNodes of Cairn and of Hadoop take part in a chain of writers, and copy blocks and units to each other."""
    all_of_them = str(cluster.ALL_DATANODES)
    copied, later = "/user/ann/everywhere", "/user/ann/everywhere-later"
    result = cluster.dfs(ann, "-D", f"dfs.replication={all_of_them}", "-put", str(local), copied)
    check(name("-put through every DataNode, Hadoop's too"), result.returncode == 0, told(result))
    result = cluster.dfs(ann, "-D", "dfs.replication=1", "-put", str(local), later)
    result = cluster.dfs(ann, "-setrep", all_of_them, later)
    check(name("-setrep, so that they copy it to each other"), result.returncode == 0, told(result))
    for path in [copied, later]:
        fsck = lambda: cluster.hadoop(hdfs, "org.apache.hadoop.hdfs.tools.DFSck", path, "-files", "-blocks", "-locations")
        for _ in range(30):
            found = fsck()
            if f"Live_repl={all_of_them}" in found.stdout:
                break
            time.sleep(1)
        check(name(f"{path} is on every DataNode"), f"Live_repl={all_of_them}" in found.stdout, told(found))
    admin, policy, folder = "org.apache.hadoop.hdfs.tools.ECAdmin", "RS-3-2-1024k", "/user/ann/striped"
    result = cluster.hadoop(hdfs, admin, "-enablePolicy", "-policy", policy)
    check(name(f"{policy} is enabled"), result.returncode == 0, told(result))
    cluster.dfs(ann, "-mkdir", folder)
    result = cluster.hadoop(ann, admin, "-setPolicy", "-path", folder, "-policy", policy)
    check(name(f"{policy} is set"), result.returncode == 0, told(result))
    result = cluster.dfs(ann, "-put", str(local), f"{folder}/by-hadoop")
    check(name("-put, striped over DataNodes of both"), result.returncode == 0, told(result))
    result = cluster.own(ann, "fs", "put", local, f"{folder}/by-cairn")
    check(name("cairn fs put, likewise"), result.returncode == 0, told(result))
    for path in [copied, later, f"{folder}/by-hadoop", f"{folder}/by-cairn"]:
        for who, run in [("Hadoop", lambda to: cluster.dfs(ann, "-get", path, str(to))), ("Cairn", lambda to: cluster.own(ann, "fs", "get", path, to))]:
            back = cluster.folder / "back-everywhere"
            back.unlink(missing_ok=True)
            result = run(back)
            same = result.returncode == 0 and back.read_bytes() == local.read_bytes()
            check(name(f"{who}'s client reads {path}"), same, told(result))


def reads(cluster, hdfs):
    """How many reads each member has answered by itself while it followed."""
    result = cluster.own(hdfs, "--json", "admin", "members")
    lines = [json.loads(line) for line in result.stdout.splitlines()]
    return sum(one.get("reads") or 0 for one in lines), result


def read_followers(cluster, caches, local, back, followers, name, check, told):
    """Clients that say what they have seen read at members that follow, with tickets; and Cairn's client by one address."""
    hdfs, ann = caches["nn/localhost"], caches["ann"]
    hadoop = ["-D", f"dfs.client.failover.proxy.provider.ns={OBSERVER}"]
    own = ["-D", "cairn.client.read-followers=true"]
    for who, look, cat in [
        ("Hadoop's", lambda: cluster.dfs(ann, *hadoop, "-ls", "/user/ann"), lambda: cluster.dfs(ann, *hadoop, "-get", "/user/ann/file", str(back))),
        ("Cairn's", lambda: cluster.own(ann, "fs", *own, "ls", "/user/ann"), lambda: cluster.own(ann, "fs", *own, "get", "/user/ann/file", back)),
    ]:
        before, _ = reads(cluster, hdfs)
        result = look()
        check(name(f"{who} client lists by who follows"), result.returncode == 0 and "/user/ann/file" in result.stdout, told(result))
        after, members = reads(cluster, hdfs)
        check(name(f"{who} client: a member that follows has answered"), after > before, (before, after, told(members)))
        back.unlink(missing_ok=True)
        result = cat()
        same = result.returncode == 0 and back.read_bytes() == local.read_bytes()
        check(name(f"{who} client reads with block tokens so"), same, told(result))
    for one in followers:
        at, path = ["--fs", f"hdfs://{cluster.at(one)}"], f"/user/ann/cairn-by-{one}"
        result = cluster.own(ann, "fs", "put", local, path, *at)
        check(name(f"cairn fs put by the address of {one}, which follows"), result.returncode == 0, told(result))
        back.unlink(missing_ok=True)
        result = cluster.own(ann, "fs", "get", path, back, *at)
        same = result.returncode == 0 and back.read_bytes() == local.read_bytes()
        check(name(f"cairn fs get by the address of {one}"), same, told(result))
        result = cluster.own(NOBODY, "fs", "ls", "/", *at)
        check(name(f"cairn fs without a ticket at {one}"), result.returncode != 0 and "There is no Kerberos ticket" in result.stderr, told(result))
    back.unlink(missing_ok=True)


def run_job(cluster, hdfs, tokens, name, check, told):
    """A job reads and writes with a token of the nameservice, and no ticket anywhere."""
    words = cluster.folder / "words"
    words.write_text("one two two three three three\n" * 20_000)
    check(name("a job: its input"), cluster.dfs(hdfs, "-put", str(words), "/user/ann/words").returncode == 0)
    _, env, _ = tokens["ns"]
    # Its own files are on this machine's disk: whoever has no ticket is the machine's user there.
    keys = {"mapreduce.framework.name": "local", "fs.defaultFS": "file:///", "hadoop.tmp.dir": cluster.folder / "job", "mapreduce.job.reduces": 0}
    options = [word for key, value in keys.items() for word in ["-D", f"{key}={value}"]]
    lib = programs.LIB
    result = cluster.hadoop(NOBODY, JOB, *options, "hdfs://ns/user/ann/words", "hdfs://ns/user/ann/counted", lib=lib, **env)
    check(name("a job of MapReduce with a token and no ticket"), result.returncode == 0, told(result))
    result = cluster.dfs(NOBODY, "-cat", "/user/ann/counted/part-m-*", **env)
    counts = [result.stdout.count(f"{word}\t1\n") for word in ["one", "two", "three"]]
    check(name("a job: what it has written"), counts == [20_000, 40_000, 60_000], (counts, result.stderr[:1000]))
    result = cluster.hadoop(NOBODY, JOB, *options, "hdfs://ns/user/ann/words", "hdfs://ns/user/ann/not-counted", lib=lib)
    check(name("a job without either"), result.returncode != 0 and "annot authenticate via" in result.stderr, told(result))


def look_at_audit(cluster, tokens, name, check, told):
    """The leader's audit log says how a caller was known, also by a call that was handed on, and by which token."""
    lines = (cluster.folder / f"{cluster.leader()}.audit").read_text()
    for kind, (_, _, file) in tokens.items():
        shown = cluster.own(NOBODY, "--json", "token", "show", file)
        found = re.search(r'"tracking_id":"([0-9a-f]{32})"', shown.stdout)
        check(name(f"cairn token show says how audit logs call it, {kind}"), found, told(shown))
        line = rf"ugi=ann \(auth:TOKEN\)\t.*cmd=create\tsrc=/user/ann/by-token-{kind}\S*\t.*\ttrackingId={found and found[1]}\ttoken=\d+\tproto="
        check(name(f"the leader's audit log names the token, {kind}"), re.search(line, lines), lines[-3000:])
    line = r"ugi=ann \(auth:KERBEROS\)\t.*cmd=create\tsrc=/user/ann/by-nn\S*\t.*\ttrackingId=null\t"
    check(name("and who came by a ticket, and through another member"), re.search(line, lines), lines[-3000:])


def fetch(cluster, ann, followers, name, check, told):
    """Tokens of the nameservice, and of a member that follows, each used alone."""
    tokens = {}
    for kind, only in [("ns", []), ("follower", cluster.only(followers[0]))]:
        file = cluster.folder / f"token-{kind}"
        result = cluster.hadoop(ann, FETCHER, *only, "--renewer", "ann", str(file))
        check(name(f"hdfs fetchdt, {kind}"), result.returncode == 0 and file.exists(), told(result))
        tokens[kind] = (only, {"HADOOP_TOKEN_FILE_LOCATION": str(file)}, file)
        use_token(cluster, tokens[kind], f"by-token-{kind}", name, check, told)
    return tokens


def use_token(cluster, token, path, name, check, told):
    """Copies a file, with a token and no ticket, and looks whose the copy is."""
    only, env, _ = token
    result = cluster.dfs(NOBODY, *only, "-cp", "-f", "/user/ann/file", f"/user/ann/{path}", **env)
    check(name(f"-cp with a token and no ticket, {path}"), result.returncode == 0, told(result))
    result = cluster.dfs(NOBODY, *only, "-stat", "%u %b", f"/user/ann/{path}", **env)
    check(name("it is the owner's"), result.stdout.strip() == f"ann {3 << 20}", told(result))


def changed(token):
    """The same token with another password: its identifier and its password begin with their lengths."""
    raw = bytearray(base64.urlsafe_b64decode(token + b"=" * (-len(token) % 4)))
    assert raw[0] < 112, "a length of one byte"
    raw[1 + raw[0] + 1] ^= 1
    return base64.urlsafe_b64encode(raw).rstrip(b"=").decode()


def use_http(cluster, caches, followers, name, check):
    ticket, ann = ["--negotiate", "-u", ":"], caches["ann"]
    one = followers[0]
    base = f"http://{cluster.at(one, 'http')}"
    code, *_ = cluster.curl(NOBODY, f"{base}/webhdfs/v1/?op=LISTSTATUS&user.name=hdfs")
    check(name("by HTTP, a name is no ticket at who follows"), code == 401, code)
    code, body, _ = cluster.curl(ann, *ticket, f"{base}/jmx?qry=Hadoop:service=NameNode,name=NameNodeStatus")
    check(name("by HTTP, /jmx of who follows"), code == 200 and b'"SecurityEnabled":true' in body and b"standby" in body, (code, body))
    code, body, _ = cluster.curl(ann, *ticket, f"{base}/")
    check(name("by HTTP, a page of the cluster at who follows"), code == 200 and b"Overview" in body, (code, body[:300]))
    code, body, _ = cluster.curl(ann, *ticket, f"{base}/webhdfs/v1/mine?op=MKDIRS", "-X", "PUT")
    check(name("by HTTP, others' rights count"), code == 403 and b"user=ann" in body, (code, body))
    code, body, _ = cluster.curl(ann, *ticket, f"{base}/webhdfs/v1/?op=GETDELEGATIONTOKEN&renewer=ann")
    found = re.search(rb'"urlString":"([^"]+)"', body)
    check(name("by HTTP, a token of who follows"), code == 200 and found, (code, body))
    for other in IDS if found else []:
        url = f"http://{cluster.at(other, 'http')}/webhdfs/v1/user/ann?op=LISTSTATUS&delegation={found[1].decode()}"
        code, body, _ = cluster.curl(NOBODY, url)
        check(name(f"by HTTP, the token at {other}"), code == 200 and b'"file"' in body, (code, body))
        code, body, _ = cluster.curl(NOBODY, url.replace(found[1].decode(), changed(found[1])))
        check(name("by HTTP, a token that was changed"), 400 <= code < 500, (code, body))
    code, body, _ = cluster.curl(ann, *ticket, "-L", f"{base}/webhdfs/v1/user/ann/file?op=OPEN")
    check(name("by HTTP, OPEN through a DataNode"), code == 200 and len(body) == 3 << 20, (code, len(body)))


def survive(cluster, caches, tokens, name, check, told, files):
    """The leader is killed while somebody reads."""
    ann, (local, _) = caches["ann"], files
    big = cluster.folder / "big"
    # Enough blocks; a build for developers takes its time to encrypt them.
    big.write_bytes(local.read_bytes() * 5)
    result = cluster.dfs(ann, "-D", "dfs.blocksize=1m", "-put", str(big), "/user/ann/big")
    check(name("-put of many blocks"), result.returncode == 0, told(result))
    read = {}

    def slowly():
        env = {**cluster.kdc.env, "KRB5CCNAME": ann}
        words = [cluster.cairn, "fs", "--conf", cluster.conf, "cat", "/user/ann/big"]
        process = subprocess.Popen(words, env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        got = process.stdout.read(2 << 20)
        read["begun"] = True
        cluster.until("the leader is dead", lambda: read.get("killed"), 60)
        rest = process.stdout.read()
        read["same"] = process.wait() == 0 and got + rest == big.read_bytes()
        read["told"] = (process.returncode, len(got) + len(rest), process.stderr.read()[-1000:])

    reader = threading.Thread(target=slowly)
    reader.start()
    cluster.until("the reader reads", lambda: read.get("begun"))
    leader = cluster.leader()
    cluster.kill(leader)
    read["killed"] = True
    begun = time.monotonic()
    result = cluster.dfs(ann, "-put", str(local), "/user/ann/after")
    check(name("-put right after the leader was killed"), result.returncode == 0, told(result))
    print(f"        it took {time.monotonic() - begun:.1f} s, with the start of Java", flush=True)
    next_leader = cluster.until("another one leads", lambda: cluster.leader())
    check(name("another one leads"), next_leader != leader, next_leader)
    reader.join()
    check(name("a reader with block tokens goes on"), read.get("same"), read.get("told"))
    result = cluster.dfs(ann, "-cat", "/user/ann/after")
    check(name("tokens of the new leader are good at DataNodes"), result.returncode == 0, told(result))
    for kind, token in tokens.items():
        if kind == "ns" or f"{cluster.at(leader)}" not in " ".join(token[0]):
            use_token(cluster, token, f"after-{kind}", name, check, told)
    cluster.start_member(leader)
    check(name("DataNodes go on"), cluster.wait_for_datanodes(caches["nn/localhost"]))
    result = cluster.dfs(ann, *cluster.only(leader), "-put", str(local), "/user/ann/rejoined")
    check(name("who was killed serves again, and follows"), result.returncode == 0, told(result))


def cancel(cluster, ann, tokens, name, check, told):
    for kind, (only, env, file) in tokens.items():
        result = cluster.hadoop(ann, FETCHER, "--renew", str(file))
        check(name(f"hdfs fetchdt --renew, {kind}"), result.returncode == 0, told(result))
        result = cluster.hadoop(ann, FETCHER, "--cancel", str(file))
        check(name(f"hdfs fetchdt --cancel, {kind}"), result.returncode == 0, told(result))
        result = cluster.dfs(NOBODY, *only, "-ls", "/", **env)
        check(name(f"a token that was cancelled, {kind}"), result.returncode != 0 and "can't be found in cache" in result.stderr, told(result))


def refuse(cluster, name, check):
    """A member that would send keys in clear does not start."""
    words = [*cluster.member("nn1"), "-D", "cairn.quorum.tls=false"]
    result = subprocess.run(words, env=cluster.kdc.env, capture_output=True, text=True, timeout=60)
    check(name("none starts whose port is open"), result.returncode != 0 and REFUSAL in result.stderr, result.stderr)
