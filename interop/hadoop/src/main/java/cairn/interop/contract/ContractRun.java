package cairn.interop.contract;

import java.io.IOException;
import java.util.Map;
import java.util.TreeMap;
import org.apache.hadoop.conf.Configuration;
import org.junit.platform.engine.TestExecutionResult;
import org.junit.platform.engine.UniqueId;
import org.junit.platform.engine.discovery.DiscoverySelectors;
import org.junit.platform.launcher.TestExecutionListener;
import org.junit.platform.launcher.TestIdentifier;
import org.junit.platform.launcher.core.LauncherDiscoveryRequestBuilder;
import org.junit.platform.launcher.core.LauncherFactory;

/** Runs {@link Contracts} against one file system and keeps how each test ended. */
public final class ContractRun implements TestExecutionListener {
  /** How a test ended; {@code failure} is null unless it failed. */
  public record Outcome(String word, double seconds, Throwable failure) {
    public static final String OK = "ok";
    public static final String FAILED = "failed";
    public static final String SKIPPED = "skipped";
  }

  private final Map<String, Outcome> outcomes = new TreeMap<>();
  private final Map<UniqueId, Long> starts = new TreeMap<>((a, b) -> a.toString().compareTo(b.toString()));

  private ContractRun() {}

  /** Runs the contracts on the file system of {@code conf} and returns the outcome of each test by its name. */
  public static Map<String, Outcome> all(Configuration conf) throws IOException {
    ClusterContract.use(conf);
    ContractRun run = new ContractRun();
    LauncherDiscoveryRequestBuilder request = LauncherDiscoveryRequestBuilder.request();
    for (Class<?> contract : Contracts.class.getDeclaredClasses()) {
      request.selectors(DiscoverySelectors.selectClass(contract));
    }
    LauncherFactory.create().execute(request.build(), run);
    return run.outcomes;
  }

  /** {@code Append/testAppendNonexistentFile}, with {@code #1} behind what has parameters. */
  private static String name(TestIdentifier test) {
    StringBuilder name = new StringBuilder();
    for (UniqueId.Segment s : test.getUniqueIdObject().getSegments()) {
      String value = s.getValue();
      switch (s.getType()) {
        case "class", "class-template" -> name.append(value.replaceAll(".*[.$]", ""));
        case "method", "test-template" -> name.append('/').append(value.replaceAll("\\(.*", ""));
        case "class-template-invocation", "test-template-invocation" -> name.append(value);
        default -> {}
      }
    }
    return name.toString();
  }

  @Override
  public void executionStarted(TestIdentifier test) {
    starts.put(test.getUniqueIdObject(), System.nanoTime());
  }

  @Override
  public void executionSkipped(TestIdentifier test, String reason) {
    if (test.isTest()) {
      outcomes.put(name(test), new Outcome(Outcome.SKIPPED, 0, null));
    }
  }

  @Override
  public void executionFinished(TestIdentifier test, TestExecutionResult result) {
    String word =
        switch (result.getStatus()) {
          case SUCCESSFUL -> Outcome.OK;
          case ABORTED -> Outcome.SKIPPED;
          case FAILED -> Outcome.FAILED;
        };
    // A class or a template counts only when it failed as a whole, for its tests did not run then.
    if (test.isTest() || word.equals(Outcome.FAILED)) {
      double seconds = (System.nanoTime() - starts.get(test.getUniqueIdObject())) / 1e9;
      outcomes.put(name(test), new Outcome(word, seconds, result.getThrowable().orElse(null)));
    }
  }
}
