package cairn.interop;

import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.BufferedReader;
import java.io.BufferedWriter;
import java.io.FileNotFoundException;
import java.io.IOException;
import java.io.InputStreamReader;
import java.net.ConnectException;
import java.net.NoRouteToHostException;
import java.net.URI;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.EnumSet;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.TreeMap;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicLong;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.crypto.CryptoProtocolVersion;
import org.apache.hadoop.fs.CreateFlag;
import org.apache.hadoop.fs.FileAlreadyExistsException;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.Options;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.fs.permission.FsPermission;
import org.apache.hadoop.hdfs.DFSClient;
import org.apache.hadoop.hdfs.DistributedFileSystem;
import org.apache.hadoop.hdfs.HdfsConfiguration;
import org.apache.hadoop.hdfs.protocol.AlreadyBeingCreatedException;
import org.apache.hadoop.hdfs.protocol.ClientProtocol;
import org.apache.hadoop.hdfs.protocol.DirectoryListing;
import org.apache.hadoop.hdfs.protocol.HdfsFileStatus;
import org.apache.hadoop.io.EnumSetWritable;
import org.apache.hadoop.io.retry.MultiException;
import org.apache.hadoop.ipc.RemoteException;
import org.apache.hadoop.net.ConnectTimeoutException;

/**
 * Clients that make, remove, rename, look for and list files in directories that they share, until standard input ends or
 * says {@code stop}; each call is a line of JSON: when it began and ended, and what it was answered. Arguments: the folder of
 * the configuration, the file to write, a seed, and for each client a proxy provider or the URI of one NameNode, behind
 * {@code reads:} for one that only lists.
 */
public final class Historian {
  private static final String[] NAMES = {"a", "b", "c"};
  private static final int DIRECTORIES = 4;

  /** Calls after which others than these directories are taken: short histories are judged fast. */
  private static final int CALLS = DIRECTORIES * 150;

  private final AtomicBoolean stops = new AtomicBoolean();
  private final AtomicLong calls = new AtomicLong();
  private final ObjectMapper json = new ObjectMapper();
  private final BufferedWriter out;

  private Historian(BufferedWriter out) {
    this.out = out;
  }

  private static boolean isOf(Exception e, Class<?>... classes) {
    // All members were asked at once. Whoever has an answer has that of the one that leads.
    if (e instanceof MultiException all) {
      return all.getExceptions().values().stream().anyMatch(one -> isOf(one, classes));
    }
    if (e.getCause() instanceof Exception cause && !(e instanceof IOException)) {
      return isOf(cause, classes);
    }
    String name = e instanceof RemoteException remote ? remote.getClassName() : e.getClass().getName();
    return Arrays.stream(classes).anyMatch(one -> one.getName().equals(name));
  }

  /** Whether a call has certainly not arrived. */
  private static boolean isUnsent(Exception e) {
    return e instanceof ConnectException
        || e instanceof NoRouteToHostException
        || e instanceof ConnectTimeoutException;
  }

  /** Carries out one call, and notes what it was answered. Returns false if it has certainly never arrived. */
  private static boolean call(ClientProtocol nn, String client, Map<String, Object> line) {
    String dir = (String) line.get("dir");
    String path = dir + "/" + line.get("name");
    try {
      String answer = "done";
      switch ((String) line.get("op")) {
        case "create" -> {
          EnumSetWritable<CreateFlag> flags = new EnumSetWritable<>(EnumSet.of(CreateFlag.CREATE));
          FsPermission mode = FsPermission.getFileDefault();
          HdfsFileStatus made =
              nn.create(
                  path, mode, client, flags, true, (short) 1, 1 << 20, CryptoProtocolVersion.supported(), null, null);
          line.put("id", made.getFileId());
        }
        case "delete" -> answer = nn.delete(path, false) ? "done" : "missing";
        case "rename" -> nn.rename2(path, dir + "/" + line.get("to"), Options.Rename.NONE);
        case "look" -> {
          HdfsFileStatus found = nn.getFileInfo(path);
          if (found == null) {
            answer = "missing";
          } else {
            line.put("id", found.getFileId());
          }
        }
        default -> {
          Map<String, Long> files = new TreeMap<>();
          DirectoryListing listing = nn.getListing(dir, new byte[0], false);
          if (listing != null) {
            for (HdfsFileStatus file : listing.getPartialListing()) {
              files.put(file.getLocalName(), file.getFileId());
            }
          }
          line.put("files", files);
        }
      }
      line.put("answer", answer);
    } catch (IOException e) {
      if (isOf(e, FileAlreadyExistsException.class, AlreadyBeingCreatedException.class)) {
        line.put("answer", "exists");
      } else if (isOf(e, FileNotFoundException.class)) {
        line.put("answer", "missing");
      } else if (isUnsent(e)) {
        return false;
      } else {
        System.err.println(line + ": " + e);
        line.put("answer", "unknown");
      }
    }
    return true;
  }

  private void run(int number, Configuration conf, String way, Random random) {
    try {
      Configuration own = new Configuration(conf);
      URI uri = FileSystem.getDefaultUri(conf);
      boolean reads = way.startsWith("reads:");
      String at = reads ? way.substring("reads:".length()) : way;
      if (at.startsWith("hdfs:")) {
        uri = URI.create(at);
      } else {
        own.set("dfs.client.failover.proxy.provider.ns", at);
      }
      FileSystem fs = FileSystem.newInstance(uri, own);
      DFSClient client = ((DistributedFileSystem) fs).getClient();
      while (!stops.get()) {
        Map<String, Object> line = new LinkedHashMap<>();
        String[] ops = {"create", "create", "delete", "rename", "look", "list"};
        String op = reads ? "list" : ops[random.nextInt(ops.length)];
        long round = calls.incrementAndGet() / CALLS;
        int name = random.nextInt(NAMES.length);
        line.put("client", number);
        line.put("op", op);
        line.put("dir", "/history/" + round + "-" + random.nextInt(DIRECTORIES));
        line.put("name", NAMES[name]);
        if (op.equals("rename")) {
          line.put("to", NAMES[(name + 1 + random.nextInt(NAMES.length - 1)) % NAMES.length]);
        }
        line.put("call", System.nanoTime());
        boolean arrived = call(client.getNamenode(), client.getClientName(), line);
        line.put("return", System.nanoTime());
        boolean changes = !op.equals("look") && !op.equals("list");
        if (arrived && (changes || !"unknown".equals(line.get("answer")))) {
          String text = json.writeValueAsString(line);
          synchronized (out) {
            out.write(text);
            out.newLine();
          }
        }
        Thread.sleep(random.nextInt(20));
      }
    } catch (Throwable e) {
      e.printStackTrace();
      System.exit(1);
    }
  }

  public static void main(String[] args) throws Exception {
    Configuration conf = new HdfsConfiguration();
    conf.addResource(new Path(args[0], "core-site.xml"));
    conf.addResource(new Path(args[0], "hdfs-site.xml"));
    // A process that stands still answers nobody, and is not waited for.
    conf.setInt("ipc.client.rpc-timeout.ms", 5000);
    conf.setInt("ipc.client.connect.timeout", 2000);
    conf.setInt("ipc.client.connect.max.retries", 0);
    conf.setInt("ipc.client.connect.max.retries.on.timeouts", 0);
    try (BufferedWriter out = Files.newBufferedWriter(java.nio.file.Path.of(args[1]))) {
      Historian historian = new Historian(out);
      List<Thread> threads = new ArrayList<>();
      for (int i = 3; i < args.length; i++) {
        int number = i - 3;
        String way = args[i];
        Random random = new Random(Long.parseLong(args[2]) * 100 + number);
        Thread thread = new Thread(() -> historian.run(number, conf, way, random));
        threads.add(thread);
        thread.start();
      }
      BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
      in.readLine();
      historian.stops.set(true);
      for (Thread thread : threads) {
        thread.join();
      }
    }
    System.exit(0);
  }
}
