package cairn.interop;

import static cairn.interop.Runner.check;
import static cairn.interop.Runner.equal;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.NullNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import com.fasterxml.jackson.databind.node.TextNode;
import java.io.ByteArrayOutputStream;
import java.io.File;
import java.io.IOException;
import java.io.InputStream;
import java.io.OutputStream;
import java.net.HttpURLConnection;
import java.net.Socket;
import java.net.URI;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Comparator;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.TreeMap;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FSDataInputStream;
import org.apache.hadoop.fs.FSDataOutputStream;
import org.apache.hadoop.fs.FileStatus;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.hdfs.DistributedFileSystem;

/**
 * WebHDFS: requests and answers recorded from Hadoop ({@code cases/webhdfs}), Hadoop's client, clients in Python, and
 * with Cairn all of it again by its gateway.
 */
final class WebHdfsTests {
  private static final ObjectMapper JSON = new ObjectMapper();
  private static final String POLICY = "RS-3-2-1024k";
  private static final int NODES = 5;

  private WebHdfsTests() {}

  static void run(Main.Context x) throws Exception {
    if (!x.runner().wantsGroup("webhdfs/")) {
      return;
    }
    for (String kind : List.of("namenode", "gateway")) {
      if (!x.runner().wantsGroup("webhdfs/" + kind + "/") || kind.equals("gateway") && x.target().isHadoop()) {
        continue;
      }
      Map<String, String> keys = keys(x);
      keys.put("dfs.blocksize", "" + (1 << 20));
      File data = new File(x.work(), "webhdfs-" + kind);
      try (ClusterProcess cluster = new ClusterProcess(x.target(), data, NODES, 1, keys);
          Door door = kind.equals("gateway") ? new Door(x, cluster) : null) {
        DistributedFileSystem fs = cluster.fs();
        fs.enableErasureCodingPolicy(POLICY);
        String address = door == null ? cluster.httpAddress() : door.address;
        transcript(x, kind, address);
        files(x, kind, cluster, address);
        names(x, kind, cluster, address);
        if (x.full()) {
          python(x, kind, address);
        }
      }
    }
  }

  /** Keys of clusters whose DataNodes can be found by HTTP. */
  static Map<String, String> keys(Main.Context x) {
    Map<String, String> keys = x.keys();
    keys.put("dfs.namenode.fs-limits.min-block-size", "512");
    if (x.target().isHadoop()) {
      keys.put("interop.datanode.hostname", "localhost");
    }
    keys.put("hadoop.proxyuser.carol.users", "ann");
    keys.put("hadoop.proxyuser.carol.hosts", "*");
    return keys;
  }

  /** A gateway of Cairn before a cluster. */
  static final class Door implements AutoCloseable {
    private final Process process;
    final String address;

    Door(Main.Context x, ClusterProcess cluster) throws Exception {
      int port = Ports.free();
      File log = new File(cluster.log().getPath() + ".gateway");
      List<String> words =
          List.of(
              "gateway", "--listen", "127.0.0.1:" + port, "--fs", cluster.uri(), "-D", "dfs.blocksize=" + (1 << 20));
      process = x.target().launch(words, log);
      JsonNode line = JSON.readTree(process.inputReader(StandardCharsets.UTF_8).readLine());
      address = line.path("http").asText().replace("http://", "");
    }

    @Override
    public void close() throws Exception {
      process.destroy();
      process.waitFor();
    }
  }

  /** An answer as it came, redirections followed. */
  private record Answer(int status, String type, byte[] body) {
    String text() {
      return new String(body, StandardCharsets.UTF_8);
    }
  }

  private static Answer ask(String method, String url, byte[] body, int redirections) throws IOException {
    HttpURLConnection c = (HttpURLConnection) URI.create(url).toURL().openConnection();
    c.setInstanceFollowRedirects(false);
    c.setConnectTimeout(10_000);
    c.setReadTimeout(60_000);
    c.setRequestMethod(method);
    // A body goes where the last redirection leads, as clients of WebHDFS do it.
    boolean sends = !method.equals("GET") && !method.equals("DELETE");
    boolean redirects = url.matches(".*[?&]op=(CREATE|APPEND)(&.*)?") && redirections == 0;
    if (sends) {
      byte[] sent = redirects ? new byte[0] : body;
      c.setDoOutput(true);
      c.setRequestProperty("Content-Type", "application/octet-stream");
      c.setFixedLengthStreamingMode(sent.length);
      try (OutputStream out = c.getOutputStream()) {
        out.write(sent);
      }
    }
    int status = c.getResponseCode();
    if (status == 307 && redirections < 3) {
      String location = c.getHeaderField("Location");
      c.disconnect();
      return ask(method, location, body, redirections + 1);
    }
    ByteArrayOutputStream read = new ByteArrayOutputStream();
    try (InputStream in = status >= 400 ? c.getErrorStream() : c.getInputStream()) {
      if (in != null) {
        in.transferTo(read);
      }
    }
    String type = c.getContentType() == null ? "" : c.getContentType().replaceAll(";.*", "");
    return new Answer(status, type, read.toByteArray());
  }

  /** Plays {@code cases/webhdfs/requests.txt}; the answers are those of Hadoop. */
  private static void transcript(Main.Context x, String kind, String address) throws Exception {
    File folder = new File(x.home(), "hadoop/cases/webhdfs");
    File answers = new File(folder, "answers.txt");
    Map<String, String> wanted = new HashMap<>();
    if (!x.record()) {
      String name = null;
      for (String line : Files.readAllLines(answers.toPath())) {
        if (name == null) {
          name = line;
        } else {
          wanted.put(name, line);
          name = null;
        }
      }
    }
    List<String> recorded = new ArrayList<>();
    Map<String, Integer> seen = new HashMap<>();
    for (String line : Files.readAllLines(new File(folder, "requests.txt").toPath())) {
      if (line.isBlank() || line.startsWith("#")) {
        continue;
      }
      String[] words = line.split(" ", 3);
      String url = "http://" + address + "/webhdfs/v1" + words[1];
      byte[] body = (words.length > 2 ? words[2] : "").getBytes(StandardCharsets.UTF_8);
      Answer answer = ask(words[0], url, body, 0);
      String shown = answer.status() + " " + normal(answer);
      // The same request may come again.
      int count = seen.merge(line, 1, Integer::sum);
      String name = count == 1 ? line : line + " #" + count;
      recorded.add(name);
      recorded.add(shown);
      if (!x.record()) {
        x.runner()
            .test(
                "webhdfs/" + kind + "/" + name,
                () -> equal(alike(kind, wanted.get(name)), alike(kind, shown), "the answer"));
      }
    }
    if (x.record() && kind.equals("namenode")) {
      folder.mkdirs();
      Files.write(answers.toPath(), recorded);
    }
  }

  /** A gateway asks for a file itself, and so says in other words that there is none. */
  private static String alike(String kind, String answer) {
    boolean isSaid = kind.equals("gateway") && answer != null && answer.startsWith("404 ");
    return isSaid ? answer.replaceAll("\"message\":\".*\"", "") : answer;
  }

  private static final Pattern TIME_OR_ID =
      Pattern.compile(
          "accessTime|modificationTime|fileId|blockPoolId|blockId|generationStamp|access_time|modification_time"
              + "|storageID|name|ipAddr|hostName|xferPort|infoPort|ipcPort|infoSecurePort|capacity|dfsUsed|remaining"
              + "|used|blockPoolUsed|lastUpdate|lastUpdateMonotonic|xceiverCount|lastBlockReportTime"
              + "|lastBlockReportMonotonic|Location|dirId|networkLocation|cacheCapacity|urlString");

  /** What is alike in every run: no times, numbers of inodes, addresses. */
  private static String normal(Answer answer) throws IOException {
    if (!answer.type().equals("application/json")) {
      return answer.type() + " " + answer.text();
    }
    return JSON.writeValueAsString(normal("", JSON.readTree(answer.body())));
  }

  private static JsonNode normal(String key, JsonNode value) {
    if (value instanceof ObjectNode object) {
      Map<String, JsonNode> sorted = new TreeMap<>();
      object.properties().forEach(e -> sorted.put(e.getKey(), e.getValue()));
      ObjectNode out = JSON.createObjectNode();
      // The name of an attribute or a policy tells something; that of a DataNode is its address.
      boolean isNode = object.has("xferPort");
      sorted.forEach(
          (k, v) -> out.set(k, k.equals("name") && !isNode ? v : normal(k, v)));
      return out;
    }
    if (value instanceof ArrayNode array) {
      ArrayNode out = JSON.createArrayNode();
      if (List.of("hosts", "names", "topologyPaths", "locations").contains(key)) {
        return out.add(array.size());
      }
      List<JsonNode> all = new ArrayList<>();
      array.forEach(v -> all.add(normal(key, v)));
      // Hadoop has no policies with other numbers, and keeps attributes in another order.
      all.removeIf(v -> v.path("policy").path("id").asInt() > 5);
      if (key.equals("XAttrs")) {
        all.sort(Comparator.comparing(v -> v.path("name").asText()));
      }
      all.forEach(out::add);
      return out;
    }
    if (key.equals("XAttrNames")) {
      String[] names = value.asText().replaceAll("[\\[\\]]", "").split(",");
      Arrays.sort(names);
      return TextNode.valueOf(String.join(",", names));
    }
    // An attribute that was set without a value.
    if (key.equals("value") && List.of("0s", "0x", "\"\"").contains(value.asText())) {
      return NullNode.getInstance();
    }
    if (List.of("rs", "rs-legacy", "xor").contains(key)) {
      return TextNode.valueOf("a coder");
    }
    if (TIME_OR_ID.matcher(key).matches()) {
      boolean isZero = key.equals("accessTime") && value.asLong() == 0;
      return isZero ? value : TextNode.valueOf(value.isNumber() ? "N" : "T");
    }
    if (key.equals("message")) {
      String text = value.asText().replaceAll("\\[[0-9.:]+\\]|inode( |Id=)\\d+|\\d+\\.\\d+\\.\\d+\\.\\d+:\\d+", "#");
      return TextNode.valueOf(text.split("\n")[0]);
    }
    return value;
  }

  private static Configuration conf(ClusterProcess cluster, String address) {
    Configuration conf = cluster.conf();
    conf.set("fs.defaultFS", "webhdfs://" + address);
    conf.set("dfs.blocksize", "" + (1 << 20));
    return conf;
  }

  /** Files of many lengths by Hadoop's client, copied and erasure coded, read by HTTP and by RPC. */
  private static void files(Main.Context x, String kind, ClusterProcess cluster, String address) throws Exception {
    DistributedFileSystem rpc = cluster.fs();
    for (String layout : List.of("copies", POLICY)) {
      x.runner()
          .test(
              "webhdfs/" + kind + "/files are the same by both ways, " + layout,
              () -> {
                Path dir = new Path("/files-" + layout);
                rpc.mkdirs(dir);
                if (layout.equals(POLICY)) {
                  rpc.setErasureCodingPolicy(dir, POLICY);
                }
                FileSystem web = FileSystem.newInstance(conf(cluster, address));
                for (int len : new int[] {0, 1, 10_000, 1 << 20, (1 << 20) + 1, 7_654_321}) {
                  byte[] bytes = new byte[len];
                  new Random(len).nextBytes(bytes);
                  Path file = new Path(dir, "f" + len);
                  try (FSDataOutputStream out = web.create(file)) {
                    out.write(bytes);
                  }
                  check(Arrays.equals(bytes, read(rpc, file)), "by RPC, " + len);
                  check(Arrays.equals(bytes, read(web, file)), "by HTTP, " + len);
                  FileStatus status = web.getFileStatus(file);
                  equal((long) len, status.getLen(), "length");
                  equal(layout.equals(POLICY), status.isErasureCoded(), "erasure coded");
                  equal(rpc.getFileChecksum(file), web.getFileChecksum(file), "checksum");
                  int from = len / 3;
                  byte[] part = new byte[Math.min(5000, len - from)];
                  try (FSDataInputStream in = web.open(file)) {
                    in.readFully(from, part);
                  }
                  check(Arrays.equals(Arrays.copyOfRange(bytes, from, from + part.length), part), "a range");
                  if (layout.equals("copies")) {
                    try (FSDataOutputStream out = web.append(file)) {
                      out.write(part);
                    }
                    equal((long) len + part.length, rpc.getFileStatus(file).getLen(), "appended");
                  }
                }
                web.close();
              });
    }
    x.runner()
        .test(
            "webhdfs/" + kind + "/a client that goes away leaves a closed file",
            () -> {
              Path file = new Path("/half");
              String url = "http://" + address + "/webhdfs/v1/half?op=CREATE&user.name=" + user();
              String location = location(url);
              URI to = URI.create(location);
              try (Socket socket = new Socket(to.getHost(), to.getPort())) {
                String head =
                    "PUT " + to.getRawPath() + "?" + to.getRawQuery() + " HTTP/1.1\r\nHost: x\r\n"
                        + "Content-Type: application/octet-stream\r\nContent-Length: 100000\r\n\r\n";
                socket.getOutputStream().write(head.getBytes(StandardCharsets.UTF_8));
                socket.getOutputStream().write(new byte[3000]);
                socket.getOutputStream().flush();
                Thread.sleep(500);
              }
              long end = System.nanoTime() + 20_000_000_000L;
              while (!(rpc.exists(file) && rpc.isFileClosed(file)) && System.nanoTime() < end) {
                Thread.sleep(100);
              }
              check(rpc.isFileClosed(file), "the file is closed");
            });
  }

  private static String user() {
    return System.getProperty("user.name");
  }

  private static String location(String url) throws IOException {
    HttpURLConnection c = (HttpURLConnection) URI.create(url).toURL().openConnection();
    c.setInstanceFollowRedirects(false);
    c.setRequestMethod("PUT");
    equal(307, c.getResponseCode(), "the first answer");
    return c.getHeaderField("Location");
  }

  private static byte[] read(FileSystem fs, Path file) throws IOException {
    try (FSDataInputStream in = fs.open(file)) {
      return in.readAllBytes();
    }
  }

  /** Names that mean something in URLs. */
  private static void names(Main.Context x, String kind, ClusterProcess cluster, String address) throws Exception {
    DistributedFileSystem rpc = cluster.fs();
    for (String name : List.of("a b", "a+b", "a;b", "a%b", "a%41b", "a\"b'", "äöü-漢字-🐟", "a=1&b#c", "a?b", "(a)[b]{c}")) {
      x.runner()
          .test(
              "webhdfs/" + kind + "/names come through: " + name,
              () -> {
                String dir = "/names";
                String quoted = java.net.URLEncoder.encode(name, StandardCharsets.UTF_8).replace("+", "%20");
                String base = "http://" + address + "/webhdfs/v1" + dir + "/" + quoted + "?user.name=" + user() + "&op=";
                byte[] bytes = name.getBytes(StandardCharsets.UTF_8);
                equal(201, ask("PUT", base + "CREATE&overwrite=true", bytes, 0).status(), "created");
                Path path = new Path(new Path(dir), new Path(null, null, name.contains(":") ? "./" + name : name));
                check(rpc.exists(path), "by RPC it is " + Arrays.toString(rpc.listStatus(new Path(dir))));
                check(Arrays.equals(bytes, ask("GET", base + "OPEN", null, 0).body()), "what is read");
                JsonNode status = JSON.readTree(ask("GET", base + "GETFILESTATUS", null, 0).body());
                equal((long) bytes.length, status.path("FileStatus").path("length").asLong(), "length");
                String to = java.net.URLEncoder.encode(dir + "/" + name + "2", StandardCharsets.UTF_8);
                equal(
                    "{\"boolean\":true}",
                    ask("PUT", base + "RENAME&destination=" + to, new byte[0], 0).text(),
                    "renamed");
                check(rpc.exists(path.suffix("2")), "the new name");
              });
    }
  }

  private static final Pattern ENDED = Pattern.compile("(PASSED|FAILED|ERROR|SKIPPED|XFAIL) (\\S+?::.*?)( - .*)?");

  /** Clients in Python; how each of their tests ended on Hadoop is kept. */
  private static void python(Main.Context x, String kind, String address) throws Exception {
    File target = new File(x.home(), "hadoop/target");
    Process p =
        new ProcessBuilder(
                new File(x.home(), "python/webhdfs/run").getPath(),
                "http://" + address,
                user(),
                new File(target, "venv").getPath(),
                new File(target, "webhdfs").getPath())
            .redirectErrorStream(true)
            .start();
    p.getOutputStream().close();
    String out = new String(p.getInputStream().readAllBytes(), StandardCharsets.UTF_8);
    equal(0, p.waitFor(), "exit code of the clients in Python:\n" + out);
    Map<String, String> outcomes = new TreeMap<>();
    for (String line : out.split("\n")) {
      Matcher m = ENDED.matcher(line);
      if (m.matches()) {
        outcomes.put(m.group(2), m.group(1));
      }
    }
    File cases = new File(x.home(), "hadoop/cases/webhdfs/python.txt");
    if (x.record()) {
      List<String> lines = new ArrayList<>();
      outcomes.forEach((name, word) -> lines.add(word + " " + name));
      Files.write(cases.toPath(), lines);
      return;
    }
    for (String line : Files.readAllLines(cases.toPath())) {
      String[] words = line.split(" ", 2);
      x.runner()
          .test(
              "webhdfs/" + kind + "/python/" + words[1],
              () -> {
                String word = outcomes.getOrDefault(words[1], "not there");
                if (!word.equals("PASSED")) {
                  equal(words[0], word, "the end of the test\n" + out);
                }
              });
    }
  }
}
