package cairn.interop;

import static cairn.interop.Runner.check;
import static cairn.interop.Runner.equal;

import java.io.ByteArrayOutputStream;
import java.io.DataOutputStream;
import java.io.File;
import java.io.IOException;
import java.io.InputStream;
import java.net.InetSocketAddress;
import java.net.Socket;
import java.net.SocketException;
import java.net.SocketTimeoutException;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Random;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FileStatus;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.hdfs.DistributedFileSystem;
import org.apache.hadoop.hdfs.protocol.proto.ClientNamenodeProtocolProtos.GetServerDefaultsRequestProto;
import org.apache.hadoop.hdfs.protocol.proto.ClientNamenodeProtocolProtos.GetServerDefaultsResponseProto;
import org.apache.hadoop.hdfs.protocol.proto.AclProtos.FsPermissionProto;
import org.apache.hadoop.hdfs.protocol.proto.ClientNamenodeProtocolProtos.MkdirsRequestProto;
import org.apache.hadoop.hdfs.protocolPB.ClientNamenodeProtocolPB;
import org.apache.hadoop.ipc.ProtobufRpcEngine2;
import org.apache.hadoop.ipc.ProtocolInfo;
import org.apache.hadoop.ipc.RPC;
import org.apache.hadoop.ipc.RemoteException;
import org.apache.hadoop.thirdparty.protobuf.ByteString;
import org.apache.hadoop.thirdparty.protobuf.RpcController;
import org.apache.hadoop.thirdparty.protobuf.ServiceException;

/** What no well-behaved client sends: strange calls get Hadoop's errors, and garbage ends its connection only. */
final class BadInputTests {
  private static final String CLIENT_PROTOCOL = "org.apache.hadoop.hdfs.protocol.ClientProtocol";

  /** A method that the protocol does not have. */
  @ProtocolInfo(protocolName = CLIENT_PROTOCOL, protocolVersion = 1)
  interface UnknownMethod {
    GetServerDefaultsResponseProto noSuchMethod(RpcController c, GetServerDefaultsRequestProto m)
        throws ServiceException;
  }

  /** A version that the protocol does not have. */
  @ProtocolInfo(protocolName = CLIENT_PROTOCOL, protocolVersion = 77)
  interface UnknownVersion {
    GetServerDefaultsResponseProto getServerDefaults(
        RpcController c, GetServerDefaultsRequestProto m) throws ServiceException;
  }

  /** A protocol that nobody serves. */
  @ProtocolInfo(protocolName = "cairn.interop.NoSuchProtocol", protocolVersion = 1)
  interface UnknownProtocol {
    GetServerDefaultsResponseProto getServerDefaults(
        RpcController c, GetServerDefaultsRequestProto m) throws ServiceException;
  }

  private interface Call<T> {
    void on(T proxy) throws ServiceException;
  }

  private final Runner runner;
  private final ClusterProcess cluster;

  private BadInputTests(Main.Context x, ClusterProcess cluster) {
    this.runner = x.runner();
    this.cluster = cluster;
  }

  static void run(Main.Context x) throws Exception {
    if (!x.runner().wantsGroup("bad input/")) {
      return;
    }
    try (ClusterProcess cluster =
        new ClusterProcess(x.target(), new File(x.work(), "bad-input"), 5, 2, x.keys())) {
      BadInputTests t = new BadInputTests(x, cluster);
      t.calls();
      t.bytesThatAreNoText(x.target());
      t.garbage();
    }
  }

  private void calls() {
    GetServerDefaultsRequestProto m = GetServerDefaultsRequestProto.getDefaultInstance();
    refused(
        "unknown method",
        UnknownMethod.class,
        p -> p.noSuchMethod(null, m),
        "org.apache.hadoop.ipc.RpcNoSuchMethodException",
        "Unknown method noSuchMethod called on " + CLIENT_PROTOCOL + " protocol.",
        "ERROR_NO_SUCH_METHOD");
    refused(
        "unknown version",
        UnknownVersion.class,
        p -> p.getServerDefaults(null, m),
        "org.apache.hadoop.ipc.RPC$VersionMismatch",
        "Protocol " + CLIENT_PROTOCOL + " version mismatch. (client = 77, server = 1)",
        "ERROR_RPC_VERSION_MISMATCH");
    refused(
        "unknown protocol",
        UnknownProtocol.class,
        p -> p.getServerDefaults(null, m),
        "org.apache.hadoop.ipc.RpcNoSuchProtocolException",
        "Unknown protocol: cairn.interop.NoSuchProtocol",
        "ERROR_NO_SUCH_PROTOCOL");
  }

  private <T> void refused(
      String name, Class<T> protocol, Call<T> call, String type, String message, String code) {
    runner.test(
        "bad input/rpc/" + name,
        () -> {
          Configuration conf = cluster.conf();
          RPC.setProtocolEngine(conf, protocol, ProtobufRpcEngine2.class);
          String[] address = cluster.uri().replace("hdfs://", "").split(":");
          T proxy =
              RPC.getProxy(
                  protocol,
                  protocol.getAnnotation(ProtocolInfo.class).protocolVersion(),
                  new InetSocketAddress(address[0], Integer.parseInt(address[1])),
                  conf);
          try {
            call.on(proxy);
          } catch (ServiceException e) {
            check(e.getCause() instanceof RemoteException, "a remote exception, got " + e.getCause());
            RemoteException r = (RemoteException) e.getCause();
            equal(type, r.getClassName(), "exception");
            // Below its first line Hadoop sends the stack of its own server.
            equal(message, r.getMessage().split("\n")[0], "message");
            equal(code, String.valueOf(r.getErrorCode()), "RPC error code");
            return;
          } finally {
            RPC.stopProxy(proxy);
          }
          throw new AssertionError("the call was answered");
        });
  }

  /** Java's decoder takes what is not UTF-8 for U+FFFD, so that Hadoop makes a name that nobody has asked for. */
  private void bytesThatAreNoText(Target target) {
    Map<String, byte[]> names = new LinkedHashMap<>();
    names.put("a lone byte", new byte[] {'/', 'b', (byte) 0xff});
    names.put("half a character", new byte[] {'/', 'c', (byte) 0xe2, (byte) 0x82});
    names.put("a surrogate", new byte[] {'/', 'd', (byte) 0xed, (byte) 0xa0, (byte) 0x80});
    names.put("an overlong slash", new byte[] {'/', 'e', (byte) 0xc0, (byte) 0xaf, 'x'});
    names.forEach(
        (what, path) ->
            runner.test(
                "bad input/text/" + what,
                () -> {
                  Configuration conf = cluster.conf();
                  RPC.setProtocolEngine(conf, ClientNamenodeProtocolPB.class, ProtobufRpcEngine2.class);
                  String[] address = cluster.uri().replace("hdfs://", "").split(":");
                  ClientNamenodeProtocolPB proxy =
                      RPC.getProxy(
                          ClientNamenodeProtocolPB.class,
                          1,
                          new InetSocketAddress(address[0], Integer.parseInt(address[1])),
                          conf);
                  List<String> before = listing(cluster.fs());
                  MkdirsRequestProto request =
                      MkdirsRequestProto.newBuilder()
                          .setSrcBytes(ByteString.copyFrom(path))
                          .setMasked(FsPermissionProto.newBuilder().setPerm(0755))
                          .setCreateParent(true)
                          .build();
                  try {
                    check(proxy.mkdirs(null, request).getResult(), "made");
                    check(target.isHadoop(), "the call was answered");
                    String made = new String(path, StandardCharsets.UTF_8);
                    check(made.contains("\ufffd"), made);
                    check(cluster.fs().delete(new Path(made), true), "the name that was made is " + made);
                  } catch (ServiceException e) {
                    check(!target.isHadoop() && e.getCause() instanceof RemoteException, "" + e.getCause());
                    equal(
                        "org.apache.hadoop.thirdparty.protobuf.InvalidProtocolBufferException",
                        ((RemoteException) e.getCause()).getClassName(),
                        "exception");
                  } finally {
                    RPC.stopProxy(proxy);
                  }
                  equal(before, listing(cluster.fs()), "the namespace");
                }));
  }

  private static byte[] bytes(Object... parts) throws IOException {
    ByteArrayOutputStream b = new ByteArrayOutputStream();
    DataOutputStream d = new DataOutputStream(b);
    for (Object p : parts) {
      if (p instanceof String s) {
        d.write(s.getBytes(StandardCharsets.ISO_8859_1));
      } else if (p instanceof Integer i) {
        d.writeInt(i);
      } else if (p instanceof Short s) {
        d.writeShort(s);
      } else if (p instanceof Byte c) {
        d.writeByte(c);
      } else {
        d.write((byte[]) p);
      }
    }
    return b.toByteArray();
  }

  private static byte[] noise(long seed, int count) {
    byte[] b = new byte[count];
    new Random(seed).nextBytes(b);
    return b;
  }

  /** What is sent to ports that speak Hadoop RPC. */
  private static Map<String, byte[]> rpcGarbage() throws IOException {
    Map<String, byte[]> g = new LinkedHashMap<>();
    String hello = "hrpc\u0009\u0000\u0000";
    g.put("noise", noise(1, 4096));
    g.put("wrong magic", bytes("nope\u0009\u0000\u0000", 5, noise(2, 5)));
    g.put("wrong RPC version", bytes("hrpc\u0003\u0000\u0000", 5, noise(2, 5)));
    g.put("unknown authentication", bytes("hrpc\u0009\u0000\u0042", 5, noise(2, 5)));
    g.put("half a preamble", bytes("hrp"));
    g.put("oversized frame", bytes(hello, Integer.MAX_VALUE, noise(3, 100)));
    g.put("negative frame", bytes(hello, -5, noise(3, 100)));
    g.put("truncated frame", bytes(hello, 1000, noise(4, 100)));
    g.put("noise in a frame", bytes(hello, 200, noise(5, 200)));
    g.put("header length beyond the frame", bytes(hello, 4, "\u00ff\u00ff\u00ff\u007f"));
    return g;
  }

  /** What is sent to ports that speak the data transfer protocol. */
  private static Map<String, byte[]> transferGarbage() throws IOException {
    Map<String, byte[]> g = new LinkedHashMap<>();
    short version = 28;
    g.put("noise", noise(6, 4096));
    g.put("half a version", bytes((byte) 0));
    g.put("wrong version", bytes((short) 99, (byte) 81, noise(7, 50)));
    g.put("unknown operation", bytes(version, (byte) 7, noise(8, 50)));
    g.put("oversized request", bytes(version, (byte) 81, "\u00ff\u00ff\u00ff\u00ff\u0007"));
    g.put("endless varint", bytes(version, (byte) 81, "\u00ff".repeat(64)));
    g.put("truncated request", bytes(version, (byte) 81, (byte) 100, noise(9, 20)));
    g.put("noise in a read", bytes(version, (byte) 81, (byte) 60, noise(10, 60)));
    g.put("noise in a write", bytes(version, (byte) 80, (byte) 60, noise(11, 60)));
    g.put("noise in a checksum", bytes(version, (byte) 85, (byte) 60, noise(12, 60)));
    return g;
  }

  private static Map<String, byte[]> httpGarbage() throws IOException {
    Map<String, byte[]> g = new LinkedHashMap<>();
    g.put("noise", bytes(noise(13, 4096), "\r\n\r\n"));
    g.put("truncated request", bytes("GET / HT"));
    g.put("oversized header", bytes("GET / HTTP/1.1\r\nx: " + "y".repeat(1 << 20) + "\r\n\r\n"));
    return g;
  }

  private void garbage() throws Exception {
    DistributedFileSystem fs = cluster.fs();
    Path kept = new Path("/kept");
    String sha = FileTests.store(fs, kept, 4, 1 << 20, 128 << 20);
    String node = "datanodes";
    Map<String, String> ports = new LinkedHashMap<>();
    ports.put("NameNode RPC", cluster.uri().replace("hdfs://", ""));
    ports.put("DataNode RPC", cluster.describe().path(node).get(0).path("ipc").asText());
    ports.put("DataNode transfer", cluster.describe().path(node).get(0).path("xfer").asText());
    ports.put("NameNode HTTP", cluster.httpAddress());
    ports.put("DataNode HTTP", cluster.describe().path(node).get(0).path("http").asText().replace("http://", ""));
    // A DataNode need not have a web server.
    ports.values().removeIf(address -> !address.contains(":"));
    for (Map.Entry<String, String> port : ports.entrySet()) {
      Map<String, byte[]> cases =
          port.getKey().endsWith("RPC")
              ? rpcGarbage()
              : port.getKey().endsWith("transfer") ? transferGarbage() : httpGarbage();
      List<String> said = new ArrayList<>();
      cases.forEach(
          (what, sent) ->
              runner.test(
                  "bad input/" + port.getKey() + "/" + what,
                  () -> {
                    List<String> before = listing(fs);
                    long log = cluster.log().length();
                    closesAfter(port.getValue(), sent);
                    equal(before, listing(fs), "the namespace");
                    equal(5, cluster.live(), "live DataNodes");
                    equal(sha, Data.digest(fs.open(kept)), "SHA-256 of a stored file");
                    if (cluster.log().length() > log) {
                      said.add(what);
                    }
                  }));
      if (!port.getKey().endsWith("HTTP")) {
        runner.test(
            "bad input/" + port.getKey() + "/the log tells of garbage",
            () ->
                check(
                    said.contains("noise in a frame") || said.contains("wrong version"),
                    "log lines after: " + said));
      }
    }
  }

  private static List<String> listing(DistributedFileSystem fs) throws IOException {
    List<String> names = new ArrayList<>();
    for (FileStatus s : fs.listStatus(new Path("/"))) {
      names.add(s.toString());
    }
    return names;
  }

  /** Sends {@code sent} and nothing more, and expects the peer to end the connection within ten seconds. */
  private static void closesAfter(String address, byte[] sent) throws IOException {
    String[] a = address.split(":");
    try (Socket s = new Socket(a[0], Integer.parseInt(a[1]))) {
      s.setSoTimeout(10_000);
      try {
        s.getOutputStream().write(sent);
        s.shutdownOutput();
        InputStream in = s.getInputStream();
        byte[] buffer = new byte[8192];
        int total = 0;
        for (int n = in.read(buffer); n >= 0; n = in.read(buffer)) {
          total += n;
          check(total < 1 << 20, "an answer without end");
        }
      } catch (SocketTimeoutException e) {
        throw new AssertionError("the connection stays open");
      } catch (SocketException e) {
        // Reset by the peer: that is an end, too.
        return;
      }
    }
  }
}
