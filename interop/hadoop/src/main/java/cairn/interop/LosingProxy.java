package cairn.interop;

import java.io.ByteArrayInputStream;
import java.io.DataInputStream;
import java.io.DataOutputStream;
import java.io.IOException;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.ServerSocket;
import java.net.Socket;
import java.util.Map;
import java.util.TreeMap;
import java.util.concurrent.ConcurrentHashMap;
import org.apache.hadoop.ipc.protobuf.ProtobufRpcEngine2Protos.RequestHeaderProto;
import org.apache.hadoop.ipc.protobuf.RpcHeaderProtos.RpcRequestHeaderProto;
import org.apache.hadoop.ipc.protobuf.RpcHeaderProtos.RpcResponseHeaderProto;

/**
 * Stands between clients and a NameNode and passes on what they say, until an answer is to be lost: then the call has been
 * carried out, and the connection ends before its answer.
 */
final class LosingProxy implements AutoCloseable {
  /** "hrpc", version, class of service, way of authentication. */
  private static final int PREAMBLE = 7;

  private static final int LONGEST = 64 << 20;

  private final ServerSocket server = new ServerSocket(0, 50, InetAddress.getLoopbackAddress());
  private final InetSocketAddress to;
  private final Map<String, Integer> counts = new TreeMap<>();
  private String method;
  private int skip;

  LosingProxy(InetSocketAddress to) throws IOException {
    this.to = to;
    start(
        () -> {
          while (true) {
            serve(server.accept());
          }
        });
  }

  String address() {
    return "127.0.0.1:" + server.getLocalPort();
  }

  /** From now on counts anew, and loses the answer of a call of {@code method} (none if null) that comes after {@code skip} others. */
  synchronized void lose(String method, int skip) {
    this.method = method;
    this.skip = skip;
    counts.clear();
  }

  /** Whether the answer is lost that was to be. */
  synchronized boolean hasLost() {
    return method == null;
  }

  /** How many answers of each method came by since then. */
  synchronized Map<String, Integer> counts() {
    return new TreeMap<>(counts);
  }

  private synchronized boolean isToLose(String called) {
    counts.merge(called, 1, Integer::sum);
    if (!called.equals(method) || skip-- > 0) {
      return false;
    }
    method = null;
    return true;
  }

  private interface Work {
    void run() throws IOException;
  }

  private static void start(Work work) {
    Thread thread =
        new Thread(
            () -> {
              try {
                work.run();
              } catch (IOException e) {
                // The connection, or the proxy, has ended.
              }
            });
    thread.setDaemon(true);
    thread.start();
  }

  private void serve(Socket client) throws IOException {
    Socket upstream = new Socket();
    try {
      upstream.connect(to);
    } catch (IOException e) {
      client.close();
      return;
    }
    client.setTcpNoDelay(true);
    upstream.setTcpNoDelay(true);
    Map<Integer, String> asked = new ConcurrentHashMap<>();
    start(() -> ending(client, upstream, () -> requests(client, upstream, asked)));
    start(() -> ending(client, upstream, () -> answers(upstream, client, asked)));
  }

  private static void ending(Socket one, Socket other, Work work) throws IOException {
    try (one; other) {
      work.run();
    }
  }

  private static void requests(Socket from, Socket to, Map<Integer, String> asked) throws IOException {
    DataInputStream in = new DataInputStream(from.getInputStream());
    DataOutputStream out = new DataOutputStream(to.getOutputStream());
    out.write(in.readNBytes(PREAMBLE));
    while (true) {
      byte[] frame = frame(in);
      ByteArrayInputStream bytes = new ByteArrayInputStream(frame);
      RpcRequestHeaderProto header = RpcRequestHeaderProto.parseDelimitedFrom(bytes);
      if (header.getCallId() >= 0) {
        asked.put(header.getCallId(), RequestHeaderProto.parseDelimitedFrom(bytes).getMethodName());
      }
      send(out, frame);
    }
  }

  private void answers(Socket from, Socket to, Map<Integer, String> asked) throws IOException {
    DataInputStream in = new DataInputStream(from.getInputStream());
    DataOutputStream out = new DataOutputStream(to.getOutputStream());
    while (true) {
      byte[] frame = frame(in);
      RpcResponseHeaderProto header = RpcResponseHeaderProto.parseDelimitedFrom(new ByteArrayInputStream(frame));
      String called = asked.remove(header.getCallId());
      if (called != null && isToLose(called)) {
        return;
      }
      send(out, frame);
    }
  }

  private static byte[] frame(DataInputStream in) throws IOException {
    int length = in.readInt();
    if (length < 0 || length > LONGEST) {
      throw new IOException("a frame of " + length + " bytes");
    }
    byte[] frame = new byte[length];
    in.readFully(frame);
    return frame;
  }

  private static void send(DataOutputStream out, byte[] frame) throws IOException {
    out.writeInt(frame.length);
    out.write(frame);
    out.flush();
  }

  @Override
  public void close() throws IOException {
    server.close();
  }
}
