package cairn.interop;

import cairn.interop.contract.ContractRun;
import cairn.interop.contract.ContractRun.Outcome;
import java.io.File;
import java.io.IOException;
import java.nio.file.Files;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.hdfs.DistributedFileSystem;

/**
 * Hadoop's own contract tests of file systems, on replicated files, with everything erasure coded, with everything in
 * contiguous groups, and by WebHDFS. How each ended on Hadoop is kept in {@code cases/contract/}; none may end worse
 * here. What is in contiguous groups must end as what is replicated.
 */
final class ContractTests {
  private static final String POLICY = "RS-3-2-1024k";
  private static final String CONTIGUOUS = "RS-3-2-contiguous";

  private ContractTests() {}

  static void run(Main.Context x) throws Exception {
    if (x.runner().wantsGroup("contract/replicated/")) {
      run(x, "replicated", 1024, null);
    }
    if (x.runner().wantsGroup("contract/ec/")) {
      // A block must hold a cell at least.
      run(x, "ec", 1 << 20, POLICY);
    }
    if (x.full() && !x.target().isHadoop() && x.runner().wantsGroup("contract/contiguous/")) {
      run(x, "contiguous", 1024, CONTIGUOUS);
    }
    // The same by WebHDFS: with redirections, and by a gateway.
    if (x.full() && x.runner().wantsGroup("contract/webhdfs/")) {
      run(x, "webhdfs", 1024, null);
    }
    if (x.full() && !x.target().isHadoop() && x.runner().wantsGroup("contract/gateway/")) {
      run(x, "gateway", 1024, null);
    }
  }

  private static void run(Main.Context x, String kind, int blockSize, String policy) throws Exception {
    Map<String, String> keys = WebHdfsTests.keys(x);
    keys.put("dfs.blocksize", "" + blockSize);
    keys.put("dfs.namenode.fs-limits.min-block-size", "512");
    if (kind.equals("contiguous")) {
      keys.putAll(GroupTests.AT_ONCE);
      // Single blocks as well.
      keys.put("cairn.ec.contiguous.pays", "1000");
    }
    File data = new File(x.work(), "contract-" + kind);
    Map<String, Outcome> outcomes;
    try (ClusterProcess cluster = new ClusterProcess(x.target(), data, policy == null ? 3 : 5, 1, keys);
        WebHdfsTests.Door door = kind.equals("gateway") ? new WebHdfsTests.Door(x, cluster) : null) {
      if (policy != null) {
        DistributedFileSystem fs = cluster.fs();
        fs.enableErasureCodingPolicy(policy);
        fs.setErasureCodingPolicy(new Path("/"), policy);
      }
      Configuration conf = cluster.conf();
      conf.set("dfs.blocksize", "" + blockSize);
      if (door != null) {
        conf.set("fs.defaultFS", "webhdfs://" + door.address);
      } else if (kind.equals("webhdfs")) {
        conf.set("fs.defaultFS", "webhdfs://" + cluster.httpAddress());
      }
      outcomes = ContractRun.all(conf);
      if (kind.equals("contiguous")) {
        long formed = Mixed.bean(cluster.httpAddress(), "Cairn:service=NameNode,name=ContiguousGroups")
            .path("GroupsFormed").asLong();
        x.runner().test(test(kind, "groups were made"), () -> Runner.check(formed > 50, formed + " groups"));
      }
    }
    String same = kind.replace("gateway", "webhdfs").replace("contiguous", "replicated");
    File cases = new File(x.home(), "hadoop/cases/contract/" + same + ".txt");
    if (x.record()) {
      List<String> lines = new ArrayList<>();
      outcomes.forEach((name, outcome) -> lines.add(outcome.word() + " " + name));
      cases.getParentFile().mkdirs();
      Files.write(cases.toPath(), lines);
      return;
    }
    Map<String, String> wanted = wanted(cases);
    outcomes.forEach(
        (name, outcome) -> {
          String word = wanted.getOrDefault(name, "not there");
          x.runner().test(test(kind, name), outcome.seconds(), () -> judge(word, outcome));
        });
    wanted.forEach(
        (name, word) -> {
          if (!outcomes.containsKey(name)) {
            x.runner().test(test(kind, name), () -> Runner.check(false, "it did not run; on Hadoop: " + word));
          }
        });
  }

  private static String test(String kind, String name) {
    return "contract/" + kind + "/" + name;
  }

  /** How each ended on Hadoop. */
  static Map<String, String> wanted(File cases) throws IOException {
    Map<String, String> wanted = new HashMap<>();
    for (String line : Files.readAllLines(cases.toPath())) {
      String[] words = line.split(" ", 2);
      wanted.put(words[1], words[0]);
    }
    return wanted;
  }

  /** Passes what ended at least as well as on Hadoop. */
  static void judge(String wanted, Outcome outcome) throws Throwable {
    if (outcome.word().equals(wanted) || wanted.equals(Outcome.FAILED)) {
      return;
    }
    if (outcome.failure() != null) {
      throw outcome.failure();
    }
    Runner.check(outcome.word().equals(Outcome.OK), "it was " + outcome.word() + "; on Hadoop: " + wanted);
  }
}
