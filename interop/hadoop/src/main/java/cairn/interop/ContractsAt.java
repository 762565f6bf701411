package cairn.interop;

import cairn.interop.contract.ContractRun;
import cairn.interop.contract.ContractRun.Outcome;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.File;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.hdfs.HdfsConfiguration;

/**
 * Hadoop's contract tests of file systems on a cluster that runs. Tells how many ended at least as well as on Hadoop, and
 * which did not and why. Arguments: the folder of the configuration, and the file that says how each ended on Hadoop.
 */
public final class ContractsAt {
  private ContractsAt() {}

  public static void main(String[] args) throws Exception {
    Configuration conf = new HdfsConfiguration();
    conf.addResource(new Path(args[0], "core-site.xml"));
    conf.addResource(new Path(args[0], "hdfs-site.xml"));
    conf.set("dfs.blocksize", "1024");
    Map<String, Outcome> outcomes = ContractRun.all(conf);
    List<String> worse = new ArrayList<>();
    for (Map.Entry<String, String> wanted : ContractTests.wanted(new File(args[1])).entrySet()) {
      Outcome outcome = outcomes.get(wanted.getKey());
      try {
        Runner.check(outcome != null, "it did not run");
        ContractTests.judge(wanted.getValue(), outcome);
      } catch (Throwable why) {
        worse.add(wanted.getKey() + ": " + why);
      }
    }
    Map<String, Object> told = new LinkedHashMap<>();
    told.put("ran", outcomes.size());
    told.put("worse", worse);
    System.out.println(new ObjectMapper().writeValueAsString(told));
    System.exit(0);
  }
}
