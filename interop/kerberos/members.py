"""Three NameNodes that ask for tickets, who know each other by tickets, certificates and a key: any of them serves, whoever
leads."""
import base64
import re
import subprocess
import sys
import threading
import time

FETCHER = "org.apache.hadoop.hdfs.tools.DelegationTokenFetcher"
IDS = ["nn1", "nn2", "nn3"]
NOBODY = "FILE:/nonexistent"
PROVIDER = "org.apache.hadoop.hdfs.server.namenode.ha.ConfiguredFailoverProxyProvider"
REFUSAL = "cairn.quorum.tls is not true"


def certificate(folder):
    """A certificate of localhost that vouches for itself, and its key."""
    pem, key = folder / "quorum.pem", folder / "quorum.key"
    words = ["req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=localhost", "-keyout", key]
    words += ["-out", pem, "-addext", "subjectAltName=DNS:localhost"]
    words += ["-addext", "basicConstraints=critical,CA:FALSE"]
    subprocess.run(["openssl", *words], check=True, capture_output=True)
    return pem, key


def keys(folder, free_port):
    """What makes three members of a NameNode. Keys without a value are not to be there."""
    pem, key = certificate(folder)
    secret = folder / "secret"
    secret.write_text("what all members of this quorum have")
    ports = {name: (free_port(), free_port(), free_port()) for name in IDS}
    made = {
        "fs.defaultFS": "hdfs://ns",
        "dfs.namenode.rpc-address": None,
        "dfs.namenode.http-address": None,
        "dfs.nameservices": "ns",
        "dfs.ha.namenodes.ns": ",".join(IDS),
        "dfs.client.failover.proxy.provider.ns": PROVIDER,
        "dfs.ha.fencing.methods": "shell(/bin/true)",
        "cairn.quorum.key-file": secret,
        "cairn.quorum.tls": "true",
        "cairn.https.certificate": pem,
        "cairn.https.key": key,
        "cairn.https.authority": pem,
        "dfs.namenode.redundancy.interval.seconds": "1",
    }
    for name, (rpc, http, quorum) in ports.items():
        made[f"dfs.namenode.rpc-address.ns.{name}"] = f"localhost:{rpc}"
        made[f"dfs.namenode.http-address.ns.{name}"] = f"localhost:{http}"
        made[f"cairn.quorum.address.ns.{name}"] = f"localhost:{quorum}"
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

    def member(self, name):
        words = [self.cairn, "--log", "info", "--conf", self.conf, "namenode", "--data", self.folder / name]
        return [*words, "-D", f"dfs.ha.namenode.id={name}"]

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
    tokens = fetch(cluster, ann, followers, name, check, told)
    use_http(cluster, caches, followers, name, check)
    survive(cluster, caches, tokens, name, check, told, (local, back))
    cancel(cluster, ann, tokens, name, check, told)
    refuse(cluster, name, check)


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
    big.write_bytes(local.read_bytes() * 20)
    result = cluster.dfs(ann, "-D", "dfs.blocksize=4m", "-put", str(big), "/user/ann/big")
    check(name("-put of many blocks"), result.returncode == 0, told(result))
    read = {}

    def slowly():
        env = {**cluster.kdc.env, "KRB5CCNAME": ann}
        words = [cluster.cairn, "fs", "--conf", cluster.conf, "cat", "/user/ann/big"]
        process = subprocess.Popen(words, env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        got = process.stdout.read(8 << 20)
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
